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
# # Does my model leak, whom, and in which of its modules?
#
# Your own `torch.nn.Module`, with weights that you trained elsewhere and your own data, goes through every attack that reads
# logits, beside shadows that are trained here by your recipe; then its modules and its weights are looked at. Replace
#
# 1. `data`: the name of your set. `.venv/bin/python -m lib.data add NAME PATH` takes a folder of pictures, an .npz or a .csv; its **train
#    part is what the model was trained on, its test part what it never saw**. Where you give no test part, one is drawn, and a model
#    that was trained on all of the set has seen it: members would look like non-members;
# 2. the module in the first cell below;
# 3. `weights`: a safetensors file of its state dict, `safetensors.torch.save_file(net.state_dict(), "mine.safetensors")`. Of a
#    `.pt` file `.venv/bin/python -m lib.own mine.pt` makes one. Without a file a small network is trained here, as an example.
#
# The module reads images as `(n, channels, side, side)`, `(pixel / 255 - mean) / std`, where `mean` and `std` are those in `set.toml`
# beside your data. If you trained with other ones, write yours there first (that makes it another data set), or undo it in the
# module. Classes are in the order of their names. Rows of numbers come standardized by the train part, bits as they are.
#
# A module in a cell is computed by this process alone. For all cores, move the cell into a file beside this notebook, and import
# `MyNet` from there.

# %% tags=["parameters"]
weights = ""  # your .safetensors, as seen from where this runs; "": the example
data = "fashion-mnist-small"  # data set (python -m lib.data)
pixels = 16  # side of the images, pixels, after area resize; None leaves them as they are
pool = 600  # members of the target that are looked at, from the train part: best, all of it
test = 1000  # samples of the test part that are looked at
population = 400  # of these, left to RMIA and to accuracy; the others are the non-members
epochs = 25  # of my recipe: each shadow is trained so
batch = 50  # samples a step
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9
lr = 0.005  # learning rate, cosine to 0
shadow_networks = 16  # networks trained here, each on a random half of members and non-members; 0: thresholds alone
probe_pairs = 4  # pairs of networks trained here for the disparity of each module; 0: none
share = 0.01  # of all weights: those with the largest scores
rates = [0.05, 0.01]  # false positive rates at which true positive rates are shown
found_at = 0.01  # false positive rate at which members count as found
name = "audit_my_model"  # of the CSV of scores in outputs/runs/own
seed = 0  # seed of design, initialisation and order

# %%
import torch
from torch import nn

from lib.models import network
from lib.recipe import Architecture
from lib.recipe.core import Positive


class MyNet(Architecture):
    """Sizes are fields; `stages` names the modules that are looked at, in the order of the forward pass."""

    stages = ("conv1", "conv2", "hidden")
    width: Positive = 16


@network.register
def my_net(model: MyNet, channels, classes, size):
    return Net(model.width, channels, classes, size)


