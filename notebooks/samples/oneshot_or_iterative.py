# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does pruning step by step leak more than pruning at once?
#
# **WeMem, motivation.** A trained network loses 60 % of its weights: at once, and is trained on; or in five rounds of
# pruning and training. **The slides say** that MIA accuracy is higher in iteratively pruned models than in one-shot
# pruned ones, since more data reuse enhances memorization; with no number, no attack, and not how long the one-shot
# network is trained on. The published code trains 21 epochs a round; the first removes nothing.
# **It would be wrong if** the two leaked alike. It would be beside the point if training did it: as many rounds after
# one-shot pruning (control), as many rounds with nothing removed (control), as many epochs in one go (control).
# Rules were settled on draws 0 and 1, a referee's objections in hand, and are judged on this one (seed 2).

# %% tags=["parameters"]
data = ["digits-bits", "fashion-mnist-small"]  # data sets; slides: CIFAR10, CIFAR100, Texas, ...
pixels = [0, 16]  # of each: side of the images, pixels, after area resize; 0: as they are (published: 32)
model = ["fc", "resnet10"]  # of each: architecture (slides: FC for tables; ResNet18, VGG16, DenseNet121 for images)
width = [256, 8]  # of each: units of the first layer (published code: 256), channels of stage 1 (published code: 64)
stem = ["conv3", "conv3-pool"]  # of each: first layer of a ResNet or a DenseNet
pool = [1740, 1200]  # of each: samples of train and test part joined: half the victims', half the attacker's
dev = [88, 60]  # of each: samples of each half that are set apart; the rest is half member, half not
victims = 10  # networks that split the victims' half (published code: 1)
shadows = 5  # networks that split the attacker's half (published code: 5)
epochs = [100, 12]  # of each: epochs of the dense network (published code: 100)
round_epochs = [21, 3]  # of each: epochs of a round (published code: 21)
rounds = 5  # rounds, the first of which removes nothing (slides: 5)
sparsity = 0.6  # share of the weights of each layer that is removed (slides: .6 mainly)
rates = [[], []]  # of each: further shares, with single weights (slides: .5 and .7)
pruners = [["L1 unstructured"], ["L1 unstructured", "L1 structured"]]  # of each, the main one first (slides: L2 structured, too)
one_go = [True, False]  # of each: train the one-shot network as many epochs in one go, too (ours)
patience = [None, None]  # of each: epochs without a better dev accuracy before training stops; None: all are trained (published code: 5)
batch = [128, 32]  # of each: samples a step (published code: 128)
lr = [0.001, 0.002]  # of each: learning rate of Adam (published code: 0.001)
decay = "constant"  # of that rate, by the epoch (published code: constant)
samia_epochs = 0  # of SAMIA, which is dear; 0: it does not attack (published code: 100)
learnt = [0.6, 0.6]  # of each: least test accuracy of a dense network that has learnt (ours)
seed = 2  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from leak_atlas import audit, lab, report
from leak_atlas.recipe import SAMIA, Data, LiRA, Model, Schedule, Setup, Sparsity, Threshold, VictimAttacker

names, asked = {d: d.replace("-", "_") for d in data}, []
one, two, course, shot, kept = "L1 unstructured", ("Conf", "Mentr"), "round by round", "at once, then rounds", "nothing, rounds"
right = "attack accuracy, mean of Conf and Mentr, iterative minus"
paired = "the same attacks on both sides; paired over victims"
same, ours = (
    {"paper": "slides, motivation", "control": paired, "margin": 0.02},
    {"ours": True, "margin": 0.02, "control": f"as many epochs; {paired}"},
)
many, spared = f"{right} one-shot in as many rounds", f"{right} nothing removed in as many rounds"
fit, regime = {"dense member accuracy": 0.95, "dense test accuracy": 0.0, "least member accuracy after single weights went": 0.9}, {}
for d, n, kind, also, least in zip(data, names.values(), model, one_go, learnt, strict=True):
    own = {f"{d}, {what}": least if "test" in what else most for what, most in fit.items()}
    regime, same["needs"], ours["needs"] = regime | own, tuple(own), tuple(own)
    asked += [report.Claim(f"{n}_published", f"{d}: iterative leaks more", f"{right} one-shot after one round, least of rates", above=0.01, **same)]
    if kind == "fc":  # rounds raised its leak on draws 0 and 1, whatever went
        alike = {"ours": True, "within": 0.02, "control": ours["control"], "needs": tuple(own)}
        told = ("rounds", "as many rounds explain it", many), ("kept", "so do rounds that remove nothing", spared)
        asked += [report.Claim(f"{n}_{what}", f"{d}: {text}", quantity, **alike) for what, text, quantity in told]
    else:  # rounds did not
        asked += [report.Claim(f"{n}_rounds", f"{d}: iterative leaks less than one-shot in as many rounds", many, below=-0.01, **ours)]
        asked += [report.Claim(f"{n}_kept", f"{d}: it leaks less than where nothing is removed", spared, below=-0.01, **ours)]
    if also:
        text, quantity = f"{d}: as many epochs in one go do not explain it", f"{right} one-shot after as many epochs in one go"
        asked += [report.Claim(f"{n}_one_go", text, quantity, above=0.01, **ours)]
