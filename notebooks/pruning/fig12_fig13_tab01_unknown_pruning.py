# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does the attacker have to know how the network was pruned?
#
# **The paper.** Yuan & Zhang (2022), Fig. 12 and Tab. 1: "the attack accuracy is not affected too
# much due to the different sparsity levels" (section 5.2.5).
#
# **Setup.** The attacker prunes its shadow models to another sparsity than the targets (a dense
# network among them), or with another pruner to another sparsity. SAMIA learns from these shadow
# models.
#
# **Controls.** Control 1 decides.
#
# 1. *Shadow models that are as accurate* as the right ones: the paper says that their accuracy
#    decides.
# 2. *The other direction*: targets and shadow models swap their sparsities.
# 3. *Targets that have learned* (member accuracy at least .8): others have nothing to lose.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: CIFAR10
pixels = 16  # side of the images, pixels, after area resize (paper: 32)
model = "resnet10"  # architecture (paper: resnet18)
width = 16  # channels of stage 1 (64 by the architecture)
stem = "conv3-pool"  # first layer (published code: a 3x3 convolution and a max-pool)
pool = 1200  # samples of train and test part: half the targets', half the attacker's (paper: all)
dev = 60  # samples of each half set apart for `patience`; the rest is half member (paper: a tenth)
victims = 10  # target networks, which split the targets' half (paper: 1)
shadows = 5  # shadow models, which split the attacker's half (paper: 5)
sparsities = [0.6, 0.8]  # shares of the weights that are removed (paper: .5 to .9)
trials = 20  # random pairs of targets and shadow models for Tab. 1 (paper: 20)
epochs = 12  # of the dense network, at most (published code: 100)
retrain_epochs = 6  # epochs after pruning, at most (published code: half of `epochs`)
patience = None  # epochs without a better dev accuracy before the end (paper: 5, of the dev loss)
batch = 32  # samples a step (paper: 128)
lr = 0.002  # learning rate of Adam (paper: 0.001)
decay = "constant"  # of that rate, by the epoch (paper: names the rate alone)
attack_epochs = 10  # of the attack networks (paper: 100)
attack_optimizer = "adam"  # of the attack networks (paper: sgd)
attack_lr = 0.001  # theirs (paper: 0.01 for SGD; published code: 0.001)
learnt = 0.6  # least test accuracy of a dense network that has learnt (ours)
seed = 7  # evaluation seed: of design, initialisation and order
pilots = [0, 1]  # seeds on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
import numpy as np
from leak_atlas import audit, lab, report
from leak_atlas.recipe import PRUNERS, SAMIA, Data, Model, PruningStudy, Schedule

knows = 0.8  # least member accuracy of a target that has learnt
lost_words = "attack accuracy of SAMIA: with shadow models pruned as the targets minus with those"
same_targets = "the same targets with shadow models pruned as they are; paired over targets"
claims = report.claims(
    report.Claim(
        "other_sparsity",
        "Shadow models of another sparsity cost SAMIA less than 5 points of attack accuracy",
        quantity=f"{lost_words} of another sparsity, mean over pairs whose targets have learned",
        below=0.05,
        margin=0.02,
        paper="Fig. 12",
        quote="the attack accuracy is not affected too much due to the different sparsity levels",
        section="5.2.5",
        control=same_targets,
        headline=True,
    ),
    report.Claim(
        "equally_accurate",
        "Shadow models of another pruning that are as accurate cost SAMIA nothing",
        quantity="relative loss of attack accuracy, mean of unlike pairs whose shadow models are "
        "at least as accurate as those pruned as the targets",
        below=0.02,
        margin=0.02,
        ours="our control of section 5.2.5",
        control=f"{same_targets}; test accuracy of the shadow models",
        headline=True,
    ),
    report.Claim(
        "sometimes_helps",
        "For some pair another sparsity of the shadow models raises the attack accuracy",
        quantity="attack accuracy of SAMIA: with shadow models of another sparsity minus with those "
        "of the same, best of all pairs",
        above=0.0,
        margin=0.02,
        paper="Fig. 12",
        quote="using a different sparsity level in pruning shadow models can even increase the "
        "attack accuracy",
        section="5.2.5",
        control=same_targets,
    ),
    report.Claim(
        "unknown",
        "Without any knowledge of the pruning SAMIA loses less than 7 % of its attack accuracy",
        quantity=f"relative loss of attack accuracy, mean of those of {trials} random pairs whose "
        "targets have learned",
        below=0.07,
        margin=0.03,
        paper="Tab. 1",
        quote="without knowing the sparsity levels and pruning approaches, the attack is still "
        "effective",
        section="5.2.5",
        control=same_targets,
    ),
    report.Claim(
        "direction",
        "Shadow models that are pruned less than the targets cost more than those pruned more",
        quantity="lost attack accuracy: with shadow models pruned less minus with those pruned more",
        above=0.0,
        margin=0.02,
        ours="our question",
        control="the same two sparsities in the other direction; paired over targets",
    ),
    regime={
        "dense member accuracy": 0.95,
        "dense test accuracy": learnt,
        "lowest member accuracy, L1 unstructured": knows,
    },
)
claims

