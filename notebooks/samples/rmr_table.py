# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Do memorization scores help the published code of RMR to hide memorized members?
#
# **Question.** WeMem (Shang et al. 2025), slides: "RMR achieves the best privacy-utility tradeoff
# when lambda_r = 0.1", and "SWMR provides better defense compared to RSW".
#
# **Setup.** A network is pruned in five rounds of training. *RMR* is an L2 penalty in these rounds.
# Its strength is lambda_r for the members with the highest *memorization scores* (about a sixth)
# and .0005 for others. A score is how much the confidence in a sample depends on training with it.
# In *RMR .1*, lambda_r is .1. By the slide's formula (*RMR* without the word code), a batch has the
# mean strength of its members. The *published code* trains members with high scores in separate
# batches. With *RSW*, an epoch trains on a window of the members, sorted by score. *SWMR* is RSW
# with RMR. Here the window is narrow, moves by a large step and starts at high scores. *Base* has
# no defence. n counts target networks.
#
# **Controls.**
#
# 1. *Permuted scores* decide the first answer: does the code hide members with high scores better
#    with true than with permuted scores?
# 2. *Early stopping* decides the second answer: is RMR .1 (formula) more accurate than less
#    training? Base is trained for fewer epochs. Test accuracies are compared at the same AUC of
#    LiRA (*matched AUC*).
# 3. *Plain L2* gives all members RMR's mean strength. RMR by the formula is nearly the same. *RSW
#    with plain L2* has SWMR's mean strength.

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
risky_share = 0.176  # share of members with lambda_r (published CIFAR10 scores above tau = .5)
narrow = 9  # members of a class in the window of SWMR and RSW (slides, CIFAR10: 500)
large_step = 2  # ranks by which the window moves in an epoch (slides, CIFAR10: 100)
stops = [2, 5, 10, 20, 40, 100]  # early stopping: dense epochs, then one epoch a round (ours)
lambdas = [0.01, 0.1, 1.0]  # lambda_r, weakest first; claims speak of .1 (slides: the same)
parts = 6  # equal parts of the samples by their scores (ours)
learnt = 0.6  # test accuracy that is required of the dense networks (ours)
seed = 101  # evaluation seed: of design, initialisation and order
pilots = [0, 1, 7]  # seeds on which claims, borders and controls were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace

from leak_atlas import audit, lab, report
from leak_atlas.localization import samples
from leak_atlas.recipe import RMR, Data, LiRA, Model, Schedule, Threshold, Window, WindowStudy

best = "RMR .1"  # lambda_r = .1
slide = "slide on RMR"
attacked = "mean accuracy of four attacks"
highest = "AUC in the sixth of the samples with the highest scores (mean of Conf and LiRA)"
gain = f"fall of the {attacked} minus fall of test accuracy"
claims = report.claims(
    report.Claim(
        "score_matters",
        "The published code of RMR hides memorized members better with true scores than with "
        "permuted scores",
        fails="The published code of RMR hides memorized members worse with true scores than with "
        "permuted scores",
        quantity=f"{highest}: published code of {best} (L2 penalty of .1 on members with high "
        "scores), with true scores minus with permuted scores",
        below=0.0,
        margin=0.05,
        ours="our control",
        control="the same penalty for the same number of members, chosen by permuted scores",
        headline=True,
    ),
    report.early_stopping_claim("stopping", f"networks with {best}", headline=True),
    report.Claim(
        "best_tradeoff",
        "Of three strengths of RMR, .1 has the largest net benefit (fall of attack accuracy minus "
        "fall of test accuracy)",
        quantity=f"{gain}: the lower of two differences, {best} minus RMR .01 and {best} minus "
        "RMR 1",
        above=0.0,
        margin=0.02,
        paper=slide,
        quote="RMR achieves the best privacy-utility tradeoff when lambda_r = 0.1",
        control="the same pruning rounds; attack accuracy and test accuracy have equal weight",
    ),
    report.Claim(
        "swmr_is_better",
        "SWMR (window and RMR) lowers attack accuracy more than RSW (the same window alone)",
        quantity=f"{attacked}: SWMR minus RSW",
        below=0.0,
        margin=0.02,
        paper="slide on defence effectiveness",
        quote="SWMR provides better defense compared to RSW under identical settings",
        control="the same window",
    ),
    report.Claim(
        "swmr_beyond_l2",
        "SWMR lowers attack accuracy more than the same window with plain L2",
        quantity=f"{attacked}: SWMR minus RSW with plain L2",
        below=0.0,
        margin=0.02,
        ours="our control",
        control="the same window, and weight decay of the same mean strength",
    ),
    regime={"dense member accuracy": 0.95, "dense test accuracy": learnt},
)
claims

