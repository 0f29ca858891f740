# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Is the privacy vulnerability concentrated in a few weights?
#
# **The paper.** Fang & Kim (2026), abstract: "privacy vulnerability exists in a very small fraction
# of weights", and "most of those weights also critically impact utility performance".
#
# **Setup.** Two scores sum a weight's |gradient × weight| over updates of a trained network.
# *Vulnerability*: the updates fit members, and push the outputs on non-members towards those of the
# untrained network. *Learnability*: they only fit members; it stands for utility, which is not
# measured. The 5 % of weights with the highest vulnerability are *most vulnerable*; the 5 % with
# the highest learnability are *most critical*.
#
# **What decides.** The first answer is yes if the most vulnerable weights hold over half of the sum
# of vulnerability. The second is yes if this share is larger than in control 1.
#
# **Controls.** Two scores that are compared come from different batches.
#
# 1. *Shuffled gradients*: gradients are permuted among the weights of each layer. Only the pairing
#    of weights and gradients becomes random.
# 2. *Chance in each layer*: learnability is permuted within each layer.
# 3. *Two learnability scores*: how far do other batches alone change the most critical weights?

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: not stated
pixels = 16  # side of the images, pixels, after area resize (paper: 32)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (the published architecture: 64)
pool = 600  # samples from which each network draws half (paper: lost, our copy lacks it)
dev = 300  # samples outside the pool, not used here: the networks are those of the other pages
reference = 300  # non-members outside the pool, for the score alone (paper: lost)
test = 600  # test samples (paper: not stated)
top = 0.05  # share of the weights that is "a very small fraction" (paper: at most .05 in Tab. 2)
balance = 0.5  # lambda, the share of the non-members' term in vulnerability's loss (paper: lost)
score_steps = 30  # updates of each score (paper: lost; "tens")
score_batch = 32  # members, and reference samples, of each update (paper: lost)
epochs = 12  # epochs from scratch (paper: lost)
batch = 64  # samples a step (paper: lost)
lr = 0.005  # learning rate of Adam, cosine to 0 (paper: lost)
runs = 10  # networks, each with its own members and initialisation (paper: three runs)
learnt = 0.6  # test accuracy that the networks must reach (ours)
seed = 101  # evaluation seed: of members, initialisation and order of batches
pilots = [0, 1]  # seeds on which the rules were set
precision = "fp32"  # of the trainings: fp32, or bf16 where the hardware has it; scores are fp32

# %%
import numpy as np
from leak_atlas import audit, lab, report
from leak_atlas.engine.selection import highest
from leak_atlas.localization.score_maps import (
    concentration,
    flat,
    kinds,
    maps,
    overlap,
    shares,
    shuffled_gradients,
)
from leak_atlas.recipe import (
    Data,
    Learnability,
    Magnitude,
    Model,
    RewindStudy,
    Schedule,
    Vulnerability,
)

share_of_sum = f"share of the score's sum that the {top:.0%} most vulnerable weights hold"
common = (
    f"share of the {top:.0%} most vulnerable weights that are among the {top:.0%} most critical"
)
claims = report.claims(
    report.Claim(
        "concentrated",
        f"The {top:.0%} most vulnerable weights hold more than half of the vulnerability score",
        fails=f"The {top:.0%} most vulnerable weights hold less than half of the vulnerability "
        "score",
        quantity=share_of_sum,
        above=0.5,
        margin=0.1,
        paper="abstract, insight i",
        quote="privacy vulnerability exists in a very small fraction of weights",
        section="abstract",
        control="other batches choose the weights",
        headline=True,
    ),
    report.Claim(
        "not_sizes",
        f"The vulnerability score is more concentrated in its top {top:.0%} of weights than with "
        "shuffled gradients",
        fails=f"The vulnerability score is not more concentrated in its top {top:.0%} of weights "
        "than with shuffled gradients",
        quantity=f"share of a score's sum in its own top {top:.0%} of weights: vulnerability minus "
        "shuffled gradients",
        above=0.0,
        margin=0.05,
        ours="our control",
        control="the same weights, layers and gradients; paired over networks",
        headline=True,
    ),
    report.Claim(
        "critical",
        f"Most of the {top:.0%} most vulnerable weights are among the {top:.0%} most critical",
        quantity=common,
        above=0.5,
        margin=0.1,
        paper="abstract, insight ii",
        quote="most of those weights also critically impact utility performance",
        section="abstract",
        control="chance in each layer, in the second figure",
    ),
    report.Claim(
        "not_layers",
        "The share of most vulnerable weights that are most critical exceeds chance by over ten "
        "points",
        quantity=f"{common}: as measured minus by chance in each layer",
        above=0.1,
        margin=0.05,
        ours="our control",
        control="the same number of weights in each layer; paired over networks",
    ),
    report.Claim(
        "as_itself",
        f"Two learnability scores share more of their top {top:.0%} of weights than learnability "
        "and vulnerability do",
        quantity=f"overlap of the top {top:.0%}: two learnability scores, minus learnability and "
        "vulnerability",
        above=0.0,
        margin=0.05,
        ours="our control",
        control="other batches in each pair; paired over networks",
    ),
    regime={"undefended member accuracy": 0.95, "undefended test accuracy": learnt},
)
claims

