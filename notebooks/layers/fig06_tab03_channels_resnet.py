# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Do more channels in stage 4 leak more?
#
# **PPTP, Fig. 6 and Tab. 3** (section 3.3). The probe of Fig. 1, with stage 4 made narrower and wider: 4, 8 and 32
# times the channels of stage 1, as in the paper.
#
# **The paper says** that the disparity grows with the channels of stage 4 while the test accuracy hardly changes:
# 52.52, 54.58, 53.99 and 55.03 % at 256 to 2,048 (ResNet18, TinyImageNet, augmented). So channels buy leak, not
# accuracy. Of the disparity the text gives no number, and of these networks no attack.
#
# **It would be wrong if** the widest stage 4 told the halves apart no better than the narrowest, or if accuracy changed
# by 3 points. The Euclidean distance mixes direction and length; where the two say different things, a table parts the
# gap between the halves into what carries it. The leak itself is measured beside it: the paper's attack on confidence,
# with M_h1 as the target.
#
# Rules were settled on draw 0, a referee's objections in hand, and are judged on this one (seed 1).

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (paper: 64)
stem = "conv3"  # first layer (paper: not stated; conv3-pool gives its 4x4 map in stage 4 at 64 pixels)
channels = [32, 64, 256]  # channels of stage 4 (paper: 256, 512, 1024, 2048, that is 4, 8, 16, 32 times the width)
pool = 600  # samples in D_all (paper: 100,000)
epochs = 12  # epochs (paper: not stated)
batch = 64  # samples a step (paper: not stated)
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0 (paper: not stated)
augment = 0  # padding of the random crop with flips, pixels; 0: none (paper: crop and flip)
pairs = 8  # pairs of networks a width, each with its own seed and its own half (paper: one)
learnt = 0.6  # least test accuracy of a network that has learnt (ours)
seed = 101  # seed of halves, initialisations and orders
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
from leak_atlas import audit, lab, report
from leak_atlas.localization import disparity
from leak_atlas.recipe import Augment, Data, Model, ProbeStudy, Schedule, Threshold, self_audit

growth, same = "|AUC − 0.5| of stage 4, widest minus narrowest", "paired: same seeds, same halves"
claims = report.claims(
    report.Claim("onset", "Whatever the channels, stage 4 stands out", "|AUC − 0.5| of stage 4 minus largest of 1-3, least over widths, Euclidean",
                 above=0.02, margin=0.05, paper="Fig. 6", control="stages 1-3 of the same pairs"),
    report.Claim("grows", "The disparity of stage 4 grows with its channels", f"{growth}, Euclidean", above=0.02, margin=0.05, paper="Fig. 6", control=same),
    report.Claim("direction_alike", "By direction alone it hardly changes", f"{growth}, direction", within=0.06, ours=True, control="free of length"),
    report.Claim("leaks_more", "The leak itself grows: an attack finds more members of M_h1", "AUC of the confidence attack, widest minus narrowest",
                 above=0.02, margin=0.03, paper="section 3.3 (our measure)", control=same),
    report.Claim("accuracy", "Test accuracy changes by less than 3 points", "largest difference in test accuracy between two widths",
                 below=0.03, margin=0.03, paper="Tab. 3", control=same),
    regime={"least member accuracy": 0.95, "least test accuracy": learnt},
)  # fmt: skip
claims

# %%
schedule = Schedule(epochs, batch, optimizer, lr, nesterov=True, augment=Augment(augment) if augment else None)
usual = ProbeStudy(Data(data, pixels), Model(model, width, stem), schedule, pool, pairs, seed, precision)
studies = {count: replace(usual, model=replace(usual.model, stage4_channels=count if count != 8 * width else None)) for count in channels}
distances = {count: study.distances() for count, study in studies.items()}
wholes = {count: study.wholes() for count, study in studies.items()}
halves = {count: study.halves() for count, study in studies.items()}
attacks = {(count, "Conf"): study.attack(Threshold()) for count, study in studies.items()}

results = lab.realize(distances, wholes, halves, attacks, self_audit(studies[channels[0]].probes))

# %% [markdown]
# ## Disparity against channels

# %%
parts = results[distances[channels[0]][0]].parts
early, last, narrow, wide = [parts.index(f"stage{i}") for i in (1, 2, 3)], parts.index("stage4"), min(channels), max(channels)
measures = {"euclidean": "Euclidean (the paper's)", "direction": "direction (1 − cosine)", "length": "length in M_h1"}
steps = {(more, fewer): f"{fewer} to {more}" for fewer, more in pairwise(sorted(channels))}
read = {(count, m): disparity.read([results[step] for step in each], m) for count, each in distances.items() for m in measures}
profiles = {key: disparity.profile(*found) for key, found in read.items()}


