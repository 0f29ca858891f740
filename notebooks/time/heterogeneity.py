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
# # Do samples spread over the plane, and are there kinds?
#
# **Dynamics, heterogeneity.** As networks train, samples spread over the plane of false and true positives. **The
# article says** that complex data lead to "more varied encoding of vulnerable samples", and that some samples "remain
# secure" while others "become extremely vulnerable". A reading note has the change of spatial entropy: −.08 on MNIST,
# 4.20 on CINIC-10. The paper's text is lost: definitions are ours (cells, states, kinds), and only the direction counts.
#
# **It would be wrong if** entropy rose no more than where membership is dealt out anew (the null), or no more on harder
# data. **It would be beside the point if** entropy rose only since rates leave the corner, as counted rates of equal
# samples spread most in the middle (control: equal samples with the rates of the centre of mass), if kinds were chance
# (control: halves of the networks that share no shadow), or if the gap did it (control: equal gap). Rules were settled
# on draw 0 and are judged on this one (seed 1).

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
from functools import partial

import numpy as np
from sklearn.metrics import adjusted_rand_score

from lib import audit, lab, report
from lib.localization import courses, trajectories
from lib.recipe import Data, LiRA, Model, RandomHalves, Schedule, Setup, Threshold

simple, hard, end = axis[0], axis[-1], checkpoints[-1]
growth, unlike, beyond = "entropy at the end beyond the null's", "standard deviation of true TPR minus FPR", f"{hard} minus {simple}"
equal, high = f"{growth}: equal samples' minus half of the measured, least", "share with TPR at least .8 and FPR at most .2, beyond the null's"
note, ours, alone, most = {"paper": "reading note"}, {"paper": "ours"}, {"control": "membership dealt out anew"}, {"margin": 0.1}
claims = report.claims(
    report.Claim("entropy_grows", "Samples spread over the plane", f"{growth}, nats, least", above=0.2, margin=0.3, **alone, **note),
    report.Claim("entropy_on_harder", "They spread more on the harder data", f"{growth}, {beyond}", above=0.0, margin=0.3, **alone, **note),
    report.Claim("equals_spread", "Equal samples would show most of that", equal, above=0.0, margin=0.3, control="equal samples", **ours),
    report.Claim("samples_differ", "Yet samples differ, beyond counting", f"{unlike}, end, least", above=0.05, **most, **alone, **ours),
    report.Claim("differ_on_harder", "They differ more on the harder data", f"{unlike}, end, {beyond}", above=0.03, **most, **alone, **ours),
    report.Claim("at_equal_gap", "So they do at an equal gap", f"{unlike}, {beyond}, at equal gap", above=0.0, **most, control="generalisation gap", **ours),
    report.Claim("some_exposed", f"{hard}: some samples are wholly exposed", high, above=0.02, **most, **alone, **ours),
    report.Claim("kinds_last", f"{hard}: other networks find the same kinds", "adjusted Rand index, halves", above=0.2, margin=0.2, control="no shadow shared"),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)  # fmt: skip
claims

# %%
given, membership = {"optimizer": optimizer, "decay": decay}, {"true": None, "null": 0}
design, plan = RandomHalves(pool, test=test, seed=seed), Schedule(epochs, batch, lr=lr, **given)
trained = {d: Setup(Data(d, p or None), design, Model(model, width), plan, networks, seed, precision).trained()
           for d, p in zip(axis, axis_pixels, strict=True)}  # fmt: skip
attacks, nulls = ({d: each.course(LiRA(), checkpoints, dealt) for d, each in trained.items()} for dealt in membership.values())
right = {d: each.course(Threshold("correctness", by_class=False), checkpoints) for d, each in trained.items()}
signals = {d: each.at(end).signals() for d, each in trained.items()}
halves = {(d, kind): [[half.course(LiRA(), checkpoints, dealt) for half in both] for both in each.halvings(2)]
          for d, each in trained.items() for kind, dealt in membership.items()}  # fmt: skip
