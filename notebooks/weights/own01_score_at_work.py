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
# # Does the vulnerability score do what it is meant to do?
#
# **CWRF, section 4.1, looked at by us.** To score its weights by vulnerability, a trained network takes some tens of
# updates: they lower (1 − lambda) × cross-entropy of members + lambda × divergence of its outputs on reference samples,
# which are no members, from those of the untrained network. The score adds up what each weight does in them.
#
# **The paper says** that the updates keep accuracy on members and lose it on reference samples: what they lean on then
# serves members alone. So they must part members from *all* who are not, not from the reference samples that they see.
# We ask the network after the updates: its AUC of members against fresh non-members, which it never saw.
#
# **It would be wrong if** that AUC did not rise. The control has lambda 0: as many updates for the members alone, which
# is the learnability score. **It would be beside the point if** CWRF leaked as much with a score of more updates, which
# part the two sides far better, or no more with the learnability score, in which no non-member has a part.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (python -m lib.data); the paper: not stated, 100 classes by the shares of Tab. 1
pixels = 16  # side of the images, pixels, after area resize (paper: 32)
model = "resnet10"  # architecture (paper: resnet18)
width = 8  # channels of stage 1 (paper: 64)
stem = "conv3"  # first layer, as the paper has it
pool = 600  # samples from which each network draws half (paper: lost)
dev = 300  # samples outside the pool, here unused: the networks are those of Tab. 3
reference = 300  # non-members outside the pool, for the score alone (paper: lost)
test = 600  # test samples (paper: all)
balance = 0.5  # lambda, the share of the divergence in the score's loss, chosen beforehand (paper: lost)
score_steps = 30  # updates of the score that other notebooks use (paper: lost; "tens")
moments = [10, 30, 90]  # updates after which the network is asked; the last are those of the longer score (ours)
score_batch = 32  # members, and reference samples, of each update (paper: lost)
asked = 5  # networks that are asked; their AUC hardly differs
share = 0.2  # r, share of the weights that CWRF rewinds (ours: rewinding does something there; paper: 0.001 to 0.05)
alpha = 0.3  # RelaxLoss target loss, nats (paper: lost; RelaxLoss has 1 for CIFAR-10)
epochs = 12  # epochs from scratch (paper: lost)
retrain_epochs = 4  # epochs of every retraining (paper: lost); even as those are, since RelaxLoss alternates by epoch
batch = 64  # samples a step (paper: lost)
lr = 0.005  # learning rate of Adam, cosine to 0, at the start of each training (paper: lost)
shadows = 10  # models in complement pairs; each is attacked by the others, less its pair (paper: 8)
learnt = 0.6  # least test accuracy of a network that has learnt (ours)
seed = 1  # seed of design, initialisation and order
precision = "fp32"  # of the trainings: fp32, or bf16 where the hardware has it; scores are fp32

# %%
import numpy as np
from scipy.special import log_softmax

from lib import audit, lab, report
from lib.data.designs import Role
from lib.localization.score_maps import maps, overlap
from lib.recipe import Data, Learnability, LiRA, Model, Population, RandomHalves, RelaxLoss, Schedule, Setup, Vulnerability, self_audit
from lib.selection import highest

