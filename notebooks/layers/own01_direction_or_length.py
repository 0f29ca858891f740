# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # In stage 4, does direction contribute more than length to the distance gap of unseen samples?
#
# **Our question** is about the measure of PPTP (Fang & Kim 2026, section 3.2): the Euclidean
# distance between the features of two networks.
#
# **Setup.** M_all trains on a pool of samples, M_h1 on half of it, from the same initial weights.
# Both networks saw the samples of this half (*seen*). Only M_all saw the others (*unseen*). We
# measure the distance between the features of both networks, for each sample and stage. The *gap*
# is the mean squared distance of unseen minus that of seen samples. We split it into parts due to
# direction and to length of features. The AUC of a stage says how well a distance separates unseen
# from seen samples. The *disparity* of a stage is |AUC − 0.5|.
#
# **Controls.**
#
# 1. *Length* (decides the answer): yes if direction contributes more than length difference and
#    more than scale, the two parts of length (defined below).
# 2. *Rotation* (decides a second answer): the same features in other channels also have a distance.
#    We rotate the features of M_h1 as close to those of M_all as possible. Does the disparity of
#    stage 4 fall by less than 0.02?
# 3. *Two seeds* (grey): Euclidean distances between two networks M_all that differ only in seed.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data)
pixels = 16  # side of the images, pixels, after area resize
model = "resnet10"  # architecture
width = 8  # channels of stage 1
stem = "conv3"  # first layer
pool = 600  # samples on which M_all trains
epochs = 12  # epochs of each training
batch = 64  # samples a step
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9
lr = 0.005  # learning rate, cosine to 0
augment = 0  # padding of the random crop with flips, pixels; 0: none
pairs = 12  # pairs of networks, each with its own seed and its own half
learnt = 0.6  # least test accuracy of a network that has learnt
seed = 101  # evaluation seed: of halves, initialisation and order
pilots = [0, 1]  # seeds on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
import numpy as np
from leak_atlas import audit, lab, report
from leak_atlas.localization import disparity
from leak_atlas.recipe import Augment, Data, Model, ProbeStudy, Schedule

stage = "stage4"
paired = "the same samples; paired over pairs of networks"
claims = report.claims(
    report.Claim(
        "direction_more",
        "In stage 4, direction contributes more than length to the distance gap of unseen samples",
        fails="In stage 4, direction contributes less than length to the distance gap of unseen "
        "samples",
        quantity="contribution to the gap in stage 4, as share of the mean squared distance: "
        "direction minus the larger of length difference and scale",
        above=0.0,
        margin=0.1,
        ours=True,
        control=paired,
        headline=True,
    ),
    report.Claim(
        "not_rotation",
        "Rotating the features of M_h1 does not lower the disparity of stage 4 by 0.02 or more",
        fails="Rotating the features of M_h1 lowers the disparity of stage 4 by more than 0.02",
        quantity="disparity |AUC − 0.5| of stage 4 by Euclidean distance: rotated minus not "
        "rotated",
        above=-0.02,
        margin=0.02,
        ours=True,
        control="the rotation is fitted to other samples; " + paired,
        headline=True,
    ),
    report.Claim(
        "shorter",
        "In stage 4 of M_h1, unseen samples have shorter features than seen samples",
        quantity="AUC of the feature length in stage 4 of M_h1 (unseen against seen) minus 0.5",
        below=0.0,
        margin=0.02,
        ours=True,
        control="each pair has its own half",
    ),
    report.Claim(
        "distance_less",
        "In stage 4, the disparity is larger by direction than by Euclidean distance",
        quantity="disparity |AUC − 0.5| of stage 4: by direction minus by Euclidean distance",
        above=0.0,
        margin=0.02,
        ours=True,
        control=paired,
    ),
    regime={"member accuracy of M_all": 0.95, "test accuracy of M_all": learnt},
)
claims

# %% [markdown]
# ## AUC of each stage by distance, direction and length
# Above 0.5, the quantity is larger for unseen samples; below 0.5, for seen samples. In `quick`,
# length separates the samples in stage 4 about as well as direction. But unseen samples have
# shorter features, which lowers their distance.

