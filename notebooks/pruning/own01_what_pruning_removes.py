# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does pruning expose other members than before?
#
# **Question.** Ours, next to Yuan & Zhang (2022): "most pruning approaches result in an increased
# attack accuracy" (section 5.2.1). Which members does pruning expose, and is the leakage more than
# that of an earlier epoch?
#
# **Setup.** Networks are trained, pruned and fine-tuned. Each is attacked by all others except its
# complement; LiRA's score of a member is its *exposure*.
#
# **Controls.** Controls 1 and 2 decide.
#
# 1. *Fine-tuning without pruning*, for the same number of epochs.
# 2. *A second seed* with the same members: how far exposures agree that share nothing else.
# 3. *Early stopping* of the dense network, at matched attack AUC: test accuracies are compared
#    where the attack RMIA has the same AUC on both networks.
# 4. *Random pruning* at the same sparsity of each layer.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: CIFAR10 and six others
pixels = 16  # side of the images, pixels, after area resize (paper: 32)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (64 by the architecture)
stem = "conv3"  # first layer, as the folder weights/ has it
pool = 600  # samples from which each network draws half (paper: another design, with one target)
dev = 300  # samples outside the pool, unused here: the dense networks are those of weights/
reference = 300  # samples outside the pool, unused here too
test = 600  # test samples
sparsity = 0.6  # share of the weights that is removed (paper: .5 to .9)
epochs = 12  # epochs of the dense network (published code: at most 100)
course = [1, 2, 3, 5, 8]  # earlier epochs: early stopping (ours)
retrain_epochs = 5  # epochs after pruning (published code: at most half of the dense network's)
batch = 64  # samples a step (paper: 128)
lr = 0.005  # learning rate of Adam, cosine to 0, at the start of each training (paper: 0.001)
shadows = 10  # networks in complement pairs; each is attacked by the others (paper: 5 shadows)
learnt = 0.6  # least test accuracy of a dense network that has learnt (ours)
seed = 7  # evaluation seed; the second network of each target has the next one
pilots = [0, 1]  # seeds on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace

from leak_atlas import audit, lab, report
from leak_atlas.recipe import (
    RMIA,
    Data,
    LiRA,
    Model,
    RandomHalves,
    Schedule,
    Setup,
    Sparsity,
)

cut = f"L1-pruned network ({sparsity:.0%} sparsity)"
agree_words = "rank correlation of members' exposure with the dense network"
claims = report.claims(
    report.Claim(
        "same_leakage",
        f"L1 unstructured pruning to {sparsity:.0%} sparsity changes the AUC of RMIA by less than .03",
        quantity=f"AUC of RMIA: {cut} minus fine-tuned dense network",
        within=0.03,
        ours="our control of section 5.2.1",
        control="the same number of epochs, nothing pruned; paired over targets",
        headline=True,
    ),
    report.Claim(
        "same_members",
        "Pruned and dense networks expose the same members more than two seeds do",
        quantity=f"{agree_words}: {cut} minus second seed",
        above=0.0,
        margin=0.1,
        ours="our question",
        control="the same members; each network is attacked by shadow models of its own seed",
        headline=True,
    ),
    report.early_stopping_claim("beats_stopping", "L1-pruned networks", attack="RMIA"),
    report.Claim(
        "reorders",
        "At matched AUC of LiRA pruning changes which members are exposed more than fine-tuning",
        quantity=f"{agree_words} at matched AUC of LiRA: fine-tuned minus {cut}",
        above=0.0,
        margin=0.1,
        ours="our question",
        control="the same number of epochs, nothing pruned; each compared with the dense epochs",
    ),
    report.Claim(
        "random_reorders_more",
        "At matched AUC of LiRA random pruning changes which members are exposed more",
        quantity=f"{agree_words} at matched AUC of LiRA: {cut} minus randomly pruned",
        above=0.0,
        margin=0.1,
        ours="our question",
        control="the same sparsity of each layer, at random; each compared with the dense epochs",
    ),
    regime={
        "dense member accuracy": 0.95,
        "dense test accuracy": learnt,
        "pruned member accuracy": 0.95,
    },
)
claims

# %% [markdown]
# ## Models
# Each network is target and shadow model.

# %%
design = RandomHalves(pool, test=test, seed=seed, dev=dev, reference=reference)
long = Schedule(epochs, batch, "adam", lr=lr)
short = replace(long, epochs=retrain_epochs)
setup = Setup(Data(data, pixels), design, Model(model, width, stem), long, shadows, seed, precision)
dense = setup.trained()
removed_weights = dense.pruned("L1 unstructured", sparsity)
random_weights = dense.pruned("random weights", sparsity)

