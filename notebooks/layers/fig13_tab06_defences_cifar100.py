# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Do known defences gain when they retrain only the risky stages?
#
# **PPTP, Fig. 13 and Tab. 6** (section 5.2; ResNet18, CIFAR-100). Two defences, adversarial regularization and
# RelaxLoss, once from scratch and once inside PPTP: train with cross-entropy, rewind the stages from Tab. 6's on, hold
# the others and retrain with the defence.
#
# **The paper says** that inside PPTP both are more accurate at no larger leak, except under the attack that sees only
# whether an answer is right. The text gives no number.
#
# **It would be wrong if** at equal leak a network inside PPTP were no more accurate than one from scratch. It would be
# beside the point if training less did as much (control: the epochs of ordinary training), if rewinding without any
# defence did (control: retraining with cross-entropy), or if holding stages did nothing (control: all stages rewound).
#
# A single strength could show anything, so each is a population of its own, its shadows included, and their means are
# compared at equal leak: each strength's accuracy minus that of the epoch of ordinary training that leaks as much.
# RMIA and LiRA, which the paper leaves out, stand beside four of its attacks. On draw 0 RMIA found more than LiRA wherever
# a defence acted, so it judges; LiRA had the same signs for RelaxLoss, with wider intervals. RelaxLoss alternates by
# epoch: of an odd number, one more is its even kind. Rules and strengths were settled on draw 0, a referee's
# objections in hand, and are judged on this one (seed 1).

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: CIFAR-100
pixels = 16  # side of the images, pixels, after area resize (paper: 32)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (paper: 64)
stem = "conv3"  # first layer (paper: not stated)
pool = 600  # samples from which each model draws half (paper: not stated)
dev = 300  # samples outside the pool, unused here (paper: not stated)
reference = 300  # samples outside the pool that adversarial regularization calls non-members (paper: not stated)
test = 600  # samples of the test part that are looked at (paper: not stated)
risky_from = "stage3"  # first rewound stage (paper, Tab. 6: stage3 on CIFAR-100)
relax_alphas = [0.3, 0.6, 1.0]  # RelaxLoss target losses, nats, weakest first (paper, Tab. 4: 1 to 3, for 100 classes)
adv_alphas = [3.0, 5.0]  # weights of adversarial regularization, weakest first (paper, Tab. 4: 1 to 5)
adv_steps = 3  # attack steps for each classifier step (paper, Tab. 4: 3)
adv_width = 64  # units of the first layer of its inference net (published codes: 1024)
epochs = 12  # epochs of training from scratch (paper: not stated)
retrain_epochs = 5  # epochs of retraining (paper: "less than half")
stops = [2, 3, 4, 5, 6, 8]  # epochs of ordinary training that are looked at too: early stopping (ours)
batch = 64  # samples a step (paper: not stated)
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0, at the start of each training (paper: not stated)
augment = 0  # padding of the random crop with flips, pixels; 0: none (paper: crop and flip)
shadows = 10  # models in complement pairs; each is attacked by the others, less its pair
learnt = 0.6  # least test accuracy of ordinary networks that have learnt (ours)
seed = 1  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace

import numpy as np
from leak_atlas import audit, lab, recipe, report
from leak_atlas.data.designs import Role

change = "test accuracy at equal leak, in PPTP minus from scratch"
beside = {"paper": "Fig. 13", "control": "both at equal leak to one attack along the epochs of ordinary training, mean over strengths"}
alike = {"paper": "Fig. 13", "control": "the same alpha, which acts less in few epochs; paired over targets"}
stopped = {"ours": "our control", "control": "at equal AUC of RMIA, along the epochs of ordinary training"}
held = {"paper": "Tab. 6", "control": "the same strength and epochs with all stages rewound, at equal AUC of RMIA"}
claims = report.claims(
    report.Claim("relaxloss", "RelaxLoss is more accurate in PPTP", f"{change}, RMIA", above=0.0, margin=0.025, **beside),
    report.Claim("relax_confidence", "So it is under the confidence attack", f"{change}, confidence", above=0.0, margin=0.025, **beside),
    report.Claim("correctness", "Under correctness it gains less than three points", f"{change}, correctness", below=0.03, margin=0.03, **beside),
    report.Claim("adv_reg", "Adv-Reg leaks no more in PPTP", "RMIA's AUC, strongest alpha, minus from scratch", below=0.01, margin=0.04, **alike),
    report.Claim("stopping", "RelaxLoss in PPTP beats early stopping", "test accuracy minus ordinary epochs", above=0.0, margin=0.02, **stopped),
    report.Claim("adv_stopping", "Adv-Reg in PPTP beats it by a point", "test accuracy minus ordinary epochs", above=0.01, margin=0.02, **stopped),
    report.Claim("held_is_free", "Holding moves it by less than three points", "test accuracy, held minus all rewound", within=0.03, **held),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)
