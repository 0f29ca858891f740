# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does pruning widen the gaps between members and non-members?
#
# **The paper.** Yuan & Zhang (2022), Fig. 1: "the divergence of prediction confidences and
# prediction sensitivities is increased due to neural network pruning" (section 4.1).
#
# **Setup.** L1 unstructured pruning removes the smallest weights; then the network is fine-tuned.
# *Confidence* is the probability that a network gives to the true class. *Sensitivity* is the mean
# absolute change of that probability under small noise on the input, divided by the size of the
# noise. The *confidence gap* is the mean of members minus that of non-members. The *sensitivity
# gap* is the mean of non-members minus that of members, as members are expected to be less
# sensitive.
#
# **Controls.**
#
# 1. *Fine-tuning alone* (decides both answers): the dense network is trained for the same number of
#    additional epochs, and nothing is pruned. Does the pruned network have a larger confidence gap,
#    and a larger sensitivity gap?
# 2. *Logarithms*: a sensitivity gap also grows if all sensitivities grow by one factor, or if a few
#    samples become very sensitive. In both cases the order of most samples can stay the same. The
#    gap in log10 of the sensitivity does not change with a common factor and depends little on a
#    few samples.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: CIFAR10
pixels = 16  # side of the images, pixels, after area resize (paper: 32)
model = "resnet10"  # architecture (paper: densenet121)
width = 16  # channels of stage 1 (64 by the architecture)
stem = "conv3-pool"  # first layer (published code: a 3x3 convolution and a max-pool)
pool = 1200  # samples in all: one half for the targets, one half for the attacker (paper: all)
dev = 60  # samples of each half kept for `patience`; half of the rest are members (paper: a tenth)
targets = 10  # target networks; each draws its members from the targets' half (paper: 1)
sparsity = 0.6  # share of the weights that is removed, as on the other pages (paper: .7)
queries = 10  # noisy copies of each sample (paper: 10)
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
from leak_atlas.localization.divergence import behaviours, gap, gaps
from leak_atlas.recipe import Data, Model, PruningStudy, Schedule

tuned = "fine-tuned dense"
relative = "as a share of the dense networks' mean gap"
paired = "paired over targets"
beyond = "fine-tuning for the same number of epochs, nothing pruned; paired over targets"
quote = "the divergence of prediction confidences and prediction sensitivities is increased"
claims = report.claims(
    report.Claim(
        "confidence_not_epochs",
        "Pruning raises the confidence gap beyond fine-tuning alone",
        fails="Pruning gives a smaller confidence gap than fine-tuning alone",
        quantity="confidence gap (mean confidence in the true class of members minus that of "
        "non-members): pruned minus fine-tuned dense network",
        above=0.0,
        margin=0.02,
        ours="our control",
        control=beyond,
        headline=True,
    ),
    report.Claim(
        "sensitivity_not_epochs",
        "Pruning raises the sensitivity gap beyond fine-tuning alone",
        fails="Pruning gives a smaller sensitivity gap than fine-tuning alone",
        quantity="sensitivity gap (mean sensitivity to small noise of non-members minus that of "
        f"members): pruned minus fine-tuned dense network, {relative}",
        above=0.0,
        margin=0.25,  # a quarter of a dense network's gap
        ours="our control",
        control=beyond,
        headline=True,
    ),
    report.Claim(
        "confidence_grows",
        "Pruning raises the confidence gap",
        quantity="confidence gap: pruned minus dense network",
        above=0.0,
        margin=0.02,
        paper="Fig. 1",
        quote=quote,
        section="4.1",
        control=paired,
    ),
    report.Claim(
        "sensitivity_grows",
        "Pruning raises the sensitivity gap",
        quantity=f"sensitivity gap: pruned minus dense network, {relative}",
        above=0.0,
        margin=0.25,
        paper="Fig. 1",
        quote=quote,
        section="4.1",
        control=paired,
    ),
    report.Claim(
        "sensitivity_by_ratio",
        "Pruning raises the gap in the logarithm of the sensitivity beyond fine-tuning alone",
        quantity="gap in log10 of the sensitivity: pruned minus fine-tuned dense network",
        above=0.0,
        margin=0.1,  # a factor of 1.26
        ours="our control",
        control=f"{beyond}; logarithms, which ignore a common factor",
    ),
    regime={
        "dense member accuracy": 0.95,
        "dense test accuracy": learnt,
        "pruned member accuracy": 0.95,
    },
)
claims

