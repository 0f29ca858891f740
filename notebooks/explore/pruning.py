# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Explore: what pruning removes, and whom it exposes
#
# A network is trained, a share of its weights is set to zero for good, and the rest is trained on,
# with or without a defence (papers on SAMIA and PPB). What is removed, and who is exposed by that?
# A member is *exposed* if its attack score exceeds those of non-members.
#
# In JupyterLab, choose a pruner and a defence for A and for B, and an attack. The upper maps show
# the attack's AUC in each class, the lower maps the share of each stage that is removed. Click a
# class or a picture. Two of the pruners are controls: they remove weights or filters at random.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data)
pixels = 16  # side of the images, pixels, after area resize
model = "resnet10"  # architecture
width = 16  # channels of stage 1
stem = "conv3-pool"  # first layer
pool = 1200  # samples of train and test part joined: half the targets', half the attacker's
dev = 60  # samples of each half set apart; the rest is half member, half non-member
targets = 10  # networks that split the targets' half
shadows = 5  # networks that split the attacker's half
sparsities = [0.6, 0.7, 0.9]  # shares of the weights that are removed; trained here
pruner = "L1 unstructured"  # of A, to begin with
other = "slimming"  # of B, to begin with
sparsity = 0.6  # to begin with; one of `sparsities`
ppb = [1.0, 4.0, 16.0]  # weights of PPB to choose from; the one in the middle to begin with
adv = 2.0  # weight of ADV
reference = 300  # non-members outside the pool, for ADV alone
epochs = 12  # most epochs of the dense network
retrain_epochs = 6  # most epochs after pruning
patience = None  # epochs without a better dev accuracy before training stops; None: all are trained
batch = 32  # samples a step
lr = 0.002  # learning rate of Adam, constant
attack_epochs = 10  # of SAMIA's attack network
attack_optimizer = "adam"  # its optimizer
attack_lr = 0.001  # its learning rate
seed = 1  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from itertools import product

from leak_atlas import lab, report
from leak_atlas.explore.instrument import Instrument
from leak_atlas.explore.pruning import Pruning
from leak_atlas.recipe import (
    PPB,
    SAMIA,
    AdversarialRegularization,
    CrossEntropy,
    Data,
    LiRA,
    Model,
    PruningStudy,
    Schedule,
    Threshold,
)

# %%
networks = PruningStudy(
    Data(data, pixels, joined=True),
    Model(model, width, stem),
    Schedule(epochs, batch, "adam", lr, decay="constant", patience=patience),
    fine_tuning=retrain_epochs,
    pool=pool,
    dev=dev,
    targets=targets,
    shadows=shadows,
    seed=seed,
    precision=precision,
)
defences = (
    {"Base": CrossEntropy()}
    | {f"PPB, λ = {weight:g}": PPB(weight) for weight in ppb}
    | {f"ADV, α = {adv:g}": AdversarialRegularization(adv)}
)
attackers = {
    "Conf": Threshold(),
    "LiRA": LiRA("offline_cdf"),
    "SAMIA": SAMIA(epochs=attack_epochs, lr=attack_lr, optimizer=attack_optimizer),
}
study = Pruning(
    networks.setup,
    networks.tuning,
    targets,
    defences,
    attackers,
    [pruner, other],
    sparsity,
    reference,
)

# %%
others = "L1 structured", "L2 structured", "slimming"
given = []
for one, attack in product((pruner, *others), ("Conf", "LiRA")):
    given.append(study.beforehand(one, sparsities, ["Base"], attack))
defended = f"PPB, λ = {sorted(ppb)[len(ppb) // 2]:g}"
results = lab.realize(given, study.beforehand(pruner, [sparsity], [defended], "Conf"))

# %%
app = Instrument(study)
app

# %% [markdown]
# **Setup.** Every shadow model goes through the same steps as its targets, its defence included.
# Four pruners are trained here without a defence, one of them with PPB too. Everything else is
# trained when you ask for it. LiRA is offline: no shadow model has trained on a target's samples.
#
# **Limits.** An interval is over the targets, which share one pool. A class has few members in each
# target, so the AUC of the most exposed class is high partly by chance. Choose another attack to
# see whether the same class is exposed. The samples shown are the extremes of many. A network that
# pruning destroys exposes nobody: read its test accuracy first. Nothing here is a verdict: the
# claims are judged in the pages of `pruning/`.

# %%
report.provenance(results)
