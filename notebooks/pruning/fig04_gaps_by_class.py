# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does pruning widen the gaps of most classes?
#
# **The paper.** Yuan & Zhang (2022), Fig. 4: pruning increases the divergence of confidences and of
# sensitivities, and "Such divergence also differs among classes" (section 4.1).
#
# **Setup.** L1 unstructured pruning removes the smallest weights; then the network is fine-tuned.
# *Confidence* is the probability that a network gives to the true class. *Sensitivity* is the mean
# absolute change of that probability under small noise on the input, divided by the size of the
# noise. The *confidence gap* of a class is the mean confidence of its members minus that of its
# non-members. The *sensitivity gap* is the mean sensitivity of its non-members minus that of its
# members.
#
# **Controls.**
#
# 1. *Fine-tuning alone* (decides the answer): the dense network is trained for the same number of
#    epochs, and nothing is pruned. Does the pruned network have the larger confidence gap in more
#    than half of the pairs of class and target network?
# 2. *Permuted class labels*: a class has few samples, so gaps also differ among classes by chance.
#    Permuted labels show how much.

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
shuffles = 100  # permutations of the class labels (ours)
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
from leak_atlas.localization.divergence import (
    behaviours,
    gap_by_class,
    permuted_labels,
)
from leak_atlas.recipe import Data, Model, PruningStudy, Schedule

tuned = "fine-tuned dense"
share_of_classes = "mean over targets of the share of classes with a larger"
quote = (
    "The divergence of confidence (a) and sensitivity (b) between members and nonmembers is "
    "increased"
)
claims = report.claims(
    report.Claim(
        "confidence_not_epochs",
        "In more than half of the pairs of class and target, pruning raises the confidence gap "
        "beyond fine-tuning alone",
        fails="In less than half of the pairs of class and target, pruning raises the confidence "
        "gap beyond fine-tuning alone",
        quantity=f"{share_of_classes} confidence gap (mean confidence of members minus that of "
        "non-members) in the pruned than in the fine-tuned dense network",
        above=0.5,
        margin=0.17,
        ours="our control",
        control="fine-tuning for the same number of epochs, nothing pruned; paired over targets "
        "and classes",
        headline=True,
    ),
    report.Claim(
        "sensitivity_not_epochs",
        "In more than half of the pairs of class and target, pruning raises the sensitivity gap "
        "beyond fine-tuning alone",
        quantity=f"{share_of_classes} sensitivity gap (mean sensitivity of non-members minus that "
        "of members) in the pruned than in the fine-tuned dense network",
        above=0.5,
        margin=0.17,
        ours="our control",
        control="fine-tuning for the same number of epochs, nothing pruned; paired over targets "
        "and classes",
    ),
    report.Claim(
        "confidence_in_most",
        "In most classes pruning raises the confidence gap",
        quantity=f"{share_of_classes} confidence gap in the pruned than in the dense network",
        above=0.5,
        margin=0.17,
        paper="our reading of Fig. 4",
        quote=quote,
        section="4.1",
        control="paired over targets and classes",
    ),
    report.Claim(
        "sensitivity_in_most",
        "In most classes pruning raises the sensitivity gap",
        quantity=f"{share_of_classes} sensitivity gap in the pruned than in the dense network",
        above=0.5,
        margin=0.17,
        paper="our reading of Fig. 4",
        quote=quote,
        section="4.1",
        control="paired over targets and classes",
    ),
    report.Claim(
        "confidence_varies",
        "In pruned networks the confidence gap differs more among classes than by chance",
        quantity="pruned network: standard deviation of the confidence gap over classes, divided "
        "by the mean standard deviation under permuted class labels; mean over targets",
        above=1.0,
        margin=0.2,
        paper="Fig. 4",
        quote="Such divergence also differs among classes",
        section="4.1",
        control="class labels permuted among members and among non-members",
    ),
    regime={
        "dense member accuracy": 0.95,
        "dense test accuracy": learnt,
        "pruned member accuracy": 0.95,
    },
)
claims