# %%
study = RewindStudy(
    Data(data, pixels),
    Model(model, width),
    Schedule(epochs, batch, "adam", lr=lr),
    retraining=epochs,
    criterion=Vulnerability(weight=balance, steps=score_steps, batch=score_batch),
    pool=pool,
    test=test,
    models=runs,
    dev=dev,
    reference=reference,
    seed=seed,
    precision=precision,
)
updates = {"steps": score_steps, "batch": score_batch}
criteria = {
    "vulnerability": study.criterion,
    "vulnerability, other batches": Vulnerability(**updates, weight=balance, draw=1),
    "learnability": Learnability(**updates),
    "learnability, other batches": Learnability(**updates, draw=1),
    "magnitude": Magnitude(),
}
steps = {name: study.ordinary.score(criterion) for name, criterion in criteria.items()}
comparison = lab.compare({"network": study.ordinary}, {}, also=steps)

# %% [markdown]
# ## How few weights hold the score
# Weights are sorted by the same score from other batches. *Magnitude*, |weight|, has no batches.

# %%
score = {}
for name, of_networks in steps.items():
    score[name] = [maps(comparison.results[step]) for step in of_networks]
vulnerability, other_batches = score["vulnerability"], score["vulnerability, other batches"]
magnitude = score["magnitude"]


def shuffle(scores):
    """Scores with shuffled gradients, of each network. All calls use the same permutations."""
    pairs = zip(scores, magnitude, strict=True)
    return [shuffled_gradients(values, size, seed) for values, size in pairs]


summed_and_sorted = {  # the score that is summed, and the score that sorts the weights
    "vulnerability": (vulnerability, other_batches),
    "shuffled gradients": (shuffle(vulnerability), shuffle(other_batches)),
    "magnitude": (magnitude, magnitude),
}


def held_by(name, share):
    """The share of a score's sum in the top weights, of each network."""
    summed, sorting = summed_and_sorted[name]
    pairs = zip(summed, sorting, strict=True)
    return [concentration(values, share, by=order) for values, order in pairs]


# %%
rows = []
drawn_shares = (0.001, 0.01, top, 0.1, 0.3, 1.0)
for name in summed_and_sorted:
    for share in drawn_shares:
        value = audit.mean_ci(held_by(name, share))
        rows.append({"score": name, "share": f"{100 * share:g}%", "value": value})
for share in drawn_shares:
    rows.append({"score": "all weights equal", "share": f"{100 * share:g}%", "value": share})
vulnerability_share = audit.mean_ci(held_by("vulnerability", top))
report.profile(
    rows,
    "share",
    hue="score",
    reference=None,
    title=f"The top {top:.0%} of weights hold {vulnerability_share.value:.0%} of vulnerability, "
    f"{np.mean(held_by('shuffled gradients', top)):.0%} with shuffled gradients",
    xlabel="share of the weights, largest scores first",
    ylabel="share of the score's sum",
)

# %% [markdown]
# ## Vulnerable and critical weights
# The overlap is the share of the most vulnerable weights that are also most critical.

