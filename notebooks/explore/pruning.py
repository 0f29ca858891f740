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
# A network is trained, a share of its weights is set to zero for good, and the rest is trained on, with or without a defence (SAMIA and PPB). Who is exposed by
# that, and what has gone? Choose a pruner, how much it removes, a defence and an attack: the dense network, the pruned one and the defended one stand side by side.
# Two of the pruners are controls, which remove at random.
#
# The claims are judged elsewhere (`pruning/fig07_fig08` and its neighbours); nothing here is a verdict.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data)
pixels = 16  # side of the images, pixels, after area resize
model = "resnet10"  # architecture
width = 16  # channels of stage 1
stem = "conv3-pool"  # first layer
pool = 1200  # samples of train and test part joined: half the victims', half the attacker's
dev = 60  # samples of each half for early stopping; the rest is half member, half non-member
victims = 10  # networks that split the victims' half
shadows = 5  # networks that split the attacker's half
sparsities = [0.6, 0.7, 0.9]  # shares that are removed beforehand
pruner = "L1 unstructured"  # to begin with
sparsity = 0.6  # to begin with, one of those
ppb = [1.0, 4.0, 16.0]  # weights of PPB to choose from; the one in the middle to begin with
adv = 2.0  # weight of ADV
reference = 300  # non-members outside the pool, for ADV alone
epochs = 12  # most epochs of the dense network
retrain_epochs = 6  # most epochs after pruning
patience = None  # epochs without a better dev accuracy before training stops; None: all are trained
batch = 32  # samples a step
lr = 0.002  # learning rate of Adam, constant
attack_epochs = 10  # of SAMIA's network
attack_optimizer = "adam"  # its optimizer
attack_lr = 0.001  # its learning rate
seed = 1  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import lab, report
from leak_atlas.explore import pruning
from leak_atlas.explore.pruning import Pruning
from leak_atlas.recipe import PPB, SAMIA, AdversarialRegularization, CrossEntropy, Data, LiRA, Model, PruningStudy, Schedule, Threshold

# %% [markdown]
# ## The networks, and how they are attacked
# Every shadow walks its victims' whole chain, its defence included. Four pruners are trained at some sparsities without a defence, one with PPB; every other
# choice when you ask for it. LiRA is the offline one: nobody has trained on a victim's samples.

# %%
networks = PruningStudy(
    Data(data, pixels, joined=True),
    Model(model, width, stem),
    Schedule(epochs, batch, "adam", lr, decay="constant", patience=patience),
    fine_tuning=retrain_epochs,
    pool=pool,
    dev=dev,
    targets=victims,
    shadows=shadows,
    seed=seed,
    precision=precision,
)
defences = {"Base": CrossEntropy()} | {f"PPB, λ = {weight:g}": PPB(weight) for weight in ppb} | {f"ADV, α = {adv:g}": AdversarialRegularization(adv)}
attackers = {"Conf": Threshold(), "LiRA": LiRA("offline_cdf"), "SAMIA": SAMIA(epochs=attack_epochs, lr=attack_lr, optimizer=attack_optimizer)}
study = Pruning(networks.setup, networks.tuning, victims, defences, attackers, reference)
defended = f"PPB, λ = {sorted(ppb)[len(ppb) // 2]:g}"

# %%
others = "L1 structured", "L2 structured", "slimming"
given = [study.steps(one, sparsities, ["Base"], attack) for one in (pruner, *others) for attack in ("Conf", "LiRA")]
results = lab.realize(given, study.steps(pruner, [sparsity], [defended], "Conf"))

# %% [markdown]
# ## Without a click
# One choice, as a figure that needs no kernel. In the plane of accuracy and leak the other sparsities of the same pruner lie along a line; what is looked at
# stands in a ring. Below: the share of each tensor that is gone, mean over the victims, along the network.

# %%
app = pruning.explorer(study, pruner, sparsity, defended, "Conf", sparsities)
app.figure

# %% [markdown]
# The same with slimming, which ranks the channels of all layers together, and under LiRA.

# %%
app.choose(pruner="slimming", defence="Base", attack="LiRA").figure

# %% [markdown]
# ## With a slider
# What is stored is shown at once. What is not says what it would cost, and is trained when you click.

# %%
app.choose(pruner=pruner, defence=defended, attack="Conf")

# %%
report.provenance(results)
