# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Do unseen samples differ in the direction or in the length of their features?
#
# **Ours**, about PPTP's measure (section 3.2): the Euclidean distance between the features of two
# networks. M_all trains on all samples, M_h1 on half of them. The *disparity* of a stage is how
# well this distance separates the two halves.
#
# **Setup.** A distance grows with the angle between two features and with their lengths. We split
# the gap between the halves into what direction and what length contribute.
#
# **Controls.** Control 1 decides.
#
# 1. *A rotation*: M_h1 may only have numbered its channels otherwise. So its features are first
#    rotated as close to those of M_all as possible.
# 2. *Two seeds*: two networks M_all, trained on the same data (grey in the figure).

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data)
pixels = 16  # side of the images, pixels, after area resize
model = "resnet10"  # architecture
width = 8  # channels of stage 1
stem = "conv3"  # first layer
pool = 600  # samples on which M_all trains
epochs = 12  # of each training
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
        "In stage 4 the gap comes from direction more than from length",
        quantity="share of the squared distance in stage 4: gap by direction minus gap by length",
        above=0.0,
        margin=0.1,
        ours=True,
        control=paired,
        headline=True,
    ),
    report.Claim(
        "not_rotation",
        "The disparity of stage 4 does not come from a rotation of its channels",
        quantity="|AUC − 0.5| of Euclidean distance, stage 4, after the best rotation minus before",
        above=-0.02,
        margin=0.02,
        ours=True,
        control="the rotation is fitted to other samples; " + paired,
        headline=True,
    ),
    report.Claim(
        "shorter",
        "In stage 4 samples that M_h1 did not see have shorter features in M_h1",
        quantity="AUC of the feature length in M_h1, stage 4, minus 0.5",
        below=0.0,
        margin=0.02,
        ours=True,
        control="each pair has its own half",
    ),
    report.Claim(
        "distance_less",
        "In stage 4 the Euclidean distance shows a smaller disparity than direction alone",
        quantity="|AUC − 0.5| in stage 4, direction minus Euclidean distance",
        above=0.0,
        margin=0.02,
        ours=True,
        control=paired,
    ),
    regime={"member accuracy of M_all": 0.95, "test accuracy of M_all": learnt},
)
claims

# %% [markdown]
# ## Models
# Both networks of a pair have the same initialisation.

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

# %% [markdown]
# ## Three readings of the same features
# AUC above 0.5: the reading is larger for samples that M_h1 did not see.

# %%
readings = {
    "euclidean": "Euclidean distance (PPTP's)",
    "direction": "direction (1 − cosine)",
    "length": "length in M_h1",
}
rows = []
for measure, label in readings.items():
    for part in probe.stages:
        rows.append({"part": part, "reading": label, "value": probe.auc(name, part, measure)})
less = disparity.setting_difference(
    probe.halved(name, "direction"), probe.halved(name, "euclidean"), probe.parts.index(stage)
)
shows = report.effect(
    less,
    "more disparity than",
    "less disparity than",
    "not significantly another disparity than",
)
report.profile(
    rows,
    hue="reading",
    floor=probe.floor_rows(),
    title=f"In stage 4 direction shows {shows} the Euclidean distance",
    ylabel="AUC, unseen against seen by M_h1",
)

# %% [markdown]
# ## What contributes to the gap
# The gap is the mean squared distance of samples that M_h1 did not see, minus that of samples that
# it saw. It is divided by the mean of all samples. By the law of cosines it is a sum:
#
# - *direction*: the angle between both features is wider;
# - *length*: the features are shorter or longer, or differ more in length between both networks;
# - *both*: the angle is wider where the features are longer.

# %%
steps = [probe.results[step] for step in probe.distances[name]]
contributions = {"direction": [], "length": [], "both": []}  # (pairs, parts)
for one in steps:
    shares = disparity.gap_shares(one["direction"], one["length_a"], one["length_b"], one["seen_b"])
    contributions["direction"].append(shares["direction"])
    contributions["length"].append(shares["length"] + shares["scale"])
    contributions["both"].append(shares["joint"])
gap = {}  # by cause and part, of each pair
for cause, each in contributions.items():
    gap[cause] = dict(zip(probe.parts, np.transpose(each), strict=True))

# %%
rows = []
for cause, by_part in gap.items():
    for part in probe.stages:
        rows.append({"part": part, "cause": cause, "value": audit.mean_ci(by_part[part])})
adds = report.effect(
    audit.mean_ci(gap["length"][stage]),
    "length adds to it",
    "length reduces it",
    "length does not significantly change it",
)
report.profile(
    rows,
    hue="cause",
    null=0.0,
    title=f"In stage 4 direction makes most of the gap; {adds}",
    ylabel="share of the mean squared distance",
)

# %% [markdown]
# ## Verdicts

# %%
last = probe.parts.index(stage)
after, before = disparity.rotated(steps, [probe.results[step] for step in similarity])
lengths = disparity.areas(*probe.halved(name, "length"))[:, last]

# %%
report.judge(
    claims,
    direction_more=audit.paired_difference(gap["direction"][stage], gap["length"][stage]),
    not_rotation=disparity.setting_difference(after, before, last),
    shorter=audit.mean_ci(lengths - 0.5),
    distance_less=less,
    regime={
        "member accuracy of M_all": probe.whole.estimate(name, "", "member accuracy"),
        "test accuracy of M_all": probe.whole.accuracy(name),
    },
)

# %% [markdown]
# **Limits.** One width of one architecture: `fig06` has others. Lengths are those of the features
# before pooling. The split is one of squared distances; the AUC only knows their order.

# %%
report.provenance(probe.results, seed=seed, pilots=pilots)
