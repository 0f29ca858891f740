# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Explore: when in training is membership encoded, and in which samples?
#
# Each sample has a place in the vulnerability plane (of the paper Dynamics): how often an attack
# calls it a member of networks that did not train on it (FPR), and of networks that did (TPR). On
# the diagonal the attack guesses. In the upper left corner the sample is exposed. Noise also moves
# samples. So from the *mean encoding speed*, the length of a path per epoch, we subtract that of
# the control: the same attack on permuted membership labels.
#
# Click a sample to see its path and its loss. Colour the samples by how hard they are. In
# JupyterLab, choose another attack or threshold.

# %% tags=["parameters"]
axis = ["fashion-mnist-small", "digits"]  # data sets to choose from; the first is trained here
axis_pixels = [8, 0]  # side of their images, pixels, after area resize; 0: as they are
model = "cnn4"  # architecture
width = 8  # channels of stage 1
pool = 600  # samples from which each network draws half, in complement pairs; not stated
test = 200  # test samples, for accuracy
epochs = 40  # of each network
batch = 50  # samples a step; the group's code: 128
optimizer = "sgd"  # as the article says
lr = 0.05  # its learning rate; the group's code: .1
decay = "cosine"  # of the learning rate; the group's code
networks = 32  # each attacked by all but its complement; the group's code: 20
checkpoints = [0, 2, 4, 8, 12, 15, 20, 30, 40]  # epochs that are looked at; 0: the initialisation
judges = 16  # networks that measure difficulty; no attack uses them
share = 0.7  # of the pool that each judge trains on
seed = 101  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import lab, report
from leak_atlas.explore.instrument import Instrument
from leak_atlas.explore.time import Time
from leak_atlas.recipe import RMIA, Data, LiRA, Model, Schedule, Threshold, TrajectoryStudy

# %%
attackers = {"LiRA": LiRA(), "RMIA": RMIA(), "Conf": Threshold()}
studies = {}
for name, side in zip(axis, axis_pixels, strict=True):
    studies[name] = TrajectoryStudy(
        Data(name, side or None),
        Model(model, width),
        Schedule(epochs, batch, optimizer, lr, decay=decay),
        pool=pool,
        test=test,
        networks=networks,
        checkpoints=checkpoints,
        seed=seed,
        precision=precision,
    )

# %%
shown = Time(studies, attackers, judges, share)
results = lab.realize(shown.steps(shown.start))

# %%
app = Instrument(shown)
app

# %% [markdown]
# **Setup.** On the first data set, LiRA, its control and the judges are trained here. Everything
# else is trained when you ask for it.
#
# **Limits.** Rates come from few networks. The authors' definitions are not published; those here
# are ours. Nothing here is a verdict: the claims are judged in `time/`.

# %%
report.provenance(results)