claims = report.claims(*asked, regime=regime)
claims

# %% [markdown]
# ## Three ways through the rounds
# Round by round: the first only trains, each later one prunes further and trains. At once, then rounds: all is pruned
# first. Nothing, rounds: no weight goes. All three train in the same rounds, each with a fresh optimizer and batches of
# its own. On bits, one more trains as many epochs in one go. Shadows walk each whole way.

# %%
attackers = {"Conf": Threshold(), "Mentr": Threshold("modified_entropy"), "LiRA": LiRA("offline_cdf")}
attackers |= {"SAMIA": SAMIA(epochs=samia_epochs, optimizer="adam", lr=0.001)} if samia_epochs else {}
ends, seen, go = (0, 1, rounds), (0, 1, rounds // 2 + 1, rounds), ("at once, one go", rounds)
ways, cut, main, given = {}, {}, f"{one}, {sparsity:.0%}", {"optimizer": "adam", "decay": decay}
for i, d in enumerate(data):
    short, whole = (Schedule(n * round_epochs[i], batch[i], lr=lr[i], patience=patience[i], **given) for n in (1, rounds))
    design = VictimAttacker(pool[i], seed=seed, dev=dev[i], victims=victims)
    what, long = Data(d, pixels[i] or None, joined=True), Schedule(epochs[i], batch[i], lr=lr[i], patience=patience[i], **given)
    dense = Setup(what, design, Model(model[i], width[i], stem[i]), long, victims + shadows, seed, precision).trained()
    head = model[i] != "fc"
    ways |= {(d, main, kept, k): each for k, each in enumerate((dense, *dense.iteratively(None, 0, short, rounds))) if k in seen}  # 0: dense
    for p in pruners[i]:
        case, cut[d, p] = f"{p}, {sparsity:.0%}", dense.pruned(p, sparsity, head)
        steps = {course: dense.iteratively(p, sparsity, short, rounds, head), shot: cut[d, p].iteratively(None, 0, short, rounds)}
        ways |= {(d, case, name, k): each for name, path in steps.items() for k, each in enumerate(path, 1) if k in (seen if p == one else ends[-1:])}
    for s in rates[i]:
        ways[d, f"{one}, {s:.0%}", course, rounds] = dense.iteratively(one, s, short, rounds, head)[-1]
        ways[d, f"{one}, {s:.0%}", shot, 1] = dense.pruned(one, s, head).train(short, order=1)
    if one_go[i]:
        ways[d, main, *go] = cut[d, one].train(whole, order=1)
attacks = {(w, a): each.attack(by, victims) for w, each in ways.items() for a, by in attackers.items() if a in two or w[3] in ends}
signals = {way: each.signals()[:victims] for way, each in ways.items()}
removed, bare = {way: Sparsity(each[0]) for way, each in ways.items()}, {way: each.signals()[:victims] for way, each in cut.items()}
found = audit.Comparison.of(results := lab.realize(attacks, signals, removed, bare), signals, attacks)

# %% [markdown]
# ## Round by round
# Attack accuracy at the attacks' own thresholds, mean of Conf and Mentr, minus that of the dense network.

# %%
score = {way: found.reached(*((way, name) for name in two)) for way in ways}  # each victim's mean over two attacks
minus = {w: audit.paired_difference(score[*w[:2], course, rounds], score[w]) for w in score if w[2] != course and w[3] in ends}
rise = {w: audit.paired_difference(score[w], score[w[0], main, kept, 0]) for w in ways if w[1] == main and w[3]}
points = [{"data": w[0], "way": w[2], "round": str(w[3]), "value": each} for w, each in rise.items()]
raised = [[d for d in data if rise[d, main, way, rounds].low > 0] for way in (kept, course)]
on = [" and ".join(each) or "no data set" for each in raised]
title = f"Rounds that remove nothing raise the leak surely on {on[0]}; iterative pruning does on {on[1]}"
words = {"title": title, "xlabel": "round of training", "ylabel": "attack accuracy, minus dense"}
report.profile(points, "round", hue="way", facet="data", null=0.0, level="as the dense network", **words)

# %% [markdown]
# ## What explains the difference?
# The iterative network's attack accuracy minus that of each other one, paired over victims.

# %%
others = {"one-shot, one round": (shot, 1), "one-shot, as many rounds": (shot, rounds), "nothing removed, as many rounds": (kept, rounds)}
others |= {"one-shot, as many epochs in one go": go, "dense": (kept, 0)}
bars = [{"data": d, "other": name, "value": minus[d, main, *way]} for d in data for name, way in others.items() if (d, main, *way) in minus]
more = [d for d in data if minus[d, main, shot, 1].low > 0]
beside = {d: minus[d, main, shot, rounds] for d in data}
near = [d for d in data if max(-beside[d].low, beside[d].high) < 0.02]
on = [" and ".join(each) or "no data set" for each in (more, near)]
title = f"Iterative pruning surely leaks more than one round on {on[0]}; within .02 of as many rounds on {on[1]}"
report.against_paper(bars, "other", hue="data", title=title, xlabel="attack accuracy, iterative minus the other")

# %%
members = {way: audit.mean_ci([results[one]["accuracy_member"] for one in each]) for way, each in (signals | bare).items()}
rows = [
    {"data": way[0], "pruner": way[1], "way": way[2], "round": way[3], "removed": f"{float(results[removed[way]]['network']):.3f}"}
    | {"member accuracy": members[way].value, "test accuracy": found.accuracy(way), "attack accuracy": audit.mean_ci(score[way])}
    | {f"{name}, AUC": found.leak(way, name)["auc"] for name in attackers if (way, name) in attacks and name != "Mentr"}
    for way in ways
    if way[3] or way[2] == kept
]
report.table(rows, caption=f"Mean over {victims} victims. Attack accuracy: Conf and Mentr. LiRA: offline, ours. Regime: single weights only")

# %%
rows = [
    {"data": w[0], "pruner": w[1], "the other": f"{w[2]}, round {w[3]}", "attack accuracy": gap}
    | {f"AUC of {name}": found.auc_difference((*w[:2], course, rounds), w, name) for name in ("Conf", "LiRA")}
    | {"test accuracy": found.more_accurate((*w[:2], course, rounds), w)}
    for w, gap in minus.items()
    if w[3] in (1, rounds)
]
report.table(rows, caption="Iterative, after its last round, minus the other; paired over victims. AUC: ours")

# %% [markdown]
# ## Verdicts

# %%
estimates, checks = {}, {}
for i, d in enumerate(data):
    n, dense = names[d], (d, main, kept, 0)
    estimates[f"{n}_published"] = audit.least(minus[d, f"{one}, {s:.0%}", shot, 1] for s in (sparsity, *rates[i]))
    estimates |= {f"{n}_rounds": minus[d, main, shot, rounds], f"{n}_kept": minus[d, main, kept, rounds]}
    estimates |= {f"{n}_one_go": minus[d, main, *go]} if one_go[i] else {}
    fits = ([results[each]["accuracy_member"] for each in way] for way in (signals[dense], bare[d, one]))
    lost = audit.paired_difference(*fits)
    reuse, hurts = {"rounds raise the leak": rise[d, main, kept, rounds]}, {"pruning at once costs members' accuracy": lost}
    checks |= {name: reuse for name in estimates if name.startswith(f"{n}_")}  # the slides' reason
    checks |= {} if model[i] == "fc" else {f"{n}_rounds": hurts, f"{n}_kept": hurts}
    if one_go[i]:  # a patience may end it where a round ends
        beyond = members[d, main, *go].value != members[d, main, shot, 1].value
        checks[f"{n}_one_go"] = reuse | {"one go trains on beyond a round": beyond}
shown = [each for d in data for each in (members[d, main, kept, 0], found.accuracy((d, main, kept, 0)),
                                         min(members[way].value for way in ways if way[:2] == (d, main)))]  # fmt: skip
report.judge(claims, **estimates, checks=checks, regime=dict(zip(claims.regime, shown, strict=True)))

# %% [markdown]
# **Caveat.** All victims share one half of the samples and one set of shadows. Pruned filters make no claim, and the
# regime leaves them out: on draw 0 five iterative rounds left members at .798, as many after pruning at once at .983, so
# that a difference of leak is one of fit. On draw 1 (width 16), after one round, one-shot had not learnt again either
# (.870). Images change sign with width: iterative minus nothing removed was .022 [.003, .042] at width 16 (draw 1), −.049
# [−.074, −.024] at width 8 (draw 0). On bits, shares of .5 and .7 told on draw 1 what .6 did (.035, .039, .037): quick
# has .6 alone. A round differs from as many epochs in one go by its fresh optimizer and by batches of its own.

# %%
report.provenance(results)