claims

# %% [markdown]
# ## Two defences, two ways
# The middle strength of RelaxLoss is retrained with all stages rewound, too, and the risky stages with cross-entropy.

# %%
augmented = recipe.Augment(augment) if augment else None
long = recipe.Schedule(epochs, batch, optimizer, lr, nesterov=True, augment=augmented)
short = replace(long, epochs=retrain_epochs)
design = recipe.RandomHalves(pool, test=test, seed=seed, dev=dev, reference=reference)
setup = recipe.Setup(recipe.Data(data, pixels), design, recipe.Model(model, width, stem), long, shadows, seed, precision)
ordinary = setup.trained()
rewound = {cut: ordinary.rewind(cut).freeze(cut) for cut in ("stage1", risky_from)}
defences = {
    "RelaxLoss": {alpha: recipe.RelaxLoss(alpha) for alpha in relax_alphas},
    "Adv-Reg": {alpha: recipe.AdversarialRegularization(alpha, adv_steps, width=adv_width) for alpha in adv_alphas},
}
ways = {("ordinary", stop): ordinary.at(stop) for stop in stops} | {("ordinary", epochs): ordinary}
for name, strengths in defences.items():
    ways |= {(name, "from scratch", alpha): setup.trained(goal) for alpha, goal in strengths.items()}
    ways |= {(name, "in PPTP", alpha): rewound[risky_from].train(short, goal) for alpha, goal in strengths.items()}
