# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does a sample's risk rise with its memorization score, and more than with its difficulty?
#
# **Question.** WeMem (Shang et al. 2025), slides on motivation: "easy-to-memorize training data is
# more vulnerable to serious privacy threats", and LiRA's TPR "is positively correlated with the
# model's memorization".
#
# **Setup.** A *memorization score* says how much a network's success on a sample depends on
# training with it: the mean success of networks that train with it, minus that of other networks.
# Success is a right prediction (the slides' *accuracy score*) or the confidence (our *confidence
# score*). The samples are sorted by a score and cut into six equal parts (*sixths*). *Risk* is the
# TPR or the AUC of an attack: LiRA or *Conf*, a threshold on the confidence. The targets are pruned
# in five rounds; n counts them.
#
# **Controls.**
#
# 1. *Non-members of the same sixth*. The first answer is yes if LiRA's TPR is higher in the highest
#    sixth by accuracy score than in the others. LiRA has one threshold for all samples, so its FPR
#    may be higher, too. The AUC compares members and non-members of one sixth.
# 2. *Difficulty* is one minus the mean confidence of networks that did not train on the sample. It
#    decides the second answer: yes if AUC rises more with the confidence score at nearly equal
#    difficulty than with difficulty at nearly equal score.
# 3. *Permuted scores* show the AUC of sixths of random samples.

# %% tags=["parameters"]
data = "digits-bits"  # data set (slides: CIFAR10, CIFAR100, CINIC, Texas, Location, Purchase)
pixels = 0  # side of the images, pixels, after area resize; 0: as they are (published code: 32)
model = "fc"  # architecture (slides: ResNet18, VGG16, DenseNet121; FC for tables)
width = 256  # units of the first layer, or channels of stage 1 (published code: 256, 64)
stem = "conv3"  # first layer of a ResNet (published code: conv3-pool)
pool = 1740  # samples of train and test part; half for the targets, half for the attacker (ours)
dev = 88  # samples set apart in each half; half of the others are members (published code: 10 %)
epochs = 100  # epochs of the dense network (published code: 100)
round_epochs = 21  # epochs of a round (published code: 21)
batch = 128  # samples a step (published code: 128)
lr = 0.001  # learning rate of Adam (published code: 0.001)
patience = None  # epochs without a better dev accuracy until a stop (published code: 5)
targets = 18  # target networks, which share one half of the pool (published code: 1)
shadows = 5  # shadow models, which share the other half (published code: 5)
networks = 32  # networks that give the scores, each on .7 of the pool (Feldman & Zhang: 2,000)
score_epochs = 30  # epochs of each network that gives scores (not stated; a fork of the code: 30)
rounds = 5  # rounds, the first of which removes nothing (slides: 5)
sparsity = 0.6  # share of the weights that the last round has removed (slides: mainly .6)
parts = 6  # equal parts of the samples by their scores (ours)
strata = 6  # strata of nearly equal difficulty, or of nearly equal score (ours)
fpr = 0.05  # FPR of LiRA over all samples, at which its TPR is read (not stated)
learnt = 0.6  # test accuracy that is required of the dense networks (ours)
seed = 101  # evaluation seed: of design, initialisation and order
pilots = [0, 1, 7]  # seeds on which claims, borders and controls were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import audit, lab, report
from leak_atlas.localization import samples
from leak_atlas.recipe import Data, LiRA, Memorization, Model, Schedule, Threshold, WindowStudy

