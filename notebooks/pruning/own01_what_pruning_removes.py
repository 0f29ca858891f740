# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What does pruning remove?
#
# **Ours, beside SAMIA.** Epoch by epoch a network moves along its *own line* in the plane of accuracy and leak. Then most of its weights are set to zero and
# the rest is trained on. Does that only move the network along its own line, or off it? And whom does it expose: the same samples as before, or others?
#
# **The paper says** that at similar test accuracy most pruned networks leak more than the dense one (section 5.3, Fig. 7): they would lie off the line. It says
# nothing about single samples.
#
# **It would be beside the point if** the extra epochs did it (control: as many, with nothing removed), if it did not matter which weights go (control: as many
# at random), or if who is exposed changed no more than between two seeds that train on the same members (reference: such a pair for each target).
#
# **Seen before.** This notebook keeps draw 0, the cast of weights/, on which a first run was seen. After it came: the claims on the lower sparsity but that on
# channels (random weights were judged at the higher), equal leak in the last four claims, epoch 1, the checks that networks still learn, and the regime of
# the pruned network; no border or margin moved.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: CIFAR10 and six others
pixels = 16  # side of the images, pixels, after area resize (paper: 32)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (paper: 64)
stem = "conv3"  # first layer, as the folder weights/ has it
pool = 600  # samples from which each network draws half (paper: another design, with one victim)
dev = 300  # samples outside the pool, here unused: the dense networks are those of weights/tab03
reference = 300  # samples outside the pool, here unused too
test = 600  # test samples
sparsities = [0.6, 0.8]  # shares that are removed (paper: .5 to .9)
epochs = 12  # epochs of the dense network (published code: at most 100)
course = [1, 2, 3, 5, 8]  # earlier epochs, which make its line
retrain_epochs = 5  # epochs after pruning (published code: at most half of the dense network's)
batch = 64  # samples a step (paper: 128)
lr = 0.005  # learning rate of Adam, cosine to 0, at the start of each training (paper: 0.001, constant)
shadows = 10  # networks in complement pairs; each is attacked by the others, less its pair (paper: 5 shadows)
seed = 0  # seed of design, initialisation and order; the second network of each target has the next one
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace
from functools import partial

from leak_atlas import audit, lab, report
from leak_atlas.recipe import RMIA, Data, LiRA, Model, RandomHalves, Schedule, Setup, Sparsity

low, high = min(sparsities), max(sparsities)
some, most, control, kept = ("L1 unstructured", low), ("L1 unstructured", high), ("random weights", low), "dense, trained on"
few, many = f"{low:.0%} L1 unstructured", f"{high:.0%} L1 unstructured"
at, agree, equal = "test accuracy at equal leak", "rank correlation over members with dense", "members' rank correlation with dense at equal leak"
paper = {"within": 0.02, "paper": "Fig. 7, section 5.3", "control": "each target's own epochs, its training on included; RMIA on both sides"}
ours, same = {"within": 0.03, "ours": "our control"}, {"control": "as many epochs with nothing removed; paired"}
seeds = {"control": "two networks with the same members, each attacked by shadows of its own seed"}
ranks = {"above": 0.0, "margin": 0.1, "ours": "our question"}
beside = {"control": "as many epochs with nothing removed; each beside the dense epochs' line"}
random = {"control": "as many weights of each layer at random; each beside the dense epochs' line"}
claims = report.claims(
    report.Claim("most_along_line", f"{many} leaves a network on its line", f"{at}, {many} minus dense epochs", **paper),
    report.Claim("some_along_line", f"{few} leaves it on its line", f"{at}, {few} minus dense epochs", **paper),
    report.Claim("channels_along_line", f"{low:.0%} slimming leaves it on its line", f"{at}, {low:.0%} slimming minus dense epochs", **paper),
    report.Claim("choice_matters", f"{low:.0%} random weights cost more", f"{at}, {few} minus random weights", **ranks | {"margin": 0.02}, **random),
    report.Claim("most_leak_stays", f"{many} removes no leak and adds none", f"AUC of RMIA, {many} minus {kept}", **ours, **same),
    report.Claim("some_leak_stays", f"{few} removes no leak and adds none", f"AUC of RMIA, {few} minus {kept}", **ours, **same),
    report.Claim("most_exposed", f"After {many} who was exposed is so, beyond noise", f"{agree}, {many} minus second seed", **ranks, **seeds),
    report.Claim("some_exposed", f"After {few} who was exposed is so, beyond noise", f"{agree}, {few} minus second seed", **ranks, **seeds),
    report.Claim("most_reorders", f"{many} changes who is exposed, beyond training on", f"{equal}, {kept} minus {many}", **ranks, **beside),
    report.Claim("some_reorders", f"{few} changes who is exposed, beyond training on", f"{equal}, {kept} minus {few}", **ranks, **beside),
    report.Claim("more_reorders_more", f"{many} changes it more than {low:.0%}", f"{equal}, {few} minus {many}", **ranks, **beside),
    report.Claim("random_reorders_more", f"{low:.0%} random weights change it more", f"{equal}, {few} minus random weights", **ranks, **random),
    regime={"dense member accuracy": 0.95, "dense test accuracy": 0.6, "member accuracy, fewest weights gone": 0.95},
)
claims

