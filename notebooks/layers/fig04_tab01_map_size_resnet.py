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
# # Does a larger feature map in stage 4 leak more?
#
# **PPTP, Fig. 4 and Tab. 1** (section 3.3). The probe of Fig. 1, with the map of stage 4 shrunk and enlarged by the stride of its first block.
#
# **The paper says** that a larger map changes nothing about *where* the disparity begins and hardly strengthens it, while the network generalizes much better:
# 52.3, 54.6 and 61.5 % test accuracy for 2x2, 4x4 and 8x8 (ResNet18, TinyImageNet, augmented). So, unlike channels, map size buys accuracy at little privacy.
#
# **It would be wrong if** the onset moved with the map, if the disparity grew as much as the accuracy, or if the accuracy stayed where it is.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (python -m lib.data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (paper: 64)
stem = "conv3"  # first layer (paper: not stated; conv3-pool gives its 4x4 map at 64 pixels)
strides = [4, 2, 1]  # stride of stage 4's first block: a smaller, the usual and a larger map (paper: maps of 2x2, 4x4, 8x8)
pool = 600  # samples in D_all (paper: 100,000)
epochs = 12  # epochs (paper: not stated)
batch = 64  # samples a step (paper: not stated)
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0 (paper: not stated)
augment = 0  # padding of the random crop with flips, pixels; 0: none (paper: crop and flip)
pairs = 12  # pairs of networks a map, each with its own seed and its own half (paper: one)
margin = 0.02  # an AUC closer to 0.5 than this counts as no disparity
little = 0.05  # a change of the AUC smaller than this is little (our reading of "not significantly")
seed = 1  # seed of halves, initialisations and orders
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from lib import audit, lab, report
from lib.localization import disparity
from lib.recipe import Augment, Data, Halves, Model, Schedule, Setup, Signals, seed_floors, self_audit

claims = report.claims(
    report.Claim(
        "map_does_not_move_the_onset",
        "Whatever the map, the disparity is in stage 4",
        quantity="|AUC − 0.5| of stage 4 minus the largest of stages 1-3, smallest over maps, direction",
        above=0.0,
        paper="Fig. 4",
        control="two seeds on the same data",
    ),
    report.Claim(
        "larger_map_generalizes",
        "A larger map generalizes better",
        quantity="test accuracy, largest map minus smallest",
        above=0.0,
        paper="Tab. 1",
        control="paired: same seeds, same halves",
    ),
    report.Claim(
        "larger_map_hardly_leaks_more",
        "A larger map does not significantly exacerbate the disparity",
        quantity="|AUC − 0.5| of stage 4, largest map minus smallest, Euclidean",
        below=little,
        paper="Fig. 4",
        control="paired: same seeds, same halves",
    ),
    report.Claim(
        "larger_map_hardly_leaks_more_direction",
        "By direction too, a larger map hardly strengthens the disparity",
        quantity="|AUC − 0.5| of stage 4, largest map minus smallest, direction",
        below=little,
        paper="Fig. 4 (our reading)",
        control="free of the length of the features",
    ),
)
claims

# %% [markdown]
# ## One network, three sizes of its last map
# The stride changes the map alone: parameters, channels and the stages before are the same.

# %%
schedule = Schedule(epochs, batch, optimizer, lr, nesterov=True, augment=Augment(augment) if augment else None)
probes = {
    stride: Setup(
        Data(data, pixels), Halves(pool, seed=seed), Model(model, width, stem=stem, stage4_stride=stride), schedule, pairs, seed, precision
    ).pairs()
    for stride in strides
}
distances = {stride: [pair.distance() for pair in probe] for stride, probe in probes.items()}
floors = {stride: seed_floors(probe) for stride, probe in probes.items()}
signals = {stride: [Signals(pair.whole) for pair in probe] for stride, probe in probes.items()}

# %%
results = lab.realize(distances, floors, signals, self_audit(probes[strides[0]]))

# %% [markdown]
# ## Disparity and accuracy against the map

# %%
before = pixels // 4 // (2 if stem == "conv3-pool" else 1)  # side of stage 3's map
side = {stride: f"{-(-before // stride)}x{-(-before // stride)}" for stride in strides}
parts = results[distances[strides[0]][0]].parts
early, last = [parts.index(f"stage{i}") for i in (1, 2, 3)], parts.index("stage4")
read, profiles, controls, onsets = disparity.survey(results, distances, floors, ("euclidean", "direction"), parts, margin)
report.profile(
    [
        {"part": part, "value": estimate, "map": side[stride], "measure": measure}
        for (stride, measure), profile in profiles.items()
        for part, estimate in zip(parts, profile, strict=True)
    ],
    hue="map",
    facet="measure",
    title="Direction, stage 4: AUC " + ", ".join(f"{profiles[s, 'direction'][last].value:.2f} with a map of {side[s]}" for s in strides),
    ylabel="AUC, unseen against seen by M_h1",
)

# %%
accuracy = {stride: [float(results[s]["accuracy_test"]) for s in signals[stride]] for stride in strides}
PAPER = {4: 0.5232, 2: 0.5458, 1: 0.6153}  # Tab. 1, by the stride that makes 2x2, 4x4 and 8x8 of stage 3's 8x8
gain = audit.paired_difference(accuracy[min(strides)], accuracy[max(strides)])
report.against_paper(
    [{"setting": f"map {side[stride]}", "value": audit.over(accuracy[stride]), "paper": PAPER.get(stride)} for stride in strides],
    title=f"The largest map: {100 * gain.value:+.1f} points of accuracy against the smallest (paper: +9.2)",
    xlabel="test accuracy of M_all",
    source="Tab. 1 at the same stride, TinyImageNet",
)

# %%
report.table(
    [
        {
            "map of stage 4": side[stride],
            "onset, Euclidean": onsets[stride, "euclidean"],
            "onset, direction": onsets[stride, "direction"],
            "AUC of stage 4, Euclidean": profiles[stride, "euclidean"][last],
            "AUC of stage 4, direction": profiles[stride, "direction"][last],
            "test accuracy": audit.over(accuracy[stride]),
            "paper": PAPER.get(stride),
        }
        for stride in strides
    ],
    paper="test accuracy of Tab. 1 at the same stride; the paper's onset is stage 4 throughout",
    caption=f"Over {pairs} pairs; onset: first stage whose interval lies outside 0.5 ± {margin} and outside the seed floor's",
)

# %% [markdown]
# ## Verdicts

# %%
large, small = min(strides), max(strides)
report.judge(
    claims,
    map_does_not_move_the_onset=audit.least(disparity.contrast(*read[stride, "direction"], last, early) for stride in strides),
    larger_map_generalizes=gain,
    larger_map_hardly_leaks_more=disparity.versus(read[large, "euclidean"], read[small, "euclidean"], last),
    larger_map_hardly_leaks_more_direction=disparity.versus(read[large, "direction"], read[small, "direction"], last),
)

# %% [markdown]
# **Caveat.** A larger map also means more operations in stage 4 (four times for each halving of the stride), so accuracy is not compared at equal cost.

# %%
report.provenance(results)
