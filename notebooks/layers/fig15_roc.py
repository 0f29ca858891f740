# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does the whole ROC curve agree with its area?
#
# **PPTP, Fig. 15** (section 5.2; ResNet18, TinyImageNet). Adv-Reg and RelaxLoss with and without PPTP, as ROC curves:
# an area averages over false positive rates (FPR) that no attacker would accept, and may hide a few members who are
# exposed beyond doubt.
#
# **The paper says** that with PPTP the area under the curve is comparable or lower, at a higher test accuracy. The text
# gives no number.
#
# **It would be wrong if** at one strength the area grew. The same alpha acts less in few epochs than from scratch,
# so that a larger area alone is no fault of the held stages: Fig. 13 and 14 compare accuracy at equal leak. Here curves
# of one area are compared: the held stages learnt from every member and might expose few of them surely. The true
# positive rate (TPR) at a low FPR of a network in PPTP is read minus that of the line of strengths from scratch **at
# equal area**; for RelaxLoss at its strongest, where a difference would be largest.
# One FPR is noisy: judged is the mean TPR at 5, 10 and 20 % FPR. 1 % FPR, where few are counted, is only shown. RMIA
# judges, which on draw 0 found more than LiRA wherever a defence acted. Networks: Fig. 13 and 14. Rules were
# settled on draw 0, a referee's objections in hand, and are judged on this one (seed 1).

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (paper: 64)
stem = "conv3"  # first layer (paper: not stated; conv3-pool gives its 4x4 map in stage 4 at 64 pixels)
pool = 600  # samples from which each model draws half (paper: not stated)
dev = 300  # samples outside the pool, unused here (paper: not stated)
reference = 300  # samples outside the pool that adversarial regularization calls non-members (paper: not stated)
test = 600  # samples of the test part that are looked at (paper: not stated)
risky_from = "stage4"  # first rewound stage (paper, Tab. 6: stage4 on TinyImageNet)
adv_from = "stage3"  # the same for Adv-Reg: the networks of Fig. 13, as it costs most (paper: stage4)
relax_alphas = [0.3, 0.6, 1.0]  # RelaxLoss target losses, nats, weakest first (paper, Tab. 4: 1 to 3, for 200 classes)
adv_alphas = [3.0, 5.0]  # weights of adversarial regularization, weakest first (paper, Tab. 4: 1 to 5)
adv_steps = 3  # attack steps for each classifier step (paper, Tab. 4: 3)
adv_width = 64  # units of the first layer of its inference net (published codes: 1024)
epochs = 12  # epochs of training from scratch (paper: not stated)
retrain_epochs = 5  # epochs of retraining (paper: "less than half")
batch = 64  # samples a step (paper: not stated)
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0, at the start of each training (paper: not stated)
augment = 0  # padding of the random crop with flips, pixels; 0: none (paper: crop and flip)
shadows = 10  # models in complement pairs; each is attacked by the others, less its pair
learnt = 0.6  # least test accuracy of ordinary networks that have learnt (ours)
seed = 101  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace

import numpy as np
from leak_atlas import audit, lab, recipe, report

area, left = "RMIA's AUC, in PPTP minus from scratch", "TPR, in PPTP minus from scratch, at equal area"
same = {"paper": "Fig. 15", "control": "the same strength, which acts less in fewer epochs; paired over targets"}
tail = {"ours": "our own: the paper reads areas", "control": "the line of strengths from scratch, each target's own"}
claims = report.claims(
    report.Claim("area", "RelaxLoss leaks no larger area in PPTP", area, below=0.01, margin=0.035, **same),
    report.Claim("adv_area", "Adv-Reg leaks no larger area in PPTP", area, below=0.01, margin=0.04, **same),
    report.Claim("tail", "Where areas are equal RelaxLoss exposes as many", f"{left}, mean of 5, 10 and 20 % FPR", within=0.04, **tail),
    report.Claim("adv_tail", "Where areas are equal Adv-Reg exposes as many", f"{left}, mean of 5, 10 and 20 % FPR", within=0.04, **tail),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)
