# ---
# jupyter:
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
# *r* and does not say which defences; we take two of its others, each at one strength that acts, and two *r*.
#
# **It would be wrong if** accuracy were lower at a like leak. **Beside the point if** the same came with nothing
# rewound, by the score of learnability, with weights at random (over the network, or of each layer as many as the score
# takes), with **the head alone** (all of it, no score at all), or by stopping the ordinary training earlier: our
# controls. Earlier epochs end at a high learning rate, so that shorter trainings, each annealed, stand beside them.
#
# The scale is RMIA's AUC: on draw 0 LiRA's said the same and resolved less. Rules, sizes and rates were settled on draw
# 0, a referee's objections in hand, and are judged on this one (seed 1).

# %% tags=["parameters"]
data = "wordnet-glosses"  # data set (leak-atlas data); the paper: dbpedia14
words = 4000  # vocabulary, padding and the unknown word included (paper: not stated)
length = 8  # words kept of each text (paper: not stated)
width = 16  # channels of the transformer (paper: not stated)
pool = 2000  # samples from which each model draws half (paper: lost)
dev = 500  # samples outside the pool, not looked at here (paper: names none)
reference = 500  # non-members outside the pool, for the score alone (paper: lost)
test = 1000  # test samples (paper: not stated)
rates = [0.01, 0.05]  # r, shares of the weights that are rewound: all is at the first (paper: a grid that is lost)
balance = 0.5  # lambda of the score, set beforehand (paper: lost)
score_steps = 30  # updates of the score (paper: lost; "tens")
relax_alpha = 1.0  # RelaxLoss: target loss, nats (paper: not stated for text)
ccl_alpha = 0.1  # CCL: share of the cross-entropy (paper: not stated)
epochs = 8  # epochs from scratch; even, as RelaxLoss's last epoch matters (paper: lost)
retrain_epochs = 4  # epochs of every retraining; even too (paper: lost)
stops = [2, 3, 4, 5, 6]  # epochs after which the ordinary training may be stopped (our control)
shorter = [4, 6]  # epochs of shorter trainings from scratch, each annealed (our control)
batch = 80  # samples a step, and a step of the score (paper: lost)
lr = 0.01  # learning rate of Adam, cosine to 0, at the start of each training (paper: lost)
shadows = 10  # models in complement pairs; each is attacked by the others, less its pair (paper: 8)
learnt = 0.4  # least test accuracy of a network that has learnt (ours; 14 classes)
seed = 1  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import audit, lab, recipe, report
from leak_atlas.engine.selection import highest
from leak_atlas.localization import score_maps
from leak_atlas.recipe import Schedule

claim, r = report.Claim, rates[0]
low, high = f"{100 * rates[0]:g} %", f"{100 * rates[-1]:g} %"
beside = "test accuracy beside earlier epochs, at equal AUC of RMIA"
said = {"paper": "Fig. 7", "control": "from scratch, the same strength; each beside cross-entropy's epochs", "margin": 0.02}
ours = {"ours": "our control", "control": "cross-entropy, equal epochs; paired over targets", "margin": 0.02}
claims = report.claims(
    claim("relaxloss", f"At r = {low} and equal leak RelaxLoss is better inside CWRF", f"{beside}, inside minus from scratch", above=0.0, **said),
    claim("ccl", f"At r = {low} and equal leak CCL is better inside CWRF", f"{beside}, inside minus from scratch", above=0.0, **said),
    claim("rate", f"At r = {high} it is as good as at {low}", f"{beside}, {high} minus {low}", above=-0.02, **ours),
    claim("stopping", f"At r = {low} it beats stopping earlier", f"{beside} and shorter trainings, on one line", above=0.0, **ours),
    claim("rewinding", "At equal leak nothing rewound is worse", f"{beside}, CWRF minus nothing rewound", above=0.0, **ours),
    claim("learnability", "By the score of learnability it is as good", f"{beside}, CWRF minus by learnability", within=0.03, **ours),
    claim("head", "With the head alone, rewound and held, it is as good", f"{beside}, CWRF minus the head alone", within=0.03, **ours),
    regime={"undefended member accuracy": 0.95, "undefended test accuracy": learnt},
)  # fmt: skip
claims

