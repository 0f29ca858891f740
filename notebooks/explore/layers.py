# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Explore: disparity, side by side
#
# Two networks of one initialisation, one trained on all data (M_all), one on half of it (M_h1): in which layer do they differ more on the samples that only
# the first has seen? Here two such probes, A and B, stand side by side. Change a factor of either (architecture, width, stage 4, augmentation, ...), move
# the epoch, look at stages or at blocks; click a stage to see the samples on which the two networks differ most.
#
# The claims are judged elsewhere (`layers/fig01`, `fig03`, `fig06`, `fig10`, `own01`); nothing here is a verdict.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data)
pixels = 16  # side of the images, pixels, after area resize
models = ["resnet10", "resnet18"]  # architectures of A and of B, to begin with
width = 8  # channels of stage 1
pool = 600  # samples in D_all
epochs = 12  # epochs
moments = [2, 5, 10]  # earlier epochs to look at
batch = 64  # samples a step
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0
augment = 0  # padding of the random crop with flips, pixels; 0: none
alpha = 0.3  # RelaxLoss target loss, nats
pairs = 4  # pairs of networks, each with its own seed and its own half
seed = 1  # seed of halves, initialisations and orders
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import lab, report
from leak_atlas.explore import layers
from leak_atlas.explore.setting import Setting
from leak_atlas.recipe import Augment, CrossEntropy, Data, Halves, Model, RelaxLoss, Schedule, self_audit

# %% [markdown]
# ## A and B, to begin with
# They differ in their architecture; what both need is trained here, everything else when you ask for it.

# %%
schedule = Schedule(epochs, batch, optimizer, lr, nesterov=True, augment=Augment(augment) if augment else None)
first = Setting(Data(data, pixels), Halves(pool, seed=seed), Model(models[0], width), schedule, pairs, seed, precision)
second = first.but("architecture", models[-1])
relaxed = first.but("training", RelaxLoss(alpha))

# %%
results = lab.realize(first.steps(moments), second.steps(moments), relaxed.steps(), self_audit(first.probe()))

# %% [markdown]
# ## The instrument
# What is stored is shown at once. What is not stored says what it would cost, and is trained when you click.

# %%
defences = {"none": CrossEntropy(), "RelaxLoss": RelaxLoss(alpha)}
app = layers.explorer(first, second, moments, defences)
app

# %%
report.provenance(results)
