# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What does a sliding window cost in accuracy?
#
# **Question.** WeMem (Shang et al. 2025), slide on prediction accuracy: "As window width decreases,
# model prediction accuracy declines", and "SWMR's prediction accuracy is often lower than under RSW
# with identical settings". The slide has no numbers.
#
# **Setup.** A network is pruned in five rounds. With RSW, each epoch of a round visits a window of the
# members of each class, in the order of their memorization scores (how much confidence on a sample
# depends on training with it). SWMR adds an L2 penalty on members
# with high scores.
#
# **Controls.** Controls 1 and 2 decide.
#
# 1. *Base*: the same rounds without a window.
#    A *visit* is one use of a member in an epoch.
# 2. *The same number of visits*: no window and fewer epochs (*no window, same visits*), and windows in
#    random order.

# %% tags=["parameters"]
data = "digits-bits"  # data set (slides: CIFAR10, CIFAR100, CINIC, Texas, Location, Purchase)
pixels = 0  # side of the images, pixels, after area resize; 0: as they are (published code: 32)
model = "fc"  # architecture (slides: ResNet18, VGG16, DenseNet121; FC for tables)
width = 256  # units of the first layer, or channels of stage 1 (published code: 256, 64)
stem = "conv3"  # first layer of a ResNet (published code: conv3-pool)
pool = 1740  # samples of train and test part; half the targets', half the attacker's (ours)
dev = 88  # samples of each half set apart; the rest is half member (published code: a tenth)
epochs = 100  # epochs of the dense network (published code: 100)
round_epochs = 21  # epochs of a round (published code: 21)
batch = 128  # samples a step (published code: 128)
lr = 0.001  # learning rate of Adam (published code: 0.001)
decay = "constant"  # of that rate, by the epoch (published code: constant)
patience = None  # epochs without a better dev accuracy until a stop (published code: 5)
targets = 10  # target networks, which share one half of the pool (published code: 1)
networks = 32  # networks that give the scores; no attack knows them (Feldman & Zhang: 2,000)
share = 0.7  # of the pool that each of them trains on (Feldman & Zhang: .7)
score_epochs = 30  # epochs of each of them (not stated; a fork of the published code: 30)
rounds = 5  # rounds, the first of which removes nothing (slides: 5)
sparsity = 0.6  # share of the weights that the last round has removed (slides: mainly .6)
risky_share = 0.176  # members that a penalty is for (published CIFAR10 scores above tau = .5)
wide = 26  # members of a class in the wide window (slides: 2/3 of a class)
narrow = 9  # members of a class in the narrow window (slides: 2/9 of a class)
small_step = 1  # ranks by which a window moves in an epoch (slides: 1/45 of a class)
large_step = 2  # ranks, the larger step (slides: 2/45 of a class)
learnt = 0.6  # least test accuracy of a dense network that has learnt (ours)
seed = 7  # seed of design, initialisation and order
pilots = [0, 1]  # seeds on which claims, borders and controls were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import audit, lab, report
from leak_atlas.localization import samples
from leak_atlas.recipe import RMR, Data, Model, Schedule, Window, WindowStudy

low, high = "low scores first", "high scores first"
near, far, broad = "narrow, small step", "narrow, large step", "wide, small step"
slide = "slide on prediction accuracy"


def falls(name, order):
    return report.Claim(
        name,
        f"With {order}, the narrow window is less accurate than the wide one",
        quantity=f"test accuracy of RSW ({order}): ({near}) minus ({broad})",
        below=0.0,
        margin=0.02,
        paper=slide,
        quote="As window width decreases, model prediction accuracy declines",
        section=slide,
        control="the same order, step and rounds; paired over targets",
    )


# %%
without_window = "training with the same number of visits but no window"
claims = report.claims(
    falls("falls_low_first", low),
    falls("falls_high_first", high),
    report.Claim(
        "swmr_is_lower",
        "SWMR is less accurate than RSW with the same window",
        quantity="test accuracy: SWMR minus RSW, mean of three windows",
        below=0.0,
        margin=0.02,
        paper=slide,
        quote="SWMR's prediction accuracy is often lower than under RSW with identical settings",
        section=slide,
        control="the same windows; only windows that reach members with high scores",
    ),
    report.Claim(
        "costs_little",
        "The narrow window costs less than two points of accuracy, in either order of scores",
        quantity=f"test accuracy: RSW ({near}) minus Base, worse of two orders",
        above=-0.02,
        margin=0.02,
        ours=True,
        control="Base: the same rounds without a window",
        headline=True,
    ),
    report.Claim(
        "costs_beyond_visits",
        f"A narrow window in random order is less accurate than {without_window}",
        quantity=f"test accuracy: RSW ({near}, mean of 3 random orders) minus no window, same visits",
        below=0.0,
        margin=0.02,
        ours="our control",
        control="no window, same visits: fewer epochs",
        headline=True,
    ),
    regime={"dense member accuracy": 0.95, "dense test accuracy": learnt},
)
claims

# %% [markdown]
# ## Models

# %%
study = WindowStudy(
    Data(data, pixels or None, joined=True),
    Model(model, width, stem),
    Schedule(epochs, batch, "adam", lr, decay=decay, patience=patience),
    fine_tuning=round_epochs,
    pool=pool,
    dev=dev,
    targets=targets,
    seed=seed,
    precision=precision,
    sparsity=sparsity,
    rounds=rounds,
    judges=networks,
    share=share,
    score_epochs=score_epochs,
)

