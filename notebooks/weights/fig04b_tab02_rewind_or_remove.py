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
# # Is it where the critical weights are, or that norms are among them?
#
# **CWRF, section 4.4 and Tab. 2.** What happens to the share *r* of the weights that score highest? **A1** removes
# them and trains the rest. **A2** puts them back to their initial values and trains them alone. **A3**, which is CWRF,
# puts them back, holds them there and trains the rest. All three train with RelaxLoss.
#
# **The paper says** that A1 destroys the network at every *r*, so it is the *location* of these weights that matters,
# not their values; that at a small *r* A3 is more accurate than A2 and than RelaxLoss from scratch; that at 3 and 5 %
# A3's gap between training and test loss is smaller than A2's, by 0.139 and 0.147 nats. At 0.1 % the gap of its own
# table is larger, by 0.469.
#
# **It would be wrong if** removing did no harm, or A3 were no better. **It would be beside the point if** norms did it:
# they are scored too, and a layer whose scale is zero says nothing. So A1 removes norms, or all others, alone. Or if
# *any* weights did as well (equally many, and of each layer as many, at random; the largest; SNIP's), or none at all:
# the line at equal leak has nothing rewound, from the ordinary network over strengths of RelaxLoss.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (python -m lib.data); the paper: CIFAR-10
pixels = 16  # side of the images, pixels, after area resize (paper: 32)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (paper: 64)
stem = "conv3"  # first layer, as the paper has it
pool = 600  # samples from which each model draws half (paper: lost)
dev = 300  # samples outside the pool, here unused: the networks are those of Tab. 3
reference = 300  # non-members outside the pool, for the score alone (paper: lost)
test = 600  # test samples (paper: all)
rates = [0.001, 0.05, 0.2, 0.5]  # r, share of the weights, smallest first (paper: 0.001, 0.01, 0.03, 0.05)
compared = 0.2  # the rate of them at which arms are compared: rewinding does something there (ours)
balance = 0.5  # lambda of the score, chosen beforehand (paper: lost)
score_steps = 30  # updates of the score (paper: lost; "tens")
score_batch = 32  # members, and reference samples, of each update (paper: lost)
alphas = [0.15, 0.3]  # RelaxLoss target losses of the line, nats; the last one is that of all arms (paper: lost)
epochs = 12  # epochs from scratch (paper: lost)
retrain_epochs = 4  # epochs of every retraining (paper: lost); even as those are, since RelaxLoss alternates by epoch
batch = 64  # samples a step (paper: lost)
lr = 0.005  # learning rate of Adam, cosine to 0, at the start of each training (paper: lost)
shadows = 10  # models in complement pairs; each is attacked by the others, less its pair (paper: 8)
removals = 4  # of the models, those that are trained on after a removal: its effects are large
learnt = 0.6  # least test accuracy of an ordinary network that has learnt (ours)
seed = 1  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from scipy.special import log_softmax

from lib import audit, lab, report
from lib.data.designs import Role
from lib.recipe import SNIP, Data, LiRA, Magnitude, Model, Population, Random, RandomHalves, RelaxLoss, Schedule, Setup, Vulnerability, self_audit

small, least_r, alpha = rates[0], min(r for r in rates if r >= 0.03), alphas[-1]
alive, at = "test accuracy after retraining, minus half of the ordinary network's", f"at r = {100 * small:g} %"
said, ours = {"paper": "section 4.4", "control": "paired over models"}, {"paper": "our control"}
line_ = {"above": 0.02, "margin": 0.04, "control": "paired, at equal AUC of LiRA", "paper": "our control"}
at_rate, rand = f"A3, r = {100 * compared:g} %", "as many at random; equal epochs and defence, paired"
claims = report.claims(
    report.Claim("removing_destroys", "Without the critical weights the network is destroyed", f"{alive}, largest over r", below=0.0, **said),
    report.Claim("norms_destroy", "The norms among them suffice to destroy it", f"{alive}, their norms removed, {at}", below=0.0, control="paired", **ours),
    report.Claim("others_do_not", "Without all others of them it lives", f"{alive}, all but norms removed, {at}", above=0.0, control="paired", **ours),
    report.Claim("beats_scratch", f"A3 beats RelaxLoss from scratch {at}", "test accuracy, A3 minus scratch", above=0.02, margin=0.02, **said),
    report.Claim("beats_a2", f"A3 is more accurate than A2 {at}", "test accuracy, A3 minus A2", above=0.0, margin=0.02, **said),
    report.Claim("smaller_gap", f"A3's gap is smaller at {100 * least_r:g} %", "test minus training loss, nats, A2 minus A3", above=0.05, margin=0.05,
        paper="Tab. 2: 0.139 at 3 %, 0.147 at 5 %", control="equal epochs; paired over models"),
    report.Claim("leaks_less", "Rewinding them leaves less leak than rewinding any", f"LiRA AUC, random minus {at_rate}", above=0.02, margin=0.04, control=rand, **ours),
    report.Claim("score_matters", "At equal leak they are better than others of the same layers", f"test accuracy, minus shuffled, {at_rate}", **line_),
    report.Claim("rewinding_helps", "and better than nothing rewound", f"test accuracy minus the line's, {at_rate}", **line_),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)  # fmt: skip
