# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Are samples more vulnerable on harder data?
#
# **Question.** An article about the paper Dynamics (Chen et al. 2025) says that complex data cause
# "a significant shift towards higher vulnerability", and simple data "limited privacy leakage"
# (section on dataset complexity). The article defines nothing: definitions and borders are ours.
#
# **Setup.** A sample's *vulnerability* is LiRA's TPR minus FPR: how often LiRA calls the sample a
# member of networks that trained on it, minus the same for other networks. The *vulnerability
# plane* shows both rates. The parameter `data` names the harder data set, `simple` the simpler one.
# n counts pairs of networks; each sample is a member of one network of a pair.
#
# **Controls.**
#
# 1. *Equal gap in loss* (decides whether harder data leak more at the same overfitting). The gap is
#    the loss on non-members minus the loss on members. The networks with the larger final gap are
#    read at the epoch at which their gap equals the final gap of the others.
# 2. *Permuted membership* (decides whether training makes samples vulnerable): the same attack on
#    random membership labels.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # harder data (reading note, a summary by others: CIFAR-10, CINIC-10)
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
decay = "cosine"  # decay of the learning rate over the epochs (not stated)
networks = 32  # networks, each attacked by the others (not stated)
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
vulnerability = f"mean TPR minus FPR (LiRA's threshold at an FPR of {rate:g})"
harder_minus_simpler = f"{data} minus {simple}"
claims = report.claims(
    report.Claim(
        "shift",
        "Training makes samples of the harder data vulnerable",
        quantity=f"{vulnerability} on {data} after training, minus that with permuted membership",
        above=0.05,  # the smallest shift that we call significant
        margin=0.05,
        paper="article",
        quote="causing a significant shift towards higher vulnerability",
        section=complexity,
        control="permuted membership; the same networks",
    ),
    report.Claim(
        "more_on_harder",
        "After training, samples are more vulnerable on the harder data than on the simpler data",
        fails="After training, samples are less vulnerable on the harder data than on the simpler "
        "data",
        quantity=f"{vulnerability} after training: {harder_minus_simpler}",
        above=0.0,
        margin=0.05,
        paper="article",
        quote="models learn generalizable patterns, resulting in limited privacy leakage",
        section=complexity,
        control="the same sizes, architecture and epochs",
        headline=True,
    ),
    report.Claim(
        "at_equal_gap",
        "At an equal gap in loss (the smaller of the two final gaps), samples are more vulnerable "
        "on the harder data than on the simpler data",
        fails="At an equal gap in loss (the smaller of the two final gaps), samples are less "
        "vulnerable on the harder data than on the simpler data",
        quantity=f"{vulnerability} at an equal gap in loss: {harder_minus_simpler}",
        above=0.0,
        margin=0.05,
        ours="our control",
        control="equal gap in loss: the networks with the wider gap are read at an earlier epoch",
        headline=True,
    ),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)
claims

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
losses = {name: study.fits("loss") for name, study in studies.items()}
comparison = lab.compare(
    {name: study.trained for name, study in studies.items()},
    {"LiRA": LiRA()},
    also=[attacks, permuted, losses],
)

# %%
results = comparison.results
attack_scores = {name: over_time.read(results, each) for name, each in attacks.items()}
permuted_scores = {name: over_time.read(results, each) for name, each in permuted.items()}
loss = {name: over_time.read(results, each) for name, each in losses.items()}
harder_scores, simpler_scores = attack_scores[data], attack_scores[simple]

# %% [markdown]
# ## The vulnerability plane
# Each row is a data set, each panel an epoch. A sample above the diagonal is vulnerable.

# %%
measure = trajectories.mean_advantage
difference = over_time.contrast(measure, [harder_scores], [simpler_scores], rule=rate)[-1]
effect = report.effect(difference, "higher", "lower", "not significantly higher")
report.planes(
    {
        name.replace("-", "\n", 1): trajectories.plane(each, rate)
        for name, each in attack_scores.items()
    },
    checkpoints,
    title=f"After training, TPR minus FPR is {effect} on {data} than on {simple}",
)

