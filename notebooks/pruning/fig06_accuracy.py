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
# the original model if the sparsity level is not high" (section 5.1.3).
#
# **Setup.** Networks are trained, a share of their weights is set to zero for good (the
# *sparsity*), and the rest is fine-tuned. L1 unstructured removes single weights, L1 and L2
# structured whole filters, slimming channels.
#
# **Controls.** Control 1 decides; control 2 enters no verdict.
#
# 1. *Random weights*: the same sparsity in each layer.
# 2. *Fine-tuning without pruning*, for the same number of epochs (in the table).

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
seed = 7  # evaluation seed: of design, initialisation and order
pilots = [0, 1]  # seeds on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import audit, lab, report
from leak_atlas.recipe import PRUNERS, Data, Model, PruningStudy, Schedule

low, high = min(sparsities), max(sparsities)
tuned = "fine-tuned dense network"
paired = "paired over targets"
claims = report.claims(
    report.Claim(
        "near_dense",
        f"At {low:.0%} sparsity every pruner costs less than 3 points of test accuracy",
        quantity=f"test accuracy: pruned network at {low:.0%} minus dense network, worst of the four "
        "pruners",
        above=-0.03,
        margin=0.03,
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
        quantity=f"test accuracy: {high:.0%} sparsity minus {low:.0%} sparsity, of the pruner that "
        "loses least",
        below=0.0,
        margin=0.03,
        paper="Fig. 6",
        quote="The accuracy of pruned models is reduced with the increase of the pruning sparsity",
        section="5.1.3",
        control=f"{paired}; the same number of epochs",
    ),
    report.Claim(
        "weights_are_cheaper",
        "Removing single weights costs less test accuracy than removing filters",
        quantity=f"test accuracy at {high:.0%} sparsity: L1 unstructured minus L1 or L2 structured, "
        "the smaller difference",
        above=0.0,
        margin=0.03,
        paper="Fig. 6",
        quote="Unstructured pruning usually performs better than structured pruning",
        section="5.1.3",
        control=f"{paired}; the same sparsity of each convolution",
    ),
    report.Claim(
        "sometimes_better",
        "Some pruner at some sparsity makes networks more accurate than dense ones",
        quantity="test accuracy: pruned network minus dense network, best of all pruners and "
        "sparsities",
        above=0.0,
        margin=0.03,
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
        margin=0.03,
        ours="our control",
        control="the same sparsity of each layer, the same number of epochs; paired over targets",
        headline=True,
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
# The dotted line is the dense network. The sparsity of filters counts convolutions alone, as in
# the paper.

# %%
names = ("pruner", "sparsity")
costs = {}
for pruner in PRUNERS:
    costs[pruner] = comparison.contrast((pruner, low), "dense", metric="test accuracy")
near = sum(cost.low > -0.03 for cost in costs.values())
who = f"{near} of {len(PRUNERS)} pruners are" if near else "No pruner is"
report.profile(
    comparison.rows("", "test accuracy", names, [*cells, *random_cells]),
    "sparsity",
    hue="pruner",
    null=comparison.accuracy("dense").value,
    level="dense",
    title=f"{who} shown to cost less than 3 points at {low:.0%} sparsity",
    xlabel="sparsity",
    ylabel="test accuracy",
)

# %%
members = {v: comparison.estimate(v, "", "member accuracy") for v in targets}
weights_removed = {}  # of all weights of the network, mean over targets
for cell, steps in removed.items():
    shares = [float(comparison.results[step]["network"]) for step in steps]
    weights_removed[cell] = audit.mean_ci(shares).value
rows = []
for variant in targets:
    row = {"network": audit.described(variant), "member accuracy": members[variant]}
    row["test accuracy"] = comparison.accuracy(variant)
    for other in ("dense", tuned):
        if variant != other:
            change = comparison.contrast(variant, other, metric="test accuracy")
            row[f"minus {other}"] = change
    if variant in removed:
        row["removed of all weights"] = weights_removed[variant]
    rows.append(row)
channels = f"slimming at {low:.0%} removes {weights_removed['slimming', low]:.0%} of all weights"
report.table(rows, caption=f"Mean over {victims} targets; minus: in test accuracy; {channels}")

# %% [markdown]
# ## Verdicts


# %%
def difference(one, other):
    """Test accuracy of a variant minus that of another one."""
    return comparison.contrast(one, other, metric="test accuracy")


pruning_acts = comparison.pruned_as_asked(removed)
magnitude, random = ("L1 unstructured", high), ("random weights", high)
filters = [(pruner, high) for pruner in ("L1 structured", "L2 structured")]
report.judge(
    claims,
    near_dense=audit.least(costs.values()),
    falls=audit.largest(difference((p, high), (p, low)) for p in PRUNERS),
    weights_are_cheaper=audit.least(difference(magnitude, cell) for cell in filters),
    sometimes_better=audit.largest(difference(cell, "dense") for cell in cells),
    choice_matters=difference(magnitude, random),
    checks={claim.name: pruning_acts for claim in claims},
    regime={
        "dense member accuracy": members["dense"],
        "dense test accuracy": comparison.accuracy("dense"),
    },
)

# %% [markdown]
# **Limits.** All targets draw their members from the same half of the samples. A filter that is removed takes parameters
# of the next layer along, so filters are compared at the same sparsity of each convolution, not
# at the same number of parameters. Slimming ranks channels over the whole network without sparsity
# training, as published.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
