# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Do samples spread over the plane, and do the same ones end exposed?
#
# **Dynamics, heterogeneity.** As networks train, samples spread over the plane of false and true positives. **The
# article says** that complex data lead to "more varied encoding of vulnerable samples", and that some samples "remain
# secure" while others "become extremely vulnerable". A reading note has the change of spatial entropy: −.08 on MNIST,
# 4.20 on CINIC-10. The paper's text is lost: definitions are ours (cells, states, kinds), and only the direction counts.
#
# **Read together** (quick): samples do differ, and networks that share nothing find the same ones exposed. On the harder data
# samples differ more, but no more than its higher leak brings with it: at an equal mean advantage they differ as much.
#
# **It would be wrong if** samples differed no more than counting and the null (membership permuted) let them, or
# if who is exposed were chance (control: halves of the networks that share no shadow). **It would be beside the point
# if** harder data only leaked more (control: equal mean advantage), or entropy rose since rates leave the corner, as
# counted rates spread most in the middle (control: equal samples, all with the rates of the centre of mass). The claims
# were written after a referee had seen this draw (seed 1); what a fresh draw (seed 2) says stands in the caveat.

# %% tags=["parameters"]
axis = ["digits", "fashion-mnist-small"]  # data sets, simple to complex (reading note: MNIST, Fashion-MNIST, CIFAR-10, CINIC-10)
axis_pixels = [0, 8]  # of each: side of the images, pixels, after area resize; 0: as they are (not stated)
model = "cnn4"  # architecture (reading note: CNNs of several depths, WRN28-2)
width = 8  # channels of stage 1 (not stated)
pool = 600  # samples, half of them members of a network (not stated)
test = 200  # test samples (not stated)
epochs = 40  # of training (not stated; the article calls epoch 150 early)
batch = 50  # samples a step (not stated)
optimizer = "sgd"  # optimizer (the article: SGD)
lr = 0.05  # its learning rate (not stated)
decay = "cosine"  # of that rate, by the epoch (not stated)
networks = 32  # in complement pairs, each attacked by the others less its pair (not stated)
checkpoints = [0, 2, 4, 8, 12, 16, 24, 32, 40]  # epochs at which the plane is seen; 0: before training (not stated)
rate = 0.1  # share of non-members that reach the threshold, at each checkpoint (ours)
grids = [4, 5, 6, 7, 8]  # cells along an axis; entropy is the mean over these, none finer than a rate's error (not stated; 4.20 needs 9)
kinds = 2  # clusters of trajectories (not stated)
learnt = 0.6  # least test accuracy of networks that have learnt (ours)
seed = 1  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace
from functools import partial

import numpy as np
from leak_atlas import audit, lab, report
from leak_atlas.localization import over_time, trajectories
from leak_atlas.recipe import Data, Model, Schedule, TrajectoryStudy
from sklearn.metrics import adjusted_rand_score

simple, hard, end, slack, alike = axis[0], axis[-1], checkpoints[-1], 0.15, 0.1  # nats; in standard deviations of TPR minus FPR
growth, unlike, beyond = "growth of entropy less the null's", "standard deviation of true TPR minus FPR", f"{hard} minus {simple}"
note, ours, article, alone = {"paper": "reading note"}, {"ours": True}, {"paper": "article"}, {"control": "membership permuted"}
equals, others, leak = {"control": "equal samples"}, {"control": "halves of the networks that share no shadow"}, {"control": "mean advantage"}
claims = report.claims(
    report.Claim("samples_differ", "Samples differ, beyond counting", f"{unlike}, end, least", above=0.05, margin=0.1, **alone, **ours),
    report.Claim("differ_alike", "Samples differ as much at an equal mean advantage", f"{unlike}, {beyond}, at that", within=alike, **leak, **article),
    report.Claim("exposed_in_both", "Some are exposed in most networks", "share high in both halves, less chance, least", above=0.002, margin=0.03, **others, **article),
    report.Claim("same_exposed", "Other networks find the same exposed samples", "adjusted Rand index of kinds, halves, least", above=0.2, margin=0.3, **others, **ours),
    report.Claim("entropy_grows", f"Entropy grows, at an FPR of {rate:g}", f"{growth}, nats, least", above=0.2, margin=0.3, **alone, **note),
    report.Claim("entropy_of_equals", "It grows no more than that of equal samples would", f"{growth}: equal samples' minus measured, nats, least", above=-slack, **equals, **ours),
    report.Claim("entropy_on_harder", "It grows more on the harder data, beyond that", f"{growth} and equals', {beyond}", above=0.0, margin=0.3, **equals, **note),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)  # fmt: skip
claims