# %% [markdown]
# ## Train, rewind and hold, train on
# The three steps of CWRF: score (`by`), rewind and hold (`held`), train on. CCL's factor of the whole loss is 1: under
# Adam another only moves weight decay. On draw 0 of `quick` more epochs leaked far more (.958) at an accuracy below
# CWRF's, so that fewer epochs are the harder control.

# %%
study = recipe.RewindStudy(
    recipe.Data(data, words=words, length=length),
    recipe.Model("transformer", width),
    Schedule(epochs, batch, "adam", lr=lr),
    retraining=retrain_epochs,
    criterion=recipe.Vulnerability(weight=balance, steps=score_steps, batch=batch),
    pool=pool,
    test=test,
    models=shadows,
    dev=dev,
    reference=reference,
    seed=seed,
    precision=precision,
)
ordinary, by = study.ordinary, study.scores


def held(by, r=r):
    """Of each model the share r of the weights that score highest, rewound and held from here on."""
    return ordinary.rewind_weights(by, r).freeze_weights(by, r)


plain, inside, tuned, scratch = "cross-entropy", "inside CWRF", "nothing rewound", "from scratch"
objectives = {"cross-entropy": None, "RelaxLoss": recipe.RelaxLoss(relax_alpha), "CCL": recipe.CCL(ccl_alpha, beta=1.0)}
ways = {(plain, f"epoch {e}"): ordinary.at(e) for e in stops}
ways |= {(plain, f"{n} epochs, annealed"): study.setup.trained(schedule=Schedule(n, batch, "adam", lr=lr)) for n in shorter}
for d, objective in objectives.items():
    ways[d, scratch] = study.setup.trained(objective)
    ways[d, tuned] = study.tuned(objective)
    ways[d, inside] = study.inside(r, objective)
more, learned, head = f"inside, r = {high}", "by learnability", "head alone"
others = {learned: recipe.Learnability(score_steps, batch), "at random": recipe.Random(seed)}
rewound = {inside: held(by), more: held(by, rates[-1])}
rewound |= {name: held(ordinary.score(criterion)) for name, criterion in others.items()}
rewound["at random, by layer"] = held([score.shuffle() for score in by])
rewound[head] = recipe.Population(tuple(one.rewind("head").freeze("head", later=True) for one in ordinary))
ways |= {(plain, name): each.train(study.short) for name, each in rewound.items()}
signals = {way: each.signals() for way, each in ways.items()} | {name: each.signals() for name, each in rewound.items()}
attackers = {"LiRA": recipe.LiRA(), "RMIA": recipe.RMIA()}
attacks = {(way, a): each.attack(attacker) for way, each in ways.items() for a, attacker in attackers.items()}

# %%
results = lab.realize(signals, attacks, by, recipe.self_audit(ordinary))
found = audit.Comparison.of(results, signals, attacks)
inner = {way: [float(results[one]["accuracy_member"]) for one in each] for way, each in signals.items()}
members = {way: audit.mean_ci(each) for way, each in inner.items()}

# %% [markdown]
# ## Accuracy against leak

# %%
line = [*((plain, f"epoch {e}") for e in stops), (plain, scratch)]
both = [*line, *((plain, f"{n} epochs, annealed") for n in shorter)]
series = (scratch, tuned, inside, more, head)
panels = {d: {"cross-entropy, by epochs": line} | {way: [(d, way)] for way in series if (d, way) in ways} for d in objectives}
beside = {(way, a): found.at_matched_auc(way, line, a) for way in ways if way not in line for a in attackers}
stopped = found.at_matched_auc((plain, inside), both, "RMIA")
beats = "surely beats" if stopped.low > 0 else "surely loses to" if stopped.high < 0 else "may equal"
too = "; so does rewinding the head alone" if stopped.low > 0 and beside[(plain, head), "RMIA"].low > 0 else ""
rows = [row for d, each in panels.items() for row in found.plane(each, "RMIA", panel=d)]
title = f"At {low} of the weights, cross-entropy inside CWRF {beats} stopping earlier{too}"
report.tradeoff(rows, null=None, xlabel="test accuracy", ylabel="AUC of RMIA", title=title)

