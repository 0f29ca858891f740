# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Do SELENA and a better first training gain inside PPTP?
#
# **PPTP, Fig. 14** (section 5.2; ResNet18, TinyImageNet, cut at stage 4). Fig. 13's comparison with two more: SELENA,
# whose network learns each member's label from sub-models that never saw it, and CS-KD, a training that generalises
# better, as the first training of PPTP.
#
# **The paper says** that RelaxLoss gains more here than on CIFAR-100, that SELENA gains slightly, and that CS-KD first
# makes PPTP more accurate at equal privacy. The text gives no number.
#
# **It would be wrong if** RelaxLoss were no more accurate in PPTP at equal leak, or SELENA no more accurate at all.
# SELENA's labels know nothing of membership, but the stages that PPTP holds learnt from every member: SELENA in PPTP
# might leak *more* than from scratch. PPTP is beside the point if training less does as well (controls: the epochs of
# ordinary training and of CS-KD).
#
# At equal leak means: accuracy minus that of a line (strengths, or epochs of a training) where the AUC of RMIA is the
# same; the mean over strengths, each its own population, shadows included. SELENA is not compared so: near it the line
# of epochs is so steep that a little leak is much accuracy. Rules were settled on draw 0, a referee's objections in
# hand, and are judged on this one (seed 1).

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (paper: 64)
stem = "conv3"  # first layer (paper: not stated; conv3-pool gives its 4x4 map in stage 4 at 64 pixels)
pool = 600  # samples from which each model draws half (paper: not stated)
dev = 300  # samples outside the pool, unused here as is the reference: the networks are those of Fig. 13
reference = 300  # samples outside the pool
test = 600  # samples of the test part that are looked at (paper: not stated)
risky_from = "stage4"  # first rewound stage (paper, Tab. 6: stage4 on TinyImageNet)
relax_alphas = [0.3, 0.6, 1.0]  # RelaxLoss target losses, nats, weakest first (paper, Tab. 4: 1 to 3, for 200 classes)
sub_models = 3  # SELENA's K (paper, Tab. 4: 25)
leave_out = 1  # SELENA's L, sub-models that leave a member out: a label is one's answer (paper, Tab. 4: the mean of 3 to 10)
epochs = 12  # epochs of training from scratch (paper: not stated)
retrain_epochs = 5  # epochs of retraining (paper: "less than half")
stops = [1, 2, 3, 4, 5, 6, 8]  # epochs of the first trainings that are looked at too: early stopping (ours)
batch = 64  # samples a step (paper: not stated)
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0, at the start of each training (paper: not stated)
augment = 0  # padding of the random crop with flips, pixels; 0: none (paper: crop and flip; SELENA's distillation: none)
shadows = 10  # models in complement pairs; each is attacked by the others, less its pair
learnt = 0.6  # least test accuracy of ordinary networks that have learnt (ours)
seed = 101  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace

import numpy as np
from leak_atlas import audit, lab, recipe, report

level, change = "test accuracy at equal leak", "in PPTP minus from scratch"
line = {"paper": "Fig. 14", "margin": 0.03, "control": "at equal AUC of RMIA, against the line of strengths from scratch"}
paired = {"paper": "Fig. 14", "control": "paired over targets; the same sub-models teach both", "margin": 0.03}
ours = {"ours": "our control", "margin": 0.03, "control": "at equal AUC of RMIA, along the epochs of the training that comes first"}
first = {"paper": "Fig. 14; the border is ours", "control": "the same strengths of RelaxLoss after both, whose lines reach alike"}
claims = report.claims(
    report.Claim("relaxloss", "RelaxLoss is more accurate in PPTP", f"{level}, {change}", above=0.0, **line),
    report.Claim("stopping", "RelaxLoss in PPTP beats early stopping", f"{level}, minus ordinary epochs", above=0.0, **ours),
    report.Claim("selena", "SELENA is 2 points or more accurate in PPTP", f"test accuracy, {change}", above=0.02, **paired),
    report.Claim("selena_leak", "SELENA leaks no more in PPTP", f"RMIA's AUC, {change}", below=0.01, **paired),
    report.Claim("cskd_first", "CS-KD first changes little", "area of accuracy and RMIA's AUC, minus cross-entropy first", within=0.02, **first),
    report.Claim("cskd_stopped", "CS-KD, then PPTP, beats CS-KD stopped early", f"{level}, minus CS-KD's epochs", above=0.0, **ours),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)
