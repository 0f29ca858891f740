# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does the centre of mass leave the diagonal, and more on harder data?
#
# **Dynamics, the vulnerability plane.** A sample has a true and a false positive rate: how often an attack calls it a
# member of networks that trained on it, and of others. On the diagonal nothing leaks. **The article says** that each
# sample's place is followed "throughout the entire training process", and that complex data cause "a significant shift
# towards higher vulnerability", simple data "limited privacy leakage". The paper's text is lost: definitions are ours.
#
# **It would be wrong if** the mean of TPR minus FPR rose no further than where membership is permuted (the null),
# or no further on the harder data. **It would be beside the point if** harder data only had a larger generalisation gap
# (control: equal gap), or members fitted better (control: equal member accuracy), if a threshold or a way to estimate
# rates decided it (four thresholds, two forms), or if samples moved at random (control: halves of the networks that
# share no shadow). `complexity_and_speed` asks some of this of the same networks: its answers are not independent of
# these. Rules were settled on draw 0, a referee's objections in hand, and are judged on this one (seed 1).

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
learnt = 0.6  # least test accuracy of networks that have learnt (ours)
seed = 1  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from functools import partial
from itertools import product

import numpy as np
from leak_atlas import audit, lab, report
from leak_atlas.localization import over_time, trajectories
from leak_atlas.recipe import Data, Model, Schedule, TrajectoryStudy
from scipy import stats

