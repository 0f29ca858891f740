# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does a sample's risk rise with its memorization score?
#
# **WeMem, four panels of the slides: privacy risk against memorization score** (CIFAR10, CIFAR100, CINIC, tabular). The
# score: how much training on a sample makes its prediction right. **The slides say** that "inherently easy-to-memorize
# training data is more vulnerable", that LiRA's TPR goes with memorization (Carlini et al. 2022), and that reuse of
# such data intensifies memorization. Their text gives no number and does not say what "risk" is. What they call easy to
# memorize has a high score: networks get it wrong unless they are taught it.
#
# **It would be wrong if** members were not told better from non-members *of the same score* where the score is high.
# TPR alone does not tell: a threshold calls confident samples members, and at low scores all are confident. **It would
# be beside the point if** the score were noise (control: other networks), if any score did it (control: the same, dealt
# out anew), if it were difficulty alone (control: networks without the sample), or if longer training did as much.

# %% tags=["parameters"]
data = ["digits-bits", "fashion-mnist-small"]  # data sets (python -m lib.data); slides: CIFAR10, CIFAR100, CINIC, three of bits
pixels = [0, 16]  # of each: side of the images after area resize; 0: as they are (slides: 32)
model = ["fc", "resnet10"]  # of each: architecture (slides: resnet18, vgg16, densenet121; fc)
width = [256, 16]  # of each: units of the first layer, or channels of stage 1 (published code: 256, 64)
stem = ["conv3", "conv3-pool"]  # of each: first layer of a ResNet (published code: conv3-pool)
pool = [1740, 1200]  # of each: samples, train and test part joined; half the victims', half the attacker's (published code: all)
dev = [88, 60]  # of each: samples of each half set apart; the rest is half member, half not (published code: a tenth)
epochs = [100, 12]  # of each: epochs of the dense network (published code: 100)
round_epochs = [21, 3]  # of each: epochs of a round (published code: 21)
batch = [128, 32]  # of each: samples a step (published code: 128)
lr = [0.001, 0.002]  # of each: learning rate of Adam (published code: 0.001)
decay = "constant"  # of that rate, by the epoch (published code: constant)
patience = None  # epochs without a better dev accuracy before training stops; None: all are trained (published code: 5)
victims = 10  # networks that split the victims' half (published code: 1)
shadows = 5  # networks that split the attacker's half (published code: 5)
networks = 32  # whose answers give the scores; the attack does not know them (Feldman & Zhang: 2,000)
share = 0.7  # of the pool that each of them trains on (Feldman & Zhang: .7)
score_epochs = [40, 12]  # of each: their epochs (a fork's published code: 30)
folds = 5  # networks of the other estimator, each with its own part of the pool (a fork's published code: 5)
rounds = 5  # of pruning (slides: 5)
sparsity = 0.6  # share of the weights that is gone in the end (slides: .6, mainly)
parts = 6  # of the samples by their scores, each with as many (ours)
learnt = 0.6  # least test accuracy of a dense network that has learnt (ours)
seed = 2  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace

import numpy as np

from lib import audit, lab, report
from lib.localization import samples
from lib.recipe import Data, LiRA, Memorization, Model, Schedule, Setup, Sparsity, Threshold, VictimAttacker

top, every, within = "highest part minus the mean of the others", "least of the data", "AUC within the part, iteratively pruned"
slides, ours, more, wide = {"paper": "slides: risk by score"}, {"paper": "ours"}, {"above": 0.03, "margin": 0.05}, {"margin": 0.1}
sides, part = {"control": "FPR of the same parts beside it"}, {"control": "non-members of the same part; random scores"}
steps, easy = {"control": "dense, trained on for as many steps, beside it"}, {"control": "networks that did not train on the sample"}
claims = report.claims(
    report.Claim("agrees", "The score agrees with itself", f"reliability, {every}", above=0.6, control="halves share no network", **wide, **ours),
    report.Claim("folds_agree", "One network a fold orders alike", f"correlation with these scores, {every}", above=0.5, control="halves", **wide, **ours),
    report.Claim("tpr_rises", "Conf finds more of the members with a high score", f"TPR of Conf, iterative, {top}, {every}", **more, **sides, **slides),
    report.Claim("risk_rises", "Members of a high score are told better from non-members of that score", f"{within}, {top}, least", **more, **part, **slides),
    report.Claim("random", "A random score shows nothing", f"{within}, Conf, {top}, mean of the data", within=0.03, control="the same, dealt out anew", **ours),
    report.Claim("lira_follows", "LiRA finds more of the members with a high score", f"TPR at 5 % FPR, dense, {top}, {every}", **more, **sides, **slides),
    report.Claim("beyond_ease", "It is more than difficulty", f"correlation of LiRA with it, difficulty known, {every}", above=0.1, **wide, **easy, **ours),
    report.Claim("pruning_adds_most", "Iterative pruning adds most leak there", f"{within} minus dense, {top}", above=0.03, margin=0.03, **steps, **slides),
    regime={"dense member accuracy": 0.95, "dense test accuracy": learnt},
)  # fmt: skip
claims

