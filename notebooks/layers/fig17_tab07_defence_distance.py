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
# # Does RelaxLoss move features farther than losing half of the data?
#
# **PPTP, Fig. 17 and Tab. 7** (appendix). Three networks from one initialisation: cross-entropy (CE) on all data, CE on
# half of it, RelaxLoss on all. The figure compares, stage by stage, how far the second and the third are from the
# first, by the Euclidean distance of a sample's features. **The paper says** that RelaxLoss moves them *farther* than
# halving the data does, although it costs less accuracy (7.0 against 10.5 points): a defence of the whole network
# disturbs features that did not leak. The text gives no distance.
#
# **It would be wrong if** RelaxLoss were no farther, or cost more accuracy. **Beside the point if** something else
# than RelaxLoss decided. Three things could, and each has its control:
# - *The batches.* With M_all's batches RelaxLoss is CE until a loss falls below alpha, so it stays near by
#   construction; M_h1's own order has nothing to do with M_all's. So each is compared *in an order of its own*, and
#   both *in M_all's order* (M_h1 then skips the other half: as many steps, of half the size).
# - *The fit.* RelaxLoss leaves training accuracy at .797 in Tab. 7. CE that is stopped where it fits as well is far too.
# - *Any change at all.* CE on the same data in another order, and from another seed.
#
# alpha was chosen on draw 0 for a training accuracy near Tab. 7's: .8 reaches .84, 1.2 reaches .75, and .3, which this
# page had before, .96. Rules were settled on draw 0 too, and are judged on this one (seed 1).

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (python -m lib.data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (paper: 64)
stem = "conv3"  # first layer (paper: not stated; conv3-pool gives its 4x4 map in stage 4 at 64 pixels)
pool = 600  # samples in the full training set (paper: 100,000)
alpha = 1.0  # RelaxLoss target loss, nats, for a training accuracy near .80 (paper: not stated for this figure; 1 to 3 elsewhere)
stop = 2  # epochs after which CE fits about as well as RelaxLoss does in the end (ours)
epochs = 12  # epochs (paper: not stated)
batch = 64  # samples a step (paper: not stated)
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0 (paper: not stated)
augment = 0  # padding of the random crop with flips, pixels; 0: none (paper: not stated here)
pairs = 12  # triples of networks, each with its own seed and its own half (paper: one)
margin = 0.05  # smallest probability away from 1/2 that is worth having, in stage 4 (ours)
early_margin = 0.12  # the same for the least of all stages: the early ones differ more from pair to pair (ours)
learnt = 0.6  # least test accuracy of a network that has learnt (ours)
seed = 1  # seed of halves, initialisations and orders
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
import numpy as np

from lib import audit, lab, report
from lib.recipe import Augment, Data, Distance, Halves, Model, RelaxLoss, Schedule, Setup, Signals, seed_floors, self_audit

near, far = {"paper": "Fig. 17", "margin": margin}, {"paper": "Fig. 17", "margin": early_margin}
each, both, chance = "each in an order of its own", "both in M_all's order", "P(a sample is farther under RelaxLoss), "
fitted, accurate = chance.replace("), ", " than under CE that is stopped), "), "test accuracy, RelaxLoss minus half of the data, "
claims = report.claims(
    report.Claim("stage_4_in_own_orders", f"RelaxLoss moves stage 4 farther than half of the data does, {each}", chance + "stage 4", above=0.5, control="CE again", **near),
    report.Claim("stages_in_own_orders", f"It moves every stage farther, {each}", chance + "least of stages", above=0.5, control="CE again", **far),
    report.Claim("stage_4_in_one_order", f"It moves stage 4 farther, {both}", chance + "stage 4", above=0.5, control="as many steps", **near),
    report.Claim("stages_in_one_order", f"It moves every stage farther, {both}", chance + "least of stages", above=0.5, control="as many steps", **far),
    report.Claim("beyond_a_poor_fit", "It moves stage 4 farther than CE that is stopped", fitted + "stage 4", above=0.5, control="equal fit, same batches", **near),
    report.Claim("costs_less", "It costs less accuracy than half of the data", accurate + each, above=0.0, paper="Tab. 7", control="training accuracy .80", margin=0.02),
    regime={"member accuracy of CE, all data": 0.95, "test accuracy of CE, all data": learnt},
)  # fmt: skip
claims

# %%
schedule = Schedule(epochs, batch, optimizer, lr, nesterov=True, augment=Augment(augment) if augment else None)
setup = Setup(Data(data, pixels), Halves(pool, seed=seed), Model(model, width, stem), schedule, pairs, seed, precision)
plain, skipping, relaxed = setup.pairs(), setup.pairs(common=True), setup.pairs(RelaxLoss(alpha))
starts = [pair.whole.at("init") for pair in plain]
another = [start.train(schedule, order=1) for start in starts]
own, one = "order of its own", "M_all's order"
changes = {
    ("half of the data", own): [pair.half for pair in plain],
    ("RelaxLoss", own): [start.train(schedule, RelaxLoss(alpha), order=1) for start in starts],
    ("CE, stopped", own): [each.at(stop) for each in another],
    ("CE again", own): another,
    ("half of the data", one): [pair.half for pair in skipping],
    ("RelaxLoss", one): [pair.whole for pair in relaxed],
}
distances = {way: [Distance(pair.whole, other) for pair, other in zip(plain, each, strict=True)] for way, each in changes.items()}
floor = seed_floors(plain)
networks = {("CE", one): [pair.whole for pair in plain], **changes}
signals = {way: [Signals(state) for state in each] for way, each in networks.items()}
results = lab.realize(distances, floor, signals, self_audit(plain))

# %% [markdown]
# ## Which change moves a sample farther?
# For each triple of networks: P(the distance of a sample under one change > that of a sample under the other), 1/2
# where both move as far. The line of CE again tells how much of it any other order would give.

# %%
parts = results[floor[0]].parts
stages = [i for i, part in enumerate(parts) if part.startswith("stage")]


def farther(first, second, measure="euclidean"):
    """P(distance under the first change > distance under the second) by part, over triples of networks."""
    both = [np.concatenate([results[a][measure], results[b][measure]], axis=1) for a, b in zip(distances[first], distances[second], strict=True)]
    found = [audit.auc(each, np.arange(each.shape[1]) < each.shape[1] // 2) for each in both]
    return [audit.over(part, bounds=(0, 1)) for part in zip(*found, strict=True)]


half, relax, stopped, again, skipped, same = changes
compared = {
    f"RelaxLoss against half, {own}": (relax, half),
    f"RelaxLoss against half, {one}": (same, skipped),
    "RelaxLoss against CE that is stopped": (relax, stopped),
    "CE again against half": (again, half),
}
chances = {(name, measure): farther(*pair, measure) for measure in ("euclidean", "direction") for name, pair in compared.items()}
kinds = {"euclidean": "Euclidean distance (the paper's)", "direction": "direction, 1 − cosine (ours)"}
counts = [sum(chances[name, "euclidean"][i].low > 0.5 for i in stages) for name in [*compared][:2]]
rows = [
    {"part": parts[i], "value": estimate, "change": name, "measure": kinds[measure]}
    for (name, measure), found in chances.items()
    for i, estimate in enumerate(found)
]
title = f"RelaxLoss is surely farther in {counts[0]} of {len(stages)} stages in orders of its own, in {counts[1]} in M_all's order"
report.profile(rows, hue="change", facet="measure", title=title, ylabel="P(the first is farther)")

# %%
middle = {way: np.median([results[d]["euclidean"] for d in each], axis=(0, 2)) for way, each in distances.items()}
middle["CE", "another seed"] = np.median([results[d]["euclidean"] for d in floor], axis=(0, 2))
rows = [
    {"network": way[0], "batches": way[1]} | dict(zip(parts, (f"{value:.2f}" for value in values), strict=True)) for way, values in middle.items()
]
report.table(rows, caption=f"Median distance of a sample's features from CE on all data, over {pairs} triples, in the units of each part")

# %% [markdown]
# ## What each change costs: Tab. 7

# %%
accuracy = {way: {r: [float(results[s][f"accuracy_{r}"]) for s in each] for r in ("member", "test")} for way, each in signals.items()}
TAB7 = {("CE", one): (0.9998, 0.5458), half: (0.9999, 0.4407), relax: (0.7968, 0.4757)}  # training and test accuracy
lost = {way: audit.paired_difference(found["test"], accuracy["CE", one]["test"]) for way, found in accuracy.items() if way != ("CE", one)}
cost = audit.paired_difference(accuracy[relax]["test"], accuracy[half]["test"])
report.against_paper(
    [
        {"setting": ", ".join(way), "value": lost[way]} | ({"paper": TAB7[way][1] - TAB7["CE", one][1]} if way in TAB7 else {})
        for way in (half, skipped, relax, same, again)
    ],
    title=f"RelaxLoss costs {abs(100 * cost.value):.1f} points {'less' if cost.value > 0 else 'more'} than half of the data (Tab. 7: 3.5 less)",
    xlabel="test accuracy, minus that of CE on all data",
    source="Tab. 7, ResNet18 on TinyImageNet",
)

# %%
fit = {way: {role: audit.over(each) for role, each in found.items()} for way, found in accuracy.items()}
report.table(
    [{"network": way[0], "batches": way[1], "training accuracy": found["member"], "test accuracy": found["test"]}
     | (dict(zip(("Tab. 7, training", "Tab. 7, test"), TAB7[way], strict=True)) if way in TAB7 else {}) for way, found in fit.items()],
    caption=f"Means over {pairs} triples; CE is stopped after {stop} of {epochs} epochs. Tab. 7: ResNet18 on TinyImageNet",
)  # fmt: skip

# %% [markdown]
# ## Verdicts

# %%
mine, common, fitted, _ = (chances[name, "euclidean"] for name in compared)
acts = {
    f"RelaxLoss lowers training accuracy, {way[1]}": audit.paired_difference(accuracy["CE", one]["member"], accuracy[way]["member"])
    for way in (relax, same)
}
alike = {"CE that is stopped fits as well, to .1": abs(fit[stopped]["member"].value - fit[relax]["member"].value) < 0.1}
report.judge(
    claims,
    stage_4_in_own_orders=mine[parts.index("stage4")],
    stages_in_own_orders=audit.least(mine[i] for i in stages),
    stage_4_in_one_order=common[parts.index("stage4")],
    stages_in_one_order=audit.least(common[i] for i in stages),
    beyond_a_poor_fit=fitted[parts.index("stage4")],
    costs_less=cost,
    checks={claim.name: acts | (alike if claim.name == "beyond_a_poor_fit" else {}) for claim in claims},
    regime={f"{role} accuracy of CE, all data": fit["CE", one][role] for role in ("member", "test")},
)

# %% [markdown]
# **Caveat.** A Euclidean distance also grows where features are longer, and two trainings are far apart whatever was
# changed (see CE again, and another seed): it does not say that a feature became worse. One alpha; the paper does not
# print its own for this figure.

# %%
report.provenance(results)
