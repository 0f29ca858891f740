# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Is it the risky stages that must be retrained?
#
# **PPTP, Fig. 12** (section 5.2.1; ResNet18, TinyImageNet). Once a network is trained its leak can be attacked where it
# shows: rewind some layers to their initialisation and retrain them with a privacy objective, here RelaxLoss, with the
# rest held still.
#
# **The paper says** that retraining the classifier alone, rewound or not, leaves the leak nearly where it was, while
# retraining the risky stages lowers it *and* keeps more accuracy than training from scratch with RelaxLoss. The text
# gives no number.
#
# **It would be wrong if** the classifier alone did as well, or training from scratch did. It would be beside the point
# if less training did (controls: earlier epochs of the ordinary training; trainings of fewer epochs), as much training
# from scratch (control: as many epochs as ordinary and retraining together), rewinding *everything* (control: earlier
# cuts), or retraining without any defence (control).
#
# Ways differ in accuracy and leak at once, so they are compared **at equal leak**: accuracy minus that of the epoch of
# ordinary training that leaks as much. RMIA judges: on draw 0 it found more than LiRA wherever a defence acted; LiRA
# stands beside it, with the same signs and wider intervals there. One strength serves all ways and their shadows. The
# same alpha acts less in few epochs than in many, and of an odd number one more is RelaxLoss's even kind: where
# the same alpha is compared the claim's control says so, and Fig. 13 compares at equal leak. Rules were settled on draw
# 0, a referee's objections in hand, and are judged on this one (seed 1).

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
risky_from = "stage4"  # first rewound stage (paper, Tab. 6: stage4 on TinyImageNet, stage3 on CIFAR-100)
alpha = 0.6  # RelaxLoss target loss, nats (paper: 1 to 3, for 100 and 200 classes)
epochs = 12  # epochs of ordinary training (paper: not stated)
retrain_epochs = 5  # epochs of retraining (paper: "less than half")
stops = [2, 3, 4, 5, 6, 8]  # epochs of ordinary training that are looked at too: early stopping (ours)
shorter = [5]  # epochs of whole trainings with cross-entropy, as few as the retraining's (ours)
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
from leak_atlas import audit, lab, report
from leak_atlas.data.designs import Role
from leak_atlas.recipe import RMIA, Augment, Data, LiRA, Model, RandomHalves, RelaxLoss, Schedule, Setup, Threshold, self_audit

level = {"control": "accuracy is compared at equal AUC of RMIA, along the epochs of ordinary training", "margin": 0.025}
same = {"control": "the same alpha, which acts less in few epochs; paired over targets", "margin": 0.035}
before = {"paper": "Fig. 12", "control": "the same network before, paired over targets"}
figure, own, at = {"paper": "Fig. 12"}, {"ours": "our control"}, "test accuracy at equal leak, risky stages"
claims = report.claims(
    report.Claim("rewound_head", "The rewound classifier leaks more", "RMIA's AUC, classifier minus risky stages", above=0.0, **figure, **same),
    report.Claim("tuned_stays", "Fine-tuning it leaves the leak where it was", "RMIA's AUC, classifier minus ordinary", within=0.02, **before),
    report.Claim("leak", "They leak no more than from scratch", "RMIA's AUC, risky stages minus scratch, longer", below=0.01, **figure, **same),
    report.Claim("accuracy", "They are more accurate than it", "test accuracy, risky stages minus scratch, longer", above=0.0, **figure, **same),
    report.Claim("stopping", "They beat early stopping", f"{at} minus ordinary epochs", above=0.0, **own, **level),
    report.Claim("late_cut", "Rewinding late beats rewinding all stages", f"{at} minus all stages", above=0.0, **own, **level),
    report.Claim("defence_acts", "RelaxLoss adds to the rewinding", "RMIA's AUC, cross-entropy minus RelaxLoss", above=0.02, **own, **same),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)
claims

# %% [markdown]
# ## Ways to a private model
# Every way is a chain, and every shadow walks the whole chain of its target, from its own initialisation: the attacker
# is adaptive.

# %%
augmented = Augment(augment) if augment else None
long = Schedule(epochs, batch, optimizer, lr, nesterov=True, augment=augmented)
short = replace(long, epochs=retrain_epochs)
private, design = RelaxLoss(alpha), RandomHalves(pool, test=test, seed=seed, dev=dev, reference=reference)
setup = Setup(Data(data, pixels), design, Model(model, width, stem), long, shadows, seed, precision)
ordinary = setup.trained()
rewound = {cut: ordinary.rewind(cut).freeze(cut) for cut in ("stage1", "stage3", "stage4", "head")}
cuts = {cut: each.train(short, private) for cut, each in rewound.items()}
risky, tuned, head, plain = "risky stages", "classifier, fine-tuned", "classifier, rewound", "risky stages, cross-entropy"
line = {f"epoch {stop}": ordinary.at(stop) for stop in stops} | {f"epoch {epochs}": ordinary}
fewer = {f"{n} epochs": setup.trained(schedule=replace(long, epochs=n)) for n in shorter}
ways = line | fewer | {"scratch": setup.trained(private), "scratch, longer": setup.trained(private, replace(long, epochs=epochs + retrain_epochs))}
ways |= {"whole network, fine-tuned": ordinary.train(short, private), tuned: ordinary.freeze("head").train(short, private), head: cuts["head"]}
ways |= {plain: rewound[risky_from].train(short), risky: cuts[risky_from]} | {f"from {cut}": each for cut, each in cuts.items()}
attackers = {"confidence": Threshold("confidence", sign="shadows"), "LiRA": LiRA(), "RMIA": RMIA()}
attacks = {(way, name): each.attack(attacker) for way, each in ways.items() for name, attacker in attackers.items()}
signals = {way: each.signals() for way, each in ways.items()}
thrown = {cut: rewound[cut].signals() for cut in dict.fromkeys(("stage1", risky_from, "head"))}  # before any retraining
results = lab.realize(attacks, signals, thrown, self_audit(ordinary))

