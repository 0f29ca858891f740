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
# # Do deeper networks encode membership faster and further?
#
# **Dynamics.** The article says that deeper and more complex architectures make samples vulnerable faster, and end with
# more severe risks and a "highly heterogeneous risk landscape". A reading note has the centre of mass move more than 3
# times as far (1.6 doublings) in WRN28-2 as in a shallow CNN. Which CNNs and schedule is not known here.
#
# **It would be wrong if** a wide residual network (WRN) moved the centre no further than a shallow CNN; not depth if
# CNNs that differ in depth alone (control) did not differ; no more than overfitting if networks leaked alike at an
# equal generalisation gap; a better fit, if with members fitted alike. Spreads might go with the level of the leak.
#
# **Our definitions** are those of `complexity_and_speed`. Advantage of a sample: TPR minus FPR, over networks. Spread:
# the samples' standard deviation of it, without what counting adds and what the null (membership dealt out anew) has.

# %% tags=["parameters"]
models = ["cnn2", "cnn4", "cnn6", "wrn16"]  # plain CNNs from shallow to deep, then a WRN (reading note: CNNs and WRN28-2)
widths = [8, 8, 8, 8]  # of each: channels of the first stage (WRN28-2: 32)
dropout = 0.0  # of the WRN (authors' group's code: .3)
compared = 20  # networks of each, in complement pairs; each is attacked by the others less its pair (not stated)
data = "fashion-mnist-small"  # data set (python -m lib.data; reading note: CIFAR-10)
pixels = 8  # side of the images, pixels, after area resize; 0: as they are
pool = 600  # samples; half are members of a network (not stated)
test = 200  # test samples
epochs = 40  # of training (article: more than 150)
batch = 50  # samples a step (not stated)
optimizer = "sgd"  # (article: SGD)
lr = 0.05  # learning rate (not stated)
decay = "cosine"  # of that rate, by the epoch (not stated)
networks = 32  # of the folder's own CNN; the first of them are compared
checkpoints = [0, 2, 4, 8, 12, 16, 24, 32, 40]  # epochs at which all networks are attacked; 0: before training (not stated)
rate = 0.1  # share of all non-members that reach the threshold, at each checkpoint (not stated)
learnt = 0.6  # least test accuracy of networks that have learnt (ours)
seed = 1  # of design, initialisation and order; rules were settled on draw 0
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace
from functools import partial

import numpy as np

from lib import audit, lab, report
from lib.localization import trajectories
from lib.recipe import Anatomy, Data, LiRA, Model, Population, RandomHalves, Schedule, Setup

shallow, *between, wide = models
deep, end, minus = between[-1], checkpoints[-1], f"{wide} minus {shallow}"
epochwise = {"control": "as many epochs, samples and networks; the null"}
note, article = {"paper": "reading note"} | epochwise, {"paper": "article", "above": 0.0} | epochwise
at_leak = {"paper": "ours", "control": f"{wide} at all its checkpoints, at equal AUC"}
claims = report.claims(
    report.Claim("thrice", f"The centre moves more than 3 times as far in {wide} as in {shallow}", "doublings of displacement", above=1.58, margin=0.5, **note),
    report.Claim("riskier", "Its samples end more vulnerable", f"mean advantage gained, {minus}", margin=0.1, **article),
    report.Claim("faster", "They move faster, beyond noise", f"way of a sample beyond the null's, {minus}", margin=0.15, **article),
    report.Claim("uneven", "They end more unlike each other", f"spread of advantages, {minus}", margin=0.05, **article | {"above": 0.05}),
    report.Claim("uneven_alike", "So they are at the same level of risk", f"spread at {shallow}'s last mean advantage, {minus}",
                 above=0.05, margin=0.05, paper="ours", control=f"{wide} at all its checkpoints, at equal mean advantage"),
    report.Claim("at_equal_fit", f"With members fitted alike {wide} leaks more than {' and '.join(between)}, which fit",
                 f"member accuracy at equal leak, each minus {wide}, least", above=0.0, margin=0.05, **at_leak),
    report.Claim("as_shallow_at_gap", f"At an equal generalisation gap {wide} leaks as {shallow} does",
                 f"that gap at equal leak, {shallow} minus {wide}", within=0.05, **at_leak),
    report.Claim("beyond_gap", f"But more than {deep} does", f"the same, {deep} minus {wide}", above=0.0, margin=0.05, **at_leak),
    report.Claim("depth_alone", f"Depth alone, from {shallow} to {deep}, changes little",
                 f"displacement, {deep} minus {shallow}", within=0.1, paper="ours", **epochwise),
    regime={"member accuracy, all but the shallow": 0.95, "test accuracy": learnt},
)  # fmt: skip
claims