claims

# %% [markdown]
# ## What is done with the weights that score highest
# Each model, a shadow too, scores its own weights and walks the whole chain from its own initialisation.

# %%
long, short = (Schedule(n, batch, "adam", lr=lr) for n in (epochs, retrain_epochs))
design = RandomHalves(pool, test=test, seed=seed, dev=dev, reference=reference)
setup = Setup(Data(data, pixels), design, Model(model, width, stem), long, shadows, seed, precision)
private, ordinary = RelaxLoss(alpha), setup.trained()
by = ordinary.score(Vulnerability(weight=balance, steps=score_steps, batch=score_batch))
dealt = [score.shuffle(seed) for score in by]
arms = {"shuffled": dealt, "random": ordinary.score(Random(seed)), "|w|": ordinary.score(Magnitude()), "SNIP": ordinary.at("init").score(SNIP(batch))}
ways = {("ordinary", None): ordinary, ("from scratch", None): setup.trained(private)}
ways |= {("nothing rewound", a): ordinary.train(short, RelaxLoss(a)) for a in alphas}
rewound = {r: ordinary.rewind_weights(by, r) for r in rates}
ways |= {("A3", r): rewound[r].hold_weights(by, r).train(short, private) for r in rates}
ways |= {("A2", r): rewound[r].hold_weights(by, r, rest=True).train(short, private) for r in (small, least_r)}
for arm, score in arms.items():
    ways[f"A3, {arm}", compared] = ordinary.rewind_weights(score, compared).hold_weights(score, compared).train(short, private)
pairs = {"all": (by, "all"), "norms": (by, "norms"), "others": (by, "others"), "random": (dealt, "all"), "random others": (dealt, "others")}
cut = {(name, r): ordinary.remove(score, r, part) for name, (score, part) in pairs.items() for r in (small, least_r)}
trained = [*((name, small) for name in pairs if name != "random"), ("all", least_r), ("others", least_r)]
after = {key: Population(cut[key].states[:removals]).train(short, private) for key in trained}
signals = {key: each.signals() for key, each in ways.items()}
edited = {("rewound", r): each.signals() for r, each in rewound.items()} | {key: each.signals() for key, each in cut.items()}
retrained = {key: each.signals() for key, each in after.items()}
attacks = {(key, "LiRA"): each.attack(LiRA()) for key, each in ways.items()}

# %%
results = lab.realize(signals, edited, retrained, attacks, self_audit(ordinary))

# %% [markdown]
# ## A1, and what the norms do
# Right after the removal, and trained on (of the first models). *Norms* and *others* are two parts of *all*. *Random*
# removes as many of each layer.

# %%
found = audit.Comparison.of(results, signals, attacks)
right = {key: [float(results[s]["accuracy_test"]) for s in each] for key, each in edited.items()}
grown = {key: [float(results[s]["accuracy_test"]) for s in each] for key, each in retrained.items()}
usual = found.accuracies["ordinary", None]
left = {key: audit.paired_difference(each, [a / 2 for a in usual[:removals]]) for key, each in grown.items()}
names = dict(zip(pairs, ("A1: all", "its norms", "all but norms", "random", "random, but norms"), strict=True))
points = [{"removed": names[k], "r": f"{100 * r:g} %", "of": "right after it", "value": audit.over(right[k, r])} for k, r in cut]
points += [{"removed": names[k], "r": f"{100 * r:g} %", "of": "trained on", "value": audit.over(v)} for (k, r), v in grown.items()]
points = [row | {"r": row["r"].replace(".", "·")} for row in points]  # a point would part a block's name
dead = left["norms", small].high < 0, left["others", small].low > 0
alone = f"the norms alone {'destroy' if dead[0] else 'do not destroy'} the network"
title = f"{at.removeprefix('at ').capitalize()}: {alone}; without all others it {'lives' if dead[1] else 'does not live'}"
report.profile(points, "r", hue="removed", facet="of", null=0.1, level="chance", xlabel="r", ylabel="test accuracy", title=title)

