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
# **Question.** An article on Dynamics (Chen et al. 2025) says that "cumulative model effort and
# uncertainty, particularly 'epistemic uncertainty'", are "strong predictors of both final and
# dynamic privacy risk" (section on difficulty). It names no measures: we take common ones.
#
# **Setup.** Judges (networks that are never attacked) measure how hard each sample is. Its *risk*
# is LiRA's TPR minus FPR after training: how often LiRA calls the sample a member of networks that
# trained on it, minus the same for other networks. *Effort* accumulates over training, such as the
# mean loss over all epochs; *uncertainty* is variance, such as that of p, the probability of the
# true class. n counts pairs of networks; each sample is a member of one network of a pair.
#
# **Controls.**
#
# 1. *Noise of the risk* (used in both answers): few networks measure the risk with noise, which
#    lowers correlations. *Corrected for noise*, a correlation is divided by the square root of the
#    correlation between the risks in two halves of the networks.
# 2. *Permuted membership*: the same attack on random membership labels.
# 3. *Class*: we also rank samples within each class.

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
decay = "cosine"  # of that rate, by the epoch (not stated)
networks = 32  # each is attacked by the others (not stated)
checkpoints = [0, 2, 4, 8, 12, 15, 20, 30, 40]  # epochs at which LiRA attacks; 0: before training
judges = 16  # networks that judge hardness; no attack knows them (ours)
share = 0.7  # of the pool that each judge trains on (ours)
readings = 8  # of the judges, whose gradient norm and prediction depth are read (ours)
rate = 0.1  # FPR across all samples that sets LiRA's threshold (ours)
halvings = 4  # divisions of the networks into halves that share no shadow model (ours)
learnt = 0.6  # least test accuracy of networks that have learnt (ours)
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
true_risk = "rank correlation with the risk, corrected for noise"
strong = 0.5  # a rank correlation above this is strong (ours)
other_networks = "judges that no attack uses"
claims = report.claims(
    report.Claim(
        "effort",
        f"The rank correlation of cumulative effort with a sample's risk is above {strong:g}",
        fails=f"The rank correlation of cumulative effort with a sample's risk is below {strong:g}",
        quantity=f"{true_risk}, mean over {len(EFFORT)} measures of effort",
        above=strong,
        margin=0.15,
        paper="article",
        quote=quote,
        section=section,
        control=other_networks,
        headline=True,
    ),
    report.Claim(
        "uncertainty",
        f"The rank correlation of uncertainty with a sample's risk is above {strong:g}",
        fails=f"The rank correlation of uncertainty with a sample's risk is below {strong:g}",
        quantity=f"{true_risk}, mean over {len(UNCERTAINTY)} measures of uncertainty",
        above=strong,
        margin=0.15,
        paper="article",
        quote=quote,
        section=section,
        control=other_networks,
        headline=True,
    ),
    report.Claim(
        "epistemic",
        f"The rank correlation of epistemic uncertainty with a sample's risk is above {strong:g}",
        quantity=f"{true_risk}, variance over training of the probability of the true class",
        above=strong,
        margin=0.15,
        paper="article",
        quote="particularly ‘epistemic uncertainty’",
        section=section,
        control=other_networks,
    ),
    report.Claim(
        "dynamic",
        "During training, TPR and FPR change faster for samples that take more effort",
        quantity="rank correlation with the speed in the plane of FPR and TPR (path length per "
        "epoch, minus that with permuted membership), mean over measures of effort",
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
others = study.judges(judges, share)
answers = study.signals(others)
early = checkpoints[2]
norms = [GradientNorm(state.at(early)) for state in others.states[:readings]]
depths = [PredictionDepth(state) for state in others.states[:readings]]
comparison = lab.compare(
    {"networks": study.trained},
    {"LiRA": LiRA()},
    also=[attacks, permuted, halves, answers, norms, depths],
)

# %%
results = comparison.results
attack_scores = over_time.read(results, attacks)
null = over_time.read(results, permuted)
scores_of_halves = over_time.read_halves(results, halves)

signals = over_time.outputs(results, answers)
measures = difficulty(signals, early)
index, labels = measures.pop("index"), measures.pop("labels")
final = signals[epochs]
first = final[:readings]
measures["gradient norm"] = mean_over_members([results[step] for step in norms], "norm", first)
measures["prediction depth"] = mean_over_members([results[step] for step in depths], "depth", first)

# %% [markdown]
# ## Correlation with the risk
# A larger value of each measure means a harder sample. *Epistemic* is the variance of p over
# training. *Aleatoric* is the mean of p (1 − p). *Ensemble variance* is the variance of p between
# networks that did not train on the sample. *Forgetting* counts epochs at which a right answer
# turns wrong. *Iteration learned* is the first epoch from which the answer stays right.
# *Inconsistency* is the share of networks without the sample that are wrong. *Memorization* is the
# mean p of networks with the sample minus that of networks without it. *Early error* is the
# distance of the output from the true class at an early epoch, *margin* the best wrong logit minus
# that of the true class.

# %%
groups = {"effort": EFFORT, "uncertainty": UNCERTAINTY}
with_risk, agreement = prediction.correlations_with_true_risk(
    scores_of_halves, measures, index, groups, rule=rate
)
kind = {}
for group, names in groups.items():
    kind |= dict.fromkeys(names, group)
values = {name: with_risk[name].value for name in measures}
order = sorted(values, key=values.__getitem__, reverse=True)
points = []
for name in order:
    setting = f"{name} ({kind[name]})" if name in kind else name
    points.append({"setting": setting, "value": with_risk[name]})
shown = {group: f"{with_risk[group].value:.2f}" for group in groups}
report.against_paper(
    points,
    title="Rank correlation with risk: {effort} for effort, {uncertainty} for uncertainty".format(
        **shown
    ),
    xlabel="rank correlation with the risk, corrected for noise",
)

# %% [markdown]
# ## Verdicts

# %%
correlations = prediction.correlations_with_risk(
    attack_scores, null, measures, index, labels, groups, rule=rate
)
rows = []
grouped = [name for name in order if name in kind]
for name in [*groups, *grouped]:
    row = {"measure": f"{name} ({kind[name]})" if name in kind else f"mean of {name}"}
    row["with risk"] = correlations[name].risk
    row["with risk, within classes"] = correlations[name].within_class
    row["with speed"] = correlations[name].speed
    rows.append(row)
caption = "Rank correlations over samples, not corrected for noise"
caption += ". Speed: path length of a sample in the plane of FPR and TPR, per epoch"
caption += f". Between the risks in two halves of the networks: {agreement}"
report.table(
    rows, caption=caption, fold="Correlations of each measure, with speed and within classes"
)

# %%
notes = {}
for name in ("effort", "uncertainty", "epistemic"):
    notes[name] = f"Without the correction for noise: {correlations[name].risk}"
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
# **Limits.** The article does not define uncertainty: another measure may correlate more. What
# counts as strong is ours, and so is the correction for noise. Intervals cover other samples and
# attacked networks, not other judges. The measures *memorization* and *inconsistency* are close to
# what LiRA itself compares.

# %%
report.provenance(results, seed=seed, pilots=pilots)