# %% [markdown]
# ## Score, train, prune
# A score is the mean confidence in the true class of networks that trained on a sample, minus that of others; none is a
# victim or a shadow. Shadows walk the victim's whole chain.

# %%
given, ways, rankings, halves, folded, right = {"optimizer": "adam", "decay": decay, "patience": patience}, {}, {}, {}, {}, {}
for i, d in enumerate(data):
    design = VictimAttacker(pool[i], seed=seed, dev=dev[i], victims=victims)
    what, net = Data(d, pixels[i] or None, joined=True), Model(model[i], width[i], stem[i])
    setup = Setup(what, design, net, Schedule(epochs[i], batch[i], lr=lr[i], **given), victims + shadows, seed, precision)
    short, scored = Schedule(round_epochs[i], batch[i], lr=lr[i], **given), Schedule(score_epochs[i], batch[i], "adam", lr[i], decay=decay)
    dense, ranking = setup.trained(), setup.memorization(networks, share, scored)
    pruned = dense.iteratively("L1 unstructured", sparsity, short, rounds, head=model[i] != "fc")
    longer = dense.train(replace(short, epochs=rounds * round_epochs[i]))
    ways |= {(d, "dense"): dense, (d, "as many steps"): longer, (d, "iterative"): pruned[-1]}
    rankings[d], folded[d], right[d] = ranking, setup.fold_memorization(folds, scored), Memorization(ranking.models)
    halves[d] = [Memorization(ranking.models[k::2], ranking.measure) for k in (0, 1)]
dealt = {d: [ranking.shuffle(k) for k in range(20)] for d, ranking in rankings.items()}

attackers = {"Conf": Threshold(), "LiRA": LiRA("offline_cdf")}
attacks = {(way, name): each.attack(one, targets=victims) for way, each in ways.items() for name, one in attackers.items()}
signals = {way: each.signals()[:victims] for way, each in ways.items()}
removed = [Sparsity(state) for d in data for state in ways[d, "iterative"].states[:victims]]

results = lab.realize(attacks, signals, rankings, halves, folded, right, dealt, removed)
found = audit.Comparison.of(results, signals, attacks)

# %% [markdown]
# ## The scores themselves
# In published files 17.6 % of CIFAR-10's samples reach .5 (ResNet18), 5.5 % of Location's .6, scaled to 0 to 1.
# Difficulty is what networks without a sample lack. LiRA compares with such networks too: it is bound to follow the
# score.

# %%
rows, agreed, alike, beyond = [], {}, {}, {}
for d in data:
    own, accuracy, exposed = (results[one] for one in (rankings[d], right[d], attacks[(d, "dense"), "LiRA"]))
    agreed[d], alike[d] = samples.reliability(*(results[half] for half in halves[d])), samples.agreement(own, results[folded[d]])
    beyond[d] = audit.over(samples.followed(exposed, own, given_ease=True))
    rows.append({"data": d, "with itself": agreed[d], "one network a fold": alike[d], "accuracy's": samples.agreement(own, accuracy)})
    rows[-1] |= {"difficulty": samples.agreement(own, {**own, "score": -own["outside"]}), "LiRA": audit.over(samples.followed(exposed, own))}
    rows[-1] |= {"LiRA, difficulty known": beyond[d], "surely above 0": float(np.mean(own["score"] > 1.96 * own["error"]))}
    rows[-1] |= {f"{name} at least .5": float(np.mean(one["score"] >= 0.5)) for name, one in (("score", own), ("accuracy's", accuracy))}
report.table(rows, caption=f"Rank correlations of the scores by confidence of {networks} networks with others, and shares of the samples")

# %% [markdown]
# ## True and false positives
# Conf at its own thresholds, which shadows choose for each class. Each part has as many of all samples as any other.

