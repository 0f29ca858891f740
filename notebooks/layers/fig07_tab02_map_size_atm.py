# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does a larger feature map in an Active Token Mixer leak more?
#
# **PPTP, Fig. 7 and Tab. 2** (section 3.3). The probe of Fig. 1 on the smallest Active Token Mixer (ATM-XT), with a
# larger feature map. Figs. 5 and 7 carry the same caption (channel sizes); by the paper's text, Fig. 7 is this one.
# Tab. 2 does not say how the map grows: we halve the stride of the patch embedding, for four times the pixels.
#
# **The paper says** that the disparity still begins at stage 3, while test accuracy rises from 36.28 to 47.29 % and
# training accuracy stays at 99.97 and 99.98 % (TinyImageNet, augmented): the larger map does not significantly
# exacerbate the disparity.
#
# **It would be wrong if** stages 1 or 2 told the halves apart, or stage 3 did so no more than they do, or if the
# larger map generalized no better.
#
# Rules were settled on draw 0, a referee's objections in hand, and are judged on this one (seed 1). An ATM learns slowly
# at this size: the networks of `quick` fit nine members of ten, where the paper's fit all. So the regime asks for .85, and
# what stage 3 does not show may be underfit. Figs. 5, 7 and 11 share a network here: they are not independent evidence.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
model = "atm-xt"  # architecture (paper: atm-xt)
width = 8  # channels of stage 1; stages 2 to 4 have 2, 5 and 8 times as many (paper: 64)
patches = [4, 2]  # stride of the patch embedding, pixels: the usual map, and four times its pixels (paper: 1x and 4x; how is not stated)
init = "xavier"  # initial weights: own (published, normal with .02, which a narrow network hardly leaves) or xavier (paper: not stated)
pool = 512  # samples in D_all (paper: 100,000)
epochs = 20  # epochs (paper: not stated)
batch = 128  # samples a step (paper: not stated)
lr = 0.003  # learning rate of Adam without weight decay, cosine to 0 (paper: neither optimizer nor rate stated)
augment = 0  # padding of the random crop with flips, pixels; 0: none (paper: crop and flip)
pairs = 6  # pairs of networks a map, each with its own seed and its own half (paper: one)
worth = 0.05  # smallest |AUC - 0.5| worth having; here it is also about all that stage 4 shows (ours)
silent = 0.04  # a stage whose |AUC - 0.5| is smaller than this counts as silent (ours)
margin = 0.02  # of an onset: an AUC closer to 0.5 than this counts as no disparity (ours)
points = 0.05  # smallest gain of test accuracy worth having, half of the paper's (ours)
fitted = 0.85  # least member accuracy of a network that has learnt its members (ours)
learnt = 0.6  # least test accuracy of a network that has learnt (ours)
seed = 101  # seed of halves, initialisations and orders
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import audit, lab, report
from leak_atlas.localization import disparity
from leak_atlas.recipe import Augment, Data, Model, ProbeStudy, Schedule, self_audit

fig, ours = {"paper": "Fig. 7", "margin": worth}, {"ours": "our question", "margin": worth}
floor, paired, other = (
    {"control": each} for each in ("two seeds on the same data", "paired: same seeds, same halves", "free of the features' length")
)
mean, least = "mean over maps", "smallest over maps, Euclidean"
gap, early_over = "AUC of stage 3 minus", "AUC − 0.5 of stages 1 and 2, the farthest from 0 over maps, Euclidean"
claims = report.claims(
    report.Claim("early_stages_are_silent", "With no map do stages 1 and 2 show a disparity", early_over, within=silent, **floor, **fig),
    report.Claim("stage_3_shows_it", "Stage 3 shows a disparity", f"AUC − 0.5 of stage 3, {mean}, Euclidean", above=0.0, **floor, **fig),
    report.Claim("it_starts_there", "It shows more than stages 1 and 2 do", f"{gap} the mean of stages 1 and 2, {mean}, Euclidean", above=0.0, **paired, **fig),
    report.Claim("stage_3_direction", "So it does by direction", f"AUC − 0.5 of stage 3, {mean}, direction", above=0.0, **other, **ours),
    report.Claim("stage_3_is_worth", "With every map the disparity of stage 3 is one worth having", f"AUC − 0.5 of stage 3, {least}", above=worth, **floor, **ours),
    report.Claim("stage_4_leads", "Stage 4 shows more than stage 3, as in a ResNet", f"AUC of stage 4 minus that of stage 3, {mean}, Euclidean", above=0.0, **paired, **ours),
    report.Claim(
        "larger_map_generalizes", "A map of four times the pixels generalizes better",
        "test accuracy, largest map minus smallest", above=0.0, paper="Tab. 2", margin=points, **paired,
    ),
    report.Claim(
        "larger_map_fits_better", "The larger map learns its members better, too, where the paper's networks fit alike",
        "member accuracy, largest map minus smallest", above=0.02, paper="Tab. 2, against it", margin=points, **paired,
    ),
    regime={"member accuracy with every map": fitted, "test accuracy with every map": learnt},
)  # fmt: skip
claims

