# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Is PPTP cheaper than training from scratch?
#
# **PPTP, Fig. 16** (section 5.2.3). What is held needs no gradient: no backward pass, no feature map kept for one. The
# paper compares GPU memory and time of a defence with and without PPTP (ResNet18, CIFAR-100, a V100). **It says** that
# both fall, because PPTP "freezes a large portion of the weights" and needs less than half of the epochs. The text
# gives no number.
#
# **It would be wrong if** an epoch of retraining took as long as one from scratch, or as much memory; or if a network
# needed as many epochs to become accurate. **Beside the point if** fewer epochs from scratch did as well (control: the
# defence from scratch for as few).
#
# **What is arithmetic, and no claim:** that what is held needs fewer operations and bytes, and that a retraining has
# fewer epochs. And the network that PPTP starts from has to be trained first: where that takes as many epochs as the defence
# from scratch, PPTP as a whole is dearer, whatever a retraining costs. The saving is real for who has that network
# already, or defends it several times. All of it stands in the table; claims are about what is *measured*: time and
# peak memory of trainings that take turns in one run, and the epochs until a network is accurate. How private it is
# then, fig12 and fig13 ask: equal alpha is not equal leak. Rules were settled on draw 0, a referee's objections in hand,
# and are judged on this one (seed 1).

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: CIFAR-100
pixels = 16  # side of the images, pixels, after area resize (paper: 32)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (paper: 64)
stem = "conv3"  # first layer (paper: not stated)
pool = 600  # samples, half of which are trained on (paper: not stated)
dev = 300  # samples outside the pool, unused here as is the reference: the networks are those of Fig. 13
reference = 300  # samples outside the pool
test = 600  # samples of the test part that are looked at (paper: not stated)
cuts = ["stage2", "stage3", "stage4"]  # first rewound stage, all before it held (paper, Tab. 6: stage3 on CIFAR-100, stage4 on TinyImageNet)
alpha = 0.6  # RelaxLoss target loss, nats (paper: 1 to 3, for 100 and 200 classes)
epochs = 12  # epochs of ordinary training, and of the defence from scratch (paper: not stated)
retrain_epochs = 5  # epochs of retraining (paper: "less than half")
batch = 64  # samples a step (paper: not stated)
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0 (paper: not stated)
augment = 0  # padding of the random crop with flips, pixels, of the trainings that are asked for their accuracy; 0: none
pad = 2  # the same, of those whose cost is measured (paper: crop and flip)
networks = 10  # whose accuracy is followed
level = 0.95  # of the accuracy that the defence from scratch ends with (ours)
rounds = 5  # in which each training is measured once
measured = 4  # epochs that are timed in a round, the first of which warms up
learnt = 0.6  # least test accuracy of a network that has learnt (ours)
seed = 101  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace

import numpy as np
from leak_atlas import audit, lab, report
from leak_atlas.recipe import Anatomy, Augment, Cost, Data, Model, RandomHalves, RelaxLoss, Schedule, Setup

ratio = {"paper": "Fig. 16", "margin": 0.1, "control": "equal batch, objective, augmentation; same run"}
of_accuracy = f"test accuracy, PPTP from {cuts[-1]}, "
claims = report.claims(
    report.Claim("faster", "An epoch of PPTP takes less time", "seconds of an epoch, PPTP over scratch, largest over cuts", below=1.0, **ratio),
    report.Claim("smaller", "PPTP needs less memory", "peak of memory, PPTP over scratch, largest over cuts", below=1.0, **ratio),
    report.Claim("sooner", "PPTP is accurate for good in less than half of the epochs", f"epochs to {level:.0%} of scratch's final accuracy, "
                 "PPTP minus half of scratch's", below=0.0, paper="section 5.2.3", margin=1.5, control="the same network"),
    report.Claim("as_accurate", "In the end it is more accurate than the defence from scratch", f"{of_accuracy}minus scratch", above=0.0,
                 paper="Fig. 12", margin=0.025, control="paired over networks"),
    report.Claim("few_epochs_do", "As few epochs from scratch do as well", f"{of_accuracy}minus scratch for as few", within=0.03, ours=True, control="same seeds"),
    report.Claim("fits_more", "while PPTP fits its members more", f"member accuracy, PPTP from {cuts[-1]}, minus scratch for as few", above=0.0,
                 ours=True, margin=0.03, control="same seeds, same alpha"),
    regime={"member accuracy, ordinary": 0.95, "test accuracy, ordinary": learnt},
)  # fmt: skip
claims

# %%
long, short = (Schedule(n, batch, optimizer, lr, nesterov=True, augment=Augment(augment) if augment else None) for n in (epochs, retrain_epochs))
design, net, private = RandomHalves(pool, test=test, seed=seed, dev=dev, reference=reference), Model(model, width, stem), RelaxLoss(alpha)
setup, few = Setup(Data(data, pixels), design, net, long, networks, seed, precision), f"scratch, {retrain_epochs} epochs"
ordinary = setup.trained()
ways = {"ordinary": ordinary, "scratch": setup.trained(private), few: setup.trained(private, short)}
costly = {"ordinary": ordinary, "scratch": ways["scratch"]} | {cut: ordinary.rewind(cut).freeze(cut).train(short, private) for cut in cuts}
ways[pptp := f"PPTP from {cuts[-1]}"] = costly[cuts[-1]]
course = {way: [each.at(1 + epoch).signals() for epoch in range(each[0].training.schedule.epochs)] for way, each in ways.items() if way != "ordinary"}
course["ordinary"], firsts = [ordinary.signals()], [each[0].training for each in costly.values()]
cost = Cost(tuple(replace(one, schedule=replace(one.schedule, augment=Augment(pad) if pad else None)) for one in firsts), rounds, measured)
published = Anatomy(Data("cifar100"), Model("resnet18"))  # Fig. 16's net, counted without data
results = lab.realize(course, cost, published)

