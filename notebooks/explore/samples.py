# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Explore: which samples are memorized, and what does a window over them do?
#
# Networks are pruned in rounds, and fine-tuned in each (WeMem). Base trains on all members in each
# epoch. RSW trains on those in a window that slides over the members of each class, in the order of
# their memorization scores. A *memorization score* is the mean confidence of networks that trained
# on the sample, minus that of others. SWMR also penalizes the weights on the members with the
# highest scores.
#
# Play moves the window through a round. Click a member. In JupyterLab, choose another window, order
# or attack. The random order is the control: the same scores, permuted.

# %% tags=["parameters"]
data = ["digits-bits", "fashion-mnist-small"]  # data sets; each list below has an entry for each
pixels = [0, 16]  # side of the images, pixels, after area resize; 0: as they are
model = ["fc", "resnet10"]  # architectures
width = [256, 8]  # units of a layer (published), or channels of stage 1
stem = ["conv3", "conv3-pool"]  # first layer of a convolutional network
pool = [1740, 1200]  # samples of train and test part joined: half the targets', half the attacker's
dev = [88, 60]  # samples of each half set apart; the rest is half member, half non-member
epochs = [100, 12]  # of the dense network; published: 100
round_epochs = [21, 3]  # of each round; published code: 21
score_epochs = [30, 8]  # of the networks that give the memorization scores
batch = [128, 32]  # samples a step; published: 128
lr = [0.001, 0.002]  # learning rate of Adam; published: .001
decay = "constant"  # of the learning rate: constant, or cosine to 0
patience = None  # epochs without a better dev accuracy before training stops; None: all are trained
targets = 10  # networks that split the targets' half
shadows = 5  # networks that split the attacker's half; published: 5
networks = 32  # they give the memorization scores; no attack uses them
share = 0.7  # of the pool that each of them trains on
rounds = 5  # of pruning; published: 5
sparsity = 0.6  # share of the weights that is removed in the end; published, mainly: .6
risky_share = 0.176  # of the members, those with the highest scores: for SWMR (published: CIFAR-10)
ninths = 2  # width of the window, ninths of a class' members; published: 6, 4, 2
step = 1  # by which the window moves, members an epoch; published: 1/45 and 2/45 of a class
seed = 7  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import lab, report
from leak_atlas.explore import samples
from leak_atlas.explore.instrument import Instrument
from leak_atlas.recipe import RMR, Data, LiRA, Model, Schedule, Threshold, WindowStudy

# %%
attackers = {"LiRA": LiRA("offline_cdf"), "Conf": Threshold()}
studies = {}
for i, name in enumerate(data):
    studies[name] = WindowStudy(
        Data(name, pixels[i] or None, joined=True),
        Model(model[i], width[i], stem[i]),
        Schedule(epochs[i], batch[i], "adam", lr[i], decay=decay, patience=patience),
        fine_tuning=round_epochs[i],
        pool=pool[i],
        dev=dev[i],
        targets=targets,
        shadows=shadows,
        seed=seed,
        precision=precision,
        sparsity=sparsity,
        rounds=rounds,
        judges=networks,
        share=share,
        score_epochs=score_epochs[i],
    )

# %%
shown = samples.Samples(studies, attackers, RMR(0.1, share=risky_share), ninths, step)
results = lab.realize(shown.beginning())

# %%
app = Instrument(shown)
app

# %% [markdown]
# **Setup.** On each data set the scores, Base, and RSW and SWMR with one window are trained here.
# Everything else is trained when you ask for it. Every shadow model goes through the same steps as
# its target. LiRA is offline: no shadow model has trained on a target's samples.
#
# **Limits.** A sample's exposure is a mean over few targets. A figure shows one seed and one
# window. Nothing here is a verdict: whether a window protects is judged in `samples/`.

# %%
report.provenance(results)
