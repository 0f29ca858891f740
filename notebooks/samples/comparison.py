# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does WeMem protect more than other defences, at the same accuracy?
#
# **WeMem, slide "Performance Comparison with Existing Defenses".** A network is pruned in five rounds, which train it with a defence. RSW shows it a sliding
# window of each class, in the order of memorization scores; RMR holds back what is remembered best by weight decay; SWMR does both. Beside them stand PPB,
# adversarial regularization (ADV), DP-SGD, RelaxLoss and Base. The published code adds settings, and an ADV of a single classifier step an epoch.
# **The slides say**: "WeMem achieves high prediction accuracy while reducing attack accuracy more than other defense methods". Their text has no number.
# **It would be wrong if** another defence of the same accuracy leaked no more. **Beside the point if** training less did as much: so there are networks that
# were stopped early, then pruned with one epoch a round. Two controls more go by the formula: RMR is all but plain L2 with its mean weight decay (`rmr_table`),
# and a window may go by random scores. Shadows go through the same defence as their victim (an adaptive attacker). A rival is judged at one strength: of those
# at most .02 less accurate, that which Conf finds least. Rules were settled on draws 0 and 1, a referee's objections in hand; this one (seed 2) judges them.

# %% tags=["parameters"]
data = ["digits-bits"]  # data sets (leak-atlas data), of which the first is taken, as in all lists here (slides: not told)
pixels = [0]  # side of the images, pixels, after area resize; 0: as they are
model = ["fc"]  # architecture (slides: ResNet18, VGG16, DenseNet121, FC)
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
shadows = 5  # networks that split the attacker's half (published code: 5)
networks = 32  # networks of their own that give memorization scores (ours)
share = 0.7  # of the pool that each of them trains on (Feldman and Zhang: .7)
score_epochs = [40]  # their epochs (ours)
rounds = 5  # of pruning, the first one at sparsity 0 (slides: 5)
sparsity = 0.6  # share that is removed in the end (slides: .5, .6, .7)
risky_share = 0.176  # members that RMR calls risky; published scores of CIFAR10 that reach tau = .5 (slides: tau = .5)
widths = [[26, 17, 9]]  # members of a class in a window, widest first (slides: 2/3, 4/9, 2/9 of a class)
steps = [[1, 2]]  # ranks by which it moves in an epoch; RSW takes the first, SWMR the last (published code: the same)
risky = [0.01, 0.1]  # weight decay of risky members, weakest first; SWMR takes the last (slides: .01, .1, 1, of which .1 is best)
ppb = [4.0]  # weights of PPB, weakest first (published code: 1 to 16, which hides nobody here either)
adv = [1.0]  # weights of ADV, one step of the classifier an epoch, weakest first (published code: 1 to 8)
adv_width = 64  # units of the first layer of ADV's attack net (published codes: 1024)
alphas = [0.6]  # losses that RelaxLoss aims at, nats, weakest first (published code: 1, which costs .03 of accuracy here)
noises = []  # noise multipliers of DP-SGD, which takes as long as all others together; none with BatchNorm (published code: .01, .1, 1)
sooner = [10, 30]  # epochs of dense networks that are stopped early, then pruned with one epoch a round; the last is the control (ours)
seed = 2  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace

import numpy as np
from leak_atlas import audit, lab, recipe, report
from leak_atlas.recipe import RMR, Data, LiRA, Model, Schedule, Sparsity, Threshold, Window, WindowStudy
from leak_atlas.recipe import AdversarialRegularization as ADV

slide, ours, best = {"paper": "slide on defences", "margin": 0.02}, {"ours": True, "control": "stopped early"}, "RSW, RMR and SWMR"
base_too, like = {"control": "Base: the same rounds, undefended"}, {"control": "strengths that cost at most .02 of accuracy; stopped early"}
claims = report.claims(
    report.Claim("stays_accurate", "WeMem keeps prediction accurate", f"test accuracy of {best}, minus Base, least", above=-0.02, **slide, **base_too),
    report.Claim("lowers_attack", "WeMem lowers the attack accuracy", f"Conf's accuracy on {best}, minus Base, largest", below=-0.01, **slide, **base_too),
    report.Claim("beats_two", "WeMem is attacked less than PPB and ADV", "Conf's accuracy, RSW, RMR minus PPB, ADV, largest", below=-0.01, **slide, **like),
    report.Claim("beats_third", "RSW is attacked less than RelaxLoss", "Conf's accuracy, RSW minus RelaxLoss", below=-0.01, **slide, **like),
    report.Claim("stopping_hides", "Stopping early hides members from Conf as RSW does", "Conf's accuracy, RSW minus stopped early", within=0.02, **ours),
    report.Claim("stopping_lira", "Stopping early hides members from LiRA as RSW does", "AUC of LiRA, RSW minus stopped early", within=0.03, **ours),
    report.Claim("rmr_no_better", "RMR and SWMR hide no more from LiRA than that", "AUC of LiRA, RMR and SWMR minus stopped early, least", above=-0.02, **ours),
    report.Claim("rsw_keeps_more", "RSW is more accurate than networks trained less", "test accuracy, RSW minus fewer epochs, at equal AUC of LiRA", above=0.01,
        margin=0.02, ours=True, control="a line of networks stopped early, Base, and Base of as many visits"),
    regime={"dense member accuracy": 0.95, "dense test accuracy": 0.6})  # fmt: skip