# %% [markdown]
# ## Test and attack accuracy by strength of RMR
# Attack accuracy is the mean of the slide's four attacks: thresholds on confidence (Conf and
# Hconf), entropy (Entr) and modified entropy (Mentr). Hconf has one threshold, the others one for
# each class. A strength that leaves less than half of Base's test accuracy is only in the table.

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
default_strength = study.tuning.weight_decay
penalties = {}
for value in lambdas:
    name = f"RMR {value:g}".replace("0.", ".")
    penalties[name] = RMR(value, default_strength, share=risky_share)
penalty = penalties[best]


def plain_l2(risky_visits):
    """The rounds' schedule with RMR's mean strength: the share `risky_visits` has lambda_r."""
    mean_strength = default_strength + risky_visits * (penalty.risky - default_strength)
    return replace(study.tuning, weight_decay=mean_strength)


# %%
swmr_window = Window(narrow, large_step, "high-to-low")
visits = swmr_window.visits(study.class_members, round_epochs)
risky_members = round(risky_share * study.class_members)
window_share = sum(visits[:risky_members]) / sum(visits)
windowed = {"sampling": swmr_window, "ranking": study.ranking}
coded = replace(penalty, form="code")
in_code, in_code_permuted = f"{best}, code", f"{best}, code, permuted scores"
variants = {"dense": study.dense, "Base": study.base}
for name, rmr in penalties.items():
    variants[name] = study.penalized(rmr)
variants["plain L2"] = study.iterative(schedule=plain_l2(risky_share))[-1]
variants[in_code] = study.penalized(coded)
variants[in_code_permuted] = study.penalized(coded, study.ranking.shuffle(0))
variants["RSW"] = study.windowed(swmr_window)
variants["SWMR"] = study.windowed(swmr_window, penalty=penalty)
variants["RSW, plain L2"] = study.iterative(schedule=plain_l2(window_share), **windowed)[-1]

# %%
attackers = {
    "Conf": Threshold(),
    "Entr": Threshold("entropy"),
    "Mentr": Threshold("modified_entropy"),
    "Hconf": Threshold(by_class=False),
    "LiRA": LiRA("offline_cdf"),
}
comparison = lab.compare(
    variants,
    attackers,
    targets,
    checkpoints={"Base": study.stopped_early(stops)},
    also=study.ranking,
)


# %%
def four_attacks(name):
    """Mean accuracy of the slide's four attacks on the variant `name`, of each target."""
    return comparison.mean_measured(*[(name, attack) for attack in attackers if attack != "LiRA"])


# Test accuracy, then the mean of Conf, Entr, Mentr and Hconf, in percent.
SLIDE = {
    "Base": [80.01, 63.56],
    "RMR .01": [78.96, 60.14],
    "RMR .1": [77.81, 54.32],
    "RMR 1": [69.83, 51.76],
}
attack_change, points, untrained = {}, [], []
for name in penalties:
    test_change = comparison.accuracy_difference(name, "Base")
    attack_change[name] = audit.paired_difference(four_attacks(name), four_attacks("Base"))
    if comparison.accuracy(name).value < comparison.accuracy("Base").value / 2:
        untrained.append(name)
        continue
    printed = [(SLIDE[name][column] - SLIDE["Base"][column]) / 100 for column in (0, 1)]
    tested = {"kind": "test accuracy", "value": test_change, "paper": printed[0]}
    leaked = {"kind": "attack accuracy", "value": attack_change[name], "paper": printed[1]}
    points += [{"strength": name} | tested, {"strength": name} | leaked]
words = "significantly lowers", "significantly raises", "does not significantly lower"
report.against_paper(
    points,
    "strength",
    facet="kind",
    source="slide, CIFAR10",
    xlabel="accuracy: RMR minus Base",
    title=f"{best} {report.effect(-attack_change[best], *words)} attack accuracy, compared with "
    "Base",
)

# %% [markdown]
# ## RMR compared with plain L2 and early stopping
# The line joins dense networks, stopped early and then pruned with one epoch a round. It ends with
# Base. If several stops leak less than every defence shown, it starts at the last of these.
# Strengths above .1 are only in the table.

# %%
up_to_best = [name for name, rmr in penalties.items() if rmr.risky <= penalty.risky]
others = ["plain L2", "SWMR", in_code, "RSW, plain L2"]
stopped = comparison.stopped_line(up_to_best + others, "LiRA")
lines = {
    "Base, stopped early": stopped,
    "plain L2": ["plain L2"],
    "SWMR": ["SWMR"],
    "RMR, by lambda_r": up_to_best,  # over the points of plain L2 and SWMR
    in_code: [in_code],
    "RSW, plain L2": ["RSW, plain L2"],
}
stopping = comparison.early_stopping(best, "LiRA")
report.tradeoff(
    comparison.plane(lines, "LiRA"),
    reference=None,
    xlabel="test accuracy",
    ylabel="AUC of LiRA",
    title=f"At matched AUC, {best} {report.compared_accuracy(stopping)}",
)