# %%
augmentation = Augment(augment) if augment else None
study = ProbeStudy(
    Data(data, pixels),
    Model(model, width, stem),
    Schedule(epochs, batch, optimizer, lr, nesterov=True, augment=augmentation),
    pool=pool,
    pairs=pairs,
    seed=seed,
    precision=precision,
)
name = "ordinary"
similarity = [pair.similarity() for pair in study.probes]
probe = lab.probe({name: study.probes}, also=similarity)

# %%
labels = {
    "euclidean": "Euclidean distance (PPTP's)",
    "direction": "direction (1 − cosine)",
    "length": "length in M_h1",
}
rows = []
for measure, label in labels.items():
    for part in probe.stages:
        rows.append({"part": part, "reading": label, "value": probe.auc(name, part, measure)})
direction_minus_euclidean = disparity.setting_difference(
    probe.halved(name, "direction"), probe.halved(name, "euclidean"), probe.parts.index(stage)
)
larger = report.effect(
    direction_minus_euclidean,
    "significantly larger",
    "significantly smaller",
    "not significantly larger",
)
report.profile(
    rows,
    hue="reading",
    floor=probe.floor_rows(),
    title=f"The disparity of stage 4 is {larger} by direction than by Euclidean distance",
    ylabel="AUC, unseen against seen samples",
)

# %% [markdown]
# ## Contributions of direction and length to the gap
# By the law of cosines, the gap is a sum of four parts. A part is positive if, for unseen samples,
#
# - *direction*: the angle between the features of M_all and M_h1 is wider;
# - *length difference*: lengths differ more between M_all and M_h1;
# - *scale*: features are longer;
# - *both*: wide angles and long features occur together more often.

# %%
steps = [probe.results[step] for step in probe.distances[name]]
names = {"direction": "direction", "length": "length difference", "scale": "scale", "joint": "both"}
contributions = {name: [] for name in names.values()}  # (pairs, parts)
for pair in steps:
    arrays = pair["direction"], pair["length_a"], pair["length_b"], pair["seen_b"]
    shares = disparity.gap_shares(*arrays)
    for part_of_gap, label in names.items():
        contributions[label].append(shares[part_of_gap])
gap = {}  # by cause and part, of each pair
for cause, by_pair in contributions.items():
    gap[cause] = dict(zip(probe.parts, np.transpose(by_pair), strict=True))

# %%
rows = []
for cause, by_part in gap.items():
    for part in probe.stages:
        rows.append({"part": part, "cause": cause, "value": audit.mean_ci(by_part[part])})
leads = []
for length_part in ("length difference", "scale"):
    leads.append(audit.paired_difference(gap["direction"][stage], gap[length_part][stage]))
direction_more = audit.least(leads)
contributes = report.effect(
    direction_more, "significantly more", "significantly less", "not significantly more"
)
report.profile(
    rows,
    hue="cause",
    reference=0.0,
    title=f"In stage 4, direction contributes {contributes} to the gap than length",
    ylabel="share of the mean squared distance",
)

# %% [markdown]
# ## Verdicts

# %%
last = probe.parts.index(stage)
after, before = disparity.rotated(steps, [probe.results[step] for step in similarity])
lengths = disparity.areas(*probe.halved(name, "length"))[:, last]


def mean_distance(halved):
    """Mean distance in stage 4 of each pair, (pairs,)."""
    distances, _ = halved
    return np.array([distance[last].mean() for distance in distances])


closer = audit.paired_difference(mean_distance(before), mean_distance(after))

# %%
report.judge(
    claims,
    direction_more=direction_more,
    not_rotation=disparity.setting_difference(after, before, last),
    shorter=audit.mean_ci(lengths - 0.5),
    distance_less=direction_minus_euclidean,
    checks={"not_rotation": {"the rotation lowers the mean distance in stage 4": closer}},
    regime={
        "member accuracy of M_all": probe.whole.estimate(name, "", "member accuracy"),
        "test accuracy of M_all": probe.whole.accuracy(name),
    },
)

# %% [markdown]
# **Limits.** This page has one width of one architecture; the page `fig06_tab03_channels_resnet`
# has others. Lengths are those of features before pooling. We split squared distances, while the
# AUC depends only on the order of distances.

# %%
report.provenance(probe.results, seed=seed, pilots=pilots)
