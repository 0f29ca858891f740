# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Do LiRA, memorization and feature distance find the same samples exposed?
#
# **Question.** The question is ours. The papers measure the exposure of samples in different ways.
# Do these measures rank samples alike?
#
# **Setup.** *LiRA*: how much more often the attack calls a sample a member if the network trained
# on the sample. *Memorization score*: how much a network's confidence depends on training with the
# sample. *Distance*: how much more the features of two networks, M_all (trained on all samples) and
# M_h1 (on half), differ if M_h1 did not train on the sample.
#
# Two disjoint sets of networks give each measure twice; the rank correlation of both results is its
# *reliability*. A rank correlation of two measures is divided by the root of the product of their
# reliabilities (Spearman 1904): it is *corrected for errors*. Two measures find the same samples
# exposed if this is above .8 (LiRA and memorization score) or .5 (LiRA and distance in stage 4).
#
# **Controls.**
#
# 1. *Other networks* (both answers): measures that are compared come from different networks, or
#    different halves of them, so they share no errors.
# 2. *Difficulty* (third claim): samples are also ranked within strata of equal *difficulty*, the
#    error of networks that did not train on the sample.
# 3. *Class*: samples are also ranked within their class.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data)
pixels = 16  # side of the images, pixels, after area resize
model = "resnet10"  # architecture
width = 8  # channels of stage 1 (64 by the architecture)
pool = 600  # samples from which each network draws half
dev = 300  # samples outside the pool, not used here; keeps the split of `defences`
reference = 300  # samples outside the pool, not used here
test = 600  # test samples
epochs = 12  # epochs of ordinary training
stops = [1, 2, 3, 4, 5, 6, 8, 10]  # epochs at which LiRA attacks, too
looks = [3, 6]  # epochs at which final exposure is predicted; among `stops`
batch = 64  # samples a step
lr = 0.005  # learning rate of Adam, cosine to 0
networks = 32  # attacked networks; each half has its own shadow models
judges = 16  # networks that give memorization score and difficulty
score_epochs = 8  # epochs of each judge
pairs = 12  # pairs of networks (M_all, M_h1) that give the distance of features
halvings = 4  # random divisions of each kind of networks into halves
rate = 0.1  # FPR across all samples that sets LiRA's threshold
strata = 5  # strata of equal difficulty
learnt = 0.6  # least test accuracy of a network that has learnt
seed = 101  # evaluation seed: of design, initialisation and order
pilots = [0]  # seed on which the rules were set
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace
from operator import itemgetter

import numpy as np
from leak_atlas import audit, lab, recipe, report
from leak_atlas.localization import disparity, over_time, prediction, trajectories

lira, score, difficulty = "LiRA", "memorization score", "difficulty"
encoding = "epoch of encoding"
last_stage = "distance in stage 4"
corrected = "rank correlation over samples, corrected for the errors of both measures"
claims = report.claims(
    report.Claim(
        "memorized",
        "LiRA and the memorization score find the same samples exposed (rank correlation above .8)",
        quantity=f"{corrected}: LiRA with memorization score",
        above=0.8,
        margin=0.1,
        ours=True,
        control="the two measures come from different networks",
        headline=True,
        fails="LiRA and the memorization score find different samples exposed (rank correlation "
        "below .8)",
    ),
    report.Claim(
        "features",
        "LiRA and the distance of features in stage 4 find the same samples exposed (rank "
        "correlation above .5)",
        quantity=f"{corrected}: LiRA with {last_stage}",
        above=0.5,
        margin=0.2,
        ours=True,
        control="the reliability of both measures",
        headline=True,
        fails="LiRA and the distance of features in stage 4 find different samples exposed (rank "
        "correlation below .5)",
    ),
    report.Claim(
        "beyond_difficulty",
        "At equal difficulty, LiRA and the distance of features in stage 4 find the same "
        "samples exposed (rank correlation above .2)",
        quantity=f"{corrected}, within strata of difficulty: LiRA with {last_stage}",
        above=0.2,
        margin=0.2,
        ours="our control",
        control="difficulty: the error of networks that neither measure uses",
    ),
    report.Claim(
        "encoded_early",
        "Exposed samples are encoded earlier than others (negative rank correlation)",
        quantity=f"{corrected}: LiRA with {encoding}",
        below=0.0,
        margin=0.2,
        ours="after Dynamics",
        control="the two measures come from different networks",
    ),
    report.Claim(
        "loss_predicts",
        f"At epoch {looks[-1]}, difficulty predicts final exposure better than LiRA does",
        quantity=f"rank correlation with final exposure at epoch {looks[-1]}: {difficulty} minus "
        "LiRA",
        above=0.0,
        margin=0.1,
        ours=True,
        control="LiRA on other networks at the same epoch",
    ),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)
