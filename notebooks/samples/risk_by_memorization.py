# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does a sample's risk rise with its memorization score?
#
# **Question.** WeMem (Shang et al. 2025), slides on motivation: "easy-to-memorize training data is
# more vulnerable to serious privacy threats", and LiRA's TPR "is positively correlated with the
# model's memorization".
#
# **Setup.** A *memorization score* says how much a network's success on a sample depends on
# training with it. The slides' *accuracy score* is the share of right predictions by networks with
# the sample, minus that by networks without it. Our *confidence score* uses the mean confidence.
# The attacks are LiRA and *Conf*, a threshold on the confidence. The targets are pruned in five
# rounds; n counts them.
#
# **Controls.**
#
# 1. *Difficulty* (decides whether memorization predicts risk better than difficulty): the error of
#    networks that did not train on the sample. AUC is compared by score at nearly equal
#    difficulty, and by difficulty at nearly equal score.
# 2. *Non-members with the same scores*, and permuted scores.

# %% tags=["parameters"]
data = "digits-bits"  # data set (slides: CIFAR10, CIFAR100, CINIC, Texas, Location, Purchase)
pixels = 0  # side of the images, pixels, after area resize; 0: as they are (published code: 32)
model = "fc"  # architecture (slides: ResNet18, VGG16, DenseNet121; FC for tables)
width = 256  # units of the first layer, or channels of stage 1 (published code: 256, 64)
stem = "conv3"  # first layer of a ResNet (published code: conv3-pool)
pool = 1740  # samples of train and test part; half the targets', half the attacker's (ours)
dev = 88  # samples of each half set apart; the rest is half member (published code: a tenth)
epochs = 100  # epochs of the dense network (published code: 100)
round_epochs = 21  # epochs of a round (published code: 21)
batch = 128  # samples a step (published code: 128)
lr = 0.001  # learning rate of Adam (published code: 0.001)
patience = None  # epochs without a better dev accuracy until a stop (published code: 5)
targets = 18  # target networks, which share one half of the pool (published code: 1)
shadows = 5  # shadow models, which share the other half (published code: 5)
networks = 32  # networks that give the scores, each on .7 of the pool (Feldman & Zhang: 2,000)
score_epochs = 30  # epochs of each of them (not stated; a fork of the published code: 30)
rounds = 5  # rounds, the first of which removes nothing (slides: 5)
sparsity = 0.6  # share of the weights that the last round has removed (slides: mainly .6)
parts = 6  # equal parts of the samples by their scores (ours)
strata = 6  # strata of nearly equal difficulty (ours)
fpr = 0.05  # FPR of LiRA over all samples, at which its TPR is read (not stated)
learnt = 0.6  # least test accuracy of a dense network that has learnt (ours)
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
rises = "rise of AUC (mean of Conf and LiRA)"
directions = "with the confidence score at equal difficulty, minus with difficulty at equal score"
few_samples = 0.05  # smallest effect of interest: a sixth has some 140 samples
claims = report.claims(
    report.Claim(
        "tpr_rises",
        "LiRA's TPR is higher for members with high memorization scores than for other members",
        fails="LiRA's TPR is lower for members with high memorization scores than for other "
        "members",
        quantity=f"TPR of LiRA at one threshold (FPR of {fpr:.0%} over all samples): {top}",
        above=0.0,
        margin=few_samples,
        paper=motivation,
        quote="TPR of the recent MIA—LiRA is positively correlated with the model's memorization",
        control="FPR of the same sixths",
        headline=True,
    ),
    report.Claim(
        "beyond_difficulty",
        "AUC rises more with the memorization score than with the difficulty of a sample",
        fails="AUC rises less with the memorization score than with the difficulty of a sample",
        quantity=f"{rises}: {directions}",
        above=0.0,
        margin=few_samples,
        ours="our control",
        control="score and difficulty are measured by separate networks",
        headline=True,
    ),
    report.Claim(
        "risk_rises",
        "AUC is higher among samples with high memorization scores than among other samples",
        quantity=f"{area}: {top}; the lower of the differences of Conf and of LiRA",
        above=0.0,
        margin=few_samples,
        paper=motivation,
        quote="easy-to-memorize training data is more vulnerable to serious privacy threats",
        control="non-members of the same sixth; permuted scores",
    ),
    regime={"dense member accuracy": 0.95, "dense test accuracy": learnt},
)
claims

# %% [markdown]
# ## LiRA's TPR and FPR by memorization score
# LiRA has one threshold for all samples, so that the FPR differs among the sixths, too. Most
# samples have an accuracy score of 0: their order is arbitrary.

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
# Two halves of the networks that give the scores measure everything twice, with separate errors.
judges = study.ranking.models
halves = [judges[::2], judges[1::2]]
slides_score = Memorization(judges, "accuracy")
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
names = ["lowest", *map(str, range(2, parts)), "highest"]
points = []
for part, (tpr, fpr_of_part) in zip(names, lira_rates, strict=True):
    members = {"samples": "members (TPR)", "value": audit.mean_ci(tpr)}
    non_members = {"samples": "non-members (FPR)", "value": audit.mean_ci(fpr_of_part)}
    points += [{"part": part} | members, {"part": part} | non_members]
