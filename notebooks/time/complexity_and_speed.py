# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Do networks encode membership faster on harder data?
#
# **Question.** An article on Dynamics (Chen et al. 2025) says that "more complex datasets lead to
# a faster, more extensive, and more varied encoding" (section on dataset complexity). The paper
# itself is not at hand: definitions and borders are ours.
#
# **Setup.** The attack LiRA judges every network at several epochs. A sample's TPR and FPR are
# how often it is called a member of networks that trained on it, and of the others. TPR minus FPR
# is its vulnerability.
#
# **Controls.** Control 1 decides.
#
# 1. *Each data set's own level*: harder data may leak earlier only because they leak more in the
#    end. The *delay* is the mean share of the training at which a data set's own leak arises.
# 2. *Permuted membership*: the same attack where there is nothing to find. Its speed is
#    subtracted.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # the harder data set (reading note: CIFAR-10, CINIC-10)
pixels = 8  # side of the images, pixels, after area resize; 0: as they are
simple = "digits"  # the simpler data set (reading note: MNIST)
simple_pixels = 0  # side of its images; 0: as they are
model = "cnn4"  # architecture (reading note: CNNs of several depths, WRN28-2)
width = 8  # channels of stage 1 (not stated)
pool = 600  # samples, half of them members of a network (not stated)
test = 200  # test samples (not stated)
epochs = 40  # of training (not stated; the article calls epoch 150 early)
batch = 50  # samples a step (not stated)
optimizer = "sgd"  # optimizer (article: SGD)
lr = 0.05  # learning rate at the start (not stated)
decay = "cosine"  # of that rate, by the epoch (not stated)
networks = 32  # each is attacked by the others (not stated)
checkpoints = [0, 2, 4, 8, 12, 15, 20, 30, 40]  # epochs at which LiRA attacks; 0: before training
rate = 0.1  # FPR across all samples that sets LiRA's threshold (ours)
learnt = 0.6  # least test accuracy of networks that have learnt (ours)
seed = 101  # evaluation seed: of design, initialisation and order
pilots = [0, 1]  # seeds on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace

from leak_atlas import lab, report
from leak_atlas.localization import over_time, trajectories
from leak_atlas.recipe import Data, LiRA, Model, Schedule, TrajectoryStudy

complexity = "section on dataset complexity"
quote = "more complex datasets lead to a faster, more extensive, and more varied encoding"
harder_minus_simpler = f"{data} minus {simple}"
part = 0.9  # of the last leak on the simpler data (ours)
claims = report.claims(
    report.Claim(
        "faster",
        "Networks on the harder data reach the same leak earlier",
        quantity=f"epoch at which mean TPR minus FPR reaches {part:.0%} of its last value on "
        f"{simple}, {harder_minus_simpler}",
        below=0.0,
        margin=6.0,  # an eighth of the training
        paper="article",
        quote=quote,
        section=complexity,
        control="the same sizes, architecture and epochs",
        headline=True,
    ),
    report.Claim(
        "speed",
        "Samples of the harder data move faster in the plane of FPR and TPR",
        quantity="mean length of a sample's path per epoch, minus permuted membership, "
        f"{harder_minus_simpler}",
        above=0.0,
        margin=0.002,
        paper="article",
        quote=quote,
        section=complexity,
        control="permuted membership",
    ),
    report.Claim(
        "extensive",
        "More samples of the harder data end highly vulnerable",
        quantity="share of samples with TPR of .8 or more and FPR of .2 or less, "
        f"{harder_minus_simpler}",
        above=0.0,
        margin=0.05,
        paper="article",
        quote=quote,
        section=complexity,
        control="the same sizes, architecture and epochs",
    ),
    report.Claim(
        "own_level",
        "Of their own final leak, the harder data leak a larger part early",
        quantity=f"delay, a share of the training, {harder_minus_simpler}",
        below=0.0,
        margin=0.1,
        ours="our control",
        control="each data set's own final leak",
        headline=True,
    ),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)
