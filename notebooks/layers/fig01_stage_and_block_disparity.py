# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Where in depth does the disparity begin?
#
# **PPTP, Fig. 1** (section 3.2). Two networks share their initialisation and the order of their training; one, M_all, sees the whole pool, the other,
# M_h1, only half of it. For every sample of the pool compare what the two compute in a stage. Half of the samples were seen by both networks, half by
# M_all alone: where the distances of the two halves follow different laws, that stage knows who was in the training set.
#
# **The paper says** that stages 1 to 3 show no disparity at all, that it begins *abruptly* in stage 4, and that it grows block by block inside it
# (ResNet152, TinyImageNet). It shows histograms and no test.
#
# **It would be wrong if** an earlier stage told the halves apart as well as stage 4, or if two seeds on the *same* data differed just as much. It would be
# an artefact if it vanished once the best rotation of channels is taken out: a training may number its units anew, and a distance sees that as change.
#
# We read every distance two-sidedly. An AUC below one half is disparity too: features of unseen samples point elsewhere (distance up) but are also
# shorter (distance down), so the paper's Euclidean distance mixes two effects of opposite sign. Beside it stands the direction alone (1 − cosine).

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (python -m lib.data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
model = "resnet18"  # architecture (paper: resnet152)
width = 8  # channels of stage 1 (paper: 64)
stem = "conv3"  # first layer (paper: not stated; conv3-pool gives its 4x4 map in stage 4 at 64 pixels)
pool = 600  # samples in D_all (paper: 100,000)
epochs = 12  # epochs (paper: not stated)
batch = 64  # samples a step (paper: not stated)
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0 (paper: not stated)
augment = 0  # padding of the random crop with flips, pixels; 0: none (paper: crop and flip)
pairs = 12  # pairs of networks, each with its own seed and its own half (paper: one)
margin = 0.02  # an AUC closer to 0.5 than this counts as no disparity
seed = 1  # seed of halves, initialisations and orders
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
import numpy as np

from lib import audit, lab, report
from lib.localization import disparity
from lib.recipe import Augment, Data, Halves, Model, Schedule, Setup, Signals, seed_floors, self_audit


def abrupt(name, text, measure, paper, control):
    quantity = f"|AUC − 0.5| of stage 4 minus the largest of stages 1-3, {measure}"
    return report.Claim(name, text, quantity, above=0.0, paper=paper, control=control)


begins = "the disparity begins abruptly in stage 4"
claims = report.claims(
    abrupt("abrupt_onset", "The disparity begins abruptly in stage 4", "Euclidean", "Fig. 1", "the same contrast over pairs of models"),
    abrupt("abrupt_onset_direction", f"By direction alone, {begins}", "direction", "Fig. 1 (our reading)", "free of the length of the features"),
    abrupt("not_permuted_units", f"Up to a rotation of channels, {begins}", "rotated", "Fig. 1 (our control)", "rotations fitted to other samples"),
    report.Claim(
        "early_stages_are_silent",
        "Stages 1 to 3 show no disparity",
        quantity="largest |AUC − 0.5| of stages 1-3, Euclidean",
        below=margin,
        paper="Fig. 1",
        control="two seeds on the same data",
    ),
    report.Claim(
        "grows_inside_stage_4",
        "Inside stage 4 the disparity grows from block to block",
        quantity="|AUC − 0.5| of the last block of stage 4 minus that of its first, direction",
        above=0.0,
        paper="Fig. 1",
        control="paired over pairs of models",
    ),
)
claims

# %% [markdown]
# ## Pairs of networks
# Each pair has its own seed and its own random half of the pool. The floor compares M_all of two pairs: other seeds, the same data, hence no membership.

# %%
schedule = Schedule(epochs, batch, optimizer, lr, nesterov=True, augment=Augment(augment) if augment else None)
probe = Setup(Data(data, pixels), Halves(pool, seed=seed), Model(model, width, stem), schedule, pairs, seed, precision).pairs()
stages = [pair.distance() for pair in probe]
blocks = [pair.distance("blocks") for pair in probe]
rotated = [pair.similarity() for pair in probe]
floor = seed_floors(probe)
accuracies = {"M_all": [Signals(pair.whole) for pair in probe], "M_h1": [Signals(pair.half) for pair in probe]}

# %%
results = lab.realize(stages, blocks, rotated, floor, accuracies, self_audit(probe))

# %% [markdown]
# ## Distances, stage by stage
# First the look of the paper's figure, for one pair; then the AUC of every stage over all pairs.

# %%
parts = results[stages[0]].parts
first, seen = results[stages[0]], results[stages[0]]["seen_b"]
by_stage = {name: disparity.read([results[s] for s in stages], name) for name in ("euclidean", "direction")}
floors = {name: disparity.floor(disparity.measured([results[f] for f in floor], name), halves) for name, (_, halves) in by_stage.items()}
by_stage["aligned"] = disparity.read([results[r] for r in rotated], "aligned")
profiles = {name: disparity.profile(*read) for name, read in by_stage.items()}
shown = [i for i, part in enumerate(parts) if part.startswith("stage")]
report.histograms(
    {parts[i]: (first["euclidean"][i][seen], first["euclidean"][i][~seen]) for i in shown},
    xlabel="normalised feature distance between M_all and M_h1",
    title=f"One pair of networks: {model}, width {width}, {data}",
    notes={parts[i]: f"AUC {profiles['euclidean'][i].value:.2f} over {pairs} pairs" for i in shown},
)

# %%
onset = {name: disparity.onset(profiles[name], floors[name], parts, margin) for name in floors}
names = {"euclidean": "Euclidean (the paper's)", "direction": "direction (1 − cosine)", "aligned": "Euclidean, rotated"}
report.profile(
    [{"part": p, "value": e, "measure": names[m]} for m in names for p, e in zip(parts, profiles[m], strict=True)],
    hue="measure",
    floor=[{"part": p, "value": e} for p, e in zip(parts, floors["direction"], strict=True)],
    title=f"Disparity begins in {onset['direction'] or 'no stage'} by direction, in {onset['euclidean'] or 'no stage'} by the paper's distance",
    ylabel="AUC, unseen against seen by M_h1",
)

# %%
inside = results[blocks[0]].parts
in_stage4 = [i for i, name in enumerate(inside) if name.startswith("stage4")]
by_block = {name: disparity.read([results[b] for b in blocks], name) for name in ("euclidean", "direction")}
of_blocks = {m: disparity.profile(*found) for m, found in by_block.items()}
report.profile(
    [{"part": p, "value": e, "measure": names[m]} for m in of_blocks for p, e in zip(inside, of_blocks[m], strict=True)],
    hue="measure",
    title="In stage 4 the direction goes from AUC {:.2f} to {:.2f}".format(*(of_blocks["direction"][in_stage4[i]].value for i in (0, -1))),
    ylabel="AUC, unseen against seen by M_h1",
)

# %%
ks, border = disparity.ks(*by_stage["direction"])
report.table(
    [
        {
            "part": part,
            "AUC, Euclidean": profiles["euclidean"][i],
            "AUC, direction": profiles["direction"][i],
            "AUC, rotated": profiles["aligned"][i],
            "KS, direction": ks[i],
            "AUC, two seeds": floors["direction"][i],
            "paper": {"stage4": "disparity"}.get(part, "none" if part in ("stage1", "stage2", "stage3") else None),
        }
        for i, part in enumerate(parts)
    ],
    paper="Fig. 1, ResNet152 on TinyImageNet, read off its histograms",
    caption=f"Over {pairs} pairs. Rotated: Euclidean, after the best rotation of channels. Under the null KS stays below {border:.3f} in 95 % of single pairs",
)

# %%
known, new = (np.array([[part.value for part in disparity.cka(results[r], seen)] for r in rotated]).T for seen in (True, False))
report.table(
    [
        {"part": p, "seen by both": audit.over(a), "seen by M_all only": audit.over(b), "difference": audit.paired_difference(a, b)}
        for p, a, b in zip(parts, known, new, strict=True)
    ],
    caption=f"Debiased linear CKA: how alike M_all and M_h1 are up to a rotation (1: equal) on samples of each half, over {pairs} pairs",
)

# %% [markdown]
# ## Verdicts

# %%
early, last = [parts.index(f"stage{i}") for i in (1, 2, 3)], parts.index("stage4")
report.judge(
    claims,
    early_stages_are_silent=audit.largest(disparity.strength(profiles["euclidean"][i]) for i in early),
    abrupt_onset=disparity.contrast(*by_stage["euclidean"], last, early),
    abrupt_onset_direction=disparity.contrast(*by_stage["direction"], last, early),
    not_permuted_units=disparity.contrast(*by_stage["aligned"], last, early),
    grows_inside_stage_4=disparity.contrast(*by_block["direction"], in_stage4[-1], in_stage4[:1]),
    notes={
        "not_permuted_units": f"AUC of stage 4: {profiles['aligned'][last]} with the best rotation taken out, {profiles['euclidean'][last]} as it is"
    },
)

# %% [markdown]
# **Caveat.** In `quick` these are thin networks on small images; "stage 4" has one hundredth of the paper's parameters. The Euclidean verdicts say as much about the
# distance as about the network: `own01_direction_or_length` takes its two effects apart, and `own02_stage_membership_probe` asks one network directly.

# %%
report.provenance(results, **{f"test accuracy, {n}": audit.over([results[s]["accuracy_test"] for s in a]) for n, a in accuracies.items()})
