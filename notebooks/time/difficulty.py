# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does a sample's difficulty tell its risk, and how fast it is encoded?
#
# **Dynamics.** How hard a sample is to learn, by networks that the attack does not know, against how vulnerable it ends
# and how fast it moves in the plane of false and true positives. **The article says** that difficulty correlates with
# vulnerability, and that cumulative effort and uncertainty, above all "epistemic uncertainty", are strong predictors.
# It gives no number, nor the list of measures: ours are the field's (`lib/leak_atlas/localization/difficulty.py`).
#
# **It would be wrong if** some measure went the other way, if one look told as much as a whole training, or if
# uncertainty were no better than others. **It would be beside the point if** random scores did it (control), if measure
# and attack shared networks (control: both ways), or if hard samples were those of hard classes (control: ranks within
# a class). Noise in the risk lowers every correlation: the ceiling is measured.
#
# **Definitions, ours.** Risk: TPR minus FPR at the end, by normal laws fitted to scores. Speed: the way's length, less
# that of a null (membership permuted). Rules were settled on draw 0, a referee's objections in hand, and are
# judged on this one (seed 1).

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); reading note: MNIST, Fashion-MNIST, CIFAR-10, CINIC-10
pixels = 8  # side of the images, pixels, after area resize; 0: as they are
model = "cnn4"  # architecture; reading note: CNNs of several depths, WRN28-2
width = 8  # channels of stage 1 (not stated)
pool = 600  # samples from which each network draws half (not stated)
test = 200  # test samples (not stated)
epochs = 40  # of training (not stated; the article speaks of epoch 150)
batch = 50  # samples a step (not stated)
optimizer = "sgd"  # article: SGD and SAM
lr = 0.05  # learning rate at the start (not stated)
decay = "cosine"  # of that rate, by the epoch (not stated)
networks = 32  # in complement pairs, each attacked by the others less its pair (not stated; group code: 20)
checkpoints = [0, 2, 4, 8, 12, 16, 24, 32, 40]  # epochs at which all is read; 0: before training
judges = 16  # networks whose answers tell difficulty; the attack does not know them (ours)
share = 0.7  # of the pool that each of them trains on (Feldman & Zhang: .7)
readings = 8  # of these, whose gradient norms and prediction depths are read (ours)
rate = 0.1  # share of all non-members that reach the threshold (ours)
halvings = 4  # ways to part the networks in two that share no shadow: the ceiling (ours)
learnt = 0.6  # least test accuracy of networks that have learnt (ours)
seed = 1  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from itertools import product

import numpy as np
from leak_atlas import audit, lab, report
from leak_atlas.localization import over_time, samples, trajectories
from leak_atlas.localization.difficulty import EFFORT, LOOK, OTHERS, UNCERTAINTY, difficulty, mean_over_members, ranks_within_class
from leak_atlas.recipe import Data, GradientNorm, Model, Population, PredictionDepth, Schedule, TrajectoryStudy

looks, seen, paper = (*LOOK, "gradient norm", "prediction depth"), "rank correlation with the final risk", {"paper": "article, difficulty"}
claims = report.claims(
    report.Claim("all_positive", "Whatever the measure, harder samples are more vulnerable", f"{seen}, least of all measures", above=0.1, margin=0.15, control="random scores; networks that the attack does not know", **paper),
    report.Claim("strong", f"At {rate:.0%} FPR the loss over training is a strong predictor of risk", f"{seen}, mean loss, risk without its noise", above=0.5, margin=0.15, control="the ceiling: halves of the networks", **paper),
    report.Claim("effort_tops", "What adds up over training tells more than one look does", f"{seen}, mean of effort minus mean of one look", above=0.05, margin=0.05, control="same judges", **paper),
    report.Claim("epistemic_tops", "Epistemic uncertainty tells more than other measures do", f"{seen}, the better of two readings minus mean of the rest", above=0.0, margin=0.15, control="two readings: over training, over networks", **paper),
    report.Claim("outside_adds", "Networks without the sample tell what the loss over training does not", f"{seen}, inconsistency, given mean loss", above=0.2, margin=0.15, control="a second mean loss, of other judges, given the first (below the table)", ours=True),
    report.Claim("speed", "Harder samples move faster", "rank correlation with the speed less the null's, mean of effort and uncertainty", above=0.1, margin=0.15, control="null: membership permuted; given the risk in the table", **paper),
    report.Claim("within_class", "Hard classes do not explain it", "the same with the final risk, both ranked within their class", above=0.1, margin=0.15, control="ranks within the class", ours=True),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)  # fmt: skip
claims

