# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Do learnability and vulnerability scores of weights correlate strongly, but not fully?
#
# **The paper.** Fang & Kim (2026), Fig. 3, Tab. 1: "many privacy-vulnerable weights are also
# crucial for learnability" (section 4.2).
#
# **Setup.** Two scores of a weight sum |gradient × weight| over some updates of a trained network.
# *Learnability*: the updates fit the members. *Vulnerability*: the updates fit the members and push
# the outputs on other samples back to those of the untrained network (the *divergence*). *Main
# weights* are those of convolutions (ResNet) or of attention and MLP (ViT), *norm weights* those of
# normalisation layers, *linear weights* those of the classifier. Scores that are compared use
# different batches.
#
# **What decides.** The scores correlate *strongly* if Pearson's correlation over main weights is
# above .9 in the ResNet and in the ViT. They correlate *not fully* if, in both networks, it is
# lower than that of control 1.
#
# **Controls.**
#
# 1. *Two learnability scores* (decide "not fully") show how far noise alone lowers a correlation.
#    This assumes that both kinds of scores are equally noisy; "Robustness" shows the noise of both.
# 2. *Shuffled gradients* within each layer (second figure) show the correlation that comes from
#    layers and sizes of weights. No rule subtracts it.
# 3. *Divergence alone*, compared with learnability: the updates do not fit the members. It decides
#    whether the correlation is above .9 without a shared term.
#
# Further claims are about norm weights and the leakage of both networks (AUC of LiRA).

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: not stated
pixels = 16  # side of the images, pixels, after area resize (paper: 32)
model = "resnet10"  # architecture of the ResNet (paper: resnet18)
width = 8  # channels of the ResNet's stage 1 (64 in the published resnet18)
epochs = 12  # epochs of the ResNet (paper: lost, our copy lacks it)
vit_width = 4  # channels of a head of the ViT (paper: lost)
vit_epochs = 16  # epochs of the ViT (paper: lost)
patch = 8  # patch of the ViT, pixels (paper: lost)
pool = 600  # samples from which each network draws half (paper: lost)
dev = 300  # samples outside the pool; unused here, kept so that pages share networks
reference = 300  # non-members outside the pool, for the score alone (paper: lost)
test = 600  # test samples (paper: not stated)
balance = 0.5  # lambda: weight of the divergence in the vulnerability loss (paper: lost)
score_steps = 30  # updates over which a score is summed (paper: lost; "tens")
score_batch = 32  # members, and reference samples, in each of these updates (paper: lost)
top = 0.01  # share of the weights that counts as most vulnerable (ours)
batch = 64  # samples a step (paper: lost)
lr = 0.005  # learning rate of Adam, cosine to 0 (paper: lost)
runs = 10  # networks of each kind, each with its own members (paper: three runs)
vit_fitted = 0.8  # required member accuracy of the ViT, which fits fewer members (ours)
learnt = 0.6  # required test accuracy of ResNet and ViT (ours)
seed = 101  # evaluation seed: of members, initialisation and order of batches
pilots = [0, 1]  # seeds on which the rules were set
precision = "fp32"  # of the trainings: fp32, or bf16 where the hardware has it; scores are fp32

# %%
import numpy as np
from leak_atlas import audit, lab, report
from leak_atlas.engine.selection import highest
from leak_atlas.localization.score_maps import (
    correlations,
    flat,
    kinds,
    maps,
    shares,
    shuffled_gradients,
)
from leak_atlas.recipe import (
    Data,
    Learnability,
    LiRA,
    Magnitude,
    Model,
    RewindStudy,
    Schedule,
    Vulnerability,
)