# %% [markdown]
# ## Models
# The random pairs are drawn beforehand from four pruners and all sparsities; a pair may be alike.

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
sparse = [(pruner, sparsity) for pruner in PRUNERS for sparsity in sparsities]
populations = {(pruner, 0.0): study.dense for pruner in PRUNERS}
for pruner, sparsity in sparse:
    populations[pruner, sparsity] = study.pruned(pruner, sparsity)

drawn = np.random.default_rng(seed).integers(len(sparse), size=(trials, 2))
random_pairs = [(sparse[target], sparse[shadow]) for target, shadow in drawn]
pairs = list(random_pairs)
for target in populations:
    for shadow in populations:
        if target[0] == shadow[0]:
            pairs.append((target, shadow))
pairs += [(target, target) for target in sparse]
pairs = list(dict.fromkeys(pairs))

# %%
variants, attackers_models = {}, {}
for target, shadow in pairs:
    variants[target, shadow] = study.target_networks(populations[target])
    attackers_models[target, shadow] = study.shadow_models(populations[shadow])
shadow_signals = {p: study.shadow_models(each).signals() for p, each in populations.items()}
removed = {cell: study.removed(populations[cell]) for cell in sparse}
comparison = lab.compare(
    variants,
    {"SAMIA": SAMIA(epochs=attack_epochs, lr=attack_lr, optimizer=attack_optimizer)},
    targets=victims,
    shadows=attackers_models,
    also=[shadow_signals, removed],
)

# %% [markdown]
# ## Another sparsity (Fig. 12)
# A line for each sparsity of the targets; 0 is dense. Level lines mean that the sparsity of the
# shadow models does not matter.


# %%
def found(target, shadow):
    """Attack accuracy on each target, by shadow models that are pruned as `shadow`."""
    return comparison.measured((target, shadow), "SAMIA", "accuracy")


def loss(target, shadow):
    """Attack accuracy lost against shadow models that are pruned as the targets."""
    return found(target, target) - found(target, shadow)


def mean_over(losses):
    """Mean over pairs of the losses of each target; unresolved where there is no pair."""
    if losses:
        return audit.mean_ci(np.mean(losses, axis=0))
    reason = "no pair of such targets and shadow models has learned"
    return audit.Estimate(np.nan, -np.inf, np.inf, resolved=False, reason=reason)


def in_words(estimate):
    """A loss in points or percent, for a title."""
    return f"{100 * estimate.value:.1f}" if estimate.resolved else "an unknown number of"


rows = []
for target, shadow in pairs:
    if target[0] == shadow[0]:
        label = f"targets at {target[1]:.0%} sparsity" if target[1] else "dense targets"
        row = {"pruner": target[0], "targets": label, "shadow models": shadow[1]}
        rows.append(row | {"value": audit.mean_ci(found(target, shadow))})
rows = sorted(rows, key=lambda row: row["targets"])

# %%
members = {}
for target in populations:
    members[target] = comparison.estimate((target, target), "", "member accuracy")
able = [target for target in sparse if members[target].value >= knows]
same_pruner = []
for target, shadow in pairs:
    if target[0] == shadow[0] and target != shadow and target in able:
        same_pruner.append((target, shadow))
