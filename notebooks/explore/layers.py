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
# # Explore: disparity, layer by layer
#
# Two networks of one initialisation, one trained on all data (M_all), one on half of it (M_h1): in which layer do they differ more on the samples that only
# the first has seen? Choose an architecture, a training, an epoch, stages or blocks, and the measure; then pick the layer whose distributions are drawn.
# The last slider asks the practical question: if everything before this stage is held and the rest retrained, how much of the network is that?
#
# The claims are judged elsewhere (`layers/fig01`, `fig03`, `fig10`, `own01`); nothing here is a verdict.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (python -m lib.data)
pixels = 16  # side of the images, pixels, after area resize
models = ["resnet10", "resnet18"]  # architectures; RelaxLoss is trained for the first alone
width = 8  # channels of stage 1
pool = 1000  # samples in D_all
epochs = 20  # epochs
moments = [2, 5, 10]  # earlier epochs to look at
batch = 64  # samples a step
lr = 0.1  # learning rate, cosine to 0
alpha = 0.3  # RelaxLoss target loss, nats
pairs = 4  # pairs of networks, each with its own seed and its own half
seed = 0  # seed of halves, initialisations and orders
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from lib import lab, report
from lib.explore import layers
from lib.recipe import Anatomy, Data, Halves, Model, RelaxLoss, Schedule, probe_pairs, seed_floors, self_audit

# %% [markdown]
# ## What there is to look at

# %%
schedule = Schedule(epochs, batch, lr=lr, nesterov=True)


def trained(model, objective=None):
    halves = Halves(pool, seed=seed)
    return probe_pairs(Data(data, pixels), halves, Model(model, width), schedule, objective, pairs=pairs, seed=seed, precision=precision)


plain = {model: trained(model) for model in models}
chosen = {
    (model, "cross-entropy", f"epoch {when:02d}"): [pair.at(when) for pair in plain[model]]
    for model in models
    for when in [epochs, *sorted(moments, reverse=True)]
}
chosen[models[0], "RelaxLoss", f"epoch {epochs:02d}"] = trained(models[0], RelaxLoss(alpha))
asked = {case: [pair.distance(parts) for pair in each for parts in ("stages", "blocks")] for case, each in chosen.items()}
floors = {(model, "cross-entropy", f"epoch {epochs:02d}"): seed_floors(plain[model]) for model in models}
anatomy = {model: Anatomy(Data(data, pixels), Model(model, width)) for model in models}

# %%
results = lab.realize(asked, floors, anatomy, self_audit(plain[models[0]]))

# %% [markdown]
# ## Without a slider
# The last epoch of the first architecture, as a figure that needs no kernel.

# %%
shelves = [{case: [results[step] for step in steps] for case, steps in each.items()} for each in (asked, floors)]
counts = {model: results[step] for model, step in anatomy.items()}
layers.static(shelves[0], counts, floors=shelves[1])

# %% [markdown]
# ## With sliders

# %%
layers.explorer(shelves[0], counts, floors=shelves[1])

# %%
report.provenance(results)