# %% [markdown]
# ## Accuracy against leak
# Mean over the attacked models with 95 % intervals. Lines join what differs in epochs, and the two ways with the
# classifier alone. Down and right is better.

# %%
found, stopped = audit.Comparison.of(results, signals, attacks), [*line]
beside = {name: found.at_matched_auc(risky, stopped, name) for name in ("RMIA", "LiRA")}
side = "less accurate than" if beside["RMIA"].high < 0 else "more accurate than" if beside["RMIA"].low > 0 else "neither surely better nor worse than"
series = {"ordinary, its epochs": stopped[-6:], "cross-entropy, fewer epochs": [*fewer], "RelaxLoss from scratch": ["scratch", "scratch, longer"]}
series |= {"classifier, fine-tuned and rewound": [tuned, head]} | {way: [way] for way in ("whole network, fine-tuned", plain, risky)}
report.tradeoff(
    [row for name in ("RMIA", "LiRA") for row in found.plane(series, name)], xlabel="test accuracy", ylabel="AUC", null=None,
    title=f"At equal leak, retrained risky stages are {side} an epoch of ordinary training",
)  # fmt: skip

# %% [markdown]
# ## Where to cut
# All behind the cut is rewound and retrained with RelaxLoss, as long and with the same alpha; *head* is the classifier
# alone. Where it leaks more than the risky stages and is more accurate, that is another place on the trade-off.

# %%
offs = {cut: found.at_matched_auc(f"from {cut}", stopped, "RMIA") for cut in cuts}
late = found.at_matched_auc(risky, stopped, "RMIA", "from stage1")
word = "costs" if late.high < 0 else "saves" if late.low > 0 else "may cost or save"
report.profile(
    [{"part": cut, "value": off} for cut, off in offs.items()], null=0.0, level="as early stopping", ylabel="accuracy at equal leak",
    title=f"At equal leak, rewinding from {risky_from} on instead of all stages {word} accuracy",
)  # fmt: skip

# %%
read = {way: [results[step] for step in each] for way, each in signals.items()}
inside = {way: [float(one["accuracy_member"]) for one in each] for way, each in read.items()}
losses = {way: [float(np.logaddexp(0, -one["views"][one["role"] == Role.MEMBER, 0]).mean()) for one in each] for way, each in read.items()}
report.table(
    [
        {"way": way, "member accuracy": audit.mean_ci(inside[way]), "and loss, nats": float(np.mean(losses[way])), "test accuracy": found.accuracy(way)}
        | {f"{name}, AUC": found.leak(way, name)["auc"] for name in attackers}
        | {f"beside ordinary epochs, {name}": found.at_matched_auc(way, stopped, name) if way not in line else "–" for name in beside}
        for way in ways if way != f"from {risky_from}" and way != "from head"
    ],
    caption=f"Mean over {shadows} targets. Last columns: test accuracy at equal leak. Alpha is {alpha} nats; 'scratch, longer' has all epochs together",
)  # fmt: skip

# %% [markdown]
# ## Verdicts

# %%
fell = {
    cut: audit.paired_difference(found.accuracies[f"epoch {epochs}"], [float(results[s]["accuracy_test"]) for s in thrown[cut]]) for cut in thrown
}
relaxed = {way: audit.paired_difference(inside[f"epoch {epochs}"], inside[way]) for way in (risky, "scratch, longer", tuned)}
near = {way: [abs(loss - alpha) for loss in losses[way]] for way in (plain, risky)}
acts = {"RelaxLoss leaves fewer members right than ordinary training": relaxed[risky], "rewinding threw accuracy back": fell[risky_from]}
acts |= {"it ends nearer to alpha than cross-entropy": audit.paired_difference(near[plain], near[risky])}
checks = dict.fromkeys(("stopping", "defence_acts", "leak"), acts) | {"rewound_head": acts | {"rewinding the head threw it back": fell["head"]}}
checks |= {"tuned_stays": {"RelaxLoss leaves fewer members right": relaxed[tuned]}, "late_cut": acts | {"so did rewinding all": fell["stage1"]}}
checks |= {"accuracy": {"RelaxLoss acts": relaxed[risky], "it acts from scratch": relaxed["scratch, longer"]}}
report.judge(
    claims,
    rewound_head=found.auc_difference(head, risky, "RMIA"),
    tuned_stays=found.auc_difference(tuned, f"epoch {epochs}", "RMIA"),
    leak=found.auc_difference(risky, "scratch, longer", "RMIA"),
    accuracy=found.more_accurate(risky, "scratch, longer"),
    stopping=beside["RMIA"],
    late_cut=late,
    defence_acts=found.auc_difference(plain, risky, "RMIA"),
    checks=checks,
    regime={"member accuracy": audit.mean_ci(inside[f"epoch {epochs}"]), "test accuracy": found.accuracy(f"epoch {epochs}")},
)

# %% [markdown]
# **Caveat.** One strength; Fig. 13 has whole lines. Checkpoints are taken where the learning rate is still high: a whole
# training of fewer epochs is the stronger baseline, shown and not judged. In how many steps alpha acted is not stored;
# where the members' loss ends is (table). Why the risky stages may lose is not judged. On draw 0 of `quick`, beside Fig. 13's
# line of strengths from scratch, all stages rewound lost .011 and the risky ones .030: about a third may be the short
# retraining, and the rest the held stages. A retrained network has also spent the ordinary training's epochs.

# %%
report.provenance(results)
