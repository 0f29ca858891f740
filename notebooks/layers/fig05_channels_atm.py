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
# # Does the width of an Active Token Mixer's last stages move the disparity?
#
# **PPTP, Fig. 5** (section 3.3). The probe of Fig. 1 on the smallest Active Token Mixer (ATM-XT), with stages 3 and 4 made narrower or wider; stages 1 and 2 stay.
# Figs. 5 and 7 carry the same caption. By the paper's text Fig. 7 is the study of the feature map, which leaves the channels to Fig. 5, of which it says no more.
#
# **The paper says** that channel size does not change where the risk occurs, and that in an ATM it always starts at stage 3 (TinyImageNet, augmented). Its text
# prints neither widths nor accuracies for this figure.
#
# **It would be wrong if** at some width stage 3 told the halves apart no better than stages 1 and 2, or if its AUC stayed within the margin of one half.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (python -m lib.data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
model = "atm-xt"  # architecture (paper: atm-xt)
width = 8  # channels of stage 1; stages 2 to 4 have 2, 5 and 8 times as many (paper: 64)
patch = 2  # stride of the patch embedding, pixels: maps of 8, 4, 2, 1 pixels a side (paper: not stated; 4 as published, with 16, 8, 4, 2 at 64)
channels = [[20, 32], [40, 64]]  # channels of stages 3 and 4, narrowest first (paper: not in its text; as published: 5 and 8 times the width)
pool = 200  # samples in D_all (paper: 100,000)
epochs = 16  # epochs (paper: not stated)
batch = 32  # samples a step (paper: not stated)
lr = 0.005  # learning rate of Adam without weight decay, cosine to 0 (paper: neither optimizer nor rate stated)
augment = 0  # padding of the random crop with flips, pixels; 0: none (paper: crop and flip)
pairs = 8  # pairs of networks a width, each with its own seed and its own half (paper: one)
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
        "Whatever the width, the disparity begins at stage 3",
        quantity="|AUC − 0.5| of stage 3 minus the largest of stages 1-2, smallest over widths, Euclidean",
        above=0.0,
        paper="Fig. 5",
        control="two seeds on the same data",
    ),
    report.Claim(
        "stage_3_leads_direction",
        "By direction, too, it begins at stage 3",
        quantity="|AUC − 0.5| of stage 3 minus the largest of stages 1-2, smallest over widths, direction",
        above=0.0,
        paper="Fig. 5 (our reading)",
        control="free of the length of the features",
    ),
    report.Claim(
        "stage_3_is_beyond_the_margin",
        "Stage 3 shows a disparity at every width",
        quantity="|AUC − 0.5| of stage 3, smallest over widths, direction",
        above=margin,
        paper="Fig. 5",
        control="two seeds on the same data",
    ),
    report.Claim(
        "wider_tells_more",
        "As in a ResNet (Fig. 6), a wider last stage shows more disparity",
        quantity="|AUC − 0.5| of stage 4, widest minus narrowest, Euclidean",
        above=0.0,
        paper="section 3.3, shown for ResNet18 alone (Fig. 6)",
        control="paired: same seeds, same halves",
    ),
)
claims

# %% [markdown]
# ## One network, several widths of its last two stages

# %%
schedule = Schedule(epochs, batch, "adam", lr, weight_decay=0.0, augment=Augment(augment) if augment else None)
probes = {
    f"{third}, {fourth}": Setup(
        Data(data, pixels),
        Halves(pool, seed=seed),
        Model(
            model,
            width,
            patch=patch,
            stage3_channels=third if third != 5 * width else None,
            stage4_channels=fourth if fourth != 8 * width else None,
        ),
        schedule,
        pairs,
        seed,
        precision,
    ).pairs()
    for third, fourth in channels
}
widths = list(probes)
distances = {wide: [pair.distance() for pair in probe] for wide, probe in probes.items()}
floors = {wide: seed_floors(probe) for wide, probe in probes.items()}
signals = {wide: [Signals(pair.whole) for pair in probe] for wide, probe in probes.items()}

# %%
results = lab.realize(distances, floors, signals, self_audit(probes[widths[0]]))

# %% [markdown]
# ## Stage by stage, width by width
# The grey band, two seeds on the same data, is that of the narrowest network.

# %%
parts = results[distances[widths[0]][0]].parts
names = {"euclidean": "Euclidean (the paper's)", "direction": "direction (1 − cosine)"}
read, profiles, controls, onsets = disparity.survey(results, distances, floors, names, parts, margin)
shown = [i for i, part in enumerate(parts) if part.startswith("stage")]
firsts = {wide: results[distances[wide][0]] for wide in widths}
report.histograms(
    {(name, parts[i]): (one["euclidean"][i][one["seen_b"]], one["euclidean"][i][~one["seen_b"]]) for name, one in firsts.items() for i in shown},
    xlabel="normalised feature distance between M_all and M_h1",
    title="One pair of each width; over all pairs the AUC of stage 3 is "
    + " and ".join(f"{profiles[wide, 'euclidean'][parts.index('stage3')].value:.2f} ({wide})" for wide in widths),
    notes={(wide, parts[i]): f"AUC {profiles[wide, 'euclidean'][i].value:.2f}" for wide in widths for i in shown},
)

# %%
report.profile(
    [
        {"part": part, "value": estimate, "channels of stages 3 and 4": wide, "measure": names[m]}
        for (wide, m), profile in profiles.items()
        for part, estimate in zip(parts, profile, strict=True)
    ],
    hue="channels of stages 3 and 4",
    facet="measure",
    floor=[
        {"part": part, "value": estimate, "measure": names[m]} for m in names for part, estimate in zip(parts, controls[widths[0], m], strict=True)
    ],
    title="Onset by the paper's distance: " + ", ".join(f"{onsets[wide, 'euclidean']} ({wide})" for wide in widths),
    ylabel="AUC, unseen against seen by M_h1",
)

# %%
report.table(
    [
        {
            "channels of stages 3, 4": wide,
            "onset, Euclidean": onsets[wide, "euclidean"],
            "onset, direction": onsets[wide, "direction"],
            "paper": "stage3",
            "AUC of stage 3, direction": profiles[wide, "direction"][parts.index("stage3")],
            "train accuracy": audit.over([results[s]["accuracy_member"] for s in signals[wide]]),
            "test accuracy": audit.over([results[s]["accuracy_test"] for s in signals[wide]]),
        }
        for wide in widths
    ],
    paper="onset in Fig. 5, ATM-XT on TinyImageNet",
    caption=f"Onset: first stage whose interval lies outside 0.5 ± {margin} and outside the seed floor's; {pairs} pairs a width",
)

# %% [markdown]
# ## Verdicts

# %%
early, third = [parts.index("stage1"), parts.index("stage2")], parts.index("stage3")
leads = {m: audit.least(disparity.contrast(*read[wide, m], third, early) for wide in widths) for m in names}
report.judge(
    claims,
    stage_3_leads=leads["euclidean"],
    stage_3_leads_direction=leads["direction"],
    stage_3_is_beyond_the_margin=audit.least(disparity.strength(profiles[wide, "direction"][third]) for wide in widths),
    wider_tells_more=disparity.versus(read[widths[-1], "euclidean"], read[widths[0], "euclidean"], parts.index("stage4")),
)

# %% [markdown]
# **Caveat.** Width and number of weights change together, and so may the fit (see the training accuracies): architectures are compared, not channels alone.
# With the 200 samples of `quick`, a disparity of a few hundredths in stage 3 can hardly be shown or ruled out.

# %%
report.provenance(results)
