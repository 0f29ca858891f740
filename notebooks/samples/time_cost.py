# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What does each defence cost in time?
#
# **WeMem, slide "Time Cost Comparison in Iterative Pruning".** A table of how long five rounds of pruning take, for four networks: with RSW and SWMR, whose
# epochs visit a window of the members; with RMR; with PPB, adversarial regularization (ADV), RelaxLoss and DP-SGD; and for Base, without a defence.
# **The slides say** that a window reduces the data of an epoch and so speeds up pruning. Their RSW takes .29 to .73 of Base's time, and DP-SGD 2.5 to 111 times
# as long. Not in the slides, but in the published code: an epoch of ADV has seven attack steps on all members, and a single one of the classifier.
# The scores that windows go by come from networks of their own. Whether the table counts these, the slides do not say.
# **It would be wrong if** RSW took as long as Base. It would be beside the point if Base with as few visits were as quick (control), or if the scores cost more
# than the windows save: we count them. Seconds are a processor's, as they are stored with each training; operations, which are counted, stand beside them.
# The nearest of the four networks is Location's. Rules were settled on draws 0 and 1, a referee's objections in hand, and are judged on this one (seed 2).

# %% tags=["parameters"]
data = ["digits-bits"]  # data sets (leak-atlas data), first entry of each list (slides: four, Location too)
pixels = [0]  # side of the images, pixels, after area resize; 0: as they are
model = ["fc"]  # architecture (slides: VGG16, ResNet18, DenseNet121, FC)
width = [256]  # channels of stage 1; of a fully connected network: units of its first layer (published code: 256)
stem = ["conv3"]  # first layer of a ResNet
pool = [1740]  # samples of train and test part joined: half the victims', half the attacker's (published code: all)
dev = [88]  # samples of each half that are set apart; the rest is half member, half non-member (published code: a tenth)
epochs = [100]  # most epochs of the dense network (published code: 100)
round_epochs = [21]  # most epochs of each round (published code: 21)
batch = [128]  # samples a step (published code: 128)
lr = [0.001]  # learning rate of Adam (published code: 0.001)
decay = "constant"  # of that rate, by the epoch (published code: constant)
patience = None  # epochs without a better dev accuracy before training stops; None: all are trained (published code: 5)
victims = 10  # networks that split the victims' half (published code: 1)
shadows = 5  # networks that split the attacker's half; all are timed (published code: 5)
networks = 32  # networks of their own that give memorization scores (ours)
share = 0.7  # of the pool that each of them trains on (Feldman and Zhang: .7)
score_epochs = [40]  # their epochs (ours)
fold_epochs = 30  # epochs of five networks that train on a fifth of the members each, another way to scores (a fork of the published code)
rounds = 5  # of pruning, the first one at sparsity 0 (slides: 5)
sparsity = 0.6  # share that is removed in the end (slides: .5, .6, .7)
risky_share = 0.176  # members that RMR calls risky; published scores of CIFAR10 that reach tau = .5 (slides: tau = .5)
widths = [[26, 17, 9]]  # members of a class in a window, widest first (slides: 2/3, 4/9, 2/9 of a class)
steps = [[1, 2]]  # ranks by which it moves in an epoch; RSW takes the first, SWMR the last (published code: the same)
risky = 0.1  # weight decay of risky members (slides: .01, .1, 1, of which .1 is best)
ppb = 4.0  # weight of PPB (published code: 1 to 16)
adv = 1.0  # weight of ADV (published code: 1 to 8)
adv_widths = [64, 1024]  # units of the first layer of ADV's attack net, the second for few networks (published codes: 1024)
alpha = 0.6  # loss that RelaxLoss aims at, nats (published code: 1)
noises = [0.1]  # noise multiplier of DP-SGD, one or none; none with BatchNorm (published code: .01, .1, 1)
few = 3  # networks, in their first round alone, for what is dear: DP-SGD and two other forms of ADV (ours)
seed = 2  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace

import numpy as np
from leak_atlas import audit, lab, recipe, report
from leak_atlas.recipe import RMR, Data, Model, Population, Schedule, Window, WindowStudy
from leak_atlas.recipe import AdversarialRegularization as ADV

