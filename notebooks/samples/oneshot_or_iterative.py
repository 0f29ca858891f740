# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does iterative pruning leak more than one-shot pruning?
#
# **Question.** WeMem (Shang et al. 2025), slide on motivation: "MIA accuracy is higher in iteratively
# pruned models than in one-shot pruned models". The slide names data reuse as the reason and gives no
# number.
#
# **Setup.** Iterative pruning removes 60 % of the weights in five rounds, each followed by training.
# One-shot pruning removes the same share at once. The attacks are thresholds on the confidence (Conf)
# and on the modified entropy (Mentr), as in WeMem.
#
# **Controls.** Controls 1 and 2 decide.
#
# 1. *One-shot pruning with the same number of rounds* of training.
# 2. *Rounds without pruning*: the same training, no weight removed.

# %% tags=["parameters"]
data = "digits-bits"  # data set (slides: CIFAR10, CIFAR100, CINIC, Texas, Location, Purchase)
pixels = 0  # side of the images, pixels, after area resize; 0: as they are (published code: 32)
model = "fc"  # architecture (slides: ResNet18, VGG16, DenseNet121; FC for tables)
width = 256  # units of the first layer, or channels of stage 1 (published code: 256, 64)
stem = "conv3"  # first layer of a ResNet (published code: conv3-pool)
pool = 1740  # samples of train and test part; half the targets', half the attacker's (ours)
dev = 88  # samples of each half set apart; the rest is half member (published code: a tenth)
epochs = 100  # epochs of the dense network (published code: 100)
round_epochs = 21  # epochs of a round (published code: 21)
batch = 128  # samples a step (published code: 128)
lr = 0.001  # learning rate of Adam (published code: 0.001)
decay = "constant"  # of that rate, by the epoch (published code: constant)
patience = None  # epochs without a better dev accuracy until a stop (published code: 5)
targets = 10  # target networks, which share one half of the pool (published code: 1)
shadows = 5  # shadow models, which share the other half (published code: 5)
rounds = 5  # rounds, the first of which removes nothing (slides: 5)
sparsity = 0.6  # share of the weights that the last round has removed (slides: mainly .6)
learnt = 0.6  # least test accuracy of a dense network that has learnt (ours)
seed = 7  # seed of design, initialisation and order
pilots = [0, 1]  # seeds on which claims, borders and controls were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import lab, report
from leak_atlas.recipe import Data, LiRA, Model, Schedule, Threshold, WindowStudy

iterative, shot, kept = "iterative", "one-shot", "unpruned"
accuracy = f"attack accuracy (mean of Conf and Mentr): {iterative}, all rounds, minus"
motivation = "slide on motivation"
same_attacks = "the same attacks on both sides; paired over targets"
claims = report.claims(
    report.Claim(
        "published",
        "Iterative pruning raises attack accuracy above one-shot pruning followed by one round",
        quantity=f"{accuracy} {shot}, one round",
        above=0.0,
        margin=0.02,
        paper=motivation,
        quote="MIA accuracy is higher in iteratively pruned models than in one-shot pruned models",
        section=motivation,
        control=same_attacks,
        headline=True,
    ),
    report.Claim(
        "reuse",
        "More training rounds raise attack accuracy, although no weight is removed",
        quantity=f"attack accuracy (mean of Conf and Mentr): {kept}, all rounds, minus dense",
        above=0.0,
        margin=0.02,
        paper=motivation,
        quote="More data reuse enhances memorization and presents greater privacy risks",
        section=motivation,
        control="the dense network before the rounds",
    ),
    report.Claim(
        "same_rounds",
        "With the same number of rounds, iterative pruning leaks as much as one-shot pruning",
        quantity=f"{accuracy} {shot}, all rounds",
        within=0.02,
        ours="our control",
        control="the same number of epochs and rounds",
    ),
    report.Claim(
        "nothing_removed",
        "Iterative pruning leaks as much as the same rounds without pruning",
        quantity=f"{accuracy} {kept}, all rounds",
        within=0.02,
        ours="our control",
        control="the same number of epochs and rounds",
        headline=True,
    ),
    regime={
        "dense member accuracy": 0.95,
        "dense test accuracy": learnt,
        "least member accuracy after a round": 0.9,
    },
)
claims

# %% [markdown]
# ## Models
# The first round of iterative pruning removes no weight, as in the published code.

# %%
study = WindowStudy(
    Data(data, pixels or None, joined=True),
    Model(model, width, stem),
    Schedule(epochs, batch, "adam", lr, decay=decay, patience=patience),
    fine_tuning=round_epochs,
    pool=pool,
    dev=dev,
    targets=targets,
    shadows=shadows,
    seed=seed,
    precision=precision,
    sparsity=sparsity,
    rounds=rounds,
)

