# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does PPB close the gaps that pruning opens?
#
# **SAMIA, Fig. 14 and 15.** The gaps of Fig. 1 and 4 after a defence: *pair-based posterior balancing* (PPB) trains the pruned network on with a penalty on how
# much the ranked posteriors of two members differ. 70 % of the weights are gone (L1 unstructured); the penalty's weight is 4, the published code's. **The
# paper says** that PPB reduces the gaps to about those of the dense network, in each class too, and keeps the accuracy. The text gives no numbers. Gaps
# of sensitivity are non-members minus members here: members are the less sensitive ones.
#
# **It would be wrong if** gaps stayed those of the ordinary training after pruning (*Base*). It would be beside the point if PPB did nothing (check:
# members' accuracy moved), if an earlier epoch of the dense network that is as accurate had gaps as small, or if all confidences shrank alike, so that members
# are found as before by who is surer (control: the AUC of the confidence, which sees the order alone). The rules below were settled on draw 0 of `quick`;
# this page judges by them on the draw of the parameter `seed`. The check was changed there after a result: the penalty itself was to be below Base's, and was
# .096 with weight 4, .061 for Base.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: CIFAR10
pixels = 16  # side of the images, pixels, after area resize (paper: 32)
model = "resnet10"  # architecture (paper: densenet121)
width = 16  # channels of stage 1 (paper: 64)
stem = "conv3-pool"  # first layer (published code: a 3x3 convolution and a max-pool)
pool = 1200  # samples of train and test part joined: half the victims', half the attacker's (paper: all)
dev = 60  # samples of each half that are set apart, for early stopping; the rest is half member, half not (paper: a tenth)
victims = 10  # networks that split the victims' half (paper: 1)
sparsity = 0.7  # share that is removed (paper: .7 in Fig. 1, 4; not stated for these)
weights = [1.0, 4.0, 16.0]  # of PPB's penalty, claims speak of the middle one (paper: 1 to 16; published code: 4)
queries = 10  # noisy copies of each sample (paper: 10)
epochs = 12  # of the dense network (published code: 100)
course = [2, 3, 4, 8, 12]  # epochs after which the dense network is looked at too, without early stopping (ours)
retrain_epochs = 6  # after pruning (published code: half of it)
patience = None  # epochs without a better dev accuracy before training stops; None: all are trained (paper: 5)
batch = 32  # samples a step (paper: 128)
lr = 0.002  # learning rate of Adam, constant (paper: 0.001)
seed = 1  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
import numpy as np
from leak_atlas import audit, lab, report
from leak_atlas.localization.divergence import behaviour, gap, gap_by_class
from leak_atlas.recipe import PPB, Data, Model, PruningStudy, Schedule

claims = report.claims(
    report.Claim("confidence_falls", "PPB makes the gap of confidence smaller than Base has it",
        quantity="gap of confidence, PPB minus Base", below=0.0, margin=0.02,
        paper="Fig. 14 (a)", control="the same pruned network, the same epochs"),
    report.Claim("sensitivity_falls", "PPB makes the gap of sensitivity smaller than Base has it",
        quantity="gap of sensitivity, PPB minus Base, over the dense networks' mean gap", below=0.0, margin=0.25,
        paper="Fig. 14 (b)", control="the same pruned network, the same epochs"),
    report.Claim("confidence_as_dense", "With PPB the gap of confidence is about the dense network's",
        quantity="gap of confidence, PPB minus dense", within=0.05,
        paper="section 6.2", control="paired over victims"),
    report.Claim("sensitivity_as_dense", "With PPB the gap of sensitivity is about the dense network's",
        quantity="gap of sensitivity, PPB minus dense, over the dense networks' mean gap", within=0.25,
        paper="section 6.2", control="paired over victims"),
    report.Claim("in_most_classes", "It is smaller than Base's in most classes",
        quantity="share of classes whose gap of confidence is smaller with PPB than with Base", above=0.5, margin=0.1,
        paper="Fig. 15", control="paired over victims and classes"),
    report.Claim("accuracy_kept", "PPB costs little accuracy",
        quantity="test accuracy, PPB minus Base", above=-0.02,
        paper="section 6.2", control="paired over victims; 2 points are the margin"),
    report.Claim("as_earlier_stop", "The gap of confidence is about that of an earlier stop of equal accuracy",
        quantity="gap of confidence, PPB minus the dense network's own course at PPB's mean test accuracy", within=0.03,
        ours="our control", control="the dense network's own epochs, and straight lines between them"),
    report.Claim("order_too", "Members are harder to tell by the order of confidences too",
        quantity="AUC of the confidence, PPB minus Base", below=0.0, margin=0.03,
        ours="our control", control="the order of samples, which no common shrinking changes"),
    report.Claim("order_beyond_accuracy", "By that order they are harder to tell than at an earlier stop of equal accuracy",
        quantity="AUC of the confidence, PPB minus the dense network's own course at PPB's mean test accuracy", below=0.0, margin=0.03,
        ours="our control", control="the dense network's own epochs, and straight lines between them"),
    regime={"dense member accuracy": 0.95, "dense test accuracy": 0.6, "member accuracy of the least victim, dense or Base": 0.9},
)  # fmt: skip
claims