motivation = "slides on motivation"
top = "sixth with the highest accuracy scores minus the mean of the other five sixths"
area = "AUC within a sixth of the samples"
halves_gap = "AUC (mean of Conf and LiRA), upper minus lower half of the samples"
directions = (
    "halves by confidence score at nearly equal difficulty, minus the same for halves by "
    "difficulty at nearly equal score"
)
smallest_effect = 0.05  # of interest: in quick, a sixth has some 140 samples
claims = report.claims(
    report.Claim(
        "tpr_rises",
        "LiRA's TPR is higher for members with the highest accuracy scores (memorization) than for "
        "others",
        fails="LiRA's TPR is lower for members with the highest accuracy scores (memorization) "
        "than for others",
        quantity=f"TPR of LiRA at one threshold (FPR of {fpr:.0%} over all samples): {top}",
        above=0.0,
        margin=smallest_effect,
        paper=motivation,
        quote="TPR of the recent MIA—LiRA is positively correlated with the model's memorization",
        control="FPR of the same sixths",
        headline=True,
    ),
    report.Claim(
        "beyond_difficulty",
        "AUC rises more with the confidence score at nearly equal difficulty than with difficulty "
        "at nearly equal score",
        fails="AUC rises less with the confidence score at nearly equal difficulty than with "
        "difficulty at nearly equal score",
        quantity=f"{halves_gap}: {directions}",
        above=0.0,
        margin=smallest_effect,
        ours="our control",
        control="score and difficulty are measured by separate networks",
        headline=True,
    ),
    report.Claim(
        "risk_rises",
        "AUC is higher among samples with the highest memorization scores than among others",
        quantity=f"{area}: {top}; the lower of two differences (Conf, LiRA)",
        above=0.0,
        margin=smallest_effect,
        paper=motivation,
        quote="easy-to-memorize training data is more vulnerable to serious privacy threats",
        control="non-members of the same sixth; permuted scores",
    ),
    regime={"dense member accuracy": 0.95, "dense test accuracy": learnt},
)
claims

# %% [markdown]
# ## LiRA's TPR and FPR by memorization score
# Many samples have an accuracy score of 0 (in `desk-cpu`, a third). Their order is arbitrary, and
# so is their sixth.

# %%
study = WindowStudy(
    Data(data, pixels or None, joined=True),
    Model(model, width, stem),
    Schedule(epochs, batch, "adam", lr, decay="constant", patience=patience),
    fine_tuning=round_epochs,
    pool=pool,
    dev=dev,
    targets=targets,
    shadows=shadows,
    seed=seed,
    precision=precision,
    sparsity=sparsity,
    rounds=rounds,
    judges=networks,
    score_epochs=score_epochs,
)

# %%
# Each half of the networks that give the scores measures every score, so that errors are separate.
scoring_networks = study.ranking.models
halves = [scoring_networks[::2], scoring_networks[1::2]]
slides_score = Memorization(scoring_networks, "accuracy")
slides_halves = [Memorization(half, "accuracy") for half in halves]
our_score = study.ranking
our_halves = [Memorization(half, "confidence") for half in halves]
permuted = slides_score.shuffle(0)
comparison = lab.compare(
    {"dense": study.dense, "pruned": study.base},
    {"Conf": Threshold(), "LiRA": LiRA("offline_cdf")},
    targets,
    also=[slides_score, slides_halves, our_score, our_halves, permuted],
)
results = comparison.results
conf, lira = comparison.attacks["pruned", "Conf"], comparison.attacks["pruned", "LiRA"]

# %%
lira_rates = samples.rates_by_part(lira, results[slides_score], parts, fpr)
part_names = ["lowest", *map(str, range(2, parts)), "highest"]
points = []
for part, (tpr, fpr_of_part) in zip(part_names, lira_rates, strict=True):
    members = {"samples": "members (TPR)", "value": audit.mean_ci(tpr)}
    non_members = {"samples": "non-members (FPR)", "value": audit.mean_ci(fpr_of_part)}
    points += [{"part": part} | members, {"part": part} | non_members]
tpr_rise = samples.rise(lira_rates[:, 0])
how_high = report.effect(
    tpr_rise, "significantly higher", "significantly lower", "not significantly higher"
)
report.profile(
    points,
    hue="samples",
    reference=None,
    xlabel="sixth of the samples, by accuracy score",
    ylabel="share of the samples that LiRA calls members",
    title=f"LiRA's TPR is {how_high} for the highest memorization scores",
)

# %% [markdown]
# ## AUC by score and by difficulty


# %%
def difficulty(scores):
    """The ranking by the error of networks that did not train on the sample."""
    return scores | {"score": -scores["outside"]}


def mean_of_attacks(measure, *arguments):
    """Mean over the attacks Conf and LiRA of what the function `measure` returns."""
    return (measure(conf, *arguments) + measure(lira, *arguments)) / 2


rankings = {
    "accuracy score": results[slides_score],
    "confidence score": results[our_score],
    "difficulty": difficulty(results[our_score]),
    "permuted scores": results[permuted],
}
areas = {}
for name, ranking in rankings.items():
    areas[name] = mean_of_attacks(samples.auc_by_part, ranking, parts)

# %%
points = []
for name, values in areas.items():
    for part, auc in zip(part_names, values, strict=True):
        points.append({"sixths by": name, "part": part, "value": audit.mean_ci(auc)})