# %% [markdown]
# ## Train, prune, train on
# Each network is target and shadow, and walks the whole chain. RMIA judges the line, since its targets hardly depend on each other. LiRA stands beside it, and
# gives each sample its exposure.

# %%
design = RandomHalves(pool, test=test, seed=seed, dev=dev, reference=reference)
long, short = (Schedule(n, batch, "adam", lr=lr) for n in (epochs, retrain_epochs))
setup = Setup(Data(data, pixels), design, Model(model, width, stem), long, shadows, seed, precision)
dense = setup.trained()
pruners = ("L1 unstructured", "slimming", "random weights")
bare = {(pruner, s): dense.pruned(pruner, s) for pruner in pruners for s in sparsities}
ways = {("epoch", e): dense.at(e) for e in course} | {"dense": dense, kept: dense.train(short)}
ways |= {way: each.train(short) for way, each in bare.items()} | {"second seed": replace(setup, seed=seed + 1).trained()}
attackers = {"RMIA": RMIA(), "LiRA": LiRA()}
attacks = {(way, name): each.attack(attacker) for way, each in ways.items() for name, attacker in attackers.items()}
signals = {way: each.signals() for way, each in ways.items()}
removed = {way: [Sparsity(state) for state in each] for way, each in bare.items()}
results = lab.realize(attacks, signals, removed)
found = audit.Comparison.of(results, signals, attacks)

# %% [markdown]
# ## Along the line, or off it?
# The line joins the dense network's epochs and its training on, for each target in the order of their AUC. Each point is a mean over the targets.

# %%
line = [*(("epoch", e) for e in course), "dense", kept]
names = {way: way if isinstance(way, str) else f"dense, epoch {way[1]}" if way[0] == "epoch" else f"{way[0]}, {way[1]:.0%}" for way in ways}
off = {way: found.at_matched_auc(way, line, "RMIA") for way in bare}
series = {"dense, by epoch": line} | {pruner: [(pruner, s) for s in sparsities] for pruner in pruners}
spots = [(name, a, way) for a in attackers for name, each in series.items() for way in each]
plane = [{"variant": name, "attack": a, "accuracy": found.accuracy(way), "auc": found.leak(way, a)["auc"]} for name, a, way in spots]
sure = {way: "above" if e.low > 0 else "below" if e.high < 0 else "on" if max(-e.low, e.high) < 0.02 else "not surely off" for way, e in off.items()}
title = f"{few} lies {sure[some]} the dense network's own line, {high:.0%} {sure[most]} it"
report.tradeoff(plane, title=title, xlabel="test accuracy", ylabel="AUC of the attack", level="guessing")

# %%
members = {way: audit.mean_ci([results[step]["accuracy_member"] for step in each]) for way, each in signals.items()}
rows = [
    {"network": names[way], "test accuracy": found.accuracy(way), "member accuracy": members[way]}
    | {f"AUC of {name}": found.leak(way, name)["auc"] for name in attackers}
    | {"accuracy beside the line": off.get(way)}
    | {"all weights, gone": f"{sum(results[s]['network'] for s in removed[way]) / shadows:.1%}" if way in bare else "–"}
    for way in ways
]
report.table(rows, caption=f"Mean over {shadows} targets, each attacked by the others less its pair. Beside the line: at equal AUC of RMIA")

