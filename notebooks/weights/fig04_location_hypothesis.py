# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Do networks train better with a mask of important weights, whatever their initial values?
#
# **The paper.** Fang & Kim (2026), section 4.4, Fig. 4: "the importance of weights stems from their
# locations rather than their values" (abstract).
#
# **Setup.** *M1* is a dense network. A mask keeps the 15 % of its weights with the highest
# first-order Taylor importance (|gradient × weight|) after training. It sets the others to zero.
# *M2* takes M1's initial values, applies the mask, and trains like M1. *M3* takes M1's trained
# values, applies the mask, and is not trained.
#
# **Controls.** Test accuracy after the last epoch decides.
#
# 1. *Random mask*: M2 with a random mask that keeps the same number of weights in each layer. The
#    important locations help if M2 is significantly more accurate.
# 2. *Other initial values*: M2 with its own mask and another initialisation. The initial values do
#    not matter if this costs less than two points.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); paper: lost, our copy lacks it
pixels = 16  # side of the images, pixels, after area resize (paper: lost)
model = "resnet10"  # architecture (paper: lost)
width = 8  # channels of stage 1 (paper: lost)
pool = 600  # samples from which each network draws half (paper: lost)
dev = 300  # samples outside the pool; unused here, kept so that pages share networks
reference = 300  # samples outside the pool, for the scores of the other pages
test = 600  # test samples (paper: not stated)
sparsity = 0.85  # share of the weights that the mask removes (paper: 0.85)
score_steps = 30  # updates over which importance is summed (paper: lost; "tens")
score_batch = 32  # members in each of these updates (paper: lost)
epochs = 12  # epochs of M1, and of each network trained under a mask (paper: lost)
moments = [2, 5, 8]  # earlier epochs at which accuracy is shown
batch = 64  # samples a step (paper: lost)
lr = 0.005  # learning rate of Adam, cosine to 0 (paper: lost)
runs = 10  # networks of each kind, each with its own members (paper: three runs)
learnt = 0.6  # required test accuracy of the dense network (ours)
seed = 101  # evaluation seed: of members, initialisation and order of batches
pilots = [0, 1]  # seeds on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import lab, report
from leak_atlas.recipe import Data, Learnability, Model, RewindStudy, Schedule, self_audit

quote = "the importance of weights stems from their locations rather than their values"
smallest_effect = 0.04  # smallest effect of interest; test accuracy varies more under a mask
claims = report.claims(
    report.Claim(
        "as_accurate",
        "A network trained under its mask (M2) loses less than two points of accuracy to the dense "
        "network (M1)",
        quantity="test accuracy of M2 minus that of M1",
        above=-0.02,
        margin=smallest_effect,
        paper="Fig. 4",
        quote="the almost same final accuracy of M1 and M2",
        section="4.4",
        control="the same number of epochs; paired over networks",
    ),
    report.Claim(
        "mask_alone",
        "A masked network without training (M3) is less accurate than the dense network (M1)",
        quantity="test accuracy of M3 minus that of M1",
        below=0.0,
        margin=smallest_effect,
        paper="Fig. 4",
        quote="the accuracy drop of M3 (from M1)",
        section="4.4",
        control="the same mask as M2",
    ),
    report.Claim(
        "locations",
        "After the last epoch, networks with a mask of important weights are more accurate than "
        "networks with a random mask",
        fails="After the last epoch, networks with a mask of important weights are less accurate "
        "than networks with a random mask",
        quantity="test accuracy of M2 (masked, then trained): with the mask of important weights "
        "minus with a random mask",
        above=0.0,
        margin=smallest_effect,
        ours="our control, after section 4.4",
        control="the same initial values, epochs and number of weights in each layer; paired",
        headline=True,
    ),
    report.Claim(
        "values",
        "Other initial values for the same mask cost less than two points of accuracy",
        fails="Other initial values for the same mask cost over two points of accuracy",
        quantity="test accuracy of M2 (masked, then trained): with other initial values minus with "
        "M1's initial values",
        above=-0.02,
        margin=smallest_effect,
        paper="abstract",
        quote=quote,
        section="abstract",
        control="the same mask and epochs; paired over networks",
        headline=True,
    ),
    regime={"dense member accuracy": 0.95, "dense test accuracy": learnt},
)
claims

