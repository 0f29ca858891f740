# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Do members and non-members drift apart when a network is pruned?
#
# **SAMIA, Fig. 1.** A network is asked about each sample: how sure it is of the true class (*confidence*), and how far small noise on the input moves that
# number (*sensitivity*). The mean over members minus the mean over non-members is a *gap* (eq. 3, 4). The figure has histograms on a logarithmic axis, dense
# and pruned: 70 % of the weights are set to zero (L1 unstructured), and the rest is trained on.
# **The paper says** that pruning makes both distances larger. The text gives no number and no sign. By eq. 4 the gap of sensitivity is negative if members are
# *less* sensitive; the distance grows when it becomes more negative. We write non-members minus members of the sensitivity.
# **It would be wrong if** either distance stayed. It would be beside the point if the further epochs did it (control: as many, with nothing removed), if the
# weights that are kept did not matter (control: as many gone at random), if lost accuracy did it (control: as many right non-members as before), or if all
# sensitivities grew alike (control: a ratio). Our question: does sensitivity tell anything that confidence does not? Rules were settled on draw 0 of `quick`,
# other data or another draw than this; those on lost accuracy and on the ratio came after the first results on CIFAR-10.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: CIFAR10
pixels = 16  # side of the images, pixels, after area resize (paper: 32)
model = "resnet10"  # architecture (paper: densenet121)
width = 16  # channels of stage 1 (paper: 64)
stem = "conv3-pool"  # first layer (published code: a 3x3 convolution and a max-pool)
pool = 1200  # samples of train and test part joined: half the victims', half the attacker's (paper: all)
dev = 60  # samples of each half that are set apart, for early stopping; the rest is half member, half not (paper: a tenth)
victims = 10  # networks that split the victims' half (paper: 1)
sparsity = 0.7  # share that is removed (paper: .7)
queries = 10  # noisy copies of each sample (paper: 10)
epochs = 12  # of the dense network (published code: 100)
retrain_epochs = 6  # after pruning (published code: half of it)
patience = None  # epochs without a better dev accuracy before training stops; None: all are trained (paper: 5)
batch = 32  # samples a step (paper: 128)
lr = 0.002  # learning rate of Adam (paper: 0.001)
decay = "constant"  # of that rate, by the epoch (paper: constant)
learnt = 0.6  # least test accuracy of a dense network that has learnt (ours)
seed = 1  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
import numpy as np
from leak_atlas import audit, lab, report
from leak_atlas.localization.divergence import behaviour, gap, gap_at_accuracy
from leak_atlas.recipe import Data, Model, PruningStudy, Schedule
from scipy.stats import rankdata

cut, of_all = f"{sparsity:.0%} pruned minus dense", "over the dense networks' mean gap"
grow, far = {"above": 0.0, "margin": 0.02}, {"above": 0.0, "margin": 0.25}
paired, epochs_alone = {"control": "paired over victims"}, {"ours": "our control", "control": "the same schedule, nothing removed"}
claims = report.claims(
    report.Claim("confidence_grows", "Pruning makes the gap of confidence larger", f"gap of confidence, {cut}", paper="Fig. 1 (a), (c)", **grow, **paired),
    report.Claim("sensitivity_grows", "Pruning makes the gap of sensitivity larger: noise moves non-members further than members",
        f"gap of sensitivity, {cut}, {of_all}", paper="Fig. 1 (b), (d)", **far, **paired),
    report.Claim("confidence_not_epochs", "The gap of confidence is larger than the further epochs make it",
        "gap of confidence, pruned minus dense, trained on", **grow, **epochs_alone),
    report.Claim("sensitivity_not_epochs", "The gap of sensitivity is larger than the further epochs make it",
        f"gap of sensitivity, pruned minus dense, trained on, {of_all}", **far, **epochs_alone),
    report.Claim("confidence_not_accuracy", "The gap of confidence is larger than the lost accuracy makes it",
        f"gap of confidence with as many right non-members, {cut}", ours="our control", control="weighted to the dense network's accuracy", **grow),
    report.Claim("sensitivity_by_ratio", "By ratio, too, noise sets non-members further apart from members",
        f"gap of the log10 of the sensitivity, {cut}", above=0.0, margin=0.1, ours="our control", control="a ratio has no common scale"),
    report.Claim("any_mask", "Small size alone does it: with random weights gone the gap of confidence grows too",
        "gap of confidence, random weights gone minus dense", ours="our control", **grow, control="the same sparsity in each layer, the same epochs"),
    report.Claim("sensitivity_is_no_news", "Of two samples that are as sure, sensitivity hardly tells which is the member",
        "rank correlation of membership and low sensitivity given twenty bins of the rank of confidence, pruned", within=0.05,
        ours="our question", control="confidence, whatever its curve: a mean for each twentieth of the samples"),
    regime={"dense member accuracy": 0.95, "dense test accuracy": learnt, "member accuracy of the least network, random masks too": 0.9},
)  # fmt: skip
claims

