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
# # Do more channels in stage 4 leak more?
#
# **PPTP, Fig. 6 and Tab. 3** (section 3.3). The probe of Fig. 1, with stage 4 made narrower and wider.
#
# **The paper says** that the disparity grows with the number of channels of stage 4, while the test accuracy hardly changes (52.5 to 55.0 % from 256 to
# 2,048 channels; ResNet18, TinyImageNet, augmented): more channels buy leak, not accuracy.
#
# **It would be wrong if** the widest stage 4 told the halves apart no better than the narrowest, or if accuracy rose by more than 3 points on the way.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (python -m lib.data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (paper: 64)
stem = "conv3"  # first layer (paper: not stated; conv3-pool gives its 4x4 map in stage 4 at 64 pixels)
channels = [16, 32, 64]  # channels of stage 4 (paper: 256, 512, 1024, 2048, that is 4, 8, 16, 32 times the width)
pool = 600  # samples in D_all (paper: 100,000)
epochs = 12  # epochs (paper: not stated)
batch = 64  # samples a step (paper: not stated)
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0 (paper: not stated)
augment = 0  # padding of the random crop with flips, pixels; 0: none (paper: crop and flip)
pairs = 12  # pairs of networks, each with its own seed and its own half (paper: one)
seed = 1  # seed of halves, initialisations and orders
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from lib import audit, lab, report
from lib.localization import disparity
from lib.recipe import Augment, Data, Halves, Model, Schedule, Setup, Signals, self_audit

claims = report.claims(
    report.Claim(
        "more_channels_more_disparity",
        "The disparity of stage 4 grows with its channels",
        quantity="|AUC − 0.5| of stage 4, widest minus narrowest, Euclidean",
        above=0.0,
        paper="Fig. 6",
        control="paired: same seeds, same halves",
    ),
    report.Claim(
        "more_channels_more_disparity_direction",
        "By direction alone, the disparity of stage 4 grows with its channels",
        quantity="|AUC − 0.5| of stage 4, widest minus narrowest, direction",
        above=0.0,
        paper="Fig. 6 (our reading)",
        control="free of the length of the features",
    ),
    report.Claim(
        "accuracy_hardly_changes",
        "Test accuracy changes by less than 3 points",
        quantity="largest difference in test accuracy between two widths",
        below=0.03,
        paper="Tab. 3",
        control="paired: same seeds, same halves",
    ),
)
claims

# %% [markdown]
# ## One network, several widths of its last stage

# %%
schedule = Schedule(epochs, batch, optimizer, lr, nesterov=True, augment=Augment(augment) if augment else None)
probes = {
    count: Setup(
        Data(data, pixels),
        Halves(pool, seed=seed),
        Model(model, width, stem, stage4_channels=count if count != 8 * width else None),
        schedule,
        pairs,
        seed,
        precision,
    ).pairs()
    for count in channels
}
distances = {count: [pair.distance() for pair in probe] for count, probe in probes.items()}
signals = {count: [Signals(pair.whole) for pair in probe] for count, probe in probes.items()}

# %%
results = lab.realize(distances, signals, self_audit(probes[channels[0]]))

# %% [markdown]
# ## Disparity and accuracy against channels

# %%
parts = results[distances[channels[0]][0]].parts
read = {
    (count, measure): disparity.read([results[d] for d in distances[count]], measure) for count in channels for measure in ("euclidean", "direction")
}
profiles = {key: disparity.profile(*found) for key, found in read.items()}
report.profile(
    [
        {"part": part, "value": estimate, "channels": count, "measure": measure}
        for (count, measure), profile in profiles.items()
        for part, estimate in zip(parts, profile, strict=True)
    ],
    hue="channels",
    facet="measure",
    title="Direction, stage 4: AUC "
    + ", ".join(f"{profiles[count, 'direction'][parts.index('stage4')].value:.2f} at {count} channels" for count in channels),
    ylabel="AUC, unseen against seen by M_h1",
)

# %%
accuracy = {count: [float(results[s]["accuracy_test"]) for s in signals[count]] for count in channels}
means = [sum(each) / len(each) for each in accuracy.values()]
PAPER = {4: 0.5252, 8: 0.5458, 16: 0.5399, 32: 0.5503}  # Tab. 3, by channels of stage 4 over width
report.against_paper(
    [{"setting": f"{count} channels", "value": audit.over(accuracy[count]), "paper": PAPER.get(count // width)} for count in channels],
    title=f"Test accuracy varies by {max(means) - min(means):.3f} over the widths of stage 4",
    xlabel="test accuracy of M_all",
    source="Tab. 3 at the same ratio of channels to width, TinyImageNet",
)

# %%
last = parts.index("stage4")
report.table(
    [
        {
            "channels": count,
            "AUC of stage 4, Euclidean": profiles[count, "euclidean"][last],
            "AUC of stage 4, direction": profiles[count, "direction"][last],
            "test accuracy": audit.over(accuracy[count]),
            "paper": PAPER.get(count // width),
        }
        for count in channels
    ],
    paper="test accuracy of Tab. 3 at the same ratio of channels to width",
    caption=f"Over {pairs} pairs",
)

# %% [markdown]
# ## Verdicts

# %%
narrow, wide = min(channels), max(channels)
best, worst = (choose(channels, key=lambda c: audit.over(accuracy[c]).value) for choose in (max, min))
report.judge(
    claims,
    more_channels_more_disparity=disparity.versus(read[wide, "euclidean"], read[narrow, "euclidean"], last),
    more_channels_more_disparity_direction=disparity.versus(read[wide, "direction"], read[narrow, "direction"], last),
    accuracy_hardly_changes=audit.paired_difference(accuracy[best], accuracy[worst]),
    notes={
        "more_channels_more_disparity": "We think that in a wider stage unseen features are shorter still, which the Euclidean distance "
        f"takes for closeness; and a width of {width} is not the paper's 64"
    },
)

# %%
report.provenance(results)