class Net(nn.Module):
    def __init__(self, width, channels, classes, size):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.hidden = nn.Linear(2 * width * (size // 4) ** 2, 64)
        self.out = nn.Linear(64, classes)

    def forward(self, x):
        x = torch.relu(nn.functional.max_pool2d(self.conv1(x), 2))
        x = torch.relu(nn.functional.max_pool2d(self.conv2(x), 2))
        return self.out(torch.relu(self.hidden(x.flatten(1))))


# %%
from dataclasses import replace

import numpy as np

from lib import audit, lab, report
from lib.localization import disparity
from lib.localization.score_maps import maps, shares
from lib.own import findings, logits
from lib.own.weights import bring, example
from lib.recipe import Data, GivenSplit, Halves, Learnability, Magnitude, Population, Schedule, Setup, StageMembership, self_audit
from lib.selection import highest

split = GivenSplit(pool, test=test, seed=seed, population=population)
recipe = Schedule(epochs, batch, optimizer, lr, nesterov=True)
setup = Setup(Data(data, pixels), split, MyNet(), recipe, 1 + shadow_networks, seed)
target = bring(weights or example(setup), setup)  # row 0 of the split
models = Population((target, *setup.trained().states[1:]))
signals = models.signals()
compared = [pair.distance() for pair in replace(setup, design=Halves(pool, test=test, seed=seed), models=probe_pairs).pairs()]
asked = StageMembership(target)
scores = {"learnability": target.score(Learnability()), "|weight|": target.score(Magnitude())}
results = lab.realize(signals, compared, asked, scores, self_audit(models))
arrays = logits.brought(results[signals[0]], [results[step] for step in signals[1:]])
found = findings.attack(arrays)
place = found.save(logits.place(name), found_at)
found.said(found_at)

# %% [markdown]
# ## Is it the model that I know?
# If its accuracy is not what you know, it reads something else here than there: mean and std, the order of classes.

# %%
rows = {"my model": [results[signals[0]]], f"{shadow_networks} shadows, mean": [results[step] for step in signals[1:]]}
kinds = {"members": "accuracy_member", "non-members": "accuracy_nonmember", "population": "accuracy_test"}
report.table(
    [
        {"accuracy": who}
        | {kind: audit.over([float(one[of]) for one in each]) if len(each) > 1 else float(each[0][of]) for kind, of in kinds.items()}
        for who, each in rows.items()
        if each
    ],
    caption="Share of samples that are classified rightly",
)

# %% [markdown]
# ## Every attack, and who is found
# The target is one, so intervals are over samples. `index` is the sample's place in the data set, the train part first.

# %%
outside = int((~arrays.member).sum())
report.table(found.rows(rates), caption=f"{outside:,} non-members: no false positive rate below {audit.resolution(outside):.2%} can be seen")

# %%
report.roc(found.roc(), title=f"{found.best[:1].upper()}{found.best[1:]} has the largest area: {found.auc[found.best].value:.3f}")

# %%
report.table(
    found.most(found_at), caption=f"Members that {found.strongest(found_at)} finds at {100 * found_at:g} % FPR, the surest first, at most 20"
)

# %% [markdown]
# ## In which modules?
# Left, my model alone: how well a classifier on a module's features tells members, half of whom it knows. Right, two networks
# trained here, on all members and on half of them: how well the distance of their features tells which half (PPTP's disparity).

# %%
told = [audit.auc_interval(each, results[asked]["member"]) for each in results[asked]["scores"]]
series = {("my model: membership", "classifier"): told}
for measure in ("euclidean", "direction") if probe_pairs else ():
    series["trained here: disparity", measure] = disparity.profile(*disparity.read([results[each] for each in compared], measure))
parts = results[asked].parts
where = parts[int(np.argmax([each.value for each in told]))]
seen = f"{where} tells members best" if audit.largest(told).low > 0.5 else "none is seen to tell members"
report.profile(
    [
        {"part": part, "value": each, "series": of, "reading": reading}
        for (reading, of), row in series.items()
        for part, each in zip(parts, row, strict=True)
    ],
    hue="series",
    facet="reading",
    title=f"Of my model's modules, {seen}: AUC {max(each.value for each in told):.3f} at most",
)  # fmt: skip

# %% [markdown]
# ## In which weights?
# Where the largest scores lie. Learnability: what a few updates on the members do to first order (CWRF). Its other score,
# vulnerability, compares with the initialisation, which weights from outside come without.

# %%
tops = {by: shares(highest(maps(results[step]), share)) for by, step in scores.items()}
report.table(
    [
        {"weights of": own[0].of, "number": own[0].weights} | {f"largest {share:.0%} by {by}": one.selected for by, one in zip(tops, own, strict=True)}
        for own in zip(*tops.values(), strict=True)
    ],
    caption="Single weights, without biases",
)  # fmt: skip

# %% [markdown]
# **Caveat.** That no attack finds a member does not say that none can. Members and non-members have to be drawn from one
# distribution: where the self-audit below says that a blind classifier tells them apart, so may every attack.

# %%
report.provenance(results, weights=f"{weights or 'the example'}, SHA-256 {target.sha256[:16]}", scores=place.name)
