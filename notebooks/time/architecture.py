# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Are samples more vulnerable in a wide residual network than in plain CNNs?
#
# **Question.** An article about the paper Dynamics (Chen et al. 2025) says that deeper, more
# complex architectures lead "to more severe final privacy risks" (section on architecture). The
# article defines nothing: definitions and borders are ours.
#
# **Setup.** The first answer compares a wide residual network (WRN) with a shallow CNN, after
# training. A sample's *vulnerability* is LiRA's TPR minus FPR: how often LiRA calls the sample a
# member of networks that trained on it, minus the same for other networks. n counts pairs of
# networks; each sample is a member of one network of a pair.
#
# **Controls.**
#
# 1. *Equal gap in loss* (decides whether the WRN leaks more than a deep CNN at the same
#    overfitting). The gap is the loss on non-members minus the loss on members. The network with
#    the wider final gap is read at the epoch at which its gap equals the other network's final gap.
# 2. *Depth alone* (decides whether depth explains the first answer): the deep CNN compared with the
#    shallow CNN. A difference below .08 counts as none.
# 3. *Judges*, networks that no attack uses, measure which samples are hard.

# %% tags=["parameters"]
shallow = "cnn2"  # a shallow CNN (the same in a reading note: a summary of the paper by others)
deep = "cnn6"  # a deeper CNN of the same kind (reading note: CNNs of several depths)
wide = "wrn16"  # a wide residual network (reading note: WRN28-2)
width = 8  # channels of stage 1 of the CNNs (not stated)
wide_width = 8  # channels of stage 1 of the WRN (WRN28-2: 32)
dropout = 0.0  # of the WRN (authors' group's code: .3)
compared = 20  # networks of each architecture; the shadow models of one are the others
data = "fashion-mnist-small"  # data set (leak-atlas data; reading note: CIFAR-10)
pixels = 8  # side of the images, pixels, after area resize; 0: as they are
model = "cnn4"  # architecture of the judges (ours)
judges = 16  # networks that measure which samples are hard; no attack uses them (ours)
share = 0.7  # share of the pool that each judge trains on (ours)
pool = 600  # samples, half of them members of a network (not stated)
test = 200  # test samples (not stated)
epochs = 40  # of training (not stated; the article calls epoch 150 early)
batch = 50  # samples a step (not stated)
optimizer = "sgd"  # optimizer (article: SGD)
lr = 0.05  # learning rate at the start (not stated)
decay = "cosine"  # decay of the learning rate over the epochs (not stated)
networks = 32  # networks of this folder's other pages; this page trains the first `compared`
checkpoints = [0, 2, 4, 8, 12, 15, 20, 30, 40]  # epochs at which LiRA attacks; 0: before training
rate = 0.1  # FPR across all samples that sets LiRA's threshold (ours)
learnt = 0.6  # least test accuracy of networks that have learnt (ours)
seed = 101  # evaluation seed: of design, initialisation and order
pilots = [0, 1]  # seeds on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace

from leak_atlas import lab, report
from leak_atlas.localization import over_time, prediction, trajectories
from leak_atlas.localization.difficulty import difficulty
from leak_atlas.recipe import Data, LiRA, Model, Schedule, TrajectoryStudy