# %%
given, membership = {"optimizer": optimizer, "decay": decay}, {"measured": None, "null": 0}
plan = Schedule(epochs, batch, lr=lr, **given)
studies = {
    d: TrajectoryStudy(Data(d, p or None), Model(model, width), plan, pool, test, networks, checkpoints, seed, precision)
    for d, p in zip(axis, axis_pixels, strict=True)
}
attacks, nulls = ({d: study.attacks(permuted=draw) for d, study in studies.items()} for draw in membership.values())
signals = {d: study.trained.at(end).signals() for d, study in studies.items()}
halves = {(d, kind): study.halves(2, permuted=draw) for d, study in studies.items() for kind, draw in membership.items()}
results = lab.realize(attacks, nulls, signals, halves)
one, noise = ({d: over_time.read(results, own) for d, own in each.items()} for each in (attacks, nulls))
last, chance, begun = ([over_time.read(results, {t: each[d][t]}) for d in axis] for each, t in ((attacks, end), (nulls, end), (attacks, checkpoints[0])))  # fmt: skip

# %% [markdown]
# ## How unlike are samples?
# The standard deviation of TPR minus FPR, less what counting adds and the null's; where that leaves less than 0, it is
# 0. Each line is a course, from the lower left, from a fifth of its epochs on.

# %%
spread, level = partial(trajectories.advantage_spread, rule=rate), partial(trajectories.mean_advantage, rule=rate)
ways, levels = {d: over_time.jackknife(spread, one[d], noise[d]) for d in axis}, {d: over_time.jackknife(level, one[d]) for d in axis}
apart = lambda h, n, s, m: [spread(h, n)[-1] - spread(s, m)[-1], trajectories.difference_at_level(spread(h, n), level(h), spread(s, m), level(s))]  # noqa: E731
farther, same = over_time.jackknife(apart, one[hard], noise[hard], one[simple], noise[simple])
words = ["more" if e.low > 0 else "less" if e.high < 0 else "not surely more" for e in (farther, same)]
said = words[0], "about as" if -alike < same.low and same.high < alike else words[1]
points = [{"variant": d, "x": x, "y": replace(y, low=max(0.0, y.low))}
          for d in axis for t, x, y in zip(checkpoints, levels[d], ways[d], strict=True) if t >= end / 5]  # fmt: skip
title = f"Samples of {hard} end {said[0]} unlike than those of {simple}; at an equal mean advantage they are {said[1]} unlike"
report.tradeoff(points, "x", "y", null=0.0, title=title, xlabel="mean advantage (TPR minus FPR)", ylabel=unlike, level="all alike", better="")

# %% [markdown]
# ## Entropy
# Of the shares of samples in cells of a grid. Equal samples all have the centre's rates; counting alone spreads them.
# They lie below the null, since networks are each other's shadows and so do not decide on a sample independently: permuted
# out anew among samples, scores of the null lie there too (caption). So each growth is less that series' null, or start.

# %%
spatial, equal = (
    (lambda a: trajectories.entropy(trajectories.plane(a, rate), grids)),
    partial(trajectories.entropy_of_equal_samples, rule=rate, grid=grids),
)
series = {"measured": spatial, "equal samples": equal}
found = {(d, name): over_time.jackknife(lambda a, b, of=of: of(a) - of(b), one[d], noise[d]) for d in axis for name, of in series.items()}
points = [{"data": d, "samples": name, "epoch": t, "value": e} for (d, name), each in found.items() for t, e in zip(checkpoints, each, strict=True)]
told = lambda g, same: [*g, g[-1] - g[0], *(left := g - same), left[-1] - left[0]]  # noqa: E731  # of each data set; hard minus simple; beyond equals
grown = lambda *both, form="counted", rule=rate, grid=grids: told(*(  # noqa: E731
    np.array([trajectories.entropy_above_null(*pair, rule, grid, of) for pair in zip(both[: len(axis)], both[len(axis) :], strict=True)])
    for of in (form, "equals")))  # fmt: skip
gains = over_time.jackknife(grown, *last, *chance)
gain, rest = gains[: len(axis)], [-each for each in gains[len(axis) + 1 : -1]]
rising, mainly = sum(each.low > 0 for each in gain), sum(each.low > -slack for each in rest)
title = f"Entropy surely grows on {rising} of {len(axis)} data sets; on {mainly} surely by less than {slack:g} nats more than that of equal samples"
report.curves(points, "epoch", hue="samples", facet="data", title=title, ylabel="entropy less the null's, nats", null=0.0, level="as the null")

# %%
named, rows = [*axis, beyond], []
tries = [("null", "counted", rate, n) for n in (grids, 5, 10, 20)] + [("start", "counted", rate, grids), ("null", "counted", 2 * rate, grids)]
for base, form, rule, cells in [*tries, ("null", "fitted", rate, grids), ("null", "fitted", 2 * rate, grids)]:
    own = over_time.jackknife(partial(grown, rule=rule, grid=cells, form=form), *last, *(chance if base == "null" else begun))
    rows.append({"less": base, "threshold": f"FPR {rule:g}", "cells": str(cells).strip("[]"), "rates": form} | dict(zip(named, own, strict=False)))
    rows[-1] |= {f"{name}, less equals": each for name, each in zip(named, own[len(named) :], strict=True)} if form == "counted" else {}
