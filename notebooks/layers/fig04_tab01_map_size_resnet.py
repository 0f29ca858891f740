# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does a larger feature map in stage 4 avoid extra disparity and leakage?
#
# **The paper.** Fang & Kim (2026), Fig. 4 and Tab. 1: a larger map in stage 4 of a ResNet "enhances
# the model's generalizability while not significantly exacerbating the disparity" (section 3.3).
#
# **Setup.** M_all trains on a pool of samples, M_h1 on half of it, from the same initial weights.
# For each sample and stage we measure the distance between the features of M_all and of M_h1. The
# AUC of a stage says how well this distance separates samples that only M_all saw (*unseen*) from
# samples that both saw (*seen*). The *disparity* of a stage is |AUC − 0.5|. The networks differ in
# the map of stage 4, not in their number of weights.
#
# **Controls.**
#
# 1. *The attack*: the paper's confidence attack on M_h1; non-members are the other half of the
#    pool.
# 2. *Two seeds* (grey): two networks M_all that differ in their seed alone.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (64 by the architecture)
stem = "conv3"  # first layer (not stated; conv3-pool gives the paper's 4x4 map at 64 pixels)
strides = [4, 2, 1]  # of stage 4, smallest map first (paper: maps of 2x2, 4x4 and 8x8)
pool = 600  # samples that M_all trains on (paper: 100,000)
epochs = 12  # epochs (paper: not stated)
batch = 64  # samples a step (paper: not stated)
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0 (paper: not stated)
augment = 0  # padding of the random crop with flips, pixels; 0: none (paper: crop and flip)
pairs = 8  # pairs of networks a map, each with its own half of the pool (paper: three runs)
learnt = 0.6  # least test accuracy of a network that has learnt (ours)
seed = 101  # evaluation seed: of halves, initialisations and orders
pilots = [0, 1]  # seeds on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace
from itertools import pairwise

from leak_atlas import audit, lab, report
from leak_atlas.recipe import Augment, Data, Model, ProbeStudy, Schedule, Threshold

effect = 0.02  # the smallest change of an AUC or of an accuracy that is worth having
step = "larger map minus next smaller map (the enlargement that raises it most)"
paired = "paired: same seeds and halves"
quote = "enhances the model’s generalizability while not significantly exacerbating the disparity"
where = "enlarging the feature map also has no impact on where the disparity happens"
claims = report.claims(
    report.Claim(
        "not_stronger",
        f"Each enlargement of the map raises the disparity of stage 4 by less than {effect}",
        fails="At least one enlargement of the map raises the disparity of stage 4 by more than "
        f"{effect}",
        quantity=f"disparity |AUC − 0.5| of stage 4: {step}",
        below=effect,
        margin=effect,
        paper="Fig. 4",
        quote=quote,
        section="3.3",
        control=paired,
        headline=True,
    ),
    report.Claim(
        "leaks_no_more",
        "Each enlargement of the map raises the AUC of the confidence attack by less than "
        f"{effect}",
        fails="At least one enlargement of the map raises the AUC of the confidence attack by "
        f"more than {effect}",
        quantity=f"AUC of the confidence attack on M_h1: {step}",
        below=effect,
        margin=effect,
        ours="our control",
        control=paired,
        headline=True,
    ),
    report.Claim(
        "generalizes",
        "Each enlargement of the map raises test accuracy",
        quantity="test accuracy of M_all: larger map minus next smaller map (the enlargement that "
        "raises it least)",
        above=0.0,
        margin=effect,
        paper="Tab. 1",
        quote=quote,
        section="3.3",
        control=paired,
    ),
    *report.onset_claims("stage4", "map sizes", "Fig. 4", where, "3.3"),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)
claims

# %% [markdown]
# ## AUC of each stage by size of stage 4's map (Fig. 4)
# The *disparity* of a stage is the distance of its AUC from the dotted line.

