# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does a larger Active Token Mixer leak from an earlier stage?
#
# **PPTP, Fig. 11** (section 3.3). The probe of Fig. 1 on a transformer-type architecture: Active Token Mixers (ATM) of
# different depth, which share their widths. Most of the added layers belong to stage 3.
#
# **The paper says** that the privacy risks of an ATM always start at stage 3, one stage earlier than a ResNet's,
# whatever its size (TinyImageNet). The text gives no number.
#
# **It would be wrong if** stages 1 or 2 told the halves apart, or if stage 3 did so no more than they do.
#
# Rules were settled on draw 0, a referee's objections in hand, and are judged on this one (seed 1). An ATM learns slowly
# at this size: the networks of `quick` fit nine members of ten, where the paper's fit all. So the regime asks for .85, and
# what stage 3 does not show may be underfit. Figs. 5, 7 and 11 share a network here: they are not independent evidence.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
models = ["atm-xt", "atm-t"]  # architectures, smallest first (paper: atm-xt, atm-t, atm-b)
width = 8  # channels of stage 1; stages 2 to 4 have 2, 5 and 8 times as many (paper: 64)
patch = 4  # stride of the patch embedding, pixels: maps of 4, 2, 1, 1 pixels a side (paper: not stated; 4 as published, with 16, 8, 4, 2 at 64)
init = "xavier"  # initial weights: own (published, normal with .02, which a narrow network hardly leaves) or xavier (paper: not stated)
pool = 512  # samples in D_all (paper: 100,000)
epochs = 20  # epochs (paper: not stated)
batch = 128  # samples a step (paper: not stated)
lr = 0.003  # learning rate of Adam without weight decay, cosine to 0 (paper: neither optimizer nor rate stated)
augment = 0  # padding of the random crop with flips, pixels; 0: none (paper: crop and flip)
pairs = 6  # pairs of networks a size, each with its own seed and its own half (paper: one)
worth = 0.05  # smallest |AUC - 0.5| worth having; here it is also about all that stage 4 shows (ours)
silent = 0.04  # a stage whose |AUC - 0.5| is smaller than this counts as silent (ours)
margin = 0.02  # of an onset: an AUC closer to 0.5 than this counts as no disparity (ours)
fitted = 0.85  # least member accuracy of a network that has learnt its members (ours)
learnt = 0.6  # least test accuracy of a network that has learnt (ours)
seed = 101  # seed of halves, initialisations and orders
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import audit, lab, report
from leak_atlas.localization import disparity
from leak_atlas.recipe import Augment, Data, Model, ProbeStudy, Schedule, self_audit

fig, ours = {"paper": "Fig. 11", "margin": worth}, {"ours": "our question", "margin": worth}
floor, paired, other = (
    {"control": each} for each in ("two seeds on the same data", "paired: same seeds, same halves", "free of the features' length")
)
mean, least = "mean over sizes", "smallest over sizes, Euclidean"
gap, early_over = "AUC of stage 3 minus", "AUC − 0.5 of stages 1 and 2, the farthest from 0 over sizes, Euclidean"
claims = report.claims(
    report.Claim("early_stages_are_silent", "At no size do stages 1 and 2 show a disparity", early_over, within=silent, **floor, **fig),
    report.Claim("stage_3_shows_it", "Stage 3 shows a disparity", f"AUC − 0.5 of stage 3, {mean}, Euclidean", above=0.0, **floor, **fig),
    report.Claim("it_starts_there", "It shows more than stages 1 and 2 do", f"{gap} the mean of stages 1 and 2, {mean}, Euclidean", above=0.0, **paired, **fig),
    report.Claim("stage_3_direction", "So it does by direction", f"AUC − 0.5 of stage 3, {mean}, direction", above=0.0, **other, **ours),
    report.Claim("stage_3_is_worth", "At every size the disparity of stage 3 is one worth having", f"AUC − 0.5 of stage 3, {least}", above=worth, **floor, **ours),
    report.Claim("stage_4_leads", "Stage 4 shows more than stage 3, as in a ResNet", f"AUC of stage 4 minus that of stage 3, {mean}, Euclidean", above=0.0, **paired, **ours),
    regime={"member accuracy at every size": fitted, "test accuracy at every size": learnt},
)  # fmt: skip
claims

# %% [markdown]
# ## The same pairs at every size

# %%
schedule = Schedule(epochs, batch, "adam", lr, weight_decay=0.0, augment=Augment(augment) if augment else None)
networks = {model: Model(model, width, patch=patch, init=init) for model in models}
studies = {name: ProbeStudy(Data(data, pixels), net, schedule, pool, pairs, seed, precision) for name, net in networks.items()}
distances = {name: study.distances() for name, study in studies.items()}
floors = {name: study.floors() for name, study in studies.items()}
signals = {name: study.wholes() for name, study in studies.items()}
first, *_, last = studies

