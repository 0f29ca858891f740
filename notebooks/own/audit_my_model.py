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
# Shadow models are trained here as the model was trained. Every attack that reads logits compares
# the model with them. The first output is the answer. Then the page shows in which modules and
# weights members can be identified. Without changes, it audits an example. To audit your own model,
# copy this notebook: `cp notebooks/own/audit_my_model.py notebooks/own/my_copy.py`. The last
# section says what to replace in the copy.

# %% tags=["parameters"]
weights = ""  # your .safetensors, as seen from where this runs; "": the example
data = ""  # your data set (leak-atlas data add); "": the example's
known_accuracy = None  # test accuracy that you know, such as 0.87; the audit refuses another one
epochs = 25  # of your training; each shadow model is trained for as many
batch = 50  # samples in a step of your training
optimizer = "adam"  # of your training: adam, or sgd with Nesterov momentum 0.9
lr = 0.005  # learning rate of your training
decay = "cosine"  # of the learning rate: cosine (to 0) or constant
weight_decay = 0.0005  # of your training, added to the gradient
crop = 0  # augmentation in your training: random crops after zero padding of so many pixels
flip = False  # augmentation in your training: random horizontal flips
pixels = None  # side to which images are reduced, pixels; None: as they are
pool = None  # members that are looked at; None: all of the train part
test = None  # samples of the test part that are looked at; None: all
population = None  # of these, RMIA's population; the others are the non-members; None: two fifths
shadow_networks = 16  # shadow models; 0: only attacks that need none
probe_pairs = 4  # pairs of networks that are trained for the disparity of modules; 0: none
share = 0.01  # of all weights, those with the largest scores
rates = [0.05, 0.01]  # false positive rates (FPR) at which the true positive rate (TPR) is shown
found_at = 0.01  # FPR at which members count as found
name = "audit_my_model"  # of the CSV of scores in outputs/runs/own
seed = 0  # of the design, initialisation and order

# %%
from leak_atlas.models import network
from leak_atlas.recipe import Architecture
from torch import nn


class MyNet(Architecture):
    reads = ("images", "numbers", "bits")  # kinds of data that the module takes
    stages = ("features", "hidden")  # modules to look into, in the order of the forward pass


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
from leak_atlas.own import logits, page, sizes

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
results = lab.realize(*steps.values())  # trains what is missing; the only slow line

# %%
audited = study.audit(steps, results, known_accuracy)
scores = audited.found.save(logits.place(name), found_at)
audited.said(found_at)

# %% [markdown]
# ## AUC and TPR of each attack
# Attacks are strongest where the shadow models have the accuracies of your model (see the top). A
# guess has an AUC of .5, and at an FPR of 1 % it identifies 1 % of the members. The intervals are
# over samples, because there is one target.

# %%
found = audited.found
report.table(found.rows(rates), caption=found.caption())

# %%
report.roc(found.roc(), title=found.roc_title())

# %% [markdown]
# ## Members that the strongest attack identifies
# `index` is the sample's place in the data set, in which the train part comes first.

# %%
members = found.most(found_at)
report.table(members, caption=found.most_caption(found_at))

# %% [markdown]
# ## Membership in the features of each module
# Left, your model: AUC of a classifier on a module's features, which knows the membership of half
# of the samples. Right, two networks that are trained here, one on all members and one on half of
# them: AUC of the distance between their features, which identifies that half (PPTP's disparity).

# %%
modules = audited.module_rows()
report.profile(modules, hue="series", facet="reading", title=audited.module_title())

# %% [markdown]
# ## Weights with the largest learnability scores
# Learnability (CWRF) scores a weight by how much its removal would change the loss on the members,
# to first order, summed over a few training steps. CWRF's other score, vulnerability, needs the
# initialisation, which is not known here.

# %%
largest = audited.weight_rows(share)
report.table(largest, caption="Number of weights, without biases")

# %% [markdown]
# ## Limits
# That no attack identifies a member does not prove that none can. Members and non-members must come
# from one distribution. If the self-audit below says that a classifier without the model can
# separate them, so can an attack, and its AUC says nothing about the model.

# %%
report.provenance(results, weights=page.source(target), scores=scores.name)

# %% [markdown]
# ## How to audit your own model
#
# 1. **Data.** `leak-atlas data add my-set PATH` takes a folder of images, an .npz or a .csv. Then
#    `data = "my-set"`. Its train part must be what the model was trained on, and its test part what
#    the model never saw. Without a test part of yours a fifth of all samples becomes it. If the
#    model was trained on all samples, the audit is then wrong.
# 2. **Module.** Replace `Net` and `MyNet` in your copy of this notebook. `reads` names the kinds of
#    its data, `stages` modules as `named_modules()` does. If the cell becomes a file beside the
#    notebook, from which you import `MyNet`, all cores are used.
# 3. **Weights.** Where the model is: `torch.save(net.state_dict(), "mine.pt")`. Here: `leak-atlas
#    model mine.pt`. Then `weights = "mine.safetensors"`.
# 4. **Parameters.** Write those of your training, and the test accuracy that you know.
#
# The module reads images as `(n, channels, side, side)` of `(pixel / 255 - mean) / std`. `mean` and
# `std` are measured, or what you give to `data add` as `--mean` and `--std`. Classes are in the
# order of their names. Columns of numbers are standardised by the train part; bits are not.
#
# Without `weights` the example's network is trained on your data: images of any size, or a .csv.
