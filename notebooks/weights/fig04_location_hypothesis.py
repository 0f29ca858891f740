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
# # Is it where a weight sits, or what it is worth?
#
# **CWRF, Fig. 4** (section 4.4). **M1** is dense and trained. **M2** keeps the 15 % of M1's weights that matter most by the first-order Taylor score, puts
# them back to their initial values and trains them by M1's schedule. **M3** keeps the same weights as M1 has them, and is not trained again.
#
# **The paper says** that M2 ends almost as accurate as M1 and far above M3, and infers that what a weight can learn is decided by its position and not by its
# value: so the important weights may be rewound, if others are trained for them.
#
# **It would be wrong if** M2 fell short of M1. Even if it does not, M2 alone does not tell position from value: it has M1's positions *and* its own
# initial values. That takes two more networks, trained as long. **Another initialisation** under M2's mask ought to do as well, if values are nothing.
# **Other weights** from M2's initialisation, as many in each layer but drawn at random, ought to do worse, if position is all. If they do not, M1 has told
# how many weights each layer needs, and no more.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (python -m lib.data); the paper: lost
pixels = 16  # side of the images, pixels, after area resize (paper: lost)
model = "resnet10"  # architecture (paper: lost)
width = 8  # channels of stage 1 (paper: lost)
stem = "conv3"  # first layer, as the paper has it
pool = 600  # samples from which each model draws half (paper: lost)
dev = 300  # samples outside the pool, here unused: the networks are those of Tab. 3
reference = 300  # samples set aside, for the scores of the other notebooks of this folder
test = 600  # test samples (paper: all)
sparsity = 0.85  # share of the weights that the mask removes (paper: 0.85)
score_steps = 30  # updates of the score (paper: lost; "tens")
epochs = 12  # epochs of M1, and of each network trained under a mask (paper: lost)
moments = [2, 5]  # earlier epochs at which the test samples are looked at
batch = 64  # samples a step, and a step of the score (paper: lost)
lr = 0.005  # learning rate of Adam, cosine to 0 (paper: lost)
models = 10  # trained networks of each kind, each with its own members and initialisation (paper: one?)
seed = 1  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from lib import audit, lab, report
from lib.localization.score_maps import maps, shares
from lib.recipe import Data, Learnability, Model, RandomHalves, Schedule, Setup, self_audit
from lib.selection import highest

near, far = 0.02, 0.2  # of accuracy: a smaller difference is none; a larger one is "far"
figure, ours = "Fig. 4", {"paper": "our control, on section 4.4"}
claims = report.claims(
    report.Claim("rewound_recovers", "M2 is as accurate as M1", "test accuracy, M2 minus M1", above=-near, paper=figure, control="equal epochs; paired over models"),
    report.Claim("training_is_needed", "M2 is far above M3", "test accuracy, M2 minus M3", above=far, paper=figure, control="the same mask"),
    report.Claim("any_values_do", "Another initialisation does as well under the mask", "test accuracy, another initialisation minus M2", above=-near,
        control="the same mask and epochs; paired over models", **ours),
    report.Claim("these_weights_matter", "Other weights, as many in each layer, do worse", "test accuracy, M2 minus other weights", above=near,
        control="the same initialisation, epochs and shares of the layers; paired", **ours),
)  # fmt: skip
claims

# %% [markdown]
# ## Five networks of each model

# %%
schedule = Schedule(epochs, batch, "adam", lr=lr)
design = RandomHalves(pool, test=test, seed=seed, dev=dev, reference=reference)
m1 = Setup(Data(data, pixels), design, Model(model, width, stem), schedule, models, seed, precision).trained()
by = m1.score(Learnability(steps=score_steps, batch=batch))
m2, m3 = m1.at("init").prune(sparsity, by).train(schedule), m1.prune(sparsity, by)
networks = {"M1, dense": m1, "M2, rewound and retrained": m2, "M3, no retraining": m3}
networks["another initialisation"] = m1.rewind("stem", fresh=True).prune(sparsity, by).train(schedule)
networks["other weights"] = m1.at("init").prune(sparsity, [score.shuffle(seed) for score in by]).train(schedule)
signals = {(name, epochs): each.signals() for name, each in networks.items()}
signals |= {(name, epoch): networks[name].at(epoch).signals() for name in list(networks)[:2] for epoch in moments}

# %%
results = lab.realize(signals, by, self_audit(m1))

# %% [markdown]
# ## Accuracy over the epochs, mean over the models with 95 % intervals
# Where M1 and M2 were looked at; M3, which is not trained, and our two controls at the end.

# %%
sides = {"members": "accuracy_member", "test samples": "accuracy_test"}
accuracy = {(*key, side): [float(results[s][name]) for s in each] for key, each in signals.items() for side, name in sides.items()}
last = {name: accuracy[name, epochs, "test samples"] for name in networks}


def minus(one, other):
    return audit.paired_difference(last[one], last[other])


m1_, m2_, m3_, fresh, others = networks
recovers, wrecked, values, places = minus(m2_, m1_), minus(m2_, m3_), minus(fresh, m2_), minus(m2_, others)
by_m1, by_m3 = (f"{100 * found.value:+.1f}".replace("-", "−") for found in (recovers, wrecked))
rows = [{"network": n, "epoch": str(e), "of": side, "value": audit.over(accuracy[n, e, side])} for n, e in signals for side in sides]
rows.sort(key=lambda row: int(row["epoch"]))
title = f"M2's test accuracy against M1's: {by_m1} points; against M3's: {by_m3} points"
report.profile(rows, "epoch", hue="network", facet="of", null=None, xlabel="epoch", ylabel="accuracy", title=title)

# %% [markdown]
# ## Position or value?

# %%
against = {name: minus(name, m2_) for name in networks if name != m2_}
report.table(
    [{"network": name, "test accuracy": audit.over(last[name]), "minus M2": against.get(name)} for name in networks],
    caption=f"After the last epoch, over {models} models; {100 * sparsity:g} % of the weights removed in all but M1. The paper's curves have lost their numbers",
)

# %% [markdown]
# ## Where the mask is
# Of each layer's weights, the share that M1's score keeps. "Other weights" keeps the same shares.

# %%
layers = {}
for score in by:
    for each in shares(highest(maps(results[score]), 1 - sparsity)):
        layers.setdefault(each.of.removesuffix(".weight"), []).append(each.share)
layers = {name: found for name, found in layers.items() if "norm" not in name}
kept = [{"layer": name, "value": audit.over(found, bounds=(0, 1))} for name, found in layers.items()]
span = [f"{100 * end(row['value'].value for row in kept):.1f} %" for end in (min, max)]
report.against_paper(
    kept, "layer", xlabel="share of the layer's weights that are kept", title=f"The mask keeps {span[0]} of one layer, {span[1]} of another"
)

# %% [markdown]
# ## Verdicts

# %%
report.judge(
    claims,
    rewound_recovers=recovers,
    training_is_needed=wrecked,
    any_values_do=values,
    these_weights_matter=places,
    notes={
        "rewound_recovers": "In `quick`, the network is thin: few weights are left",
        "any_values_do": "Where it does worse, initial values count too, as the lottery ticket hypothesis has it",
        "these_weights_matter": "Where they do as well, the score has found how many weights each layer needs, not which ones",
    },
)

# %% [markdown]
# **Caveat.** Equal accuracy of M1 and M2 speaks of what *can* be learnt at these positions, not of the leak. One draw of other weights for each model.
# BatchNorm's statistics of M3 are those of the dense network, so not all that it loses is for want of weights; biases are rewound in M2 and never pruned.

# %%
report.provenance(results)
