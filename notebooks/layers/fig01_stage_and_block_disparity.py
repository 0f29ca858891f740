# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # In which stage does the disparity begin?
#
# **The paper.** Fang & Kim (2026), Fig. 1: "the disparity abruptly starts in stage 4" (section
# 3.3), and grows there from block to block.
#
# **Setup.** Two networks start from the same weights: M_all trains on a pool of samples, M_h1 on
# half of it. For each sample the paper measures the distance between their features. The
# *disparity* of a stage is |AUC − 0.5|: the AUC says how well this distance separates samples that
# only M_all saw from samples that both saw.
#
# **Controls.** Control 1 decides.
#
# 1. *Direction*: the same disparity by 1 − cosine. Features of unseen samples also get shorter,
#    which hides a change of direction from the paper's distance.
# 2. *Two seeds on the same data*: the disparity that chance alone gives.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
model = "resnet18"  # architecture (paper: resnet152)
width = 8  # channels of stage 1 (64 by the architecture)
stem = "conv3"  # first layer (not stated; conv3-pool gives the paper's 4x4 map at 64 pixels)
pool = 600  # samples that M_all trains on (paper: 100,000)
epochs = 12  # epochs (paper: not stated)
batch = 64  # samples a step (paper: not stated)
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0 (paper: not stated)
augment = 0  # padding of the random crop with flips, pixels; 0: none (paper: crop and flip)
pairs = 10  # pairs of networks, each with its own half of the pool (paper: three runs)
learnt = 0.6  # least test accuracy of a network that has learnt (ours)
seed = 101  # evaluation seed: of halves, initialisations and orders
pilots = [0, 1]  # seeds on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import lab, report
from leak_atlas.recipe import Augment, Data, Model, ProbeStudy, Schedule

quote = "the disparity abruptly starts in stage 4"
claims = report.claims(
    *report.onset_claims("stage4", "", "Fig. 1", quote, "3.3", headline=True),
    report.Claim(
        "grows_inside",
        "Inside stage 4 the disparity grows from the first block to the last",
        quantity="|AUC − 0.5| of stage 4, Euclidean distance, last block minus first block",
        above=0.0,
        margin=0.02,
        paper="Fig. 1",
        quote="gradually increasing disparity is observed within Stage 4",
        section="Fig. 1",
        control="paired over pairs of networks",
    ),
    report.Claim(
        "stage_3_by_direction",
        "By direction, stage 3 already shows a disparity",
        quantity="AUC of 1 − cosine, stage 3",
        above=0.5,
        margin=0.02,
        ours="our control",
        control="does not depend on the features' length; two seeds on the same data",
        headline=True,
    ),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)
claims

# %%
study = ProbeStudy(
    Data(data, pixels),
    Model(model, width, stem),
    Schedule(
        epochs, batch, optimizer, lr, nesterov=True, augment=Augment(augment) if augment else None
    ),
    pool,
    pairs,
    seed,
    precision,
)
comparison = lab.probe({model: study.probes}, parts="blocks")

# %% [markdown]
# ## The paper's own comparison: one pair (Fig. 1)
# The paper's Euclidean distance. Numbers above the panels are over all pairs.

# %%
blocks = [part for part in comparison.parts if part.startswith("stage4")]
shown = [*comparison.before("stage4"), *blocks]
names = {}
for part in shown:
    stage = part.split(".")[0].replace("stage", "stage ")
    block = f", block {blocks.index(part) + 1}" if part in blocks else ""
    names[part] = f"{stage}{block}"
panels = comparison.histograms(shown)
notes = {names[part]: f"AUC {comparison.auc(model, part).value:.2f}" for part in shown}
last = comparison.stages[-1]
shows = report.effect(
    comparison.lead(last),
    "shows significantly more",
    "shows significantly less",
    "does not show significantly more",
)
report.histograms(
    {names[part]: panel for part, panel in panels.items()},
    notes=notes,
    title=f"Stage 4 {shows} disparity than stages 1 to 3",
    xlabel="Euclidean distance between the features of M_all and M_h1, pair 1",
)

# %% [markdown]
# ## All pairs, by distance and by direction
# Bands: two seeds on the same data. Hatched: where the paper has the disparity.

# %%
third = comparison.stages[2]
by_direction = comparison.auc(model, third, "direction")
measures = ("euclidean", "direction")
already = "already shows" if by_direction.low > 0.5 else "does not significantly show"
report.profile(
    comparison.rows(measures, shown),
    facet="measure",
    floor=comparison.floor_rows(measures, shown),
    begins="stage4",
    title=f"By direction stage 3 {already} a disparity",
    ylabel="AUC of the distance",
)

# %% [markdown]
# ## Verdicts

# %%
grown = comparison.lead(blocks[-1], others=blocks[:1])
report.judge(
    claims,
    **comparison.onset(last),
    grows_inside=grown,
    stage_3_by_direction=by_direction,
    regime=comparison.regime(),
)

# %% [markdown]
# **Limits.** ResNet18 has two blocks in stage 4, the paper's ResNet152 three. The disparity says
# where membership shows, not which weights hold it: see `own03`, where memory is planted in
# stages 1 and 2. `fig10` shares these networks.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
