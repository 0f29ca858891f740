# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Direction or length: which of the two carries the disparity?
#
# **Our own**, on the probe of PPTP, Fig. 1. The paper measures ‖p − q‖ between the features of M_all and M_h1. By the
# law of cosines its square is (‖p‖ − ‖q‖)² + 2‖p‖‖q‖(1 − cos). A network that has not seen a sample may send it
# elsewhere (direction). It may also be less sure of it and answer with shorter features (length). The first makes the
# distance larger. The second works both ways: over shorter features the same angle spans less (scale), but lengths in
# the two models then differ more.
#
# **We say** that both effects exist in stage 4 of this network, that there lengths in all, with both their ways,
# lessen the distance, and that the paper's distance shows less there than the direction does. **Not everywhere:**
# `fig06` has other widths. On draw 0 of `quick` lengths in all took .001 [−.021, .018] from the gap at 32 channels of
# stage 4, .038 [.021, .055] at 64 and .078 [.056, .100] at 256. Direction was ahead of the distance by .004 [−.010,
# .019], .039 [.026, .051] and .091 [.069, .114]. In the head lengths add to the gap (below).
#
# **It would be wrong if** unseen samples had features as long as seen ones, or if the Euclidean distance told the
# halves apart as well as the direction. **It would be an artefact** if what we call direction were but units numbered
# anew: so the gap is also looked for up to the best rotation of channels, and by CKA, which knows neither rotation nor
# scale.
#
# Rules were settled on draw 0, a referee's objections in hand, and are judged on this one (seed 1).

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data)
pixels = 16  # side of the images, pixels, after area resize
model = "resnet10"  # architecture
width = 8  # channels of stage 1
stem = "conv3"  # first layer
pool = 600  # samples in D_all
epochs = 12  # epochs
batch = 64  # samples a step
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0
augment = 0  # padding of the random crop with flips, pixels; 0: none
pairs = 12  # pairs of networks, each with its own seed and its own half
learnt = 0.6  # least test accuracy of a network that has learnt
seed = 101  # seed of halves, initialisations and orders
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
import numpy as np
from leak_atlas import audit, lab, report
from leak_atlas.localization import disparity
from leak_atlas.recipe import Augment, Data, Model, ProbeStudy, Schedule, self_audit

ours, seeds = {"ours": "our own"}, "two seeds on the same data"
claims = report.claims(
    report.Claim("elsewhere", "In stage 4, features of unseen samples point elsewhere", "AUC of 1 − cosine, stage 4",
                 above=0.55, margin=0.05, control=seeds, **ours),
    report.Claim("shorter", "In stage 4, features of unseen samples are shorter", "AUC of the feature norm in M_h1, stage 4",
                 below=0.45, margin=0.05, control=seeds, **ours),
    report.Claim("opposed", "In stage 4 lengths, by scale and difference, lessen the gap", "share of the gap by lengths in all, stage 4",
                 below=-0.02, margin=0.03, control="both effects of length; all shares sum to the gap", **ours),
    report.Claim("understates", "In this stage 4 the paper's distance shows less", "|AUC − 0.5| of direction minus that of Euclidean, stage 4",
                 above=0.01, margin=0.03, control="paired over pairs of networks", **ours),
    report.Claim("rotation", "It is not the numbering of units: a rotation leaves as much", "|AUC − 0.5| of Euclidean, rotated minus as it is, stage 4",
                 above=-0.03, margin=0.05, control="rotations fitted to other samples; same samples", **ours),
    report.Claim("cka", "CKA sees it too: on unseen samples the two are less alike", "CKA of M_all and M_h1, seen minus unseen, stage 4",
                 above=0.02, margin=0.03, control="debiased; free of rotation and scale", **ours),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)  # fmt: skip
claims

# %%
schedule = Schedule(epochs, batch, optimizer, lr, nesterov=True, augment=Augment(augment) if augment else None)
study = ProbeStudy(Data(data, pixels), Model(model, width, stem), schedule, pool, pairs, seed, precision)
distances, rotated = study.distances(), [pair.similarity() for pair in study.probes]
floor, signals = study.floors(), study.wholes()

