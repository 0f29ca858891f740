# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Do networks trained with sharpness-aware minimization (SAM) leak less than with SGD?
#
# **Question.** An article about the paper Dynamics (Chen et al. 2025) says that sharpness-aware
# minimization (SAM) "actively suppresses the encoding of membership information compared to
# standard" SGD (section on the optimizer). The article defines nothing: definitions and borders are
# ours. One claim follows a *reading note*, a summary of the paper that others published.
#
# **Setup.** A step of SAM first moves the weights in the direction that raises the loss, and uses
# the gradient there. Networks trained with SGD and with SAM have the same initial weights, members
# and number of epochs. The first answer uses LiRA after training. The second answer, on early
# stopping, uses RMIA at several epochs. In the verdicts, n is the number of networks; in the claim
# on highly vulnerable samples, n is the number of pairs of networks.
#
# **Controls.**
#
# 1. *Early stopping* (decides the second answer). We compare SAM after training with earlier epochs
#    of SGD *at matched AUC*: where RMIA has the same AUC. At these epochs, the learning rate of SGD
#    is still above 0. The page has no shorter training with SGD whose learning rate falls to 0.
# 2. *Generalization gap*: accuracy on members minus accuracy on test samples, also compared at
#    matched AUC.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data; reading note: CIFAR-10 and others)
pixels = 8  # side of the images, pixels, after area resize; 0: as they are
model = "cnn4"  # architecture (reading note: CNNs of several depths, WRN28-2)
width = 8  # channels of stage 1 (not stated)
pool = 600  # samples, half of them members of a network (not stated)
test = 200  # test samples (not stated)
epochs = 40  # of training (not stated; the article calls epoch 150 early)
batch = 50  # samples a step (not stated)
optimizer = "sgd"  # optimizer (article: SGD)
lr = 0.05  # learning rate at the start (not stated)
decay = "cosine"  # decay of the learning rate over the epochs (not stated)
networks = 32  # targets; the shadow models of one are the others (not stated)
checkpoints = [0, 2, 4, 8, 12, 15, 20, 30, 40]  # epochs at which attacks run; 0: before training
rho = 0.1  # distance by which SAM moves the weights before the gradient (not stated; .05 is usual)
rate = 0.1  # FPR across all samples that sets LiRA's threshold (ours)
learnt = 0.6  # least test accuracy of networks that have learnt (ours)
seed = 101  # evaluation seed: of design, initialisation and order
pilots = [0, 1]  # seeds on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace

from leak_atlas import lab, report
from leak_atlas.lab import Checkpoint
from leak_atlas.localization import over_time, trajectories
from leak_atlas.recipe import RMIA, Data, LiRA, Model, Schedule, TrajectoryStudy

section = "section on the optimizer"
sam_minus_sgd = "SAM minus SGD"
claims = report.claims(
    report.Claim(
        "final",
        "Networks trained with SAM leak less than networks trained with SGD",
        fails="Networks trained with SAM leak more than networks trained with SGD",
        quantity=f"AUC of LiRA after training: {sam_minus_sgd}",
        below=0.0,
        margin=0.02,
        paper="article",
        quote="actively suppresses the encoding of membership information compared to standard",
        section=section,
        control="the same number of epochs; paired networks",
        headline=True,
    ),
    report.early_stopping_claim(
        "early_stopping", "networks trained with SAM", "RMIA", headline=True
    ),
    report.Claim(
        "generalizes",
        "Networks trained with SAM are more accurate on test samples than networks trained with "
        "SGD",
        quantity=f"test accuracy after training: {sam_minus_sgd}",
        above=0.0,
        margin=0.02,
        paper="article",
        quote="SAM encourages models to find flatter, more generalizable solutions",
        section=section,
        control="the same number of epochs; paired networks",
    ),
    report.Claim(
        "into_high",
        "From one checkpoint to the next, fewer samples become highly vulnerable with SAM than "
        "with SGD",
        quantity="of the samples that are not highly vulnerable at a checkpoint, the share that is "
        f"at the next (TPR ≥ .8 and FPR ≤ .2), mean over checkpoints: {sam_minus_sgd}",
        below=0.0,
        margin=0.015,
        ours="after a reading note on the paper",
        control="the same checkpoints; paired networks",
    ),
    report.Claim(
        "gap",
        "At matched AUC of RMIA, SAM has a narrower generalization gap than early stopping of SGD",
        quantity="generalization gap at matched AUC of RMIA: SAM minus SGD's earlier epochs",
        below=0.0,
        margin=0.02,
        ours="ours; arXiv 2310.00488 finds that SAM leaks more",
        control="earlier epochs of SGD, at the AUC of each network with SAM",
    ),
    regime={"member accuracy of SGD": 0.95, "test accuracy": learnt},
)
claims

# %%
sgd = TrajectoryStudy(
    Data(data, pixels or None),
    Model(model, width),
    Schedule(epochs, batch, optimizer, lr, decay=decay),
    pool=pool,
    test=test,
    networks=networks,
    checkpoints=checkpoints,
    seed=seed,
    precision=precision,
)
sam = replace(sgd, schedule=replace(sgd.schedule, sharpness=rho))
studies = {"SGD": sgd, "SAM": sam}
attacks = {name: study.attacks() for name, study in studies.items()}
earlier = [epoch for epoch in checkpoints if 0 < epoch < epochs]
comparison = lab.compare(
    {name: study.trained for name, study in studies.items()},
    {"LiRA": LiRA(), "RMIA": RMIA()},
    checkpoints={name: earlier for name in studies},
    also=attacks,
)
results = comparison.results
attack_scores = {name: over_time.read(results, attack) for name, attack in attacks.items()}