# %%
tuned, again, random = "fine-tuned dense network", "second seed", "randomly pruned"
variants = {"dense": dense, tuned: dense.train(short)}
variants["L1-pruned"] = removed_weights.train(short)
variants[random] = random_weights.train(short)
variants[again] = replace(setup, seed=seed + 1).trained()
removed = {
    ("L1 unstructured", sparsity): [Sparsity(state) for state in removed_weights],
    ("random weights", sparsity): [Sparsity(state) for state in random_weights],
}
comparison = lab.compare(
    variants,
    {"RMIA": RMIA(), "LiRA": LiRA()},
    checkpoints={"dense": course},
    also=removed,
)

# %% [markdown]
# ## Accuracy and leakage
# Down and right is better. The line joins the dense network's epochs.

# %%
line = [*comparison.checkpoints["dense"], "dense"]
lines = {"dense, by epoch": line}
lines |= {variant: [variant] for variant in (tuned, "L1-pruned", random)}
change = comparison.contrast("L1-pruned", tuned, "RMIA")
effect = report.effect(
    change, "significantly raises", "significantly lowers", "does not significantly change"
)
report.tradeoff(
    comparison.plane(lines, "RMIA"),
    level="guessing",
    title=f"L1 pruning {effect} the AUC of RMIA ({change.value:+.3f})".replace("-", "−"),
    xlabel="test accuracy",
    ylabel="AUC of RMIA",
)

# %% [markdown]
# ## Which members are exposed?
# Rank correlation of the exposure of members with that in the dense network. Scores of less
# leakage are noisier and agree less, so variants are compared with the dense epochs at the same
# AUC of LiRA.

# %%
scores = {v: comparison.attacks[v, "LiRA"] for v in comparison.variants}
alike = {v: audit.exposed_alike(scores["dense"], each) for v, each in scores.items()}
effect_size = comparison.design_effects["dense", "LiRA"]
agreement = {v: audit.mean_ci(each, design_effect=effect_size) for v, each in alike.items()}


def reordered(variant, other):
    """Agreement with the dense network at matched AUC of LiRA, one variant minus another."""
    return comparison.at_matched_auc(variant, line, "LiRA", other, alike)


rows = []
for name, each in (lines | {again: [again]}).items():
    for variant in each:
        if variant != "dense":
            row = {"variant": name, "x": agreement[variant]}
            rows.append(row | {"auc": comparison.estimate(variant, "LiRA")})
same = audit.paired_difference(alike["L1-pruned"], alike[again], design_effect=effect_size)
agrees = report.effect(
    same,
    "agrees significantly more",
    "agrees significantly less",
    "does not significantly agree more",
)
report.tradeoff(
    rows,
    "x",
    better="",
    level="guessing",
    title=f"A pruned network {agrees} with the dense one than a second seed",
    xlabel="rank correlation of members' exposure with the dense network",
    ylabel="AUC of LiRA",
)

# %%
rows = []
for variant in comparison.variants:
    row = {"network": str(variant)}
    row["member accuracy"] = comparison.estimate(variant, "", "member accuracy")
    row["test accuracy"] = comparison.accuracy(variant)
    row["RMIA, AUC"] = comparison.estimate(variant, "RMIA")
    row["LiRA, AUC"] = comparison.estimate(variant, "LiRA")
    row["agreement with dense"] = agreement[variant]
    rows.append(row)
report.table(rows, caption=f"Mean over {shadows} targets, each attacked by the others")

# %% [markdown]
# ## Verdicts

# %%
pruning_acts = comparison.pruned_as_asked(removed)
members = {v: comparison.estimate(v, "", "member accuracy") for v in variants}
report.judge(
    claims,
    same_leakage=change,
    same_members=same,
    beats_stopping=comparison.early_stopping("L1-pruned", "RMIA"),
    reorders=reordered(tuned, "L1-pruned"),
    random_reorders_more=reordered("L1-pruned", random),
    checks={claim.name: pruning_acts for claim in claims},
    regime={
        "dense member accuracy": members["dense"],
        "dense test accuracy": comparison.accuracy("dense"),
        "pruned member accuracy": members["L1-pruned"],
    },
)

# %% [markdown]
# **Limits.** Targets are each other's shadow models: intervals of rank correlations are widened as
# those of LiRA's AUC, which was simulated for the AUC alone. A network and its pruned copy share
# the seeds of their shadow models, two seeds do not: part of the agreement is the shadow models'.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