# %%
names, who = ["lowest", *map(str, range(2, parts)), "highest"], ("members", "non-members")
rates = {way: samples.rates(results[attacks[way, "Conf"]], results[rankings[way[0]]], parts) for way in ways if way[1] != "as many steps"}
points = [{"data": d, "who": f"{side}, {net}", "part": part, "value": audit.over(each[k, s])}
          for s, side in enumerate(who) for (d, net), each in rates.items() for k, part in enumerate(names)]  # fmt: skip
fewer = [sum(samples.rise(rates[d, "iterative"][:, s]).high < 0 for d in data) for s in (0, 1)]
title = f"Highest part: Conf surely calls fewer members on {fewer[0]}, fewer others on {fewer[1]} of {len(data)} data sets"
report.profile(points, hue="who", facet="data", null=None, xlabel="part, by score", ylabel="share called member", title=title)

# %% [markdown]
# ## Within the part
# AUC between members and non-members of the same part: confident samples are compared with confident ones.

# %%
areas = {(*way, name): samples.areas(results[attack], results[rankings[way[0]]], parts) for (way, name), attack in attacks.items()}
for d in data:
    drawn = [samples.areas(results[attacks[(d, "iterative"), "Conf"]], results[one], parts) for one in dealt[d]]
    areas[d, "random scores", "Conf"] = np.mean(drawn, axis=0)
points = [{"data": d, "network": f"{name}, {net}", "part": part, "value": audit.over(each[k])}
          for (d, net, name), each in areas.items() if net != "as many steps" for k, part in enumerate(names)]  # fmt: skip
rises = {(d, name): samples.rise(areas[d, "iterative", name]) for d in data for name in attackers}
title = f"Members of the highest part are surely told better: {sum(each.low > 0 for each in rises.values())} of {len(rises)} pairs of data and attack"
report.profile(points, hue="network", facet="data", level="guessing", xlabel="part, by score", ylabel="AUC within the part", title=title)

# %%
added = {(d, net, name): areas[d, net, name] - areas[d, "dense", name] for d, net in ways for name in attackers}
caught = {d: samples.rates(results[attacks[(d, "dense"), "LiRA"]], results[rankings[d]], parts, 0.05) for d in data}
rows = [
    {"data": d, "part": part, "mean score": float(np.array_split(np.sort(results[rankings[d]]["score"]), parts)[k].mean())}
    | {f"LiRA, dense: {what}": audit.over(caught[d][k, s]) for s, what in enumerate(("TPR", "FPR"))}
    | {f"AUC of {name}, {net} minus dense": audit.over(added[d, net, name][k]) for name in attackers for net in ("iterative", "as many steps")}
    for d in data for k, part in enumerate(names)
]  # fmt: skip
report.table(rows, caption=f"Mean over {victims} victims, {shadows} shadows; LiRA offline, with one border for all parts; AUC within parts")

# %% [markdown]
# ## Verdicts

# %%
members = audit.least(audit.over([results[one]["accuracy_member"] for one in signals[d, "dense"]]) for d in data)
acts = {f"{sparsity:.0%} of the weights are gone": min(float(results[one]["network"]) for one in removed) > sparsity - 0.03}
beats = {f"{name} beats a guess on {d}": found.leak((d, "dense"), name)["auc"].low > 0.5 for d in data for name in attackers}
report.judge(
    claims,
    agrees=audit.least(agreed.values()),
    folds_agree=audit.least(alike.values()),
    tpr_rises=audit.least(samples.rise(rates[d, "iterative"][:, 0]) for d in data),
    risk_rises=audit.least(rises.values()),
    random=samples.rise(np.mean([areas[d, "random scores", "Conf"] for d in data], axis=0)),
    lira_follows=audit.least(samples.rise(each[:, 0]) for each in caught.values()),
    beyond_ease=audit.least(beyond.values()),
    pruning_adds_most=samples.rise(np.mean([added[d, "iterative", name] for d in data for name in attackers], axis=0)),
    notes={"beyond_ease": "; ".join(f"{d}: {each:.3f}" for d, each in beyond.items())},
    checks={"tpr_rises": beats, "risk_rises": beats | acts, "lira_follows": beats, "beyond_ease": beats, "pruning_adds_most": acts},
    regime={"dense member accuracy": members, "dense test accuracy": audit.least(found.accuracy((d, "dense")) for d in data)},
)

# %% [markdown]
# **Caveat.** All victims share one half of the samples and one set of shadows: intervals say what other victims would
# give, those of scores what other samples would. Rules were settled on another draw (seed 0).

# %%
report.provenance(results)
