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
# The *confidence gap* of a class is the mean confidence in the true class of its members minus that
# of its non-members. The *sensitivity gap* is the mean sensitivity to small noise of its
# non-members minus that of its members.
#
# **Controls.**
#
# 1. *Fine-tuning alone* (decides whether pruning widens a gap): the dense network is trained for
#    the same number of epochs, and nothing is pruned.
# 2. *Permuted class labels*: a class has few samples, so gaps differ among classes by chance, too.
#    Permuted labels measure by how much.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: CIFAR10
pixels = 16  # side of the images, pixels, after area resize (paper: 32)
model = "resnet10"  # architecture (paper: densenet121)
width = 16  # channels of stage 1 (64 by the architecture)
stem = "conv3-pool"  # first layer (published code: a 3x3 convolution and a max-pool)
pool = 1200  # samples of train and test part: half the targets', half the attacker's (paper: all)
dev = 60  # samples of each half set apart for `patience`; the rest is half member (paper: a tenth)
targets = 10  # target networks, which split the targets' half (paper: 1)
sparsity = 0.6  # share of the weights that is removed, as on the other pages (paper: .7)
queries = 10  # noisy copies of each sample (paper: 10)
shuffles = 100  # permutations of the classes (ours)
epochs = 12  # of the dense network, at most (published code: 100)
retrain_epochs = 6  # epochs after pruning, at most (published code: half of `epochs`)
patience = None  # epochs without a better dev accuracy before the end (paper: 5, of the dev loss)
batch = 32  # samples a step (paper: 128)
lr = 0.002  # learning rate of Adam (paper: 0.001)
decay = "constant"  # of that rate, by the epoch (paper: names the rate alone)
learnt = 0.6  # least test accuracy of a dense network that has learnt (ours)
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
larger = "share of classes with a larger"
quote = (
    "The divergence of confidence (a) and sensitivity (b) between members and nonmembers is "
    "increased"
)
claims = report.claims(
    report.Claim(
        "confidence_not_epochs",
        "In most classes pruning raises the confidence gap beyond fine-tuning alone",
        fails="In most classes pruning does not raise the confidence gap beyond fine-tuning alone",
        quantity=f"{larger} confidence gap (mean confidence of members minus that of "
        "non-members) in the pruned than in the fine-tuned dense network",
        above=0.5,
        margin=0.17,
        ours="our control",
        control="fine-tuning for the same number of epochs, nothing pruned; each class of each "
        "target is compared with itself",
        headline=True,
    ),
    report.Claim(
        "confidence_in_most",
        "In most classes pruning raises the confidence gap",
        quantity=f"{larger} confidence gap in the pruned than in the dense network",
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
        quantity=f"{larger} sensitivity gap in the pruned than in the dense network",
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
        quantity="standard deviation of the confidence gap over classes, divided by the mean "
        "standard deviation under permuted class labels",
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
# Points are means over targets. Classes are numbered as in the data set. The title counts every
# class of every target.

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
    """Gap of each target's classes, (targets, classes)."""
    sign = -1 if kind == "sensitivity" else 1
    each = [(sign * one[kind], one["member"], one["label"]) for one in networks[variant]]
    return np.array([gap_by_class(*columns, classes) for columns in each])


def in_most(kind, other):
    """Share of classes whose gap is larger in the pruned network than in another one."""
    is_larger = class_gaps(kind, pruner) > class_gaps(kind, other)
    return audit.mean_ci(is_larger.mean(axis=1), bounds=(0, 1))


# %%
confidence = {variant: class_gaps("confidence", variant) for variant in variants}
spread = {}
for variant in variants:
    rng = np.random.default_rng(seed)
    ratios = []
    for one, class_gap in zip(networks[variant], confidence[variant], strict=True):
        chance = []
        for _ in range(shuffles):
            labels = permuted_labels(one["label"], one["member"], rng)
            chance.append(np.std(gap_by_class(one["confidence"], one["member"], labels, classes)))
        ratios.append(class_gap.std() / np.mean(chance))
    spread[variant] = audit.mean_ci(ratios)

# %%
order = np.argsort(-confidence["dense"].mean(axis=0))
rows = []
for variant in variants:
    for number in order:
        value = audit.mean_ci(confidence[variant][:, number])
        rows.append({"class": str(number), "network": variant, "value": value})
share = in_most("confidence", tuned).value
report.profile(
    rows,
    "class",
    hue="network",
    reference=None,
    title=f"{share:.0%} of classes have a larger confidence gap after pruning than after "
    "fine-tuning alone",
    xlabel="number of the class, largest gap of the dense network first",
    ylabel="confidence gap",
)

# %% [markdown]
# ## Differences among classes, compared with chance
# The *spread* is the standard deviation of the confidence gap over classes, divided by that under
# permuted class labels; 1 is chance. If the dense network has the same spread, the differences
# among classes do not come from pruning.

# %%
rows = []
for variant in variants:
    row = {"network": variant}
    row["member accuracy"] = comparison.estimate(variant, "", "member accuracy")
    row["test accuracy"] = comparison.accuracy(variant)
    row["confidence gap"] = audit.mean_ci(confidence[variant].mean(axis=1))
    row["spread over classes"] = spread[variant]
    rows.append(row)
report.table(rows, caption=f"Mean over {targets} targets; {classes} classes")

# %% [markdown]
# ## Verdicts

# %%
pruning_acts = comparison.pruned_as_asked(removed)
report.judge(
    claims,
    confidence_not_epochs=in_most("confidence", tuned),
    confidence_in_most=in_most("confidence", "dense"),
    sensitivity_in_most=in_most("sensitivity", "dense"),
    confidence_varies=spread[pruner],
    checks={claim.name: pruning_acts for claim in claims},
    regime={
        "dense member accuracy": comparison.estimate("dense", "", "member accuracy"),
        "dense test accuracy": comparison.accuracy("dense"),
        "pruned member accuracy": comparison.estimate(pruner, "", "member accuracy"),
    },
)

# %% [markdown]
# **Limits.** All targets draw their members from the same half of the pool, so that a class
# that is hard for one target is hard for the others. The gaps in the table are means over classes,
# those of `fig01_gaps` are means over samples.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
