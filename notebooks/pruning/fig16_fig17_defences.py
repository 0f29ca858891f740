# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does a defence of the fine-tuning hide members, or remove the leak?
#
# **SAMIA, Fig. 16 and 17.** After pruning, a network is trained on with a defence: PPB aligns the ranked posteriors of pairs of samples, ADV plays against
# an attack net, DP-SGD clips and adds noise; Base has only the weight decay that all have. The attacker's shadows are not defended. **The paper says** that
# PPB brings SAMIA to about 50 %, a guess, at a small cost in accuracy; ADV works for single weights; DP can hardly balance the two. It leaves points out
# with less than 75 % of Base's accuracy, or a larger attack accuracy. **It would be wrong if** SAMIA still found members, or accuracy fell; beside the point
# if less training did as much (control: earlier epochs of Base), or others found them: LiRA, RMIA, right and wrong labels. Claims on PPB are on its middle
# weight (4, the published code's). Rules were settled on draw 0 of `quick`: ADV's strength and rate and the width for bits were chosen by what networks
# learn; PPB's check was replaced; the strongest PPB ruined networks, as did DP-SGD on images (`quick` has none). So did ADV 16 on CIFAR-10: hence, since
# that result, the 75 % in its claims.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); Fig. 16: CIFAR10
bits = "digits-bits"  # a data set of bits for Fig. 17 (paper: Location, Purchase, Texas)
pixels = 16  # side of the images, pixels, after area resize (paper: 32)
model = "resnet10"  # architecture for images (paper: resnet18)
width = 16  # channels of stage 1 (paper: 64)
bits_width = 256  # units of the first hidden layer, for bits (paper: 256)
private_epochs = 40  # most epochs before pruning of the network with GroupNorm, which DP-SGD trains on (paper: BatchNorm)
stem = "conv3-pool"  # first layer (published code: a 3x3 convolution and a max-pool)
pool = 1200  # samples of train and test part joined: half the victims', half the attacker's (paper: all)
bits_pool = 1200  # samples of the joined bits (paper: all)
bits_dev = 60  # of each half of them, set apart (paper: a tenth)
dev = 60  # samples of each half that are set apart; the rest is half member, half non-member (paper: a tenth)
reference = 300  # samples outside the pool that ADV calls non-members (published code: the dev samples)
victims = 10  # networks that split the victims' half (paper: 1)
shadows = 5  # networks that split the attacker's half (paper: 5)
sparsity = 0.6  # share that is removed (paper: .6)
others = ["L1 structured", "slimming"]  # further pruners, with the middle PPB alone (paper: four, with all)
ppb = [1.0, 4.0, 16.0]  # weights of PPB, weakest first, claims speak of the middle one (paper: 1, 2, 4, 8, 16)
adv = [4.0, 16.0]  # weights of ADV, weakest first (paper: .5 to 16)
adv_steps = 1  # attack steps before each classifier step (published code: 7, but in a whole epoch)
adv_width = 64  # units of the first layer of ADV's attack net (published codes: 1024)
adv_lr = 0.01  # its learning rate (published codes: .001, for far more steps)
noises = [0.1]  # noise multipliers of DP-SGD on bits (paper: .01 to 100; published code: .1)
image_noises = []  # the same on images, with GroupNorm; none: no such networks
sooner = [2]  # epochs of the dense network in the earliest controls, which is pruned then and trained on for the first of stops (ours)
stops = [1, 2, 4]  # epochs after pruning at which Base is looked at too, without early stopping (ours)
epochs = 12  # most epochs of the dense network (published code: 100)
retrain_epochs = 6  # most epochs after pruning (published code: half of it)
patience = None  # epochs without a better dev accuracy before training stops; None: all are trained (paper: 5)
batch = 32  # samples a step (paper: 128)
lr = 0.002  # learning rate of Adam (paper: 0.001)
decay = "constant"  # of that rate, by the epoch (paper: constant)
attack_epochs = 10  # of the attack networks (published code: 100)
attack_optimizer = "adam"  # theirs (paper: sgd); ten epochs of it reach what 100 of SGD do
attack_lr = 0.001  # theirs (paper: 0.01 for SGD; published code: 0.001)
temperature = 1.0  # of RMIA's softmax (its authors: 2 for CIFAR-10)
learnt = 0.6  # least test accuracy of a dense network that has learnt (ours)
seed = 1  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace

from leak_atlas import audit, lab, report
from leak_atlas.recipe import (
    DPSGD,
    PPB,
    RMIA,
    SAMIA,
    AdversarialRegularization,
    Data,
    LiRA,
    Model,
    Population,
    Schedule,
    Setup,
    Threshold,
    VictimAttacker,
)

one, middle, named = "L1 unstructured", ("PPB", ppb[len(ppb) // 2]), f"PPB {ppb[len(ppb) // 2]:g}"
published = {"paper": "Fig. 16, section 6.3.2", "control": "paired over victims; the same net, learnt from undefended shadows", "margin": 0.02}
ours = {"ours": "our control", "control": "paired over victims; the same undefended shadows", "margin": 0.03}
level = ours | {"margin": 0.02, "control": "paired, at equal AUC of SAMIA; the same undefended shadows"}
line, spares, over = "minus that of earlier epochs", "ADV with 75 % of Base's accuracy", "over all pruners" if others else f"after {one}"
claims = report.claims(
    report.Claim("ppb_hides", "PPB brings SAMIA to a guess", f"attack accuracy of SAMIA, {named}, {over}, largest", below=0.53, **published),
    report.Claim("ppb_is_cheap", "It costs little accuracy", f"test accuracy, {named} minus Base, {over}, least", above=-0.02, **published),
    report.Claim("ppb_hides_bits", "It brings SAMIA to a guess on bits", f"attack accuracy of SAMIA on bits, {named}", below=0.53, **published),
    report.Claim("beats_stopping", "It is better than stopping earlier", f"test accuracy {line}, {named}", above=0.0, **level),
    report.Claim("order_falls", "The order of SAMIA's scores suffers, too", f"AUC of SAMIA, {named} minus Base", below=0.0, **ours),
    report.Claim("adv_works", "ADV weakens SAMIA", f"attack accuracy of SAMIA, strongest {spares} minus Base", below=0.0, **published),
    report.Claim("adv_beats_stopping", "ADV is better than stopping earlier", f"test accuracy {line}, {spares} in reach", above=0.0, **level),
    report.Claim("dp_is_poor", "DP-SGD balances worse on bits", f"test accuracy {line}, noise {noises[0]:g} minus {named}", below=0.0, **level),
    regime={"dense member accuracy": 0.95, "dense test accuracy": learnt, "member accuracy of Base, pruned, least": 0.95},
)
claims

# %% [markdown]
# ## Prune, then train on with a defence
# Two forms are the published code's: ADV with 7 attack steps and one classifier step in an epoch; DP-SGD that clips means over half a batch (bits alone).

# %%
design = VictimAttacker(pool, seed=seed, dev=dev, victims=victims)
long, short = (Schedule(n, batch, "adam", lr, decay=decay, patience=patience) for n in (epochs, retrain_epochs))
setup = Setup(Data(data, pixels, joined=True), design, Model(model, width, stem), long, victims + shadows, seed, precision)
smaller = {"data": Data(bits, joined=True), "model": Model("fc", bits_width), "design": replace(design, pool=bits_pool, dev=bits_dev)}
private = {"model": Model(model, width, stem, norm="group"), "schedule": replace(long, epochs=private_epochs)}
setups = {one: setup, "bits": replace(setup, **smaller)} | ({"GroupNorm": replace(setup, **private)} if image_noises else {})
dense = dict.fromkeys((one, *others), setup.trained()) | {cell: asked.trained() for cell, asked in setups.items()}
pruned = {cell: each.pruned(cell if cell in others else one, sparsity) for cell, each in dense.items()}
base = {cell: each.train(short) for cell, each in pruned.items()}
played = {("ADV", alpha): AdversarialRegularization(alpha, adv_steps, width=adv_width, attack_lr=adv_lr) for alpha in adv}
played["ADV, as in the code", adv[-1]] = AdversarialRegularization(adv[-1], 7, "code", adv_width)
noisy = {("DP", noise): DPSGD(noise) for noise in noises} | {("DP, as in the code", noises[0]): DPSGD(noises[0], group=batch // 2)}
balanced = {("PPB", weight): PPB(weight) for weight in ppb}
planned = {one: balanced | played, "bits": balanced | noisy} | {c: {middle: balanced[middle]} for c in others}
planned |= {"GroupNorm": {("DP", noise): DPSGD(noise) for noise in image_noises}} if image_noises else {}
ways = {(cell, "Base", 0.0): Population(each.states[:victims]) for cell, each in base.items()}
for cell, (name, goal) in [(cell, each) for cell, defences in planned.items() for each in defences.items()]:
    ways[cell, *name] = Population(pruned[cell].states[:victims]).train(short, goal, reference=reference if goal.needs else None)
for cell, asked in setups.items():  # from Base on, ever less trained; each ends its own decay, and a constant rate's are one course
    whole, first = replace(short, patience=None), replace(asked.schedule, patience=None)
    less = {stop: pruned[cell].train(whole if decay == "constant" else replace(whole, epochs=stop)).at(stop) for stop in stops[::-1]}
    for e in sooner[::-1]:
        early = asked.trained(schedule=first if decay == "constant" else replace(first, epochs=e)).at(e).pruned(one, sparsity)
        less[-e] = early.train(replace(whole, epochs=stops[0]))
    ways |= {(cell, "earlier epochs", stop): Population(less[stop].states[:victims]) for stop in less}
attackers = {"SAMIA": SAMIA(epochs=attack_epochs, lr=attack_lr, optimizer=attack_optimizer), "LiRA": LiRA("offline_cdf")}
attackers |= {"RMIA": RMIA("offline", temperature=temperature), "correctness": Threshold("correctness")}
attacks = {(w, name): ways[w].attack(a, victims, Population(base[w[0]].states[victims:])) for w in ways for name, a in attackers.items()}
signals = {way: each.signals() for way, each in ways.items()} | {cell: dense[cell].signals()[:victims] for cell in setups}
found = audit.Comparison.of(results := lab.realize(attacks, signals), signals, attacks)

# %% [markdown]
# ## Accuracy against SAMIA: Fig. 16 and 17
# Strengths are joined from Base on. The table tells what the paper's filter drops. *Earlier epochs* are Base's; beyond its ends their line is level.

# %%
kinds = {cell: dict.fromkeys(way[1] for way in [*ways][::-1] if way[0] == cell) for cell in dense}  # Base last: its marker stays on top
series = {cell: {name: [way for way in ways if way[0] == cell and way[1] in (name, "Base")] for name in kinds[cell]} for cell in dense}
before, chosen = {way: (way[0], "Base", 0.0) for way in ways}, {cell: (cell, *middle) for cell in (one, *others, "bits")}
seen = {way: found.leak(way, "SAMIA")["accuracy"] for way in ways}
spared = [way for way in ways if found.accuracy(way).value >= 0.75 * found.accuracy(before[way]).value]
kept = [way for way in spared if seen[way].value <= seen[before[way]].value]
plane = [row for cell in dense for row in found.plane(series[cell], "SAMIA", "accuracy", cell)]
hidden = audit.largest(seen[chosen[cell]] for cell in (one, *others))
side = "surely brings SAMIA to about" if hidden.high < 0.53 else "surely leaves SAMIA above" if hidden.low > 0.53 else "may bring SAMIA to about"
report.tradeoff(plane, xlabel="test accuracy", ylabel="attack accuracy of SAMIA", level="guessing", title=f"{named} {side} a guess ({over})")

# %% [markdown]
# ## Hidden or removed?
# The same networks under four attacks, all with undefended shadows. The area under the curve asks for the order of samples alone, not for a threshold.

# %%
told = [f"{a} " + " to ".join(f"{found.leak(w, a)['auc'].value:.2f}" for w in (before[chosen[one]], chosen[one])) for a in [*attackers][:3]]
title = f"AUC of the attacks, Base to {named}: {', '.join(told)}"
report.tradeoff([row for a in attackers for row in found.plane(series[one], a)], xlabel="test accuracy", ylabel="AUC", level="guessing", title=title)

# %%
inside = {way: [float(results[step]["accuracy_member"]) for step in each] for way, each in signals.items()}
members = {way: audit.mean_ci(each) for way, each in inside.items()}
rows = [{"network": f"{cell}, dense", "member accuracy": members[cell], "test accuracy": found.accuracy(cell)} for cell in setups] + [
    {"network": f"{way[0]}: {way[1]}{f' {way[2]:g}' if way[2] > 0 else f' (dense: {-way[2]})' * bool(way[2])}", "member accuracy": members[way]}
    | {"test accuracy": found.accuracy(way), "SAMIA, accuracy": seen[way], "best threshold": found.leak(way, "SAMIA")["best_balanced_accuracy"]}
    | {"filter": "kept" if way in kept else "dropped"} | {f"{name}, AUC": found.leak(way, name)["auc"] for name in attackers} for way in ways
]  # fmt: skip
report.table(rows, caption=f"Mean over {victims} victims, {shadows} undefended shadows; LiRA, RMIA offline. (dense: n): dense stopped, too")

# %% [markdown]
# ## Verdicts

# %%
dp, strong, stopped = ("bits", "DP", noises[0]), [(one, "ADV", alpha) for alpha in adv], series[one]["earlier epochs"]
last = (mild := [way for way in strong if way in spared] or strong)[-1]
reach = {
    w: {f"earlier epochs reach down to {w[1]} {w[2]:g}": found.auc_difference(stopped[-1], w, "SAMIA").value < 0.01} for w in (chosen[one], *mild)
}
near = [w for w in mild if all(reach[w].values())] or mild[:1]
acts = {
    way: {f"{way[1]} moves the accuracy on members ({way[0]})": audit.paired_difference(inside[before[way]], inside[way])}
    | {f"SAMIA finds Base's members ({way[0]})": seen[before[way]].low > 0.53} for way in (*chosen.values(), last, *near, dp)
}  # fmt: skip
acts[last] |= {"an ADV has 75 % of Base's accuracy": last in spared}
images = {words: check for cell in (one, *others) for words, check in acts[chosen[cell]].items()}
checks = {"ppb_hides": images, "ppb_is_cheap": acts[chosen[one]], "ppb_hides_bits": acts[chosen["bits"]], "order_falls": acts[chosen[one]]}
checks |= {"beats_stopping": acts[chosen[one]] | reach[chosen[one]], "adv_beats_stopping": acts[near[-1]] | reach[near[-1]]}
checks |= {"adv_works": acts[last], "dp_is_poor": acts[dp]}
report.judge(claims, ppb_hides=hidden, ppb_hides_bits=seen[chosen["bits"]], adv_works=found.accuracy_difference((last, "SAMIA"), (before[last], "SAMIA")),
    ppb_is_cheap=audit.least(found.more_accurate(chosen[cell], before[chosen[cell]]) for cell in (one, *others)),
    beats_stopping=found.at_matched_auc(chosen[one], stopped, "SAMIA"), order_falls=found.auc_difference(chosen[one], before[chosen[one]], "SAMIA"),
    adv_beats_stopping=audit.largest(found.at_matched_auc(way, stopped, "SAMIA") for way in near),
    dp_is_poor=found.at_matched_auc(dp, series["bits"]["earlier epochs"], "SAMIA", chosen["bits"]), checks=checks,
    regime={"dense member accuracy": members[one], "dense test accuracy": found.accuracy(one)}
    | {"member accuracy of Base, pruned, least": min(members[before[way]].value for way in chosen.values())},
)  # fmt: skip

# %% [markdown]
# **Caveat.** All victims share one half of the samples and one set of shadows. ADV's samples are outside the pool (published code: dev). DP-SGD follows a training
# without it: no epsilon. Bits have few steps after pruning: a weak dose. On CIFAR-10 weaker controls, of one and two epochs, let PPB lead by .020 and .015.

# %%
report.provenance(results)