table, ours, base_too = {"paper": "time table", "margin": 0.1}, {"ours": True, "margin": 0.1}, {"control": "Base: the same networks"}
claims = report.claims(
    report.Claim("rsw_is_quicker", "RSW is quicker than Base", "seconds of the narrowest RSW over Base", below=1.0, **table, **base_too),
    report.Claim("rmr_as_base", "RMR takes as long as Base", "seconds of RMR over Base, minus 1", within=0.25, paper="time table", **base_too),
    report.Claim("swmr_is_quicker", "A window makes RMR quicker", "seconds of the narrowest SWMR over RMR", below=1.0, control="the same penalty", **table),
    report.Claim("adv_is_slower", "On such a network ADV takes longer", "seconds of ADV, one step an epoch, over Base", above=1.0, **table, **base_too),
    report.Claim("visits_suffice", "Base of as few visits is quicker still", "seconds of Base of as many visits over the narrowest RSW", below=1.0,
        control="fewer epochs a round, in which everybody is visited", **ours),
    report.Claim("scores_included", "RSW is quicker than Base with its scores counted", "seconds of the narrowest RSW and of all score networks, over Base",
        below=1.0, control="every network that is trained for the scores is counted", **ours),
    *[report.Claim("dp_is_dear", "DP-SGD takes more than twice as long", "seconds of a round over Base", above=2.0, **table, **base_too)][:len(noises)])  # fmt: skip
claims

# %% [markdown]
# ## The same rounds with each defence
# These are the trainings of `comparison`; only DP-SGD and two other forms of ADV, in one round of a few networks, are trained for this page.

# %%
study = WindowStudy(
    Data(data[0], pixels[0] or None, joined=True),
    Model(model[0], width[0], stem[0]),
    Schedule(epochs[0], batch[0], "adam", lr[0], decay=decay, patience=patience),
    fine_tuning=round_epochs[0],
    pool=pool[0],
    dev=dev[0],
    targets=victims,
    shadows=shadows,
    seed=seed,
    precision=precision,
    sparsity=sparsity,
    rounds=rounds,
    judges=networks,
    share=share,
    score_epochs=score_epochs[0],
)
dense, ranking, short, narrow = study.dense, study.ranking, study.tuning, widths[0][-1]
penalty, slow = RMR(risky, share=risky_share), {w: Window(w, steps[0][0], "low-to-high") for w in widths[0]}
plans = {"Base": {}} | {f"RSW, w = {w}": {"sampling": sampling, "ranking": ranking} for w, sampling in slow.items()}
plans |= {"RMR": (rmr := {"objective": penalty, "ranking": ranking}), "SWMR": rmr | {"sampling": Window(narrow, steps[0][-1], "high-to-low")}}
once = ADV(adv, 7, "one_step", adv_widths[0], outsiders="dev")
plans |= {"PPB": {"objective": recipe.PPB(ppb)}, "ADV": {"objective": once}, "RelaxLoss": {"objective": recipe.RelaxLoss(alpha)}}
visits = sum(slow[narrow].visits(members := study.class_members, round_epochs[0])) / members  # of each member, in a round
chains = {way: study.iterative(**plan) for way, plan in plans.items()}
chains["as many visits"] = study.iterative(schedule=replace(short, epochs=round(visits)))
dear = {f"ADV, attack net of {adv_widths[1]}": replace(once, width=adv_widths[1])}
dear |= {"ADV, a step a batch": ADV(adv, 1, width=adv_widths[0], attack_lr=0.01, outsiders="dev")}
dear |= {"DP-SGD": recipe.DPSGD(noises[0])} if noises else {}
chains |= {way: (Population(dense.states[:few]).train(short, goal),) for way, goal in dear.items()}
results = lab.realize(chains, ranking)

# %% [markdown]
# ## Ratios to Base
# The median of a network's rounds, over Base's of the same network; what a process loads once does not count so, but in what has a single round. Counted are
# the operations of the passes through both nets, forward and backward, and of single samples' gradients. Hollow: the slides' Location, whose network and
# epochs are ours, not its samples.


# %%
def of_rounds(what):
    """Of each way a round of each of its networks, `(networks,)`."""
    return {way: np.median([[results.meta(state)[what] for state in each] for each in chain], axis=0) for way, chain in chains.items()}


def ratio(way, other="Base", what="seconds", more=0.0, less=0.0):
    """Geometric mean over networks of `way` (and `more` a round) over `other`; `less` is subtracted."""
    one, two = (spent[what][name] for name in (way, other))
    found = audit.mean_ci(np.log((one + more) / two[: len(one)]))
    return audit.Estimate(*(float(np.exp(end)) - less for end in (found.value, found.low, found.high)), found.n, found.resolved)


