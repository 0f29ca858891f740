# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does PPB lower the confidence gap between members and non-members?
#
# **The paper.** Yuan & Zhang (2022), Fig. 14 and 15: with PPB "the divergence between the member
# and non-member data is significantly reduced" (section 6.2).
#
# **Setup.** A pruned network is fine-tuned with the defence PPB or without a defence (*Base*), for
# the same number of epochs. PPB sorts the probabilities of each member's posterior by size. It
# penalizes the divergence between the sorted posteriors of two members.
#
# *Confidence* is the probability of the true class. *Sensitivity* is the mean absolute change of
# the confidence under small noise on the input, divided by the size of the noise. The *confidence
# gap* is the mean of members minus that of non-members. The *sensitivity gap* is the mean of
# non-members minus that of members.
#
# **Second question.** Is PPB more accurate than early stopping at the same leakage?
#
# **Controls.**
#
# 1. *Base* (decides the answer): yes if the confidence gap is smaller with PPB.
# 2. *Early stopping* (decides the second question): Base with fewer epochs before or after pruning.
#    The test accuracy with PPB is compared with that of Base stopped where the attack Conf, a
#    threshold on the confidence, has the same AUC (*at matched AUC*).
# 3. *Accuracy on members*: if it falls, the confidence gap can fall too. The last rows of the table
#    are Base, stopped just below and just above PPB's accuracy on members.
# 4. *Another order of batches* (decides the last claim): Base is fine-tuned twice, to show how many
#    predicted classes change without PPB.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: CIFAR10
pixels = 16  # side of the images, pixels, after area resize (paper: 32)
model = "resnet10"  # architecture (paper: densenet121)
width = 16  # channels of stage 1 (64 by the architecture)
stem = "conv3-pool"  # first layer (published code: a 3x3 convolution and a max-pool)
pool = 1200  # samples in all: one half for the targets, one half for the attacker (paper: all)
dev = 60  # samples of each half kept for `patience`; half of the rest are members (paper: a tenth)
targets = 10  # target networks; each draws its members from the targets' half (paper: 1)
shadows = 5  # shadow models of Conf; each draws its members from the attacker's half (paper: 5)
sparsity = 0.6  # share of the weights that is removed (paper: .7 in Fig. 1; not stated here)
ppb = 4.0  # weight of PPB's penalty (paper: 1, 2, 4, 8, 16; published code: 4)
queries = 10  # noisy copies of each sample (paper: 10)
dense_stops = [2, 3, 4, 6]  # early stopping: epochs before pruning, then min(stops) after it (ours)
stops = [1, 2, 4]  # epochs after pruning at which Base is stopped (ours)
epochs = 12  # of the dense network, at most (published code: 100)
retrain_epochs = 6  # epochs after pruning, at most (published code: half of `epochs`)
patience = None  # epochs without a better dev accuracy before the end (paper: 5, of the dev loss)
batch = 32  # samples a step (paper: 128)
lr = 0.002  # learning rate of Adam (paper: 0.001)
decay = "constant"  # schedule of the learning rate over the epochs (paper: not named)
learnt = 0.6  # least test accuracy required of the dense network (ours)
seed = 101  # evaluation seed: of design, initialisation and order
pilots = [0, 1, 7]  # seeds on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
import numpy as np
from leak_atlas import audit, lab, report
from leak_atlas.attacks.signals import confidence
from leak_atlas.data.designs import Role, in_pool
from leak_atlas.localization.divergence import (
    behaviours,
    gap,
    gap_by_class,
    gaps,
    same_predictions,
)
from leak_atlas.recipe import PPB, Data, Model, PruningStudy, Schedule, Threshold