def goes(change):
    return "grows" if change.low > 0 else "shrinks" if change.high < 0 else "stays about as it is"


grown = {(m, *two): disparity.setting_difference(*(read[count, m] for count in two), last) for m in measures for two in permutations(channels, 2)}
report.profile(
    [row for (count, m), each in profiles.items() for row in report.rows(parts, each, channels=count, measure=measures[m])],
    hue="channels", facet="measure", begins="stage4", ylabel="AUC, unseen against seen by M_h1",
    title="By the paper's distance stage 4's disparity " + ", ".join(f"{goes(grown['euclidean', *step])} from {words}" for step, words in steps.items()),
)  # fmt: skip

# %% [markdown]
# What carries the gap: mean squared distance of the unseen half minus that of the seen one, over that of the pool, in
# stage 4. It is the sum of four shares: the angle is wider, features are shorter (so an angle spans less), the lengths
# in the two networks differ more, and angle and length go together.

# %%
WAYS = ("direction", "length_a", "length_b")
rows = []
for count, each in distances.items():
    pool_of = [(found, np.asarray(found["seen_a"], bool)) for found in (results[step] for step in each)]
    carried = [disparity.gap_shares(*(np.asarray(found[way])[:, kept] for way in WAYS), np.asarray(found["seen_b"])[kept]) for found, kept in pool_of]
    names = {"direction": "wider angle", "scale": "shorter features", "length": "lengths differ", "joint": "angle with length"}
    rows.append({"channels": count} | {words: audit.mean_ci([float(share[name][last]) for share in carried]) for name, words in names.items()})
report.table(rows, caption=f"Shares of the gap in stage 4, means over {pairs} pairs")

# %% [markdown]
# ## Accuracy and leak against channels
# Accuracy as differences from the narrowest stage; the attack's AUC as it is.

# %%
found = audit.Comparison.of(results, halves, attacks)
members, tests = ({c: [float(results[step][f"accuracy_{role}"]) for step in each] for c, each in wholes.items()} for role in ("member", "test"))
PAPER = {4: 0.5252, 8: 0.5458, 16: 0.5399, 32: 0.5503}  # Tab. 3, by channels of stage 4 over width
printed = {count: PAPER.get(count // width) for count in channels}
others = [count for count in channels if count != narrow]
gain = {count: audit.paired_difference(tests[count], tests[narrow]) for count in others}
more = {count: found.auc_difference(count, narrow, "Conf") for count in others}
shift = {count: f"{count} minus {narrow}" for count in others}
report.against_paper(
    [{"channels": words, "value": gain[c], "paper": printed[c] - printed[narrow] if printed[c] and printed[narrow] else None} for c, words in shift.items()],
    "channels", source="Tab. 3 at the same ratio of channels to width, TinyImageNet", xlabel="test accuracy of M_all, difference",
    title=f"From {narrow} to {wide} channels test accuracy {goes(gain[wide])}",
)  # fmt: skip

# %%
report.against_paper(
    [{"channels": str(count), "value": found.leak(count, "Conf")["auc"]} for count in channels], "channels", xlabel="AUC of the confidence attack on M_h1",
    title=f"From {narrow} to {wide} channels the attack's AUC {goes(more[wide])}",
)  # fmt: skip

# %%
rows = [
    {
        "channels": count,
        "member accuracy": audit.mean_ci(members[count]),
        "test accuracy": audit.mean_ci(tests[count]),
        "paper, test accuracy": printed[count],
    }
    | {f"AUC of stage 4, {measures[m]}": profiles[count, m][last] for m in measures}
    | {"confidence attack on M_h1, AUC": found.leak(count, "Conf")["auc"]}
    for count in channels
]
report.table(rows, paper="Tab. 3 at the same ratio of channels to width", caption=f"Over {pairs} pairs")

# %% [markdown]
# ## Verdicts

# %%
report.judge(
    claims,
    onset=audit.least(disparity.contrast(*read[count, "euclidean"], last, early) for count in channels),
    grows=grown["euclidean", wide, narrow],
    direction_alike=grown["direction", wide, narrow],
    leaks_more=more[wide],
    accuracy=audit.largest(audit.paired_difference(tests[one], tests[other]) for one, other in permutations(channels, 2)),
    regime={f"least {name} accuracy": min(audit.mean_ci(each).value for each in of.values()) for name, of in (("member", members), ("test", tests))},
)  # fmt: skip

# %% [markdown]
# **Caveat.** All widths train with one learning rate. The paper's networks are 64 wide: thinner ones need not do the same.

# %%
report.provenance(results)
