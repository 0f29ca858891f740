# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Are 70 % of the samples that LiRA flags after training already flagged at 75 % of the training?
#
# **Question.** An article about the paper Dynamics (Chen et al. 2025) says that "over 70% of
# samples that will eventually be vulnerable show this predisposition by just epoch 150" (section on
# early exposure). The article does not say how long the training is. We judge 75 % of the training
# (epoch 150 of 200) and 37.5 % (epoch 150 of 400).
#
# **Setup.** A sample's *vulnerability* is LiRA's TPR minus FPR: how often LiRA calls the sample a
# member of networks that trained on it, minus the same for other networks. At each checkpoint,
# LiRA *flags* the most vulnerable tenth of the samples. Samples that *end vulnerable* are those
# flagged after training. These definitions are ours. n counts pairs of networks; each sample is a
# member of exactly one network of each pair.
#
# **Controls.**
#
# 1. *A constant learning rate*, for the answer at 75 %. In both answers the learning rate falls
#    to 0, so flags may change little late in training. The constant rate is lower than the initial
#    value of the falling rate.
# 2. *Other networks*. Flags at two epochs of the same networks share errors, which can increase the
#    share of samples that are flagged at both. In this control, one half of the networks decides
#    which samples end vulnerable, and the other half flags.
# 3. *Judges*, networks that no attack uses, measure which samples are hard.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data; reading note: CIFAR-10 and others)
pixels = 8  # side of the images, pixels, after area resize; 0: as they are
model = "cnn4"  # architecture (reading note: CNNs of several depths, WRN28-2)
width = 8  # channels of stage 1 (not stated)
pool = 600  # samples, half of them members of a network (not stated)
test = 200  # test samples (not stated)
epochs = 40  # epochs of training (not stated; the article calls epoch 150 early)
batch = 50  # samples a step (not stated)
optimizer = "sgd"  # optimizer (article: SGD)
lr = 0.05  # learning rate at the start (not stated)
decay = "cosine"  # decay of the learning rate over the epochs (not stated)
networks = 32  # networks, each attacked by the others (not stated)
checkpoints = [0, 2, 4, 8, 12, 15, 20, 30, 40]  # epochs at which LiRA attacks; 0: before training
constant_lr = 0.03  # constant learning rate, of the control (ours)
judges = 16  # networks that measure which samples are hard; no attack uses them (ours)
share = 0.7  # share of the pool that each judge trains on (ours)
rate = 0.1  # FPR across all samples that sets LiRA's threshold (ours)
halvings = 4  # divisions of the networks into halves that share no shadow model (ours)
flags = 0.1  # share of the samples that is flagged (ours)
early = 15  # epoch of this page that stands for epoch 150 of 400; one of the checkpoints
late = 30  # epoch of this page that stands for epoch 150 of 200; one of the checkpoints
learnt = 0.6  # test accuracy that is required of the networks (ours)
seed = 101  # evaluation seed: of design, initialisation and order
pilots = [0, 1]  # seeds on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace

from leak_atlas import lab, report
from leak_atlas.localization import over_time, prediction
from leak_atlas.localization.difficulty import difficulty
from leak_atlas.recipe import Data, LiRA, Model, Schedule, TrajectoryStudy