middle = relax_alphas[(len(relax_alphas) - 1) // 2]
ways["RelaxLoss", "all rewound", middle] = rewound["stage1"].train(short, defences["RelaxLoss"][middle])
ways["cross-entropy", "in PPTP"] = rewound[risky_from].train(short)
attackers = {name: recipe.Threshold(name.replace(" ", "_"), sign="shadows") for name in ("correctness", "confidence", "entropy", "modified entropy")}
attackers |= {"LiRA": recipe.LiRA(), "RMIA": recipe.RMIA()}
attacks = {(way, name): each.attack(attacker) for way, each in ways.items() for name, attacker in attackers.items()}
plain, end = ("cross-entropy", "in PPTP"), ("ordinary", epochs)
signals = {way: each.signals() for way, each in ways.items()}
thrown = {cut: each.signals() for cut, each in rewound.items()}  # before any retraining
results = lab.realize(attacks, signals, thrown, recipe.self_audit(ordinary))

# %% [markdown]
# ## Accuracy against leak
# Lines join strengths, from no defence on; *ordinary* joins epochs. Mean over the targets with 95 % intervals. Down and
# right is better.

# %%
found, line = audit.Comparison.of(results, signals, attacks), [("ordinary", stop) for stop in (*stops, epochs)]
curve = {(name, how): [end, *((name, how, alpha) for alpha in defences[name])] for name in defences for how in ("from scratch", "in PPTP")}
inner = {name: curve[name, "in PPTP"][1:] for name in defences}
off = {(d, a): found.at_matched_auc(inner[d], line, a, curve[d, "from scratch"][1:]) for d in defences for a in attackers}
word = {d: "loses accuracy" if e.high < 0 else "gains accuracy" if e.low > 0 else "is undecided" for d in defences for e in [off[d, "RMIA"]]}
drawn = {name: {"ordinary": line} | {how: curve[name, how] for how in ("from scratch", "in PPTP")} for name in defences}
plane = [row for name in defences for row in found.plane(drawn[name], "RMIA", panel=name)]
told = "In PPTP, at equal leak: " + ", ".join(map(" ".join, word.items()))
report.tradeoff(plane, xlabel="test accuracy", ylabel="AUC of RMIA", null=None, title=told)

# %% [markdown]
# ## Every attack
# Accuracy at equal leak to each attack, mean over strengths, in PPTP minus from scratch. *No defence* is the risky stages
# retrained with cross-entropy, minus Adv-Reg from scratch: where it gains as much, rewinding does. Drawn where both reach.

# %%
none = {("no defence", a): found.at_matched_auc(plain, line, a, curve["Adv-Reg", "from scratch"][1:]) for a in attackers}
sure = {key: each for key, each in (off | none).items() if each.resolved}
gains = {d: [sum(e.low > 0 for e in own), sum(e.high < 0 for e in own)] for d in defences for own in [[sure[k] for k in sure if k[0] == d]]}
told = "; ".join(f"{d} surely gains under {up} and loses under {down}" for d, (up, down) in gains.items())
points = [{"part": a, "defence": d, "value": sure.get((d, a), audit.Estimate(*3 * [np.nan]))} for d, a in off | none]
report.profile(points, hue="defence", null=0.0, level="no gain", ylabel="accuracy at equal leak", title=f"Of {len(attackers)} attacks: {told}")

# %%
read = {way: [results[step] for step in each] for way, each in signals.items()}
inside = {way: [float(one["accuracy_member"]) for one in each] for way, each in read.items()}
losses = {way: [float(np.logaddexp(0, -one["views"][one["role"] == Role.MEMBER, 0]).mean()) for one in each] for way, each in read.items()}
report.table(
    [{"way": ", ".join(map(str, way)), "member accuracy": audit.mean_ci(inside[way]), "and loss, nats": float(np.mean(losses[way]))}
     | {"test accuracy": found.accuracy(way)} | {name: found.leak(way, name)["auc"] for name in attackers} for way in ways],
    caption=f"AUC of each attack, mean over {shadows} targets; numbers are epochs or strengths (RelaxLoss: nats)",
)  # fmt: skip

# %%
to = {(d, "from scratch"): curve[d, "from scratch"] for d in defences} | {(d, "ordinary epochs"): line for d in defences}
pairs = {f"minus {how}, {a}": (how, a) for how in ("from scratch", "ordinary epochs") for a in ("RMIA", "LiRA")}
rows = [
    {"in PPTP": f"{d}, {way[-1]}"} | {n: found.at_matched_auc(way, to[d, h], a) for n, (h, a) in pairs.items()} for d in inner for way in inner[d]
]
report.table(rows, caption="Test accuracy at equal leak, strength by strength, beside two lines: the claims judge means")

# %% [markdown]
# ## Verdicts

# %%
fell = audit.paired_difference(found.accuracies[end], [float(results[step]["accuracy_test"]) for step in thrown[risky_from]])
less = {d: {f"{d} in PPTP leaks less than as much cross-entropy": found.auc_difference(plain, inner[d][-1], "RMIA")} for d in defences}
acts = {d: less[d] | {"rewinding threw accuracy back": fell} for d in defences}
acts["Adv-Reg"] |= {"it has learnt in PPTP": min(found.accuracy(way).value for way in inner["Adv-Reg"]) >= learnt}
fewer = {d: audit.paired_difference(inside[end], inside[curve[d, "from scratch"][-1]]) for d in defences}
both = {d: {f"{d} from scratch leaves fewer members right": fewer[d]} for d in defences}
both["Adv-Reg"] |= {"it has learnt from scratch": found.accuracy(curve["Adv-Reg", "from scratch"][-1]).value >= learnt}
pair = [(name, how, middle) for name, how in (("RelaxLoss", "in PPTP"), ("RelaxLoss", "all rewound"))]
report.judge(
    claims,
    relaxloss=off["RelaxLoss", "RMIA"], relax_confidence=off["RelaxLoss", "confidence"],
    correctness=off["RelaxLoss", "correctness"], adv_reg=found.auc_difference(inner["Adv-Reg"][-1], curve["Adv-Reg", "from scratch"][-1], "RMIA"),
    stopping=found.at_matched_auc(inner["RelaxLoss"], line, "RMIA"), adv_stopping=found.at_matched_auc(inner["Adv-Reg"], line, "RMIA"),
    held_is_free=found.at_matched_auc(pair[0], line, "RMIA", pair[1]),
    checks=dict.fromkeys(("relaxloss", "relax_confidence", "correctness"), both["RelaxLoss"] | less["RelaxLoss"]) | {"adv_reg": both["Adv-Reg"]}
    | {"stopping": acts["RelaxLoss"], "held_is_free": {"rewinding threw accuracy back": fell}} | {"adv_stopping": acts["Adv-Reg"]},
    regime={"member accuracy": audit.mean_ci(inside[end]), "test accuracy": found.accuracy(end)},
)  # fmt: skip

# %% [markdown]
# **Caveat.** The mean over strengths hides a trend (last table). Beyond its end a line from scratch is level, a guess. In
# how many steps alpha acted is not stored; where the members' loss ends is (table). Adv-Reg's strengths are of the
# paper's range; on draw 0 of `quick` 10 did not learn from scratch and 1 changed nothing. The paper's inference network
# is left out. A network in PPTP has also spent the ordinary training's epochs: see Fig. 12.

# %%
report.provenance(results)
