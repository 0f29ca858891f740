# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does the disparity of a deeper VGG begin in an earlier stage?
#
# **The paper.** Fang & Kim (2026), Fig. 9: "The disparity is observed earlier in VGG19" than in
# VGG11.
#
# **Setup.** Two networks start from the same initialisation: M_all trains on all samples, M_h1 on
# half of them. The *AUC* of a stage says how well the distance between both networks' features
# separates the samples that M_all alone saw. The *disparity* is |AUC − 0.5|. A VGG has five
# stages; "earlier" means before stage 5.
#
# **Controls.** Control 1 decides.
#
# 1. *Direction*: the angle between the features in place of the paper's Euclidean distance, which
#    also depends on their length.
# 2. *Two seeds* on the same data (grey in the figure): an AUC of 0.5 is expected.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
shallow = "vgg11"  # the shallow architecture (paper: vgg11)
deep = "vgg19"  # the deep architecture (paper: vgg19)
width = 8  # channels of stage 1 (64 by the architecture)
pool = 600  # samples of M_all (paper: 100,000)
epochs = 16  # epochs (paper: not stated)
batch = 64  # samples a step (paper: not stated)
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0 (paper: not stated)
augment = 0  # padding of the random crop with flips, pixels; 0: none (paper: crop and flip)
pairs = 10  # pairs of networks of each depth, each with its own seed and half (paper: 3 runs)
learnt = 0.6  # least test accuracy of a network that has learnt (ours)
seed = 101  # evaluation seed: of halves, initialisations and orders
pilots = [0, 1]  # seeds on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import lab, report
from leak_atlas.recipe import Augment, Data, Model, ProbeStudy, Schedule, Threshold

paired = "paired: the same seeds and halves"
claims = report.claims(
    report.Claim(
        "earlier",
        "In stage 4 the deeper VGG shows more disparity than the shallower one",
        quantity="|AUC − 0.5| of stage 4, Euclidean distance, VGG19 minus VGG11",
        above=0.0,
        margin=0.02,
        paper="Fig. 9",
        quote="The disparity is observed earlier in VGG19",
        section="3.3",
        control=f"{paired}; two seeds on the same data",
        headline=True,
    ),
    report.Claim(
        "earlier_direction",
        "By direction, too, the deeper VGG shows more disparity in stage 4",
        quantity="|AUC − 0.5| of stage 4, direction, VGG19 minus VGG11",
        above=0.0,
        margin=0.02,
        ours="our control",
        control=f"{paired}; free of the length of the features",
        headline=True,
    ),
    report.Claim(
        "last_leads",
        "At both depths stage 5 shows more disparity than stages 1 to 4",
        quantity="|AUC − 0.5| of stage 5 minus the largest of stages 1 to 4, Euclidean distance, "
        "mean over the depths",
        above=0.0,
        margin=0.02,
        ours="our question",
        control="earlier stages of the same networks",
    ),
    report.Claim(
        "deeper_generalizes",
        "The deeper VGG has the higher test accuracy",
        quantity="test accuracy of M_all, VGG19 minus VGG11",
        above=0.0,
        margin=0.02,
        paper="section 3.3",
        quote="brings the model effective improvements in generalizability",
        section="3.3",
        control=paired,
    ),
    report.Claim(
        "deeper_leaks",
        "The deeper VGG leaks more",
        quantity="AUC of the confidence attack on M_h1, VGG19 minus VGG11",
        above=0.0,
        margin=0.02,
        paper="section 3.3",
        quote="surplus non- or less-generalized features put the model at higher privacy risks",
        section="3.3",
        control=paired,
    ),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)
claims

# %% [markdown]
# ## Networks

# %%
schedule = Schedule(
    epochs,
    batch,
    optimizer,
    lr,
    nesterov=True,
    augment=Augment(augment) if augment else None,
)
variants = {}
for name in (shallow, deep):
    network = Model(name, width)
    study = ProbeStudy(Data(data, pixels), network, schedule, pool, pairs, seed, precision)
    variants[name] = study.probes
comparison = lab.probe(variants, {"confidence": Threshold()})

# %% [markdown]
# ## Stage by stage
# Above 0.5, unseen samples are farther apart; below 0.5, closer. Grey: two seeds.

# %%
both = ("euclidean", "direction")
change = comparison.change(deep, shallow, "stage4")
shows = report.effect(change, "more", "less", "not significantly more")
report.profile(
    comparison.rows(both),
    hue="variant",
    facet="measure",
    floor=comparison.floor_rows(both),
    title=f"In stage 4, VGG19 shows {shows} disparity than VGG11",
    ylabel="AUC, unseen against seen samples",
)

# %% [markdown]
# ## Depth by depth
# The paper's confidence attack on M_h1: the other half of the pool are its non-members.

# %%
whole, half = comparison.whole, comparison.half
rows = []
for name in (shallow, deep):
    row = {"network": name}
    row["members, M_h1"] = half.estimate(name, "", "member accuracy")
    row["test, M_all"] = whole.accuracy(name)
    row["stage 4, Euclidean"] = comparison.auc(name, "stage4")
    row["stage 5, Euclidean"] = comparison.auc(name, "stage5")
    row["attack's AUC"] = half.estimate(name, "confidence")
    rows.append(row)
report.table(rows, caption=f"Accuracies and AUCs; means over {pairs} pairs of each depth")

# %% [markdown]
# ## Verdicts

# %%
report.judge(
    claims,
    earlier=change,
    earlier_direction=comparison.change(deep, shallow, "stage4", "direction"),
    last_leads=comparison.lead("stage5"),
    deeper_generalizes=whole.accuracy_difference(deep, shallow),
    deeper_leaks=half.contrast(deep, shallow, "confidence"),
    regime=comparison.regime(),
)

# %% [markdown]
# **Limits.** A stage of VGG19 ends at the same resolution as that of VGG11, and after more layers.
# A network that fits its members less has less to show: the depths are not compared at equal fit
# (see the table). In `quick` the maps of stages 4 and 5 have one pixel, so that their layers are
# fully connected. We have not tested which weights hold the membership.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