# %%
study = RewindStudy(
    Data(data, pixels),
    Model(model, width),
    Schedule(epochs, batch, "adam", lr=lr),
    retraining=epochs,
    criterion=Learnability(score_steps, score_batch),
    pool=pool,
    test=test,
    models=runs,
    dev=dev,
    reference=reference,
    seed=seed,
    precision=precision,
)
m1 = "M1: dense network"
m2 = "M2: mask, M1's initial values"
m3 = "M3: mask, M1's trained values, not trained"
m2_random_mask = "M2 with a random mask"
m2_other_values = "M2 with other initial values"

dense = study.ordinary
initial = dense.at("init")
other_values = dense.rewind("stem", fresh=True)  # all weights, from the stem on, get new values
mask = {"sparsity": sparsity, "by": study.scores}
random_mask = {"sparsity": sparsity, "by": study.random_scores}
networks = {
    m1: dense,
    m2: initial.prune(**mask).train(study.schedule),
    m2_random_mask: initial.prune(**random_mask).train(study.schedule),
    m2_other_values: other_values.prune(**mask).train(study.schedule),
}
untrained = {m3: dense.prune(**mask)}

# %%
checkpoints_of = {name: moments for name in networks}
comparison = lab.compare(
    networks | untrained, {}, checkpoints=checkpoints_of, also=self_audit(study.ordinary)
)

# %% [markdown]
# ## Accuracy during training (Fig. 4)
# Each M1 gives four masked networks: M2, its two controls and M3. The line of M3 is flat. In
# `quick`, M2 is ahead of the random mask only in early epochs.

# %%
rows = []
for name in networks:
    for epoch, variant in zip(
        [*moments, epochs], [*comparison.checkpoints[name], name], strict=True
    ):
        rows.append({"network": name, "epoch": epoch, "value": comparison.accuracy(variant)})
for epoch in [*moments, epochs]:
    rows.append({"network": m3, "epoch": epoch, "value": comparison.accuracy(m3)})
location_difference = comparison.accuracy_difference(m2, m2_random_mask)
values_difference = comparison.accuracy_difference(m2_other_values, m2)
words = "significantly raises", "significantly lowers", "does not significantly change"
effect = report.effect(location_difference, *words)
report.curves(
    rows,
    "epoch",
    hue="network",
    title=f"A mask of important weights {effect} the final test accuracy, compared with a random one",
    ylabel="test accuracy",
)

# %%
rows = []
for name in [*networks, m3]:
    row = {"network": name}
    row["member accuracy"] = comparison.estimate(name, "", "member accuracy")
    row["test accuracy"] = comparison.accuracy(name)
    row["test accuracy minus that of M2"] = None
    if name != m2:
        row["test accuracy minus that of M2"] = comparison.accuracy_difference(name, m2)
    rows.append(row)
report.table(
    rows,
    caption=f"After the last epoch; mean over {runs} networks",
    fold="All networks: accuracy",
)

# %% [markdown]
# ## Verdicts

# %%
mask_lowers_accuracy = {"the mask lowers M1's accuracy": comparison.accuracy_difference(m1, m3)}
report.judge(
    claims,
    as_accurate=comparison.accuracy_difference(m2, m1),
    mask_alone=comparison.accuracy_difference(m3, m1),
    locations=location_difference,
    values=values_difference,
    checks={name: mask_lowers_accuracy for name in ("as_accurate", "locations", "values")},
    regime={
        "dense member accuracy": comparison.estimate(m1, "", "member accuracy"),
        "dense test accuracy": comparison.accuracy(m1),
    },
)

# %% [markdown]
# **Limits.** The page, like the paper's Fig. 4, is about accuracy and not about leakage. The
# network is narrow: in a wide one the mask may cost less accuracy. Each network has one random
# mask. Masked networks fit fewer members than M1 (see the table): more epochs may change these
# differences. M3 keeps the BatchNorm statistics of M1; biases are never pruned.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