tpr_rise = samples.rise(lira_rates[:, 0])
words = "significantly higher", "significantly lower", "not significantly higher"
effect = report.effect(tpr_rise, *words)
report.profile(
    points,
    hue="samples",
    reference=None,
    xlabel="sixth of the samples, by accuracy score",
    ylabel="share of the samples that LiRA calls members",
    title=f"LiRA's TPR is {effect} for the highest memorization scores",
)

# %% [markdown]
# ## AUC by score and by difficulty
# Members are compared with non-members of the same sixth.


# %%
def difficulty(scores):
    """The ranking by the error of networks without the sample."""
    return scores | {"score": -scores["outside"]}


def of_both(measure, *arguments):
    """Mean over the attacks Conf and LiRA of what a function measures."""
    return (measure(conf, *arguments) + measure(lira, *arguments)) / 2


rankings = {
    "accuracy score": results[slides_score],
    "confidence score": results[our_score],
    "difficulty": difficulty(results[our_score]),
    "permuted scores": results[permuted],
}
areas = {}
for name, ranking in rankings.items():
    areas[name] = of_both(samples.auc_by_part, ranking, parts)

# %%
points = []
for name, values in areas.items():
    for part, each in zip(names, values, strict=True):
        points.append({"sixths by": name, "part": part, "value": audit.mean_ci(each)})
words = "significantly rises", "significantly falls", "does not significantly rise"
score_effect = report.effect(samples.rise(areas["confidence score"]), *words)
difficulty_effect = report.effect(samples.rise(areas["difficulty"]), *words)
report.profile(
    points,
    hue="sixths by",
    reference_label="guessing",
    xlabel="sixth of the samples",
    ylabel="AUC (mean of Conf and LiRA)",
    title=f"AUC {score_effect} with the confidence score, {difficulty_effect} with difficulty",
)

# %% [markdown]
# ## Rise of AUC and TPR with score and difficulty
# One half of the networks measures the score, the other half measures the difficulty. *Rise of
# AUC*: the half of the samples with higher scores minus the half with lower scores, at nearly equal
# difficulty (and the same with score and difficulty exchanged). *Rise of TPR*: the sixth with the
# highest scores minus the mean of the other sixths.

# %%
first, second = [results[half] for half in our_halves]
hard_first, hard_second = difficulty(first), difficulty(second)
by_score = of_both(samples.rise_within_strata, first, hard_second, strata)
by_difficulty = of_both(samples.rise_within_strata, hard_second, first, strata)
tpr_minus_fpr = samples.rise(lira_rates[:, 0] - lira_rates[:, 1])
conf_rates = samples.rates_by_part(conf, results[slides_score], parts)
conf_rise = samples.rise(conf_rates[:, 0])

# %%
slides_agree = samples.agreement(*[results[half] for half in slides_halves])
ours_agree = samples.agreement(first, second)
hard_agree = samples.agreement(hard_first, hard_second)
numbers = {
    "AUC: rise with the confidence score at equal difficulty": audit.mean_ci(by_score),
    "AUC: rise with difficulty at equal confidence score": audit.mean_ci(by_difficulty),
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
slides_reliable = {"separate networks agree on the accuracy score": slides_agree}
both_reliable = {
    "separate networks agree on the confidence score": ours_agree,
    "separate networks agree on difficulty": hard_agree,
}
report.judge(
    claims,
    tpr_rises=tpr_rise,
    beyond_difficulty=audit.paired_difference(by_score, by_difficulty),
    risk_rises=audit.least(auc_rises),
    notes={
        "tpr_rises": f"the same difference of Conf's TPR: {conf_rise}",
        "beyond_difficulty": "noise can favour difficulty: the rank correlation between separate "
        f"networks is {ours_agree} for the score, {hard_agree} for difficulty"
        if ours_agree.high < hard_agree.low
        else "",
    },
    checks={
        "tpr_rises": slides_reliable,
        "beyond_difficulty": both_reliable,
        "risk_rises": slides_reliable,
    },
    regime={
        "dense member accuracy": comparison.estimate("dense", "", "member accuracy"),
        "dense test accuracy": comparison.accuracy("dense"),
    },
)

# %% [markdown]
# **Limits.** Networks that train on a sample are nearly always right about it. So its score is
# nearly its difficulty, and Conf's AUC within a sixth nearly repeats the score. LiRA compares a
# target with networks that did not train on the sample, so it follows difficulty by construction.
# The slides speak of a model's memorization; we measure it by sample. All targets share one half of
# the samples.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