claims

# %% [markdown]
# ## Models

# %%
harder = TrajectoryStudy(
    Data(data, pixels or None),
    Model(model, width),
    Schedule(epochs, batch, optimizer, lr, decay=decay),
    pool=pool,
    test=test,
    networks=networks,
    checkpoints=checkpoints,
    seed=seed,
    precision=precision,
)
simpler = replace(harder, data=Data(simple, simple_pixels or None))
studies = {simple: simpler, data: harder}

attacks = {name: study.attacks() for name, study in studies.items()}
permuted = {name: study.attacks(permuted=0) for name, study in studies.items()}
comparison = lab.compare(
    {name: study.trained for name, study in studies.items()},
    {"LiRA": LiRA()},
    also=[attacks, permuted],
)
results = comparison.results
found = {name: over_time.read(results, each) for name, each in attacks.items()}
null = {name: over_time.read(results, each) for name, each in permuted.items()}

# %% [markdown]
# ## Leak by epoch
# Mean TPR minus FPR over samples, with its 95 % interval.

# %%
points = []
for name, each in found.items():
    means = over_time.jackknife(trajectories.mean_advantage, each, rule=rate)
    for epoch, value in zip(checkpoints, means, strict=True):
        points.append({"data": name, "epoch": epoch, "value": value})
both = found[simple], found[data]
reached = over_time.jackknife(trajectories.epochs_to_reach, *both, part=part, rule=rate)
on_simpler, on_harder, difference = reached
effect = report.effect(difference, "later", "earlier", "not significantly earlier")
report.curves(
    points,
    "epoch",
    hue="data",
    null=0.0,
    level="no leak",
    title=f"Networks on {data} reach the same leak {effect}",
    ylabel="mean TPR minus FPR",
)

# %%
rows = []
for name, epoch in ((simple, on_simpler), (data, on_harder)):
    row = {"data": name, "test accuracy": comparison.accuracy(name)}
    row["epoch of the same leak"] = epoch
    speed = over_time.jackknife(trajectories.mean_speed, found[name], null[name], rule=rate)
    row["speed, per epoch"] = speed
    row["highly vulnerable"] = over_time.jackknife(trajectories.high_share, found[name], rule=rate)[
        -1
    ]
    row["delay"] = over_time.jackknife(trajectories.delay, found[name], rule=rate)
    rows.append(row)
caption = f"{networks} networks of each; same leak: {part:.0%} of the last on {simple}"
report.table(rows, caption=f"{caption}; delay .5: the leak grows evenly")

# %% [markdown]
# ## Verdicts

# %%
accuracies = [comparison.accuracy(name) for name in studies]
members = [comparison.estimate(name, "", "member accuracy") for name in studies]
checks = {f"{data} is harder than {simple}": comparison.accuracy_difference(simple, data)}
for name in studies:
    checks[f"LiRA beats guessing on {name}"] = comparison.leak(name, "LiRA")["auc"].low > 0.5
one, other = [found[data]], [found[simple]]
report.judge(
    claims,
    faster=difference,
    speed=over_time.contrast(
        trajectories.mean_speed, [found[data], null[data]], [found[simple], null[simple]], rule=rate
    ),
    extensive=over_time.contrast(trajectories.high_share, one, other, rule=rate)[-1],
    own_level=over_time.contrast(trajectories.delay, one, other, rule=rate),
    checks={claim.name: checks for claim in claims},
    regime={
        "member accuracy": min(each.value for each in members),
        "test accuracy": min(each.value for each in accuracies),
    },
)

# %% [markdown]
# **Limits.** Two data sets differ in more than difficulty, so this is one comparison. Epochs
# between checkpoints are interpolated. `plane` asks how much the same networks leak, at an equal
# gap in loss too: its answers are not independent of these.

# %%
report.provenance(results, seed=seed, pilots=pilots)