claims

# %%
setup = recipe.Setup(
    recipe.Data(data, pixels),
    recipe.RandomHalves(pool, test=test, seed=seed, dev=dev, reference=reference),
    recipe.Model(model, width),
    recipe.Schedule(epochs, batch, "adam", lr=lr),
    networks,
    seed,
    precision,
)
ordinary = setup.trained()
checkpoints = [*stops, epochs]
attacks = []
for halving in ordinary.halvings(halvings):
    attacks.append([half.attack_over_time(recipe.LiRA(), checkpoints) for half in halving])

# %%
scores = setup.memorization(judges, schedule=replace(setup.schedule, epochs=score_epochs))
divisions = [np.random.default_rng(k).permutation(judges) for k in range(halvings)]
judge_epochs = [*looks, score_epochs]


def memorization(chosen, epoch):
    """The scores by some judges after an epoch."""
    states = recipe.Population(tuple(scores.models[k] for k in chosen))
    return recipe.Memorization(states.at(epoch).states, "confidence")


judged = []
for order in divisions:
    halves = np.array_split(order, 2)
    judged.append([memorization(half, score_epochs) for half in halves])
by_all = {epoch: memorization(range(judges), epoch) for epoch in judge_epochs}
probe = recipe.ProbeStudy(
    setup.data, setup.model, replace(setup.schedule, nesterov=True), pool, pairs, seed, precision
)
distances = {}
for epoch in [*looks, epochs]:
    distances[epoch] = [pair.at(epoch).distance() for pair in probe.probes]
comparison = lab.compare(
    {"networks": ordinary},
    {lira: recipe.LiRA()},
    also=[attacks, judged, by_all, distances, recipe.self_audit(ordinary)],
)

# %% [markdown]
# ## Rank correlations of all measures
# Networks that are never attacked, the *judges*, give memorization score and difficulty. *Epoch of
# encoding* is the first epoch at which a sample has half of its final exposure by LiRA (if this is
# below .2: the median epoch of the others). A correlation is left out if two halves of the networks
# disagree on one of its measures.

# %%
results = comparison.results


def by_lira(half):
    """Final exposure and epoch of encoding of each sample, from one half of the networks."""
    path = trajectories.plane(over_time.read(results, half), rate, "fitted")
    reached = trajectories.encoding_epoch(path, np.array(checkpoints))
    return {lira: trajectories.advantage(path)[-1], encoding: audit.filled(reached)}


def by_judges(step):
    """Memorization score and difficulty of each sample."""
    return {score: results[step]["score"], difficulty: -results[step]["outside"]}


def by_pairs(chosen, epoch):
    """Distance of each sample's features in each stage."""
    stored = [results[distances[epoch][k]] for k in chosen]
    by_part = zip(stored[0].parts, disparity.memory_of_samples(stored), strict=True)
    return {part: audit.filled(values) for part, values in by_part}


# %%
divided = []
for k in range(halvings):
    order = np.array_split(np.random.default_rng(k).permutation(pairs), 2)
    both = []
    for side in (0, 1):
        exposures = by_lira(attacks[k][side]) | by_judges(judged[k][side])
        for part, values in by_pairs(order[side], epochs).items():
            if part.startswith("stage"):
                exposures[f"distance in {part.replace('stage', 'stage ')}"] = values
        both.append(exposures)
    divided.append(both)
names = list(divided[0][0])
in_order = itemgetter(*names)
halves = []
for both in divided:
    halves.append([list(in_order(exposures)) for exposures in both])

# %%
final = results[by_all[score_epochs]]
signals = results[ordinary.signals()[0]]
labels = signals["labels"][np.isin(signals["index"], final["index"])]
order = np.argsort(np.argsort(-final["outside"]))
stratum = order * strata // pool
overall = audit.disattenuated(names, halves)
in_class = audit.disattenuated(names, halves, labels)
in_stratum = audit.disattenuated(names, halves, stratum)
points = []
others = [name for name in names if name != lira]
kinds = {"all samples": overall, "within classes": in_class, "equal difficulty": in_stratum}
for kind, matrix in kinds.items():
    for name in others:
        points.append({"setting": name, "ranks": kind, "value": matrix.of(lira, name)})
reliable = [row for row in points if row["value"].resolved] or points
by_score = overall.of(lira, score)
report.against_paper(
    reliable,
    hue="ranks",
    title=f"LiRA and the memorization score have a rank correlation of {by_score.value:.2f}, "
    "corrected for errors",
    xlabel="rank correlation with exposure by LiRA, corrected for errors",
)

