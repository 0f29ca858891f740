# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does magnitude pruning keep the most vulnerable weights?
#
# **Question.** The questions are ours. Magnitude pruning removes the smallest weights. Does it
# remove fewer of CWRF's most vulnerable weights than chance does? Does size explain how many it
# removes? Further claims: is pruning vulnerable weights more accurate than pruning small ones?
#
# **Setup.** The *vulnerability score* of a weight is |gradient × weight|, summed over updates that
# fit members and forget non-members. In each layer, the same share of weights is pruned: the
# smallest, the most or the least vulnerable, or the smallest after the most vulnerable were set
# back to their initial values (*rewound*). Then networks are fine-tuned. Only weights of
# convolutions and of the last layer are pruned or counted. LiRA attacks the networks; shadow models
# are pruned by the same rule.
#
# **Controls.**
#
# 1. *Chance* (decides the first answer): random weights of the same layers.
# 2. *Size* (decides the second answer): gradients are shuffled in each layer, so within a layer the
#    score of a weight depends on its size and chance alone. Size explains the removed share if
#    shuffling changes it by less than .05.
# 3. *Early stopping* of ordinary training, *at matched AUC* (for the other claims): from each test
#    accuracy we subtract that of networks stopped early at the same AUC of LiRA.
# 4. *Fine-tuning without pruning*, for the same number of epochs: the last point of early stopping.

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
retrain_epochs = 10  # epochs after pruning
stops = [1, 2, 3, 4, 5, 6, 8, 10]  # epochs at which ordinary training is stopped early
batch = 64  # samples a step
lr = 0.005  # learning rate of Adam, cosine to 0, at the start of each training
balance = 0.5  # CWRF: lambda of the score
score_steps = 30  # CWRF: updates of the score
share = 0.05  # share of the weights that counts as most vulnerable, and that is rewound
sparsity = 0.6  # share of the weights that is pruned
shadows = 10  # networks; the shadow models of one are the others, without its complement
learnt = 0.6  # least test accuracy of a network that has learnt
seed = 101  # evaluation seed: of design, initialisation and order
pilots = [0]  # seed on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
import numpy as np
from leak_atlas import audit, lab, recipe, report
from leak_atlas.engine.selection import highest, lowest
from leak_atlas.localization.score_maps import maps, overlap, shuffled_gradients

