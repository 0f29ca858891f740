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
# # Does a larger Active Token Mixer leak from an earlier stage?
#
# **PPTP, Fig. 11** (section 3.3). The probe of Fig. 1 on a transformer-type architecture: Active Token Mixers (ATM) of different depth, which share their
# widths. Most of the added layers belong to stage 3.
#
# **The paper says** that an ATM shows the disparity from stage 3 on, one stage earlier than a ResNet, whatever its size: XT, T or B (TinyImageNet).
#
# **It would be wrong if** at some size stage 3 told the halves apart no better than stages 1 and 2, or if its AUC stayed within the margin of one half.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (python -m lib.data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
models = ["atm-xt", "atm-t"]  # architectures, smallest first (paper: atm-xt, atm-t, atm-b)
width = 8  # channels of stage 1; stages 2 to 4 have 2, 5 and 8 times as many (paper: 64)
patch = 2  # stride of the patch embedding, pixels: maps of 8, 4, 2, 1 pixels a side (paper: not stated; 4 as published, with 16, 8, 4, 2 at 64)
pool = 200  # samples in D_all (paper: 100,000)
epochs = 16  # epochs (paper: not stated)
batch = 32  # samples a step (paper: not stated)
lr = 0.005  # learning rate of Adam without weight decay, cosine to 0 (paper: neither optimizer nor rate stated)
augment = 0  # padding of the random crop with flips, pixels; 0: none (paper: crop and flip)
pairs = 8  # pairs of networks a size, each with its own seed and its own half (paper: one)
margin = 0.02  # an AUC closer to 0.5 than this counts as no disparity
seed = 1  # seed of halves, initialisations and orders
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from lib import audit, lab, report
from lib.localization import disparity
from lib.recipe import Augment, Data, Halves, Model, Schedule, Setup, Signals, seed_floors, self_audit

claims = report.claims(
    report.Claim(
        "stage_3_leads",
        "At every size, the disparity begins at stage 3",
        quantity="|AUC − 0.5| of stage 3 minus the largest of stages 1-2, smallest over sizes, Euclidean",
        above=0.0,
        paper="Fig. 11",
        control="two seeds on the same data",
    ),
    report.Claim(
        "stage_3_leads_direction",
        "By direction, too, it begins at stage 3",
        quantity="|AUC − 0.5| of stage 3 minus the largest of stages 1-2, smallest over sizes, direction",
        above=0.0,
        paper="Fig. 11 (our reading)",
        control="free of the length of the features",
    ),
    report.Claim(
        "stage_3_is_beyond_the_margin",
        "Stage 3 shows a disparity at every size",
        quantity="|AUC − 0.5| of stage 3, smallest over sizes, direction",
        above=margin,
        paper="Fig. 11",
        control="two seeds on the same data",
    ),
    report.Claim(
        "stage_4_leads",
        "By direction, the disparity of stage 4 is larger than that of stages 1 to 3 (as in a ResNet)",
        quantity="|AUC − 0.5| of stage 4 minus the largest of stages 1-3, smallest over sizes, direction",
        above=0.0,
        paper="our question; Fig. 10 says so of ResNets",
        control="the same contrast over pairs of models",
    ),
)
claims

# %% [markdown]
# ## The same pairs at every size

# %%
schedule = Schedule(epochs, batch, "adam", lr, weight_decay=0.0, augment=Augment(augment) if augment else None)
probes = {
    model: Setup(Data(data, pixels), Halves(pool, seed=seed), Model(model, width, patch=patch), schedule, pairs, seed, precision).pairs()
    for model in models
}
distances = {model: [pair.distance() for pair in probe] for model, probe in probes.items()}
floors = {model: seed_floors(probe) for model, probe in probes.items()}
signals = {model: [Signals(pair.whole) for pair in probe] for model, probe in probes.items()}

# %%
results = lab.realize(distances, floors, signals, self_audit(probes[models[0]]))

# %% [markdown]
# ## Stage by stage, size by size
# The grey band, two seeds on the same data, is that of the smallest network.

# %%
parts = results[distances[models[0]][0]].parts
names = {"euclidean": "Euclidean (the paper's)", "direction": "direction (1 − cosine)"}
read, profiles, controls, onsets = disparity.survey(results, distances, floors, names, parts, margin)
shown = [i for i, part in enumerate(parts) if part.startswith("stage")]
firsts = {model: results[distances[model][0]] for model in models}
report.histograms(
    {(name, parts[i]): (one["euclidean"][i][one["seen_b"]], one["euclidean"][i][~one["seen_b"]]) for name, one in firsts.items() for i in shown},
    xlabel="normalised feature distance between M_all and M_h1",
    title="One pair of each size; over all pairs the AUC of stage 3 is "
    + " and ".join(f"{profiles[model, 'euclidean'][parts.index('stage3')].value:.2f} ({model})" for model in models),
    notes={(model, parts[i]): f"AUC {profiles[model, 'euclidean'][i].value:.2f}" for model in models for i in shown},
)

# %%
report.profile(
    [
        {"part": part, "value": estimate, "architecture": model, "measure": names[m]}
        for (model, m), profile in profiles.items()
        for part, estimate in zip(parts, profile, strict=True)
    ],
    hue="architecture",
    facet="measure",
    floor=[
        {"part": part, "value": estimate, "measure": names[m]} for m in names for part, estimate in zip(parts, controls[models[0], m], strict=True)
    ],
    title="Onset by the paper's distance: " + ", ".join(f"{onsets[model, 'euclidean']} ({model})" for model in models),
    ylabel="AUC, unseen against seen by M_h1",
)

# %%
fourth = parts.index("stage4")
report.table(
    [
        {
            "architecture": model,
            "onset, Euclidean": onsets[model, "euclidean"],
            "onset, direction": onsets[model, "direction"],
            "paper": "stage3",
            "AUC of stage 3, direction": profiles[model, "direction"][fourth - 1],
            "train accuracy": audit.over([results[s]["accuracy_member"] for s in signals[model]]),
            "test accuracy": audit.over([results[s]["accuracy_test"] for s in signals[model]]),
        }
        for model in models
    ],
    paper="onset in Fig. 11, ATM-XT, T and B on TinyImageNet",
    caption=f"Onset: first stage whose interval lies outside 0.5 ± {margin} and outside the seed floor's; {pairs} pairs a size",
)

# %% [markdown]
# ## Verdicts

# %%
early, third = [parts.index("stage1"), parts.index("stage2")], parts.index("stage3")
leads = {m: audit.least(disparity.contrast(*read[model, m], third, early) for model in models) for m in names}
report.judge(
    claims,
    stage_3_leads=leads["euclidean"],
    stage_3_leads_direction=leads["direction"],
    stage_3_is_beyond_the_margin=audit.least(disparity.strength(profiles[model, "direction"][third]) for model in models),
    stage_4_leads=audit.least(disparity.contrast(*read[model, "direction"], fourth, [*early, third]) for model in models),
)

# %% [markdown]
# **Caveat.** In `quick`, at 16 pixels, the maps of stages 3 and 4 have 2x2 and 1x1 pixels: little is left to mix, so a late stage is not quite what it is at 64.
# And its 200 samples can hardly decide on a disparity of a few hundredths in stage 3.

# %%
report.provenance(results)
