# ---
# jupyter:
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
# **It would be wrong if** RelaxLoss were no farther, or cost more accuracy. Both hang on **alpha**, of which the text
# says nothing here. Tab. 7's RelaxLoss is cheaper than half of the data *and* leaves training accuracy at .797. On draw
# 0 of `quick` neither of our alphas did both: .3 is cheaper and trains to .95; 1 trains to .80 and costs more. "Farther
# although cheaper" is a claim about the smaller. **Beside the point if** something else decided:
# - *The batches.* In M_all's order RelaxLoss is CE until a loss falls below alpha, so it stays near by construction;
#   half of the data is as far in M_all's order as in its own (there: median .90 and .89 in stage 4). So M_all's
#   order shortens RelaxLoss's way alone: it gives a lower bound. We compare in an order of its own, and show the bound.
#   Half of the data takes half of the steps; in M_all's order it takes as many, and is as far.
# - *Any change at all.* RelaxLoss has to be farther than CE on all data in another order, too (a check).
# - *The fit.* CE that is stopped when it fits about as well as RelaxLoss with alpha 1 (table), after few of the steps.
#
# Rules were settled on draw 0, a referee's objections in hand, and are judged on this one (seed 1).

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: TinyImageNet
pixels = 16  # side of the images, pixels, after area resize (paper: 64)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (paper: 64)
stem = "conv3"  # first layer (paper: not stated; conv3-pool gives its 4x4 map in stage 4 at 64 pixels)
pool = 600  # samples in the full training set (paper: 100,000)
alphas = [0.3, 1.0]  # RelaxLoss target losses, nats: one cheaper than half of the data, one that trains to .80 (paper: not stated)
stop = 2  # epochs after which CE fits about as well as RelaxLoss with the larger alpha does in the end (ours)
epochs = 12  # epochs (paper: not stated)
batch = 64  # samples a step (paper: not stated)
optimizer = "adam"  # adam, or sgd with Nesterov momentum 0.9 (paper: not stated)
lr = 0.005  # learning rate, cosine to 0 (paper: not stated)
augment = 0  # padding of the random crop with flips, pixels; 0: none (paper: not stated here)
pairs = 8  # triples of networks, each with its own seed and its own half (paper: one)
margin = 0.05  # smallest probability away from 1/2 that is worth having, in stage 4 (ours)
early_margin = 0.12  # the same for the least of all stages: the early ones differ more from pair to pair (ours)
learnt = 0.6  # least test accuracy of a network that has learnt (ours)
seed = 101  # seed of halves, initialisations and orders
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
import numpy as np
from leak_atlas import audit, lab, report
from leak_atlas.recipe import Augment, Data, Distance, Halves, Model, RelaxLoss, Schedule, Setup, Signals, self_audit

mild, strong = min(alphas), max(alphas)
chance, accurate = "P(a sample is farther under RelaxLoss), ", "test accuracy, RelaxLoss minus half of the data"
beyond = {"above": 0.5, "paper": "Fig. 17", "control": "CE again, a check"}
claims = report.claims(
    report.Claim("stage_4", f"With alpha {mild:g} RelaxLoss moves stage 4 farther than half of the data does", chance + "stage 4", margin=margin, **beyond),
    report.Claim("cheaper", f"With alpha {mild:g} it costs less accuracy", accurate, above=0.0, margin=0.02, paper="Tab. 7", control="CE on all data"),
    report.Claim("in_one_order", f"With alpha {mild:g} it moves stage 4 farther in M_all's order, too", chance + "stage 4",
                 above=0.5, margin=margin, paper="Fig. 17", control="its own order; a lower bound"),
    report.Claim("strong_stages", f"With alpha {strong:g} it moves every stage farther", chance + "least of stages", margin=early_margin, **beyond),
    report.Claim("strong_cheaper", f"With alpha {strong:g}, too, it costs less accuracy", accurate, above=0.0, margin=0.02, paper="Tab. 7", control="fit"),
    report.Claim("beyond_a_poor_fit", f"With alpha {strong:g} it moves stage 4 farther than CE that is stopped", "P(farther than under it), stage 4",
                 above=0.5, margin=margin, ours=True, control=f"about equal fit, {stop} of {epochs} epochs"),
    regime={"member accuracy of CE, all data": 0.95, "test accuracy of CE, all data": learnt},
)  # fmt: skip
claims