# %%
given, trained, sizes = {"optimizer": optimizer, "decay": decay}, {}, {}
for name, width in zip(models, widths, strict=True):
    what, net = Data(data, pixels or None), Model(name, width, dropout=dropout if name == wide else 0.0)
    design, schedule = RandomHalves(pool, test=test, seed=seed), Schedule(epochs, batch, lr=lr, **given)
    whole = Setup(what, design, net, schedule, networks, seed, precision).trained()
    trained[name], sizes[name] = Population(whole.states[:compared]), Anatomy(what, net)
attacks = {name: [each.course(LiRA(), checkpoints, dealt) for dealt in (None, 0)] for name, each in trained.items()}
signals = {(name, t): each.at(t or "init").signals() for name, each in trained.items() for t in checkpoints}
results = lab.realize(attacks, signals, sizes)
found = audit.Comparison.of(results, signals, {((m, t), "LiRA"): a for m, (each, _) in attacks.items() for t, a in each.items()})
courses = {m: [trajectories.course({t: results[a] for t, a in each.items()}) for each in both] for m, both in attacks.items()}

# %% [markdown]
# ## How far, and when
# The mean advantage of all samples: what the centre of mass moves off the diagonal.

# %%
more = {m: trajectories.contrast(*courses[shallow], *courses[m], rate) for m in (deep, wide)}
level = partial(trajectories.gained, rule=rate)
rows = [{"network": m, "epoch": t, "value": value}
        for m, (one, _) in courses.items() for t, value in zip(checkpoints, trajectories.jackknifed(level, one), strict=True)]  # fmt: skip
times = {m: f"{2 ** each['doublings of displacement'].value:.1f}" for m, each in more.items()}
words = {"title": f"{wide} moves the centre {times[wide]} times as far as {shallow}, {deep} {times[deep]} times"}
report.curves(rows, "epoch", hue="network", null=0.0, level="no leak", ylabel="mean advantage (TPR minus FPR)", **words)

# %%
members, tests = ({way: [float(results[one][f"accuracy_{who}"]) for one in each] for way, each in signals.items()} for who in ("member", "test"))
gaps = {way: [a - b for a, b in zip(members[way], tests[way], strict=True)] for way in signals}
spread = {m: trajectories.jackknifed(partial(trajectories.spread, rule=rate), *each) for m, each in courses.items()}
table = [
    {"network": m, "convolutions": int(m[3:]) - 3 * (m == wide), "parameters": int(results[sizes[m]]["parameters"].sum())}
    | {"test accuracy": found.accuracy((m, end)), "member accuracy": audit.over(members[m, end]), "AUC": found.leak((m, end), "LiRA")["auc"]}
    | dict(zip(trajectories.ENCODED, trajectories.jackknifed(partial(trajectories.encoded, rule=rate), *courses[m]), strict=True))
    | {"spread": spread[m][-1], "displacement of the null": trajectories.displacement(trajectories.plane(courses[m][1], rate))}
    for m in models
]  # fmt: skip
report.table(table, caption=f"{compared} networks of each, at epoch {end}; ways less the null's, in sides of the plane; delay as a share")

# %% [markdown]
# ## How unlike samples are, and at what level of risk
# Each line is a course, from the lower left.

