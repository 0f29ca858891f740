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
# # Who is remembered after pruning step by step?
#
# **Ours, beside WeMem.** A network is pruned in five rounds. WeMem's window (RSW) replays part of the members in each
# epoch, by memorization score: from low to high with the smallest width and step it never reaches the highest.
# **The slides say** that iterative pruning adds to memorization since data are reused, and that a small window with a
# small step is the best defence; nothing of single samples. Carlini et al. 2022 do: without the most exposed samples
# others become exposed (the onion effect).
# **It would be wrong if** members never replayed stayed exposed; beside the point if others became exposed instead, if
# whoever is not replayed became as safe (control: the same window over random scores, a random order), or if all moved
# as by chance (control: a second network with the same members and another seed).

# %% tags=["parameters"]
data = ["digits-bits"]  # data set (python -m lib.data); the slides: CIFAR10, CIFAR100, CINIC, Texas, Location, Purchase
pixels = [0]  # side of the images, pixels, after area resize; 0: as they are
model = ["fc"]  # architecture (slides: FC for tables)
width = [256]  # units of the first layer (published code: 256)
stem = ["conv3"]  # first layer of a ResNet or a DenseNet
pool = [1740]  # samples of train and test part joined: half the victims', half the attacker's
dev = [88]  # samples of each half that are set apart; the rest is half member, half not
victims = 10  # networks that split the victims' half (published code: 1)
shadows = 5  # networks that split the attacker's half (published code: 5)
networks = 32  # whose answers give memorization scores (not in the slides)
share = 0.7  # of the pool that each of them trains on (Feldman & Zhang: .7)
score_epochs = [40]  # epochs of each of them (ours)
epochs = [100]  # epochs of the dense network (published code: 100)
round_epochs = [21]  # epochs of a round (published code: 21)
rounds = 5  # rounds, the first of which removes nothing (slides: 5)
sparsity = 0.6  # share of the weights of each layer that is removed (slides: .6 mainly)
widths = [[26, 17, 9]]  # of the window, members of a class, the last is taken (slides: 2/3, 4/9, 2/9 of a class)
steps = [[1, 2]]  # of the window, ranks an epoch: RSW's the first, SWMR's the last (slides: 1/45 and 2/45 of a class)
risky_share = 0.176  # of the members that SWMR regularizes more (published scores that reach tau = .5, CIFAR10)
parts = 4  # parts of the scores in the first figure (ours)
patience = None  # epochs without a better dev accuracy before training stops; None: all are trained (published code: 5)
batch = [128]  # samples a step (published code: 128)
lr = [0.001]  # learning rate of Adam (published code: 0.001)
decay = "constant"  # of that rate, by the epoch (published code: constant)
learnt = 0.6  # least test accuracy of a dense network that has learnt (ours)
seed = 2  # seed of design, initialisation and order; the second networks have the next one
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace

from lib import audit, lab, report
from lib.localization import samples
from lib.recipe import RMR, Data, LiRA, Model, Population, Schedule, Setup, Threshold, VictimAttacker, Window

base, rsw, chance, swmr, known, second = "iterative", "RSW", "random order", "SWMR", "trained on", "second seed"
fate, alike = ("never replayed", "replayed"), "members' rank correlation with dense"
top, missed, half = "highest part of the scores", "members never replayed", "lower half of the scores"
ours, paired = {"paper": "ours", "margin": 0.03}, {"control": "the same members and non-members; paired over victims"}
seeds = {"paper": "ours", "control": "a second network with the same members and the same shadows", "within": 0.1}
order = {"paper": "ours", "control": "the same window over random scores", "margin": 0.1}
claims = report.claims(
    report.Claim("rounds_add", "The rounds expose who is memorized most", f"AUC of LiRA, {top}, {base} minus dense", above=0.0, **paired, **ours),
    report.Claim("less", "Never replayed, they are safer than before", f"AUC of LiRA, {missed}, {rsw} minus dense", below=0.0, **paired, **ours),
    report.Claim("safe", "Members never replayed are safe", f"AUC of LiRA, {missed}, {rsw}", below=0.55, control="a guess has .5", **ours),
    report.Claim("whoever", "So is whoever is never replayed", f"AUC of LiRA, {missed}, {chance} minus dense", below=0.0, **paired, **ours),
    report.Claim("onion", "The least memorized half is exposed instead", f"AUC of LiRA, {half}, {rsw} minus {base}", above=0.0, **paired, **ours),
    report.Claim("moves_nobody", "Pruning moves who is exposed as little as a new seed", f"{alike}, {base} minus {second}", **seeds),
    report.Claim("order_moves", "The order by score changes who is exposed", f"{alike}, {rsw} minus {chance}", below=0.0, **order),
    regime={"dense member accuracy": 0.95, "dense test accuracy": learnt, f"member accuracy, {base}": 0.95},
)
claims

