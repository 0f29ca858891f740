# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Is CWRF on the better side of each defence's whole curve?
#
# **CWRF, Fig. 8** (appendix C.3; CIFAR-100, ResNet18). Each of RelaxLoss, HAMP and CCL at several strengths, from
# scratch and inside CWRF: two curves in the plane of accuracy and leak. **The paper says** that with CWRF the curve is
# on the better side over its whole range, for all three. The text gives no number and no strengths.
#
# **It would be wrong if** the two curves crossed or coincided: then CWRF buys nothing that another strength does not.
# **Beside the point if** the same defences after cross-entropy with nothing rewound lay on the same curve, at equal
# epochs, or if earlier epochs of the ordinary training did as well: our controls, at equal leak. In `quick` no epoch
# leaks as much as HAMP's first strength, and to LiRA none as much as CCL: so these two leave that strength out and
# take RMIA. At one strength *r* goes from a share that changes little to one that changes much. Random weights rewound
# instead are `fig04b`'s.
#
# In `quick` the middle strengths are `tab03`'s networks and `fig05b`'s: no second evidence of what is judged there,
# but of curves, which no other page has. CCL at .5, its authors' example, does nothing in `quick` (draw 0: an AUC of
# .891 against .886 undefended), so it has .1.
#
# Rules, sizes and rates were settled on draw 0, a referee's objections in hand, and are judged on this one (seed 1).

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (python -m leak_atlas.data); the paper: CIFAR-100
pixels = 16  # side of the images, pixels, after area resize (paper: 32)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (paper: 64)
pool = 600  # samples from which each model draws half (paper: lost)
dev = 300  # samples outside the pool, not looked at here (paper: names none)
reference = 300  # non-members outside the pool, for the score alone (paper: lost)
test = 600  # test samples (paper: all)
r = 0.05  # share of the weights that is rewound (paper: a grid; lost)
rates = [0.001, 0.05, 0.2]  # the same, of RelaxLoss at its first strength (paper: up to .05 in Tab. 2)
balance = 0.5  # lambda of the score, chosen beforehand (paper: lost)
score_steps = 30  # updates of the score (paper: lost; "tens")
relax_alphas = [0.3, 0.8]  # RelaxLoss target losses, nats, weakest first (its authors: 3 for CIFAR-100)
hamps = [[0.5, 0.5], [0.95, 0.01]]  # HAMP: entropy of labels, share of ln C, and weight (its authors: CIFAR-100, CIFAR-10)
ccl_alphas = [0.1]  # CCL: shares of the cross-entropy, weakest first (its authors' example: .5)
stops = [3, 4, 6, 8]  # epochs of cross-entropy after which it may be stopped (our control)
epochs = 12  # epochs from scratch (paper: lost)
retrain_epochs = 6  # epochs of retraining; even, as RelaxLoss's last epoch matters (paper: lost)
batch = 64  # samples a step (paper: lost)
lr = 0.005  # learning rate of Adam, cosine to 0, at the start of each training (paper: lost)
shadows = 10  # models in complement pairs; each is attacked by the others, less its pair (paper: 8)
learnt = 0.6  # least test accuracy of a network that has learnt (ours)
seed = 1  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import audit, lab, recipe, report

scratch, inside, tuned = "from scratch", "inside CWRF", "nothing rewound"
claim, area = report.Claim, "area in the plane of accuracy and AUC"
said = {"above": 0.0, "paper": "Fig. 8", "control": "every strength counts; one r; paired over targets", "margin": 0.03}
ours = {"ours": "our control", "control": "same strengths and epochs; paired over targets"}
few, most = (f"{100 * share:g} %" for share in (rates[0], rates[-1]))
beside = "test accuracy at equal AUC of RMIA"
claims = report.claims(
    claim("relaxloss", "RelaxLoss: the better curve", f"{area}, {inside} minus {scratch}, lesser of both attacks", **said),
    claim("hamp", "HAMP: the better curve", f"{area}, {inside} minus {scratch}, lesser of both attacks", **said),
    claim("ccl", "CCL: the better curve", f"{area}, {inside} minus {scratch}, lesser of both attacks", **said),
    claim("same_curve", "Rewinding moves along the curve of nothing rewound", f"{beside}, {inside} minus {tuned}, mean", within=0.02, **ours),
    claim("stopping", "Inside CWRF they beat stopping earlier", f"{beside}, minus that of earlier epochs, mean", above=0.0, margin=0.02, **ours),
    claim("rate", "At one strength RelaxLoss's leak rises with r", f"AUC of LiRA, r {most} minus {few}", above=0.02, margin=0.03, **ours),
    regime={"undefended member accuracy": 0.95, "undefended test accuracy": learnt},
)  # fmt: skip
claims

# %% [markdown]
# ## Each defence at each strength, three ways
# Every curve begins with cross-entropy, a strength of 0. CCL's factor of the whole loss is 1: under Adam another only
# moves weight decay.

# %%
defences = {
    "RelaxLoss": {f"{alpha:g}": recipe.RelaxLoss(alpha) for alpha in relax_alphas},
    "HAMP": {f"{entropy:g}": recipe.HAMP(entropy, weight) for entropy, weight in hamps},
    "CCL": {f"{alpha:g}": recipe.CCL(alpha, beta=1.0) for alpha in ccl_alphas},
}
long, short = (recipe.Schedule(n, batch, "adam", lr=lr) for n in (epochs, retrain_epochs))
design = recipe.RandomHalves(pool, test=test, seed=seed, dev=dev, reference=reference)
setup = recipe.Setup(recipe.Data(data, pixels), design, recipe.Model(model, width), long, shadows, seed, precision)
ordinary = setup.trained()
by = ordinary.score(recipe.Vulnerability(weight=balance, steps=score_steps, batch=batch))
held = {share: ordinary.rewind_weights(by, share).hold_weights(by, share) for share in {r, *rates}}
none = "cross-entropy", "0"
ways = {(none, scratch): ordinary, (none, inside): held[r].train(short), (none, tuned): ordinary.train(short)}
ways |= {(("cross-entropy", f"epoch {e}"), scratch): ordinary.at(e) for e in stops}
for d, strengths in defences.items():
    for strength, defence in strengths.items():
        ways[(d, strength), scratch] = setup.trained(defence)
        ways[(d, strength), inside] = held[r].train(short, defence)
        ways[(d, strength), tuned] = ordinary.train(short, defence)
