# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does a sample's risk rise with its memorization score, or with its difficulty?
#
# **Question.** WeMem (Shang et al. 2025), slides on motivation: "easy-to-memorize training data is more
# vulnerable to serious privacy threats", and the TPR of the attack LiRA "is positively correlated with
# the model's memorization".
#
# **Setup.** A memorization score says how much a network's success on a sample depends on training with
# it. The slides' score is P[prediction right] across networks that train on the sample, minus the same
# across networks that do not. Our score takes the mean confidence instead. The attacked networks
# are pruned in rounds.
#
# **Controls.** Control 1 decides.
#
# 1. *Difficulty*: the error of networks without the sample. We compare high with low scores at nearly
#    equal difficulty, and the reverse.
# 2. *Non-members of the same score*, and permuted scores.

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
decay = "constant"  # of that rate, by the epoch (published code: constant)
patience = None  # epochs without a better dev accuracy until a stop (published code: 5)
targets = 10  # target networks, which share one half of the pool (published code: 1)
shadows = 5  # shadow models, which share the other half (published code: 5)
networks = 32  # networks that give the scores; no attack knows them (Feldman & Zhang: 2,000)
share = 0.7  # of the pool that each of them trains on (Feldman & Zhang: .7)
score_epochs = 30  # epochs of each of them (not stated; a fork of the published code: 30)
rounds = 5  # rounds, the first of which removes nothing (slides: 5)
sparsity = 0.6  # share of the weights that the last round has removed (slides: mainly .6)
parts = 6  # equal parts of the samples by their scores (ours)
strata = 6  # strata of nearly equal difficulty (ours)
fpr = 0.05  # FPR of LiRA over all samples, at which its TPR is read (not stated)
learnt = 0.6  # least test accuracy of a dense network that has learnt (ours)
seed = 7  # seed of design, initialisation and order
pilots = [0, 1]  # seeds on which claims, borders and controls were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import audit, lab, report
from leak_atlas.localization import samples
from leak_atlas.recipe import Data, LiRA, Memorization, Model, Schedule, Threshold, WindowStudy

motivation = "slides on motivation"
with_our_score = "(rise of AUC with our score at equal difficulty)"
with_difficulty = "(rise of AUC with difficulty at equal score)"
rise_difference = f"{with_our_score} minus {with_difficulty}, mean of Conf and LiRA"
top = "highest sixth of the slides' score minus the mean of the others"
area = "AUC within a sixth of the samples"
claims = report.claims(
    report.Claim(
        "tpr_rises",
        "LiRA's TPR is higher for members with high memorization scores",
        quantity=f"TPR of LiRA at one threshold ({fpr:.0%} FPR across all samples): {top}",
        above=0.0,
        margin=0.05,
        paper=motivation,
        quote="TPR of the recent MIA—LiRA is positively correlated with the model's memorization",
        section=motivation,
        control="FPR of the same sixths, in the first figure",
        headline=True,
    ),
    report.Claim(
        "risk_rises",
        "Members with high scores are easier to tell from non-members with such scores",
        quantity=f"{area}: {top}; weaker of Conf and LiRA",
        above=0.0,
        margin=0.05,
        paper=motivation,
        quote="easy-to-memorize training data is more vulnerable to serious privacy threats",
        section=motivation,
        control="non-members of the same sixth; permuted scores",
    ),
    report.Claim(
        "reuse_adds",
        "More training rounds raise the risk of high scores more than that of other samples",
        quantity=f"({area}, mean of Conf and LiRA: rounds without pruning minus dense): {top}",
        above=0.0,
        margin=0.05,
        paper=motivation,
        quote="Reuse easy-to-memorize data intensifies memorization and presents greater privacy risks",
        section=motivation,
        control="the same networks before the rounds",
    ),
    report.Claim(
        "beyond_difficulty",
        "The memorization score explains risk better than the difficulty of a sample does",
        quantity=rise_difference,
        above=0.0,
        margin=0.05,
        ours="our control",
        control="score and difficulty from separate networks, each with its own errors",
        headline=True,
    ),
    regime={"dense member accuracy": 0.95, "dense test accuracy": learnt},
)
claims

# %% [markdown]
# ## Models and scores

# %%
study = WindowStudy(
    Data(data, pixels or None, joined=True),
    Model(model, width, stem),
    Schedule(epochs, batch, "adam", lr, decay=decay, patience=patience),
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
    share=share,
    score_epochs=score_epochs,
)

# %%
judges = study.ranking.models
# Three separate sets of networks: every third network, from the first, second and third on.
confidence = study.ranking
correctness = Memorization(judges, "accuracy")
thirds = [Memorization(judges[number::3], "confidence") for number in range(3)]
first, second, third = thirds
permuted = [correctness.shuffle(number) for number in range(10)]

variants = {
    "dense": study.dense,
    "rounds without pruning": study.rounds_without_pruning()[-1],
    "iterative pruning": study.base,
}
pruned = "iterative pruning"
comparison = lab.compare(
    variants,
    {"Conf": Threshold(), "LiRA": LiRA("offline_cdf")},
    targets,
    also=[confidence, correctness, thirds, permuted],
)
results = comparison.results

# %% [markdown]
# ## TPR by score
# LiRA has one threshold for all sixths. A threshold has false positives too: we show the FPR of each
# sixth. Most samples have a slides' score of 0: their order is arbitrary.