# %%
rows = []
for name in names:
    row = {"measure": name, "reliability": overall.reliability(name)}
    for other in (lira, score, difficulty):
        row[f"with {other}"] = overall.of(name, other) if name != other else None
    rows.append(row)
report.table(
    rows,
    caption="Rank correlations, corrected for errors, so they may exceed 1; reliability is not "
    "corrected",
    fold="Correlations of all measures",
)

# %% [markdown]
# ## Which signal predicts the final exposure early, and at what cost?
# One half of the networks gives the final exposure by LiRA. The signals come from other networks.
# These correlations are not corrected for errors.

# %%
moments = [*looks, epochs]
scores_of_halves = []
for pair in attacks:
    both = []
    for half in pair:
        chosen = {epoch: half[epoch] for epoch in moments}
        both.append(over_time.read(results, chosen))
    scores_of_halves.append(both)
known = [results[by_all[epoch]] for epoch in judge_epochs]
stage_4 = [by_pairs(range(pairs), epoch)["stage4"] for epoch in moments]
early_signals = {
    difficulty: np.array([-result["outside"] for result in known]),
    score: np.array([result["score"] for result in known]),
    last_stage: np.array(stage_4),
}
foresight = prediction.foresight(scores_of_halves, early_signals, final["index"], rule=rate)

# %%
half_pool = pool / 2
visits = {  # samples that one epoch of all networks behind a signal visits
    "attack": networks / 2 * half_pool,
    difficulty: sum(state.members for state in scores.models),
    score: sum(state.members for state in scores.models),
    last_stage: pairs * (pool + half_pool),
}
points = []
rows = []
for name, forecast in foresight.items():
    label = lira if name == "attack" else name
    for at, epoch in enumerate(moments):
        own_epoch = judge_epochs[at] if name in (difficulty, score) else epoch
        cost = visits[name] * own_epoch / (half_pool * epochs)
        points.append({"signal": label, "cost": cost, "value": forecast.correlation[at]})
        row = {"signal": label, "until epoch": own_epoch, "cost": round(cost, 1)}
        row["rank correlation"] = forecast.correlation[at]
        row["LiRA until epoch"] = epoch  # the judges' last epoch is compared with LiRA's last
        row["minus LiRA"] = forecast.beyond_attack[at]
        rows.append(row)
beyond = foresight[difficulty].beyond_attack[len(looks) - 1]
effect = report.effect(beyond, "better", "worse", "not significantly better")
marked = ", ".join(map(str, looks))
report.tradeoff(
    points,
    "cost",
    "value",
    hue="signal",
    facet=None,
    reference=None,
    corner_label="",
    title=f"At epoch {looks[-1]}, difficulty predicts final exposure {effect} than LiRA",
    xlabel=f"cost, in ordinary trainings of one network (markers: epochs {marked} and the last)",
    ylabel="rank correlation with final exposure",
)

# %%
report.table(
    rows,
    caption="Cost: samples visited, as a multiple of one ordinary training. A judge trains for "
    f"{score_epochs} epochs, so its last epoch is compared with LiRA's last",
    fold="Signals, epochs and costs",
)

# %% [markdown]
# ## Verdicts

# %%
agree = {"halves of the networks agree on LiRA": overall.reliability(lira)}
after_both = {"difference at the end of both": foresight[difficulty].beyond_attack[-1]}
schedules = (
    f"at epoch {looks[-1]} a judge is at {looks[-1] / score_epochs:.0%} of its schedule and an "
    f"attacked network at {looks[-1] / epochs:.0%}; a judge trains on "
    f"{scores.models[0].members / pool:.0%} of the pool and an attacked network on half"
)
report.judge(
    claims,
    memorized=by_score,
    features=overall.of(lira, last_stage),
    beyond_difficulty=in_stratum.of(lira, last_stage),
    encoded_early=overall.of(lira, encoding),
    loss_predicts=beyond,
    notes={
        "features": report.listed({"at equal difficulty": in_stratum.of(lira, last_stage)}),
        "loss_predicts": f"{schedules}; {report.listed(after_both)}",
    },
    checks={claim.name: agree for claim in claims},
    regime={
        "member accuracy": comparison.estimate("networks", "", "member accuracy"),
        "test accuracy": comparison.accuracy("networks"),
    },
)

# %% [markdown]
# **Limits.** Intervals cover the choice of samples and the errors of each sample, not errors of one
# network on all samples. Distances in stages 1 to 3 are too noisy. A network is nearly always right
# about a sample that it trains on, so the memorization score is nearly the difficulty. Compared
# with an attacked network, M_all trains on twice the number of samples. A judge trains on more
# samples, for fewer epochs (note of the last claim).

# %%
report.provenance(comparison.results, seed=seed, pilots=pilots)
