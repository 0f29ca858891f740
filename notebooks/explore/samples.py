# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Explore: which samples are remembered, and what a window over them does
#
# A network is pruned in rounds, and trained on after each (WeMem). Base trains on all members in every epoch; RSW on those in a window that slides over the
# members of each class, ordered by their memorization scores; SWMR also holds down the weights on those with the highest scores. Who is in the window, how often
# is each rank visited in all, and who is exposed before and after? Choose a window and its order, move through the epochs of a round, pick a sample: its score,
# its neighbours, its exposure. One of the orders is the control: the same scores, permuted out at random.
#
# The claims are judged elsewhere (`samples/`); nothing here is a verdict.

# %% tags=["parameters"]
data = ["digits-bits", "fashion-mnist-small"]  # data sets (leak-atlas data); of each list below an entry is theirs
pixels = [0, 16]  # side of the images, pixels, after area resize; 0: as they are
model = ["fc", "resnet10"]  # architectures
width = [256, 8]  # units of a layer (published), or channels of stage 1
stem = ["conv3", "conv3-pool"]  # first layer of a convolutional network
pool = [1740, 1200]  # samples of train and test part joined: half the victims', half the attacker's
dev = [88, 60]  # samples of each half set apart; the rest is half member, half non-member
epochs = [100, 12]  # of the dense network; published: 100
round_epochs = [21, 3]  # of each round; published code: 21
score_epochs = [30, 8]  # of the networks that give the scores
batch = [128, 32]  # samples a step; published: 128
lr = [0.001, 0.002]  # learning rate of Adam; published: .001
decay = "constant"  # its course
patience = None  # epochs without a better dev accuracy before training stops; None: all are trained
victims = 10  # networks that split the victims' half
shadows = 5  # networks that split the attacker's half; published: 5
networks = 32  # whose answers give memorization scores; the attack does not know them
share = 0.7  # of the pool that each of them trains on
rounds = 5  # of pruning; published: 5
sparsity = 0.6  # share of the weights that is removed in the end; published, mainly: .6
risky_share = 0.176  # of the members whose scores count as high, for SWMR; as published for CIFAR-10, ResNet18
widths = [[26, 17, 9], [18, 12, 6]]  # of the window, members of a class; published: 2/3, 4/9, 2/9 of them
steps = [[1, 2], [1, 2]]  # of the window, members an epoch; published: 1/45 and 2/45 of them
order = "low-to-high"  # of the scores, to begin with; published code's best for RSW
seed = 7  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import lab, report
from leak_atlas.explore import samples
from leak_atlas.explore.samples import Samples
from leak_atlas.recipe import RMR, Data, LiRA, Model, Schedule, Threshold, WindowStudy

# %% [markdown]
# ## The networks, their scores, and how they are attacked
# On each data set the scores, Base, and RSW and SWMR at one window; every other choice when you ask for it. Every shadow walks its victims' whole chain. LiRA
# is the offline one: nobody has trained on a victim's samples.

# %%
attackers = {"LiRA": LiRA("offline_cdf"), "Conf": Threshold()}
studies = {}
for i, name in enumerate(data):
    study = WindowStudy(
        Data(name, pixels[i] or None, joined=True),
        Model(model[i], width[i], stem[i]),
        Schedule(epochs[i], batch[i], "adam", lr[i], decay=decay, patience=patience),
        fine_tuning=round_epochs[i],
        pool=pool[i],
        dev=dev[i],
        targets=victims,
        shadows=shadows,
        seed=seed,
        precision=precision,
        sparsity=sparsity,
        rounds=rounds,
        judges=networks,
        share=share,
        score_epochs=score_epochs[i],
    )
    studies[name] = Samples(
        study.setup,
        study.tuning,
        study.ranking,
        victims,
        attackers,
        widths[i],
        steps[i],
        RMR(0.1, share=risky_share),
        sparsity=sparsity,
        rounds=rounds,
        head=study.head,
    )

# %%
ways = {name: [study.way(defence, order) for defence in ("RSW", "SWMR")] for name, study in studies.items()}
results = lab.realize([study.steps(attack, *ways[name]) for name, study in studies.items() for attack in attackers])

# %% [markdown]
# ## Without a click
# One window, as a figure that needs no kernel: a class is a row, and the window moves to the right, an epoch at a time. What is pale is outside it now. Below, how
# often a round visits each rank in all, and how far the members of each rank stand out for an attack, before and after.

# %%
app = samples.explorer(studies, "RSW", order, "LiRA")
app.choose(epoch=1 + round_epochs[0] // 2).figure

# %%
app.table

# %% [markdown]
# One sample, the last of its class in this order, with its neighbours in the pool.

# %%
app.choose(label=8).choose(rank=app.rank.max).card

# %% [markdown]
# ## With sliders
# What is stored is shown at once. What is not says what it would cost, and is trained when you click.

# %%
app

# %%
report.provenance(results)