claims

# %% [markdown]
# ## Two defences, two ways
# In PPTP the risky stages go back to their initial values and are retrained with the defence; the others are held.
# RelaxLoss alternates: below alpha every second epoch flattens posteriors, the others ascend.

# %%
augmented = recipe.Augment(augment) if augment else None
long = recipe.Schedule(epochs, batch, optimizer, lr, nesterov=True, augment=augmented)
short = replace(long, epochs=retrain_epochs)
design = recipe.RandomHalves(pool, test=test, seed=seed, dev=dev, reference=reference)
setup = recipe.Setup(recipe.Data(data, pixels), design, recipe.Model(model, width, stem), long, shadows, seed, precision)
ordinary = setup.trained()
cuts = {"RelaxLoss": risky_from, "Adv-Reg": adv_from}
rewound = {cut: ordinary.rewind(cut).freeze(cut) for cut in cuts.values()}
defences = {
    "RelaxLoss": {alpha: recipe.RelaxLoss(alpha) for alpha in relax_alphas},
    "Adv-Reg": {alpha: recipe.AdversarialRegularization(alpha, adv_steps, width=adv_width) for alpha in adv_alphas},
}
one = {"RelaxLoss": relax_alphas[(len(relax_alphas) - 1) // 2], "Adv-Reg": adv_alphas[-1]}
ways = {("no defence", epochs): ordinary}
for name, strengths in defences.items():
    ways |= {(name, "from scratch", alpha): setup.trained(goal) for alpha, goal in strengths.items()}
    ways |= {(name, "in PPTP", alpha): rewound[cuts[name]].train(short, goal) for alpha, goal in strengths.items()}
attackers = {"confidence": recipe.Threshold("confidence", sign="shadows"), "LiRA": recipe.LiRA(), "RMIA": recipe.RMIA()}
attacks = {(way, name): each.attack(attacker) for way, each in ways.items() for name, attacker in attackers.items()}
signals = {way: each.signals() for way, each in ways.items()}
thrown = rewound[risky_from].signals()  # before any retraining
results = lab.realize(attacks, signals, thrown, recipe.self_audit(ordinary))

# %% [markdown]
# ## ROC curves
# RMIA at RelaxLoss's middle strength and Adv-Reg's strongest, each with its own cut: mean over the targets at each FPR,
# in its pointwise 95 % band. Where the logarithmic panels are grey no non-member is left to count.

# %%
found, end = audit.Comparison.of(results, signals, attacks), ("no defence", epochs)
scores = {way: (found.attacks[way, "RMIA"]["scores"], found.attacks[way, "RMIA"]["member"]) for way in ways}
non_members = min(int((~each["member"]).sum(axis=-1).min()) for each in found.attacks.values())
area_of = {name: found.auc_difference((name, "in PPTP", one[name]), (name, "from scratch", one[name]), "RMIA") for name in defences}
told = ", ".join(f"{name} {'a larger' if e.low > 0 else 'a smaller' if e.high < 0 else 'no surely other'} area" for name, e in area_of.items())
shown = {f"{d}, from {cut}": {"no defence": end} | {how: (d, how, one[d]) for how in ("from scratch", "in PPTP")} for d, cut in cuts.items()}
report.roc({(d, how): audit.roc_band(*scores[way]) for d in shown for how, way in shown[d].items()}, title=f"In PPTP, at one strength: {told}")

# %% [markdown]
# ## Tail against area, a point a strength
# If the area told all, both ways would lie on one curve.

# %%
rates = [0.1, 0.01, 0.001][: 3 if non_members >= 1000 else 2]
line = {name: [end, *((name, "from scratch", alpha) for alpha in defences[name])] for name in defences}
inner = {name: [way for way in ways if way[:2] == (name, "in PPTP")] for name in defences}
heights, off = {"5 to 20 %": (0.05, 0.1, 0.2), "10 %": (0.1,), "1 %": (0.01,)}, {}
asked = [(d, used) for d in inner for used in (*zip(inner[d]), tuple(inner[d]))]  # each strength, and all
for what, a in ((what, a) for what in heights for a in ("RMIA", "LiRA")):
    both = {way: (found.attacks[way, a]["scores"], found.attacks[way, a]["member"]) for way in ways}
    high = {way: np.mean([audit.tpr(*both[way], rate) for rate in heights[what]], axis=0) for way in ways}
    off |= {(d, used, what, a): found.at_matched_auc(list(used), line[d], a, heights=high) for d, used in asked}
judged = off["RelaxLoss", (inner["RelaxLoss"][-1],), "5 to 20 %", "RMIA"]
side = "fewer" if judged.high < 0 else "more" if judged.low > 0 else "an undecided number of"
side = "nearly as many" if max(-judged.low, judged.high) < 0.04 else side
report.tradeoff(
    [
        {"way": f"{name}, {how}", "FPR": audit.tpr_label(rate, non_members), "area": found.leak(way, "RMIA")["auc"]}
        | {"TPR": found.leak(way, "RMIA", rates)[f"tpr_at_{100 * rate:g}%"]}
        for rate in rates[:2] for way in ways if way != end for name, how, _ in [way]
    ],
    "area", "TPR", hue="way", facet="FPR", null=None, better="", xlabel="AUC of RMIA",
    title=f"At equal area RelaxLoss at its strongest exposes {side} members in PPTP",
)  # fmt: skip

# %%
report.table(
    [
        {"in PPTP": f"{d}, {', '.join(str(alpha) for *_, alpha in used)}"}
        | {f"{what} FPR, {a}": off[d, used, what, a] for what in heights for a in ("RMIA", "LiRA")} for d, used in asked
    ],
    caption="TPR at equal area, in PPTP minus from scratch, at each alpha and in the mean; 5 to 20 % is the mean of 5, 10 and 20 %",
)  # fmt: skip

# %%
inside = {way: [float(results[step]["accuracy_member"]) for step in each] for way, each in signals.items()}
losses = {way: np.mean([np.logaddexp(0, -results[s]["views"][results[s]["role"] == 1, 0]).mean() for s in each]) for way, each in signals.items()}
report.table(
    [
        {"way": " ".join(map(str, way)), "attack": a, "member accuracy": audit.mean_ci(inside[way]), "and loss, nats": float(losses[way])}
        | {"test accuracy": found.accuracy(way), "AUC": leak["auc"]} | {audit.tpr_label(rate, non_members): leak[f"tpr_at_{100 * rate:g}%"] for rate in rates}
        for way, a in attacks for leak in [found.leak(way, a, rates)]
    ],
    caption=f"Mean over {shadows} targets of {non_members} non-members each, who show no FPR below {audit.resolution(non_members):.2%}",
)  # fmt: skip

# %% [markdown]
# ## Verdicts
# %%
fell = {"rewinding threw accuracy back": audit.paired_difference(found.accuracies[end], [float(results[step]["accuracy_test"]) for step in thrown])}
words = "at its strongest in PPTP leaves fewer members right than ordinary training"
acts = {name: {f"{name} {words}": audit.paired_difference(inside[end], inside[inner[name][-1]])} | fell for name in defences}
report.judge(
    claims,
    area=area_of["RelaxLoss"],
    adv_area=area_of["Adv-Reg"],
    tail=judged,
    adv_tail=off["Adv-Reg", tuple(inner["Adv-Reg"]), "5 to 20 %", "RMIA"],
    checks={name: acts["Adv-Reg" if name.startswith("adv") else "RelaxLoss"] for name in ("area", "adv_area", "tail", "adv_tail")},
    regime={"member accuracy": audit.mean_ci(inside[end]), "test accuracy": found.accuracy(end)},
)

# %% [markdown]
# **Caveat.** A band is pointwise: that it clears another at one place does not say that the curves differ as a whole.
# LiRA's tails need not agree with RMIA's, above all at 1 % FPR (table), where few non-members are left to count. In
# which steps alpha acted is not stored; where members' loss ends is in the table.

# %%
report.provenance(results)
