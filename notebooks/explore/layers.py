# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Explore: in which stage, and when?
#
# The probe of PPTP (Fang & Kim 2026) trains one network on all samples (M_all) and one on half of
# them (M_h1). In which stage do their features differ more on samples that only M_all has seen than
# on samples that both have seen? Each cell below answers with an AUC; 0.5 is chance. A number in
# brackets could be chance: its 95 % interval contains 0.5. Click a cell or a picture, or play the
# epochs. A and B are two probes; in JupyterLab you choose them.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data)
pixels = 16  # side of the images, pixels, after area resize
models = ["resnet10", "resnet18"]  # architectures of A and of B, to begin with
width = 8  # channels of stage 1
pool = 600  # samples that M_all trains on
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
from leak_atlas.explore.instrument import Instrument
from leak_atlas.explore.layers import Layers
from leak_atlas.explore.setting import Setting
from leak_atlas.recipe import (
    Augment,
    CrossEntropy,
    Data,
    Halves,
    Model,
    RelaxLoss,
    Schedule,
    self_audit,
)

# %%
schedule = Schedule(
    epochs, batch, optimizer, lr, nesterov=True, augment=Augment(augment) if augment else None
)
first = Setting(
    Data(data, pixels),
    Halves(pool, seed=seed),
    Model(models[0], width),
    schedule,
    pairs,
    seed,
    precision,
)
second = first.but("architecture", models[-1])
relaxed = first.but("training", RelaxLoss(alpha))

# %%
results = lab.realize(
    first.steps(moments), second.steps(moments), relaxed.steps(), self_audit(first.probe())
)

# %%
defences = {"none": CrossEntropy(), "RelaxLoss": RelaxLoss(alpha)}
app = Instrument(Layers(first, second, moments, defences))
app

# %% [markdown]
# **Limits.** A few pairs of networks decide nothing. The claims are judged in `layers/fig01`,
# `fig03`, `fig06`, `fig10` and `own01`. A stage that differs need not memorize: in `layers/own03`,
# untrained stage 4 differs more than the stages that memorize.

# %%
report.provenance(results)