long_steps, auc, part = moments[-1], "AUC of members against fresh non-members", "share in common of the top"
updates, control = {"paper": "section 4.1", "margin": 0.05}, "lambda 0, as many updates, same batches; paired"
same, moved = updates | {"control": "the same networks"}, f"{long_steps} updates minus none"
leak = {"paper": "ours", "control": "paired over targets; equal rate, epochs, defence"}
claims = report.claims(
    report.Claim("few_part", f"{score_steps} updates part members from non-members", f"{auc}, minus lambda 0's", above=0.02, control=control, **updates),
    report.Claim("more_part", f"{long_steps} updates part them further", f"{auc}, after {long_steps} minus after {score_steps}", above=0.02, **same),
    report.Claim("members_stay", "Members keep their accuracy meanwhile", f"accuracy of members, {moved}", above=-0.05, **same),
    report.Claim("others_fall", "Fresh samples lose theirs", f"accuracy of non-members, {moved}", below=-0.02, **same),
    report.Claim("chooses_alike", "Yet it is nearly one more learnability score", f"{part} {100 * share:g} %, two learnability scores minus with vulnerability",
        below=0.1, margin=0.1, paper="ours", control="learnability with other batches"),
    report.Claim("steps_count_not", "CWRF leaks the same with more updates", f"LiRA AUC, {long_steps} updates minus {score_steps}", within=0.03, **leak),
    report.Claim("divergence_pays", "It leaks more without the divergence", f"LiRA AUC, lambda 0 minus {balance:g}", above=0.02, margin=0.04, **leak),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)  # fmt: skip
claims

# %%
design = RandomHalves(pool, test=test, seed=seed, dev=dev, reference=reference)
long, short = (Schedule(n, batch, "adam", lr=lr) for n in (epochs, retrain_epochs))
trained = Setup(Data(data, pixels), design, Model(model, width, stem), long, shadows, seed, precision).trained()
few = Population(trained.states[:asked])
ours, zero = f"lambda {balance:g}", "lambda 0"


def criterion(by, steps):
    return Vulnerability(steps, score_batch, weight=balance) if by == ours else Learnability(steps, score_batch)


pushed = {(by, t): few.updated(criterion(by, t)).signals() for by in (ours, zero) for t in moments}
pushed |= {(by, 0): few.signals() for by in (ours, zero)}
scores = {(by, score_steps): trained.score(criterion(by, score_steps)) for by in (ours, zero)}
scores[ours, long_steps] = trained.score(criterion(ours, long_steps))
again = trained.score(Learnability(score_steps, score_batch, draw=1))
held = {key: trained.rewind_weights(by, share).hold_weights(by, share) for key, by in scores.items()}
ways = {"undefended": trained, "nothing rewound": trained.train(short, RelaxLoss(alpha))}
ways |= {key: each.train(short, RelaxLoss(alpha)) for key, each in held.items()}
signals = {key: each.signals() for key, each in ways.items()}
rewound = trained.rewind_weights(scores[ours, score_steps], share).signals()
attacks = {(key, "LiRA"): each.attack(LiRA()) for key, each in ways.items()}

# %%
results = lab.realize(pushed, scores, again, signals, rewound, attacks, self_audit(trained))

# %% [markdown]
# ## What the updates do
# Fresh non-members: the pool's other half, on which neither training nor score has looked. The AUC is that of the
# confidence in the true class.


# %%
def area(one):
    """Members against the pool's other half, by the confidence in the true class."""
    pool_ = np.isin(one["role"], (Role.MEMBER, Role.NONMEMBER))
    sure = log_softmax(one["logits"][pool_].astype(float), axis=1)[range(pool_.sum()), one["labels"][pool_]]
    return float(audit.auc(sure, one["role"][pool_] == Role.MEMBER))


read = {key: [results[s] for s in each] for key, each in pushed.items()}
areas = {key: [area(one) for one in each] for key, each in read.items()}
right = {(*key, n): [float(one[f"accuracy_{n}"]) for one in each] for key, each in read.items() for n in ("member", "nonmember")}
rise = audit.paired_difference(areas[ours, long_steps], areas[ours, 0])
rows = [{"updates": str(t), "score": by, "of": "members against fresh non-members", "value": audit.over(areas[by, t])} for by, t in areas]
rows.sort(key=lambda row: int(row["updates"]))
title = f"{long_steps} updates with the divergence {'part' if rise.low > 0 else 'do not part'} members from fresh non-members"
report.profile(rows, "updates", hue="score", xlabel="updates", ylabel="AUC of members against fresh non-members", title=title)

