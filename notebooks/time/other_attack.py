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
# # Do other attacks see the same dynamics?
#
# **Dynamics, repeated with Shokri's attack network.** A reading note has it that the order of the findings stays:
# harder data are encoded more, deeper networks encode more, SAM's less. No number is known. LiRA compares a sample with
# networks that trained on it; Shokri's net and a threshold on the confidence judge all samples alike.
#
# **It would be wrong if** an attack turned an order around. **It would be beside the point if** all attacks saw the
# same samples: so we ask whom they expose. The ceiling is an attack's agreement with itself, half of the networks each.
#
# **Our definitions** (the paper's are not known): each network has its own threshold, at a fixed FPR, since scores have
# another scale in each. Orders are judged on the displacement of the centre of mass from before training, where it is
# on the diagonal: its mean over all FPRs is AUC minus one half. Only signs are compared; single FPRs stand beside.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (python -m lib.data), the harder one; reading note: CIFAR-10 and three others
pixels = 8  # side of the images after area resize; 0: as they are
simple = "digits"  # the easier data set (reading note: MNIST)
simple_pixels = 0  # side of its images
model = "cnn4"  # architecture of most networks (reading note: CNNs of several depths)
shallow = "cnn2"  # a flat one (reading note: a shallow CNN)
deep = "wrn16"  # a deep one (reading note: WRN28-2)
width = 8  # channels of the first layer (not stated)
pool = 600  # samples, of which each network trains on half (not stated)
test = 200  # test samples, which are RMIA's population (not stated)
epochs = 40  # of every network (not stated; "by epoch 150" is early)
batch = 50  # samples a step (group code: 128)
optimizer = "sgd"  # with momentum .9
lr = 0.05  # rate at the start (group code: 0.1)
decay = "cosine"  # of that rate, by the epoch (group code: cosine)
rho = 0.1  # how far uphill SAM goes (not stated)
networks = 32  # of each kind (group code: 20 shadows)
few = 20  # of the flat and of the deep architecture
tutors = 10  # networks of the other half that teach a net, or a threshold (group code: 10)
checkpoints = [0, 12, 24, 40]  # epochs at which the attacks look; 0: before training
rate = 0.1  # share of a network's non-members that reach the threshold (ours)
loose = 0.3  # the same, where a weak attack tells more (ours)
drawn = 1.4  # by how much the variance of Shokri's AUC grows with what its two nets happen to learn (ours, draw 0)
learnt = 0.6  # least test accuracy of networks that have learnt (ours)
seed = 1  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace

import numpy as np
from scipy import stats

from lib import audit, lab, report
from lib.localization import samples, trajectories
from lib.recipe import RMIA, Data, LiRA, Model, Network, Population, RandomHalves, Schedule, Setup, Threshold

shokri, more, half = "Shokri's net", "AUC at the end", "on the other half of the networks"
orders = {f"{data} minus {simple}": (data, simple), f"{deep} minus {shallow}": (deep, shallow), "SGD minus SAM": (data, "SAM")}
note, ours, size, all_three = {"paper": "a reading note"}, {"paper": "ours"}, {"above": 0.0, "margin": 0.02}, f"{more}, least of three differences"
same, wide, split = {"control": "the same networks as LiRA's"}, {"above": 0.2, "margin": 0.2}, {"control": "its own agreement, half with half"}
along = f"rank correlation of FPR and TPR over samples, {loose:.0%} FPR, minus LiRA's, least"
claims = report.claims(
    report.Claim("shokri_data", "Shokri's net, too, finds more in harder data", f"{more}, {data} minus {simple}", **size, **note, **same),
    report.Claim("shokri_depth", "It finds more in deeper networks", f"{more}, {deep} minus {shallow}", **size, **note, **same),
    report.Claim("shokri_sam", "It finds less with SAM", f"{more}, SGD minus SAM", **size, **note, **same),
    report.Claim("rmia", "RMIA finds the same three orders", all_three, **size, **ours, **same),
    report.Claim("confidence", "A threshold on the confidence finds them", all_three, **size, **ours, **same),
    report.Claim("same_samples", "RMIA exposes the samples that LiRA exposes", f"agreement with LiRA {half}", above=0.5, margin=0.1, **ours, **split),
    report.Claim("other_samples", "Shokri's net exposes others", f"agreement with itself minus with LiRA, {half}", **wide, **ours, **split),
    report.Claim("along_diagonal", "Shokri's net and confidence call the same samples members, in or out", along, **wide, **ours, **same),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)  # fmt: skip