# %%
def highest_sixth(variant):
    """AUC in the highest sixth of the scores, mean of Conf and LiRA, of each target."""
    areas = []
    for name in ("Conf", "LiRA"):
        attack = comparison.attacks[variant, name]
        areas.append(samples.auc_by_part(attack, comparison.results[study.ranking], parts)[-1])
    return (areas[0] + areas[1]) / 2


pairs = [(best, "plain L2"), (in_code, "plain L2"), (in_code, in_code_permuted)]
rows = []
for one, other in pairs:
    row = {"difference": f"{one} − {other}"}
    row["test accuracy"] = comparison.accuracy_difference(one, other)
    row["four attacks"] = audit.paired_difference(four_attacks(one), four_attacks(other))
    row["AUC of LiRA"] = comparison.contrast(one, other, "LiRA")
    in_sixth = highest_sixth(one), highest_sixth(other)
    row["AUC, highest sixth"] = audit.paired_difference(*in_sixth)
    rows.append(row)
sixth = "Highest sixth: mean AUC of Conf and LiRA on the samples with the highest scores"
caption = f"Paired differences. Code: published code. Four attacks: mean accuracy. {sixth}"
report.table(rows, caption=caption)

# %%
rows = []
for variant in variants:
    if variant == "dense":
        continue
    row = {"network": variant}
    row["member accuracy"] = comparison.estimate(variant, "", "member accuracy")
    row["test accuracy"] = comparison.accuracy(variant)
    row["four attacks"] = audit.mean_ci(four_attacks(variant))
    row["AUC of LiRA"] = comparison.estimate(variant, "LiRA")
    row["AUC, highest sixth"] = audit.mean_ci(highest_sixth(variant))
    rows.append(row)
caption = f"Mean over {targets} targets. Code: published code. Four attacks: mean accuracy. {sixth}"
report.table(rows, caption=caption, fold="All networks")

# %% [markdown]
# ## Verdicts

# %%
gains = {}  # net benefits, up to a term of Base that cancels in the differences
for name in penalties:
    gains[name] = comparison.measured(name, "", "test accuracy") - four_attacks(name)
gain_differences = []
for name in penalties:
    if name != best:
        gain_differences.append(audit.paired_difference(gains[best], gains[name]))
swmr_from = {}
for name in ("RSW", "RSW, plain L2"):
    swmr_from[name] = audit.paired_difference(four_attacks("SWMR"), four_attacks(name))
treatment_checks = {}
for name, other in ((best, "Base"), (in_code, "Base"), ("SWMR", "RSW")):
    less = comparison.contrast(other, name, metric="member accuracy")
    treatment_checks[name] = {f"{name} lowers the accuracy on members below that of {other}": less}
on_all = comparison.contrast(in_code, in_code_permuted, "LiRA")
formula = audit.paired_difference(highest_sixth(best), highest_sixth("plain L2"))
other_leaks = {
    "on all samples, AUC of LiRA": on_all,
    "AUC in the highest sixth, slide's formula, RMR minus plain L2": formula,
}
placebo = comparison.placebo("LiRA")
untrained_note = (
    f"{', '.join(untrained)} leaves less than half of Base's test accuracy" if untrained else ""
)

# %%
report.judge(
    claims,
    score_matters=audit.paired_difference(highest_sixth(in_code), highest_sixth(in_code_permuted)),
    stopping=stopping,
    best_tradeoff=audit.least(gain_differences),
    swmr_is_better=swmr_from["RSW"],
    swmr_beyond_l2=swmr_from["RSW, plain L2"],
    notes={
        "score_matters": report.listed(other_leaks),
        "stopping": report.bias_note(audit.possible_bias(placebo), stopping),
        "best_tradeoff": untrained_note,
    },
    checks={
        "score_matters": treatment_checks[in_code],
        "stopping": treatment_checks[best],
        "best_tradeoff": treatment_checks[best],
        "swmr_is_better": treatment_checks["SWMR"],
        "swmr_beyond_l2": treatment_checks["SWMR"],
    },
    regime={
        "dense member accuracy": comparison.estimate("dense", "", "member accuracy"),
        "dense test accuracy": comparison.accuracy("dense"),
    },
)

# %% [markdown]
# ## Robustness: early stopping compared with itself
# Each stop except the first is compared with the line through the other stops and Base. The
# difference should be 0. A value above 0 is a possible bias in favour of RMR. A value below 0 shows
# that the line is low there, which favours RMR, too.

# %%
caption = "Test accuracy at matched AUC of LiRA"
report.table(placebo, caption=caption, fold="Each point of the line")

# %% [markdown]
# **Limits.** One data set, one architecture, one window and one permutation. The samples on which
# the first answer measures the AUC are nearly those that RMR penalizes. A strength that leaves less
# than half of Base's test accuracy does not test the claim on the largest net benefit. RSW with
# plain L2 has SWMR's mean strength over a round, not in each epoch. Networks that stop early train
# for one epoch a round, RMR for 21. If one epoch costs accuracy, this favours RMR. The targets draw
# their members from one half of the samples and share shadow models.

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
