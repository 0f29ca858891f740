# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Do the most vulnerable weights lie in the risky stages?
#
# **Question.** The questions are ours. PPTP *rewinds* late stages of a network (sets their weights
# back to their initial values) and calls these stages risky. CWRF rewinds single weights and calls
# them vulnerable. Do vulnerable weights lie in risky stages? Second: is a network more accurate if
# CWRF rewinds weights in the risky stages than in the others?
#
# **Setup.** The *vulnerability score* of a weight is |gradient × weight|, summed over updates that
# fit members and forget non-members. The risky stages are stages 3 and 4 and the head (the last
# layer). CWRF rewinds and freezes 2 % of all weights: the most vulnerable ones of the risky stages,
# or of the others. RelaxLoss, which keeps the loss near a target, retrains the other weights.
#
# **Controls.**
#
# 1. *Stage size* (decides the first answer): the share of all weights that lie in the risky stages.
#    Random weights have this share.
# 2. *Magnitude*: the share of the largest weights that lie there.
# 3. *Nothing rewound*: RelaxLoss retrains all weights, for the same number of epochs.
# 4. *Early stopping* of ordinary training, *at matched AUC* (decides the second answer): from each
#    test accuracy we subtract that of networks stopped early at the same AUC of LiRA. The claims
#    compare these differences.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data)
pixels = 16  # side of the images, pixels, after area resize
model = "resnet10"  # architecture
width = 8  # channels of stage 1 (64 by the architecture)
pool = 600  # samples from which each network draws half
dev = 300  # samples outside the pool, not used here; keeps the split of `defences`
reference = 300  # samples outside the pool, for the score
test = 600  # test samples
epochs = 12  # epochs of ordinary training
retrain_epochs = 10  # epochs after rewinding
stops = [1, 2, 3, 4, 5, 6, 8, 10]  # epochs at which ordinary training is stopped early
batch = 64  # samples a step
lr = 0.005  # learning rate of Adam, cosine to 0, at the start of each training
relax = [0.6]  # RelaxLoss: target losses, nats
risky_from = "stage3"  # PPTP: first risky stage, as in `defences`
balance = 0.5  # CWRF: lambda of the score
score_steps = 30  # CWRF: updates of the score
tops = [0.001, 0.01, 0.05]  # shares of the weights that count as most vulnerable
judged = 0.01  # the share that decides; one of `tops`
share = 0.02  # share of all weights that is rewound, in the risky or in the other stages
shadows = 10  # networks; the shadow models of one are the others, without its complement
learnt = 0.6  # least test accuracy of a network that has learnt
seed = 101  # evaluation seed: of design, initialisation and order
pilots = [0]  # seed on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import audit, lab, recipe, report
from leak_atlas.engine.selection import highest
from leak_atlas.localization.score_maps import maps, shares

in_risky = f"share that lies in {risky_from} or later"
over_strengths = ", mean over strengths" if len(relax) > 1 else ""
matched = f"test accuracy at matched AUC of LiRA{over_strengths}"
claims = report.claims(
    report.Claim(
        "in_risky_stages",
        f"The {judged:.0%} most vulnerable weights lie in the risky stages more often than random "
        "weights",
        quantity=f"{in_risky}: {judged:.0%} most vulnerable weights minus all weights",
        above=0.0,
        margin=0.05,
        ours=True,
        control="the size of the stages; paired over networks",
        headline=True,
        fails=f"The {judged:.0%} most vulnerable weights lie in the risky stages less often than "
        "random weights",
    ),
    report.Claim(
        "beyond_magnitude",
        f"The {judged:.0%} most vulnerable weights lie in the risky stages more often than the "
        f"{judged:.0%} largest weights",
        quantity=f"{in_risky}: {judged:.0%} most vulnerable minus {judged:.0%} largest weights",
        above=0.0,
        margin=0.05,
        ours="our control",
        control="the largest weights of the same networks",
    ),
    report.Claim(
        "risky_place",
        "At matched AUC, RelaxLoss is more accurate after rewinding in the risky stages than "
        "after rewinding in the others",
        quantity=f"{matched}: rewound in the risky stages minus in the others",
        above=0.0,
        margin=0.02,
        ours=True,
        control="the same number of weights and epochs",
        headline=True,
        fails="At matched AUC, RelaxLoss is less accurate after rewinding in the risky "
        "stages than after rewinding in the others",
    ),
    report.Claim(
        "rewinding_helps",
        "At matched AUC, RelaxLoss is more accurate after rewinding in the risky stages than "
        "after rewinding nothing",
        quantity=f"{matched}: rewound in the risky stages minus nothing rewound",
        above=0.0,
        margin=0.02,
        ours="our control",
        control="nothing rewound, the same number of epochs",
    ),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)