claims

# %% [markdown]
# ## Five populations, four attacks
# Targets of LiRA and RMIA are each other's shadows. What Shokri's net and the thresholds learn they learn from networks
# of the other half, so that one net at a checkpoint serves sixteen targets and no network is trained for it.

# %%
design, schedule = RandomHalves(pool, test=test, seed=seed), Schedule(epochs, batch, optimizer=optimizer, lr=lr, decay=decay)
setup = Setup(Data(data, pixels or None), design, Model(model, width), schedule, networks, seed, precision)
ways = {data: setup.trained(), simple: replace(setup, data=Data(simple, simple_pixels or None)).trained()}
ways |= {"SAM": setup.trained(schedule=replace(schedule, sharpness=rho))}
ways |= {name: replace(setup, model=Model(name, width), models=few).trained() for name in (shallow, deep)}
attackers = {"LiRA": LiRA(), "RMIA": RMIA(), "confidence": Threshold(), shokri: Network()}
asked, learners = {}, list(attackers)[2:]
for way, each in ways.items():
    states, middle = each.states, len(each) // 2
    sides = [(states[:middle], states[middle:][:tutors]), (states[middle:], states[:tutors])]
    for name, attacker in attackers.items():
        pairs = [map(Population, side) for side in sides] if name in learners else [(each, None)]
        asked[way, name] = [one.course(attacker, checkpoints, shadows=by) for one, by in pairs]
    asked[way, "null"] = [each.course(LiRA(), checkpoints, 0)]
signals = {way: each.signals() for way, each in ways.items()}
results = lab.realize(asked, signals)
found = {key: trajectories.levelled(*(trajectories.course({t: results[a] for t, a in one.items()}) for one in each)) for key, each in asked.items()}
null = {(w, name): found[w, "null"] if name == "LiRA" else trajectories.dealt(found[w, name]) for w in ways for name in attackers}
shown = {name: trajectories.plane(found[data, name], loose) for name in attackers}
bent = {name: stats.spearmanr(*each[-1]).statistic for name, each in shown.items()}
told, word = [f"{bent[name]:.2f}".replace("-", "−") for name in (shokri, "LiRA")], "more" if bent[shokri] > bent["LiRA"] else "no more"
title = f"Shokri's net calls the same samples members, in or out, {word} than LiRA: rank correlation {told[0]} against {told[1]}"
report.planes(shown, checkpoints, title=title)

# %% [markdown]
# ## The orders, attack by attack

# %%
area = {key: audit.auc(one.scores[-1], one.member) for key, one in found.items()}
effect = {(way, name): drawn if name == shokri else each[0][checkpoints[-1]].design_effect for (way, name), each in asked.items()}
differ = {(order, name): audit.paired_difference(area[a, name], area[b, name], design_effect=effect[a, name])
          for order, (a, b) in orders.items() for name in attackers}  # fmt: skip
points = [{"order": order, "attack": name, "value": value} for (order, name), value in differ.items()]
sure = [f"{name} {sum(differ[order, name].low > 0 for order in orders)} of {len(orders)}" for name in attackers]
report.against_paper(points, "order", hue="attack", title=f"Surely more in the first: {'; '.join(sure)} orders", xlabel=f"{more}: first minus second")

# %%
leak = {key: audit.over(area[key], design_effect=effect[key]) for key in area}
right = {(way, side): audit.over([results[one][f"accuracy_{side}"] for one in each]) for way, each in signals.items() for side in ("member", "test")}
report.table([{"networks": way, "members": right[way, "member"], "test": right[way, "test"]} | {f"AUC of {name}": leak[way, name] for name in attackers}
              for way in ways], caption=f"At the end; {networks} networks, {few} of {shallow} and {deep}")  # fmt: skip

# %% [markdown]
# By other measures, at fixed FPRs. What the null travels is subtracted from speed and entropy: membership dealt out
# anew, to LiRA before it attacks, to the others (who do not know who trained on a sample) after it.