PAPER = {  # Tab. 1, Pearson's correlation
    "ResNet": {"main": 0.9410, "linear": 0.8096, "norm": 0.6776},
    "ViT": {"main": 0.9068, "linear": 0.8642, "norm": 0.7336},
}
lower = "ResNet or ViT, whichever has the lower value"
claims = report.claims(
    report.Claim(
        "main_correlate",
        "Learnability and vulnerability of main weights correlate by more than .9",
        fails="Learnability and vulnerability of main weights correlate by less than .9",
        quantity="Pearson's correlation over main weights (of convolutions, attention and MLP), "
        f"{lower}",
        above=0.9,
        margin=0.05,  # of a correlation, here and below
        paper="Tab. 1",
        quote="they show strong correlations",
        section="4.2",
        control="the same scores with shuffled gradients",
        headline=True,
    ),
    report.Claim(
        "norms_lowest",
        "Learnability and vulnerability correlate less over norm weights than over main and over "
        "linear weights",
        quantity="Pearson's correlation of both scores: over main or linear weights (the lower "
        "one), minus over norm weights; ResNet or ViT, whichever has the smaller difference",
        above=0.0,
        margin=0.05,
        paper="Tab. 1",
        quote="the correlation in normalization layers […] are the lowest",
        section="4.2",
        control="the same scores of the same networks",
    ),
    report.Claim(
        "norms_vulnerable",
        f"Norm weights are more often among the {top:.0%} most vulnerable than linear weights",
        quantity=f"share of the norm weights that are among the {top:.0%} most vulnerable, minus "
        f"that of linear weights, {lower}",
        above=0.0,
        margin=0.05,
        paper="Fig. 3",
        quote="some of them [weights of normalization layers] are the highly privacy-vulnerable "
        "weights”; “most weights in them [linear layers] are not privacy-vulnerable",
        section="4.2",
        control="linear weights of the same networks",
    ),
    report.Claim(
        "vit_leaks",
        "The ViT leaks more to LiRA than the ResNet",
        quantity="AUC of LiRA, ViT minus ResNet",
        above=0.0,
        margin=0.02,
        ours="our control, after section 4.2",
        control="the same members",
    ),
    report.Claim(
        "own_information",
        "Two learnability scores correlate more with each other than with the vulnerability score",
        fails="Two learnability scores correlate less with each other than with the vulnerability "
        "score",
        quantity="Pearson's correlation over main weights: that of two learnability scores, minus "
        "that of learnability and vulnerability; ResNet or ViT, whichever has the lower value",
        above=0.0,
        margin=0.05,
        ours="our control",
        control="other batches in each pair",
        headline=True,
    ),
    report.Claim(
        "divergence_correlates",
        "The learnability score and a score of the divergence alone correlate by more than .9 over "
        "main weights",
        fails="The learnability score and a score of the divergence alone correlate by less than "
        ".9 over main weights",
        quantity="Pearson's correlation over main weights of learnability and a vulnerability "
        f"score whose updates do not fit the members, {lower}",
        above=0.9,
        margin=0.05,
        ours="our control",
        control="the updates share no term and no batch",
        headline=True,
    ),
    regime={
        "ResNet's member accuracy": 0.95,
        "ResNet's test accuracy": learnt,
        "ViT's member accuracy": vit_fitted,
        "ViT's test accuracy": learnt,
    },
)
claims

# %%
studies = {}
networks = {
    "ResNet": (Model(model, width), epochs),
    "ViT": (Model("vit", vit_width, patch=patch), vit_epochs),
}
for name, (architecture, network_epochs) in networks.items():
    studies[name] = RewindStudy(
        Data(data, pixels),
        architecture,
        Schedule(network_epochs, batch, "adam", lr=lr),
        retraining=network_epochs,
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
    "vulnerability": studies["ResNet"].criterion,
    "learnability": Learnability(**updates, draw=1),
    "learnability, other batches": Learnability(**updates),
    "vulnerability, other batches": Vulnerability(weight=balance, **updates, draw=1),
    "divergence alone": Vulnerability(weight=1.0, **updates),
    "magnitude": Magnitude(),
}
variants = {name: one_study.ordinary for name, one_study in studies.items()}
scores = {}
for name, population in variants.items():
    for criterion, recipe in criteria.items():
        scores[name, criterion] = population.score(recipe)
comparison = lab.compare(variants, {"LiRA": LiRA()}, also=scores)