architecture = "section on architecture"
vulnerability = f"mean TPR minus FPR (LiRA's threshold at an FPR of {rate:g})"
shallow_cnn, deep_cnn, wrn = "shallow CNN", "deep CNN", "WRN"
wrn_minus_shallow = f"{wrn} minus {shallow_cnn}"
part = 0.9  # share of the final vulnerability of the shallow CNN (ours)
small = 0.08  # a quarter of what the WRN adds on the pilot seeds
claims = report.claims(
    report.Claim(
        "riskier",
        "Samples are more vulnerable in the wide residual network (WRN) than in the shallow CNN",
        fails="Samples are less vulnerable in the wide residual network (WRN) than in the shallow "
        "CNN",
        quantity=f"{vulnerability} after training: {wrn_minus_shallow}",
        above=0.0,
        margin=0.05,
        paper="article",
        quote="leading to more severe final privacy risks",
        section=architecture,
        control="the same samples, epochs and number of networks",
        headline=True,
    ),
    report.Claim(
        "faster",
        f"The WRN reaches {100 * part:g} % of the shallow CNN's final vulnerability at an earlier "
        "epoch than the shallow CNN",
        quantity=f"epoch at which mean TPR minus FPR reaches {100 * part:g} % of its final value "
        f"in the {shallow_cnn}: {wrn_minus_shallow}, in epochs",
        below=0.0,
        margin=6.0,  # in epochs
        paper="article",
        quote="accelerating the rate at which they become vulnerable",
        section=architecture,
        control="the same samples, epochs and number of networks",
    ),
    report.Claim(
        "uneven",
        "Vulnerability differs more between hard and easy samples in the WRN than in the shallow "
        "CNN",
        quantity="TPR minus FPR, hardest minus easiest quarter of the samples: "
        f"{wrn_minus_shallow}",
        above=0.0,
        margin=0.1,
        paper="article",
        quote="some ‘easy’ samples remain secure while ‘hard’ samples become extremely vulnerable",
        section=architecture,
        control="hardness is measured by networks that no attack uses",
    ),
    report.Claim(
        "depth_alone",
        f"Depth alone, from shallow to deep CNN, changes mean vulnerability by less than {small:g}",
        quantity=f"{vulnerability} after training: {deep_cnn} minus {shallow_cnn}",
        within=small,
        ours="our control",
        control="plain CNNs that differ in the number of convolutions",
        fails="Depth alone, from shallow to deep CNN, changes mean vulnerability by at least "
        f"{small:g}",
        headline=True,
    ),
    report.Claim(
        "at_equal_gap",
        "At an equal gap in loss, samples are more vulnerable in the WRN than in the deep CNN",
        fails="At an equal gap in loss, samples are less vulnerable in the WRN than in the deep "
        "CNN",
        quantity=f"{vulnerability} at an equal gap in loss: {wrn} minus {deep_cnn}",
        above=0.0,
        margin=0.05,
        ours="our control",
        control="equal gap in loss: the network with the wider gap is read at an earlier epoch",
        headline=True,
    ),
    regime={"lower member accuracy of deep CNN and WRN": 0.95, "lowest test accuracy": learnt},
)
claims

# %%
setup = TrajectoryStudy(
    Data(data, pixels or None),
    Model(model, width),
    Schedule(epochs, batch, optimizer, lr, decay=decay),
    pool=pool,
    test=test,
    networks=networks,
    checkpoints=checkpoints,
    seed=seed,
    precision=precision,
    attacked=compared,
)
studies = {
    shallow_cnn: replace(setup, model=Model(shallow, width)),
    deep_cnn: replace(setup, model=Model(deep, width)),
    wrn: replace(setup, model=Model(wide, wide_width, dropout=dropout)),
}

# %%
attacks = {name: study.attacks() for name, study in studies.items()}
losses = {name: studies[name].fits("loss") for name in (deep_cnn, wrn)}
answers = setup.signals(setup.judges(judges, share))
comparison = lab.compare(
    {name: study.trained for name, study in studies.items()},
    {"LiRA": LiRA()},
    also=[attacks, losses, answers],
)
results = comparison.results
attack_scores = {name: over_time.read(results, each) for name, each in attacks.items()}
loss = {name: over_time.read(results, each) for name, each in losses.items()}

# %% [markdown]
# ## Vulnerability by epoch
# The lines are means over samples, the bands are 95 % intervals.

# %%
measure = trajectories.mean_advantage
means = {
    name: over_time.jackknife(measure, each, rule=rate) for name, each in attack_scores.items()
}
points = []
for name in (deep_cnn, wrn, shallow_cnn):  # the next figure has the first two, in the same colours
    for epoch, value in zip(checkpoints, means[name], strict=True):
        points.append({"network": name, "epoch": epoch, "value": value})
difference = over_time.contrast(
    measure, [attack_scores[wrn]], [attack_scores[shallow_cnn]], rule=rate
)[-1]
effect = report.effect(difference, "more", "less", "not significantly more")
report.curves(
    points,
    "epoch",
    hue="network",
    reference=0.0,
    reference_label="no leak",
    title=f"After training, samples are {effect} vulnerable in the WRN than in the shallow CNN",
    ylabel="mean TPR minus FPR",
)

