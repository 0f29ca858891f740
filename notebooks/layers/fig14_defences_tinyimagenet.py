# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
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
# **It would be wrong if** at equal leak none of them were more accurate in PPTP. SELENA's labels know nothing of
# membership, but the stages that PPTP holds learnt from every member: then SELENA in PPTP would leak *more* than from
# scratch. CS-KD first is beside the point if CS-KD alone, stopped early, does as well (control), or if it is CS-KD's
# accuracy and not PPTP that shows.
#
# At equal leak means: accuracy minus that of the epoch of ordinary training whose AUC of RMIA is the same, so that ways
# which leak differently are compared through one line. Every strength is a population of its own, its shadows included.
# Rules and strengths were settled on draw 0 and are judged on this one (seed 1).

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (python -m lib.data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (paper: 64)
stem = "conv3"  # first layer (paper: not stated; conv3-pool gives its 4x4 map in stage 4 at 64 pixels)
pool = 600  # samples from which each model draws half (paper: not stated)
dev = 300  # samples outside the pool, unused here as is the reference: the networks are those of Fig. 13
reference = 300  # samples outside the pool
test = 600  # samples of the test part that are looked at (paper: not stated)
risky_from = "stage4"  # first rewound stage (paper, Tab. 6: stage4 on TinyImageNet)
relax_alphas = [0.3, 0.6, 1.0, 1.4]  # RelaxLoss target losses, nats, weakest first (paper, Tab. 4: 1 to 3, for 200 classes)
sub_models = 3  # SELENA's K (paper, Tab. 4: 25)
leave_out = 1  # SELENA's L, sub-models that leave a member out (paper, Tab. 4: 3 to 10)
epochs = 12  # epochs of training from scratch (paper: not stated)
retrain_epochs = 5  # epochs of retraining (paper: "less than half")
stops = [1, 2, 3, 4, 5, 6, 8]  # epochs of the first trainings that are looked at too: early stopping (ours)
batch = 64  # samples a step (paper: not stated)
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0, at the start of each training (paper: not stated)
augment = 0  # padding of the random crop with flips, pixels; 0: none (paper: crop and flip; SELENA's distillation: none)
shadows = 10  # models in complement pairs; each is attacked by the others, less its pair
learnt = 0.6  # least test accuracy of ordinary networks that have learnt (ours)
seed = 1  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace

from lib import audit, lab, recipe, report

change, first = "in PPTP minus from scratch", "CS-KD minus cross-entropy first"
figure, level = {"paper": "Fig. 14", "margin": 0.03}, "test accuracy at equal leak"
line = {"control": "at equal AUC of RMIA, against the line of strengths from scratch"}
ordinary_line = {"control": "at equal AUC of RMIA, along the epochs of ordinary training"}
paired = {"control": "paired over targets; the same sub-models teach both", "margin": 0.04}
ours = {"paper": "our control", "margin": 0.03, "control": "at equal AUC of RMIA, along CS-KD's own epochs"}
claims = report.claims(
    report.Claim("relaxloss", "RelaxLoss is more accurate in PPTP", f"{level}, {change}", above=0.0, **figure, **line),
    report.Claim("selena", "SELENA is more accurate in PPTP", f"{level}, {change}", above=0.0, **figure | {"margin": 0.06}, **ordinary_line),
    report.Claim("selena_leak", "SELENA leaks no more in PPTP", f"RMIA's AUC, {change}", below=0.01, paper="Fig. 14", **paired),
    report.Claim(
        "cskd_first", "CS-KD first gains PPTP 2 points or more", f"{level}, {first}", above=0.02, **figure | {"margin": 0.02}, **ordinary_line
    ),
    report.Claim("cskd_stopped", "CS-KD in PPTP beats CS-KD stopped early", f"{level}, CS-KD in PPTP minus its epochs", above=0.0, **ours),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)
claims

# %% [markdown]
# ## Three ways to begin, two ways to go on
# SELENA distils without augmentation, as its paper says; its teachers train with it. They are the same from scratch and
# in PPTP.

# %%
augmented = recipe.Augment(augment) if augment else None
long = recipe.Schedule(epochs, batch, optimizer, lr, nesterov=True, augment=augmented)
short, bare = replace(long, epochs=retrain_epochs), replace(long, augment=None)
design = recipe.RandomHalves(pool, test=test, seed=seed, dev=dev, reference=reference)
setup = recipe.Setup(recipe.Data(data, pixels), design, recipe.Model(model, width, stem), long, shadows, seed, precision)
learning = {"ordinary": setup.trained(), "CS-KD": setup.trained(recipe.CSKD())}
taught = {"sub_models": sub_models, "leave_out": leave_out}
learning["SELENA"] = replace(setup, schedule=bare).selena(long, **taught)
rewound = {how: each.rewind(risky_from).hold(risky_from) for how, each in learning.items()}
looked = {"ordinary": (*stops, epochs), "CS-KD": (*stops[1::2], epochs) if len(stops) > 1 else (*stops, epochs)}
ways = {(how, "epoch", stop): learning[how].at(stop) for how in looked for stop in looked[how]}
ways["SELENA", "from scratch", leave_out] = learning["SELENA"]
ways |= {("RelaxLoss", "from scratch", alpha): setup.trained(recipe.RelaxLoss(alpha)) for alpha in relax_alphas}
for alpha in relax_alphas[:-1]:  # the strongest only ends the line from scratch
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
# Lines of ordinary and CS-KD join their epochs, the others strengths of RelaxLoss. Mean with 95 % intervals. Down and
# right is better.

# %%
found = audit.Comparison.of(results, signals, attacks)
epochs_of = {how: [(how, "epoch", stop) for stop in each] for how, each in looked.items()}
strengths = {how: [(how, "then RelaxLoss", alpha) for alpha in relax_alphas[:-1]] for how in epochs_of}
from_scratch = [("ordinary", "epoch", epochs), *(("RelaxLoss", "from scratch", alpha) for alpha in relax_alphas)]
whole, kept = ("SELENA", "from scratch", leave_out), ("SELENA", "in PPTP", leave_out)
told, risk = found.beside_line(kept, epochs_of["ordinary"], "RMIA", whole), found.more_leaky(kept, whole, "RMIA")
panels = {"SELENA": {"ordinary, epochs": epochs_of["ordinary"][1:], "SELENA from scratch": [whole], "SELENA in PPTP": [kept]}}
panels["CS-KD and RelaxLoss"] = {"ordinary, epochs": epochs_of["ordinary"][1:], "CS-KD, epochs": epochs_of["CS-KD"]}
panels["CS-KD and RelaxLoss"] |= {"RelaxLoss from scratch": from_scratch[1:], "CE, then RelaxLoss in PPTP": strengths["ordinary"]}
panels["CS-KD and RelaxLoss"] |= {"CS-KD, then RelaxLoss in PPTP": strengths["CS-KD"]}
early = found.beside_line(strengths["CS-KD"], epochs_of["ordinary"], "RMIA", strengths["ordinary"])
side = "gains" if early.low > 0 else "loses" if early.high < 0 else "does not surely move"
word = "leaks more than" if risk.low > 0 else "leaks less than" if risk.high < 0 else "leaks neither surely more nor less than"
report.tradeoff(
    [row for name, lines in panels.items() for row in found.plane(lines, "RMIA", panel=name)], xlabel="test accuracy", ylabel="AUC of RMIA",
    null=None, title=f"SELENA in PPTP {word} SELENA from scratch; CS-KD first {side} accuracy",
)  # fmt: skip

# %%
inside = {way: [float(results[step]["accuracy_member"]) for step in each] for way, each in signals.items()}
report.table(
    [
        {"way": " ".join(map(str, way)), "member accuracy": audit.over(inside[way]), "test accuracy": found.accuracy(way)}
        | {f"{name}, AUC": found.leak(way, name)["auc"] for name in attackers}
        | {"accuracy beside ordinary epochs": found.beside_line(way, epochs_of["ordinary"], "RMIA") if way[0] != "ordinary" or way[1] != "epoch" else "–"}
        for way in ways if way[1] != "epoch" or way[2] in (*stops[1::2], epochs)
    ],
    caption=f"Mean over {shadows} targets; numbers are epochs, strengths or SELENA's leave-out",
)  # fmt: skip

# %% [markdown]
# ## Verdicts

# %%
end = ("ordinary", "epoch", epochs)
acted = {way: audit.paired_difference(inside[end], inside[way]) for way in ways if way != end}
fell = {"rewinding threw accuracy back": audit.paired_difference(found.accuracies[end], [float(results[step]["accuracy_test"]) for step in thrown])}
words = "leaves fewer members right than ordinary training"
relaxed = {how: {f"RelaxLoss after {how} {words}": audit.least(acted[way] for way in strengths[how][1:])} | fell for how in strengths}
relaxed["ordinary"] |= {f"RelaxLoss from scratch {words}": audit.least(acted[way] for way in from_scratch[2:-1])}
labels = {f"SELENA {words}": acted[whole], f"SELENA in PPTP {words}": acted[kept]} | fell
better = {"CS-KD changes what networks answer": abs(found.more_leaky(("CS-KD", "epoch", epochs), end, "LiRA").value) > 0.005}
report.judge(
    claims,
    relaxloss=found.beside_line(strengths["ordinary"], from_scratch, "RMIA"),
    selena=told,
    selena_leak=risk,
    cskd_first=early,
    cskd_stopped=found.beside_line(strengths["CS-KD"], epochs_of["CS-KD"], "RMIA"),
    checks={"relaxloss": relaxed["ordinary"], "selena": labels, "selena_leak": labels}
    | dict.fromkeys(("cskd_first", "cskd_stopped"), relaxed["CS-KD"] | better),
    regime={"member accuracy": audit.over(inside[end]), "test accuracy": found.accuracy(end)},
)

# %% [markdown]
# **Caveat.** Attackers ask SELENA's network alone; the adaptive attacker of its own paper also rebuilds what the
# sub-models say. One leave-out. The strongest RelaxLoss is drawn and not judged: the line from scratch may end before
# it. Adv-Reg is in Fig. 13 alone: it costs most and varies most.

# %%
report.provenance(results)