# %% [markdown]
# ## Who is exposed?
# Rank correlation of LiRA's scores of the same target on the same samples, with those of the dense network, within members and within non-members. The second
# seed says how far scores agree that share nothing but their members. Where less leaks, scores are more noise and agree less: beside the line of the dense
# network's epochs agreement is compared at equal AUC of LiRA. At equal leak, training on is the control. Slimming is in the table alone.

# %%
scores = {way: results[attacks[way, "LiRA"]] for way in ways}
effect = attacks["dense", "LiRA"].design_effect
alike = {(way, inside): audit.exposed_alike(scores["dense"], scores[way], inside) for way in ways for inside in (True, False)}
rows = {(way, inside): audit.mean_ci(each, design_effect=effect) for (way, inside), each in alike.items()}
reorders = partial(found.at_matched_auc, line=line[:-1], attacker="LiRA", heights={way: alike[way, True] for way in ways})
series = {"dense, by epoch": line[:-1], kept: [kept], "second seed": ["second seed"]} | {p: [(p, s) for s in sparsities] for p in pruners[::2]}
plane = [{"variant": name, "x": rows[way, True], "auc": found.leak(way, "LiRA")["auc"]} for name, each in series.items() for way in each]
gap = reorders(kept, other=some)
word = "more than training on" if gap.low > 0 else "less than training on" if gap.high < 0 else "neither surely more nor less than training on"
title, xlabel = f"At equal leak, {few} reorders members {word}", "rank correlation of members with the dense network"
report.tradeoff(plane, "x", title=title, better="", xlabel=xlabel, ylabel="AUC of LiRA", level="guessing")

# %%
table = [
    {"network": names[way], "AUC of LiRA": found.leak(way, "LiRA")["auc"], "members, rank correlation": rows[way, True]}
    | {"beside the line": None if way in line[:-1] else reorders(way), "non-members, rank correlation": rows[way, False]}
    for way in ways
    if way != "dense"
]
report.table(table, caption="Each with the dense network of the same target. Beside the line of its epochs: members, at equal AUC of LiRA")

# %% [markdown]
# ## Verdicts

# %%
right = f"{many} is right about {members[most].value:.2f} of its members, {kept} about {members[kept].value:.2f}"
gone = [min(float(results[s]["network"]) for s in each) > way[1] - 0.05 for way, each in removed.items() if way[0] != "slimming"]
acts = {"weights and channels are gone": all(gone) and min(float(results[s]["convolutions"]) for s in removed["slimming", low]) > low - 0.3}
asked = {many: most, "minus random weights": control, f"{low:.0%} slimming": ("slimming", low)}
learns = {name: audit.mean_ci([float(results[s]["accuracy_member"]) - 0.5 for s in signals[way]]) for name, way in asked.items()}
report.judge(
    claims,
    most_along_line=off[most],
    some_along_line=off[some],
    channels_along_line=off["slimming", low],
    choice_matters=found.at_matched_auc(some, line, "RMIA", control),
    most_leak_stays=found.auc_difference(most, kept, "RMIA"),
    some_leak_stays=found.auc_difference(some, kept, "RMIA"),
    most_exposed=audit.paired_difference(alike[most, True], alike["second seed", True], design_effect=effect),
    some_exposed=audit.paired_difference(alike[some, True], alike["second seed", True], design_effect=effect),
    most_reorders=reorders(kept, other=most),
    some_reorders=gap,
    more_reorders_more=reorders(some, other=most),
    random_reorders_more=reorders(some, other=control),
    notes={name: right for name in ("most_leak_stays", "most_exposed")},
    checks={c.name: acts | {f"right about most members ({name})": learns[name] for name in asked if name in c.quantity} for c in claims},
    regime=dict(zip(claims.regime, (members["dense"], found.accuracy("dense"), members[some]), strict=True)),
)

# %% [markdown]
# **Caveat.** Targets are each other's shadows: LiRA's intervals and those of the rank correlations are widened as for its AUC, which was simulated for the AUC
# alone. At the higher sparsity networks may no longer fit their members (table): leak then goes with the fit. A network and what is made of it share their
# shadows' seeds, two seeds do not: part of the agreement before and after is the shadows'.

# %%
report.provenance(results)