claims

# %% [markdown]
# ## Five rounds, each with a defence

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
dense, ranking, short = study.dense, study.ranking, study.tuning
freely = study.setup.trained(schedule=replace(study.schedule, patience=None))
slow = {w: Window(w, steps[0][0], "low-to-high") for w in widths[0]}
plans = {("RSW", w): {"sampling": sampling, "ranking": ranking} for w, sampling in slow.items()}
plans |= {("RMR", strength): {"objective": RMR(strength, share=risky_share), "ranking": ranking} for strength in risky}
plans |= {("SWMR", w): plans["RMR", risky[-1]] | {"sampling": Window(w, steps[0][-1], "high-to-low")} for w in (widths[0][0], widths[0][-1])}
plans |= {("PPB", weight): {"objective": recipe.PPB(weight)} for weight in ppb}
plans |= {("ADV", weight): {"objective": ADV(weight, 7, "one_step", adv_width, outsiders="dev")} for weight in adv}
plans |= {("RelaxLoss", a): {"objective": recipe.RelaxLoss(a)} for a in alphas} | {("DP-SGD", n): {"objective": recipe.DPSGD(n)} for n in noises}
mean = short.weight_decay + risky_share * (risky[-1] - short.weight_decay)  # the weight decay that RMR has in the mean
ways = {(base := ("Base", 0)): study.iterative()[-1]}
ways |= {way: study.iterative(**plan)[-1] for way, plan in plans.items()}
thin, strict, both = ("RSW", widths[0][-1]), ("RMR", risky[-1]), ("SWMR", widths[0][-1])
fewer = study.epochs_like(slow[thin[1]])
ways |= {(visits := ("as many visits", fewer)): study.iterative(schedule=replace(short, epochs=fewer))[-1]}
ways |= {(plain := ("plain L2", mean)): study.iterative(schedule=replace(short, weight_decay=mean))[-1]}
ways |= {(order := ("random order", thin[1])): study.iterative(**plans[thin] | {"ranking": ranking.shuffle()})[-1]}
starts, stopped = {e: freely.at(e) for e in sooner} | {epochs[0]: dense}, ("once", sooner[-1])
ways |= {("once", e): study.iterative(start, replace(short, epochs=1, patience=None))[-1] for e, start in starts.items()}
attackers = {"Conf": Threshold(), "LiRA": LiRA("offline_cdf")}
attacks = {(way, name): each.attack(one, targets=victims) for way, each in ways.items() for name, one in attackers.items()}
signals = {way: each.signals()[:victims] for way, each in ({"dense": dense} | ways).items()}
removed = [Sparsity(each[0]) for each in ways.values()]
results = lab.realize(attacks, signals, removed)
found = audit.Comparison.of(results, signals, attacks)

# %% [markdown]
# ## Beside other defences, and beside controls
# Strengths are joined, weakest first; *stopped early* are dense networks of few epochs, then one a round, up to Base of as many visits, and Base. The title
# names from whom RSW differs surely: by .01 of the accuracy of Conf at its own thresholds, or .02 of LiRA's AUC. Plain L2 and random order are in the tables.

# %%
series = {name: [way for way in plans if way[0] == name] for name in dict.fromkeys(way[0] for way in plans)}
three, line, rivals = (thin, strict, both), [*(("once", e) for e in starts), visits, base], ("PPB", "ADV", "RelaxLoss")
others = {"stopped early": stopped, plain[0]: plain, order[0]: order}
series |= {"stopped early": line}


def rival(way, name):
    """Of the strengths at most .02 less accurate than `way`, or else the most accurate one, that which Conf finds least."""
    near = [one for one in series[name] if found.more_accurate(one, way).value > -0.02]
    return min(near or [max(series[name], key=lambda one: found.accuracy(one).value)], key=lambda one: found.leak(one, "Conf")["accuracy"].value)


