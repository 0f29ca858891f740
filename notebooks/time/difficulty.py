# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Is a sample's difficulty a strong predictor of its risk?
#
# **Question.** An article about the paper Dynamics (Chen et al. 2025) says that "cumulative model
# effort and uncertainty, particularly 'epistemic uncertainty'", are "strong predictors of both
# final and dynamic privacy risk" (section on difficulty). It describes epistemic uncertainty as
# "the model's inherent uncertainty about a sample". The article names no measures, so we take
# common ones.
#
# **Setup.** *Judges* are networks that no attack uses. They measure how hard each sample is. A
# sample's *risk* is LiRA's TPR minus FPR after training: how often LiRA calls the sample a member
# of networks that trained on it, minus the same for other networks. Measures of *effort*
# accumulate over training, such as the mean loss. Measures of *uncertainty* are variances, such as
# the variance of p, the probability of the true class. n counts pairs of networks; each sample is
# a member of exactly one network of each pair.
#
# **Controls.**
#
# 1. *Noise of the risk*. The risk is estimated from few networks, so it is noisy, and noise lowers
#    correlations. Both answers are *corrected for noise*: the correlation with the risk in one
#    half of the networks is divided by the square root of the correlation between the risks in
#    the two halves.
# 2. *Permuted membership*: the same attack with random membership labels. A sample's TPR and FPR
#    change with these labels too. We subtract the speed of this change.
# 3. *Class*: we also rank samples within each class, so that no difference between classes enters.

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
judges = 16  # networks that measure difficulty; no attack uses them (ours)
share = 0.7  # share of the pool that each judge trains on (ours)
readings = 8  # judges whose gradient norm and prediction depth are read (ours)
rate = 0.1  # FPR across all samples that sets LiRA's threshold (ours)
halvings = 4  # divisions of the networks into halves that share no shadow model (ours)
learnt = 0.6  # test accuracy that is required of the networks (ours)
seed = 101  # evaluation seed: of design, initialisation and order
pilots = [0, 1]  # seeds on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import lab, report
from leak_atlas.localization import over_time, prediction
from leak_atlas.localization.difficulty import EFFORT, UNCERTAINTY, difficulty, mean_over_members
from leak_atlas.recipe import (
    Data,
    GradientNorm,
    LiRA,
    Model,
    PredictionDepth,
    Schedule,
    TrajectoryStudy,
)