# %% [markdown]
# ## One network, two sizes of all its maps
# The stride changes the maps alone: the weights are as many, and start from the same values.

# %%
schedule = Schedule(epochs, batch, "adam", lr, weight_decay=0.0, augment=Augment(augment) if augment else None)
networks = {f"{pixels // p}x{pixels // p} in stage 1": Model(model, width, patch=p, init=init) for p in patches}
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
    title=f"One pair a map. Over all pairs stage 3 is at most {max(abs(profiles[n, 'euclidean'][third].value - 0.5) for n in studies):.3f} from one half",
    notes={(n, parts[i]): f"AUC of {pairs} pairs {profiles[n, 'euclidean'][i].value:.2f}" for n in studies for i in (*early, third, fourth)},
)

# %%
told = {i: [profiles[name, "euclidean"][i].value for name in studies] for i in (third, fourth)}
said = {i: " and ".join(f"{value:.2f}" for value in values) for i, values in told.items()}
report.profile(
    [{"part": p, "value": e, "map": name, "measure": names[m]} for (name, m), found in profiles.items() for p, e in zip(parts, found, strict=True)],
    hue="map",
    facet="measure",
    begins="stage3",
    floor=[{"part": p, "value": e, "measure": names[m]} for m in names for p, e in zip(parts, controls[first, m], strict=True)],
    title=f"By the paper's distance the AUC of stage 3 is {said[third]}, that of stage 4 {said[fourth]}",
    ylabel="AUC, unseen against seen by M_h1",
)

# %%
members, tests = ({name: [float(results[s][f"accuracy_{who}"]) for s in signals[name]] for name in studies} for who in ("member", "test"))
PAPER = {0: (0.3628, 0.9997), 1: (0.4729, 0.9998)}  # Tab. 2, 1x and 4x: test and training accuracy
report.table(
    [
        {
            "map": name,
            "onset, Euclidean": onsets[name, "euclidean"],
            "onset, direction": onsets[name, "direction"],
            "paper, onset": "stage3",
            "stage 3, Euclidean": profiles[name, "euclidean"][third],
            "stage 4, Euclidean": profiles[name, "euclidean"][fourth],
            "stage 3, direction": profiles[name, "direction"][third],
            "member accuracy": audit.mean_ci(members[name]),
            "test accuracy": audit.mean_ci(tests[name]),
            "paper, train": PAPER.get(i, (None, None))[1],
            "paper, test": PAPER.get(i, (None, None))[0],
        }
        for i, name in enumerate(studies)
    ],
    paper="accuracies of Tab. 2 and onset of Fig. 7, ATM-XT on TinyImageNet",
    caption=f"Onset: first stage whose interval lies outside 0.5 ± {margin} and outside the seed floor's; {pairs} pairs a map",
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
    larger_map_generalizes=audit.paired_difference(tests[last], tests[first]),
    larger_map_fits_better=audit.paired_difference(members[last], members[first]),
    regime={f"{who} accuracy with every map": audit.least(map(audit.mean_ci, of.values())) for who, of in (("member", members), ("test", tests))},
)

# %% [markdown]
# **Caveat.** In `quick`, at 16 pixels, the maps have 4, 2, 1, 1 and 8, 4, 2, 1 pixels a side: where one pixel is left,
# nothing is left to mix. Four times the pixels are also about four times the operations, so accuracy is not compared
# at equal cost; and the larger map fits its members better (see the table), which by itself lets it tell more.

# %%
report.provenance(results)