claims

# %% [markdown]
# ## Three ways to begin, two ways to go on
# SELENA distils without augmentation, as its paper says; its teachers train with it. They are the same from scratch and
# in PPTP. RelaxLoss alternates: every second epoch flattens posteriors below alpha, the others ascend there.

# %%
augmented = recipe.Augment(augment) if augment else None
long = recipe.Schedule(epochs, batch, optimizer, lr, nesterov=True, augment=augmented)
short, bare = replace(long, epochs=retrain_epochs), replace(long, augment=None)
design = recipe.RandomHalves(pool, test=test, seed=seed, dev=dev, reference=reference)
setup = recipe.Setup(recipe.Data(data, pixels), design, recipe.Model(model, width, stem), long, shadows, seed, precision)
learning = {"ordinary": setup.trained(), "CS-KD": setup.trained(recipe.CSKD())}
taught = {"sub_models": sub_models, "leave_out": leave_out}
learning["SELENA"] = replace(setup, schedule=bare).selena(long, **taught)
rewound = {how: each.rewind(risky_from).freeze(risky_from) for how, each in learning.items()}
looked = {"ordinary": (*stops, epochs), "CS-KD": (*stops[1::2], epochs) if len(stops) > 1 else (*stops, epochs)}
ways = {(how, "epoch", stop): learning[how].at(stop) for how in looked for stop in looked[how]}
ways["SELENA", "from scratch", leave_out] = learning["SELENA"]
ways |= {("RelaxLoss", "from scratch", alpha): setup.trained(recipe.RelaxLoss(alpha)) for alpha in relax_alphas}
for alpha in relax_alphas:
    ways |= {(how, "then RelaxLoss", alpha): rewound[how].train(short, recipe.RelaxLoss(alpha)) for how in ("ordinary", "CS-KD")}
ways["SELENA", "in PPTP", leave_out] = rewound["ordinary"].distil(replace(bare, epochs=retrain_epochs), long, **taught)
attackers = {"correctness": recipe.Threshold("correctness", sign="shadows"), "confidence": recipe.Threshold("confidence", sign="shadows")}
attackers |= {"LiRA": recipe.LiRA(), "RMIA": recipe.RMIA()}
attacks = {(way, name): each.attack(attacker) for way, each in ways.items() for name, attacker in attackers.items()}
signals = {way: each.signals() for way, each in ways.items()}
thrown = rewound["ordinary"].signals()  # before any retraining
results = lab.realize(attacks, signals, thrown, recipe.self_audit(learning["ordinary"]))

# %% [markdown]
# ## Accuracy against leak
# Lines of ordinary and CS-KD join their epochs, the others strengths of RelaxLoss. Mean with 95 % intervals.

# %%
found = audit.Comparison.of(results, signals, attacks)
epochs_of = {how: [(how, "epoch", stop) for stop in each] for how, each in looked.items()}
strengths = {how: [(how, "then RelaxLoss", alpha) for alpha in relax_alphas] for how in epochs_of}
from_scratch = [("ordinary", "epoch", epochs), *(("RelaxLoss", "from scratch", alpha) for alpha in relax_alphas)]
whole, kept = ("SELENA", "from scratch", leave_out), ("SELENA", "in PPTP", leave_out)
risk = found.auc_difference(kept, whole, "RMIA")
panels = {"SELENA": {"ordinary, epochs": epochs_of["ordinary"][1:], "SELENA from scratch": [whole], "SELENA in PPTP": [kept]}}
panels["CS-KD and RelaxLoss"] = {"ordinary, epochs": epochs_of["ordinary"][1:], "CS-KD, epochs": epochs_of["CS-KD"]}
panels["CS-KD and RelaxLoss"] |= {"RelaxLoss from scratch": from_scratch[1:], "CE, then RelaxLoss in PPTP": strengths["ordinary"]}
panels["CS-KD and RelaxLoss"] |= {"CS-KD, then RelaxLoss in PPTP": strengths["CS-KD"]}
compared, judges = {"RelaxLoss in PPTP minus from scratch": (strengths["ordinary"], from_scratch, None)}, ("RMIA", "LiRA", "confidence")
compared |= {f"{' ' * 3}at {alpha}": ([("ordinary", "then RelaxLoss", alpha)], from_scratch, None) for alpha in relax_alphas}
compared["RelaxLoss in PPTP minus ordinary epochs"] = strengths["ordinary"], epochs_of["ordinary"], None
compared["CS-KD minus cross-entropy first"] = strengths["CS-KD"], epochs_of["ordinary"], strengths["ordinary"]
compared["CS-KD, then PPTP, minus CS-KD's epochs"] = strengths["CS-KD"], epochs_of["CS-KD"], None
off = {(told, a): found.at_matched_auc(ones, along, a, others) for told, (ones, along, others) in compared.items() for a in judges}
lost, stopped, _, own = (off[told, "RMIA"] for told in compared if not told.startswith(" "))
early = {a: found.better_curve(strengths["CS-KD"], strengths["ordinary"], a) for a in judges}
low, high = early["RMIA"].low, early["RMIA"].high
side = "changes little" if max(-low, high) < 0.02 else "gains" if low > 0 else "loses" if high < 0 else "is undecided"
word = "leaks more than" if risk.low > 0 else "leaks less than" if risk.high < 0 else "leaks neither surely more nor less than"
report.tradeoff(
    [row for name, lines in panels.items() for row in found.plane(lines, "RMIA", panel=name)], xlabel="test accuracy", ylabel="AUC of RMIA",
    null=None, title=f"SELENA in PPTP {word} SELENA from scratch; CS-KD first {side}",
)  # fmt: skip

