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
# # In a network that reads, does it matter which weights are rewound?
#
# **CWRF, Fig. 7** (appendix; DBpedia-14, a transformer). A text classifier is trained with cross-entropy; the share
# *r* of its weights that score as most vulnerable goes back to its initial values and is held there; the rest trains
# on with a defence. **The paper says** that at a similar utility this improves privacy. The text gives no number, no
# *r* and does not say which defences; we take two of its others, each at one strength that acts, and one *r*.
#
# **It would be wrong if** accuracy fell by more than two points, or the leak did not at a like accuracy. **Beside the
# point if** the same came with nothing rewound, with as many weights at random (over the network, or of each layer as
# many as the score takes), by the score of learnability, or by stopping the ordinary training earlier: our controls.
#
# Rules were settled on draw 0 and are judged on this one (seed 1).

# %% tags=["parameters"]
data = "wordnet-glosses"  # data set (python -m lib.data); the paper: dbpedia14
words = 4000  # vocabulary, padding and the unknown word included (paper: not stated)
length = 8  # words kept of each text (paper: not stated)
width = 16  # channels of the transformer (paper: not stated)
pool = 2000  # samples from which each model draws half (paper: lost)
dev = 500  # samples outside the pool, not looked at here (paper: names none)
reference = 500  # non-members outside the pool, for the score alone (paper: lost)
test = 1000  # test samples (paper: not stated)
r = 0.01  # share of the weights that is rewound (paper: a grid that is lost)
balance = 0.5  # lambda of the score, set beforehand (paper: lost)
score_steps = 30  # updates of the score (paper: lost; "tens")
relax_alpha = 1.0  # RelaxLoss: target loss, nats (paper: not stated for text)
ccl_alpha = 0.1  # CCL: share of the cross-entropy (paper: not stated)
epochs = 8  # epochs from scratch; even, as RelaxLoss's last epoch matters (paper: lost)
retrain_epochs = 4  # epochs of every retraining; even too (paper: lost)
stops = [3, 4, 5, 6]  # epochs after which the ordinary training may be stopped (our control)
batch = 80  # samples a step, and a step of the score (paper: lost)
lr = 0.01  # learning rate of Adam, cosine to 0, at the start of each training (paper: lost)
shadows = 10  # models in complement pairs; each is attacked by the others, less its pair (paper: 8)
learnt = 0.4  # least test accuracy of a network that has learnt (ours; 14 classes)
seed = 1  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from lib import audit, lab, recipe, report
from lib.localization import score_maps
from lib.recipe import Schedule
from lib.selection import highest

claim, change = report.Claim, "inside CWRF minus from scratch"
said = {"paper": "Fig. 7", "control": "one strength, one r; shadows walk the target's chain", "margin": 0.02}
more = "LiRA's AUC, that minus CWRF"
ours = {"paper": "our control", "control": "cross-entropy, equal epochs; paired over targets", "margin": 0.02}
claims = report.claims(
    claim("relaxloss_accuracy", "RelaxLoss is about as useful inside CWRF", f"test accuracy, {change}", above=-0.02, **said),
    claim("ccl_accuracy", "CCL is about as useful inside CWRF", f"test accuracy, {change}", above=-0.02, **said),
    claim("curve", "Over three losses CWRF is better", "area in the plane of accuracy and AUC, minus from scratch, lesser of both", above=0.0, **said),
    claim("ccl_leak", "CCL leaks less inside CWRF", f"AUC, {change}, larger of LiRA and RMIA", below=0.0, **said),
    claim("rewinding", "With nothing rewound the network leaks more", more, above=0.0, **ours),
    claim("chance", "With as many weights at random it leaks more", more, above=0.0, **ours),
    claim("layers", "With as many of each layer at random it leaks more", more, above=0.0, **ours),
    claim("learnability", "By the score of learnability it leaks the same", more, within=0.02, **ours),
    claim("stopping", "It is more accurate than earlier epochs", "test accuracy at equal AUC of LiRA, minus that of earlier epochs", above=0.0, **ours),
    regime={"undefended member accuracy": 0.95, "undefended test accuracy": learnt},
)  # fmt: skip
claims

# %% [markdown]
# ## Train, rewind and hold, train on
# The three steps of CWRF: score (`by`), rewind and hold (`held`), train on. CCL's factor of the whole loss is 1: under
# Adam another only moves weight decay. On draw 0 more epochs from scratch leaked far more (.958) at an accuracy below
# CWRF's, so that earlier epochs are the harder control.

# %%
long, short = (Schedule(n, batch, "adam", lr=lr) for n in (epochs, retrain_epochs))
design = recipe.RandomHalves(pool, test=test, seed=seed, dev=dev, reference=reference)
texts, net = recipe.Data(data, words=words, length=length), recipe.Model("transformer", width)
setup = recipe.Setup(texts, design, net, long, shadows, seed, precision)
ordinary = setup.trained()
by = ordinary.score(recipe.Vulnerability(weight=balance, steps=score_steps, batch=batch))


def held(by):
    """Of each model the share r of the weights that score highest, rewound and held from here on."""
    return ordinary.rewind_weights(by, r).hold_weights(by, r)