# %% [markdown]
# ## Time and memory, measured in one run, over those of the defence from scratch in the same round

# %%
found = results[cost]
place = {way: i for i, way in enumerate(costly)}
panels = {"seconds": "time of an epoch", "peak_bytes": "peak of memory"}
seen = {(what, cut): audit.mean_ci(found[what][:, place[cut]] / found[what][:, place["scratch"]]) for what in panels for cut in cuts}
most = {what: max(seen[what, cut].value for cut in cuts) for what in panels}
rows = [{"cut": cut, "value": value, "panel": panels[what]} for (what, cut), value in seen.items()]
title = f"An epoch takes at most {most['seconds']:.2f} of the time, a training at most {most['peak_bytes']:.2f} of the memory"
report.profile(rows, "cut", facet="panel", null=1.0, level="as from scratch", title=title, ylabel="PPTP over scratch")

# %% [markdown]
# ## How many epochs does it take?

# %%
accuracy = {way: np.array([[float(results[one]["accuracy_test"]) for one in each] for each in epoch]) for way, epoch in course.items()}
member = {way: [float(results[one]["accuracy_member"]) for one in epoch[-1]] for way, epoch in course.items()}
goal = level * accuracy["scratch"][-1]


def needed(way):
    """Epochs after which a network is at the level and stays there, `(networks,)`; one more than it has if never."""
    below = accuracy[way] < goal
    return np.where(below.any(axis=0), 1 + len(below) - below[::-1].argmax(axis=0), 1)


shown = [way for way in ways if way != "ordinary"]
until = {way: audit.mean_ci(needed(way)) for way in shown}
never = {way: int(np.sum(needed(way) > len(accuracy[way]))) for way in shown}
rows = [{"epoch": 1 + epoch, "value": audit.mean_ci(row), "training": way} for way in shown for epoch, row in enumerate(accuracy[way])]
title = f"Accurate for good after {until[pptp].value:.1f} epochs by PPTP, {until['scratch'].value:.1f} from scratch, {until[few].value:.1f} in a short run"
report.curves(rows, "epoch", hue="training", title=title, ylabel="test accuracy")

# %%
report.table(
    [{"training": way, "epochs": len(accuracy[way]) if way in shown else epochs, "accurate after": until.get(way), "never": never.get(way)}
     | {"test accuracy": audit.mean_ci(accuracy[way][-1]), "member accuracy": audit.mean_ci(member[way])} for way in ways],
    caption=f"{networks} networks. Accurate: for good at {level:.0%} of what the same network has from scratch in the end; never: so many, as one epoch more",
)  # fmt: skip

# %% [markdown]
# ## The whole bill
# Operations and bytes are counted: arithmetic. *Whole* is the measured time of all epochs over that of the defence from
# scratch, without and with the ordinary training before it.

# %%
seconds = {way: found["seconds"][:, i] for way, i in place.items()}


def bill(way, before=0):
    """Seconds of all epochs of a way, and of so many of ordinary training, over those of the defence from scratch."""
    whole = costly[way][0].training.schedule.epochs * seconds[way] + before * seconds["ordinary"]
    return audit.mean_ci(whole / (epochs * seconds["scratch"]))


stage = [part.split(".")[0] for part in results[published].parts]
held = {kind: results[published][kind][: stage.index("stage4")].sum() / results[published][kind].sum() for kind in ("parameters", "activations")}
report.table(
    [
        {"training": f"PPTP from {way}" if way in cuts else way, "kept, MB": found["saved_bytes"][i] / 1e6, "GFLOPs, epoch": found["flops"][i] / 1e9}
        | {name: audit.mean_ci(found[key][:, i] / unit) for name, key, unit in (("peak, MB", "peak_bytes", 1e6), ("s, epoch", "seconds", 1))}
        | ({"whole": bill(way), "with ordinary": bill(way, epochs)} if way in cuts else {})
        for way, i in place.items()
    ],
    caption=f"{rounds} rounds of {measured} epochs on this machine ({results[cost].meta['device']}), augmented. Kept for a backward pass: counted. "
    f"Of the paper's ResNet18 {held['parameters']:.0%} of the parameters, {held['activations']:.0%} of the activations lie before stage 4",
)

# %% [markdown]
# ## Verdicts

# %%
ends = {way: each[-1] for way, each in accuracy.items()}
acts = {f"{way} lowers member accuracy": audit.paired_difference(member["ordinary"], member[way]) for way in ("scratch", pptp)}
report.judge(
    claims,
    faster=audit.largest(seen["seconds", cut] for cut in cuts),
    smaller=audit.largest(seen["peak_bytes", cut] for cut in cuts),
    sooner=audit.paired_difference(needed(pptp), needed("scratch") / 2),
    as_accurate=audit.paired_difference(ends[pptp], ends["scratch"]),
    few_epochs_do=audit.paired_difference(ends[pptp], ends[few]),
    fits_more=audit.paired_difference(member[pptp], member[few]),
    checks=dict.fromkeys(("sooner", "as_accurate", "few_epochs_do", "fits_more"), acts),
    regime={"member accuracy, ordinary": audit.mean_ci(member["ordinary"]), "test accuracy, ordinary": audit.mean_ci(ends["ordinary"])},
)

# %% [markdown]
# **Caveat.** What is held still runs forward, as augmented images are new in every epoch; thin networks spend much time
# outside convolutions. A CPU's peak is good to a few MB. Each schedule ends at a rate of 0, so how soon a training is
# accurate depends on its length. RelaxLoss takes turns by epoch: an even number of epochs ends on the other turn than an odd one.

# %%
report.provenance(results)