# %%
report.table(
    [{"test accuracy at equal leak": told} | {f"equal AUC of {a}": off[told, a] for a in judges} for told in compared]
    + [{"test accuracy at equal leak": "CS-KD minus cross-entropy first, area dominated"} | {f"equal AUC of {a}": early[a] for a in judges}],
    caption="Mean over strengths, or at one. RMIA judges: on draw 0 it found more than LiRA wherever a defence acted, in narrower intervals",
)

# %%
inside = {way: [float(results[step]["accuracy_member"]) for step in each] for way, each in signals.items()}
losses = {way: [float(np.logaddexp(0, -results[s]["views"][results[s]["role"] == 1, 0]).mean()) for s in each] for way, each in signals.items()}
report.table(
    [
        {"way": " ".join(map(str, way)), "member accuracy": audit.mean_ci(inside[way]), "member loss, nats": audit.mean_ci(losses[way])}
        | {"test accuracy": found.accuracy(way)} | {f"{name}, AUC": found.leak(way, name)["auc"] for name in attackers}
        for way in ways if way[1] != "epoch" or way[2] in (*stops[1::2], epochs)
    ],
    caption=f"Mean over {shadows} targets; numbers are epochs, alphas (nats) or SELENA's leave-out. Of RelaxLoss's epochs {epochs // 2} of {epochs} flatten "
    f"from scratch, {retrain_epochs // 2} of {retrain_epochs} in PPTP",
)  # fmt: skip

# %% [markdown]
# ## Verdicts

# %%
end = ("ordinary", "epoch", epochs)
fell = {"rewinding threw accuracy back": audit.paired_difference(found.accuracies[end], [float(results[step]["accuracy_test"]) for step in thrown])}
words = "leaves fewer members right than ordinary training"
acts = {way: {f"{' '.join(map(str, way))} {words}": audit.paired_difference(inside[end], inside[way])} for way in ways if way != end}
relaxed, other = acts[strengths["ordinary"][-1]], {"CS-KD alone leaks more": found.auc_difference(epochs_of["CS-KD"][-1], end, "RMIA")}
report.judge(
    claims,
    relaxloss=lost,
    stopping=stopped,
    selena=found.more_accurate(kept, whole),
    selena_leak=risk,
    cskd_first=early["RMIA"],
    cskd_stopped=own,
    checks={"relaxloss": relaxed, "stopping": relaxed | fell, "selena": acts[kept] | fell, "selena_leak": acts[kept] | fell}
    | {"cskd_first": relaxed | other, "cskd_stopped": acts[strengths["CS-KD"][-1]] | fell},
    regime={"member accuracy": audit.mean_ci(inside[end]), "test accuracy": found.accuracy(end)},
)

# %% [markdown]
# **Caveat.** Why SELENA in PPTP leaks is not tested: that the held stages tell is a guess. Attackers ask SELENA's
# network alone; the adaptive attacker of its own paper also rebuilds what the sub-models say. One leave-out. The
# paper's premise is a first training that generalises better: where CS-KD alone gains little over cross-entropy
# (table), that it changes PPTP little says more of CS-KD than of PPTP. In which steps alpha acted is not stored; where
# members' loss ends is in the table.

# %%
report.provenance(results)