# %% [markdown]
# ## A3 against doing nothing: accuracy at equal leak
# Lines join rates, from the smallest on, and RelaxLoss's strengths, from the ordinary network on. Arms have one rate.

# %%
line = [("ordinary", None), *(("nothing rewound", a) for a in alphas)]
series = {"nothing rewound": line, "A3, by rate": [("A3", r) for r in rates]} | {f"A3, {arm}": [(f"A3, {arm}", compared)] for arm in arms}
over_line = found.beside_line(("A3", compared), line, "LiRA")
word = "beats" if over_line.low > 0 else "is worse than" if over_line.high < 0 else "is not told from"
title = f"At equal leak A3 at {100 * compared:g} % {word} nothing rewound"
report.tradeoff(found.plane(series, "LiRA"), null=None, xlabel="test accuracy", ylabel="AUC of LiRA", title=title)


# %%
def loss(signals, role):
    own = signals["role"] == role
    return -log_softmax(signals["logits"][own].astype(float), axis=1)[range(own.sum()), signals["labels"][own]].mean()


paper = {("A2", 0.001): 0.1529, ("A2", 0.05): 0.4991, ("A3", 0.001): 0.6218, ("A3", 0.05): 0.3515, ("from scratch", None): 0.7311}
gaps = {key: [loss(results[s], Role.TEST) - loss(results[s], Role.MEMBER) for s in each] for key, each in signals.items()}
members = {key: audit.over([float(results[s]["accuracy_member"]) for s in each]) for key, each in signals.items()}
names = {key: key[0] + (f", alpha {key[1]:g}" if key in line[1:] else f", {100 * key[1]:g} %" if key[1] else "") for key in ways}
columns = {"member accuracy": members, "test accuracy": {key: found.accuracy(key) for key in ways}}
columns |= {"right after rewinding, test": {("A3", r): audit.over(right["rewound", r]) for r in rates}}
columns |= {"LiRA, AUC": {key: found.leak(key, "LiRA")["auc"] for key in ways}, "gap, nats": {key: audit.over(each) for key, each in gaps.items()}}
columns |= {"paper, gap": paper, "at equal leak, minus the line's": {key: found.beside_line(key, line, "LiRA") for key in ways if key not in line}}
rows = [{"way": names[key]} | {name: each.get(key) for name, each in columns.items()} for key in ways]
report.table(rows, paper="Tab. 2", caption=f"Over {shadows} models; alpha is {alpha:g} where nothing is said. Gap: test minus training loss")

# %% [markdown]
# ## Verdicts

# %%
acts = {f"rewinding {100 * compared:g} % lowers test accuracy, right after it": audit.paired_difference(usual, right["rewound", compared])}
defended = {"RelaxLoss lowers LiRA's AUC, nothing rewound": found.more_leaky(("ordinary", None), ("nothing rewound", alpha), "LiRA")}
report.judge(
    claims,
    removing_destroys=audit.largest(left["all", r] for r in (small, least_r)),
    norms_destroy=left["norms", small],
    others_do_not=left["others", small],
    beats_scratch=found.more_accurate(("A3", small), ("from scratch", None)),
    beats_a2=found.more_accurate(("A3", small), ("A2", small)),
    smaller_gap=audit.paired_difference(gaps["A2", least_r], gaps["A3", least_r]),
    leaks_less=found.more_leaky(("A3, random", compared), ("A3", compared), "LiRA"),
    score_matters=found.beside_line(("A3", compared), line, "LiRA", ("A3, shuffled", compared)),
    rewinding_helps=over_line,
    checks={"leaks_less": acts} | dict.fromkeys(("beats_scratch", "score_matters", "rewinding_helps"), defended),
    regime={"member accuracy": members["ordinary", None], "test accuracy": found.accuracy(("ordinary", None))},
    notes={"beats_scratch": "By Tab. 2 the paper's run from scratch ends at a training loss far above its A3's, as if it lacked epochs"},
)

# %% [markdown]
# **Caveat.** A3 has spent more epochs than training from scratch; the line has spent as many. LiRA's targets are each
# other's shadows. At a larger *r* all of a narrow layer goes, norms or not. Rules were settled on draw 0 and are judged
# on this one (seed 1).

# %%
report.provenance(results)
