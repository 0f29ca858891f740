# ---
# jupyter:
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
# serves members alone. But the updates *see* members, several times, under cross-entropy: they may learn them by heart
# anew while all else falls. So ours see every other member; those that they do not see are asked, against fresh ones.
#
# **It would be wrong if** unseen members went the way of non-members. Controls are the networks before, and lambda 0:
# as many updates for members alone, which is the learnability score. **It would be beside the point if** CWRF did as
# well at equal leak with that score, in which no non-member has a part.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); the paper: not stated, 100 classes by the shares of Tab. 1
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
moments = [10, 30, 90]  # updates after which the network is asked (ours)
every = 2  # the updates that are asked see every so manieth member (ours; the scores see all, as the paper has it)
score_batch = 32  # members, and reference samples, of each update (paper: lost)
share = 0.2  # r, share of the weights that CWRF rewinds (ours: rewinding does something there; paper: 0.001 to 0.05)
alphas = [0.15, 0.3]  # RelaxLoss target losses of the line, nats; the last one is that of CWRF (paper: lost)
epochs = 12  # epochs from scratch (paper: lost)
retrain_epochs = 4  # epochs of every retraining (paper: lost); even as those are, since RelaxLoss alternates by epoch
batch = 64  # samples a step (paper: lost)
lr = 0.005  # learning rate of Adam, cosine to 0, at the start of each training (paper: lost)
shadows = 10  # models in complement pairs; each is attacked by the others, less its pair (paper: 8)
learnt = 0.6  # least test accuracy of a network that has learnt (ours)
seed = 101  # evaluation seed: of design, initialisation and order
pilots = [0, 1]  # seeds on which the rules were set
precision = "fp32"  # of the trainings: fp32, or bf16 where the hardware has it; scores are fp32

# %%
import numpy as np
from leak_atlas import audit, lab, report
from leak_atlas.data.designs import Role
from leak_atlas.engine.selection import highest
from leak_atlas.localization.score_maps import maps, overlap
from leak_atlas.recipe import Data, Learnability, LiRA, Model, RandomHalves, RelaxLoss, Schedule, Setup, Vulnerability, self_audit
from scipy.special import log_softmax

auc, part, half = "AUC of unseen members against fresh non-members", "share in common of the top", "updates see every other member"
updates = {"paper": "section 4.1", "margin": 0.05, "control": f"the same networks before, and lambda 0; {half}"}
mine = updates | {"paper": "", "ours": True}
claims = report.claims(
    report.Claim("serves_members", "The score's updates part members from non-members", f"{auc}, minus before", above=0.02, **updates),
    report.Claim("serves_beside_zero", "At least they do so beside updates without the divergence", f"{auc}, minus lambda 0's", above=0.02, **mine),
    report.Claim("seen_first", "They part members that they see more than others", "rise of that AUC, seen minus unseen members", above=0.02, **mine),
    report.Claim("members_stay", "Members keep their accuracy meanwhile", "accuracy of unseen members, minus before", above=-0.05, **updates),
    report.Claim("others_fall", "Fresh samples lose theirs", "accuracy of fresh non-members, minus before", below=-0.02, **updates),
    report.Claim("chooses_alike", "The score is nearly one more learnability score", f"{part} {100 * share:g} %, two learnability scores minus with vulnerability",
        below=0.1, margin=0.1, ours=True, control="learnability with other batches"),
    report.Claim("divergence_pays_not", "The divergence is worth no accuracy at equal leak", f"test accuracy beside the line, lambda {balance:g} minus lambda 0",
        within=0.03, ours=True, control="line: nothing rewound, by alpha; equal rate, epochs, defence"),
    regime={"member accuracy": 0.95, "test accuracy": learnt},
)  # fmt: skip
claims

# %%
design = RandomHalves(pool, test=test, seed=seed, dev=dev, reference=reference)
long, short = (Schedule(n, batch, "adam", lr=lr) for n in (epochs, retrain_epochs))
trained = Setup(Data(data, pixels), design, Model(model, width, stem), long, shadows, seed, precision).trained()
ours, zero = f"lambda {balance:g}", "lambda 0"


def criterion(by, steps, every=1):
    return Vulnerability(steps, score_batch, every=every, weight=balance) if by == ours else Learnability(steps, score_batch, every=every)


pushed = {(by, t): trained.updated(criterion(by, t, every)).signals() for by in (ours, zero) for t in moments}
pushed |= {(by, 0): trained.signals() for by in (ours, zero)}
scores = {by: trained.score(criterion(by, score_steps)) for by in (ours, zero)}
again = trained.score(Learnability(score_steps, score_batch, draw=1))
held = {key: trained.rewind_weights(by, share).freeze_weights(by, share) for key, by in scores.items()}
ways = {"undefended": trained} | {f"nothing rewound, {a:g}": trained.train(short, RelaxLoss(a)) for a in alphas}
line = [*ways]
ways |= {key: each.train(short, RelaxLoss(alphas[-1])) for key, each in held.items()}
signals = {key: each.signals() for key, each in ways.items()}
attacks = {(key, "LiRA"): each.attack(LiRA()) for key, each in ways.items()}

# %%
rewound = trained.rewind_weights(scores[ours], share).signals()
results = lab.realize(pushed, scores, again, signals, rewound, attacks, self_audit(trained))

# %% [markdown]
# ## What the updates do
# Fresh non-members: the pool's other half, which nothing has seen. The AUC is of confidence in the true class.

# %%
sorts = "members seen", "members not seen", "fresh non-members"