# %%
panels = {"member": "members", "nonmember": "fresh non-members"}
rows = [{"updates": str(t), "score": by, "of": panels[n], "value": audit.over(each)} for (by, t, n), each in right.items()]
rows.sort(key=lambda row: int(row["updates"]))
lost = {n: audit.paired_difference(right[ours, long_steps, n], right[ours, 0, n]) for n in panels}
kept = "Members keep their accuracy" if lost["member"].low > -0.05 else "Members lose accuracy too"
title = f"{kept}; fresh non-members {'lose theirs' if lost['nonmember'].high < -0.02 else 'do not lose theirs'}"
report.profile(rows, "updates", hue="score", facet="of", null=None, xlabel="updates", ylabel="accuracy", title=title)

# %% [markdown]
# ## Does it matter to CWRF?
# The three steps of the paper with each score: score, rewind and hold the top weights, train the rest with RelaxLoss.

# %%
found = audit.Comparison.of(results, signals, attacks)
top = {key: [highest(maps(results[s]), share) for s in each] for key, each in (scores | {"again": again}).items()}
common = {key: [overlap(a, b) for a, b in zip(top["again"], each, strict=True)] for key, each in top.items() if key != "again"}
apart = audit.paired_difference(common[zero, score_steps], common[ours, score_steps])
names = {key: key if isinstance(key, str) else f"{key[0]}, {key[1]} updates" for key in ways}
inside = {key: [float(results[s]["accuracy_member"]) for s in each] for key, each in signals.items()}
base = (ours, score_steps)
other = {key: found.more_leaky(key, base, "LiRA") for key in scores if key != base}
columns = {"member accuracy": {key: audit.over(each) for key, each in inside.items()}, "test accuracy": {key: found.accuracy(key) for key in ways}}
columns |= {"LiRA, AUC": {key: found.leak(key, "LiRA")["auc"] for key in ways}, "minus the usual score's": other}
columns |= {"chosen as by learnability, other batches": {key: audit.over(each) for key, each in common.items()}}
told = f"Over {shadows} models. Chosen as by: share in common of the top {100 * share:g} %; by chance {share:g}. RelaxLoss's alpha is {alpha:g}"
report.table([{"way": names[key]} | {name: each.get(key) for name, each in columns.items()} for key in ways], caption=told)

# %%
without = other[zero, score_steps]
word = "leaks less" if without.high < 0 else "leaks more" if without.low > 0 else "leaks as much"
title = f"Without the divergence CWRF {word}"
shown = [{"series": names[key], "test accuracy": found.accuracy(key), "AUC of LiRA": found.leak(key, "LiRA")["auc"]} for key in ways]
report.tradeoff(shown, "test accuracy", "AUC of LiRA", hue="series", null=None, title=title)

# %% [markdown]
# ## Verdicts

# %%
then = [float(results[s]["accuracy_test"]) for s in rewound]
acts = {"rewinding lowers test accuracy, right after it": audit.paired_difference(found.accuracies["undefended"], then)}
moves = {"the longer score chooses other weights": audit.over([1 - overlap(a, b) for a, b in zip(top[base], top[ours, long_steps], strict=True)])}
report.judge(
    claims,
    few_part=audit.paired_difference(areas[ours, score_steps], areas[zero, score_steps]),
    more_part=audit.paired_difference(areas[ours, long_steps], areas[ours, score_steps]),
    members_stay=lost["member"],
    others_fall=lost["nonmember"],
    chooses_alike=apart,
    steps_count_not=other[ours, long_steps],
    divergence_pays=without,
    checks={"steps_count_not": acts | moves, "divergence_pays": acts},
    regime={"member accuracy": audit.over(inside["undefended"]), "test accuracy": found.accuracy("undefended")},
)

# %% [markdown]
# **Caveat.** One lambda, and one rate and defence in CWRF; its leaks are not compared at equal accuracy, fig04b does so.
# By Tab. 3 CWRF takes .022 from RelaxLoss's AUC. Rules were settled on draw 0 and are judged on this one (seed 1).

# %%
report.provenance(results)