# %%
learnability, other_learnability = score["learnability"], score["learnability, other batches"]
draws = np.random.default_rng(seed)
permuted = []
for network in other_learnability:
    permuted.append({name: draws.permuted(tensor) for name, tensor in network.items()})
vulnerable_and_critical = "vulnerable and critical weights"
two_learnabilities = "critical weights by two learnability scores"
by_chance = "chance in each layer"
pairs = {
    vulnerable_and_critical: (vulnerability, other_learnability),
    two_learnabilities: (learnability, other_learnability),
    by_chance: (vulnerability, permuted),
}


def overlaps(pair, share):
    """The overlap of the top weights by two scores, of each network."""
    first, second = pairs[pair]
    both = zip(first, second, strict=True)
    return [overlap(highest(one, share), highest(other, share)) for one, other in both]


rows = []
for pair in pairs:
    for share in (0.001, 0.01, top):
        value = audit.mean_ci(overlaps(pair, share))
        rows.append({"overlap of": pair, "top": f"{share:.1%}", "value": value})
critical = np.array(overlaps(vulnerable_and_critical, top))
repeated = np.array(overlaps(two_learnabilities, top))
chance = np.array(overlaps(by_chance, top))
report.profile(
    rows,
    "top",
    hue="overlap of",
    reference=None,
    title=f"{critical.mean():.0%} of the {top:.0%} most vulnerable weights are most critical, "
    f"by chance {chance.mean():.0%}",
    xlabel="share of the weights that counts as most vulnerable or critical",
    ylabel="overlap",
)

# %%
layer_types = kinds(comparison.results[steps["vulnerability"][0]])
stages = {name: name.partition(".")[0] for name in layer_types}


def in_top(scores, groups, group):
    """The share of a group's weights that are among the top weights, of each network."""
    in_group = []
    for one in scores:
        parts = {part.of: part.share for part in shares(highest(one, top), groups)}
        in_group.append(parts[group])
    return in_group


rows = []
for label, groups in {"kind": layer_types, "part": stages}.items():
    for group in dict.fromkeys(groups.values()):
        parts = [flat(one, groups, group) for one in vulnerability]
        wholes = [flat(one, groups) for one in vulnerability]
        sums = [part.sum() / whole.sum() for part, whole in zip(parts, wholes, strict=True)]
        row = {"weights": f"{label}: {group}"}
        row["share of all weights"] = f"{parts[0].size / wholes[0].size:.1%}"
        row["share of the vulnerability score"] = audit.mean_ci(sums)
        vulnerable = audit.mean_ci(in_top(vulnerability, groups, group))
        row[f"share of them that is in the {top:.0%} most vulnerable"] = vulnerable
        rows.append(row)
report.table(
    rows,
    caption=f"Mean over {runs} networks. Norm: weights of normalisation layers",
    fold="Kinds of weights, and parts of the network",
)

# %% [markdown]
# ## Verdicts

# %%
by_network = held_by("vulnerability", top)
shuffled_by_network = held_by("shuffled gradients", top)
report.judge(
    claims,
    concentrated=vulnerability_share,
    not_sizes=audit.paired_difference(by_network, shuffled_by_network),
    critical=audit.mean_ci(critical),
    not_layers=audit.paired_difference(critical, chance),
    as_itself=audit.paired_difference(repeated, critical),
    regime={
        "undefended member accuracy": comparison.estimate("network", "", "member accuracy"),
        "undefended test accuracy": comparison.accuracy("network"),
    },
)

# %% [markdown]
# **Limits.** A score is no leak: `fig04b_tab02_rewind_or_remove` rewinds the most vulnerable
# weights, and `own01_score_at_work` tests the score's updates. The paper's "very small fraction"
# has no number; Tab. 2 rewinds at most 5 %. Control 1 takes a gradient to be score / |weight before
# the updates|. For weights near 0 that the updates move, this is too large, which may raise the
# control's share. So "no" as the second answer says at most that, within layers, large gradients do
# not lie on large weights more often than by chance. Both scores include the term that fits
# members. How much of their overlap it explains is not tested (see
# `fig03_tab01_score_entanglement`).

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