# %% [markdown]
# ## Equal gap in loss
# A line joins the epochs on one data set, from a fifth of the training on. The title compares the
# last point of one line with the point of the other line at the same gap.

# %%
vulnerabilities = {
    name: over_time.jackknife(measure, each, rule=rate) for name, each in attack_scores.items()
}
gaps = {
    name: over_time.jackknife(over_time.generalisation_gaps, each) for name, each in loss.items()
}
scores_and_losses = harder_scores, loss[data], simpler_scores, loss[simple]
at_gap = over_time.jackknife(trajectories.advantage_at_gap, *scores_and_losses, rule=rate)
points = []
for name in studies:
    for epoch, x, y in zip(checkpoints, gaps[name], vulnerabilities[name], strict=True):
        if epoch >= epochs / 5:
            points.append({"data": name, "gap": x, "vulnerability": y})
effect = report.effect(at_gap, "higher", "lower", "not significantly higher")
report.tradeoff(
    points,
    "gap",
    "vulnerability",
    hue="data",
    reference=0.0,
    reference_label="no leak",
    corner_label="",
    title=f"At an equal gap in loss, vulnerability is {effect} on {data} than on {simple}",
    xlabel="loss of non-members minus loss of members, nats",
    ylabel="mean TPR minus FPR",
)

# %%
rows = []
for name in studies:
    row = {"data": name, "test accuracy": comparison.accuracy(name)}
    row["member accuracy"] = comparison.estimate(name, "", "member accuracy")
    row["gap in loss"] = gaps[name][-1]
    row["TPR minus FPR"] = vulnerabilities[name][-1]
    chance = over_time.jackknife(measure, permuted_scores[name], rule=rate)
    row["with permuted membership"] = chance[-1]
    rows.append(row)
report.table(
    rows,
    caption=f"After training, {networks} networks on each. Gap in loss: nats",
    fold="Both data sets: accuracy, gap and leakage",
)

# %% [markdown]
# ## Verdicts

# %%
accuracies = [comparison.accuracy(name) for name in studies]
members = [comparison.estimate(name, "", "member accuracy") for name in studies]
is_harder = {f"{data} is harder than {simple}": comparison.accuracy_difference(simple, data)}
report.judge(
    claims,
    shift=over_time.contrast(measure, [harder_scores], [permuted_scores[data]], rule=rate)[-1],
    more_on_harder=difference,
    at_equal_gap=at_gap,
    checks={"more_on_harder": is_harder, "at_equal_gap": is_harder},
    regime={
        "member accuracy": min(each.value for each in members),
        "test accuracy": min(each.value for each in accuracies),
    },
)

# %% [markdown]
# **Limits.** The page compares one pair of data sets, which differ in more than difficulty. In
# `quick`, vulnerability on the simpler data rises late in training at an almost constant gap
# (second figure). So the answer at an equal gap depends on the epoch; the page reads the last one.
# The gap is itself a trace of membership, so the comparison may remove part of the leakage. The
# page `complexity_and_speed` attacks the same networks, so the answers of the two pages are not
# independent.

# %% [markdown]
# ## Robustness: other thresholds
# LiRA's threshold is set at another FPR, or where the balanced accuracy is largest.

# %%
rows = []
for rule in (0.05, 0.1, 0.2, "balanced"):
    at_rule = over_time.contrast(measure, [harder_scores], [simpler_scores], rule=rule)[-1]
    rows.append({"threshold": str(rule), harder_minus_simpler: at_rule})
caption = "Mean TPR minus FPR after training, by the FPR of the threshold"
report.table(rows, caption=caption, fold="Four thresholds")

# %%
report.provenance(results, seed=seed, pilots=pilots)