# %% [markdown]
# ## Both scores of each weight (Fig. 3)
# Weights of one ResNet and of one ViT. *r* is Pearson's correlation, mean over all networks. Zeros
# and the smallest 0.1 % of scores lie on the lower or left border.

# %%
MAIN = {"conv": "main", "attention": "main"}
score, groups = {}, {}
for key, steps in scores.items():
    score[key] = [maps(comparison.results[step]) for step in steps]
for name in variants:
    layer_types = kinds(comparison.results[scores[name, "vulnerability"][0]])
    groups[name] = {tensor: MAIN.get(kind, kind) for tensor, kind in layer_types.items()}

# %%
pearson_r = {}  # by architecture, pair of scores and kind of weight: Pearson's r of each network
rank_r = {}  # by architecture and pair of scores: rank correlation over main weights
for name in variants:
    vulnerability = score[name, "vulnerability"]
    learnability = score[name, "learnability"]
    sizes = zip(learnability, score[name, "magnitude"], strict=True)
    shuffled = [shuffled_gradients(values, size, seed) for values, size in sizes]
    pairs = {
        "learnability and vulnerability": (vulnerability, learnability),
        "two learnability scores": (score[name, "learnability, other batches"], learnability),
        "two vulnerability scores": (score[name, "vulnerability, other batches"], vulnerability),
        "learnability and divergence alone": (score[name, "divergence alone"], learnability),
        "shuffled gradients": (shuffled, vulnerability),
    }
    for pair, (firsts, seconds) in pairs.items():
        by_network = []
        for first, second in zip(firsts, seconds, strict=True):
            by_network.append(correlations(first, second, groups[name]))
        for kind in ("main", "norm", "linear"):
            pearson_r[name, pair, kind] = np.array([by_kind[kind] for by_kind in by_network])
        over_ranks = []
        for first, second in zip(firsts, seconds, strict=True):
            main_weights = (flat(each, groups[name], "main") for each in (first, second))
            over_ranks.append(float(audit.rank_correlation(*main_weights)))
        rank_r[name, pair] = np.array(over_ranks)

# %%
panels, notes, mean = {}, {}, {}
for name in variants:
    for kind in ("main", "norm", "linear"):
        of_first_network = [score[name, by][0] for by in ("learnability", "vulnerability")]
        panels[name, kind] = [flat(values, groups[name], kind) for values in of_first_network]
        correlation = pearson_r[name, "learnability and vulnerability", kind].mean()
        notes[name, kind] = f"r = {correlation:.2f}"
        mean[name, kind] = correlation
report.density(
    panels,
    title="Learnability and vulnerability of main weights correlate by "
    f"{mean['ResNet', 'main']:.2f} (ResNet) and {mean['ViT', 'main']:.2f} (ViT)",
    notes=notes,
    xlabel="learnability score",
    ylabel="vulnerability score",
    counted="weights",
)

# %% [markdown]
# ## Correlations (Tab. 1)
# Hollow circles are the paper's correlations of learnability and vulnerability.

# %%
rows = []
for (name, pair, kind), values in pearson_r.items():
    if pair == "two vulnerability scores":  # see "Robustness"
        continue
    row = {"network": name, "weights": kind, "correlation": pair}
    row["paper"] = PAPER[name][kind] if pair == "learnability and vulnerability" else None
    rows.append(row | {"value": audit.mean_ci(values)})
gaps = []  # main weights: two learnability scores, minus learnability and vulnerability
for name in variants:
    two_learnability = pearson_r[name, "two learnability scores", "main"]
    learnability_vulnerability = pearson_r[name, "learnability and vulnerability", "main"]
    gaps.append(audit.paired_difference(two_learnability, learnability_vulnerability))
least_gap = audit.least(gaps)
words = "significantly more", "significantly less", "not significantly more"
report.against_paper(
    rows,
    "weights",
    hue="correlation",
    facet="network",
    xlabel="Pearson's correlation",
    title=f"Two learnability scores correlate {report.effect(least_gap, *words)} with each other "
    "than with vulnerability",
)