# %% [markdown]
# ## Leakage by epoch
# A sample's TPR is how often LiRA calls the sample a member of networks that trained on it. Its FPR
# is the same for other networks. The lines are means over samples, the bands are 95 % intervals.
# The title and the verdict compare something else: the AUC of LiRA after training, by paired
# differences.

# %%
points = []
for name, scores in attack_scores.items():
    means = over_time.jackknife(trajectories.mean_advantage, scores, rule=rate)
    for epoch, value in zip(checkpoints, means, strict=True):
        points.append({"optimizer": name, "epoch": epoch, "value": value})
final = comparison.auc_difference("SAM", "SGD", "LiRA")
effect = report.effect(final, "more than", "less than", "not significantly less than")
report.curves(
    points,
    "epoch",
    hue="optimizer",
    reference=0.0,
    reference_label="no leak",
    title=f"After training, networks with SAM leak {effect} networks with SGD",
    ylabel="mean TPR minus FPR of LiRA",
)

# %% [markdown]
# ## Early stopping
# Each line joins the epochs of one optimizer. A point further down leaks less, a point further
# right is more accurate. The comparison needs epochs of SGD with a lower and with a higher AUC than
# SAM after training. The claim's note in the verdicts has the same comparison for LiRA.

# %%
stopping = comparison.early_stopping("SAM", "RMIA", network="SGD")
compared = report.compared_accuracy(stopping, "early stopping of SGD")
report.tradeoff(
    comparison.frontier("RMIA"),
    facet=None,
    reference_label="guessing",
    title=f"At matched AUC, SAM {compared}",
    xlabel="test accuracy",
    ylabel="AUC of RMIA",
)

# %%
gaps = {}  # generalization gap of each network, by variant
for variant in comparison.variants:
    members = comparison.measured(variant, "", "member accuracy")
    gaps[variant] = members - comparison.measured(variant, "", "test accuracy")
rows = []
for name in studies:
    row = {"optimizer": name, "test accuracy": comparison.accuracy(name)}
    row["member accuracy"] = comparison.estimate(name, "", "member accuracy")
    row["AUC of LiRA"] = comparison.estimate(name, "LiRA")
    row["AUC of RMIA"] = comparison.estimate(name, "RMIA")
    scores = attack_scores[name]
    share = over_time.jackknife(trajectories.mean_entry_share, scores, rule=rate)
    row["become highly vulnerable"] = share
    rows.append(row)
caption = f"After training, {networks} networks with each optimizer; rho of SAM: {rho:g}. "
caption += "Become highly vulnerable: of the samples that are not highly vulnerable at a "
caption += "checkpoint, the share that is at the next (TPR ≥ .8, FPR ≤ .2); mean over "
caption += "checkpoints"
report.table(
    rows,
    caption=caption,
    fold="SGD and SAM: accuracy and leakage",
)

# %% [markdown]
# ## Verdicts
# Every claim has the same manipulation check: halfway through training, SAM fits members less than
# SGD. If the check fails, SAM did not slow the fit, and the claims are not tested.

# %%
halfway = max(epoch for epoch in checkpoints if epoch <= epochs / 2)
halfway_networks = [Checkpoint(name, halfway) for name in studies]
sgd_minus_sam = comparison.contrast(*halfway_networks, metric="member accuracy")
manipulation_check = {f"SAM fits members less than SGD at epoch {halfway}": sgd_minus_sam}
sgd_epochs = [*comparison.checkpoints["SGD"], "SGD"]
entry_share = trajectories.mean_entry_share
sam_scores, sgd_scores = [attack_scores["SAM"]], [attack_scores["SGD"]]
at_lira = comparison.early_stopping("SAM", "LiRA", network="SGD")
report.judge(
    claims,
    final=final,
    early_stopping=stopping,
    generalizes=comparison.accuracy_difference("SAM", "SGD"),
    into_high=over_time.contrast(entry_share, sam_scores, sgd_scores, rule=rate),
    gap=comparison.at_matched_auc("SAM", sgd_epochs, "RMIA", heights=gaps),
    notes={"early_stopping": report.listed({"at matched AUC of LiRA": at_lira})},
    checks={claim.name: manipulation_check for claim in claims},
    regime={
        "member accuracy of SGD": comparison.estimate("SGD", "", "member accuracy"),
        "test accuracy": min(comparison.accuracy(name).value for name in studies),
    },
)

# %% [markdown]
# **Limits.** SAM has one strength: in `quick` and `desk-cpu`, `rho` is .1, twice the usual value. A
# step of SAM takes two gradients, so an epoch of SAM costs twice as much as an epoch of SGD. In
# `quick`, SAM fits members less than SGD after the same number of epochs (see the table). Only the
# claims at matched AUC take this into account.

# %% [markdown]
# ## Robustness: early stopping compared with itself
# Each epoch of SGD is compared with the line through the other epochs. The true difference is 0. A
# value above 0 shows by how much the comparison can favour SAM at this AUC. A value below 0 shows
# that this epoch is less accurate than the line through the others. The line for SAM includes this
# epoch, so it favours SAM at this AUC, too. In `quick`, the AUC of SAM lies between those of SGD at
# epochs 20 and 30.

# %%
of_sgd = replace(comparison, checkpoints={"SGD": comparison.checkpoints["SGD"]})
report.table(
    of_sgd.placebo("RMIA"), caption="Test accuracy at matched AUC of RMIA", fold="Epochs of SGD"
)

# %%
report.provenance(results, seed=seed, pilots=pilots)
