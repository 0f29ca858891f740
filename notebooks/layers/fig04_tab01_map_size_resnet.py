# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does a larger feature map in stage 4 leak more?
#
# **PPTP, Fig. 4 and Tab. 1** (section 3.3). The probe of Fig. 1, with the map of stage 4 shrunk and enlarged by the
# stride of its first block. Parameters, channels and the stages before are the same.
#
# **The paper says** that a larger map does not move the disparity and does not significantly strengthen it, while the
# network generalizes better: 52.32, 54.58 and 61.53 % for 2x2, 4x4 and 8x8 (ResNet18, TinyImageNet, augmented). So map
# size buys accuracy at little privacy. Of the disparity the text gives no number, and of these networks no attack.
#
# **It would be wrong if** the disparity moved to an earlier stage, if it grew from any map to a larger one, or if
# accuracy did not at every step, as it does in Tab. 1. To grow is to grow by 0.02 or more, the smallest effect worth
# having. What the disparity is meant to tell, the leak, is measured beside it: the paper's attack on confidence, with
# M_h1 as the target. Neither the ends alone nor a straight line are taken for the curve: every step is judged.
#
# Rules were settled on draw 0, a referee's objections in hand, and are judged on this one (seed 1).

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (paper: 64)
stem = "conv3"  # first layer (paper: not stated; conv3-pool gives its 4x4 map at 64 pixels)
strides = [4, 2, 1]  # stride of stage 4's first block: a smaller, the usual and a larger map (paper: maps of 2x2, 4x4, 8x8)
pool = 600  # samples in D_all (paper: 100,000)
epochs = 12  # epochs (paper: not stated)
batch = 64  # samples a step (paper: not stated)
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0 (paper: not stated)
augment = 0  # padding of the random crop with flips, pixels; 0: none (paper: crop and flip)
pairs = 8  # pairs of networks a map, each with its own seed and its own half (paper: one)
learnt = 0.6  # least test accuracy of a network that has learnt (ours)
seed = 101  # seed of halves, initialisations and orders
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace
from itertools import combinations, pairwise

from leak_atlas import audit, lab, report
from leak_atlas.localization import disparity
from leak_atlas.recipe import Augment, Data, Model, ProbeStudy, Schedule, Threshold, self_audit

same, rise = "paired: same seeds, same halves", "largest rise of |AUC − 0.5| of stage 4 from a map to a larger one"
claims = report.claims(
    report.Claim("onset", "Whatever the map, stage 4 stands out", "|AUC − 0.5| of stage 4 minus the largest of 1-3, least over maps, Euclidean",
                 above=0.02, margin=0.05, paper="Fig. 4", control="stages 1-3 of the same pairs"),
    report.Claim("generalizes", "Each step to a larger map generalizes better", "test accuracy of M_all, map minus the next smaller, least of the steps",
                 above=0.0, margin=0.02, paper="Tab. 1", control=same),
    report.Claim("no_stronger", "No larger map strengthens the disparity", f"{rise}, Euclidean", below=0.02, margin=0.04, paper="Fig. 4", control=same),
    report.Claim("no_stronger_ours", "Nor by direction alone", f"{rise}, direction", below=0.02, margin=0.04, paper="Fig. 4 (ours)", control=same),
    report.Claim("leaks_no_more", "Nor does an attack find more members of M_h1", "AUC of the confidence attack, largest rise to a larger map",
                 below=0.02, margin=0.03, ours=True, control=same),
    report.Claim("falls_again", "From the usual map to the largest it finds fewer", "AUC of the confidence attack, largest map minus the next smaller",
                 below=-0.02, margin=0.03, ours=True, control=f"{same}; fit of M_h1 in the table"),
    regime={"least member accuracy": 0.95, "least test accuracy": learnt},
)  # fmt: skip
claims

# %%
schedule = Schedule(epochs, batch, optimizer, lr, nesterov=True, augment=Augment(augment) if augment else None)
usual = ProbeStudy(Data(data, pixels), Model(model, width, stem), schedule, pool, pairs, seed, precision)
studies = {stride: replace(usual, model=replace(usual.model, stage4_stride=stride)) for stride in strides}
distances = {stride: study.distances() for stride, study in studies.items()}
floors = {stride: study.floors() for stride, study in studies.items()}
wholes = {stride: study.wholes() for stride, study in studies.items()}
halves = {stride: study.halves() for stride, study in studies.items()}
attacks = {(stride, "Conf"): study.attack(Threshold()) for stride, study in studies.items()}

results = lab.realize(distances, floors, wholes, halves, attacks, self_audit(studies[strides[0]].probes))

# %% [markdown]
# ## Disparity against the map