# %% [markdown]
# ## Train, prune, train on
# Sensitivity is the mean change of the posterior per unit of noise, over noise of size 0.001 on the normalised input: the same noise for all networks.

# %%
study = PruningStudy(
    Data(data, pixels, joined=True),
    Model(model, width, stem),
    Schedule(epochs, batch, "adam", lr, decay=decay, patience=patience),
    fine_tuning=retrain_epochs,
    pool=pool,
    dev=dev,
    targets=victims,
    seed=seed,
    precision=precision,
)

pruned = {name: study.pruned(name, sparsity) for name in ("L1 unstructured", "random weights")}
ways = {"dense": study.dense, "dense, trained on": study.tuned()} | pruned
signals = {way: each.signals() for way, each in ways.items()}
sensitivity = {way: each.sensitivity(queries) for way, each in ways.items()}
removed = {way: study.removed(each) for way, each in pruned.items()}

results = lab.realize(signals, sensitivity, removed)

# %% [markdown]
# ## The two distributions: Fig. 1
# One victim, the first; the title speaks of all. Lines stand at the means; the farthest 0.1 % are counted in the last bin.


# %%
def drift(one, dense):
    """Gaps of one network; more is more leak."""
    inside, share = one["member"], dense["generalisation"][~dense["member"]].mean()
    found = {"confidence": gap(one["confidence"], inside), "accuracy": gap(one["generalisation"], inside)}
    found |= {"confidence, accuracy held": gap_at_accuracy(one["confidence"], inside, one["generalisation"], share)}
    return found | {"sensitivity": -gap(one["sensitivity"], inside), "log10 sensitivity": -gap(np.log10(one["sensitivity"] + 1e-6), inside)}


known = {way: [behaviour(results[a], results[b]) for a, b in zip(signals[way], sensitivity[way], strict=True)] for way in ways}
drifts = {way: list(map(drift, each, known["dense"])) for way, each in known.items()}
gaps = {(kind, way): np.array([one[kind] for one in each]) for way, each in drifts.items() for kind in each[0]}
signs, unit = {"confidence": 1, "sensitivity": -1}, {"sensitivity": abs(gaps["sensitivity", "dense"].mean())}


def wider(kind, one, other):
    """By how much the gap is larger, in its unit."""
    return audit.paired_difference(gaps[kind, one] / unit.get(kind, 1.0), gaps[kind, other] / unit.get(kind, 1.0))


shown = {"dense": "dense", "L1 unstructured": f"{sparsity:.0%} pruned"}
panels = {
    (label, kind): [known[way][0][kind][known[way][0]["member"] == side] for side in (True, False)] for way, label in shown.items() for kind in signs
}
notes = {(label, kind): f"distance of the means {gaps[kind, way][0]:.3f}" for way, label in shown.items() for kind in signs}
moved = {kind: wider(kind, "L1 unstructured", "dense") for kind in signs}
verbs = {kind: "surely grows" if one.low > 0 else "surely shrinks" if one.high < 0 else "may stay" for kind, one in moved.items()}
told = "both gaps surely grow" if {*verbs.values()} == {"surely grows"} else ", ".join(f"the gap of {kind} {verb}" for kind, verb in verbs.items())
area = {way: {kind: np.array([audit.auc(one[kind] * sign, one["member"]) for one in known[way]]) for kind, sign in signs.items()} for way in ways}
moves = ", ".join(f"of {kind} " + " to ".join(f"{area[way][kind].mean():.2f}" for way in shown) for kind in signs)
title = f"With {sparsity:.0%} of the weights gone, {told}; AUC {moves}"
axes = {"xlabel": f"confidence or sensitivity of the true class, victim 1 of {victims}", "ylabel": "share of samples"}
report.histograms(panels, ("members", "non-members"), notes, log=True, means=True, columns=True, title=title, **axes)