# %% [markdown]
# The attack is LiRA at each checkpoint. Judges see other random parts of the same pool. A measure is a mean over judges
# that trained on a sample, but for what only others can say: inconsistency, ensemble variance, memorization.

# %%
given, last, early = {"optimizer": optimizer, "decay": decay}, checkpoints[-1], checkpoints[2]
study = TrajectoryStudy(
    Data(data, pixels or None), Model(model, width), Schedule(epochs, batch, lr=lr, **given), pool, test, networks, checkpoints, seed, precision
)
attacks, null = study.attacks(), study.attacks(permuted=0)
signals = study.signals()
ranking = study.setup.memorization(judges, share)
others = Population(ranking.models)
answers = study.signals(others)
cuts, halves = study.trained.halvings(halvings), study.halves(halvings)
norms, depths = zip(*((GradientNorm(one.at(early)), PredictionDepth(one)) for one in others.states[:readings]), strict=True)
results = lab.realize(attacks, null, signals, ranking, answers, halves, norms, depths)
found = audit.Comparison.of(results, {"end": signals[last]}, {("end", "LiRA"): attacks[last]})
one, noise = (over_time.read(results, each) for each in (attacks, null))
parts = [[over_time.read(results, half) for half in pair] for pair in halves]

# %%
hard = difficulty({t: [results[step] for step in each] for t, each in answers.items()}, early)
index, final = hard.pop("index"), [results[step] for step in answers[last]]
for name, steps, kind in (("gradient norm", norms, "norm"), ("prediction depth", depths, "depth")):
    hard[name] = mean_over_members([results[step] for step in steps], kind, final[:readings])
label = final[0]["labels"][np.searchsorted(final[0]["index"], index)]
names, every = [*hard], np.array([*hard.values()])
kinds = {"effort": EFFORT, "uncertainty": UNCERTAINTY, "one look": looks, "without the sample": OTHERS}
kinds = {name: kind for kind, own in kinds.items() for name in own} | {"memorization": "what the attack compares"}
weights = {"effort": EFFORT, "look": looks, "both": (*EFFORT, *UNCERTAINTY)}
weights = {kind: np.isin(names, own) / len(own) for kind, own in weights.items()}
rest = {name: np.where(np.isin(names, name), 1.0, -1 / (len(names) - 1)) for name in ("epistemic", "ensemble variance")}
columns = ("risk", "given mean loss", "within class", "speed less the null's", "signed speed", "speed given risk")
readers = [difficulty({t: [results[step] for step in each[k::2]] for t, each in answers.items()}, early)["mean loss"] for k in (0, 1)]


def told(one, noise):
    place, path = np.searchsorted(index, one.index), trajectories.plane(one, rate, "fitted")
    own, risk, still = every[:, place], trajectories.advantage(path)[-1], trajectories.plane(noise, rate, "fitted")
    moved = trajectories.encoding_speed(path, one.epochs) - trajectories.encoding_speed(still, noise.epochs)
    each = [
        audit.rank_correlation(own, risk),
        audit.rank_correlation(own, risk, own[0]),
        audit.rank_correlation(ranks_within_class(own, label[place]), ranks_within_class(risk, label[place])),
    ]
    each += [
        audit.rank_correlation(own, moved),
        audit.rank_correlation(own, trajectories.encoding_speed(path, one.epochs, signed=True)),
        audit.rank_correlation(own, moved, risk),
    ]
    again = np.mean([audit.rank_correlation(a[None, place], risk, b[place])[0] for a, b in (readers, readers[::-1])])
    claimed = [(weights["effort"] - weights["look"]) @ each[0], *(w @ each[0] for w in rest.values()), again]
    return np.concatenate([np.ravel(each), claimed, [weights["both"] @ each[3], weights["both"] @ each[2]]])


*numbers, effort, epistemic, ensemble, second, faster, inside = over_time.jackknife(told, one, noise)
agree = lambda a, b, at: np.append(audit.rank_correlation(every[:, np.searchsorted(index, at)], a[-1]), audit.rank_correlation(a[-1:], b[-1]))  # noqa: E731
whole = lambda v: np.append(v[:-1] / np.sqrt(np.maximum(v[-1], 1e-9)), v[-1])  # noqa: E731
by_rule = {rule: trajectories.across_halves(agree, parts, whole, rule) for rule in (rate / 2, rate, 2 * rate, "balanced")}
*true, ceiling = by_rule[rate]
cells = dict(zip(product(columns, names), numbers, strict=True)) | {("true risk", name): value for name, value in zip(names, true, strict=True)}

