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
# # Does harder data put membership into a network faster and further?
#
# **Dynamics.** The article says that "more complex datasets lead to a faster, more extensive" encoding, while on simple
# ones networks learn what generalises and leak little. A reading note has two numbers, from MNIST to CINIC-10: the
# centre of mass moves by 12.8 and by 135.0, 10.5 times as far; its speed "almost triples". Neither can be a distance
# in the unit square, so only ratios are set beside ours, as doublings: 3.4 and 1.6. Which data lies between, with what
# networks and pool, is not known here.
#
# **It would be wrong if** the centre moved as far on simple data. **It would be beside the point if** noise did it
# (control: the null, the same attack with membership dealt out anew), or size (equal pool, pixels, network and
# epochs). **It would be no more than overfitting if** data sets leaked alike at an equal generalisation gap, and no
# more than slow learning if they did at an equal fit of their members.
#
# **Our definitions**, as the paper's are lost. A sample's place: how often LiRA calls it a member of networks that
# did not train on it, and of those that did. Displacement: of the mean of all samples, from the first checkpoint to
# the last. Ways: lengths of paths, less the null's. Speed is way over epochs, which all data sets share. As the same
# share of non-members passes the threshold at all checkpoints, displacement and signed speed are one number here.
# Delay says how soon: the mean share of the course at which the advantage (TPR minus FPR) comes; .5 at an even rate.

# %% tags=["parameters"]
axis = ["digits", "fashion-mnist-small"]  # data sets, simple to complex (reading note: MNIST, Fashion-MNIST, CIFAR-10, CINIC-10)
axis_pixels = [0, 8]  # of each: side of the images, pixels, after area resize; 0: as they are
model = "cnn4"  # architecture (reading note: CNNs and WRN28-2)
width = 8  # channels of the first stage (not stated)
pool = 600  # samples of each data set; half are members of a network (not stated)
test = 200  # test samples
epochs = 40  # of training (article: more than 150)
batch = 50  # samples a step (not stated)
optimizer = "sgd"  # (article: SGD)
lr = 0.05  # learning rate (not stated)
decay = "cosine"  # of that rate, by the epoch (not stated)
networks = 32  # in complement pairs; each is attacked by the others less its pair (not stated)
checkpoints = [0, 2, 4, 8, 12, 16, 24, 32, 40]  # epochs at which all networks are attacked; 0: before training (not stated)
rate = 0.1  # share of all non-members that reach the threshold, at each checkpoint (not stated)
learnt = 0.6  # least test accuracy of networks that have learnt, on the hardest data (ours)
seed = 1  # of design, initialisation and order; rules were settled on draw 0
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace
from functools import partial
from itertools import pairwise

from lib import audit, lab, report
from lib.localization import trajectories
from lib.recipe import Data, LiRA, Model, RandomHalves, Schedule, Setup

first, last, end, step = axis[0], axis[-1], checkpoints[-1], "from each data set to the next, least"
equal = {"control": "equal pool, pixels, network, epochs; a null that stays", "paper": "reading note; article"}
at_leak = {"above": 0.0, "margin": 0.05, "control": f"{last} at all its checkpoints, at equal AUC", "paper": "ours"}
claims = report.claims(
    report.Claim("further", "The harder the data, the further the centre moves", f"doublings of its displacement {step}", above=0.0, margin=0.5, **equal),
    report.Claim("tenfold", f"It moves about ten times as far on {last} as on {first}", "doublings of displacement", above=2.4, margin=0.5, **equal),
    report.Claim("faster", "The harder the data, the faster samples move", f"way of a sample beyond the null's, more {step}", above=0.0, margin=0.1, **equal),
    report.Claim("sooner", f"What networks encode of {last} they encode earlier", f"delay, {last} minus {first}", below=0.0, margin=0.1, **equal),
    report.Claim("at_equal_fit", f"With members fitted alike {last} leaks more", f"member accuracy at equal leak, {first} minus {last}", **at_leak),
    report.Claim("at_equal_gap", f"At an equal generalisation gap {last} leaks more", f"that gap at equal leak, {first} minus {last}", **at_leak),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)  # fmt: skip
claims

# %% [markdown]
# ## Train, and attack at each checkpoint

# %%
given, attacks, signals = {"optimizer": optimizer, "decay": decay}, {}, {}
for d, side in zip(axis, axis_pixels, strict=True):
    design, schedule = RandomHalves(pool, test=test, seed=seed), Schedule(epochs, batch, lr=lr, **given)
    trained = Setup(Data(d, side or None), design, Model(model, width), schedule, networks, seed, precision).trained()
    attacks[d] = [trained.course(LiRA(), checkpoints, dealt) for dealt in (None, 0)]
    signals |= {(d, t): trained.at(t or "init").signals() for t in checkpoints}
results = lab.realize(attacks, signals)
found = audit.Comparison.of(results, signals, {((d, t), "LiRA"): a for d, (each, _) in attacks.items() for t, a in each.items()})
courses = {d: [trajectories.course({t: results[a] for t, a in each.items()}) for each in both] for d, both in attacks.items()}

# %% [markdown]
# ## How far, and when
# The mean advantage of all samples: what the centre of mass moves off the diagonal.

# %%
steps = [trajectories.contrast(*courses[a], *courses[b], rate) for a, b in pairwise(axis)]
whole = trajectories.contrast(*courses[first], *courses[last], rate)

level = partial(trajectories.gained, rule=rate)
rows = [{"data": d, "epoch": t, "value": value}
        for d, (one, _) in courses.items() for t, value in zip(checkpoints, trajectories.jackknifed(level, one), strict=True)]  # fmt: skip