# %%
windows = {}
for order, direction in {low: "low-to-high", high: "high-to-low"}.items():
    windows[order, broad] = Window(wide, small_step, direction)
    windows[order, far] = Window(narrow, large_step, direction)
    windows[order, near] = Window(narrow, small_step, direction)

variants = {"dense": study.dense, "Base": study.base}
for setting, window in windows.items():
    variants["RSW", *setting] = study.windowed(window)

penalty = RMR(0.1, share=risky_share)
penalized = [(high, near), (high, far), (low, far)]
for setting in penalized:
    variants["SWMR", *setting] = study.windowed(windows[setting], penalty=penalty)

random_orders = []
for number in range(3):
    random_orders.append(("RSW", f"random order {number}", near))
    shuffled = study.ranking.shuffle(number)
    variants[random_orders[-1]] = study.windowed(windows[low, near], shuffled)
same_visits = "no window, same visits"
variants[same_visits] = study.same_visits(windows[low, near])

# %%
comparison = lab.compare(variants, {}, targets)

# %% [markdown]
# ## Accuracy by window
# The dotted line is Base.

# %%
by_chance = [(variant, "") for variant in random_orders]
chance = audit.mean_ci(comparison.reached(*by_chance, number="test accuracy"))
shown = [variant for variant in variants if variant not in random_orders]
points = comparison.rows("", "test accuracy", ("method", "order", "window"), shown)
for order in (low, high):
    place = {"order": order, "window": near}
    points.append({"method": "RSW, mean of 3 random orders", "value": chance} | place)
    points.append({"method": same_visits, "value": comparison.accuracy(same_visits)} | place)

costs = {order: comparison.more_accurate(("RSW", order, near), "Base") for order in (low, high)}
low_change = f"{costs[low].value:+.3f} with {low}"
high_change = f"{costs[high].value:+.3f} with {high}"
title = f"Narrow window minus Base, test accuracy: {low_change}, {high_change}"
report.profile(
    points,
    "window",
    hue="method",
    facet="order",
    null=round(comparison.accuracy("Base").value, 3),
    level="Base",
    xlabel="window",
    ylabel="test accuracy",
    title=title.replace("-", "−"),
)

# %% [markdown]
# ## Which members a window visits
# Counted from the definition, for one round. A rank is a member's place in its class, in the order of
# the window.

# %%
rows = []
for label in (broad, far, near):
    window = windows[low, label]
    visits = window.visits(study.class_members, round_epochs)
    row = {"window": label, "members at a time": window.width, "step, ranks": window.step}
    row["visited at least once"] = study.coverage(window)
    row["visits of a member, mean"] = sum(visits) / len(visits)
    row["visits of the first, and of the last rank"] = f"{visits[0]} and {visits[-1]}"
    rows.append(row)
sizes = f"{study.class_members} members of a class, {round_epochs} epochs"
report.table(rows, caption=f"One round of {sizes}. Base visits each member in every epoch")

# %%
rows = []
for variant in variants:
    row = {"network": audit.described(variant)}
    row["member accuracy"] = comparison.estimate(variant, "", "member accuracy")
    row["test accuracy"] = comparison.accuracy(variant)
    row["test accuracy minus Base"] = comparison.more_accurate(variant, "Base")
    row["test accuracy minus same visits"] = comparison.more_accurate(variant, same_visits)
    rows.append(row)
report.table(rows, caption=f"Differences are paired over {targets} targets")

# %% [markdown]
# ## Verdicts


# %%
def losses(variant):
    """Mean cross-entropy on the members of each target, nats."""
    signals = variants[variant].signals()[:targets]
    return [samples.member_loss(comparison.results[one]) for one in signals]


falling = {}
raises_loss = {}
for order in (low, high):
    narrowest, widest = ("RSW", order, near), ("RSW", order, broad)
    falling[order] = comparison.more_accurate(narrowest, widest)
    raised = audit.paired_difference(losses(narrowest), losses("Base"))
    raises_loss[order] = {f"{order}: the window raises the loss on members": raised}
rsw = [(("RSW", *setting), "") for setting in penalized]
swmr = [(("SWMR", *setting), "") for setting in penalized]
pairs = [(("RSW", *setting), ("SWMR", *setting)) for setting in penalized]
lowered = [comparison.contrast(*pair, metric="member accuracy") for pair in pairs]
penalty_acts = {"the penalty lowers the accuracy on members": audit.largest(lowered)}

# %%
checks = {claim.name: raises_loss[low] | raises_loss[high] for claim in claims}
checks |= {"falls_low_first": raises_loss[low], "falls_high_first": raises_loss[high]}
checks["swmr_is_lower"] = penalty_acts
report.judge(
    claims,
    falls_low_first=falling[low],
    falls_high_first=falling[high],
    swmr_is_lower=comparison.stronger(swmr, rsw, "test accuracy"),
    costs_little=audit.least(costs.values()),
    costs_beyond_visits=comparison.stronger(by_chance, [(same_visits, "")], "test accuracy"),
    checks=checks,
    regime={
        "dense member accuracy": comparison.estimate("dense", "", "member accuracy"),
        "dense test accuracy": comparison.accuracy("dense"),
    },
)

# %% [markdown]
# **Limits.** One data set and one architecture. All targets share one half of the samples: the
# intervals describe other targets on the same samples. Three random orders are few. With a `patience`
# a round may stop early, and visits are at most what the first table counts.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