# %%
def motion(one, other):
    """Displacement at both rates; at `rate`, less the null's: speed per 100 epochs, entropy gained; entering the state."""
    path, noise = (trajectories.plane(each, rate) for each in (one, other))
    speed = 100 * np.mean(trajectories.speed(path, one.epochs) - trajectories.speed(noise, one.epochs))
    spread = np.diff((trajectories.entropy(path) - trajectories.entropy(noise))[[0, -1]])[0]
    moved = [trajectories.displacement(each) for each in (path, trajectories.plane(one, loose))]
    return np.array([*moved, speed, spread, np.mean(trajectories.entering(trajectories.states(path)))])


measures = (f"displacement, {rate:.0%} FPR", f"displacement, {loose:.0%} FPR", "speed", "entropy", "into the high-risk state, mean")
fours = {(order, name): [kind[way, name] for way in pair for kind in (found, null)] for order, pair in orders.items() for name in attackers}
apart = {key: trajectories.jackknifed(lambda *four: motion(*four[:2]) - motion(*four[2:]), *four) for key, four in fours.items()}
rows = [{"order": order, "attack": name} | dict(zip(measures, values, strict=True)) for (order, name), values in apart.items()]
report.table(rows, caption="First minus second of each order. Rates of one network and one sample are 0 or 1, so these are coarser than AUC")

# %% [markdown]
# ## Whom do they expose?
# A sample's advantage, TPR minus FPR at the end: by one half of the networks, and by LiRA or itself on the other half.

# %%
ranks = {(way, name, r): [{"score": trajectories.advantage(trajectories.plane(each, r))[-1], "index": each.index} for each in found[way, name].halves()]
         for way, name in null for r in (rate, loose)}  # fmt: skip
alike = {(way, name, r): [samples.agreement(pair[1], ranks[way, by, r][0]) for by in ("LiRA", name)] for (way, name, r), pair in ranks.items()}
report.table([{"networks": way, "threshold": f"{r:.0%} FPR", "LiRA with itself": alike[way, "LiRA", r][0]}
              | {f"{name} with {by}": alike[way, name, r][k] for name in [*attackers][1:] for k, by in enumerate(("LiRA", "itself"))}
              for way in ways for r in (rate, loose)], caption="Rank correlations between the halves; with itself: the ceiling of an attack")  # fmt: skip

# %% [markdown]
# ## Verdicts

# %%
own = {name: ranks[data, name, rate] for name in attackers}
moved = [trajectories.jackknifed(lambda *both: np.subtract(*(stats.spearmanr(*trajectories.plane(each, loose)[-1]).statistic for each in both)),
                                 found[data, name], found[data, "LiRA"]) for name in learners]  # fmt: skip
beats = {name: {f"{name} beats a guess: {way}": leak[way, name].low > 0.5 for way in ways} for name in attackers}
shadow = {"shokri": shokri, "other": shokri, "along": shokri, "confidence": "confidence", "rmia": "RMIA", "same": "RMIA"}
report.judge(
    claims,
    **{f"shokri_{short}": differ[order, shokri] for short, order in zip(("data", "depth", "sam"), orders, strict=True)},
    rmia=audit.least(differ[order, "RMIA"] for order in orders),
    confidence=audit.least(differ[order, "confidence"] for order in orders),
    same_samples=alike[data, "RMIA", rate][0],
    other_samples=samples.agreement_difference(own[shokri][1], own["LiRA"][1], own[shokri][0]),
    along_diagonal=audit.least(moved),
    checks={claim.name: beats["LiRA"] | beats[shadow[claim.name.split("_")[0]]] for claim in claims},
    regime=dict(zip(claims.regime, (audit.least(right[w, "member"] for w in (data, simple, deep)), audit.least(right[w, "test"] for w in ways)), strict=True)),
)  # fmt: skip

# %% [markdown]
# **Caveat.** Two nets serve all targets of a population. On draw 0 other seeds and tutors moved its AUC by up to .010
# (digits), so intervals of Shokri's are widened. Two data sets, two depths and one rho make no axis; equal gaps are not
# asked for here. Halves attack each other under LiRA, whose agreement with itself may be high. Rules were settled on
# draw 0 and are judged on this one (seed 1).

# %%
report.provenance(results)