# %%
results = lab.realize(distances, floors, signals, self_audit(studies[first].probes))

# %% [markdown]
# ## Stage by stage
# The grey steps, two seeds on the same data, are those of the first network.

# %%
parts = results[distances[first][0]].parts
names = {"euclidean": "Euclidean (the paper's)", "direction": "direction (1 − cosine)"}
read, profiles, controls, onsets = disparity.survey(results, distances, floors, names, parts, margin)
early, third, fourth = [parts.index("stage1"), parts.index("stage2")], parts.index("stage3"), parts.index("stage4")
one = {name: results[distances[name][0]] for name in studies}
report.histograms(
    {(n, parts[i]): (of["euclidean"][i][of["seen_b"]], of["euclidean"][i][~of["seen_b"]]) for n, of in one.items() for i in (*early, third, fourth)},
    xlabel="normalised feature distance between M_all and M_h1",
    title=f"One pair a size. Over all pairs stage 3 is at most {max(abs(profiles[n, 'euclidean'][third].value - 0.5) for n in studies):.3f} from one half",
    notes={(n, parts[i]): f"AUC of {pairs} pairs {profiles[n, 'euclidean'][i].value:.2f}" for n in studies for i in (*early, third, fourth)},
)

# %%
told = {i: [profiles[name, "euclidean"][i].value for name in studies] for i in (third, fourth)}
said = {i: " and ".join(f"{value:.2f}" for value in values) for i, values in told.items()}
report.profile(
    [
        {"part": p, "value": e, "architecture": name, "measure": names[m]}
        for (name, m), found in profiles.items()
        for p, e in zip(parts, found, strict=True)
    ],
    hue="architecture",
    facet="measure",
    begins="stage3",
    floor=[{"part": p, "value": e, "measure": names[m]} for m in names for p, e in zip(parts, controls[first, m], strict=True)],
    title=f"By the paper's distance the AUC of stage 3 is {said[third]}, that of stage 4 {said[fourth]}",
    ylabel="AUC, unseen against seen by M_h1",
)

# %%
members, tests = ({name: [float(results[s][f"accuracy_{who}"]) for s in signals[name]] for name in studies} for who in ("member", "test"))
report.table(
    [
        {
            "architecture": name,
            "onset, Euclidean": onsets[name, "euclidean"],
            "onset, direction": onsets[name, "direction"],
            "paper, onset": "stage3",
            "stage 3, Euclidean": profiles[name, "euclidean"][third],
            "stage 4, Euclidean": profiles[name, "euclidean"][fourth],
            "stage 3, direction": profiles[name, "direction"][third],
            "member accuracy": audit.mean_ci(members[name]),
            "test accuracy": audit.mean_ci(tests[name]),
        }
        for name in studies
    ],
    paper="onset in Fig. 11, ATM-XT, T and B on TinyImageNet",
    caption=f"Onset: first stage whose interval lies outside 0.5 ± {margin} and outside the seed floor's; {pairs} pairs a size",
)

# %% [markdown]
# ## Verdicts


# %%
away = {m: sum(disparity.areas(*read[n, m]) - 0.5 for n in studies) / len(studies) for m in names}  # mean network of each pair of seeds
by, before = away["euclidean"], away["euclidean"][:, early].mean(axis=1)
report.judge(
    claims,
    early_stages_are_silent=audit.largest(disparity.strength(profiles[name, "euclidean"][i]) for name in studies for i in early),
    stage_3_shows_it=audit.mean_ci(by[:, third]),
    it_starts_there=audit.mean_ci(by[:, third] - before),
    stage_3_direction=audit.mean_ci(away["direction"][:, third]),
    stage_3_is_worth=audit.least(audit.mean_ci(disparity.areas(*read[name, "euclidean"])[:, third] - 0.5) for name in studies),
    stage_4_leads=audit.mean_ci(by[:, fourth] - by[:, third]),
    regime={f"{who} accuracy at every size": audit.least(map(audit.mean_ci, of.values())) for who, of in (("member", members), ("test", tests))},
)

# %% [markdown]
# **Caveat.** In `quick`, at 16 pixels, the patches leave maps of 4, 2, 1 and 1 pixels a side: where one pixel is
# left, nothing is left to mix. The networks do not fit as well as the ResNets' of Fig. 10 and so have less to tell.

# %%
report.provenance(results)