early_part = f"{100 * early / epochs:g} %"
late_part = f"{100 * late / epochs:g} %"
section = "section on early exposure"
quote = "over 70% of samples that will eventually be vulnerable show this predisposition"
vulnerable = "the samples that end vulnerable"
share_flagged = f"of {vulnerable}, the share that is flagged on the same networks at"
random_flags = f"flags at random would reach {flags:g}"
claims = report.claims(
    report.Claim(
        "by_late",
        f"At {late_part} of the training, LiRA flags over 70 % of the samples that end vulnerable",
        fails=f"At {late_part} of the training, LiRA flags less than 70 % of the samples that end "
        "vulnerable",
        quantity=f"{share_flagged} {late_part} of the training",
        above=0.7,
        margin=0.1,
        paper="article",
        quote=quote,
        section=section,
        control=random_flags,
        headline=True,
    ),
    report.Claim(
        "by_early",
        f"At {early_part} of the training, LiRA flags over 70 % of the samples that end vulnerable",
        fails=f"At {early_part} of the training, LiRA flags less than 70 % of the samples that end "
        "vulnerable",
        quantity=f"{share_flagged} {early_part} of the training",
        above=0.7,
        margin=0.1,
        paper="article",
        quote=quote,
        section=section,
        control=random_flags,
        headline=True,
    ),
    report.Claim(
        "constant_rate",
        f"At {late_part} of a training with a constant learning rate, LiRA flags over 70 % of "
        f"{vulnerable}",
        quantity=f"{share_flagged} {late_part} of the training, constant learning rate",
        above=0.7,
        margin=0.1,
        ours="our control",
        control="a constant learning rate; the same initialisation and members",
    ),
    report.Claim(
        "hard_early",
        f"At {early_part} of the training, hard samples are more vulnerable than easy samples",
        quantity=f"mean TPR minus FPR at epoch {early}: hardest quarter of the samples minus "
        "easiest quarter",
        above=0.0,
        margin=0.1,
        paper="article",
        quote="samples difficult for the model to learn become vulnerable early in training",
        section="summary",
        control="hardness is measured by networks that no attack uses",
    ),
    report.Claim(
        "other_networks",
        f"After training, LiRA flags more than half of {vulnerable} on other networks",
        quantity=f"of {vulnerable} on one half of the networks, the share that is flagged on the "
        "other half after training",
        above=0.5,
        margin=0.15,
        ours="our control",
        control="halves that share neither targets nor shadow models",
    ),
    regime={"member accuracy (falling rate)": 0.95, "test accuracy (falling rate)": learnt},
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
constant = replace(study.schedule, lr=constant_lr, decay="constant")
studies = {"falling rate": study, "constant rate": replace(study, schedule=constant)}
halves = {name: variant.halves(halvings) for name, variant in studies.items()}
attacks = study.attacks()
judge_signals = study.signals(study.judges(judges, share))
comparison = lab.compare(
    {name: variant.trained for name, variant in studies.items()},
    {"LiRA": LiRA()},
    also=[halves, attacks, judge_signals],
)

# %%
results = comparison.results
attack_scores = over_time.read(results, attacks)
shares = {}
for name, divisions in halves.items():
    scores_of_halves = over_time.read_halves(results, divisions)
    shares[name] = prediction.early_flags(scores_of_halves, flags, rate)

signals = over_time.outputs(results, judge_signals)
measures = difficulty(signals, early)
hardness = {"hardness": measures["mean loss"], "pool": measures["index"]}

# %% [markdown]
# ## Samples that end vulnerable and are already flagged
# Each panel shows one learning rate. All flags come from halves of the networks. *On the same
# networks*: one half decides which samples end vulnerable, and the same half flags. Its share after
# training is 1 by definition. *On other networks*: the other half flags. The title gives shares for
# the falling rate, on the same networks.

# %%
points = []
for name, flagged_shares in shares.items():
    sides = {"on the same networks": flagged_shares.same, "on other networks": flagged_shares.other}
    for side, values in sides.items():
        for epoch, value in zip(checkpoints, values, strict=True):
            point = {"learning rate": name, "flagged": side, "epoch": epoch}
            points.append(point | {"value": value})
at_early, at_late = checkpoints.index(early), checkpoints.index(late)
flagged_same = shares["falling rate"].same
early_percent = f"{100 * flagged_same[at_early].value:.0f} %"
late_percent = f"{100 * flagged_same[at_late].value:.0f} %"
report.curves(
    points,
    "epoch",
    hue="flagged",
    facet="learning rate",
    reference=0.7,
    reference_label="article",
    title=f"At epoch {late}, LiRA flags {late_percent} of samples that end vulnerable; "
    f"at epoch {early}, {early_percent}",
    ylabel="share already flagged",
)

# %%
rows = []
for name, flagged_shares in shares.items():
    row = {"learning rate": name}
    row["member accuracy"] = comparison.estimate(name, "", "member accuracy")
    row["test accuracy"] = comparison.accuracy(name)
    row[f"flagged, epoch {early}"] = flagged_shares.same[at_early]
    row[f"flagged, epoch {late}"] = flagged_shares.same[at_late]
    row["flagged on other networks, after training"] = flagged_shares.other[-1]
    rows.append(row)
caption = f"Flagged: of {vulnerable}, the share that is flagged, on the same networks unless "
caption += f"stated. Each half has {networks // 2} networks"
report.table(rows, caption=caption, fold="Both learning rates: accuracy and flagged samples")

# %% [markdown]
# ## Hard samples
# The line shows the mean TPR minus FPR of the hardest quarter of the samples, minus that of the
# easiest quarter, with the falling learning rate. A sample's hardness is the loss of the judges
# that trained on it, averaged over training.

# %%
differences = over_time.jackknife(prediction.hard_minus_easy, attack_scores, **hardness, rule=rate)
points = []
for epoch, value in zip(checkpoints, differences, strict=True):
    points.append({"epoch": epoch, "value": value})
effect = report.effect(differences[at_early], "more", "less", "not significantly more")
report.curves(
    points,
    "epoch",
    reference=0.0,
    title=f"At epoch {early}, hard samples are {effect} vulnerable than easy samples",
    ylabel="TPR minus FPR: hard minus easy samples",
)

# %% [markdown]
# ## Verdicts

# %%
checks = {}
for name in studies:
    checks[f"LiRA beats guessing, {name}"] = comparison.leak(name, "LiRA")["auc"].low > 0.5
flagged_at_constant_rate = shares["constant rate"].same[at_late]
member_accuracies = {name: comparison.estimate(name, "", "member accuracy") for name in studies}
notes = {
    "by_late": report.listed({"with a constant learning rate": flagged_at_constant_rate}),
    "constant_rate": report.listed({"member accuracy": member_accuracies["constant rate"]}),
}
report.judge(
    claims,
    notes=notes,
    by_late=flagged_same[at_late],
    by_early=flagged_same[at_early],
    constant_rate=flagged_at_constant_rate,
    hard_early=differences[at_early],
    other_networks=shares["falling rate"].other[-1],
    checks={claim.name: checks for claim in claims},
    regime={
        "member accuracy (falling rate)": member_accuracies["falling rate"],
        "test accuracy (falling rate)": comparison.accuracy("falling rate"),
    },
)

# %% [markdown]
# **Limits.** The article speaks of complex data sets; small images are simpler. The required member
# and test accuracies apply to the falling rate alone; networks with a constant rate can be below
# them (see the table). Each half of the networks has fewer shadow models for LiRA than all networks
# together. Hard and easy samples are compared at one epoch: the claim does not say that hard
# samples become vulnerable earlier.

# %%
report.provenance(results, seed=seed, pilots=pilots)