# %% [markdown]
# ## Networks, windows, scores
# Scores come from networks of their own. Victims and shadows walk each window's way. A victim's second network has its
# members and is attacked by the same shadows: only its seed differs.

# %%
design = VictimAttacker(pool[0], seed=seed, dev=dev[0], victims=victims)
what, given = Data(data[0], pixels[0] or None, joined=True), {"optimizer": "adam", "decay": decay, "patience": patience}
long, short = (Schedule(n, batch[0], lr=lr[0], **given) for n in (epochs[0], round_epochs[0]))
setup = Setup(what, design, Model(model[0], width[0], stem[0]), long, victims + shadows, seed, precision)
ranking = setup.memorization(networks, share, Schedule(score_epochs[0], batch[0], "adam", lr[0], decay=decay))
scores, head, dense = {rsw: ranking, chance: ranking.shuffle()}, model[0] != "fc", setup.trained()
near, far = Window(widths[0][-1], steps[0][0], "low-to-high"), Window(widths[0][-1], steps[0][-1], "high-to-low")
trainings = {base: {}} | {name: {"diet": near, "ranking": by} for name, by in scores.items()}
trainings[swmr] = {"diet": far, "ranking": ranking, "objective": RMR(0.1, share=risky_share)}
shot, whole = dense.pruned("L1 unstructured", sparsity, head), replace(short, epochs=rounds * round_epochs[0])
ways = {("dense", 0): dense, (known, rounds): dense.train(whole), ("one-shot", rounds): shot.train(whole)}
for name, training in trainings.items():
    ways |= {(name, k): each for k, each in enumerate((dense, *dense.iteratively("L1 unstructured", sparsity, short, rounds, head, **training)))}
ways[second, 0] = replace(setup, seed=seed + 1, models=victims).trained()
attackers, helpers = {"LiRA": LiRA("offline_cdf"), "Conf": Threshold()}, {(second, 0): Population(dense.states[victims:])}
attacks = {(way, name): each.attack(one, victims, helpers.get(way)) for way, each in ways.items() for name, one in attackers.items()}
signals = {way: each.signals()[:victims] for way, each in ways.items()}
found = audit.Comparison.of(results := lab.realize(attacks, signals, scores), signals, attacks)
scored = {way: results[attacks[way, "LiRA"]] for way in ways}

# %% [markdown]
# ## By memorization score, over the rounds
# Exposure of a part: AUC of LiRA among its members and non-members. Round 0 is the dense network.

# %%
judged, own, seen = scored["dense", 0], scored["dense", 0]["member"], results[signals["dense", 0][0]]
visits = {name: samples.visited(judged, results[by], seen, near, round_epochs[0]) for name, by in scores.items()}
groups = {}
for way, one in scored.items():
    groups |= {(way, p): each for p, each in enumerate(samples.parted(one, results[ranking], parts))}
    groups[way, half] = samples.parted(one, results[ranking], 2)[0]
    for name, times in visits.items():
        groups |= {(way, (name, f)): each for f, each in zip(fate, samples.divided(one, (times > 0).astype(int), 2), strict=True)}
inside = audit.Comparison({}, {(key, "LiRA"): each for key, each in groups.items()})
area = {key: inside.leak(key, "LiRA")["auc"] for key in groups}
label = [f"part {p + 1} of {parts}" + {0: ", lowest", parts - 1: ", highest"}.get(p, "") for p in range(parts)]
curves = [{"part": label[p], "way": w, "round": str(k), "value": area[(w, k), p]} for p in range(parts) for w in trainings for k in range(rounds + 1)]
moved = [inside.more_leaky(((rsw, rounds), p), ((base, rounds), p), "LiRA") for p in range(parts)]
title = f"RSW surely lowers the exposure of {sum(e.high < 0 for e in moved)} of {parts} parts, surely raises that of {sum(e.low > 0 for e in moved)}"
report.profile(curves, "round", hue="way", facet="part", title=title, level="guessing", xlabel="round", ylabel="AUC of LiRA within the part")