# %%
apart, alike = trajectories.jackknifed(  # at the end, and where the other has the mean advantage with which the one ends
    lambda one, null, other, noise: np.interp([np.inf, level(one)[-1]], np.maximum.accumulate(level(other)), trajectories.spread(other, noise, rate))
    - trajectories.spread(one, null, rate)[-1], *courses[shallow], *courses[wide],
)  # fmt: skip
drawn = (replace(each, low=max(0.0, each.low)) for m in models for each in spread[m])  # a deviation is not below 0
points = [{"network": row["network"], "x": row["value"], "y": each} for row, each in zip(rows, drawn, strict=True)]
sure = ["more" if each.low > 0 else "less" if each.high < 0 else "not surely more or less" for each in (apart, alike)]
title = f"Samples of {wide} end {sure[0]} unlike than those of {shallow}; at {shallow}'s level of risk they are {sure[1]} so"
report.tradeoff(points, "x", "y", hue="network", title=title, xlabel="mean advantage", ylabel="spread of advantages", null=None, better="")

# %% [markdown]
# ## At an equal gap, at an equal fit
# The table compares at equal AUC. Above 0: the WRN leaks more at equal values; of test accuracy, the CNN has more.

# %%
line, measures = [(wide, t) for t in checkpoints], {"member accuracy": members, "generalisation gap": gaps, "test accuracy": tests}
beside = {m: {what: found.beside_line((m, end), line, "LiRA", heights=of) for what, of in measures.items()} for m in models[:-1]}
plane = [{"network": m, "x": audit.over(gaps[m, t]), "auc": found.leak((m, t), "LiRA")["auc"]} for m in models for t in checkpoints]
gap, deeper = (beside[m]["generalisation gap"] for m in (shallow, deep))
sure = ["less" if each.low > 0 else "more" if each.high < 0 else "neither surely more nor less" for each in (gap, deeper)]
title = f"At equal generalisation gaps {shallow} leaks {sure[0]} than {wide}, {deep} {sure[1]}"
report.tradeoff(plane, "x", hue="network", title=title, xlabel="member minus test accuracy", ylabel="AUC of LiRA", level="guessing", better="")

# %%
report.table([{"network": m} | each for m, each in beside.items()], caption=f"Each CNN at epoch {end} minus {wide} in its course, at equal AUC")

# %% [markdown]
# ## Other definitions
# By threshold (share of non-members above it, or the best balanced accuracy) and by counted or fitted rates. At the
# best balanced accuracy the threshold of untrained networks lies anywhere: there only gain and delay tell something.

# %%
ways = (rate, "counted"), (rate, "fitted"), (rate / 2, "counted"), (2 * rate, "counted"), ("balanced", "counted")
other = {f"{rule}, {form}": trajectories.contrast(*courses[shallow], *courses[wide], rule, form) for rule, form in ways}
shown = ("doublings of displacement", "doublings of gain", *trajectories.ENCODED[1:3], "delay")
rows = [{"threshold and rates": name} | {what: each[what] for what in shown} for name, each in other.items()]
report.table(rows, caption=f"{minus}, or doublings from the one to the other. Reading note: more than 1.6 of displacement")

# %% [markdown]
# ## Verdicts

# %%
checks = {f"the attack on {m} beats a guess": found.leak((m, end), "LiRA")["auc"].low > 0.5 for m in models}
checks |= {f"the null of {row['network']} stays": row["displacement of the null"] < row["displacement"].value / 2 for row in table}
fits = (audit.least(audit.over(of[m, end]) for m in which) for of, which in ((members, models[1:]), (tests, models)))
report.judge(
    claims,
    thrice=more[wide]["doublings of displacement"],
    riskier=more[wide]["gain"],
    faster=more[wide]["way of a sample"],
    uneven=apart,
    uneven_alike=alike,
    at_equal_fit=audit.least(beside[m]["member accuracy"] for m in between),
    as_shallow_at_gap=gap,
    beyond_gap=deeper,
    depth_alone=more[deep]["displacement"],
    checks={claim.name: checks for claim in claims},
    regime=dict(zip(claims.regime, fits, strict=True)),
)

# %% [markdown]
# **Caveat.** The WRN differs in more than depth: BatchNorm, shortcuts, parameters. At equal leak it is in mid-course,
# its learning rate still high, the CNNs at their end. Counting noise grows with a sample's TPR: some of its way beyond
# the null is that. Rules were settled on draw 0 and are judged on this one (seed 1).

# %%
report.provenance(results)