smallest, least, most = "smallest", "least vulnerable", "most vulnerable"
rewound_first = "rewound, then smallest"
removed = f"share of the {share:.0%} most vulnerable weights that magnitude pruning removes"
border = 0.05  # of the control of size
matched = "test accuracy at matched AUC of LiRA"
same = "both compared with early stopping; the same share and the same epochs"
claims = report.claims(
    report.Claim(
        "removes",
        "Magnitude pruning removes fewer of the most vulnerable weights than chance does",
        quantity=f"{removed}, minus the pruned share of each layer ({sparsity:g})",
        below=0.0,
        margin=0.1,
        ours=True,
        control="random weights: the same number in each layer",
        headline=True,
        fails="Magnitude pruning removes more of the most vulnerable weights than chance does",
    ),
    report.Claim(
        "size_explains",
        f"Size explains how many of the {share:.0%} most vulnerable weights pruning removes",
        quantity=f"{removed}, minus the same where gradients are shuffled in each layer",
        within=border,
        ours="our control",
        control="shuffled gradients: the score of a weight then depends on its size alone",
        headline=True,
        fails=f"Size does not explain how many of the {share:.0%} most vulnerable weights "
        "pruning removes",
    ),
    report.Claim(
        "by_vulnerability",
        "At matched AUC, pruning the most vulnerable weights is more accurate than pruning "
        "the smallest",
        quantity=f"{matched}: most vulnerable minus smallest weights",
        above=0.0,
        margin=0.05,  # few networks: smaller gains are not resolved
        ours=True,
        control=same,
    ),
    report.Claim(
        "score_matters",
        "At matched AUC, pruning the most vulnerable weights is more accurate than pruning "
        "the least vulnerable",
        quantity=f"{matched}: most minus least vulnerable weights",
        above=0.0,
        margin=0.05,
        ours="our control",
        control=same,
    ),
    report.Claim(
        "rewinding_first",
        "At matched AUC, magnitude pruning is more accurate after rewinding the most vulnerable "
        "weights than without rewinding",
        quantity=f"{matched}: rewound before pruning minus pruning alone",
        above=0.0,
        margin=0.02,
        ours="after CWRF and SAMIA",
        control=same,
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
dense = study.ordinary
scores = study.scores
reset = dense.rewind_weights(scores, share)
pruned = {
    smallest: dense.pruned("L1 unstructured", sparsity),
    least: dense.prune(sparsity, scores, scope="layer", norms=False),
    most: dense.prune(sparsity, scores, scope="layer", norms=False, largest=True),
    rewound_first: reset.pruned("L1 unstructured", sparsity),
}
ordinary = "ordinary training"
longer = f"ordinary training, {epochs} + {retrain_epochs} epochs"
variants = {ordinary: dense, longer: study.tuned()}
variants |= {name: each.train(study.short) for name, each in pruned.items()}
magnitude = dense.score(recipe.Magnitude())
right_after = {name: each.signals() for name, each in pruned.items()}
counted = {name: list(map(recipe.Sparsity, each)) for name, each in pruned.items()}
earlier = {epoch: dense.at(epoch) for epoch in stops}
comparison = lab.compare(
    variants,
    {"LiRA": recipe.LiRA()},
    checkpoints={longer: earlier | {epochs: dense}},
    also=[scores, magnitude, right_after, counted, recipe.self_audit(dense)],
)

# %% [markdown]
# ## What pruning removes
# *Shuffled gradients* is the control of size. Here, the most vulnerable weights are those of the
# whole network.

# %%
results = comparison.results


def competing(result):
    """The scores of the weights that pruning may remove: those of norms have one dimension."""
    return {name: values for name, values in maps(result).items() if values.ndim > 1}


def by_layer(score, choose):
    """Masks of the pruned share of each layer: its `lowest` or `highest` scores."""
    chosen = {}
    for name, values in score.items():
        chosen |= choose({name: values}, sparsity)
    return chosen


vulnerability = [competing(results[step]) for step in scores]
sizes = [competing(results[step]) for step in magnitude]
shuffled = []
for one, size in zip(vulnerability, sizes, strict=True):
    shuffled.append(shuffled_gradients(one, size, seed))


def removes(score, top):
    """The share of the weights with the highest scores that are among the smallest, of each
    network.
    """
    both = zip(score, sizes, strict=True)
    return [overlap(highest(one, top), by_layer(size, lowest)) for one, size in both]


# %%
rows = []
fewest = 0.001
for top in (fewest, 0.01, share, 0.1, 0.3, 1.0):
    for name, score in {"vulnerability": vulnerability, "shuffled gradients": shuffled}.items():
        value = audit.mean_ci(removes(score, top))
        rows.append({"score": name, "top": top, "value": value})
removed_shares = removes(vulnerability, share)
by_size = removes(shuffled, share)
among_fewest = audit.paired_difference(removes(vulnerability, fewest), removes(shuffled, fewest))
report.curves(
    rows,
    "top",
    hue="score",
    log_x=True,
    reference=sparsity,
    reference_label="chance",
    title=f"Magnitude pruning removes {audit.mean_ci(removed_shares).value:.0%} of the {share:.0%} "
    "most vulnerable weights",
    xlabel="share of the weights that counts as most vulnerable",
    ylabel="share of these weights that is pruned",
)

# %% [markdown]
# ## Accuracy and leakage
# The line of ordinary training starts at the last epoch that leaks less than all pruned networks.
# The title is not corrected for possible bias (see Robustness).

# %%
line = [*comparison.checkpoints[longer], longer]


def minus(one, other):
    """Test accuracy at matched AUC: one way of pruning minus another."""
    return comparison.at_matched_auc(one, line, "LiRA", other=other)


gain = minus(most, smallest)
finding = report.compared_accuracy(gain, "pruning small ones")
stopped = comparison.stopped_line(pruned, "LiRA")
lines = {"ordinary training, by epoch": stopped}
for name in pruned:
    lines[name] = [name]
report.tradeoff(
    comparison.plane(lines, "LiRA"),
    facet=None,
    reference=None,
    title=f"At matched AUC, pruning vulnerable weights {finding}",
    xlabel="test accuracy",
    ylabel="AUC of LiRA",
)

# %%
after_pruning, removed_weights = {}, {}  # of each network, before fine-tuning
for name in pruned:
    signals = [results[step] for step in right_after[name]]
    after_pruning[name] = [float(each["accuracy_test"]) for each in signals]
    removed_weights[name] = [float(results[step]["network"]) for step in counted[name]]
rows = []
for name in variants:
    row = {"network, or pruned weights": name, "sparsity": None, "right after pruning": None}
    if name in pruned:
        row["sparsity"] = round(float(np.mean(removed_weights[name])), 3)
        row["right after pruning"] = audit.mean_ci(after_pruning[name], bounds=(0, 1))
    row["member accuracy"] = comparison.estimate(name, "", "member accuracy")
    row["test accuracy"] = comparison.accuracy(name)
    row["AUC of LiRA"] = comparison.estimate(name, "LiRA")
    row["accuracy minus early stopping"] = None
    if name in pruned:
        row["accuracy minus early stopping"] = comparison.early_stopping(name, "LiRA")
    rows.append(row)
report.table(
    rows,
    caption=f"Mean over {shadows} networks. Sparsity: share of the weights that is removed, norms "
    "included. Right after pruning: test accuracy before fine-tuning. Last column: at matched AUC "
    "of LiRA; ordinary training is on the line of early stopping",
)

# %% [markdown]
# ## Verdicts

# %%
manipulation_checks = {}
before = comparison.accuracies[ordinary]
for name in pruned:
    falls = audit.paired_difference(before, after_pruning[name])
    is_sparse = min(removed_weights[name]) > sparsity - 0.03
    manipulation_checks[name] = {
        f"{name}: test accuracy falls before fine-tuning": falls,
        f"{name}: {sparsity:.0%} of the weights are removed": is_sparse,
    }
size_note = report.listed({f"with the {fewest:.1%} most vulnerable weights": among_fewest})
if among_fewest.low > -border and among_fewest.high < border:
    size_note += ", within the border"
elif among_fewest.high < -border or among_fewest.low > border:
    size_note += ", beyond the border"
than_least = minus(most, least)
placebo = comparison.placebo("LiRA", stopped)
bias = audit.possible_bias(placebo)

# %%
report.judge(
    claims,
    removes=audit.mean_ci([each - sparsity for each in removed_shares]),
    size_explains=audit.paired_difference(removed_shares, by_size),
    by_vulnerability=gain,
    score_matters=than_least,
    rewinding_first=minus(rewound_first, smallest),
    notes={
        "size_explains": size_note,
        "by_vulnerability": report.bias_note(bias, gain),
        "score_matters": report.bias_note(bias, than_least),
    },
    checks={
        "by_vulnerability": manipulation_checks[most] | manipulation_checks[smallest],
        "score_matters": manipulation_checks[most] | manipulation_checks[least],
        "rewinding_first": manipulation_checks[rewound_first] | manipulation_checks[smallest],
    },
    regime={
        "member accuracy": comparison.estimate(ordinary, "", "member accuracy"),
        "test accuracy": comparison.accuracy(ordinary),
    },
)

# %% [markdown]
# ## Robustness: early stopping compared with itself
# Each epoch in the figure, except the last, is compared with the line through all other epochs. The
# true difference is 0. The largest resolved value is the *possible bias* of a gain over early
# stopping; the difference of two gains can have it too.

# %%
caption = "Test accuracy at matched AUC of LiRA"
report.table(placebo, caption=caption, fold="Early stopping compared with itself")

# %% [markdown]
# **Limits.** One sparsity, one share, small networks. Large weights tend to have high scores: the
# comparison with chance alone shows only this. The control of size divides each score by the
# weight's size before the updates. If the updates move a weight near 0, this overestimates its
# gradient, and the control's share may be wrong. No network is pruned of its largest or of random
# weights. Where pruning the most vulnerable weights lowers accuracy to guessing, its gain may come
# from training anew, not from vulnerability. Pruning the smallest weights may also remove rewound
# weights. Intervals cover other networks on the same pool.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