words = "significantly higher", "significantly lower", "not significantly higher"
score_effect = report.effect(samples.rise(areas["confidence score"]), *words)
difficulty_effect = report.effect(samples.rise(areas["difficulty"]), *words)
title = (
    f"Highest sixth: AUC is {score_effect} by confidence score, {difficulty_effect} by difficulty"
)
if score_effect == difficulty_effect:
    title = f"AUC is {score_effect} in the highest sixth, by confidence score and by difficulty"
report.profile(
    points,
    hue="sixths by",
    reference_label="guessing",
    xlabel="sixth of the samples",
    ylabel="AUC (mean of Conf and LiRA)",
    title=title,
)

# %% [markdown]
# ## Rise of AUC and TPR with score and difficulty
# One half of the networks measures the score, the other half the difficulty. *High minus low
# score*: samples of nearly equal difficulty are cut in two halves by score, and the AUC of the
# lower half is subtracted. For the second row, score and difficulty are exchanged. A *rise* is the
# sixth with the highest scores minus the mean of the other sixths.

# %%
score_first, score_second = [results[half] for half in our_halves]
difficulty_first, difficulty_second = difficulty(score_first), difficulty(score_second)
by_score = mean_of_attacks(samples.rise_within_strata, score_first, difficulty_second, strata)
by_difficulty = mean_of_attacks(samples.rise_within_strata, difficulty_second, score_first, strata)
tpr_minus_fpr = samples.rise(lira_rates[:, 0] - lira_rates[:, 1])
conf_rates = samples.rates_by_part(conf, results[slides_score], parts)
conf_rise = samples.rise(conf_rates[:, 0])

# %%
# Rank correlations between the two halves of the networks.
accuracy_score_agreement = samples.agreement(*[results[half] for half in slides_halves])
confidence_score_agreement = samples.agreement(score_first, score_second)
difficulty_agreement = samples.agreement(difficulty_first, difficulty_second)
numbers = {
    "AUC, high minus low confidence score, nearly equal difficulty": audit.mean_ci(by_score),
    "AUC, high minus low difficulty, nearly equal confidence score": audit.mean_ci(by_difficulty),
    "LiRA's TPR minus FPR: rise with the accuracy score": tpr_minus_fpr,
    "Conf's TPR: rise with the accuracy score": conf_rise,
}
rows = [{"quantity": name, "value": value} for name, value in numbers.items()]
report.table(rows, caption=f"AUC: mean of Conf and LiRA. Mean over {targets} targets")

# %% [markdown]
# ## Verdicts

# %%
auc_rises = []
for attack in (conf, lira):
    auc_rises.append(samples.rise(samples.auc_by_part(attack, results[slides_score], parts)))
accuracy_score_check = {"separate networks agree on the accuracy score": accuracy_score_agreement}
difficulty_checks = {
    "separate networks agree on the confidence score": confidence_score_agreement,
    "separate networks agree on difficulty": difficulty_agreement,
}
noise_note = ""
if confidence_score_agreement.high < difficulty_agreement.low:
    noise_note = (
        "noise in the score can favour difficulty: the rank correlation between separate networks "
        f"is {confidence_score_agreement} for the score, {difficulty_agreement} for difficulty"
    )
report.judge(
    claims,
    tpr_rises=tpr_rise,
    beyond_difficulty=audit.paired_difference(by_score, by_difficulty),
    risk_rises=audit.least(auc_rises),
    notes={
        "tpr_rises": f"by Conf's TPR, the same difference is {conf_rise}",
        "beyond_difficulty": noise_note,
    },
    checks={
        "tpr_rises": accuracy_score_check,
        "beyond_difficulty": difficulty_checks,
        "risk_rises": accuracy_score_check,
    },
    regime={
        "dense member accuracy": comparison.estimate("dense", "", "member accuracy"),
        "dense test accuracy": comparison.accuracy("dense"),
    },
)

# %% [markdown]
# **Limits.** Networks that train on a sample are nearly always right about it. So its accuracy
# score is nearly its difficulty. Conf's AUC within a sixth compares confidence with and without
# training on the samples, as the confidence score does. LiRA compares a target with networks that
# did not train on the sample, so its scores of members rise with difficulty by construction. Conf's
# TPR may fall where its AUC within a sixth rises because networks stay less confident in memorized
# samples than in others, even after training (a guess). The slides speak of a model's memorization;
# we measure it by sample. All targets draw their members from one half of the samples.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