first, gentle = ("RelaxLoss", f"{relax_alphas[0]:g}"), recipe.RelaxLoss(relax_alphas[0])
ways |= {(first, f"{inside}, r {100 * share:g} %"): held[share].train(short, gentle) for share in rates if share != r}

attackers = {"LiRA": recipe.LiRA(), "RMIA": recipe.RMIA()}
attacks = {(way, a): each.attack(attacker) for way, each in ways.items() for a, attacker in attackers.items()}
signals = {way: each.signals() for way, each in ways.items()} | {f"rewound {100 * share:g} %": held[share].signals() for share in sorted(held)}
results = lab.realize(attacks, signals, recipe.self_audit(ordinary))
found = audit.Comparison.of(results, signals, attacks)
inner = {way: [float(results[one]["accuracy_member"]) for one in each] for way, each in signals.items()}

# %% [markdown]
# ## Accuracy against leak
# Strengths of one way are joined, weakest first. A defence that leaks more from scratch than cross-entropy defends
# nothing here: more area inside CWRF is then no gain.


# %%
def curve(d, way):
    return [(none, way), *(((d, strength), way) for strength in defences[d])]


def better(d, attack):
    return found.better_curve(curve(d, inside), curve(d, scratch), attack)


early = [(("cross-entropy", f"epoch {e}"), scratch) for e in stops] + [(none, scratch)]
by_rate = [(first, inside if share == r else f"{inside}, r {100 * share:g} %") for share in rates]
plane = [
    row
    for d in defences
    for row in found.plane({"cross-entropy, by epochs": early} | {w: curve(d, w) for w in (scratch, tuned, inside)}, "LiRA", panel=d)
]
off = {way: found.beside_line(way, early, "LiRA") for way in ways if way not in early}
winners = [d for d in defences if any(off[key].low > 0 and off[key].resolved for key in curve(d, inside)[1:])]
title = f"Inside CWRF {' and '.join(winners) or 'no defence'} surely beats stopping earlier"
report.tradeoff(plane, null=None, xlabel="test accuracy", ylabel="AUC of LiRA", title=title)

# %%
shown = {scratch: (first, scratch), tuned: (first, tuned)} | {f"r = {100 * share:g} %": way for share, way in zip(rates, by_rate, strict=True)}
rise = found.more_leaky(by_rate[-1], by_rate[0], "LiRA")
title = f"From r = {few} to {most} RelaxLoss's AUC of LiRA {'rises' if rise.value > 0 else 'changes'} by {rise.value:.3f}".replace("-", "−")
rows = [{"way": name, "value": found.leak(way, "LiRA")["auc"]} for name, way in shown.items()]
report.against_paper(rows, "way", xlabel=f"AUC of LiRA, RelaxLoss {first[1]}", title=title)

# %%
report.table(
    [
        {"network": f"{d} {strength}, {way}", "member": audit.over(inner[(d, strength), way]), "test": found.accuracy(((d, strength), way))}
        | {f"{a}, AUC": found.leak(((d, strength), way), a)["auc"] for a in attackers}
        | {f"LiRA, {audit.tpr_label(0.01, pool // 2)}": found.leak(((d, strength), way), "LiRA")["tpr_at_1%"]}
        | {"test, minus earlier epochs' at equal LiRA": off.get(((d, strength), way), "–")}
        for (d, strength), way in ways
    ],
    caption=f"Mean over {shadows} targets. Members right after the rewind: "
    + "; ".join(f"{way}: {audit.over(inner[way])}" for way in inner if isinstance(way, str)),
)

# %% [markdown]
# ## Verdicts

# %%
plain = none, scratch
acts = {"accuracy on members falls right after the rewind": audit.paired_difference(inner[plain], inner[f"rewound {100 * r:g} %"])}
strongest = {d: ((d, [*defences[d]][-1]), scratch) for d in defences}
acted = {
    d: acts | {f"{d} at its last strength lowers members' accuracy": audit.paired_difference(inner[plain], inner[way])}
    for d, way in strongest.items()
}
judged = {way: [key for d in defences for key in curve(d, way)[1 if d != "HAMP" else -1 :]] for way in (inside, tuned)}
report.judge(
    claims,
    **{d.lower(): audit.least(better(d, a) for a in attackers) for d in defences},
    same_curve=found.beside_line(judged[inside], early, "RMIA", other=judged[tuned]),
    stopping=found.beside_line(judged[inside], early, "RMIA"),
    rate=rise,
    checks={d.lower(): each for d, each in acted.items()} | {"same_curve": acts, "stopping": acts, "rate": acts},
    regime={"undefended member accuracy": audit.over(inner[plain]), "undefended test accuracy": found.accuracy(plain)},
)

# %% [markdown]
# **Caveat.** An area is of the strengths that were tried: a way whose strengths reach farther has the larger one. So
# look at the curves first. The paper's strengths are lost, and so is its r: at the least of ours rewinding does next to
# nothing, so that one r does not speak for all.

# %%
report.provenance(results)