# %%
study = PruningStudy(
    Data(data, pixels, joined=True),
    Model(model, width, stem),
    Schedule(epochs, batch, "adam", lr, decay="constant", patience=patience),
    fine_tuning=retrain_epochs,
    pool=pool,
    dev=dev,
    targets=victims,
    seed=seed,
    precision=precision,
)
masked = ("L1 unstructured", sparsity)
defended = {f"PPB, weight {weight:g}": study.pruned(*masked, PPB(weight)) for weight in weights}
ppb = list(defended)[len(weights) // 2]
ways = {"dense": study.dense, "Base": study.pruned(*masked)} | defended
ways |= {f"dense, epoch {e}": each for e, each in study.stopped(course).items()}
signals = {way: each.signals() for way, each in ways.items()}
sensitivity = {way: each.sensitivity(queries) for way, each in ways.items()}
removed = study.removed(ways[ppb])
results = lab.realize(signals, sensitivity, removed)

# %% [markdown]
# ## The two distributions: Fig. 14
# One victim, the first; the title speaks of all. Lines stand at the means; the farthest 0.1 % are counted in the last bin. *At equal accuracy*: the dense
# networks' mean course, its epochs joined by straight lines, says how to weight two epochs for PPB's mean test accuracy; each victim's own are so weighted.

# %%
known = {way: [behaviour(results[a], results[b]) for a, b in zip(signals[way], sensitivity[way], strict=True)] for way in ways}
known = {way: [one | {"insensitivity": -one["sensitivity"]} for one in each] for way, each in known.items()}
kinds = {"confidence": "confidence", "sensitivity": "insensitivity"}
accuracy = {(part, way): np.array([float(results[one][f"accuracy_{part}"]) for one in signals[way]]) for part in ("member", "test") for way in ways}
areas = {(kind, way): np.array([audit.auc(one[by], one["member"]) for one in known[way]]) for kind, by in kinds.items() for way in ways}
gaps = {(kind, way): np.array([gap(one[by], one["member"]) for one in known[way]]) for kind, by in kinds.items() for way in ways}
unit = {"confidence": 1.0, "sensitivity": abs(gaps["sensitivity", "dense"].mean())}


def wider(kind, one, other):
    return audit.paired_difference(gaps[kind, one] / unit[kind], gaps[kind, other] / unit[kind])


course_of = sorted((f"dense, epoch {e}" for e in course), key=lambda way: accuracy["test", way].mean())
heights, goal = [accuracy["test", way].mean() for way in course_of], accuracy["test", ppb].mean()
mix = [np.interp(goal, heights, one) for one in np.eye(len(course_of))]


def at_equal_accuracy(values, kind):
    """PPB minus the dense network's own course where its mean accuracy is PPB's."""
    return audit.paired_difference(values[kind, ppb], np.dot(mix, [values[kind, way] for way in course_of]))


against, beside = {kind: wider(kind, ppb, "Base") for kind in kinds}, at_equal_accuracy(gaps, "confidence")
verbs = {kind: "falls" if one.high < 0 else "grows" for kind, one in against.items() if one.low > 0 or one.high < 0}
near = "about as far as" if max(beside.high, -beside.low) < 0.03 else "further than" if beside.high < 0 else "not surely as far as"
panels = {(way, kind): [known[way][0][kind][known[way][0]["member"] == side] for side in (True, False)] for way in ("Base", ppb) for kind in kinds}
notes = {(way, kind): f"distance of the means {gaps[kind, way][0]:.3f}" for way, kind in panels}
title = f"From Base to PPB {', '.join(f'the gap of {kind} surely {verb}' for kind, verb in verbs.items()) or f'{victims} victims cannot tell whether the gaps change'}"
title += f"; that of confidence {near} at an earlier epoch of equal accuracy" * (verbs.get("confidence") == "falls")
axes = {"xlabel": f"confidence or sensitivity of the true class, victim 1 of {victims}", "ylabel": "share of samples"}
report.histograms(panels, ("members", "non-members"), notes, log=True, means=True, columns=True, title=title, **axes)

# %% [markdown]
# ## By class: Fig. 15

# %%
by_class = {way: np.array([gap_by_class(one["confidence"], one["member"], one["label"], study.data.classes) for one in known[way]]) for way in ways}
smaller = audit.mean_ci((by_class[ppb] < by_class["Base"]).mean(axis=1), bounds=(0, 1))
order = np.argsort(-by_class["Base"].mean(axis=0))
points = [{"class": str(c), "network": way, "value": audit.mean_ci(by_class[way][:, c])} for way in ("dense", "Base", ppb) for c in order]
title = f"PPB's gap of confidence is smaller than Base's in {smaller:.0%} of the classes"
report.profile(points, "class", hue="network", null=None, title=title, xlabel="class, largest gap of Base first", ylabel="gap of confidence")

# %% [markdown]
# ## Strengths, and earlier epochs (AUCs: more confidence, or less sensitivity, is member)

# %%
each = {"{} accuracy": accuracy, "gap of {}": gaps, "AUC, {}": areas}
rows = [{"network": way} | {said.format(of): audit.mean_ci(by[of, w]) for said, by in each.items() for of, w in by if w == way} for way in ways]
last = {said.format(of): at_equal_accuracy(by, of) for said, by in each.items() for of, w in by if w == ppb}
rows.append({"network": f"{ppb}, minus the dense course at equal accuracy"} | last)
report.table(rows, caption=f"Mean over {victims} victims; {sparsity:.0%} of the weights are gone but in the dense ones")

# %% [markdown]
# ## Verdicts

# %%
acts = {f"{sparsity:.0%} of the weights are gone": min(float(results[one]["network"]) for one in removed) > sparsity - 0.03}
acts[f"{ppb} moved members' accuracy below Base's"] = audit.paired_difference(accuracy["member", "Base"], accuracy["member", ppb])
reached = acts | {"the dense course has PPB's mean accuracy between two epochs": bool(heights[0] <= goal <= heights[-1])}
as_dense = {f"{kind}_as_dense": wider(kind, ppb, "dense") for kind in kinds}
report.judge(
    claims,
    confidence_falls=against["confidence"],
    sensitivity_falls=against["sensitivity"],
    **as_dense,
    in_most_classes=smaller,
    accuracy_kept=audit.paired_difference(accuracy["test", ppb], accuracy["test", "Base"]),
    as_earlier_stop=beside,
    order_too=audit.paired_difference(areas["confidence", ppb], areas["confidence", "Base"]),
    order_beyond_accuracy=at_equal_accuracy(areas, "confidence"),
    checks={claim.name: acts for claim in claims}
    | {f"{kind}_as_dense": acts | {f"Base's gap of {kind} is above the dense one's": wider(kind, "Base", "dense")} for kind in kinds}
    | dict.fromkeys(("as_earlier_stop", "order_beyond_accuracy"), reached),
    regime={f"dense {part} accuracy": audit.mean_ci(accuracy[part, "dense"]) for part in ("member", "test")}
    | {"member accuracy of the least victim, dense or Base": min(accuracy["member", way].min() for way in ("dense", "Base"))},
    notes={name: "It lies below the dense one's" for name, one in as_dense.items() if one.high < 0},
)

# %% [markdown]
# **Caveat.** All victims share one half of the samples. The intervals at equal accuracy take PPB's mean place on the course as given.

# %%
report.provenance(results)
