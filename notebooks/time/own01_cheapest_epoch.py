# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does the early loss predict which samples will be exposed, and does early stopping protect them more than others?
#
# **Question.** An article about the paper Dynamics (Chen et al. 2025) says that early exposure
# "creates a crucial opportunity for proactive intervention" (section on early exposure). It names
# no signal and no intervention: we test the loss and early stopping.
#
# **Setup.** A sample's *exposure* is LiRA's TPR minus FPR: how often LiRA calls the sample a member
# of networks that trained on it, minus the same for other networks. The *most exposed* tenth of the
# samples is chosen after training. The early signal is a sample's mean loss, until an early epoch,
# in *judges* (networks that no attack uses) that trained on it. n counts pairs of networks; each
# sample is a member of one network of a pair.
#
# **Controls.** Signal and exposure come from different networks.
#
# 1. *LiRA after training* as the signal, from half of the networks (decides whether the loss
#    predicts exposure). Yes, if the rank correlations of both with exposure differ by less than .1.
# 2. *LiRA at the early epoch* is a weak signal: networks still leak little.
# 3. *All samples* (decide whether early stopping protects the most exposed samples more): early
#    stopping lowers the exposure of all samples.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data; reading note, a summary: CIFAR-10 etc.)
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
networks = 32  # networks, each attacked by the others (not stated)
checkpoints = [0, 2, 4, 8, 12, 15, 20, 30, 40]  # epochs at which LiRA attacks; 0: before training
judges = 16  # networks that measure the loss of each sample; no attack uses them (ours)
share = 0.7  # share of the pool that each judge trains on (ours)
few = 4  # judges of the smaller set (ours)
rate = 0.1  # FPR across all samples that sets LiRA's threshold (ours)
halvings = 4  # divisions of the networks into halves that share no shadow model (ours)
flags = 0.1  # share of the samples that is flagged (ours)
cheap = 8  # epoch of the early signal: a fifth of the training; one of the checkpoints
stop = 12  # epoch at which the training is stopped; one of the checkpoints
learnt = 0.6  # least test accuracy of networks that have learnt (ours)
seed = 101  # evaluation seed: of design, initialisation and order
pilots = [0, 1]  # seeds on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import lab, report
from leak_atlas.localization import over_time, prediction
from leak_atlas.localization.difficulty import difficulty, mean_loss_until
from leak_atlas.recipe import Data, LiRA, Model, Schedule, TrajectoryStudy

correlation = "rank correlation with exposure after training"
of_judges = f"mean loss of {judges} networks until epoch {cheap}"
exposed = "the most exposed samples"
others = networks // 2  # from which LiRA predicts the exposure on the others
ours = "our question"
claims = report.claims(
    report.Claim(
        "beyond_attack",
        f"The mean loss until epoch {cheap} predicts final exposure better than LiRA at epoch "
        f"{cheap}",
        fails=f"The mean loss until epoch {cheap} predicts final exposure worse than LiRA at epoch "
        f"{cheap}",
        quantity=f"{correlation}: {of_judges} minus LiRA at epoch {cheap}",
        above=0.0,
        margin=0.1,
        ours=ours,
        control="LiRA on other networks at the same epoch",
    ),
    report.Claim(
        "like_final_attack",
        f"The mean loss of other networks until epoch {cheap} predicts final exposure as well as "
        f"LiRA on {others} other networks after training (difference of rank correlations below "
        ".1)",
        fails=f"The mean loss of other networks until epoch {cheap} predicts final exposure "
        f"differently from LiRA on {others} other networks after training (difference of rank "
        "correlations above .1)",
        quantity=f"{correlation}: {of_judges} minus LiRA after training",
        within=0.1,
        ours=ours,
        control="LiRA on other networks after training",
        headline=True,
    ),
    report.Claim(
        "few_find",
        f"The loss of {few} networks until epoch {cheap} finds more than a quarter of {exposed}",
        quantity=f"share of {exposed} found, mean loss of {few} networks until epoch {cheap}",
        above=0.25,
        margin=0.2,
        ours=ours,
        control=f"chance is {flags:g}",
    ),
    report.Claim(
        "stop_protects",
        f"Stopping at epoch {stop} removes a larger share of the exposure of {exposed} than of all "
        "samples",
        fails=f"Stopping at epoch {stop} removes a smaller share of the exposure of {exposed} than "
        "of all samples",
        quantity=f"exposure at epoch {stop}, as a share of the exposure after training: most "
        "exposed minus all samples",
        below=0.0,
        margin=0.1,
        ours="our control",
        control="all samples; the most exposed are chosen on other networks",
        headline=True,
    ),
    report.Claim(
        "stop_costs",
        f"Stopping at epoch {stop} costs test accuracy",
        quantity=f"test accuracy after training minus that at epoch {stop}",
        above=0.0,
        margin=0.02,
        ours=ours,
        control="the same networks",
    ),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)
claims