# %%
usual = ProbeStudy(
    Data(data, pixels),
    Model(model, width, stem),
    Schedule(
        epochs, batch, optimizer, lr, nesterov=True, augment=Augment(augment) if augment else None
    ),
    pool,
    pairs,
    seed,
    precision,
)

# %%
before = pixels // 4 // (2 if stem == "conv3-pool" else 1)  # side of stage 3's map
probes = {}
paper = {}  # test accuracy in Tab. 1, by map
for stride in strides:
    side = -(-before // stride)
    study = replace(usual, model=replace(usual.model, stage4_stride=stride))
    name = f"map {side}×{side}"
    probes[name] = study.probes
    paper[name] = {4: 0.5232, 2: 0.5458, 1: 0.6153}[stride]

comparison = lab.probe(probes, {"Conf": Threshold()})
maps = comparison.variants
steps = {}
for small, large in pairwise(maps):
    steps[f"{small} to {large}".replace("map ", "")] = large, small

# %%
stronger = {step: comparison.change(*two, "stage4") for step, two in steps.items()}
words = (
    "At least one enlargement raises",
    "No enlargement raises",
    "No enlargement significantly raises",
)
raises = report.effect(audit.largest(stronger.values()), *words, border=effect)
report.profile(
    comparison.rows(),
    hue="variant",
    floor=comparison.floor_rows(),
    hatch_from="stage4",
    title=f"{raises} the disparity of stage 4 by more than {effect}",
    ylabel="AUC, unseen against seen samples",
)

# %% [markdown]
# ## Change of disparity, leakage and accuracy with each enlargement (Tab. 1)
# Above 0, the larger map has more disparity, leakage or accuracy.

# %%
leaks = {step: comparison.half.contrast(*two, "Conf") for step, two in steps.items()}
gains = {step: comparison.whole.accuracy_difference(*two) for step, two in steps.items()}
changes = []
for step, (large, small) in steps.items():
    shown = {"disparity of stage 4": stronger[step], "AUC of the confidence attack": leaks[step]}
    for name, change in shown.items():
        changes.append({"step": step, "change of": name, "value": change})
    published = paper[large] - paper[small]
    gain = {"change of": "test accuracy", "value": gains[step], "paper": published}
    changes.append({"step": step} | gain)
raises = report.effect(audit.largest(leaks.values()), *words, border=effect)
report.against_paper(
    changes,
    "step",
    facet="change of",
    source="Tab. 1 (TinyImageNet)",
    title=f"{raises} the AUC of the attack by more than {effect}",
    xlabel="larger map minus smaller map (AUC or accuracy)",
)

# %%
rows = []
for name in maps:
    row = {"stage 4": name}
    row["member accuracy, M_h1"] = comparison.half.estimate(name, "", "member accuracy")
    row["test accuracy, M_all"] = comparison.whole.accuracy(name)
    row["paper, test accuracy"] = paper[name]
    row["disparity of stage 4"] = comparison.disparity(name, "stage4")
    row["AUC of the attack on M_h1"] = comparison.half.estimate(name, "Conf")
    rows.append(row)
report.table(
    rows,
    paper="Tab. 1 (TinyImageNet)",
    caption=f"Mean over {pairs} pairs",
    fold="Each map size",
)

# %% [markdown]
# ## Verdicts

# %%
notes = {}
for name, changes in {"not_stronger": stronger, "leaks_no_more": leaks}.items():
    notes[name] = report.listed(changes)
report.judge(
    claims,
    notes=notes,
    not_stronger=audit.largest(stronger.values()),
    leaks_no_more=audit.largest(leaks.values()),
    generalizes=audit.least(gains.values()),
    **comparison.onset("stage4"),
    regime=comparison.regime(),
)

# %% [markdown]
# **Limits.** A map of twice the side costs four times the operations in stage 4; accuracy is not
# compared at equal cost. Networks with a lower member accuracy leak less for this reason alone (see
# the table). The page `own04_surplus_capacity` compares the largest map with the smallest only.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