results = lab.realize(distances, rotated, floor, signals, self_audit(study.probes))

# %% [markdown]
# ## Readings of one pair of features

# %%
parts = results[distances[0]].parts
last = parts.index("stage4")
names = {"euclidean": "Euclidean (the paper's)", "direction": "direction (1 − cosine)", "length": "length in M_h1", "aligned": "Euclidean, rotated"}
read = {m: disparity.read([results[step] for step in (rotated if m == "aligned" else distances)], m) for m in names}
profiles = {measure: disparity.profile(*found) for measure, found in read.items()}
control = disparity.floor(disparity.measured([results[step] for step in floor], "direction"), read["direction"][1])
apart = profiles["direction"][last].low > 0.5 > profiles["length"][last].high
report.profile(
    [row for m in names for row in report.rows(parts, profiles[m], measure=names[m])],
    hue="measure", floor=report.rows(parts, control), begins="stage4", ylabel="AUC, unseen against seen by M_h1",
    title="In stage 4 unseen features point elsewhere and are shorter" if apart else "In stage 4 direction and length do not surely pull apart",
)  # fmt: skip

# %% [markdown]
# ## Who carries the gap
# The gap in mean squared distance between the halves, split exactly into what direction, scale (shorter or longer
# features, so that the same angle spans less or more), lengths that differ (length) and their joint part contribute.
# Lengths in all are scale and length together. Everything is relative to the mean squared distance.

# %%
found = [results[step] for step in distances]
shares = [disparity.gap_shares(one["direction"], one["length_a"], one["length_b"], one["seen_b"]) for one in found]
shares = [share | {"lengths in all": share["length"] + share["scale"]} for share in shares]
carriers = {name: [audit.mean_ci(column) for column in np.stack([share[name] for share in shares]).T] for name in shares[0]}
main, net = max(list(carriers)[:4], key=lambda name: carriers[name][last].value), carriers["lengths in all"][last]
report.profile(
    [row for name, each in carriers.items() for row in report.rows(parts, each, effect=name)],
    hue="effect", null=0.0, begins="stage4", ylabel="share of the mean squared distance",
    title=f"In stage 4 {main} carries the gap; lengths in all {'lessen it' if net.high < 0 else 'add to it' if net.low > 0 else 'do not surely change it'}",
)  # fmt: skip

# %%
known, new = (np.array([disparity.cka(results[step], side) for step in rotated]).T for side in (True, False))
alike = [audit.paired_difference(a, b) for a, b in zip(known, new, strict=True)]
said = {f"AUC, {names[m]}": each for m, each in profiles.items()} | {f"gap by {name}": each for name, each in carriers.items()}
ahead = [disparity.setting_difference(read["direction"], read["euclidean"], i) for i in range(len(parts))]
said |= {"|AUC − 0.5|, direction minus Euclidean": ahead, "CKA, seen minus unseen": alike}
rows = [{"quantity": name} | dict(zip(parts, each, strict=True)) for name, each in said.items()]
report.table(rows, caption=f"Over {pairs} pairs; the gap is that of mean squared distances, unseen minus seen, over their mean")

# %% [markdown]
# ## Verdicts

# %%
same = [np.isin(results[one]["index"], results[other]["index"]) for one, other in zip(distances, rotated, strict=True)]
plain = [each[:, here[results[one]["seen_a"]]] for each, here, one in zip(read["euclidean"][0], same, distances, strict=True)]
fitted, learned = ([float(results[step][f"accuracy_{role}"]) for step in signals] for role in ("member", "test"))
report.judge(
    claims,
    elsewhere=profiles["direction"][last],
    shorter=profiles["length"][last],
    opposed=net,
    understates=ahead[last],
    rotation=disparity.setting_difference(read["aligned"], (plain, read["aligned"][1]), last),
    cka=alike[last],
    regime={"member accuracy": audit.mean_ci(fitted), "test accuracy": audit.mean_ci(learned)},
)

# %% [markdown]
# **Caveat.** The split is of squared distances, the AUC of their order: a sample counts in the first as much as it is
# far away. Lengths are those of the features before pooling; that shorter means less sure is our reading.

# %%
report.provenance(results)