relative = "the difference is divided by the mean gap of the dense networks"
same_start = "the same pruned networks, the same number of epochs"
reduced = "the divergence between the member and non-member data is significantly reduced"
claims = report.claims(
    report.Claim(
        "confidence_falls",
        "PPB lowers the confidence gap",
        fails="PPB raises the confidence gap",
        quantity="confidence gap (mean confidence in the true class of members minus that of "
        "non-members): fine-tuned with PPB minus without a defence",
        below=0.0,
        margin=0.02,
        paper="Fig. 14",
        quote=reduced,
        section="6.2",
        control=same_start,
        headline=True,
    ),
    report.early_stopping_claim(
        "beats_stopping", "networks fine-tuned with PPB", attack="Conf", headline=True
    ),
    report.Claim(
        "sensitivity_falls",
        "PPB lowers the sensitivity gap",
        quantity=f"sensitivity gap: PPB minus Base; {relative}",
        below=0.0,
        margin=0.25,  # a quarter of a dense network's gap
        paper="Fig. 14",
        quote=reduced,
        section="6.2",
        control=same_start,
    ),
    report.Claim(
        "as_dense",
        "With PPB the confidence gap differs from that of the dense network by less than 0.05",
        quantity="confidence gap: PPB minus dense network",
        within=0.05,  # our reading of "close"
        paper="Fig. 15",
        quote="the divergence of the pruned model is close to that of the original model",
        section="6.2",
        control="paired over targets",
    ),
    report.Claim(
        "classes_kept",
        "For non-members, PPB changes the predicted class of Base at most 2 points more often than "
        "another order of batches does",
        quantity="share of non-members that keep the predicted class of Base: that under PPB minus "
        "that under another order of batches",
        above=-0.02,
        margin=0.02,
        paper="section 6.2",
        quote="the PPB defense will not change the predicted classes of the pruned models",
        section="6.2",
        control=f"{same_start}; another order of batches",
    ),
    regime={
        "dense member accuracy": 0.95,
        "dense test accuracy": learnt,
        "member accuracy of Base": 0.95,
    },
)
claims

# %% [markdown]
# ## Confidence and sensitivity of each sample (Fig. 14)
# The last bin also counts the largest 0.1 % of the values.

# %%
study = PruningStudy(
    Data(data, pixels, joined=True),
    Model(model, width, stem),
    Schedule(epochs, batch, "adam", lr, decay=decay, patience=patience),
    fine_tuning=retrain_epochs,
    pool=pool,
    dev=dev,
    targets=targets,
    shadows=shadows,
    seed=seed,
    precision=precision,
)
pruner = "L1 unstructured"
variants = {"dense": study.dense, "Base": study.pruned(pruner, sparsity)}
variants["PPB"] = study.pruned(pruner, sparsity, PPB(ppb))
pruned = study.target_networks(study.dense.pruned(pruner, sparsity))
reordered = pruned.train(study.tuning, order=1).signals()
sensitivity = study.sensitivities(variants, queries)
removed = {(pruner, sparsity): study.removed(variants["Base"])}
stopped = study.pruned_early(pruner, sparsity, dense_stops, stops)
comparison = lab.compare(
    variants,
    {"Conf": Threshold()},
    targets=targets,
    checkpoints={"Base": stopped},
    also=[sensitivity, removed, reordered],
)

# %%
networks = behaviours(comparison.results, variants, sensitivity)
gap_values = {variant: gaps(by_target) for variant, by_target in networks.items()}
unit = {"confidence": 1.0, "sensitivity": abs(gap_values["dense"]["sensitivity"].mean())}


def change(kind, other):
    """A gap of PPB minus that of another variant, in its unit."""
    of_ppb = gap_values["PPB"][kind] / unit[kind]
    return audit.paired_difference(of_ppb, gap_values[other][kind] / unit[kind])


# %%
panels, notes = {}, {}
for variant in ("Base", "PPB"):
    target = networks[variant][0]
    member = target["member"]
    for kind in unit:
        panels[variant, kind] = [target[kind][member], target[kind][~member]]
        notes[variant, kind] = f"gap {gap_values[variant][kind][0]:.3f}"
fall = change("confidence", "Base")
effect = report.effect(
    fall, "significantly raises", "significantly lowers", "does not significantly change"
)
report.histograms(
    panels,
    ("members", "non-members"),
    notes,
    log=True,
    title=f"Over all targets, PPB {effect} the confidence gap ({fall.value:+.2f})",
    xlabel=f"confidence or sensitivity of each sample (target 1 of {targets})",
    ylabel="share of samples",
)

# %% [markdown]
# ## Confidence gap by class (Fig. 15)
# Mean over targets.

# %%
rows = []
for variant, by_target in networks.items():
    by_class = []
    for target in by_target:
        columns = target["confidence"], target["member"], target["label"]
        by_class.append(gap_by_class(*columns, study.data.classes))
    for number, values in enumerate(np.transpose(by_class)):
        row = {"class": str(number), "network": variant}
        rows.append(row | {"value": audit.mean_ci(values)})