claims

# %%
study = recipe.RewindStudy(
    recipe.Data(data, pixels),
    recipe.Model(model, width),
    recipe.Schedule(epochs, batch, "adam", lr=lr),
    retraining=retrain_epochs,
    criterion=recipe.Vulnerability(weight=balance, steps=score_steps, batch=batch),
    pool=pool,
    test=test,
    models=shadows,
    dev=dev,
    reference=reference,
    seed=seed,
    precision=precision,
)
places = {
    "risky stages": tuple(score.confine(risky_from) for score in study.scores),
    "other stages": tuple(score.confine(risky_from, before=True) for score in study.scores),
}
ordinary = "ordinary training"
longer = f"ordinary training, {epochs} + {retrain_epochs} epochs"
variants = {ordinary: study.ordinary, longer: study.tuned()}
rewound = {}
for alpha in relax:
    objective = recipe.RelaxLoss(alpha)
    variants["nothing rewound", f"{alpha:g} nats"] = study.tuned(objective)
    for place, scores in places.items():
        variants[place, f"{alpha:g} nats"] = study.inside(share, objective, scores)
for place, scores in places.items():
    rewound[place] = study.rewound(share, scores).signals()
magnitude = study.ordinary.score(recipe.Magnitude())
earlier = {epoch: study.ordinary.at(epoch) for epoch in stops}
comparison = lab.compare(
    variants,
    {"LiRA": recipe.LiRA()},
    checkpoints={longer: earlier | {epochs: study.ordinary}},
    also=[study.scores, magnitude, places, rewound, recipe.self_audit(study.ordinary)],
)

# %% [markdown]
# ## Where the most vulnerable weights lie
# *Top* is the share of the weights that counts as most vulnerable, or as largest.

# %%
results = comparison.results
scores_by = {
    "vulnerability": [maps(results[step]) for step in study.scores],
    "magnitude": [maps(results[step]) for step in magnitude],
}
stages = {name: name.partition(".")[0] for name in scores_by["magnitude"][0]}
parts = list(dict.fromkeys(stages.values()))
risky = parts[parts.index(risky_from) :]


def in_stages(score, top, chosen):
    """The share of the top weights that lie in some stages, of each network."""
    per_network = []
    for network in score:
        counted = shares(highest(network, top), stages)
        total = sum(part.selected for part in counted)
        per_network.append(sum(part.selected for part in counted if part.of in chosen) / total)
    return per_network


# %%
rows = []
for top in tops:
    for name, score in scores_by.items():
        for part in parts:
            value = audit.mean_ci(in_stages(score, top, [part]))
            row = {"part": part.replace("stage", "stage "), "weights": name, "value": value}
            rows.append(row | {"top": f"top {top:.1%}"})
for part in parts:
    value = audit.mean_ci(in_stages(scores_by["magnitude"], 1.0, [part]))
    row = {"part": part.replace("stage", "stage "), "weights": "all weights", "value": value}
    rows += [row | {"top": f"top {top:.1%}"} for top in tops]
vulnerable = in_stages(scores_by["vulnerability"], judged, risky)
largest = in_stages(scores_by["magnitude"], judged, risky)
size = in_stages(scores_by["magnitude"], 1.0, risky)
report.profile(
    rows,
    hue="weights",
    facet="top",
    reference=None,
    title=f"The risky stages contain {audit.mean_ci(vulnerable).value:.0%} of the {judged:.0%} "
    f"most vulnerable weights and {audit.mean_ci(size).value:.0%} of all weights",
    xlabel="part of the network",
    ylabel="share of the weights in this part",
)