# %%
before = pixels // 4 // (2 if stem == "conv3-pool" else 1)  # side of stage 3's map
side = {stride: f"{-(-before // stride)}x{-(-before // stride)}" for stride in strides}
parts = results[distances[strides[0]][0]].parts
early, last = [parts.index(f"stage{i}") for i in (1, 2, 3)], parts.index("stage4")
upwards = sorted(strides, reverse=True)  # from the smallest map to the largest
steps = {(larger, smaller): f"{side[smaller]} to {side[larger]}" for smaller, larger in pairwise(upwards)}
rises = [(larger, smaller) for smaller, larger in combinations(upwards, 2)]
measures = {"euclidean": "Euclidean (the paper's)", "direction": "direction (1 − cosine)"}
read, profiles, _, onsets = disparity.survey(results, distances, floors, measures, parts, 0.02)


def goes(change):
    return "grows" if change.low > 0 else "shrinks" if change.high < 0 else "stays about as it is"


grown = {(m, *rise): disparity.setting_difference(*(read[stride, m] for stride in rise), last) for m in measures for rise in rises}
report.profile(
    [row for (stride, m), each in profiles.items() for row in report.rows(parts, each, map=side[stride], measure=measures[m])],
    hue="map", facet="measure", begins="stage4", ylabel="AUC, unseen against seen by M_h1",
    title="By the paper's distance stage 4's disparity " + ", ".join(f"{goes(grown['euclidean', *step])} from {words}" for step, words in steps.items()),
)  # fmt: skip

# %% [markdown]
# ## Accuracy and leak against the map
# Each step is a map minus the next smaller one, so a step says what enlarging the map does there.

# %%
found = audit.Comparison.of(results, halves, attacks)
accuracies = {
    (s, who, role): [float(results[step][f"accuracy_{role}"]) for step in states[s]]
    for who, states in (("M_all", wholes), ("M_h1", halves)) for s in strides for role in ("member", "test")
}  # fmt: skip
tests = {stride: accuracies[stride, "M_all", "test"] for stride in strides}
PAPER = {4: 0.5232, 2: 0.5458, 1: 0.6153}  # Tab. 1, by the stride that makes 2x2, 4x4 and 8x8 of stage 3's 8x8
gain = {step: audit.paired_difference(*(tests[stride] for stride in step)) for step in steps}
more = {rise: found.auc_difference(*rise, "Conf") for rise in rises}
report.against_paper(
    [{"step": words, "value": gain[step], "paper": PAPER[step[0]] - PAPER[step[1]]} for step, words in steps.items()], "step",
    source="Tab. 1 at the same strides, TinyImageNet", xlabel="test accuracy of M_all, difference",
    title="Test accuracy " + ", ".join(f"{goes(gain[step])} from {words}" for step, words in steps.items()),
)  # fmt: skip

# %%
report.against_paper(
    [{"step": words, "value": more[step]} for step, words in steps.items()], "step", xlabel="AUC of the confidence attack on M_h1, difference",
    title="The attack's AUC " + ", ".join(f"{goes(more[step])} from {words}" for step, words in steps.items()),
)  # fmt: skip

# %%
rows = [
    {"map of stage 4": side[stride]}
    | {f"{who}, {role} accuracy": audit.mean_ci(accuracies[stride, who, role]) for who in ("M_all", "M_h1") for role in ("member", "test")}
    | {"paper, M_all, test accuracy": PAPER.get(stride)}
    | {f"AUC of stage 4, {measures[m]}": profiles[stride, m][last] for m in measures}
    | {f"onset, {measures[m]}": onsets[stride, m] for m in measures}
    | {"confidence attack on M_h1, AUC": found.leak(stride, "Conf")["auc"]}
    for stride in strides
]
begins = ", ".join(f"{onsets[stride, 'direction']} with {side[stride]}" for stride in upwards)
onset = f"onset: first stage whose interval lies outside 0.5 ± 0.02 and outside that of two seeds; by direction {begins}"
report.table(rows, paper="Tab. 1", caption=f"Over {pairs} pairs; {onset}")

# %% [markdown]
# ## Verdicts

# %%
report.judge(
    claims,
    onset=audit.least(disparity.contrast(*read[stride, "euclidean"], last, early) for stride in strides),
    generalizes=audit.least(gain.values()),
    no_stronger=audit.largest(grown["euclidean", *rise] for rise in rises),
    no_stronger_ours=audit.largest(grown["direction", *rise] for rise in rises),
    leaks_no_more=audit.largest(more.values()),
    falls_again=more[upwards[-1], upwards[-2]],
    regime={
        "least member accuracy": min(audit.mean_ci(each).value for (*_, role), each in accuracies.items() if role == "member"),
        "least test accuracy": min(audit.mean_ci(each).value for each in tests.values()),
    },
)

# %% [markdown]
# **Caveat.** A larger map also means more operations in stage 4 (four times for each halving of the stride), so
# accuracy is not compared at equal cost. All maps train with one rate for as long: one that fits its members less well
# (M_h1 in the table) leaks less for this reason alone, so part of a change of the leak may be fit, and we do not part
# the two. Where a stage begins to tell by direction is in the table, too; it may be before stage 4.

# %%
report.provenance(results)