section = "section on difficulty"
quote = "proved to be strong predictors of both final and dynamic privacy risk"
risk_correlation = "rank correlation with the risk, corrected for noise"
strong = 0.5  # a rank correlation above this is strong (ours)
judges_control = "judges that no attack uses"
claims = report.claims(
    report.Claim(
        "effort",
        f"The rank correlation of cumulative effort with a sample's risk is above {strong:g}",
        fails=f"The rank correlation of cumulative effort with a sample's risk is below {strong:g}",
        quantity=f"{risk_correlation}, mean over {len(EFFORT)} measures of effort",
        above=strong,
        margin=0.15,
        paper="article",
        quote=quote,
        section=section,
        control=judges_control,
        headline=True,
    ),
    report.Claim(
        "uncertainty",
        f"The rank correlation of uncertainty with a sample's risk is above {strong:g}",
        fails=f"The rank correlation of uncertainty with a sample's risk is below {strong:g}",
        quantity=f"{risk_correlation}, mean over {len(UNCERTAINTY)} measures of uncertainty",
        above=strong,
        margin=0.15,
        paper="article",
        quote=quote,
        section=section,
        control=judges_control,
        headline=True,
    ),
    report.Claim(
        "epistemic",
        f"The rank correlation of epistemic uncertainty with a sample's risk is above {strong:g}",
        quantity=f"{risk_correlation}, variance over training of the probability of the true class",
        above=strong,
        margin=0.15,
        paper="article",
        quote="particularly ‘epistemic uncertainty’",
        section=section,
        control=judges_control,
    ),
    report.Claim(
        "dynamic",
        "During training, a sample's TPR and FPR change faster if it takes more effort",
        quantity="rank correlation with a sample's speed in the plane of FPR and TPR (path length "
        "per epoch, minus that with permuted membership), mean over measures of effort",
        above=0.0,
        margin=0.15,
        paper="article",
        quote=quote,
        section=section,
        control="permuted membership",
    ),
    report.Claim(
        "within_class",
        "Within a class, samples that take more effort have more risk",
        quantity="rank correlation with the risk within classes, mean over measures of effort",
        above=0.1,
        margin=0.15,
        ours="our control",
        control="ranks within the class",
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
attacks = study.attacks()
permuted = study.attacks(permuted=0)
halves = study.halves(halvings, [epochs])
judge_networks = study.judges(judges, share)
judge_signals = study.signals(judge_networks)
early = checkpoints[2]  # epoch at which *early error* and *gradient norm* are measured
some_judges = judge_networks.states[:readings]
norm_steps = [GradientNorm(state.at(early)) for state in some_judges]
depth_steps = [PredictionDepth(state) for state in some_judges]
comparison = lab.compare(
    {"networks": study.trained},
    {"LiRA": LiRA()},
    also=[attacks, permuted, halves, judge_signals, norm_steps, depth_steps],
)

# %%
results = comparison.results
attack_scores = over_time.read(results, attacks)
permuted_scores = over_time.read(results, permuted)
scores_of_halves = over_time.read_halves(results, halves)

signals = over_time.outputs(results, judge_signals)
measures = difficulty(signals, early)
index, labels = measures.pop("index"), measures.pop("labels")
some_signals = signals[epochs][:readings]  # these record which judge trained on which sample
norms = [results[step] for step in norm_steps]
depths = [results[step] for step in depth_steps]
measures["gradient norm"] = mean_over_members(norms, "norm", some_signals)
measures["prediction depth"] = mean_over_members(depths, "depth", some_signals)

# %% [markdown]
# ## Correlation with the risk
# A larger value of each measure means a harder sample. Each measure is a mean over the *judges with
# the sample*, which trained on it. Three measures use *judges without the sample*, after training:
# ensemble variance, inconsistency and memorization.
#
# - *Effort*, over all checkpoints after the initialisation: *mean loss*; *spread of loss*
#   (interquartile range of the loss); *forgetting* (how often a right prediction turns wrong);
#   *iteration learned* (first checkpoint from which the prediction stays right); *margin* (largest
#   logit of a wrong class minus the logit of the true class).
# - *Uncertainty*: *epistemic* (variance of p over the same checkpoints); *aleatoric* (mean of
#   p (1 − p) over them); *ensemble variance* (variance of p between judges without the sample).
# - Neither: *last loss* (after training); *gradient norm* and *early error* (distance between the
#   posterior and the one-hot label), both at an early epoch; *prediction depth* (first part of the
#   network from which the labels of the nearest members agree with the prediction);
#   *inconsistency* (share of judges without the sample that are wrong); *memorization* (mean p of
#   judges with the sample minus mean p of judges without it).

# %%
groups = {"effort": EFFORT, "uncertainty": UNCERTAINTY}
with_risk, agreement = prediction.correlations_with_true_risk(
    scores_of_halves, measures, index, groups, rule=rate
)
group_of = {}
for group, names in groups.items():
    group_of |= dict.fromkeys(names, group)
values = {name: with_risk[name].value for name in measures}
order = sorted(values, key=values.__getitem__, reverse=True)
points = []
for name in [*groups, *order]:
    setting = f"{name} ({group_of[name]})" if name in group_of else name
    setting = f"mean of {name}" if name in groups else setting
    points.append({"setting": setting, "value": with_risk[name]})
of_effort = f"{with_risk['effort'].value:.2f} for effort"
of_uncertainty = f"{with_risk['uncertainty'].value:.2f} for uncertainty"
report.against_paper(
    points,
    title=f"Mean rank correlation with risk: {of_effort}, {of_uncertainty}",
    xlabel="rank correlation with the risk, corrected for noise",
    reference=strong,
    reference_label="border",
)

# %% [markdown]
# ## Correlation within classes and with speed
# A sample's *speed* is the length of its path in the plane of FPR and TPR, per epoch, minus that
# with permuted membership.

# %%
correlations = prediction.correlations_with_risk(
    attack_scores, permuted_scores, measures, index, labels, groups, rule=rate
)
rows = []
grouped = [name for name in order if name in group_of]
for name in [*groups, *grouped]:
    row = {"measure": f"{name} ({group_of[name]})" if name in group_of else f"mean of {name}"}
    row["with risk"] = correlations[name].risk
    row["with risk, within classes"] = correlations[name].within_class
    row["with speed"] = correlations[name].speed
    rows.append(row)
caption = "Rank correlations over samples, from all networks, not corrected for noise. The figure "
caption += "uses the risk in one half of the networks, and is corrected. The rank correlation "
caption += f"between the risks in two halves is {agreement}"
report.table(
    rows,
    caption=caption,
    fold="Measures of effort and uncertainty: correlations with risk, within classes, with speed",
)

# %% [markdown]
# ## Verdicts

# %%
notes = {}
for name in ("effort", "uncertainty", "epistemic"):
    notes[name] = f"without the correction for noise: {correlations[name].risk}"
notes["uncertainty"] += f"; epistemic uncertainty alone, corrected: {with_risk['epistemic']}"
checks = {
    "LiRA beats guessing": comparison.leak("networks", "LiRA")["auc"].low > 0.5,
    "halves of the networks agree on the risk": agreement,
}
report.judge(
    claims,
    effort=with_risk["effort"],
    uncertainty=with_risk["uncertainty"],
    epistemic=with_risk["epistemic"],
    dynamic=correlations["effort"].speed,
    within_class=correlations["effort"].within_class,
    notes=notes,
    checks={claim.name: checks for claim in claims},
    regime={
        "member accuracy": comparison.estimate("networks", "", "member accuracy"),
        "test accuracy": comparison.accuracy("networks"),
    },
)

# %% [markdown]
# **Limits.** The article does not define effort and uncertainty: other measures may correlate more
# or less. The border for a strong correlation and the correction for noise are ours. The correction
# does not remove the noise of the measures, which come from few judges (`judges`, `readings`).
# Intervals do not cover other judges. A sample with high final risk has a long path, so the claim
# on speed is not independent of the claims on risk. *Memorization* and *inconsistency* are close to
# LiRA's own comparison of networks with and without the sample.

# %%
report.provenance(results, seed=seed, pilots=pilots)
