# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Are defences more accurate than a shorter training?
#
# **Question.** The question is ours. Many pages compare a defence with early stopping: with
# *checkpoints* of ordinary training. At a checkpoint, the learning rate has not yet fallen to 0. A
# *shorter training* has fewer epochs, and its learning rate falls to 0. Are defences more accurate
# than a shorter training *at matched AUC*, that is, where the strongest of three attacks has the
# same AUC? Is a shorter training more accurate than a checkpoint at matched AUC?
#
# **Setup.** Networks are trained in pairs; a pair splits the pool into two halves. The shadow
# models of a network are the other pairs with the same training. The attacks are LiRA, RMIA and a
# threshold on the confidence; for each kind of training, the one with the highest AUC counts. Each
# defence has one or more *strengths* (target losses, or weights of a penalty). The defences are
#
# - *RelaxLoss inside PPTP*: late stages are set back to their initial weights (*rewound*) and
#   retrained with RelaxLoss, which keeps the loss near a target;
# - *RelaxLoss inside CWRF*: vulnerable weights are rewound and frozen, the others are retrained
#   with RelaxLoss;
# - *PPB*: a pruned network is fine-tuned with a penalty that makes sorted outputs of two samples
#   alike;
# - *RMR* of WeMem (not in `desk-cpu`): pruning in rounds, where the most memorized members have
#   more weight decay.
#
# **Controls.**
#
# 1. *Shorter trainings* (decide the first answer): each defence is compared with the line through
#    them at its own AUC. The mean over all strengths of all defences counts.
# 2. *Checkpoints* (decide the second answer): each shorter training is compared with the line
#    through them. The mean over lengths counts.
# 3. *The same members and initialisations* in every training: differences are paired over networks.
# 4. *A line compared with itself* ("Robustness"): each of its points is compared with the line
#    through the others. The difference should be 0. The largest one is the *possible bias*.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data)
pixels = 16  # side of the images, pixels, after area resize
model = "resnet10"  # architecture
width = 8  # channels of stage 1 (64 by the architecture)
pool = 600  # samples from which each network draws half
dev = 300  # samples outside the pool, not used here; keeps the split of `defences`
reference = 300  # samples outside the pool: non-members for the score of CWRF
test = 600  # test samples
epochs = 12  # epochs of ordinary training
lengths = [3, 5, 8]  # epochs of shorter trainings
retrain_epochs = 10  # epochs after rewinding or pruning, as in `defences`
stops = [1, 2, 3, 4, 5, 6, 8, 10]  # epochs of the checkpoints
batch = 64  # samples a step
lr = 0.005  # learning rate of Adam, cosine to 0, at the start of each training
relax = [0.3, 0.6, 0.8]  # RelaxLoss: target losses, nats
ppb = [2.0, 4.0]  # PPB: weights
lambdas = [0.01, 0.1]  # WeMem: lambda_r, weight of the penalty (RMR); []: without RMR
risky_from = "stage3"  # PPTP: first stage that is rewound
share = 0.05  # CWRF: share of the weights that is rewound
balance = 0.5  # CWRF: lambda of the score
score_steps = 30  # CWRF: updates of the score
sparsity = 0.6  # share of the weights that is pruned
rounds = 2  # WeMem: rounds of pruning, which share `retrain_epochs`
judges = 16  # WeMem: networks that give the memorization scores
score_epochs = 8  # WeMem: epochs of each judge
shadows = 10  # networks; two of a pair split the pool; the other pairs are their shadow models
learnt = 0.6  # least test accuracy of a network that has learnt
seed = 101  # evaluation seed: of design, initialisation and order
pilots = [0]  # seed on which strengths were chosen, in `defences`
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import audit, lab, recipe, report

matched = "test accuracy at matched AUC of the strongest attack"
claims = report.claims(
    report.Claim(
        "defences_or_shorter",
        "At matched AUC, these defences are on average more accurate than a shorter training",
        fails="At matched AUC, these defences are on average less accurate than a shorter training",
        quantity=f"{matched}: mean over the defences minus shorter trainings",
        above=0.0,
        margin=0.02,
        ours=True,
        control="ordinary trainings of several lengths; in each, the learning rate falls to 0",
        headline=True,
    ),
    report.Claim(
        "shorter_or_stopped",
        "At matched AUC, a shorter training is more accurate than a checkpoint",
        fails="At matched AUC, a shorter training is less accurate than a checkpoint",
        quantity=f"{matched}: shorter training minus checkpoints, mean over lengths",
        above=0.0,
        margin=0.02,
        ours=True,
        control="checkpoints of ordinary training with the same members and initialisations",
        headline=True,
    ),
    report.Claim(
        "defences_or_stopped",
        "At matched AUC, these defences are on average more accurate than a checkpoint",
        fails="At matched AUC, these defences are on average less accurate than a checkpoint",
        quantity=f"{matched}: mean over the defences minus checkpoints",
        above=0.0,
        margin=0.02,
        ours=True,
        control="checkpoints of ordinary training, as on the page `defences`",
    ),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)