# %%
schedule = Schedule(epochs, batch, optimizer, lr, nesterov=True, augment=Augment(augment) if augment else None)
setup = Setup(Data(data, pixels), Halves(pool, seed=seed), Model(model, width, stem), schedule, pairs, seed, precision)
plain = setup.pairs()
starts = [pair.whole.at("init") for pair in plain]
another = [start.train(schedule, order=1) for start in starts]
own, one = "order of its own", "M_all's order"
lost_half, again, stopped = ("half of the data", own), ("CE again", own), ("CE, stopped", own)
relax, bound = {alpha: (f"RelaxLoss, {alpha:g}", own) for alpha in alphas}, (f"RelaxLoss, {mild:g}", one)
changes = {lost_half: [pair.half for pair in plain], again: another, stopped: [state.at(stop) for state in another]}
changes |= {relax[alpha]: [start.train(schedule, RelaxLoss(alpha), order=1) for start in starts] for alpha in alphas}
changes |= {bound: [pair.whole for pair in setup.pairs(RelaxLoss(mild))]}
distances = {way: [Distance(pair.whole, other) for pair, other in zip(plain, each, strict=True)] for way, each in changes.items()}
networks = {("CE", one): [pair.whole for pair in plain], **changes}
signals = {way: [Signals(state) for state in each] for way, each in networks.items()}
results = lab.realize(distances, signals, self_audit(plain))

# %% [markdown]
# ## Which change moves a sample farther?
# P(the distance of a sample under one change > that under another), 1/2 where both move as far, by the paper's distance
# (Euclidean) and by direction (ours). CE again tells how much any other order moves.

# %%
parts = results[distances[lost_half][0]].parts
stages = [i for i, part in enumerate(parts) if part.startswith("stage")]