results = lab.realize(attacks, nulls, right, signals, halves)
one, noise, fits = ({d: courses.read(results, own) for d, own in each.items()} for each in (attacks, nulls, right))
last, chance = ({d: courses.read(results, {end: own[end]}) for d, own in each.items()} for each in (attacks, nulls))

# %% [markdown]
# ## Entropy
# Of the shares of samples in cells of a grid. Equal samples all have the centre's rates; counting alone spreads them.

# %%
of, equal = partial(trajectories.entropy_gained, rule=rate, grid=grids), partial(trajectories.entropy_of_equals, rule=rate, grid=grids)
spatial = lambda a: trajectories.entropy(trajectories.plane(a, rate), grids)  # noqa: E731
series = {"measured": (spatial, one), "equal samples": (equal, one), "null": (spatial, noise)}
found = {(d, name): courses.jackknifed(measure, own[d]) for d in axis for name, (measure, own) in series.items()}
points = [{"data": d, "samples": name, "epoch": t, "value": e} for (d, name), each in found.items() for t, e in zip(checkpoints, each, strict=True)]
gain = {d: courses.jackknifed(of, last[d], chance[d]) for d in axis}
equals = {d: courses.jackknifed(lambda a, b: of(a, b, form="equals") - 0.5 * of(a, b), last[d], chance[d]) for d in axis}
rising, mainly = sum(each.low > 0 for each in gain.values()), sum(each.low > 0 for each in equals.values())
title = f"Entropy surely grows on {rising} of {len(axis)} data sets; on {mainly}, equal samples would show most of it"
report.curves(points, "epoch", hue="samples", facet="data", title=title, ylabel="spatial entropy, nats")

# %%
four, rows = (last[hard], chance[hard], last[simple], chance[simple]), []
tries = [("counted", rate, n) for n in (grids, 5, 10, 20)] + [("counted", 0.2, grids), ("fitted", rate, grids), ("fitted", 0.2, grids)]
for form, rule, cells in tries:
    own = partial(trajectories.entropy_gained, rule=rule, grid=cells)
    rows.append({"threshold": f"FPR {rule:g}", "cells": str(cells).strip("[]"), "rates": form})
    rows[-1] |= {f"{d}: growth": courses.jackknifed(partial(own, form=form), last[d], chance[d]) for d in axis}
    rows[-1] |= {f"{d}: of equal samples": own(last[d], chance[d], form="equals") if form == "counted" else None for d in axis}
    rows[-1][beyond] = courses.jackknifed(lambda a, b, c, d, own=own, form=form: own(a, b, form=form) - own(c, d, form=form), *four)
rows.append({"threshold": "reading note", "note: MNIST": -0.08, "note: CINIC-10": 4.20})
report.table(rows, caption="Entropy at the end minus the null's, nats; the note's numbers are of other data, and of an unknown grid")

# %% [markdown]
# ## How unlike are samples?
# The standard deviation of TPR minus FPR, less what counting adds and the null's; at the simple data's last gap, too.

# %%
spread = partial(trajectories.spread, rule=rate)
ways = {d: courses.jackknifed(spread, one[d], noise[d]) for d in axis}
gaps = {d: courses.jackknifed(courses.gaps, fits[d]) for d in axis}
same = courses.jackknifed(lambda h, n, s, m, a, b: trajectories.at_equal(spread(h, n), courses.gaps(a), spread(s, m), courses.gaps(b)),
                               one[hard], noise[hard], one[simple], noise[simple], fits[hard], fits[simple])  # fmt: skip
farther = courses.jackknifed(lambda h, n, s, m: spread(h, n)[-1] - spread(s, m)[-1], *four)
words = ["more" if e.low > 0 else "less" if e.high < 0 else "not surely more" for e in (farther, same)]
points = [{"variant": d, "gap": gap, "unlike": way} for d in axis for gap, way in zip(gaps[d], ways[d], strict=True)]
title = f"Samples of {hard} end {words[0]} unlike than those of {simple}, and are {words[1]} so at an equal gap"
report.tradeoff(points, "gap", "unlike", null=0.0, title=title, xlabel="generalisation gap, in accuracy", ylabel=unlike, level="all alike", better="")

