# ---
# jupyter:
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
# **The paper says** that a ResNet never shows a disparity before stage 4, whatever its depth from 18 to 152, although
# most of the added layers belong to stage 3 (TinyImageNet, augmented). The text gives no number.
#
# **It would be wrong if** at some depth an earlier stage told the halves apart about as well as stage 4. Silence is an
# equivalence: an early stage is silent if its whole interval is nearer to one half than the smallest disparity worth
# having; smaller is not nothing (table). Rules were settled on draw 0, a referee's objections in hand, and are judged
# on this one (seed 1).

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
models = ["resnet10", "resnet18"]  # architectures, shallowest first (paper: resnet18, 34, 50, 101, 152)
width = 8  # channels of stage 1 (paper: 64)
stem = "conv3"  # first layer (paper: not stated; conv3-pool gives its 4x4 map in stage 4 at 64 pixels)
pool = 600  # samples in D_all (paper: 100,000)
epochs = 12  # epochs (paper: not stated)
batch = 64  # samples a step (paper: not stated)
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0 (paper: not stated)
augment = 0  # padding of the random crop with flips, pixels; 0: none (paper: crop and flip)
pairs = 12  # pairs of networks a depth, each with its own seed and its own half (paper: one)
worth = 0.05  # smallest |AUC - 0.5|, or change of it, worth having (ours)
margin = 0.02  # of an onset: an AUC closer to 0.5 than this counts as no disparity (ours)
learnt = 0.6  # least test accuracy of a network that has learnt (ours)
seed = 101  # seed of halves, initialisations and orders
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import audit, lab, report
from leak_atlas.localization import disparity
from leak_atlas.recipe import Augment, Data, Model, ProbeStudy, Schedule, self_audit

fig, ours = {"paper": "Fig. 10", "margin": worth}, {"ours": "our question", "margin": worth}
claims = report.claims(
    report.Claim("stage_4_leads", "At every depth the disparity is in stage 4, by the paper's Euclidean distance", quantity="|AUC − 0.5| of stage 4 minus the largest of stages 1-3, smallest over depths, Euclidean", above=worth, control="two seeds on the same data", **fig),
    report.Claim("early_stages_are_silent", "Before stage 4 the disparity is smaller than that worth having at every depth, by the paper's distance", quantity="AUC − 0.5 of stages 1-3, the farthest from 0 over stages and depths, Euclidean", within=worth, control="stage 4 of the same networks", **fig),
    report.Claim("depth_changes_nothing", "The disparity of stage 4 is the same at every depth, by the paper's distance", quantity="disparity of stage 4 (as above), deepest minus shallowest, Euclidean", within=worth, control="paired: same seeds, same halves", **ours),
    report.Claim("stage_4_leads_direction", "By the direction of features, too, the disparity is in stage 4 at every depth", quantity="|AUC − 0.5| of stage 4 minus the largest of stages 1-3, smallest over depths, direction", above=worth, control="free of the length of the features", **ours),
    report.Claim("stage_3_is_not_silent_direction", "By direction stage 3 is not silent: there, unseen samples point further apart", quantity="AUC − 0.5 of stage 3, mean over depths, direction", above=margin, control="two seeds on the same data", ours="our question", margin=margin),
    regime={"member accuracy at every depth": 0.95, "test accuracy at every depth": learnt},
)  # fmt: skip
claims

# %% [markdown]
# ## The same pairs at every depth

# %%
schedule = Schedule(epochs, batch, optimizer, lr, nesterov=True, augment=Augment(augment) if augment else None)
studies = {model: ProbeStudy(Data(data, pixels), Model(model, width, stem), schedule, pool, pairs, seed, precision) for model in models}
distances = {model: study.distances() for model, study in studies.items()}
floors = {model: study.floors() for model, study in studies.items()}
signals = {model: study.wholes() for model, study in studies.items()}

# %%
results = lab.realize(distances, floors, signals, self_audit(studies[models[0]].probes))

# %% [markdown]
# ## Stage by stage, depth by depth