simple, hard, early, end = axis[0], axis[-1], checkpoints[len(checkpoints) // 4], checkpoints[-1]
lead, more, halved = "TPR minus FPR of the centre", f"TPR minus FPR of the centre, {hard} minus {simple}", "rank correlation between halves"
said, ours, wide = {"paper": "article"}, {"ours": True}, {"above": 0.03, "margin": 0.07}
beside, apart = {"control": "membership permuted"}, {"control": "no shadow in common; null beside it"}
claims = report.claims(
    report.Claim("rises", "The centre leaves the diagonal on each data set", f"{lead}, end, minus the null's, least", above=0.05, margin=0.05, **beside, **said),
    report.Claim("more_on_harder", "It gets further on the harder of these two", f"{more}, at the end", **wide, control="same sizes and epochs", **said),
    report.Claim("at_equal_fit", "So it does where members fit as well", f"{more}, at equal member accuracy", **wide, control="member accuracy", **ours),
    report.Claim("at_equal_gap", "So it does at an equal gap in loss", f"{more}, at equal gap", above=0.0, margin=0.07, control="gap in loss", **ours),
    report.Claim("any_choice", "So it does by other thresholds, and with fitted rates", f"{more}, least of seven choices", above=0.0, margin=0.1, **beside, **ours),
    report.Claim("halves_agree", "Who gets far is no chance, on each data set", f"{halved}, end, least", above=0.05, margin=0.15, **apart, **ours),
    report.Claim("order_forms", f"{hard}: agreed at the end, at epoch {early} not yet", f"{halved}, end minus then", above=0.1, margin=0.2, **apart, **ours),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)  # fmt: skip
claims

# %% [markdown]
# ## Train once, attack at every checkpoint
# LiRA judges each network at each checkpoint by the others at the same one, less its complement. One threshold serves
# all samples of a checkpoint. Gaps, in accuracy and in loss, are those of members to the rest of the pool. For a
# control the pairs are parted in two, in two ways, and each half is attacked by itself, so that halves share no shadow.

# %%
given, kinds = {"optimizer": optimizer, "decay": decay}, {"true": None, "permuted": 0}  # of membership
plan = Schedule(epochs, batch, lr=lr, **given)
studies = {
    d: TrajectoryStudy(Data(d, p or None), Model(model, width), plan, pool, test, networks, checkpoints, seed, precision)
    for d, p in zip(axis, axis_pixels, strict=True)
}
attacks, nulls = ({d: study.attacks(permuted=draw) for d, study in studies.items()} for draw in kinds.values())
right, wrong = ({d: study.fits(what) for d, study in studies.items()} for what in ("correctness", "loss"))
signals = {(d, t): each for d, study in studies.items() for t, each in study.signals().items()}
halves = {(d, kind): study.halves(2, (early, end), draw) for d, study in studies.items() for kind, draw in kinds.items()}
results = lab.realize(attacks, nulls, right, wrong, signals, halves)
one, noise, fits, losses = ({d: over_time.read(results, own) for d, own in each.items()} for each in (attacks, nulls, right, wrong))
last, chance = ({d: over_time.read(results, {end: own[end]}) for d, own in each.items()} for each in (attacks, nulls))
paths = {d: trajectories.plane(one[d], rate) for d in axis}

# %% [markdown]
# ## The plane
# With the threshold at a fixed rate of non-members the centre of mass can only go up: its FPR is that rate. Counted
# rates lie on a lattice, and a sample's scatter by up to one over the root of twice the number of networks.


# %%
def ends(a, b, rule=rate, form="counted"):
    return trajectories.mean_advantage(a, rule, form)[-1] - trajectories.mean_advantage(b, rule, form)[-1]


farther = over_time.jackknife(ends, last[hard], last[simple])
beyond = {d: over_time.jackknife(ends, last[d], chance[d]) for d in axis}
risen, way = sum(each.low > 0 for each in beyond.values()), "further" if farther.low > 0 else "less far" if farther.high < 0 else "not surely further"
stay = {d: over_time.jackknife(lambda a: (trajectories.advantage(trajectories.plane(a, rate)) <= 0.1).mean(axis=1), one[d]) for d in axis}
title = f"The centre leaves the diagonal on {risen} of {len(axis)} data sets, {way} on {hard}; {stay[simple][-1].value:.0%} of {simple} stay near it"
report.planes({d.replace("-", "\n", 1): path for d, path in paths.items()}, checkpoints, title=title)

# %%
of, sides = partial(trajectories.mean_advantage, rule=rate), ("member", "test")
seen = (of, one), (of, noise), (over_time.generalisation_gaps, fits), (over_time.generalisation_gaps, losses)
ways, still, gaps, deep = ({d: over_time.jackknife(measure, own[d]) for d in axis} for measure, own in seen)
accuracy = {side: {key: audit.mean_ci([results[s][f"accuracy_{side}"] for s in each]) for key, each in signals.items()} for side in sides}
rows = [{"data": d, "epoch": t} | {f"{side} accuracy": accuracy[side][d, t] for side in sides}
        | {"gap": gaps[d][k], "gap in loss": deep[d][k], lead: ways[d][k], "of the null": still[d][k], "samples at .1 or less": stay[d][k]}
        for d in axis for k, t in enumerate(checkpoints)]  # fmt: skip
report.table(
    rows, caption=f"{networks} networks; threshold at an FPR of {rate:g}; gaps: of members to the rest of the pool, in accuracy and in loss (nats)"
)

# %% [markdown]
# ## At an equal gap
# Where the harder data's gap first is as wide as the simple data's last, their centres are compared; straight lines
# join checkpoints. The harder data's networks are then young. A gap in accuracy ends at one minus the accuracy on
# others, which is how we tell hard from simple: the gap in loss judges.

# %%
four = one[hard], one[simple], fits[hard], fits[simple]
fit = over_time.jackknife(
    lambda h, s, a, b: -trajectories.difference_at_level(of(s), over_time.mean_scores(b)[0], of(h), over_time.mean_scores(a)[0]), *four
)
same, by_accuracy = (over_time.jackknife(lambda h, s, a, b: trajectories.difference_at_level(of(h), over_time.generalisation_gaps(a), of(s), over_time.generalisation_gaps(b)),
                                             one[hard], one[simple], each[hard], each[simple]) for each in (losses, fits))  # fmt: skip
word = "more" if same.low > 0 else "less" if same.high < 0 else "not surely more"
points = [{"variant": d, "gap": deep[d][k], "lead": ways[d][k]} for d in axis for k, t in enumerate(checkpoints) if t >= end / 5]
words = {"xlabel": "cross entropy of others minus that of members, nats", "ylabel": lead, "level": "a guess", "better": ""}
report.tradeoff(points, "gap", "lead", null=0.0, title=f"At the gap in loss at which {simple} ends, {hard} leaks {word}", **words)

# %% [markdown]
# ## Does the choice decide?
# Fitted rates are tails of normal laws. The balanced threshold is each checkpoint's best; where nothing leaks, any is.

# %%
names, rules, forms = ("beyond the null", "FPR", "TPR"), (0.05, 0.1, 0.2, "balanced"), ("counted", "fitted")
tried = {(d, rule, form): over_time.jackknife(lambda a, b, r=rule, f=form: [ends(a, b, r, f), *trajectories.centre_of_mass(trajectories.plane(a, r, f))[-1]],
                                                  last[d], chance[d]) for d in axis for rule in rules for form in forms}  # fmt: skip
rows = [{"threshold": str(rule), "rates": form} | {f"{d}: {name}": e for d in axis for name, e in zip(names, tried[d, rule, form], strict=True)}
        for rule in rules for form in forms]  # fmt: skip
report.table(rows, caption=f"The centre of mass at epoch {end}: TPR minus FPR less the null's, and where it is; thresholds at an FPR, or balanced")

# %% [markdown]
# ## Do other networks see the same?

# %%
parted = {key: [[over_time.read(results, half) for half in both] for both in each] for key, each in halves.items()}
alike = {key: trajectories.across_halves(lambda a, b, _: [stats.spearmanr(*pair).statistic for pair in zip(a, b, strict=True)],
                                   each, lambda v: np.array([*v, v[1] - v[0]]), rate) for key, each in parted.items()}  # fmt: skip
rows = [{"data": d, "membership": kind} | dict(zip((f"epoch {early}", f"epoch {end}", "difference"), each, strict=True))
        for (d, kind), each in alike.items()]  # fmt: skip
report.table(rows, caption="Rank correlation over samples of TPR minus FPR (fitted), one half of the networks against the other")

# %%
choices = [one for one in product(rules, forms) if one != ("balanced", "fitted")]  # which resolves nothing
four = last[hard], chance[hard], last[simple], chance[simple]
further = [over_time.jackknife(lambda a, b, c, d, one=one: ends(a, b, *one) - ends(c, d, *one), *four) for one in choices]
tests = ([results[s]["accuracy_test"] for s in signals[d, end]] for d in (simple, hard))
checks = {f"{hard} is harder than {simple}": audit.paired_difference(*tests)}
report.judge(
    claims,
    rises=audit.least(beyond.values()),
    more_on_harder=farther,
    at_equal_fit=fit,
    at_equal_gap=same,
    any_choice=audit.least(further),
    halves_agree=audit.least(alike[d, "true"][1] for d in axis),
    order_forms=alike[hard, "true"][2],
    notes={"at_equal_gap": f"at an equal gap in accuracy: {by_accuracy}"},
    checks={claim.name: checks for claim in claims if claim.name != "rises"},
    regime={f"{side} accuracy": audit.least(accuracy[side][d, end] for d in axis) for side in sides},
)

# %% [markdown]
# **Caveat.** Two data sets make one comparison, of these two: they differ in much besides complexity. On digits both
# gaps stand still from epoch 12 on while the centre goes on; until then the two are alike (draw 0).

# %%
report.provenance(results)