# %% [markdown]
# ## All victims
# Gaps, their change since the dense network, and how well each measure alone ranks members before non-members.

# %%
accuracy = {(way, part): audit.mean_ci([results[one][f"accuracy_{part}"] for one in signals[way]]) for way in ways for part in ("member", "test")}
gone = {way: min(float(results[one]["network"]) for one in each) for way, each in removed.items()}
rows = [
    {"network": way, "weights gone": f"{gone.get(way, 0):.1%}", "member accuracy": accuracy[way, "member"], "test accuracy": accuracy[way, "test"]}
    | {f"gap of {kind}": audit.mean_ci(gaps[kind, way]) for kind in signs}
    | {f"{kind}, members": audit.mean_ci([one[kind][one["member"]].mean() for one in known[way]]) for kind in signs}
    | {f"AUC, {kind}": audit.mean_ci(area[way][kind]) for kind in signs}
    for way in ways
]
report.table(rows, caption=f"Mean over {victims} victims. Low sensitivity counts as member. Gaps of sensitivity: non-members minus members")


# %%
def news(one):
    """What low sensitivity says of membership beside confidence, in ranks: within twentieths of the samples, by confidence."""
    low, sure = (rankdata(values) / len(values) for values in (-one["sensitivity"], one["confidence"]))
    return audit.correlation(low, one["member"], np.eye(20)[np.ceil(20 * sure).astype(int) - 1])


beside = {way: audit.mean_ci([news(one) for one in known[way]]) for way in ways}
changes = [
    {"network": way, "sensitivity given confidence, r": beside[way]}
    | {f"{kind}, minus dense{', relative' * (kind == 'sensitivity')}": wider(kind, way, "dense") for kind in drifts[way][0] if way != "dense"}
    | {f"AUC of {kind}, minus dense": audit.paired_difference(area[way][kind], area["dense"][kind]) for kind in signs if way != "dense"}
    for way in ways
]
report.table(changes, caption="Change of the gaps; relative: over the dense networks' mean gap. Accuracy's: of members minus of non-members")

# %% [markdown]
# ## Verdicts

# %%
done = {way: {f"{sparsity:.0%} of the weights are gone ({way})": share > sparsity - 0.03} for way, share in gone.items()}
checks = {claim.name: done["random weights" if claim.name == "any_mask" else "L1 unstructured"] for claim in claims}
report.judge(
    claims, confidence_grows=moved["confidence"], sensitivity_grows=moved["sensitivity"],
    confidence_not_epochs=wider("confidence", "L1 unstructured", "dense, trained on"),
    sensitivity_not_epochs=wider("sensitivity", "L1 unstructured", "dense, trained on"),
    confidence_not_accuracy=wider("confidence, accuracy held", "L1 unstructured", "dense"),
    sensitivity_by_ratio=wider("log10 sensitivity", "L1 unstructured", "dense"),
    any_mask=wider("confidence", "random weights", "dense"), sensitivity_is_no_news=beside["L1 unstructured"], checks=checks,
    regime={f"dense {part} accuracy": accuracy["dense", part] for part in ("member", "test")}
    | {"member accuracy of the least network, random masks too": min(float(results[one]["accuracy_member"]) for way in ways for one in signals[way])},
)  # fmt: skip

# %% [markdown]
# **Caveat.** All victims share one half of the samples. Where a `patience` is set, few dev samples choose each network's epoch: member accuracy tells how far
# each has come. A larger gap need not be a larger leak: the order of samples (AUC) may say less than before. Nor is a smaller one less: with random weights
# gone a network is less sure of its members, so that its gap of confidence is smaller even where its gap of accuracy grows.

# %%
report.provenance(results)