# %% [markdown]
# ## Rewinding in the risky stages and in the others
# The line of ordinary training starts at the last epoch that leaks less than all other networks
# shown.

# %%
line = [*comparison.checkpoints[longer], longer]
strengths = {}
for variant in variants:
    if isinstance(variant, tuple):
        strengths.setdefault(variant[0], []).append(variant)
gains = {name: comparison.early_stopping(each, "LiRA") for name, each in strengths.items()}
placed = strengths["risky stages"]
others, unchanged = strengths["other stages"], strengths["nothing rewound"]
in_place = comparison.at_matched_auc(placed, line, "LiRA", other=others)
beyond = comparison.at_matched_auc(placed, line, "LiRA", other=unchanged)
finding = report.compared_accuracy(in_place, "rewinding elsewhere")
shown = placed + others + unchanged
stopped = comparison.stopped_line(shown, "LiRA")
report.tradeoff(
    comparison.plane({"ordinary training, by epoch": stopped, **strengths}, "LiRA"),
    facet=None,
    reference=None,
    title=f"At matched AUC, rewinding in the risky stages {finding}",
    xlabel="test accuracy",
    ylabel="AUC of LiRA",
)

# %%
right_after = {}  # test accuracies of the rewound networks, before they are retrained
for place, signals in rewound.items():
    right_after[place] = [float(results[step]["accuracy_test"]) for step in signals]
rows = []
for variant in [ordinary, *shown]:
    place = variant if variant == ordinary else variant[0]
    row = {"rewound": audit.described(variant), "right after rewinding": None}
    if place in right_after:
        row["right after rewinding"] = audit.mean_ci(right_after[place], bounds=(0, 1))
    row["member accuracy"] = comparison.estimate(variant, "", "member accuracy")
    row["test accuracy"] = comparison.accuracy(variant)
    row["AUC of LiRA"] = comparison.estimate(variant, "LiRA")
    row["accuracy minus early stopping"] = None
    if variant != ordinary:
        row["accuracy minus early stopping"] = comparison.early_stopping(variant, "LiRA")
    rows.append(row)
report.table(
    rows,
    caption=f"Mean over {shadows} networks. Right after rewinding: test accuracy before "
    "retraining. Last column: at matched AUC of LiRA; ordinary training is on the line of early "
    "stopping",
)

# %% [markdown]
# ## Verdicts

# %%
before = comparison.accuracies[ordinary]
manipulation_checks, lowered = {}, {}
for place, after in right_after.items():
    fall = audit.paired_difference(before, after)
    subject = f"rewinding in the {place}"
    manipulation_checks[f"{subject} lowers the test accuracy before retraining"] = fall
    lowered[f"{subject} lowers test accuracy by"] = fall
against_unchanged = {"risky stages minus nothing rewound": beyond}
report.judge(
    claims,
    in_risky_stages=audit.paired_difference(vulnerable, size),
    beyond_magnitude=audit.paired_difference(vulnerable, largest),
    risky_place=in_place,
    rewinding_helps=beyond,
    notes={"risky_place": report.listed(against_unchanged | lowered)},
    checks={"risky_place": manipulation_checks, "rewinding_helps": manipulation_checks},
    regime={
        "member accuracy": comparison.estimate(ordinary, "", "member accuracy"),
        "test accuracy": comparison.accuracy(ordinary),
    },
)

# %% [markdown]
# **Limits.** The risky stages contain most of the weights. So 2 % of all weights is a small part of
# the risky stages and a large part of the others: the second answer also compares these parts. No
# control rewinds random weights in the same stages. The weights that matter most for fitting
# members may lie in the same stages; this is not tested. The first risky stage is that of the page
# `defences`, not a finding on these networks. Intervals cover other networks on the same pool.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