# %%
order = sorted(names, key=lambda name: -cells["risk", name].value)
shown = {"risk": "final risk", "speed less the null's": "speed less the null's"}
points = [{"facet": what, "setting": f"{name} ({kinds[name]})", "value": cells[column, name]} for column, what in shown.items() for name in order]
title = f"{order[0].capitalize()} and {order[1]} have the largest correlations with risk; epistemic uncertainty is number {order.index('epistemic') + 1} of {len(order)}"
report.against_paper(points, facet="facet", title=title, xlabel="rank correlation with a measure of difficulty")

# %%
own = ({t: [results[step] for step in half.at(t or "init").signals()] for t in checkpoints} for half in cuts[0])
own = [np.array([difficulty(each, early)[name] for name in names[:-2]]) for each in own]


def circular(one, other):
    place, risks = np.searchsorted(index, one.index), [trajectories.advantage(trajectories.plane(c, rate, "fitted"))[-1] for c in (one, other)]
    return (
        sum(
            audit.rank_correlation(mine[:, place], a) - audit.rank_correlation(mine[:, place], b)
            for mine, a, b in zip(own, risks, risks[::-1], strict=True)
        )
        / 2
    )


same = dict(zip(names[:-2], over_time.jackknife(circular, *parts[0]), strict=True))
luck = np.abs(
    audit.rank_correlation(np.random.default_rng(0).random((100, len(index))), trajectories.advantage(trajectories.plane(one, rate, "fitted"))[-1])
)
rows = [{"measure": name, "kind": kinds[name]} | {column: cells[column, name] for column in ("risk", "true risk", *columns[1:])}
        | {"own networks minus others": same.get(name)} for name in order]  # fmt: skip
caption = f"Rank correlations. 100 random scores: at most {luck.max():.2f}, half below {np.median(luck):.2f}. True risk: over the root of {ceiling}, "
caption += f"what halves of {networks // 2} networks agree that share no shadow. Own networks: those of a half, with risk of the same less the other"
caption += f" half. A second mean loss, of other judges, given the first: {second}. Memorization is p inside minus p outside, LiRA's own contrast"
report.table(rows, caption=f"{caption}. Depth has {len(np.unique(results[depths[0]]['depth']))} levels: few parts")

# %%
kept = [*product(by_rule, ["fitted"]), (rate, "counted")]
risks = {f"{form}, threshold at {rule}": trajectories.advantage(trajectories.plane(one, rule, form))[-1] for rule, form in kept}
risks["mean score of members minus non-members"] = samples.exposure(results[attacks[last]])["score"]
differ, strong, rows = [], [each[0] for each in by_rule.values()], []
for (name, risk), sure in zip(risks.items(), [*strong, None, None], strict=True):
    each = audit.rank_correlation(every, risk)
    best = [names[k] for k in np.argsort(-each)]
    differ.append(float((weights["effort"] - weights["look"]) @ each))
    rows.append({"risk": name, "best three": ", ".join(best[:3]), "least": f"{best[-1]}, {each.min():.2f}", "mean loss": float(each[0])})
    rows[-1] |= {"with true risk": sure, "effort minus one look": differ[-1]} | {f"place of {kind}": best.index(kind) + 1 for kind in rest}
report.table(rows, caption="Rank correlations by the definition of risk; the true one from halves, fitted")

# %% [markdown]
# ## Verdicts

# %%
fast = (f"{cells[column, 'epistemic'].value:.2f} {what}" for column, what in ((columns[3], "with the speed"), (columns[5], "given the risk")))
notes = {
    "epistemic_tops": f"over training {epistemic}, over networks {ensemble}; correlation over training {', '.join(fast)}",
    "strong": f"{min(each.value for each in strong):.2f} to {max(each.value for each in strong):.2f} by threshold",
    "effort_tops": f"{min(differ):.2f} to {max(differ):.2f} by definition",
}
regime = {"member accuracy": audit.mean_ci([results[step]["accuracy_member"] for step in signals[last]]), "test accuracy": found.accuracy("end")}
risky = {"the attack beats a guess": found.leak("end", "LiRA")["auc"].low > 0.5, "halves agree on the risk": ceiling}
estimates = (cells["true risk", "mean loss"], effort, audit.largest([epistemic, ensemble]), cells["given mean loss", "inconsistency"], faster, inside)
measured = dict(zip((claim.name for claim in claims), (audit.least(cells["risk", name] for name in names), *estimates), strict=True))
report.judge(claims, **measured, notes=notes, checks={claim.name: risky for claim in claims}, regime=regime)

# %% [markdown]
# **Caveat.** Intervals are over samples and attacked networks; the judges stay. What networks without a sample tell
# LiRA compares with. Epistemic: the variance over training (Data-IQ) or networks; the paper's definition is not known.

# %%
report.provenance(results)