def farther(first, second, measure="euclidean"):
    """P(distance under the first change > distance under the second) by part, over triples of networks."""
    both = [np.concatenate([results[a][measure], results[b][measure]], axis=1) for a, b in zip(distances[first], distances[second], strict=True)]
    found = [audit.auc(each, np.arange(each.shape[1]) < each.shape[1] // 2) for each in both]
    return [audit.mean_ci(part, bounds=(0, 1)) for part in zip(*found, strict=True)]


def counted(found):
    far, near = sum(found[i].low > 0.5 for i in stages), sum(found[i].high < 0.5 for i in stages)
    return f"{far} ({near} nearer)" if near else f"{far}"


named = {way: f"alpha {alpha:g}" for alpha, way in relax.items()} | {bound: f"alpha {mild:g} in {one}"}
against = {lost_half: [*relax.values(), bound, again], again: [*relax.values(), bound], stopped: [relax[strong]]}
panels = ((lost_half, "euclidean"), (lost_half, "direction"), (again, "euclidean"))
chances = {(way, than, m): farther(way, than, m) for m in ("euclidean", "direction") for than, ways in against.items() for way in ways}
report.profile(
    [{"part": part, "value": value, "change": named.get(way, way[0]), "panel": f"than {than[0].removesuffix(' of the data')}, {m.replace('euclid', 'Euclid')}"}
     for (way, than, m), found in chances.items() if (than, m) in panels for part, value in zip(parts, found, strict=True)],
    hue="change", facet="panel", ylabel="P(farther)",
    title=f"Of {len(stages)} stages RelaxLoss surely moves farther than half of the data does: "
    + ", ".join(f"{counted(chances[way, lost_half, 'euclidean'])} with {named[way]}" for way in named),
)  # fmt: skip

# %%
rows = [{"P(farther under": ", ".join(way), "than under)": than[0]} | dict(zip(parts, chances[way, than, "euclidean"], strict=True))
        for than, ways in against.items() for way in ways]  # fmt: skip
report.table(rows, caption=f"Euclidean distance, over {pairs} triples; a guess has 0.5")

# %% [markdown]
# ## What each change costs: Tab. 7

# %%
accuracy = {way: {r: [float(results[s][f"accuracy_{r}"]) for s in each] for r in ("member", "test")} for way, each in signals.items()}
TAB7 = {("CE", one): (0.9998, 0.5458), lost_half: (0.9999, 0.4407)} | dict.fromkeys(relax.values(), (0.7968, 0.4757))  # training and test
lost = {way: audit.paired_difference(found["test"], accuracy["CE", one]["test"]) for way, found in accuracy.items() if way != ("CE", one)}
cost = {alpha: audit.paired_difference(accuracy[way]["test"], accuracy[lost_half]["test"]) for alpha, way in relax.items()}
report.against_paper(
    [{"setting": ", ".join(way), "value": lost[way]} | ({"paper": TAB7[way][1] - TAB7["CE", one][1]} if way in TAB7 else {})
     for way in (lost_half, *relax.values(), bound, again)],
    title="RelaxLoss's test accuracy, minus that of half of the data: "
    + ", ".join(f"{100 * cost[alpha].value:+.1f} points with alpha {alpha:g}" for alpha in alphas) + " (Tab. 7: +3.5)",
    xlabel="test accuracy, minus that of CE on all data", source="Tab. 7, ResNet18 on TinyImageNet",
)  # fmt: skip

# %%
fit = {way: {role: audit.mean_ci(each) for role, each in found.items()} for way, found in accuracy.items()}
report.table(
    [{"network": way[0], "batches": way[1], "training accuracy": found["member"], "test accuracy": found["test"]}
     | (dict(zip(("Tab. 7, training", "Tab. 7, test"), TAB7[way], strict=True)) if way in TAB7 else {}) for way, found in fit.items()],
    caption=f"Means over {pairs} triples; CE is stopped after {stop} of {epochs} epochs. Tab. 7: ResNet18 on TinyImageNet",
)  # fmt: skip

# %% [markdown]
# ## Verdicts

# %%
last = parts.index("stage4")
mild_is, strong_is = ({than: chances[relax[alpha], than, "euclidean"] for than in (lost_half, again)} for alpha in (mild, strong))
lower = {way: audit.paired_difference(accuracy["CE", one]["member"], accuracy[way]["member"]) for way in (*relax.values(), bound)}
acts = {way: {"RelaxLoss lowers training accuracy": found} for way, found in lower.items()}
alike = {"CE that is stopped fits as well, to .1": abs(fit[stopped]["member"].value - fit[relax[strong]]["member"].value) < 0.1}
report.judge(
    claims,
    stage_4=mild_is[lost_half][last],
    cheaper=cost[mild],
    in_one_order=chances[bound, lost_half, "euclidean"][last],
    strong_stages=audit.least(strong_is[lost_half][i] for i in stages),
    strong_cheaper=cost[strong],
    beyond_a_poor_fit=chances[relax[strong], stopped, "euclidean"][last],
    checks={"cheaper": acts[relax[mild]], "in_one_order": acts[bound]} | {
        "stage_4": acts[relax[mild]] | {"it is farther than CE again, stage 4": mild_is[again][last].low > 0.5},
        "strong_stages": acts[relax[strong]] | {"it is farther than CE again, every stage": min(strong_is[again][i].low for i in stages) > 0.5},
        "strong_cheaper": acts[relax[strong]], "beyond_a_poor_fit": acts[relax[strong]] | alike,
    },
    regime={f"{role} accuracy of CE, all data": fit["CE", one][role] for role in ("member", "test")},
)  # fmt: skip

# %% [markdown]
# **Caveat.** A Euclidean distance also grows where features are longer, and two trainings are far apart whatever was
# changed (see CE again): it does not say that a feature became worse. Which order the paper's
# networks have is not stated; with one seed for all, its RelaxLoss has M_all's. There the alphas part: on draw 0, where
# half of the data had that order too, P(farther) in stage 4 was .11 with .3 and .72 with 1 (quick, 8 triples).

# %%
report.provenance(results)