# %%
rows = [
    {"trained with": way[0], "way": way[1]}
    | {"members, right after": members[way[1]] if way[1] in rewound else None, "member": members[way], "test": found.accuracy(way)}
    | {f"AUC of {a}": found.leak(way, a)["auc"] for a in attackers}
    | {f"beside the epochs, by {a}": beside.get((way, a)) for a in attackers}
    for way in ways
]
held = "; ".join(f"{d} {found.at_matched_auc((d, inside), line, 'RMIA', (d, tuned))}" for d in ("RelaxLoss", "CCL"))
report.table(rows, caption=f"Mean over {shadows} targets; r {low} where none is said. By RMIA, inside minus nothing rewound: {held}")

# %%
sits = {}
for score in by:
    chosen = highest(score_maps.maps(results[score]), r)
    for share in score_maps.shares(chosen, score_maps.kinds(results[score])):
        sits.setdefault((share.of, share.weights), []).append(share.selected)
count = sum(mask.size for mask in chosen.values())
rows = [
    {"layer type": of, "weights": n, "of all weights": n / count}
    | {name: audit.mean_ci([k / size for k in each]) for name, size in (("of the rewound", r * count), ("rewound, of its own", n))}
    for (of, n), each in sits.items()
]
report.table(rows, caption=f"{low} of {count:,} weights, by the score; mean over {shadows} models. The head is what is linear")

# %% [markdown]
# ## Verdicts

# %%
cwrf, other = (plain, inside), {"rewinding": (plain, tuned), "learnability": (plain, learned), "head": (plain, head)}
pairs = {"relaxloss": (("RelaxLoss", inside), ("RelaxLoss", scratch)), "ccl": (("CCL", inside), ("CCL", scratch))}
pairs |= {"rate": ((plain, more), cwrf), "layers": (cwrf, (plain, "at random, by layer"))} | {name: (cwrf, way) for name, way in other.items()}
by_rmia, by_lira = ({name: found.at_matched_auc(one, line, a, way) for name, (one, way) in pairs.items()} for a in ("RMIA", "LiRA"))
fell = {name: audit.paired_difference(inner[plain, scratch], inner[name]) for name in rewound}
falls = {name: {f"accuracy on members falls right after the rewind ({name})": each} for name, each in fell.items()}
lowered = {d: found.auc_difference((plain, scratch), (d, scratch), "RMIA") for d in ("RelaxLoss", "CCL")}
acts = {d.lower(): falls[inside] | {f"{d} lowers RMIA's AUC from scratch": each} for d, each in lowered.items()}
by_layer = f"Minus as many of each layer at random: {by_rmia.pop('layers')}"
report.judge(
    claims,
    **by_rmia,
    stopping=stopped,
    checks=acts | dict.fromkeys(("stopping", "rewinding"), falls[inside])
    | {"rate": falls[more], "learnability": falls[learned], "head": falls[head]},
    regime={"undefended member accuracy": members[plain, scratch], "undefended test accuracy": found.accuracy((plain, scratch))},
    notes={name: f"By LiRA: {by_lira[name]}" for name in by_rmia}
    | {"learnability": by_layer, "head": f"By LiRA: {by_lira['head']}. Why it should be the head is open"},
)  # fmt: skip

# %% [markdown]
# **Caveat.** Short texts, a small transformer, one lambda, one strength of each defence: the paper's are lost. At the second *r*
# cross-entropy alone is trained. Weights drawn over the whole network are nearly all embeddings, so this control hardly acts
# (*right after*, in the table) and judges nothing. What a control changes at one *r* need not hold at another.

# %%
report.provenance(results)