claims

# %%
study = recipe.AtlasStudy(
    data=recipe.Data(data, pixels),
    model=recipe.Model(model, width),
    schedule=recipe.Schedule(epochs, batch, "adam", lr=lr),
    retraining=retrain_epochs,
    pool=pool,
    test=test,
    models=shadows,
    dev=dev,
    reference=reference,
    seed=seed,
    precision=precision,
    risky_from=risky_from,
    criterion=recipe.Vulnerability(weight=balance, steps=score_steps, batch=batch),
    share=share,
    sparsity=sparsity,
    rounds=rounds,
    judges=judges,
    score_epochs=score_epochs,
)
ordinary = "ordinary training"
shorter = study.with_schedules(
    "shorter training", {f"{length} epochs": {"epochs": length} for length in lengths}
)
relaxloss = {f"{alpha:g} nats": recipe.RelaxLoss(alpha) for alpha in relax}
defences = study.inside_stages("RelaxLoss", relaxloss)
defences |= study.inside_weights("RelaxLoss", relaxloss)
defences |= study.after_pruning("PPB", {f"weight {weight:g}": recipe.PPB(weight) for weight in ppb})
for penalty in lambdas:
    defences["RMR", f"lambda {penalty:g}"] = study.in_rounds(recipe.RMR(penalty))

# %%
attackers = {
    "LiRA": recipe.LiRA(),
    "RMIA": recipe.RMIA(),
    "confidence": recipe.Threshold("confidence", sign="shadows"),
}
comparison = lab.compare(
    {ordinary: study.ordinary} | shorter | defences,
    attackers,
    checkpoints={ordinary: stops},
    also=recipe.self_audit(study.ordinary),
).with_strongest("strongest attack")

# %% [markdown]
# ## Test accuracy and AUC of checkpoints and shorter trainings
# Of two points at the same height, the one further to the right is more accurate at matched AUC.
# The last point of both lines is ordinary training at its end.

# %%
checkpoint_line = [*comparison.checkpoints[ordinary], ordinary]
shorter_line = [*shorter, ordinary]
strengths = {}  # of each defence
for defence, strength in defences:
    strengths.setdefault(defence, []).append((defence, strength))
lines = {"checkpoints of ordinary training": checkpoint_line, "shorter trainings": shorter_line}
advantage = comparison.early_stopping([*shorter], "strongest attack")
report.tradeoff(
    comparison.plane(lines | strengths, "strongest attack"),
    facet=None,
    reference=None,
    title="On average over lengths, a shorter training "
    + report.compared_accuracy(advantage, "a checkpoint that leaks equally"),
    xlabel="test accuracy",
    ylabel="AUC of the strongest attack",
)

# %% [markdown]
# ## Gain of each defence over checkpoints and over shorter trainings
# A value is the mean over the strengths of one defence; "all" is the mean over all strengths of all
# defences. Right of 0, the defence is more accurate at matched AUC. The intervals are not corrected
# for multiple comparisons.


# %%
def over_checkpoints(networks):
    """Test accuracy at matched AUC: networks minus checkpoints."""
    return comparison.early_stopping(networks, "strongest attack")


def over_shorter(networks):
    """Test accuracy at matched AUC: networks minus shorter trainings."""
    return comparison.at_matched_auc(networks, shorter_line, "strongest attack")


comparisons = {
    "defence minus checkpoints": over_checkpoints,
    "defence minus shorter trainings": over_shorter,
}
rows = []
for name, networks in (strengths | {"all": [*defences]}).items():
    for difference, gain in comparisons.items():
        rows.append({"setting": name, "difference": difference, "value": gain(networks)})
gain_over_shorter = over_shorter([*defences])
gain_over_checkpoints = over_checkpoints([*defences])
report.against_paper(
    rows,
    hue="difference",
    title="On average, these defences "
    + report.compared_accuracy(gain_over_shorter, "a shorter training", "are"),
    xlabel="difference in test accuracy at matched AUC",
)