# %%
vulnerable_shares = {}  # by architecture and kind: share that is among the most vulnerable
rows = []
for name in variants:
    for vulnerability in score[name, "vulnerability"]:
        for group in shares(highest(vulnerability, top), groups[name]):
            vulnerable_shares.setdefault((name, group.of), []).append(group.share)
    total = sum(values.size for values in score[name, "vulnerability"][0].values())
    for kind in ("main", "norm", "linear"):
        row = {"network": name, "weights": kind}
        weights = flat(score[name, "vulnerability"][0], groups[name], kind).size
        row["share of all weights"] = f"{weights / total:.2%}"
        column = f"share of these that is among the {top:.0%} most vulnerable"
        row[column] = audit.mean_ci(vulnerable_shares[name, kind])
        rows.append(row)
report.table(
    rows,
    caption=f"Mean over {runs} networks. Weights of other kinds are not listed",
    fold="Kinds of weights among the most vulnerable",
)

# %% [markdown]
# ## Verdicts
# The interval of the lowest of several values accounts for all of them: its upper end can differ
# from the one in the tables.

# %%
norms_lowest, norms_minus_linear = [], []
for name in variants:
    norm = pearson_r[name, "learnability and vulnerability", "norm"]
    for kind in ("main", "linear"):
        other = pearson_r[name, "learnability and vulnerability", kind]
        norms_lowest.append(audit.paired_difference(other, norm))
    norm_share, linear_share = vulnerable_shares[name, "norm"], vulnerable_shares[name, "linear"]
    norms_minus_linear.append(audit.paired_difference(norm_share, linear_share))
main_correlations = {}  # of learnability with vulnerability, and with the divergence alone
for pair in ("learnability and vulnerability", "learnability and divergence alone"):
    values = [audit.mean_ci(pearson_r[name, pair, "main"]) for name in variants]
    main_correlations[pair] = audit.least(values)
regime = {}
for name in variants:
    regime[f"{name}'s member accuracy"] = comparison.estimate(name, "", "member accuracy")
    regime[f"{name}'s test accuracy"] = comparison.accuracy(name)

# %%
report.judge(
    claims,
    main_correlate=main_correlations["learnability and vulnerability"],
    divergence_correlates=main_correlations["learnability and divergence alone"],
    norms_lowest=audit.least(norms_lowest),
    norms_vulnerable=audit.least(norms_minus_linear),
    vit_leaks=comparison.contrast("ViT", "ResNet", "LiRA"),
    own_information=least_gap,
    regime=regime,
)

# %% [markdown]
# ## Robustness: noise of both scores
# Noise alone makes two scores correlate by less than 1. *Corrected for noise*, the correlation of
# both is divided by the geometric mean of those of two learnability scores and of two vulnerability
# scores. Below 1, the scores differ by more than noise. Pearson's correlation depends mostly on the
# highest scores, that of *ranks* on all.

# %%
kinds_of_correlation = {
    "Pearson's": {key[:2]: values for key, values in pearson_r.items() if key[2] == "main"},
    "ranks": rank_r,
}
rows = []
for label, correlation in kinds_of_correlation.items():
    for name in variants:
        between = correlation[name, "learnability and vulnerability"]
        noise = correlation[name, "two learnability scores"]
        noise = np.sqrt(noise * correlation[name, "two vulnerability scores"])
        row = {"network": name, "correlation": label}
        for pair in ("two learnability scores", "two vulnerability scores"):
            row[pair] = audit.mean_ci(correlation[name, pair])
        row["learnability and vulnerability"] = audit.mean_ci(between)
        rows.append(row | {"corrected for noise": audit.mean_ci(between / noise)})
caption = f"Correlations over main weights, mean over {runs} networks"
report.table(rows, caption=caption, fold="Correlation corrected for noise")

# %% [markdown]
# **Limits.** Updates of the divergence alone see no member, but they start at the same trained
# network as the updates of the other scores. A score is not a measure of leakage: the page
# `own01_score_at_work` tests what the updates of these scores do to members. A difference of
# correlations below .05, our smallest effect of interest, is small even if it is significant. The
# ViT fits fewer members than the ResNet: this alone can lower its AUC of LiRA.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
