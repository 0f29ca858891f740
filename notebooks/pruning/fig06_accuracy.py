# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What does pruning cost in test accuracy?
#
# **The paper.** Yuan & Zhang (2022), Fig. 6: pruned networks "achieve close performance compared to
# the original model if the sparsity level is not high" (section 5.1.3). Close is 2 points, not high
# is 60 %: our readings.
#
# **Setup.** Networks are trained, a share of their weights is set to zero for good (the
# *sparsity*), and the rest is fine-tuned. L1 unstructured removes single weights, L1 and L2
# structured whole filters, slimming channels.
#
# **Controls.** Control 1 decides.
#
# 1. *The fine-tuned dense network*: the same number of epochs, nothing pruned. All comparisons are
#    with it, as a pruned network trains longer than the dense one.
# 2. *Random weights*: the same sparsity in each layer.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: CIFAR10, Purchase
pixels = 16  # side of the images, pixels, after area resize (paper: 32)
model = "resnet10"  # architecture (paper: resnet18)
width = 16  # channels of stage 1 (64 by the architecture)
stem = "conv3-pool"  # first layer (published code: a 3x3 convolution and a max-pool)
pool = 1200  # samples of train and test part: half the targets', half the attacker's (paper: all)
dev = 60  # samples of each half set apart for `patience`; the rest is half member (paper: a tenth)
victims = 10  # target networks, which split the targets' half (paper: 1)
shadows = 5  # shadow models, unused here: trained for Fig. 7 and 8
sparsities = [0.6, 0.8]  # shares of the weights that are removed (paper: .5 to .9)
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
from leak_atlas import audit, lab, report
from leak_atlas.recipe import PRUNERS, Data, Model, PruningStudy, Schedule

low, high = min(sparsities), max(sparsities)
tuned = "fine-tuned dense"
paired = "the same number of epochs; paired over targets"
claims = report.claims(
    report.Claim(
        "near_dense",
        f"At {low:.0%} sparsity every pruner costs less than 2 points of test accuracy",
        quantity="test accuracy: pruned minus fine-tuned dense, the lowest of four pruners",
        above=-0.02,
        margin=0.02,
        paper="Fig. 6",
        quote="achieve close performance compared to the original model if the sparsity level is "
        "not high",
        section="5.1.3",
        control=paired,
        headline=True,
    ),
    report.Claim(
        "falls",
        "Test accuracy falls with the sparsity, for every pruner",
        quantity=f"test accuracy: {high:.0%} minus {low:.0%} sparsity, the highest of four pruners",
        below=0.0,
        margin=0.02,
        paper="Fig. 6",
        quote="The accuracy of pruned models is reduced with the increase of the pruning sparsity",
        section="5.1.3",
        control=paired,
    ),
    report.Claim(
        "weights_are_cheaper",
        "Removing single weights costs less test accuracy than removing filters",
        quantity=f"test accuracy at {high:.0%} sparsity: L1 unstructured minus L1 or L2 structured, "
        "the lower difference",
        above=0.0,
        margin=0.02,
        paper="Fig. 6",
        quote="Unstructured pruning usually performs better than structured pruning",
        section="5.1.3",
        control=f"{paired}; the same sparsity of each convolution",
    ),
    report.Claim(
        "sometimes_better",
        "Some pruner at some sparsity makes networks more accurate than fine-tuning alone",
        quantity="test accuracy: pruned minus fine-tuned dense, the highest of all",
        above=0.0,
        margin=0.02,
        paper="Fig. 6",
        quote="Sometimes, pruned models can achieve higher accuracy than the original models",
        section="5.1.3",
        control=paired,
    ),
    report.Claim(
        "choice_matters",
        f"At {high:.0%} sparsity removing small weights costs less than removing random weights",
        quantity=f"test accuracy at {high:.0%} sparsity: L1 unstructured minus random weights",
        above=0.0,
        margin=0.02,
        ours="our control",
        control=f"{paired}; the same sparsity of each layer",
    ),
    regime={"dense member accuracy": 0.95, "dense test accuracy": learnt},
)
claims

# %% [markdown]
# ## Models

# %%
study = PruningStudy(
    Data(data, pixels, joined=True),
    Model(model, width, stem),
    Schedule(epochs, batch, "adam", lr, decay=decay, patience=patience),
    fine_tuning=retrain_epochs,
    pool=pool,
    dev=dev,
    targets=victims,
    shadows=shadows,
    seed=seed,
    precision=precision,
)
cells = [(pruner, sparsity) for pruner in PRUNERS for sparsity in sparsities]
random_cells = [("random weights", sparsity) for sparsity in sparsities]
variants = {"dense": study.dense, tuned: study.tuned()}
for pruner, sparsity in [*cells, *random_cells]:
    variants[pruner, sparsity] = study.pruned(pruner, sparsity)
targets = {variant: study.target_networks(each) for variant, each in variants.items()}
removed = {cell: study.removed(variants[cell]) for cell in [*cells, *random_cells]}
comparison = lab.compare(targets, {}, also=removed)

# %% [markdown]
# ## Test accuracy by sparsity (Fig. 6)
# The dotted line is the fine-tuned dense network.


# %%
def difference(one, other=tuned):
    """Test accuracy of a variant minus that of another one."""
    return comparison.contrast(one, other, metric="test accuracy")


costs = {pruner: difference((pruner, low)) for pruner in PRUNERS}
near = sum(cost.low > -0.02 for cost in costs.values())
report.profile(
    comparison.rows("", "test accuracy", ("pruner", "sparsity"), [*cells, *random_cells]),
    "sparsity",
    hue="pruner",
    null=comparison.accuracy(tuned).value,
    level=tuned,
    title=f"{near} of 4 pruners significantly cost less than 2 points at {low:.0%} sparsity",
    xlabel="sparsity",
    ylabel="test accuracy",
)

# %%
rows = []
for variant in targets:
    row = {"network": audit.described(variant)}
    row["member accuracy"] = comparison.estimate(variant, "", "member accuracy")
    row["test accuracy"] = comparison.accuracy(variant)
    if variant != tuned:
        row[f"minus {tuned}"] = difference(variant)
    rows.append(row)
report.table(rows, caption=f"Mean over {victims} targets; minus: in test accuracy")

# %% [markdown]
# ## Verdicts

# %%
magnitude, random = ("L1 unstructured", high), ("random weights", high)
filters = [(pruner, high) for pruner in ("L1 structured", "L2 structured")]
pruning_acts = comparison.pruned_as_asked(removed)
report.judge(
    claims,
    near_dense=audit.least(costs.values()),
    falls=audit.largest(difference((p, high), (p, low)) for p in PRUNERS),
    weights_are_cheaper=audit.least(difference(magnitude, cell) for cell in filters),
    sometimes_better=audit.largest(difference(cell) for cell in cells),
    choice_matters=difference(magnitude, random),
    checks={claim.name: pruning_acts for claim in claims},
    regime={
        "dense member accuracy": comparison.estimate("dense", "", "member accuracy"),
        "dense test accuracy": comparison.accuracy("dense"),
    },
)

# %% [markdown]
# **Limits.** All targets share one half of the samples. A removed filter takes parameters of the
# next layer along: filters are compared at the same sparsity of each convolution, as in the paper.
# Slimming ranks channels over the whole network without sparsity training, as published.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
