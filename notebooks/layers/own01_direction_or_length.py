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
# # Direction or length: which of the two carries the disparity?
#
# **Our own**, on the probe of PPTP, Fig. 1. The paper measures ‖p − q‖ between the features of M_all and M_h1. By the law of cosines its square is
# (‖p‖ − ‖q‖)² + 2‖p‖‖q‖(1 − cos): a network that has not seen a sample may send it *elsewhere* (direction), and it may also be less sure of it and answer
# with *shorter* features (length). The first makes the distance larger, the second smaller.
#
# **We say** that both effects exist, that they have opposite signs, and that the paper's distance therefore understates the disparity.
#
# **It would be wrong if** unseen samples had features as long as seen ones, or if the Euclidean distance told the halves apart as well as the direction.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (python -m lib.data)
pixels = 16  # side of the images, pixels, after area resize
model = "resnet10"  # architecture
width = 8  # channels of stage 1
stem = "conv3"  # first layer
pool = 600  # samples in D_all
epochs = 12  # epochs
batch = 64  # samples a step
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0
augment = 0  # padding of the random crop with flips, pixels; 0: none
pairs = 12  # pairs of networks, each with its own seed and its own half
seed = 1  # seed of halves, initialisations and orders
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
import numpy as np

from lib import audit, lab, report
from lib.localization import disparity
from lib.recipe import Augment, Data, Halves, Model, Schedule, Setup, seed_floors, self_audit

claims = report.claims(
    report.Claim(
        "unseen_points_elsewhere",
        "In stage 4, features of unseen samples point elsewhere",
        quantity="AUC of 1 − cosine, stage 4",
        above=0.5,
        paper="our own",
        control="two seeds on the same data",
    ),
    report.Claim(
        "unseen_is_shorter",
        "In stage 4, features of unseen samples are shorter",
        quantity="AUC of the feature norm in M_h1, stage 4",
        below=0.5,
        paper="our own",
        control="two seeds on the same data",
    ),
    report.Claim(
        "euclidean_understates",
        "The paper's distance understates the disparity",
        quantity="|AUC − 0.5| of direction minus that of the Euclidean distance, stage 4",
        above=0.0,
        paper="our own",
        control="paired over pairs of models",
    ),
)
claims

# %%
schedule = Schedule(epochs, batch, optimizer, lr, nesterov=True, augment=Augment(augment) if augment else None)
probe = Setup(Data(data, pixels), Halves(pool, seed=seed), Model(model, width, stem), schedule, pairs, seed, precision).pairs()
distances = [pair.distance() for pair in probe]
floor = seed_floors(probe)

# %%
results = lab.realize(distances, floor, self_audit(probe))

# %% [markdown]
# ## Three readings of one pair of features

# %%
parts = results[distances[0]].parts
names = {"euclidean": "Euclidean (the paper's)", "direction": "direction (1 − cosine)", "length": "length in M_h1"}
read = {measure: disparity.read([results[d] for d in distances], measure) for measure in names}
profiles = {measure: disparity.profile(*found) for measure, found in read.items()}
control = disparity.floor(disparity.measured([results[f] for f in floor], "direction"), read["direction"][1])
report.profile(
    [{"part": p, "value": e, "measure": names[m]} for m in names for p, e in zip(parts, profiles[m], strict=True)],
    hue="measure",
    floor=[{"part": p, "value": e} for p, e in zip(parts, control, strict=True)],
    title="Direction and length pull apart in stage 4; the Euclidean distance stands between them"
    if profiles["direction"][parts.index("stage4")].low > 0.5 > profiles["length"][parts.index("stage4")].high
    else "The disparity of each stage, read three ways",
    ylabel="AUC, unseen against seen by M_h1",
)

# %% [markdown]
# ## Who carries the gap
# The gap in mean squared distance between the halves, split exactly into what lengths, scale and direction contribute (relative to the mean squared distance).

# %%
shares = [disparity.carriers(found["direction"], found["length_a"], found["length_b"], found["seen_b"]) for found in (results[d] for d in distances)]
carriers = {name: [audit.over(column) for column in np.stack([s[name] for s in shares]).T] for name in shares[0]}
shown = ("direction", "scale", "length")
report.profile(
    [{"part": p, "value": e, "effect": name} for name in shown for p, e in zip(parts, carriers[name], strict=True)],
    hue="effect",
    null=0.0,
    title="What each effect adds to the gap between the halves",
    ylabel="share of the mean squared distance",
)

# %%
report.table([{"part": part} | {f"AUC, {names[m]}": profiles[m][i] for m in names} for i, part in enumerate(parts)], caption=f"Over {pairs} pairs")

# %% [markdown]
# ## Verdicts

# %%
last = parts.index("stage4")
report.judge(
    claims,
    unseen_points_elsewhere=profiles["direction"][last],
    unseen_is_shorter=profiles["length"][last],
    euclidean_understates=disparity.versus(read["direction"], read["euclidean"], last),
)

# %%
report.provenance(results)