# %% [markdown]
# ## Confidence gap by class (Fig. 4)
# Points are means over targets. Classes have the data set's numbers.

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
networks = behaviours(comparison.results, variants, sensitivity)
classes = study.data.classes


# %%
def class_gaps(kind, variant):
    """Gap of each class of each target, (targets, classes)."""
    sign = -1 if kind == "sensitivity" else 1  # sensitivity: non-members minus members
    gaps = []
    for target in networks[variant]:
        values = sign * target[kind]
        gaps.append(gap_by_class(values, target["member"], target["label"], classes))
    return np.array(gaps)


def share_larger(kind, other):
    """Share of classes whose gap is larger in the pruned than in another variant; mean over
    targets.
    """
    is_larger = class_gaps(kind, pruner) > class_gaps(kind, other)
    return audit.mean_ci(is_larger.mean(axis=1), bounds=(0, 1))


def spread_by_chance(target, rng):
    """Standard deviation of the confidence gap over permuted classes, mean over permutations."""
    values, member = target["confidence"], target["member"]
    deviations = []
    for _ in range(shuffles):
        labels = permuted_labels(target["label"], member, rng)
        deviations.append(np.std(gap_by_class(values, member, labels, classes)))
    return np.mean(deviations)


# %%
confidence = {variant: class_gaps("confidence", variant) for variant in variants}
spread = {}
for variant in variants:
    rng = np.random.default_rng(seed)
    ratios = []
    for target, gaps in zip(networks[variant], confidence[variant], strict=True):
        ratios.append(gaps.std() / spread_by_chance(target, rng))
    spread[variant] = audit.mean_ci(ratios)

# %%
order = np.argsort(-confidence["dense"].mean(axis=0))
rows = []
for variant in variants:
    for class_number in order:
        value = audit.mean_ci(confidence[variant][:, class_number])
        rows.append({"class": str(class_number), "network": variant, "value": value})
share = share_larger("confidence", tuned).value
report.profile(
    rows,
    "class",
    hue="network",
    reference=None,
    title=f"In {share:.0%} of pairs of class and target, pruning raises the confidence gap beyond "
    "fine-tuning alone",
    xlabel="number of the class, largest gap of the dense network first",
    ylabel="confidence gap",
)

# %% [markdown]
# ## Differences among classes, compared with chance
# The *spread* is the standard deviation of the confidence gap over classes, divided by its mean
# under permuted class labels; 1 is chance. Differences among classes that the dense network also
# shows do not come from pruning.

# %%
rows = []
for variant in variants:
    row = {"network": variant}
    row["member accuracy"] = comparison.estimate(variant, "", "member accuracy")
    row["test accuracy"] = comparison.accuracy(variant)
    row["confidence gap"] = audit.mean_ci(confidence[variant].mean(axis=1))
    row["spread over classes"] = spread[variant]
    rows.append(row)
report.table(rows, caption=f"Mean over {targets} targets; {pruner} removes {sparsity:.0%}")

# %% [markdown]
# ## Verdicts

# %%
pruning_acts = comparison.pruned_as_asked(removed)
report.judge(
    claims,
    confidence_not_epochs=share_larger("confidence", tuned),
    sensitivity_not_epochs=share_larger("sensitivity", tuned),
    confidence_in_most=share_larger("confidence", "dense"),
    sensitivity_in_most=share_larger("sensitivity", "dense"),
    confidence_varies=spread[pruner],
    notes={"confidence_varies": report.listed({"dense networks": spread["dense"]})},
    checks={claim.name: pruning_acts for claim in claims},
    regime={
        "dense member accuracy": comparison.estimate("dense", "", "member accuracy"),
        "dense test accuracy": comparison.accuracy("dense"),
        "pruned member accuracy": comparison.estimate(pruner, "", "member accuracy"),
    },
)

# %% [markdown]
# **Limits.** The page tests one pruner at one sparsity. All targets draw their members from the
# same half of the pool, so the gaps of a class may be similar in all targets. Gaps in the table are
# means over classes; those in `fig01_gaps` are means over samples.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