from_dense = change("confidence", "dense")
above_or_below = report.effect(from_dense, "above", "below", "about")
report.profile(
    rows,
    "class",
    hue="network",
    reference=None,
    title=f"With PPB, the mean confidence gap over classes is {above_or_below} the dense network's",
    xlabel="number of the class",
    ylabel="confidence gap",
)

# %% [markdown]
# ## Accuracy, leakage and gaps


# %%
def confidence_gaps(population):
    """Confidence gap of each target network."""
    values = []
    for step in study.target_networks(population).signals():
        stored = comparison.results[step]
        pool = in_pool(stored["role"])
        of_truth = confidence(stored["logits"][pool], stored["labels"][pool])
        values.append(gap(of_truth, stored["role"][pool] == Role.MEMBER))
    return values


members = {v: comparison.estimate(v, "", "member accuracy") for v in comparison.variants}
fit = {epoch: members[lab.Checkpoint("Base", epoch)].value for epoch in stopped}
below = [epoch for epoch in stopped if fit[epoch] <= members["PPB"].value]
above = [epoch for epoch in stopped if fit[epoch] > members["PPB"].value]
surrounding = sorted(below, key=fit.get)[-1:] + sorted(above, key=fit.get)[:1]

# %%
shown = [*variants, *[lab.Checkpoint("Base", epoch) for epoch in surrounding]]
confidence_gap_of = {v: audit.mean_ci(gap_values[v]["confidence"]) for v in variants}
for epoch in surrounding:
    estimate = audit.mean_ci(confidence_gaps(stopped[epoch]))
    confidence_gap_of[lab.Checkpoint("Base", epoch)] = estimate
rows = []
for variant in shown:
    row = {"network": str(variant), "member accuracy": members[variant]}
    row["test accuracy"] = comparison.accuracy(variant)
    row["AUC of Conf"] = comparison.estimate(variant, "Conf")
    row["confidence gap"] = confidence_gap_of[variant]
    row["sensitivity gap"] = None
    if variant in variants:
        row["sensitivity gap"] = audit.mean_ci(gap_values[variant]["sensitivity"])
    rows.append(row)
caption = f"Mean over {targets} targets, {sparsity:.0%} sparsity"
report.table(rows, caption=f"{caption}. Epochs before and after pruning are counted together")

# %% [markdown]
# ## Verdicts


# %%
def agreement(steps):
    """Share of each target's non-members for which a network predicts the class that Base does."""
    undefended = variants["Base"].signals()[:targets]
    shares = []
    for step, base in zip(steps, undefended, strict=True):
        shares.append(same_predictions(comparison.results[step], comparison.results[base]))
    return shares


with_ppb = agreement(variants["PPB"].signals()[:targets])
with_other_order = agreement(reordered)
manipulation_checks = comparison.pruned_as_asked(removed)
member_accuracy_fall = comparison.contrast("Base", "PPB", metric="member accuracy")
manipulation_checks["PPB lowers the accuracy on members"] = member_accuracy_fall
kept = f"{np.mean(with_ppb):.0%} under PPB, {np.mean(with_other_order):.0%} under another order"
losses = {"fall of member accuracy": member_accuracy_fall}
losses["fall of test accuracy"] = comparison.accuracy_difference("Base", "PPB")
for epoch in surrounding:
    words = f"gap of Base stopped at member accuracy {fit[epoch]:.3f}"
    losses[words] = confidence_gap_of[lab.Checkpoint("Base", epoch)]
notes = {
    "confidence_falls": report.listed(losses),
    "classes_kept": f"non-members that keep the class: {kept} of batches",
    "as_dense": f"with PPB the gap is {above_or_below} that of the dense network",
}

# %%
report.judge(
    claims,
    confidence_falls=fall,
    beats_stopping=comparison.early_stopping("PPB", "Conf"),
    sensitivity_falls=change("sensitivity", "Base"),
    as_dense=from_dense,
    classes_kept=audit.paired_difference(with_ppb, with_other_order),
    notes=notes,
    checks={claim.name: manipulation_checks for claim in claims},
    regime={
        "dense member accuracy": comparison.estimate("dense", "", "member accuracy"),
        "dense test accuracy": comparison.accuracy("dense"),
        "member accuracy of Base": comparison.estimate("Base", "", "member accuracy"),
    },
)

# %% [markdown]
# **Limits.** All targets draw their members from the same half of the pool. A smaller gap need not
# mean less leakage: the AUC of Conf depends only on the order of the confidences, and the order can
# stay the same. One weight of PPB's penalty is tried.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