# %%
parts = results[distances[models[0]][0]].parts
names = {"euclidean": "Euclidean (the paper's)", "direction": "direction (1 − cosine)"}
read, profiles, controls, onsets = disparity.survey(results, distances, floors, names, parts, margin)
early, last = [parts.index(f"stage{i}") for i in (1, 2, 3)], parts.index("stage4")
shallow, deep = models[0], models[-1]
change = {m: disparity.setting_difference(read[deep, m], read[shallow, m], last) for m in names}
first = {model: results[distances[model][0]] for model in models}
third = {model: profiles[model, "euclidean"][last - 1] for model in models}
sides = {model: "closer" if e.high < 0.5 else "farther" if e.low > 0.5 else "surely on neither side" for model, e in third.items()}
report.histograms(
    {
        (model, parts[i]): (one["euclidean"][i][one["seen_b"]], one["euclidean"][i][~one["seen_b"]])
        for model, one in first.items()
        for i in (*early, last)
    },
    xlabel="normalised feature distance between M_all and M_h1",
    title=f"One pair a depth. Unseen samples are {'farther' if profiles[deep, 'euclidean'][last].value > 0.5 else 'closer'} in stage 4",
    notes={(model, parts[i]): f"AUC of {pairs} pairs {profiles[model, 'euclidean'][i].value:.2f}" for model in models for i in (*early, last)},
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
    begins="stage4",
    floor=[{"part": part, "value": e, "measure": names[m]} for m in names for part, e in zip(parts, controls[shallow, m], strict=True)],
    title="By the paper's distance the disparity begins in " + " and ".join(f"{onsets[model, 'euclidean']} ({model})" for model in models),
    ylabel="AUC, unseen against seen by M_h1",
)

# %%
fitted, accuracy = ({model: audit.mean_ci([results[s][f"accuracy_{who}"] for s in signals[model]]) for model in models} for who in ("member", "test"))
report.table(
    [
        {
            "architecture": model,
            "onset, Euclidean": onsets[model, "euclidean"],
            "onset, direction": onsets[model, "direction"],
            "paper": "stage4",
            "stage 3, Euclidean": profiles[model, "euclidean"][last - 1],
            "stage 4, Euclidean": profiles[model, "euclidean"][last],
            "stage 3, direction": profiles[model, "direction"][last - 1],
            "stage 4, direction": profiles[model, "direction"][last],
            "member accuracy": fitted[model],
            "test accuracy": accuracy[model],
        }
        for model in models
    ],
    paper="onset in Fig. 10, ResNet18 to 152 on TinyImageNet",
    caption=f"Onset: first stage whose interval lies outside 0.5 ± {margin} and the seed floor's; {pairs} pairs a depth. In stage 3, by the paper's distance, unseen samples are "
    + ", ".join(f"{sides[model]} ({model}, by {abs(third[model].value - 0.5):.3f})" for model in models),
)

# %%
leads = {m: audit.least(disparity.contrast(*read[model, m], last, early) for model in models) for m in names}
wider = [disparity.areas(*read[model, "direction"])[:, last - 1] - 0.5 for model in models]
report.judge(
    claims,
    stage_4_leads=leads["euclidean"],
    early_stages_are_silent=audit.largest(disparity.strength(profiles[model, "euclidean"][i]) for model in models for i in early),
    depth_changes_nothing=change["euclidean"],
    stage_4_leads_direction=leads["direction"],
    stage_3_is_not_silent_direction=audit.mean_ci(sum(wider) / len(wider)),
    notes={"depth_changes_nothing": f"by direction the change is {change['direction']}"},
    regime={"member accuracy at every depth": audit.least(fitted.values()), "test accuracy at every depth": audit.least(accuracy.values())},
)

# %% [markdown]
# **Caveat.** Depth is not accuracy: on few small images the deeper network need not be the better one (see the
# table). From ResNet10 to 18 every stage gets one block more, not stage 3 above all, as from 18 to 152. Silence by a
# distance is not absence: stage 3 may be a little below one half by the paper's distance and above it by direction, as
# features that are shorter on unseen samples bring them closer, and a wider angle moves them apart.
# The paper's text counts "33 blocks" in ResNet152; it has 50 (3 + 8 + 36 + 3), and 33 belong to ResNet101.

# %%
report.provenance(results)
