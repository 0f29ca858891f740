# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Explore: which weights are rewound
#
# Which weights does a score select, and what does rewinding them do to accuracy and leakage? CWRF
# scores each weight of a network. The share *r* with the highest scores is *rewound*: set back to
# its initial values and frozen. The other weights are trained on with RelaxLoss.
#
# A and B are two scores; in JupyterLab you choose them. The maps show which stages (or layer types,
# or tensors) each score selects at each *r*: the selected share divided by *r*, so that 1 is
# chance. A number in brackets could be chance: its 95 % interval contains 1. The charts below show
# test accuracy and leakage at those *r* that are trained. The control is the same training with
# nothing rewound. The attack is LiRA; its shadow models go through the same steps.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data)
pixels = 16  # side of the images, pixels, after area resize
model = "resnet10"  # architecture
width = 8  # channels of stage 1
stem = "conv3"  # first layer
pool = 600  # samples from which each model draws half
dev = 300  # samples outside the pool, not used here
reference = 300  # non-members outside the pool, for the score alone
test = 600  # test samples
rates = [0.001, 0.005, 0.02, 0.05, 0.2]  # r, shares of rewound weights; trained here
rate = 0.05  # r to begin with
balances = [0.1, 0.5, 0.9]  # lambda of the vulnerability score
compared = ["vulnerability, λ = 0.5", "magnitude"]  # scores A and B, to begin with
score_steps = 30  # updates of a score
alpha = 0.3  # RelaxLoss target loss, nats
epochs = 12  # epochs from scratch
retrain_epochs = 5  # epochs of the training after the rewind
batch = 64  # samples a step, and a step of a score
lr = 0.005  # learning rate of Adam, cosine to 0, at the start of each training
shadows = 10  # models in complement pairs; each is attacked by all but its complement
seed = 1  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import lab, report
from leak_atlas.explore.instrument import Instrument
from leak_atlas.explore.weights import Weights
from leak_atlas.recipe import (
    RMIA,
    SNIP,
    Change,
    CrossEntropy,
    Data,
    Learnability,
    LiRA,
    Magnitude,
    Model,
    Random,
    RandomHalves,
    RelaxLoss,
    Schedule,
    Setup,
    Threshold,
    Vulnerability,
    self_audit,
)

# %%
long, short = (Schedule(n, batch, "adam", lr=lr) for n in (epochs, retrain_epochs))
design = RandomHalves(pool, test=test, seed=seed, dev=dev, reference=reference)
ordinary = Setup(
    Data(data, pixels), design, Model(model, width, stem), long, shadows, seed, precision
).trained()
criteria = {
    f"vulnerability, λ = {balance:g}": Vulnerability(weight=balance, steps=score_steps, batch=batch)
    for balance in balances
}
criteria |= {
    "learnability": Learnability(steps=score_steps, batch=batch),
    "magnitude": Magnitude(),
    "change |w − w0|": Change(),
}
criteria |= {"SNIP": SNIP(), "chance": Random(seed)}
defences = {"RelaxLoss": RelaxLoss(alpha), "cross-entropy": CrossEntropy()}
attackers = {"LiRA": LiRA(), "RMIA": RMIA(), "Conf": Threshold()}
study = Weights(ordinary, short, defences, criteria, attackers, compared, rate)

# %%
results = lab.realize(study.beforehand(rates), self_audit(ordinary))

# %%
app = Instrument(study)
app

# %% [markdown]
# **Setup.** Every network, and every shadow model, scores its own weights. Scores A and B are
# trained here at some *r*; other scores are trained when you choose them in JupyterLab.
#
# **Limits.** An interval is over the networks, which share their data and are each other's shadow
# models. Other data sets or architectures may differ. A score that selects a small layer whole
# reaches large numbers: the stem has few weights. Rewinding helps only if it is more accurate than
# RelaxLoss alone at the same attack AUC. Nothing here is a verdict: the claims are judged in the
# pages of `weights/`.

# %%
report.provenance(results)
