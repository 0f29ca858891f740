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
# # Does a deeper ResNet leak from an earlier stage?
#
# **PPTP, Fig. 10** (section 3.3). The probe of Fig. 1 on residual networks of different depth.
#
# **The paper says** that a ResNet never shows a disparity before stage 4, whatever its depth from 18 to 152, although most of the added layers belong to
# stage 3 (TinyImageNet, augmented).
#
# **It would be wrong if** at some depth an earlier stage told the halves apart as well as stage 4.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (python -m lib.data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
models = ["resnet10", "resnet18"]  # architectures (paper: resnet18, 34, 50, 101, 152)
width = 8  # channels of stage 1 (paper: 64)
stem = "conv3"  # first layer (paper: not stated; conv3-pool gives its 4x4 map in stage 4 at 64 pixels)
pool = 600  # samples in D_all (paper: 100,000)
epochs = 12  # epochs (paper: not stated)
batch = 64  # samples a step (paper: not stated)
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0 (paper: not stated)
augment = 0  # padding of the random crop with flips, pixels; 0: none (paper: crop and flip)
pairs = 12  # pairs of networks a depth, each with its own seed and its own half (paper: one)
margin = 0.02  # an AUC closer to 0.5 than this counts as no disparity
seed = 1  # seed of halves, initialisations and orders
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from lib import audit, lab, report
from lib.localization import disparity
from lib.recipe import Augment, Data, Halves, Model, Schedule, Setup, Signals, seed_floors, self_audit

claims = report.claims(
    report.Claim(
        "stage_4_leads_at_every_depth",
        "The disparity is in stage 4 at every depth",
        quantity="|AUC − 0.5| of stage 4 minus the largest of stages 1-3, smallest over depths, direction",
        above=0.0,
        paper="Fig. 10",
        control="the same contrast over pairs of models",
    ),
    report.Claim(
        "stage_4_leads_at_every_depth_euclidean",
        "By the paper's Euclidean distance, the disparity is in stage 4 at every depth",
        quantity="|AUC − 0.5| of stage 4 minus the largest of stages 1-3, smallest over depths, Euclidean",
        above=0.0,
        paper="Fig. 10",
        control="two seeds on the same data",
    ),
    report.Claim(
        "early_stages_are_silent",
        "No ResNet shows a disparity before stage 4",
        quantity="largest |AUC − 0.5| of stages 1-3 over depths, direction",
        below=margin,
        paper="Fig. 10",
        control="two seeds on the same data",
    ),
)
claims

# %% [markdown]
# ## The same pairs at every depth

# %%
schedule = Schedule(epochs, batch, optimizer, lr, nesterov=True, augment=Augment(augment) if augment else None)
probes = {
    model: Setup(Data(data, pixels), Halves(pool, seed=seed), Model(model, width, stem), schedule, pairs, seed, precision).pairs() for model in models
}
distances = {model: [pair.distance() for pair in probe] for model, probe in probes.items()}
floors = {model: seed_floors(probe) for model, probe in probes.items()}
signals = {model: [Signals(pair.whole) for pair in probe] for model, probe in probes.items()}

# %%
results = lab.realize(distances, floors, signals, self_audit(probes[models[0]]))

# %% [markdown]
# ## Stage by stage, depth by depth

# %%
parts = results[distances[models[0]][0]].parts
read, profiles, controls, onsets = disparity.survey(results, distances, floors, ("euclidean", "direction"), parts, margin)
shown = [i for i, part in enumerate(parts) if part.startswith("stage")]
firsts = {model: results[distances[model][0]] for model in models}
report.histograms(
    {(model, parts[i]): (one["direction"][i][one["seen_b"]], one["direction"][i][~one["seen_b"]]) for model, one in firsts.items() for i in shown},
    xlabel="direction of features: 1 − cosine between M_all and M_h1",
    title=f"One pair of networks of each depth, width {width}, {data}",
    notes={(model, parts[i]): f"AUC {profiles[model, 'direction'][i].value:.2f}" for model in models for i in shown},
)

# %%
report.profile(
    [
        {"part": part, "value": estimate, "architecture": model, "measure": measure}
        for (model, measure), profile in profiles.items()
        for part, estimate in zip(parts, profile, strict=True)
    ],
    hue="architecture",
    facet="measure",
    title="Onset by direction: " + ", ".join(f"{model} {onsets[model, 'direction']}" for model in models),
    ylabel="AUC, unseen against seen by M_h1",
)

# %%
report.table(
    [
        {
            "architecture": model,
            "onset, Euclidean": onsets[model, "euclidean"],
            "onset, direction": onsets[model, "direction"],
            "paper": "stage4",
            "AUC of stage 4, Euclidean": profiles[model, "euclidean"][parts.index("stage4")],
            "AUC of stage 4, direction": profiles[model, "direction"][parts.index("stage4")],
            "test accuracy": audit.over([results[s]["accuracy_test"] for s in signals[model]]),
        }
        for model in models
    ],
    paper="onset in Fig. 10, ResNet18 to 152 on TinyImageNet",
    caption=f"Onset: first stage whose interval lies outside 0.5 ± {margin} and outside the seed floor's; {pairs} pairs a depth",
)

# %% [markdown]
# ## Verdicts

# %%
early, last = [parts.index(f"stage{i}") for i in (1, 2, 3)], parts.index("stage4")


def leads(measure):
    return audit.least(disparity.contrast(*read[model, measure], last, early) for model in models)


report.judge(
    claims,
    stage_4_leads_at_every_depth=leads("direction"),
    stage_4_leads_at_every_depth_euclidean=leads("euclidean"),
    early_stages_are_silent=audit.largest(disparity.strength(profiles[model, "direction"][i]) for model in models for i in early),
)

# %% [markdown]
# **Caveat.** The paper's text counts "33 blocks" in ResNet152; it has 50 (3 + 8 + 36 + 3), and 33 belong to ResNet101.

# %%
report.provenance(results)