less = {
    "Conf": lambda one, two: found.accuracy_difference((one, "Conf"), (two, "Conf")),
    "LiRA": lambda one, two: found.auc_difference(one, two, "LiRA"),
}
against = {way: {name: rival(way, name) for name in rivals} | others for way in three}
panels = {"other defences": [one for one in series if one not in others], "controls": ["RSW", "RMR", "SWMR", "stopped early"]}
rows = [row for a in less for panel, names in panels.items() for row in found.plane({one: series[one] for one in names}, a, panel=f"{a}: {panel}")]
limit = {"Conf": -0.01, "LiRA": -0.02}
beaten = {a: [n for n in (*rivals, "stopped early") if each(thin, against[thin][n]).high < limit[a]] for a, each in less.items()}
said = "; ".join(f"{', '.join(names) or 'none of the others'} ({a})" for a, names in beaten.items())
report.tradeoff(rows, level="guess", xlabel="test accuracy", ylabel="AUC of the attack", title=f"RSW surely leaks less than {said}")

# %%
read = {way: [results[one] for one in each] for way, each in signals.items()}
losses = {way: [float(np.logaddexp(0, -one["views"][one["role"] == 1, 0]).mean()) for one in each] for way, each in read.items()}
accurate = {way: [float(one["accuracy_member"]) for one in each] for way, each in read.items()}
labels = {way: f"{way[0]} {way[1]:g}" for way in plans} | {("once", e): f"dense after {e} epochs, one a round" for e in starts}
labels |= {base: "Base", plain: "plain L2, RMR's mean", order: f"random order {thin[1]}", visits: f"Base of {fewer} epochs a round"}
rows = [
    {"network": labels[way], "members' accuracy": audit.mean_ci(accurate[way]), "and loss, nats": float(np.mean(losses[way]))}
    | {"test accuracy": found.accuracy(way), "Conf, accuracy": found.leak(way, "Conf")["accuracy"]}
    | {f"{name}, AUC": found.leak(way, name)["auc"] for name in attackers}
    for way in ways
]
report.table(rows, caption=f"Mean over {victims} victims, attacked by {shadows} shadows that went the same way; LiRA offline")

# %%
pairs = {f"{labels[way]} minus {labels[one]}": (way, one) for way, each in against.items() for one in each.values()}
rows = [{"difference": said, "test accuracy": found.more_accurate(*two)} | {a: each(*two) for a, each in less.items()} for said, two in pairs.items()]
report.table(rows, caption=f"Conf: accuracy; LiRA: AUC. Random order: of RSW's window. {fewer} epochs visit a member as often as RSW {thin[1]}")

# %% [markdown]
# ## Verdicts

# %%
wemem = {f"{labels[w]} lowers members' accuracy": audit.paired_difference(accurate[base], accurate[w]) for w in three}
gone, relaxed = min(float(results[step]["network"]) for step in removed), against[thin]["RelaxLoss"]
wemem |= {"weights are gone as asked": gone > sparsity - 0.05, "Conf beats a guess": found.leak(base, "Conf")["accuracy"].low > 0.5}
acts = {one: {f"{labels[one]} raises the loss on members": audit.paired_difference(losses[one], losses[base])} for one in plans}
acts[relaxed] |= {"RelaxLoss ends nearer to alpha": audit.paired_difference(*(np.abs(np.subtract(losses[w], relaxed[1])) for w in (base, relaxed)))}
used = {"beats_two": [against[way][name] for way in (thin, strict) for name in rivals[:2]], "beats_third": [relaxed]}
report.judge(
    claims,
    stays_accurate=audit.least(found.more_accurate(way, base) for way in three),
    lowers_attack=audit.largest(less["Conf"](way, base) for way in three),
    beats_two=audit.largest(less["Conf"](way, against[way][name]) for way in (thin, strict) for name in rivals[:2]), beats_third=less["Conf"](thin, relaxed),
    stopping_hides=less["Conf"](thin, stopped), stopping_lira=less["LiRA"](thin, stopped),
    rmr_no_better=audit.least(less["LiRA"](way, stopped) for way in (strict, both)), rsw_keeps_more=found.at_matched_auc(thin, line, "LiRA"),
    checks={claim.name: {words: each for one in used[claim.name] for words, each in acts[one].items()} if claim.name in used else wemem for claim in claims},
    regime={"dense member accuracy": audit.mean_ci(accurate["dense"]), "dense test accuracy": found.accuracy("dense")},
)  # fmt: skip

# %% [markdown]
# **Caveat.** One small data set of bits, one network, one sparsity; all victims share one half of the samples and one set of shadows. Of others one strength
# each, chosen by us as are the epochs to stop at, on draws 0 and 1; they act after an undefended training, as WeMem does. In how many steps RelaxLoss's alpha
# acted is not stored, but where the loss ends is (table). ADV's non-members are dev samples, as published. DP-SGD is not in `quick`.

# %%
report.provenance(results)