other = mean_over([loss(*pair) for pair in same_pruner])
report.curves(
    rows,
    "shadow models",
    hue="targets",
    facet="pruner",
    null=0.5,
    level="guess",
    title=f"Another sparsity of the shadow models costs SAMIA {in_words(other)} points",
    xlabel="sparsity of the shadow models",
    ylabel="attack accuracy",
)

# %% [markdown]
# ## Accuracy of the shadow models
# Means over unlike pairs whose targets have learned. Does the loss come from poor shadow models, or
# from shadow models that are pruned less?

# %%
skill = {}
for pruning, steps in shadow_signals.items():
    skill[pruning] = np.mean([comparison.results[step]["accuracy_test"] for step in steps])


def kind_of(target, shadow):
    """How shadow models differ from those pruned as the targets: in sparsity, in accuracy."""
    accuracy = "at least as accurate" if skill[shadow] >= skill[target] else "less accurate"
    if shadow[1] == target[1]:
        return "as sparse", accuracy
    return ("pruned less" if shadow[1] < target[1] else "pruned more"), accuracy


losses = {}  # relative losses of unlike pairs, by kind
for target, shadow in pairs:
    if target != shadow and target in able:
        relative = loss(target, shadow) / found(target, target)
        losses.setdefault(kind_of(target, shadow), []).append(relative)

# %%
rows = []
accurate = []
for sparser in ("pruned less", "as sparse", "pruned more"):
    for accuracy in ("at least as accurate", "less accurate"):
        each = losses.get((sparser, accuracy), [])
        row = {"shadow models": sparser, "accuracy": accuracy}
        rows.append(row | {"value": mean_over(each)})
        if accuracy == "at least as accurate":
            accurate += each
fair = mean_over(accurate)
report.profile(
    rows,
    "shadow models",
    hue="accuracy",
    null=0.0,
    level="no loss",
    title=f"Shadow models at least as accurate cost SAMIA {in_words(fair)} % of its accuracy",
    xlabel="shadow models, compared with the targets",
    ylabel="relative loss of attack accuracy",
)

# %%
rows = []
for target in sparse:
    row = {"targets": audit.described(target), "member accuracy": members[target]}
    row["test accuracy of shadow models"] = skill[target]
    row["attack accuracy"] = audit.mean_ci(found(target, target))
    row["by dense shadow models"] = audit.mean_ci(found(target, (target[0], 0.0)))
    rows.append(row)
caption = f"Mean over {victims} targets, attacked by {shadows} shadow models. Tab. 1 prints losses"
report.table(rows, caption=f"{caption} from −.6 to 6.9 % in ten cases, 12.4 and 26.8 % in two")

# %% [markdown]
# ## Verdicts

# %%
gains = [-audit.mean_ci(loss(*pair)) for pair in same_pruner] or [mean_over([])]
turned = []  # the second of a pair is pruned less, or not at all
for target, shadow in same_pruner:
    if shadow[1] < target[1] and (shadow in able or not shadow[1]):
        turned.append((target, shadow))
both_ways = [loss(a, b) - loss(b, a) for a, b in turned]
relative = [loss(a, b) / found(a, a) for a, b in random_pairs if a in able]
pruning_acts = comparison.pruned_as_asked({c: removed[c] for c in sparse if c[0] != "slimming"})
dense = (PRUNERS[0], 0.0)
seen = comparison.estimate((dense, dense), "SAMIA", "accuracy")
pruning_acts["SAMIA finds members of the dense network"] = seen.low > 0.5
magnitude = [members[cell].value for cell in sparse if cell[0] == "L1 unstructured"]

# %%
report.judge(
    claims,
    other_sparsity=other,
    equally_accurate=fair,
    sometimes_helps=audit.largest(gains),
    unknown=mean_over(relative),
    direction=mean_over(both_ways),
    checks={claim.name: pruning_acts for claim in claims},
    regime={
        "dense member accuracy": members[dense],
        "dense test accuracy": comparison.accuracy((dense, dense)),
        "lowest member accuracy, L1 unstructured": min(magnitude),
    },
)

# %% [markdown]
# **Limits.** All targets draw their members from the same half of the samples, and each way of pruning has one set of
# shadow models and one attack network. Pairs overlap, so that they are no independent evidence.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