# %%
signals = over_time.outputs(results, answers)
measures = difficulty(signals, early=checkpoints[1])
hardness = {"hardness": measures["mean loss"], "pool": measures["index"]}
hard_minus_easy = prediction.hard_minus_easy
rows = []
for name, each in attack_scores.items():
    row = {"network": name, "test accuracy": comparison.accuracy(name)}
    row["member accuracy"] = comparison.estimate(name, "", "member accuracy")
    row["AUC of LiRA"] = comparison.estimate(name, "LiRA")
    row["TPR minus FPR"] = means[name][-1]
    row["hard minus easy"] = over_time.jackknife(hard_minus_easy, each, **hardness, rule=rate)[-1]
    rows.append(row)
kinds = f"Shallow CNN: {shallow}, deep CNN: {deep}, WRN: {wide}; {compared} networks of each"
definition = "Hard minus easy: TPR minus FPR, hardest minus easiest quarter of the samples. "
definition += "Hardness is a sample's mean loss over training, in the judges that trained on it"
report.table(
    rows,
    caption=f"{kinds}. {definition}",
    fold="All networks: accuracy, vulnerability, hard and easy samples",
)

# %% [markdown]
# ## Equal gap in loss
# A line joins the epochs of one architecture, from a fifth of the training on. Compare two points
# with the same gap. In `quick`, the deep CNN has the wider final gap, so it is read at an earlier
# epoch, before it has fitted its members.

# %%
points = []
for name, each in loss.items():
    gaps = over_time.jackknife(over_time.generalisation_gaps, each)
    for epoch, x, y in zip(checkpoints, gaps, means[name], strict=True):
        if epoch >= epochs / 5:
            points.append({"network": name, "gap": x, "vulnerability": y})
scores_and_losses = attack_scores[wrn], loss[wrn], attack_scores[deep_cnn], loss[deep_cnn]
at_gap = over_time.jackknife(trajectories.advantage_at_gap, *scores_and_losses, rule=rate)
effect = report.effect(at_gap, "more", "less", "not significantly more")
report.tradeoff(
    points,
    "gap",
    "vulnerability",
    hue="network",
    reference=0.0,
    reference_label="no leak",
    corner_label="",
    title=f"At equal gaps in loss, the WRN leaks {effect} than the deep CNN",
    xlabel="loss of non-members minus loss of members, nats",
    ylabel="mean TPR minus FPR",
)

# %% [markdown]
# ## Verdicts

# %%
wrn_and_shallow = [attack_scores[wrn]], [attack_scores[shallow_cnn]]
shallow_then_wrn = attack_scores[shallow_cnn], attack_scores[wrn]
reached = over_time.jackknife(trajectories.epochs_to_reach, *shallow_then_wrn, part=part, rule=rate)
deep_and_shallow = [attack_scores[deep_cnn]], [attack_scores[shallow_cnn]]
depth_alone = over_time.contrast(measure, *deep_and_shallow, rule=rate)[-1]
members = [comparison.estimate(name, "", "member accuracy") for name in (deep_cnn, wrn)]
accuracies = [comparison.accuracy(name) for name in studies]
checks = {}
for row in rows:
    checks[f"AUC of LiRA above .5: {row['network']}"] = row["AUC of LiRA"].low > 0.5
report.judge(
    claims,
    riskier=difference,
    faster=reached[-1],
    uneven=over_time.contrast(hard_minus_easy, *wrn_and_shallow, **hardness, rule=rate)[-1],
    depth_alone=depth_alone,
    at_equal_gap=at_gap,
    checks={claim.name: checks for claim in claims},
    regime={
        "lower member accuracy of deep CNN and WRN": min(each.value for each in members),
        "lowest test accuracy": min(each.value for each in accuracies),
    },
)

# %% [markdown]
# **Limits.** The WRN differs from the CNNs in more than depth: BatchNorm, shortcuts, number of
# parameters. In `quick`, the shallow CNN fits its members less than the other networks; the
# required member accuracy does not apply to it. The claim on the earlier epoch uses the shallow
# CNN's level, which a network that ends higher crosses earlier in most cases. Hard minus easy grows
# with the mean; no claim compares it at an equal mean. The gap is itself a trace of membership, so
# comparing at an equal gap may remove part of the vulnerability.

# %%
report.provenance(results, seed=seed, pilots=pilots)
