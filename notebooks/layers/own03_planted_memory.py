# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Can an untrained stage have a larger disparity than the stages that memorize?
#
# **Our question** is about what PPTP (Fang & Kim 2026) concludes from Fig. 1. PPTP retrains the
# stages with a disparity. Earlier stages "have learned generalized and privacy-safe features"
# (section 4). Does a large disparity show which stages memorize?
#
# **Setup.** We *plant memory* in known stages. Labels are permuted, so networks must memorize them.
# Only the stem (the first layer) and stages 1 and 2 train. Stages 3 and 4 and the head (the last
# layer) keep their random initial weights.
#
# M_all trains on a pool of samples, M_h1 on half of it, from the same initial weights. So their
# untrained stages are identical. Both networks saw the samples of this half (*seen*). Only M_all
# saw the others (*unseen*). The AUC of a stage says how well the Euclidean distance between the
# features of M_all and of M_h1 separates unseen from seen samples. The *disparity* of a stage is
# |AUC − 0.5|. In the verdicts, n is the number of pairs of networks.
#
# **Controls.**
#
# 1. *Planted stages* (decide the answer): stage 4 is compared with stages 1 and 2 of the same
#    networks. The answer is yes if stage 4 has a larger disparity than each of these two.
# 2. *Direction*: the distance 1 − cosine, which ignores the length of features.
# 3. *Two seeds* (grey): distances between two networks M_all with different initial weights and
#    orders of batches. Both saw all samples, so the true AUC is 0.5.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data)
pixels = 16  # side of the images, pixels, after area resize
model = "resnet10"  # architecture
width = 16  # channels of stage 1: with fewer, the networks memorize too little
stem = "conv3"  # first layer
pool = 200  # samples that M_all trains on: few enough to memorize
epochs = 40  # epochs
batch = 32  # samples a step
lr = 0.01  # learning rate of Adam, cosine to 0
pairs = 6  # pairs of networks, each with its own half of the pool
seed = 101  # evaluation seed: of halves, initialisations and orders
pilots = [0, 1]  # seeds on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import lab, report
from leak_atlas.recipe import Data, Model, Pair, ProbeStudy, Schedule, Threshold

frozen = "stage3"  # the first stage that stays as initialised
disparity = "disparity |AUC − 0.5|"
difference = "stage 4 minus the larger of stages 1 and 2"
claims = report.claims(
    report.Claim(
        "stage_4_shows_more",
        "Untrained stage 4 has a larger disparity than each of stages 1 and 2, where memory is "
        "planted",
        fails="At least one of stages 1 and 2, where memory is planted, has a larger disparity "
        "than untrained stage 4",
        quantity=f"{disparity} by Euclidean distance: {difference}",
        above=0.0,
        margin=0.02,
        ours="our question",
        control="the planted stages of the same networks",
        headline=True,
    ),
    report.Claim(
        "more_by_direction",
        "By direction, untrained stage 4 has a larger disparity than each of stages 1 and 2",
        quantity=f"{disparity} by direction: {difference}",
        above=0.0,
        margin=0.02,
        ours="our control",
        control="distance that ignores the length of features",
    ),
    report.Claim(
        "seen_where_it_sits",
        "By direction, stage 2, where memory is planted, separates unseen from seen samples "
        "better than chance",
        quantity="AUC of stage 2 by direction (1 − cosine)",
        above=0.5,
        margin=0.02,
        ours="our question",
        control="two seeds on the same data",
    ),
    regime={"member accuracy": 0.8},
)
claims

# %% [markdown]
# ## AUC of each stage, trained and untrained
# The disparity is how far the AUC is above or below the dotted line. The folded table shows how
# well both networks memorize the permuted labels.

# %%
schedule = Schedule(epochs, batch, "adam", lr)
study = ProbeStudy(
    Data(data, pixels, permuted=True),
    Model(model, width, stem),
    schedule,
    pool,
    pairs,
    seed,
    precision,
)


def planted(state):
    """A training from scratch of the parts before stage 3; later parts stay as initialised."""
    return state.at("init").freeze(frozen, later=True).train(schedule)


probe = [Pair(planted(pair.whole), planted(pair.half)) for pair in study.probes]
name = "planted"
comparison = lab.probe({name: probe}, {"Conf": Threshold()})

# %%
measures = ("euclidean", "direction")
lead = comparison.lead("stage4", others=["stage1", "stage2"])
has_larger = report.effect(
    lead,
    "has a significantly larger",
    "has a significantly smaller",
    "does not have a significantly larger",
)
report.profile(
    comparison.rows(measures),
    facet="measure",
    floor=comparison.floor_rows(measures),
    hatch_from=frozen,
    hatch_label="stages that did not train",
    title=f"Untrained stage 4 {has_larger} disparity than trained stages 1 and 2",
    ylabel="AUC, unseen against seen samples",
)

# %%
rows = []
for network, networks in {"M_all": comparison.whole, "M_h1": comparison.half}.items():
    row = {"network": network, "member accuracy": networks.estimate(name, "", "member accuracy")}
    row["test accuracy"] = networks.accuracy(name)
    rows.append(row)
attack = comparison.half.estimate(name, "Conf")
caption = f"Mean over {pairs} pairs. Labels are permuted, so test accuracy is that of guessing"
caption += f". The confidence attack on M_h1 has an AUC of {attack}"
report.table(rows, caption=caption, fold="Accuracy of both networks")

# %% [markdown]
# ## Verdicts
# Late stages receive what early stages compute. So a disparity of a late stage does not mean that
# its weights store members.

# %%
report.judge(
    claims,
    stage_4_shows_more=lead,
    more_by_direction=comparison.lead("stage4", "direction", others=["stage1", "stage2"]),
    seen_where_it_sits=comparison.auc(name, "stage2", "direction"),
    regime={"member accuracy": comparison.regime()["member accuracy"]},
)

# %% [markdown]
# **Limits.** Ordinary networks need not memorize in early stages. The stem trains, too, but is not
# compared. The head is not shown: its outputs follow the labels, so they separate unseen from seen
# samples, whichever stages memorize.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