# %% [markdown]
# ## Confidence and sensitivity of each sample (Fig. 1)
# The figure shows one target; its title states the mean result over all targets. Vertical lines
# are means. The last bin also counts the largest 0.1 % of the values. The noise on the normalised
# input has standard deviation 0.001.

# %%
study = PruningStudy(
    Data(data, pixels, joined=True),
    Model(model, width, stem),
    Schedule(epochs, batch, "adam", lr, decay=decay, patience=patience),
    fine_tuning=retrain_epochs,
    pool=pool,
    dev=dev,
    targets=targets,
    seed=seed,
    precision=precision,
)
pruner = "L1 unstructured"
variants = {"dense": study.dense, tuned: study.tuned(), pruner: study.pruned(pruner, sparsity)}
sensitivity = study.sensitivities(variants, queries)
removed = {(pruner, sparsity): study.removed(variants[pruner])}
comparison = lab.compare(variants, {}, also=[sensitivity, removed])

# %%
networks = behaviours(comparison.results, variants, sensitivity)
target_gaps = {variant: gaps(behaviour) for variant, behaviour in networks.items()}
gap_unit = {"confidence": 1.0, "sensitivity": abs(target_gaps["dense"]["sensitivity"].mean())}


def change(kind, other):
    """A gap of the pruned network minus that of another variant, mean over targets."""
    pruned_gaps = target_gaps[pruner][kind] / gap_unit[kind]
    other_gaps = target_gaps[other][kind] / gap_unit[kind]
    return audit.paired_difference(pruned_gaps, other_gaps)


# %%
panels, notes = {}, {}
for variant in variants:
    first = networks[variant][0]
    member = first["member"]
    for kind in gap_unit:
        panels[variant, kind] = [first[kind][member], first[kind][~member]]
        notes[variant, kind] = f"gap {target_gaps[variant][kind][0]:.3f}"
effect = report.effect(
    change("confidence", tuned),
    "significantly raises",
    "significantly lowers",
    "does not significantly change",
)
report.histograms(
    panels,
    ("members", "non-members"),
    notes,
    log=True,
    title=f"Beyond fine-tuning alone, pruning {effect} the mean confidence gap",
    xlabel=f"confidence or sensitivity of each sample (target 1 of {targets})",
    ylabel="share of samples",
)

# %% [markdown]
# ## Gaps of all targets
# The paper compares the pruned with the dense network. A gap of the first target (figure) can
# change in another direction than the mean.

# %%
rows = []
for variant in variants:
    row = {"network": variant}
    row["member accuracy"] = comparison.estimate(variant, "", "member accuracy")
    row["test accuracy"] = comparison.accuracy(variant)
    for kind in gap_unit:
        row[f"{kind} gap"] = audit.mean_ci(target_gaps[variant][kind])
    rows.append(row)
report.table(rows, caption=f"Mean over {targets} targets; {pruner} removes {sparsity:.0%}")

# %% [markdown]
# ## Verdicts


# %%
def log_gap(variant):
    """Gap in log10 of the sensitivity, non-members minus members, one value a target."""
    values = []
    for target in networks[variant]:
        logarithm = np.log10(target["sensitivity"] + 1e-6)  # defined at sensitivity 0
        values.append(-gap(logarithm, target["member"]))  # `gap`: members minus non-members
    return values


log_gap_change = audit.paired_difference(log_gap(pruner), log_gap(tuned))
log_gap_note = report.listed(
    {"change of the gap in log10 of the sensitivity (control 2)": log_gap_change}
)
pruning_acts = comparison.pruned_as_asked(removed)
report.judge(
    claims,
    confidence_not_epochs=change("confidence", tuned),
    sensitivity_not_epochs=change("sensitivity", tuned),
    confidence_grows=change("confidence", "dense"),
    sensitivity_grows=change("sensitivity", "dense"),
    sensitivity_by_ratio=log_gap_change,
    notes={"sensitivity_not_epochs": log_gap_note},
    checks={claim.name: pruning_acts for claim in claims},
    regime={
        "dense member accuracy": comparison.estimate("dense", "", "member accuracy"),
        "dense test accuracy": comparison.accuracy("dense"),
        "pruned member accuracy": comparison.estimate(pruner, "", "member accuracy"),
    },
)

# %% [markdown]
# **Limits.** The page tests one pruner at one sparsity. All targets draw their members from the
# same half of the pool; the intervals do not include the choice of that half. A larger gap need not
# mean more leakage: an attack can identify the same number of members while a gap grows.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