permuted = " and ".join(f"{spatial(over_time.exchanged_scores(noise[d]))[-1]:.2f}, not {spatial(noise[d])[-1]:.2f}" for d in axis)
report.table(rows, caption=f"Growth of entropy, nats (reading note: MNIST −.08, CINIC-10 4.20). Scores of the null, permuted, end at {permuted}")

# %% [markdown]
# ## States and kinds
# Low: TPR minus FPR below .2. High: TPR of at least .8 at an FPR of at most .2. Halves share no shadow; fitted rates.
# Exchanged: scores permuted among a network's members, and among others: equal samples. Kinds: k-means on
# trajectories. Cut: the largest advantages at the end, as many as k-means with two groups exposes.

# %%
accuracy = {d: {f"{side} accuracy": audit.mean_ci([results[s][f"accuracy_{side}"] for s in signals[d]]) for side in ("member", "test")} for d in axis}
parted = {key: [[over_time.read(results, half) for half in both] for both in each] for key, each in halves.items()}
high = lambda path: trajectories.states(path)[-1] == trajectories.HIGH  # noqa: E731
twice = lambda a, b, _: np.array([a.mean() / 2 + b.mean() / 2, np.mean(a & b), np.mean(a & b) - a.mean() * b.mean()])  # noqa: E731
again = {key: trajectories.across_halves(twice, each, rule=rate, seen=high) for key, each in parted.items()}
pictures = {"measured": one, "exchanged": {d: over_time.exchanged_scores(each) for d, each in one.items()}, "null": noise}
rows, middle, names = [], len(checkpoints) // 2, ("low", "middle", "high")
for d in axis:
    for name, own in pictures.items():
        states = trajectories.states(trajectories.plane(own[d], rate))
        rows.append({"data": d, "samples": name} | {f"{word}, end": np.mean(states[-1] == k) for k, word in enumerate(names)})
        rows[-1] |= dict(zip(("low to high", "middle to high"), trajectories.transitions(states[[middle, -1]])[0, :2, 2], strict=True))
        rows[-1] |= dict(zip(("high in a half", "in both halves", "in both, less chance"), again.get((d, name), ()), strict=False))
        rows[-1] |= accuracy[d] if name == "measured" else {}
report.table(rows, caption=f"Shares of samples by state; shares that change from epoch {checkpoints[middle]} to {end}; – : not asked")

# %%
seen = lambda half: trajectories.advantage(trajectories.plane(half, rate, "fitted"))  # noqa: E731
groups = {f"{k} kinds": partial(trajectories.clusters, count=k) for k in (2, 3, 4, 5)}
groups["cut"] = lambda a: trajectories.highest(a[-1:], np.mean(trajectories.clusters(a, 2) == 1))[0]
rows = [{"samples grouped by": name} | {f"{d}, {kind}": np.mean([adjusted_rand_score(*(group(seen(half)) for half in both)) for both in each])
                                        for (d, kind), each in parted.items()} for name, group in groups.items()]  # fmt: skip
report.table(rows, caption="Adjusted Rand index of groups between halves of the networks (1: the same, 0: chance)")

# %%
tests = [accuracy[d]["test accuracy"] for d in axis]
checks = {f"LiRA beats a guess on {d}": audit.audit(results[attacks[d][end]], (), attacks[d][end].design_effect)["auc"].low > 0.5 for d in axis}
kind = lambda a, b, _: adjusted_rand_score(*(trajectories.clusters(each, kinds) for each in (a, b)))  # noqa: E731
report.judge(
    claims,
    samples_differ=audit.least(each[-1] for each in ways.values()), differ_alike=same,
    exposed_in_both=audit.least(again[d, "measured"][-1] for d in axis),
    same_exposed=audit.least(trajectories.across_halves(kind, parted[d, "measured"], rule=rate) for d in axis),
    entropy_grows=audit.least(gain), entropy_of_equals=audit.least(rest), entropy_on_harder=gains[-1],
    checks={c.name: checks | ({f"{hard} is harder": tests[-1].high < tests[0].low} if beyond in c.quantity else {}) for c in claims},
    regime={name: audit.least(accuracy[d][name] for d in axis) for name in claims.regime},
)  # fmt: skip

# %% [markdown]
# **Caveat.** On the fresh draw (seed 2, quick) six of seven verdicts are the same. In order, .213 [.186, .243],
# −.022 [−.058, .013], .383 [.266, .502], .482 [.328, .659], .004 [−.113, .140] hold; −.016 [−.147, .115] is undecided.
# Not so "exposed in most": undecided, .017 [−.000, .038], for digits; Fashion-MNIST has .069 [.040, .097]. Entropy turns
# with threshold and grid: on 20 cells it grows more on the harder data, beyond equals, on both draws (.510 and .540).
# A cut of the last advantage does about as well as k-means, so kinds are not shown. Two data sets are one comparison.

# %%
report.provenance(results)