# %% [markdown]
# ## States and kinds
# Low: TPR minus FPR below .2. High: TPR of at least .8 at an FPR of at most .2. Exchanged: a network's scores dealt out
# anew among its members, and among the others, so that all samples are equal. Kinds: k-means on trajectories.

# %%
accuracy = {d: {f"{side} accuracy": audit.over([results[s][f"accuracy_{side}"] for s in signals[d]]) for side in ("member", "test")} for d in axis}
pictures = {"measured": one, "exchanged": {d: courses.exchanged(one[d]) for d in axis}, "null": noise}
rows, middle, names = [], len(checkpoints) // 2, ("low", "middle", "high")
for d in axis:
    for name, own in pictures.items():
        states = trajectories.states(trajectories.plane(own[d], rate))
        rows.append({"data": d, "samples": name} | {f"{word}, end": np.mean(states[-1] == k) for k, word in enumerate(names)})
        moved = trajectories.transitions(states[[middle, -1]])[0]
        rows[-1] |= {f"{a} to {names[m]}": moved[k, m] for k, a in enumerate(names) for m in (0, 2)}
        rows[-1] |= accuracy[d] if name == "measured" else {}
report.table(rows, caption=f"Shares of samples by state; shares that change from epoch {checkpoints[middle]} to {end}; – : nobody is there")

# %%
parted = {key: [[courses.read(results, half) for half in both] for both in each] for key, each in halves.items()}
paths = {key: [[trajectories.advantage(trajectories.plane(half, rate, "fitted")) for half in both] for both in each] for key, each in parted.items()}
rows = [{"clusters": k} | {f"{d}, {kind}": np.mean([adjusted_rand_score(*(trajectories.clusters(half, k) for half in both)) for both in each])
                           for (d, kind), each in paths.items()} for k in (2, 3, 4, 5)]  # fmt: skip
report.table(rows, caption="Adjusted Rand index of clusters between halves of the networks (1: the same, 0: chance); fitted rates")

# %%
whole = {d: trajectories.advantage(trajectories.plane(one[d], rate)) for d in axis}
belongs = {d: trajectories.clusters(each, kinds) for d, each in whole.items()}
points = [{"data": d, "kind": f"kind {k + 1}", "epoch": t, "value": audit.over(whole[d][e, belongs[d] == k])}
          for d in axis for k in range(kinds) for e, t in enumerate(checkpoints)]  # fmt: skip
title = " and ".join(f"{np.mean(belongs[d] == kinds - 1):.0%} of {d}" for d in (hard, simple)) + " are of the kind that is exposed most"
report.curves(points, "epoch", hue="kind", facet="data", title=title, null=0.0, level="a guess", ylabel="mean TPR minus FPR")

# %% [markdown]
# ## Verdicts

# %%
exposed = lambda a: np.mean(trajectories.states(trajectories.plane(a, rate))[-1] == trajectories.HIGH)  # noqa: E731
beats = {f"LiRA beats a guess on {d}": audit.audit(results[attacks[d][end]], (), attacks[d][end].design_effect)["auc"].low > 0.5 for d in axis}
again = trajectories.crossed(lambda *both: adjusted_rand_score(*(trajectories.clusters(a, kinds) for a in both[:2])), parted[hard, "true"], rule=rate)
report.judge(
    claims,
    entropy_grows=audit.least(gain.values()),
    entropy_on_harder=courses.jackknifed(lambda a, b, c, d: of(a, b) - of(c, d), *four),
    equals_spread=audit.least(equals.values()),
    samples_differ=audit.least(each[-1] for each in ways.values()),
    differ_on_harder=farther,
    at_equal_gap=same,
    some_exposed=courses.jackknifed(lambda a, b: exposed(a) - exposed(b), last[hard], chance[hard]),
    kinds_last=again,
    checks={claim.name: beats for claim in claims},
    regime={name: audit.least(accuracy[d][name] for d in axis) for name in claims.regime},
)

# %% [markdown]
# **Caveat.** Two data sets make one comparison, of these two. What entropy says turns with threshold and grid (table).
# k-means finds groups in any cloud: that halves agree says who is where, not that kinds are apart.

# %%
report.provenance(results)