# %% [markdown]
# ## By what the window replays
# Members that a window never reaches, and all others, beside the non-members whose scores would give them such ranks.

# %%
shown = {"dense": ("dense", 0)} | {name: (name, rounds) for name in trainings}
bars = [{"by": f"parted by {n}", "members": f, "network": w, "value": area[way, (n, f)]} for n in scores for f in fate for w, way in shown.items()]
gone = {name: inside.more_leaky(((name, rounds), (name, fate[0])), (("dense", 0), (name, fate[0])), "LiRA") for name in scores}
word, yet = "surely" if gone[rsw].high < 0 else "not surely", "still" if area[(rsw, rounds), (rsw, fate[0])].low > 0.55 else "not surely"
title = f"Members that RSW never replays are {word} less exposed than before pruning, and {yet} found"
report.against_paper(bars, "network", hue="members", facet="by", title=title, xlabel="AUC of LiRA within the group; a guess has .5")

# %%
groups = [(name, f, times, (times == 0) == (f == fate[0])) for name, times in visits.items() for f in fate]
rows = [
    {"parted by": name, "members": f, "share": f"{part[own].mean():.3f}", "epochs seen": f"{times[own & part].mean():.1f} of {round_epochs[0]}"}
    | {f"AUC, minus {to}": inside.more_leaky(((name, rounds), (name, f)), (shown[to], (name, f)), "LiRA") for to in ("dense", base)}
    for name, f, times, part in groups
]
report.table(rows, caption="What each window does to the members that it never replays, and to the others; paired over victims")

# %% [markdown]
# ## The same ones?
# Rank correlation of LiRA's scores with those of the dense network; part of it is the samples' own (see non-members).

# %%
agree = {(way, who): audit.exposed_alike(scored["dense", 0], scored[way], who == "members") for way in ways for who in ("members", "non-members")}
lines = [{"way": name, "round": str(k), "value": audit.over(agree[(name, k), "members"])} for name in trainings for k in range(1, rounds + 1)]
ordered = audit.paired_difference(agree[(rsw, rounds), "members"], agree[(chance, rounds), "members"])
title = f"The order by score {'surely changes' if ordered.high < 0 else 'does not surely change'} more of who is exposed than a random order"
floor, words = agree[(second, 0), "members"].mean(), {"xlabel": "round", "ylabel": "rank correlation with dense"}
report.profile(lines, "round", hue="way", null=floor, level="second seed", title=title, **words)

# %%
members = {way: audit.over([results[one]["accuracy_member"] for one in each]) for way, each in signals.items()}
rows = [
    {"network": way[0], "round": way[1], "member accuracy": members[way].value, "test accuracy": found.accuracy(way)}
    | {"Conf, accuracy": found.leak(way, "Conf")["accuracy"], "LiRA, AUC": found.leak(way, "LiRA")["auc"], f"{half}, AUC": area[way, half]}
    | {f"{who}, as in dense": audit.over(agree[way, who]) for who in ("members", "non-members")}
    for way in (*shown.values(), (known, rounds), ("one-shot", rounds), (second, 0))
]
report.table(rows, caption=f"Mean over {victims} victims, {shadows} shadows; LiRA offline. As in dense: rank correlation of LiRA's scores")

# %% [markdown]
# ## Verdicts

# %%
acts = {f"{name} never reaches a tenth of the members or more": bool((times[own] == 0).mean() > 0.1) for name, times in visits.items()}
report.judge(
    claims,
    rounds_add=inside.more_leaky(((base, rounds), parts - 1), (("dense", 0), parts - 1), "LiRA"),
    less=gone[rsw],
    safe=area[(rsw, rounds), (rsw, fate[0])],
    whoever=gone[chance],
    onion=inside.more_leaky(((rsw, rounds), half), ((base, rounds), half), "LiRA"),
    moves_nobody=audit.paired_difference(agree[(base, rounds), "members"], agree[(second, 0), "members"]),
    order_moves=ordered,
    checks=dict.fromkeys(("less", "safe", "whoever", "onion", "order_moves"), acts),
    regime=dict(zip(claims.regime, (members["dense", 0], found.accuracy(("dense", 0)), members[base, rounds]), strict=True)),
)

# %% [markdown]
# **Caveat.** All victims share one half of the samples and one set of shadows. Rules were settled on another draw (seed
# 0), where that the lower half of the scores rises was seen first. What LiRA says of non-members changes with shadows.

# %%
report.provenance(results)