# %%
study = TrajectoryStudy(
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
trained_epochs = checkpoints[1:]  # without epoch 0
halves = study.halves(halvings, trained_epochs)
answers = study.signals(study.judges(judges, share))
comparison = lab.compare(
    {"networks": study.trained},
    {"LiRA": LiRA()},
    checkpoints={"networks": [stop]},
    also=[halves, answers],
)

# %%
results = comparison.results
scores_of_halves = over_time.read_halves(results, halves)
signals = over_time.outputs(results, answers)
of_few_judges = {epoch: each[:few] for epoch, each in signals.items()}
pool_index = difficulty(signals, cheap)["index"]
all_judges, few_judges = f"loss of {judges} networks", f"loss of {few} networks"
losses = {all_judges: mean_loss_until(signals), few_judges: mean_loss_until(of_few_judges)}
foresight = prediction.foresight(scores_of_halves, losses, pool_index, flags, rate)
at_cheap, at_stop = trained_epochs.index(cheap), trained_epochs.index(stop)

# %% [markdown]
# ## Signals by epoch
# The loss is the mean over checkpoints up to the epoch on the axis. LiRA attacks at that epoch.

# %%
names = {"attack": "LiRA on other networks", all_judges: all_judges, few_judges: few_judges}
points = []
for name, label in names.items():
    for epoch, value in zip(trained_epochs, foresight[name].correlation, strict=True):
        points.append({"signal": label, "epoch": epoch, "value": value})
beyond = foresight[all_judges].beyond_attack[at_cheap]
effect = report.effect(beyond, "better", "worse", "not significantly better")
report.curves(
    points,
    "epoch",
    hue="signal",
    reference=0.0,
    reference_label="chance",
    title=f"At epoch {cheap}, the loss predicts final exposure {effect} than LiRA",
    ylabel="rank correlation with final exposure",
)

# %%
rows = []
for name, label in names.items():
    for epoch in (cheap, epochs):
        at = trained_epochs.index(epoch)
        row = {"signal": label, "until epoch": epoch}
        row["rank correlation"] = foresight[name].correlation[at]
        row["most exposed samples found"] = foresight[name].found[at]
        rows.append(row)
chance = f"Share of the most exposed samples found: chance is {flags:g}"
report.table(
    rows,
    caption=f"Rank correlation with final exposure. {chance}",
    fold="Three signals, until an early and until the last epoch",
)

# %% [markdown]
# ## Exposure after early stopping
# The most exposed samples are chosen on other networks.

# %%
exposure = prediction.exposure_of_flagged(scores_of_halves, flags, rate)
points = []
groups = {"most exposed": exposure.flagged_left, "all samples": exposure.everybody_left}
for group, left in groups.items():
    for epoch, value in zip(trained_epochs, left, strict=True):
        points.append({"samples": group, "epoch": epoch, "value": value})
protects = exposure.left_difference[at_stop]
words = (
    "protects the most exposed samples less than average",
    "protects the most exposed samples more than average",
    "does not protect the most exposed samples significantly more than average",
)
effect = report.effect(protects, *words)
report.curves(
    points,
    "epoch",
    hue="samples",
    reference=1.0,
    reference_label="exposure after training",
    title=f"Stopping at epoch {stop} {effect}",
    ylabel="share of the final exposure",
)

# %% [markdown]
# ## Verdicts

# %%
stopped = comparison.checkpoints["networks"][0]
remaining = report.listed({name: left[at_stop] for name, left in groups.items()})
of_lira = foresight["attack"].correlation[-1].value
unlimited = max(0.0, of_lira) ** 0.5
notes = {
    "like_final_attack": f"LiRA's own correlation is {of_lira:.3f}. With unlimited networks, it "
    f"would be {unlimited:.2f}, the root of {of_lira:.3f}",
    "stop_protects": f"remaining share of exposure: {remaining}",
}
checks = {
    "the AUC of LiRA is above .5": comparison.leak("networks", "LiRA")["auc"].low > 0.5,
    "the most exposed samples are exposed on other networks": exposure.flagged[-1],
}
report.judge(
    claims,
    beyond_attack=beyond,
    like_final_attack=foresight[all_judges].beyond_final_attack[at_cheap],
    few_find=foresight[few_judges].found[at_cheap],
    stop_protects=protects,
    stop_costs=comparison.accuracy_difference("networks", stopped),
    notes=notes,
    checks={claim.name: checks for claim in claims},
    regime={
        "member accuracy": comparison.estimate("networks", "", "member accuracy"),
        "test accuracy": comparison.accuracy("networks"),
    },
)

# %% [markdown]
# **Limits.** With more networks, LiRA would predict better. The exposure after early stopping
# depends on the epoch and on LiRA's threshold. Judges train on a larger share of the pool than
# attacked networks. The loss is averaged over checkpoints, LiRA is not. The loss of networks that
# did not train on the sample is not tested, so the loss may only show how hard a sample is. Stopped
# networks are checkpoints of the whole schedule: their learning rate is still above 0.

# %%
report.provenance(results, seed=seed, pilots=pilots)
