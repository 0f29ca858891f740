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
# **Question.** An article about the paper Dynamics (Chen et al. 2025) says that "more complex
# datasets lead to a faster, more extensive, and more varied encoding" (section on dataset
# complexity). The article defines nothing: definitions and borders are ours. Comments on the
# parameters cite a *reading note*, a summary of the paper that others published.
#
# **Setup.** A sample's *vulnerability* is LiRA's TPR minus FPR: how often LiRA calls the sample a
# member of networks that trained on it, minus the same for other networks. *Leakage* is the mean
# vulnerability of all samples. The parameter `data` names the harder data set, `simple` the simpler
# one. In the verdicts, n is the number of pairs of networks; each sample is a member of one network
# of a pair.
#
# **Controls.**
#
# 1. *Each data set's own final leakage* (decides whether harder data are encoded faster). Networks
#    with a higher final leakage could reach the same leakage earlier for this reason alone. So the
#    *delay* measures when each data set's own leakage arises: it is the mean epoch, weighted by the
#    leakage that each epoch adds, as a share of the training.
# 2. *Permuted membership*: the same attack on random membership labels. TPR and FPR also change by
#    chance; we subtract this part from the speed at which they change.

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
decay = "cosine"  # decay of the learning rate over the epochs (not stated)
networks = 32  # targets; the shadow models of one are the others (not stated)
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
part = 0.9  # share of the final leakage on the simpler data (ours)
claims = report.claims(
    report.Claim(
        "faster",
        "Networks reach the same leakage at an earlier epoch on the harder data than on the "
        "simpler data",
        fails="Networks reach the same leakage at a later epoch on the harder data than on the "
        "simpler data",
        quantity=f"epoch at which mean TPR minus FPR reaches {100 * part:g} % of its final value "
        f"on {simple}: {harder_minus_simpler}, in epochs",
        below=0.0,
        margin=6.0,  # in epochs
        paper="article",
        quote=quote,
        section=complexity,
        control="the same sizes, architecture and epochs",
        headline=True,
    ),
    report.Claim(
        "speed",
        "TPR and FPR of samples change faster on the harder data than on the simpler data",
        quantity="mean speed of a sample in the plane of FPR and TPR (path length per epoch, minus "
        f"that with permuted membership): {harder_minus_simpler}",
        above=0.0,
        margin=0.002,
        paper="article",
        quote=quote,
        section=complexity,
        control="permuted membership",
    ),
    report.Claim(
        "extensive",
        "After training, more samples are highly vulnerable on the harder data than on the simpler "
        "data",
        quantity="share of samples with a TPR of at least .8 and an FPR of at most .2: "
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
        "Relative to their own final leakage, networks leak earlier in training on the harder data "
        "than on the simpler data",
        fails="Relative to their own final leakage, networks leak later in training on the harder "
        "data than on the simpler data",
        quantity="delay (mean epoch at which leakage grows, as a share of the training): "
        f"{harder_minus_simpler}",
        below=0.0,
        margin=0.1,
        ours="our control",
        control="each data set's own final leakage",
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
comparison = lab.compare(
    {name: study.trained for name, study in studies.items()},
    {"LiRA": LiRA()},
    also=[attacks, permuted],
)
results = comparison.results
attack_scores = {name: over_time.read(results, attack) for name, attack in attacks.items()}
permuted_scores = {name: over_time.read(results, attack) for name, attack in permuted.items()}

# %% [markdown]
# ## Leakage by epoch
# The lines are means over samples, the bands are 95 % intervals. The title compares the epochs at
# which networks reach the same leakage: 90 % of the final leakage on the simpler data.

# %%
points = []
for name, scores in attack_scores.items():
    means = over_time.jackknife(trajectories.mean_advantage, scores, rule=rate)
    for epoch, value in zip(checkpoints, means, strict=True):
        points.append({"data": name, "epoch": epoch, "value": value})
simpler_scores, harder_scores = attack_scores[simple], attack_scores[data]
on_simpler, on_harder, difference = over_time.jackknife(
    trajectories.epochs_to_reach, simpler_scores, harder_scores, part=part, rule=rate
)
effect = report.effect(difference, "later", "earlier", "not significantly earlier")
report.curves(
    points,
    "epoch",
    hue="data",
    reference=0.0,
    reference_label="no leak",
    title=f"Networks reach the same leakage {effect} on {data} than on {simple}",
    ylabel="mean TPR minus FPR",
)

# %%
rows = []
for name, epoch in ((simple, on_simpler), (data, on_harder)):
    row = {"data": name, "test accuracy": comparison.accuracy(name)}
    row["epoch of equal leakage"] = epoch
    scores = attack_scores[name]
    speed = over_time.jackknife(trajectories.mean_speed, scores, permuted_scores[name], rule=rate)
    row["speed"] = speed
    row["highly vulnerable"] = over_time.jackknife(trajectories.high_share, scores, rule=rate)[-1]
    row["delay"] = over_time.jackknife(trajectories.delay, scores, rule=rate)
    rows.append(row)
equal = f"Equal leakage: {100 * part:g} % of the final leakage on {simple}"
definitions = "Speed: path length of a sample in the plane of FPR and TPR, per epoch, minus that "
definitions += "with permuted membership. Highly vulnerable: share of samples with TPR ≥ .8 and "
definitions += "FPR ≤ .2. Delay: .5 if leakage grows at a constant rate, more if it grows late"
report.table(
    rows,
    caption=f"{equal}. {definitions}. {networks} networks on each data set",
    fold="Both data sets: accuracy, speed and delay",
)

# %% [markdown]
# ## Verdicts

# %%
test_accuracies = [comparison.accuracy(name) for name in studies]
member_accuracies = [comparison.estimate(name, "", "member accuracy") for name in studies]
checks = {f"{data} is harder than {simple}": comparison.accuracy_difference(simple, data)}
for name in studies:
    checks[f"AUC of LiRA above .5 on {name}"] = comparison.leak(name, "LiRA")["auc"].low > 0.5
harder_and_simpler = [harder_scores], [simpler_scores]
report.judge(
    claims,
    faster=difference,
    speed=over_time.contrast(
        trajectories.mean_speed,
        [harder_scores, permuted_scores[data]],
        [simpler_scores, permuted_scores[simple]],
        rule=rate,
    ),
    extensive=over_time.contrast(trajectories.high_share, *harder_and_simpler, rule=rate)[-1],
    own_level=over_time.contrast(trajectories.delay, *harder_and_simpler, rule=rate),
    checks={claim.name: checks for claim in claims},
    regime={
        "member accuracy": min(accuracy.value for accuracy in member_accuracies),
        "test accuracy": min(accuracy.value for accuracy in test_accuracies),
    },
)

# %% [markdown]
# **Limits.** The page compares one pair of data sets, which differ in more than difficulty. No
# claim tests "more varied". Leakage between checkpoints is interpolated. The page on the
# vulnerability plane (`plane`) attacks the same networks, so the answers of the two pages are not
# independent.

# %%
report.provenance(results, seed=seed, pilots=pilots)