def ask(one):
    """Of one network: AUC of both sorts of members against fresh non-members, and accuracy of all three."""
    sure = log_softmax(one["logits"].astype(float), axis=1)
    own, right = sure[range(len(sure)), one["labels"]], sure.argmax(axis=1) == one["labels"]
    inside, outside = (np.flatnonzero(one["role"] == role) for role in (Role.MEMBER, Role.NONMEMBER))
    where = dict(zip(sorts, (inside[::every], np.delete(inside, slice(None, None, every)), outside), strict=True))
    areas = {n: audit.auc(np.r_[own[where[n]], own[outside]], np.arange(len(where[n]) + len(outside)) < len(where[n])) for n in sorts[:2]}
    return {("AUC", n): float(area) for n, area in areas.items()} | {("accuracy", n): float(right[each].mean()) for n, each in where.items()}


read = {key: [ask(results[s]) for s in each] for key, each in sorted(pushed.items(), key=lambda item: item[0][1])}
values = {(*key, *asked): [one[asked] for one in each] for key, each in read.items() for asked in each[0]}
rise = {n: audit.paired_difference(values[ours, score_steps, "AUC", n], values[ours, 0, "AUC", n]) for n in sorts[:2]}
lead = {t: np.subtract(*(values[ours, t, "AUC", n] for n in sorts[:2])) for t in (0, score_steps)}
lost = {n: audit.paired_difference(values[ours, score_steps, "accuracy", n], values[ours, 0, "accuracy", n]) for n in sorts}
shown = [{"what": what, "updates": str(t), "score": by, "of": n, "value": audit.mean_ci(each)} for (by, t, what, n), each in values.items()]
word = {n: "part" if each.low > 0 else "do not part" for n, each in rise.items()}
title = f"The updates {word[sorts[0]]} members they see from non-members, and {word[sorts[1]]} others further"
rows = [row for row in shown if row["what"] == "AUC"]
report.profile(rows, "updates", hue="score", facet="of", xlabel="updates", ylabel="AUC against fresh non-members", title=title)

# %%
kept = "keep their accuracy" if lost[sorts[1]].low > -0.05 else "lose accuracy" if lost[sorts[1]].high < 0 else "may lose accuracy"
title = f"After {score_steps} updates unseen members {kept}; fresh non-members {'lose some' if lost[sorts[2]].high < -0.02 else 'hardly any'}"
rows = [row for row in shown if row["what"] == "accuracy"]
report.profile(rows, "updates", hue="score", facet="of", null=None, xlabel="updates", ylabel="accuracy", title=title)

# %% [markdown]
# ## Does it matter to CWRF?
# The three steps of the paper with each score: score, rewind and hold the top weights, train the rest with RelaxLoss.

# %%
found = audit.Comparison.of(results, signals, attacks)
top = {key: [highest(maps(results[s]), share) for s in each] for key, each in (scores | {"again": again}).items()}
common = {key: [overlap(a, b) for a, b in zip(top["again"], top[key], strict=True)] for key in scores}
apart = audit.paired_difference(common[zero], common[ours])
paid = found.at_matched_auc(ours, line, "LiRA", zero)
inside = {key: audit.mean_ci([float(results[s]["accuracy_member"]) for s in each]) for key, each in signals.items()}
columns = {"member accuracy": inside, "test accuracy": {key: found.accuracy(key) for key in ways}}
columns |= {"LiRA, AUC": {key: found.leak(key, "LiRA")["auc"] for key in ways}}
columns |= {"at equal leak, minus the line's": {key: found.at_matched_auc(key, line, "LiRA") for key in scores}}
columns |= {"chosen as by learnability, other batches": {key: audit.mean_ci(each) for key, each in common.items()}}
told = f"{shadows} models; alpha is {alphas[-1]:g}, or as said. Chosen as by: share in common of the top {100 * share:g} %, by chance {share:g}"
report.table([{"way": key} | {name: each.get(key) for name, each in columns.items()} for key in ways], caption=told)

# %%
title = f"At equal leak the divergence moves accuracy by {'less than' if max(abs(paid.low), abs(paid.high)) < 0.03 else 'perhaps'} 3 points"
series = {"nothing rewound": line} | {f"CWRF, {key}": [key] for key in scores}
report.tradeoff(found.plane(series, "LiRA"), null=None, xlabel="test accuracy", ylabel="AUC of LiRA", title=title)

# %% [markdown]
# ## Verdicts

# %%
then = [float(results[s]["accuracy_test"]) for s in rewound]
acts = {"rewinding lowers test accuracy, right after it": audit.paired_difference(found.accuracies["undefended"], then)}
acts |= {"CWRF with lambda 0 leaks less than undefended": found.auc_difference("undefended", zero, "LiRA")}
report.judge(
    claims,
    serves_members=rise[sorts[1]],
    serves_beside_zero=audit.paired_difference(*(values[by, score_steps, "AUC", sorts[1]] for by in (ours, zero))),
    seen_first=audit.paired_difference(lead[score_steps], lead[0]),
    members_stay=lost[sorts[1]],
    others_fall=lost[sorts[2]],
    chooses_alike=apart,
    divergence_pays_not=paid,
    checks={"divergence_pays_not": acts, "members_stay": {"the updates lower the accuracy of non-members": -lost[sorts[2]]}},
    regime={"member accuracy": inside["undefended"], "test accuracy": found.accuracy("undefended")},
)

# %% [markdown]
# **Caveat.** One lambda, one rate, one defence. Where CWRF hardly leaks less than undefended (table), its few epochs of
# retraining leave RelaxLoss little to do (fig04b trains longer); so nothing is said of more updates of the score, whose
# leak would be as near. Rules, sizes and rates were settled on draw 0, a referee's objections in hand, and
# are judged on this one (seed 1).

# %%
report.provenance(results, seed=seed, pilots=pilots)