spent = {what: of_rounds(what) for what in ("seconds", "operations")}
scores = {what: sum(results.meta(state)[what] for state in ranking.models) / rounds for what in spent}
thin, kinds = f"RSW, w = {narrow}", {"seconds": "measured", "operations": "counted"}
found = {(way, what): ratio(way, what=what) for way in chains for what in spent if way != "Base"}
found |= {("RSW with its scores", what): ratio(thin, what=what, more=scores[what]) for what in spent}
heads = ("RSW", "RMR", "SWMR", "PPB", "ADV", "RelaxLoss", "DP-SGD")
slides = {"Location, FC": (93, 68, 98, 95, 99, 195, 88, 231), "CIFAR10, VGG16": (630, 269, 468, 332, 571, 275, 434, 7 * 3600)}
slides["CIFAR100, ResNet18"] = (458, 174, 611, 259, 643, 226, 532, 9 * 3600)
slides["CINIC, DenseNet121"] = (1616, 463, 2404, 1498, 1759, 495, 1696, 50 * 3600)
paper = {data: {name: round(each / base, 2) for name, each in zip(heads, rest, strict=True)} for data, (base, *rest) in slides.items()}
row = {thin: "RSW"} | {name: name for name in heads[1:]}
shown = [
    {"setting": way, "ratio": kinds[what], "value": one, "paper": paper["Location, FC"].get(row.get(way)) if what == "seconds" else None}
    for (way, what), one in found.items()
]
usual = [one for one in shown if one["setting"] in plans or one["setting"] == "as many visits"]
cheap = [f"{name} {found[way, 'seconds'].value:.2f}" for name, way in {"RSW": thin, "RMR": "RMR", "ADV": "ADV"}.items()]
words = {"source": "slides, Location", "xlabel": "time over Base's", "title": f"Times as long as Base: {', '.join(cheap)}"}
report.against_paper(usual, hue="ratio", **words)

# %% [markdown]
# ## What is dear
# DP-SGD, the published width of ADV's attack net, and the scores: networks that somebody has to train before a window can go by them, once for all defences.

# %%
dp, more = found.get(("DP-SGD", "seconds")), found["RSW with its scores", "seconds"]
words["title"] = f"RSW with its scores takes {more.value:.0f} times as long as Base" + (f", DP-SGD {dp.low:.0f} to {dp.high:.0f} times" if dp else "")
report.against_paper([one for one in shown if one not in usual], hue="ratio", **words)

# %%
rows = [
    {"defence": way, "measured": found[way, "seconds"], "counted": found[way, "operations"].value}
    | {f"paper, {data}": each.get(row.get(way)) for data, each in paper.items()}
    for way in dict.fromkeys(way for way, _ in found)
]
metas = [results.meta(state) for chain in chains.values() for each in chain for state in each]
ends = sorted(one.get("finished", "") for one in metas)
said = f"Over Base of the same networks; {networks} score networks serve one defender. Timed from {ends[0]} to {ends[-1]}, which may be several runs"
report.table(rows, paper="time table, over Base", caption=said)

# %% [markdown]
# ## Verdicts

# %%
folds = ratio(thin, what="operations", more=fold_epochs / (rounds * round_epochs[0]) * spent["operations"]["Base"][0]).value
folded = f"With scores from five networks on a fifth of the members each, {fold_epochs} epochs, it would take {folds:.2f} (counted)"
acts = {"all were timed on one kind of device": len({one["device"] for one in metas}) == 1}
acts |= {"Base's networks take equally long, within a quarter": bool(np.divide(*np.quantile(spent["seconds"]["Base"], (0.9, 0.1))) < 1.25)}
report.judge(
    claims,
    rsw_is_quicker=found[thin, "seconds"], rmr_as_base=ratio("RMR", less=1.0), swmr_is_quicker=ratio("SWMR", "RMR"),
    adv_is_slower=found["ADV", "seconds"], visits_suffice=ratio("as many visits", thin),
    scores_included=found["RSW with its scores", "seconds"], **({"dp_is_dear": dp} if dp else {}),
    checks={claim.name: acts for claim in claims},
    notes={"scores_included": folded},
)  # fmt: skip

# %% [markdown]
# **Caveat.** A small network on one core: calls, not operations, fill its time; ratios of a large one on a GPU differ. Intervals speak of one run's
# networks, not of the machine: in two runs RMR took 1.39 and 1.22 times as long as Base, ADV 2.8 and 2.0 times. Our DP-SGD makes a batch's gradients at
# once; the published one in parts, and more often; here its first network loads what it needs. One defender pays for all score networks.

# %%
report.provenance(results)