# %%
names = ["lowest", *map(str, range(2, parts)), "highest"]
scores = {"slides' score": correctness, "our score": confidence}
rates = {}
points = []
for score, ranking in scores.items():
    attack = comparison.attacks[pruned, "LiRA"]
    rates[score] = samples.rates_by_part(attack, results[ranking], parts, fpr)
    for part, (tpr, fpr_of_part) in zip(names, rates[score], strict=True):
        point = {"score": score, "part": part}
        members = {"samples": "members (TPR)", "value": audit.mean_ci(tpr)}
        non_members = {"samples": "non-members (FPR)", "value": audit.mean_ci(fpr_of_part)}
        points += [point | members, point | non_members]
tpr_rise = samples.rise(rates["slides' score"][:, 0])
effect = report.effect(tpr_rise, "higher", "lower", "not significantly higher")
report.profile(
    points,
    hue="samples",
    facet="score",
    null=None,
    xlabel="sixth of the samples, by score",
    ylabel="share that LiRA calls members",
    title=f"LiRA's TPR is {effect} for the highest memorization scores",
)

# %% [markdown]
# ## AUC by score and by difficulty
# Members and non-members of the same sixth. For difficulty the samples are divided again.


# %%
def mean_areas(variant, ranking):
    """AUC within each part of each target, mean of Conf and LiRA, `(parts, targets)`."""
    attacks = [comparison.attacks[variant, name] for name in ("Conf", "LiRA")]
    each = [samples.auc_by_part(attack, ranking, parts) for attack in attacks]
    return (each[0] + each[1]) / 2


difficulty = results[confidence] | {"score": -results[confidence]["outside"]}
rankings = {
    "slides' score": results[correctness],
    "our score": results[confidence],
    "difficulty": difficulty,
}
by_part = {name: mean_areas(pruned, ranking) for name, ranking in rankings.items()}
chance = [mean_areas(pruned, results[one]) for one in permuted]
by_part["permuted scores"] = sum(chance) / len(chance)

# %%
score = results[second]
hard = results[first] | {"score": -results[first]["outside"]}


def rise_at_equal(ranking, held_equal):
    """Rise of AUC with a ranking in strata of another one, mean of Conf and LiRA, `(targets,)`."""
    attacks = [comparison.attacks[pruned, name] for name in ("Conf", "LiRA")]
    each = [samples.rise_within_strata(one, ranking, held_equal, strata) for one in attacks]
    return (each[0] + each[1]) / 2


by_score = rise_at_equal(score, hard)
by_difficulty = rise_at_equal(hard, score)
beyond = audit.paired_difference(by_score, by_difficulty)

# %%
points = []
for name, values in by_part.items():
    for part, each in zip(names, values, strict=True):
        points.append({"sixths by": name, "part": part, "value": audit.mean_ci(each)})
words = "rises", "falls", "does not significantly rise"
by_our_score = report.effect(samples.rise(by_part["our score"]), *words)
by_its_difficulty = report.effect(samples.rise(by_part["difficulty"]), *words)
report.profile(
    points,
    hue="sixths by",
    level="guessing",
    xlabel="sixth of the samples",
    ylabel="AUC within the sixth",
    title=f"AUC {by_our_score} with our memorization score, and {by_its_difficulty} with difficulty",
)

# %%
pair = results[first], results[second]
overlap = samples.overlap_at_the_top(*pair, parts)
lowest = samples.agreement_of_lowest(*pair, results[third], 2 / 3)
numbers = {
    "rise of AUC with the score, at equal difficulty": audit.mean_ci(by_score),
    "rise of AUC with difficulty, at equal score": audit.mean_ci(by_difficulty),
    "rank correlation of score and difficulty": samples.agreement(score, hard),
    "highest sixth by one set of networks: share that another set also puts there": overlap,
    "rank correlation of scores by separate networks": samples.agreement(*pair),
    "rank correlation of these scores, two thirds with the lowest scores only": lowest,
}
rows = [{"measured": name, "value": value} for name, value in numbers.items()]
report.table(rows, caption="Separate networks: each set has a third of those that give the scores")

# %% [markdown]
# ## Verdicts

# %%
rises = []
for name in ("Conf", "LiRA"):
    attack = comparison.attacks[pruned, name]
    part_areas = samples.auc_by_part(attack, results[correctness], parts)
    rises.append(samples.rise(part_areas))
after_rounds = mean_areas("rounds without pruning", results[correctness])
added = after_rounds - mean_areas("dense", results[correctness])

# %%
reliable = {"separate networks agree on the highest sixth": overlap.low > 1.5 / parts}
fit_change = comparison.contrast("rounds without pruning", "dense", metric="member accuracy")
checks = {claim.name: reliable for claim in claims}
checks["reuse_adds"] = reliable | {"more rounds raise the accuracy on members": fit_change}
report.judge(
    claims,
    tpr_rises=tpr_rise,
    risk_rises=audit.least(rises),
    reuse_adds=samples.rise(added),
    beyond_difficulty=beyond,
    checks=checks,
    regime={
        "dense member accuracy": comparison.estimate("dense", "", "member accuracy"),
        "dense test accuracy": comparison.accuracy("dense"),
    },
)

# %% [markdown]
# **Limits.** Score and difficulty are measured with errors, so neither is exactly equal in a stratum.
# LiRA compares with networks trained without the sample, so it follows difficulty by construction.
# All targets share one half of the samples and one set of shadow models.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