more = audit.least(each["doublings of displacement"] for each in steps)
far = f"{2 ** whole['doublings of displacement'].value:.1f} times as far"
order = f"{last} moves the centre {far} as {first}" if more.low > 0 else "The centre does not surely move further on harder data"
when = "later" if whole["delay"].low > 0 else "earlier" if whole["delay"].high < 0 else "neither surely earlier nor later"
words = {"title": f"{order}; what is encoded comes {when} in the course", "ylabel": "mean advantage (TPR minus FPR)"}
report.curves(rows, "epoch", hue="data", null=0.0, level="no leak", **words)

# %%
members, tests = ({way: [float(results[one][f"accuracy_{who}"]) for one in each] for way, each in signals.items()} for who in ("member", "test"))
gaps = {way: [a - b for a, b in zip(members[way], tests[way], strict=True)] for way in signals}
table = [
    {"data": d, "test accuracy": found.accuracy((d, end)), "member accuracy": audit.over(members[d, end]), "AUC": found.leak((d, end), "LiRA")["auc"]}
    | dict(zip(trajectories.ENCODED, trajectories.jackknifed(partial(trajectories.encoded, rule=rate), *courses[d]), strict=True))
    | {"displacement of the null": trajectories.displacement(trajectories.plane(courses[d][1], rate))}
    for d in axis
]  # fmt: skip
report.table(table, caption=f"{networks} networks of each, at epoch {end}; ways less the null's, in sides of the plane; delay as a share")

# %% [markdown]
# ## At an equal fit of members
# Networks fit simple data earlier. Each line is a course: AUC against the share of members that networks get right.

# %%
line, measures = [(last, t) for t in checkpoints], {"fit": members, "gap": gaps}
beside = {name: found.beside_line((first, end), line, "LiRA", heights=of) for name, of in measures.items()}
less = {name: "less" if each.low > 0 else "more" if each.high < 0 else "not surely more or less" for name, each in beside.items()}


def drawn(of, xlabel, title):
    plane = [{"data": d, "x": audit.over(of[d, t]), "auc": found.leak((d, t), "LiRA")["auc"]} for d in axis for t in checkpoints]
    return report.tradeoff(plane, "x", hue="data", title=title, xlabel=xlabel, ylabel="AUC of LiRA", level="guessing", better="")


drawn(members, "member accuracy", f"With members fitted alike, {first} leaks {less['fit']} than {last}")

# %% [markdown]
# ## At an equal generalisation gap
# The same against member accuracy minus test accuracy.

# %%
drawn(gaps, "member minus test accuracy", f"At an equal generalisation gap, {first} leaks {less['gap']} than {last}")

# %% [markdown]
# ## Other definitions
# From first to last data set, by threshold (share of non-members above it, or the best balanced accuracy), by counted
# or fitted rates, and by checkpoints. At the best balanced accuracy the threshold of untrained networks lies anywhere,
# and the centre with it: only gain and delay mean something there.

# %%
kept = sorted({*range(0, len(checkpoints), 2), len(checkpoints) - 1})
fewer = [replace(each, epochs=each.epochs[kept], scores=each.scores[kept]) for d in (first, last) for each in courses[d]]
other = {f"{rate:g}, fitted": trajectories.contrast(*courses[first], *courses[last], rate, "fitted")}
other |= {f"{r}, counted": trajectories.contrast(*courses[first], *courses[last], r) for r in (rate / 2, 2 * rate, "balanced")}
other |= {f"{rate:g}, every other checkpoint": trajectories.contrast(*fewer, rate)}
shown = ("doublings of displacement", "doublings of gain", *trajectories.ENCODED[1:3], "doublings of way of a sample", "delay")
rows = [{"threshold and rates": name} | {what: each[what] for what in shown} for name, each in ({f"{rate:g}, counted": whole} | other).items()]
report.table(rows, caption=f"{last} minus {first}, or doublings from the one to the other. Reading note: 3.4 doublings of displacement, 1.6 of speed")

# %% [markdown]
# ## Verdicts

# %%
harder = audit.least(audit.paired_difference(tests[a, end], tests[b, end]) for a, b in pairwise(axis))
checks, moved = {"each data set is harder than the one before": harder}, "displacement of the null"
checks |= {f"the attack beats a guess on {d}": found.leak((d, end), "LiRA")["auc"].low > 0.5 for d in axis}
checks |= {f"the null moves less than half as far on {row['data']}": row[moved] < row["displacement"].value / 2 for row in table}
report.judge(
    claims,
    further=more,
    tenfold=whole["doublings of displacement"],
    faster=audit.least(each["way of a sample"] for each in steps),
    sooner=whole["delay"],
    at_equal_fit=beside["fit"],
    at_equal_gap=beside["gap"],
    notes={"at_equal_gap": f"at the end the gap is {audit.over(gaps[first, end])} on {first}, {audit.over(gaps[last, end])} on {last}"},
    checks={claim.name: checks for claim in claims},
    regime={"member accuracy": audit.least(audit.over(members[d, end]) for d in axis), "test accuracy": found.accuracy((last, end))},
)

# %% [markdown]
# **Caveat.** What is "complex" is told by test accuracy alone; data sets differ in much else (classes alike, channels
# and content not). The null's rates stay at the threshold's share, where counting is least noisy: as a sample's TPR
# grows, so does its noise, and some of the way of a sample beyond the null is that. At equal leak the harder data are
# met in mid-course, at a high learning rate. Rules were settled on draw 0 and are judged on this one (seed 1).

# %%
report.provenance(results)