# %%
paths = {
    iterative: study.iterative(),
    shot: study.pruned_at_once(),
    kept: study.rounds_without_pruning(),
}
dense = ("dense", 0)
variants = {dense: study.dense}
for name, path in paths.items():
    for number, population in enumerate(path, start=1):
        variants[name, number] = population
attackers = {
    "Conf": Threshold(),
    "Mentr": Threshold("modified_entropy"),
    "LiRA": LiRA("offline_cdf"),
}
ends = [dense, (iterative, rounds), (shot, 1), (shot, rounds), (kept, rounds)]
removed = {variant: study.removed(variants[variant]) for variant in ends}
comparison = lab.compare(
    variants,
    attackers,
    targets,
    only={"LiRA": ends},
    also=list(removed.values()),
)

# %% [markdown]
# ## Attack accuracy by round
# Differences from the dense network, mean of Conf and Mentr.


# %%
def higher(one, other):
    """Attack accuracy of one variant minus another's, mean of Conf and Mentr."""
    first = [(one, name) for name in ("Conf", "Mentr")]
    second = [(other, name) for name in ("Conf", "Mentr")]
    return comparison.stronger(first, second)


points = []
for variant in variants:
    if variant != dense:
        change = higher(variant, dense)
        points.append({"variant": variant[0], "round": str(variant[1]), "value": change})
last = (iterative, rounds)
published_difference = higher(last, (shot, 1))
words = "leaks more", "leaks less", "does not leak significantly more"
effect = report.effect(published_difference, *words)
unpruned = higher((kept, rounds), dense)
unpruned_effect = report.effect(unpruned, "raise", "lower", "do not significantly change")
several = f"Iterative pruning ({rounds} rounds) {effect} than one-shot (1 round)"
report.profile(
    points,
    "round",
    hue="variant",
    null=0.0,
    level="dense network",
    xlabel="round of training",
    ylabel="attack accuracy minus dense",
    title=f"{several}; unpruned rounds {unpruned_effect} leakage",
)

# %% [markdown]
# ## What explains the difference
# Attack accuracy of the iteratively pruned network minus that of each other network.

# %%
others = {
    "one-shot, one round": (shot, 1),
    "one-shot, the same rounds": (shot, rounds),
    "unpruned, the same rounds": (kept, rounds),
    "dense": dense,
}
bars = [{"the other": name, "value": higher(last, other)} for name, other in others.items()]
same = higher(last, (kept, rounds))
effect = report.effect(same, *words)
report.against_paper(
    bars,
    "the other",
    xlabel="attack accuracy, iterative minus the other",
    title=f"Iterative pruning {effect} than the same rounds without pruning",
)

# %%
head = "" if study.head else "The last layer is not pruned, as published"
rows = []
for variant in ends:
    gone = [float(comparison.results[step]["network"]) for step in removed[variant]]
    row = {"network": f"{variant[0]}, round {variant[1]}", "removed": f"{min(gone):.3f}"}
    row["member accuracy"] = comparison.estimate(variant, "", "member accuracy")
    row["test accuracy"] = comparison.accuracy(variant)
    row["Conf, accuracy"] = comparison.estimate(variant, "Conf", "accuracy")
    row["LiRA, AUC"] = comparison.estimate(variant, "LiRA")
    rows.append(row)
report.table(rows, caption=f"Mean across {targets} targets, {shadows} shadow models per attack. {head}")

# %% [markdown]
# ## Verdicts

# %%
gone = [float(comparison.results[step]["network"]) for step in removed[last]]
acts = {f"nearly {sparsity:.0%} of the weights are removed": min(gone) > sparsity - 0.03}
fit_change = comparison.contrast((kept, rounds), dense, metric="member accuracy")
trains = {"more rounds raise the accuracy on members": fit_change}
member_accuracies = []
for variant in variants:
    if variant != dense:
        member_accuracies.append(comparison.estimate(variant, "", "member accuracy").value)
report.judge(
    claims,
    published=published_difference,
    reuse=unpruned,
    same_rounds=higher(last, (shot, rounds)),
    nothing_removed=same,
    checks={"published": acts, "same_rounds": acts, "nothing_removed": acts, "reuse": trains},
    regime={
        "dense member accuracy": comparison.estimate(dense, "", "member accuracy"),
        "dense test accuracy": comparison.accuracy(dense),
        "least member accuracy after a round": min(member_accuracies),
    },
)

# %% [markdown]
# **Limits.** One data set, one architecture, one sparsity, and single weights alone: the slides prune
# filters too. The slides do not say how long a one-shot network is trained on. All targets share one
# half of the samples and one set of shadow models.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
