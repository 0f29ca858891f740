# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does my model leak its members?
#
# Can an attack that reads logits identify the samples on which my model, the *target*, was trained?
# The first output is the answer: yes if the largest AUC is significantly above .5, corrected for
# the number of attacks. Most attacks compare the target with *shadow models*, which are trained
# here with the parameters of your training. The control (*Self-audit*) is a classifier without the
# model, which must be at chance. Without changes, the page audits an example.
#
# **To audit your model**, copy this notebook
# (`cp notebooks/own/audit_my_model.py notebooks/own/my_model_copy.py`) and change two cells of the
# copy:
#
# 1. *Parameters*: `weights` and `data` name your files, `known_accuracy` is the test accuracy that
#    you know. The lines from `epochs` to `flip` describe your training.
# 2. *Module*: put your `nn.Module` in place of `Net`.
#
# The last section says how to make the files.

# %% tags=["parameters"]
weights = ""  # CHANGE THIS: path of your .safetensors, from the working folder; "": the example
data = ""  # CHANGE THIS: your data set (leak-atlas data add); "": the example's
known_accuracy = None  # CHANGE THIS: test accuracy that you know, such as 0.87, to check the files
epochs = 25  # of your training; the shadow models are trained for the same number
batch = 50  # samples in a step of your training
optimizer = "adam"  # of your training: adam, or sgd with Nesterov momentum 0.9
lr = 0.005  # learning rate of your training
decay = "cosine"  # of the learning rate: cosine (to 0) or constant
weight_decay = 0.0005  # of your training, added to the gradient
crop = 0  # augmentation in your training: zero padding before a random crop, pixels
flip = False  # augmentation in your training: random horizontal flips
pixels = None  # side to which images are reduced, pixels; None: as they are
pool = None  # number of members to audit; None: all of the train part
test = None  # samples of the test part that are used; None: all
population = None  # test samples that serve RMIA as reference; None: two fifths of them
shadow_networks = 16  # shadow models; 0: only attacks that need none
probe_pairs = 4  # pairs of networks that are trained for the distances of features; 0: none
share = 0.01  # share of the weights: the last table counts those with the largest scores
rates = [0.05, 0.01]  # false positive rates (FPR) at which the true positive rate (TPR) is shown
found_at = 0.01  # FPR of the answer: the share of non-members that an attack mistakes for members
name = ""  # of the CSV of scores in outputs/runs/own; "": see *Scores* in the provenance
seed = 0  # of the design, initialisation and order

# %% [markdown]
# The module under audit: put yours in place of `Net`.

# %%
from leak_atlas.models import network
from leak_atlas.recipe import Architecture
from torch import nn


class MyNet(Architecture):
    reads = ("images", "numbers", "bits")  # kinds of data that the module takes
    stages = ("features", "hidden")  # modules whose features are attacked, in forward order


class Net(nn.Module):
    def __init__(self, channels, classes, size):
        super().__init__()
        self.features = nn.Sequential(nn.Flatten(), nn.Linear(channels * size**2, 128), nn.ReLU())
        self.hidden = nn.Sequential(nn.Linear(128, 64), nn.ReLU())
        self.out = nn.Linear(64, classes)

    def forward(self, x):
        return self.out(self.hidden(self.features(x)))


@network.register
def build_my_net(model: MyNet, channels, classes, size):
    return Net(channels, classes, size)


# %%
from leak_atlas import lab, recipe, report
from leak_atlas.own import page, sizes

looked_at = sizes.fitted_sizes(data, pixels, pool, test, population)
training = recipe.Schedule(
    epochs,
    batch,
    optimizer,
    lr,
    nesterov=True,
    weight_decay=weight_decay,
    decay=decay,
    augment=recipe.Augment(crop, flip) if crop or flip else None,
)
study = page.ModelStudy(MyNet(), training, looked_at, shadow_networks, probe_pairs, seed)
target = study.target(weights, data, known_accuracy)
steps = study.steps(target)
scores = page.scores_of_model(name, weights)
results = lab.realize(*steps.values())  # trains what is missing; the only slow line

# %%
audited = study.audit(steps, results, known_accuracy)
audited.found.save(scores, found_at, file=page.full_name(weights))
audited.said(found_at)

# %% [markdown]
# ## AUC and TPR of each attack
# Attacks are strongest if the shadow models are as accurate as the target. A guess has an AUC of
# .5, and at an FPR of 1 % it identifies 1 % of the members. Intervals are over samples of this one
# target and are not corrected.

# %%
found = audited.found
report.table(found.rows(rates), caption=found.caption())

# %%
report.roc(found.roc(), title=found.roc_title())

# %% [markdown]
# ## Members that the strongest attack identifies
# The *strongest attack* has the largest TPR at an FPR of `found_at`. `index` is the sample's place
# in the data set, in which the train part comes first. The line *Scores* of the provenance names
# the CSV file of all scores.

# %%
members = found.most(found_at)
report.table(members, caption=found.most_caption(found_at))

# %% [markdown]
# ## Membership in the features of each module
# One panel reads your model: a classifier on a module's features learns from half of the samples
# which are members. Its AUC on the other half is shown. The other panel (after the paper on PPTP)
# compares pairs of networks that are trained here, one on all members and one on half of them. Its
# AUC says how well the distance between their features (Euclidean, or *direction*: 1 − cosine)
# identifies the other half. The title is corrected for the number of modules, the intervals are
# not.

# %%
modules = audited.module_rows()
report.profile(modules, hue="series", facet="reading", title=audited.module_title())

# %% [markdown]
# ## Weights with the largest learnability scores
# Learnability (of the paper on CWRF) estimates how much the loss on the members changes if a weight
# is removed. CWRF's vulnerability needs the initialisation, which is not known here.

# %%
largest = audited.weight_rows(share)
report.table(largest, caption="Number of weights, without biases")

# %% [markdown]
# ## Limits
# If no attack here identifies members, a stronger attack still may. Members and non-members must
# come from one distribution. If *Self-audit* (in the provenance) separates them, the AUCs above do
# not count.

# %%
report.provenance(results, weights=page.source(target), scores=str(scores))

# %% [markdown]
# ## How to audit your own model
#
# 1. **Data.** `leak-atlas data add my-set PATH` takes a folder of images, an .npz or a .csv. Then
#    write `data = "my-set"`. The train part must be what the model was trained on. The test part
#    must be samples that the model never saw. If you give no test part, a fifth of the samples is
#    drawn. The audit of your weights is then refused: the model may have seen this fifth.
# 2. **Weights.** Where the model is, run `torch.save(net.state_dict(), "mine.pt")`. Here, run
#    `leak-atlas model mine.pt`. Then write `weights = "mine.safetensors"`.
# 3. **Module.** Replace `Net`, and `MyNet` above it. `reads` lists the kinds of data that it takes.
#    `stages` lists modules, by the names that `named_modules()` gives. To train on all cores, put
#    this cell into a file next to the notebook and import `MyNet` from it.
#
# The module reads images as `(n, channels, side, side)` of `(pixel / 255 - mean) / std`. `mean` and
# `std` are computed, unless you give `--mean` and `--std` to `data add`. Classes are in the order
# of their names. Columns of numbers are standardised by the train part; bits are not.
#
# With `data` but without `weights`, `Net` is trained on your data and audited.