# %%
cost = lab.operations(comparison.results, study.ordinary)  # of one network's training
rows = []
for variant, networks in ({ordinary: study.ordinary} | shorter | defences).items():
    attack = comparison.strongest(variant)
    row = {"network (strongest attack)": f"{audit.described(variant)} ({attack})"}
    row["member accuracy"] = comparison.estimate(variant, "", "member accuracy")
    row["test accuracy"] = comparison.accuracy(variant)
    row["AUC"] = comparison.estimate(variant, "strongest attack")
    row["accuracy minus checkpoints"] = row["accuracy minus shorter trainings"] = None
    if variant != ordinary:
        row["accuracy minus checkpoints"] = over_checkpoints(variant)
    if variant in defences:
        row["accuracy minus shorter trainings"] = over_shorter(variant)
    row["training cost"] = f"{lab.operations(comparison.results, networks) / cost:.2f}"
    rows.append(row)
report.table(
    rows,
    caption=f"Mean over {shadows} networks. Cost: operations of all trainings that a network "
    "needs, as a multiple of ordinary training",
    fold="All networks",
)

# %%
lines_apart = comparison.between_lines(
    shorter_line, checkpoint_line, "strongest attack", at=[*defences]
)
rows = []
for attack in comparison.attackers:
    row = {"attack": attack}
    row["shorter trainings minus checkpoints"] = comparison.early_stopping([*shorter], attack)
    row["defences minus checkpoints"] = comparison.early_stopping([*defences], attack)
    row["defences minus shorter trainings"] = comparison.at_matched_auc(
        [*defences], shorter_line, attack
    )
    row["gain over checkpoints minus gain over shorter trainings"] = comparison.between_lines(
        shorter_line, checkpoint_line, attack, at=[*defences]
    )
    rows.append(row)
report.table(
    rows,
    caption="Test accuracy at matched AUC of each attack. First column: mean over lengths, at their "
    "AUCs; the others: mean over the defences, at theirs",
    fold="The same comparisons by attack",
)

# %% [markdown]
# ## Verdicts

# %%
leaks_less = {}
for name, networks in strengths.items():
    strongest_setting = networks[-1]
    difference = comparison.contrast(ordinary, strongest_setting, "strongest attack")
    leaks_less[f"{name} leaks less than ordinary training"] = difference
placebo = comparison.placebo("strongest attack")
bias = audit.possible_bias(placebo)
shorter_placebo = comparison.placebo("strongest attack", line=shorter_line)
shorter_bias = report.bias_note(
    audit.possible_bias(shorter_placebo),
    gain_over_shorter,
    "shorter trainings compared with themselves",
)
both_gains = report.listed(
    {
        "gain over checkpoints": gain_over_checkpoints,
        "that gain minus the one over shorter trainings": lines_apart,
    }
)
report.judge(
    claims,
    defences_or_shorter=gain_over_shorter,
    shorter_or_stopped=advantage,
    defences_or_stopped=gain_over_checkpoints,
    notes={
        "defences_or_shorter": f"{both_gains}; {shorter_bias}",
        "shorter_or_stopped": report.bias_note(bias, advantage),
        "defences_or_stopped": report.bias_note(bias, gain_over_checkpoints),
    },
    checks={"defences_or_shorter": leaks_less, "defences_or_stopped": leaks_less},
    regime={
        "member accuracy": comparison.estimate(ordinary, "", "member accuracy"),
        "test accuracy": comparison.accuracy(ordinary),
    },
)

# %% [markdown]
# ## Robustness: each line compared with itself
# Each point of a line takes the place of a defence and is compared with the line through the
# others. On a straight line the difference is 0. A value above 0 shows by how much the comparison
# can favour a defence near this AUC. A defence closer to a point of the line is favoured less. A
# value below 0 shows that the point lies below the line through the others. This, too, favours a
# defence at its AUC.

# %%
report.table(placebo, fold="Early stopping compared with itself")

# %%
report.table(shorter_placebo, fold="Shorter trainings compared with themselves")

# %% [markdown]
# **Limits.** Networks are small. They are matched by AUC, not by another metric.
#
# - *Which defences.* `desk-cpu` has one strength of each defence, and no RMR, which needs more
#   networks (`judges`). On CIFAR-10, the page `defences` measured larger gains over checkpoints for
#   RMR with lambda .1 (.070; with .01: −.002) and for SELENA inside PPTP (.116). A mean with them
#   may be higher.
# - *`quick`.* The networks with defences are those of the page `defences`: their gains over
#   checkpoints were known, only the shorter trainings are new. There, RMR gains no more than
#   pruning in rounds without its penalty.
# - *Intervals.* Networks are each other's shadow models, so the variance of an AUC of LiRA is
#   multiplied by a factor (Provenance). LiRA is the strongest attack on ordinary training, where
#   both lines end: this widens the interval of each comparison with a line. With RMIA alone,
#   intervals are narrower. With the confidence alone, the defences of `desk-cpu` are more accurate
#   than shorter trainings (table by attack).
# - *Cost.* All checkpoints come from one training. Each shorter training is a training of its own.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