scratch, inside, tuned = "from scratch", "inside CWRF", "nothing rewound"
objectives = {"cross-entropy": None, "RelaxLoss": recipe.RelaxLoss(relax_alpha), "CCL": recipe.CCL(ccl_alpha, beta=1.0)}
ways = {("cross-entropy", f"epoch {e}"): ordinary.at(e) for e in stops}
for d, objective in objectives.items():
    ways[d, scratch] = setup.trained(objective)
    ways[d, inside] = held(by).train(short, objective)
    ways[d, tuned] = ordinary.train(short, objective)
others = {"at random": recipe.Random(seed), "by learnability": recipe.Learnability(steps=score_steps, batch=batch)}
scores = {name: ordinary.score(criterion) for name, criterion in others.items()}
scores["at random, by layer"] = tuple(score.shuffle() for score in by)
ways |= {("cross-entropy", name): held(own).train(short) for name, own in scores.items()}
signals = {way: each.signals() for way, each in ways.items()} | {"rewound": held(by).signals()}
attackers = {"LiRA": recipe.LiRA(), "RMIA": recipe.RMIA()}
attacks = {(way, a): each.attack(attacker) for way, each in ways.items() for a, attacker in attackers.items()}

# %%
results = lab.realize(signals, attacks, by, recipe.self_audit(ordinary))
found = audit.Comparison.of(results, signals, attacks)
inner = {way: [float(results[one]["accuracy_member"]) for one in each] for way, each in signals.items()}
members = {way: audit.over(each) for way, each in inner.items()}

# %% [markdown]
# ## Accuracy against leak

# %%
plain, early = ("cross-entropy", scratch), [("cross-entropy", f"epoch {e}") for e in stops]
line = [*early, plain]
controls = ["at random", "at random, by layer", "by learnability"]
lines = {"cross-entropy, by epochs": line}
panels = {d: lines | {way: [(d, way)] for way in (scratch, tuned, inside, *controls) if (d, way) in ways and (d, way) != plain} for d in objectives}
beside = found.beside_line(("cross-entropy", inside), line, "LiRA")
lies = "surely beats" if beside.low > 0 else "surely loses to" if beside.high < 0 else "may equal"
title = f"Cross-entropy inside CWRF {lies} stopping earlier, at equal leak to LiRA"
joined = [row for d, each in panels.items() for row in found.plane(each, "LiRA", panel=d)]
report.tradeoff(joined, null=None, xlabel="test accuracy", ylabel="AUC of LiRA", title=title)

# %%
columns = {"auc": "AUC", "tpr_at_1%": audit.tpr_label(0.01, pool // 2), "tpr_at_0.1%": audit.tpr_label(0.001, pool // 2)}
report.table(
    [
        {"trained with": way[0], "way": way[1], "member": members[way], "test": found.accuracy(way)}
        | {f"{a}, {name}": found.leak(way, a)[number] for a in attackers for number, name in columns.items()}
        for way in ways
    ],
    caption=f"Mean over {shadows} targets; r {100 * r:g} %. Right after the rewind members are {members['rewound']}, "
    f"test {found.accuracy('rewound')}. Of Fig. 7 the text gives no number",
)

# %% [markdown]
# ## Where the rewound weights sit

# %%
sits = {}
for score in by:
    chosen = highest(score_maps.maps(results[score]), r)
    for share in score_maps.shares(chosen, score_maps.kinds(results[score])):
        sits.setdefault((share.of, share.weights), []).append(share.selected)
count = sum(mask.size for mask in chosen.values())
report.table(
    [
        {"layer type": of, "weights": n, "of all weights": n / count}
        | {name: audit.over([k / size for k in each]) for name, size in (("of the rewound", r * count), ("rewound, of its own", n))}
        for (of, n), each in sits.items()
    ],
    caption=f"{100 * r:g} % of {count:,} weights, by the score; mean over {shadows} models",
)

# %% [markdown]
# ## Verdicts


# %%
def worse(way):
    return found.more_leaky(("cross-entropy", way), ("cross-entropy", inside), "LiRA")


rewound = {"accuracy on members falls right after the rewind": audit.paired_difference(inner[plain], inner["rewound"])}
acted = {d: rewound | {f"{d} lowers LiRA's AUC from scratch": found.more_leaky(plain, (d, scratch), "LiRA")} for d in ("RelaxLoss", "CCL")}
controlled = ("rewinding", "chance", "layers", "learnability", "stopping")
report.judge(
    claims,
    **{f"{d.lower()}_accuracy": found.more_accurate((d, inside), (d, scratch)) for d in acted},
    curve=audit.least(found.better_curve(*([(d, way) for d in objectives] for way in (inside, scratch)), a) for a in attackers),
    ccl_leak=audit.largest(found.more_leaky(("CCL", inside), ("CCL", scratch), a) for a in attackers),
    rewinding=worse(tuned),
    **dict(zip(controlled[1:4], map(worse, controls), strict=True)),
    stopping=beside,
    checks={f"{d.lower()}_accuracy": acted[d] for d in acted} | dict.fromkeys(("curve", *controlled), rewound) | {"ccl_leak": acted["CCL"]},
    regime={"undefended member accuracy": members[plain], "undefended test accuracy": found.accuracy(plain)},
)

# %% [markdown]
# **Caveat.** Short texts, a small transformer, one lambda, one strength of each defence: the paper's are lost. What a
# control changes at one *r* need not hold at another.

# %%
report.provenance(results)
