# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does a sliding window hide members, or does it only train less?
# **WeMem, slide "Defense effectiveness of the pruned models using two data rankings".** Networks, windows (RSW) and penalty (SWMR) are those of
# `windows_accuracy`. The slide is on CIFAR100 with a DenseNet121. Its text has no numbers, and its picture is not known here. **The slides say** that a
# small width with a small step is the best defence, and SWMR better than RSW. The attack is not named: Conf judges, a threshold on the confidence.
#
# **Expected, from draws 0 and 1:** a narrow window hides members from low scores to high alone, and better than as few visits after full training; but by
# LiRA dense training that is stopped early hides them as well, at one to two points of accuracy. SWMR adds to it from high to low, on random members too.
#
# **It would be wrong if** a wide window or a large step did as well; beside the point if as few visits of everybody did (fewer epochs, no window), or dense
# training that is stopped early, or any order (three random ones), or if only a threshold were misled (LiRA). A difference counts from .01 of attack
# accuracy and .02 of AUC on. Rules were settled on draws 0 and 1, a referee's objections in hand, and are judged on this one (seed 2).

# %% tags=["parameters"]
data = ["digits-bits"]  # data sets (leak-atlas data), of which the first is taken, as in all lists here (slide: CIFAR100)
pixels = [0]  # side of the images, pixels, after area resize; 0: as they are
model = ["fc"]  # architecture (slide: densenet121)
width = [256]  # channels of stage 1; of a fully connected network: units of its first layer (published code: 256)
stem = ["conv3"]  # first layer of a ResNet or a DenseNet
pool = [1740]  # samples of train and test part joined: half the victims', half the attacker's (published code: all)
dev = [88]  # samples of each half that are set apart; the rest is half member, half not (published code: 90 % members)
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
risky_share = 0.176  # of the members, which SWMR calls risky; published scores of CIFAR10 that reach tau = .5 (slides: tau = .5)
widths = [[26, 17, 9]]  # members of a class in a window, widest first (slides: 2/3, 4/9, 2/9 of a class)
steps = [[1, 2]]  # ranks by which it moves in an epoch, smallest first (slides: 1/45, 2/45 of a class)
whole = False  # every width with every step and control (slides); False: larger steps, SWMR and controls at the narrowest alone
sooner = [2, 10, 30]  # epochs of dense networks that are stopped early, and then trained on for one epoch a round (ours)
seed = 2  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
from leak_atlas import audit, lab, report
from leak_atlas.localization import samples
from leak_atlas.recipe import RMR, Data, LiRA, Model, Schedule, Threshold, Window, WindowStudy

wide, narrow, small, far = widths[0][0], widths[0][-1], steps[0][0], steps[0][-1]
slide, ours = {"paper": "slide on defence", "margin": 0.02}, {"ours": True, "margin": 0.02}
right, best = "attack accuracy of Conf, RSW,", f"w = {narrow}, s = {small}, low-to-high"
claims = report.claims(
    report.Claim("narrow_high_to_low", "A narrow window is a better defence than a wide one, from high scores to low",
        f"{right} s = {small}, w = {narrow} minus w = {wide}, high-to-low", below=-0.01, control="the same step and order; paired over victims", **slide),
    report.Claim("narrow_low_to_high", "A narrow window is a better defence than a wide one, from low scores to high",
        f"{right} s = {small}, w = {narrow} minus w = {wide}, low-to-high", below=-0.01, control="the same step and order; paired over victims", **slide),
    report.Claim("small_step_is_best", "A small step is a better defence than a large one, in the mean of both orders",
        f"{right} w = {narrow}, s = {small} minus s = {far}, mean", below=-0.01, control="the same width and order; paired over victims", **slide),
    report.Claim("swmr_is_better", "SWMR is a better defence than RSW from high scores to low, where it visits risky members",
        "attack accuracy of Conf, SWMR minus RSW, high-to-low, largest over steps", below=-0.01, control="the same windows; random members", **slide),
    report.Claim("not_fewer_visits", "The narrowest window protects more against Conf than as few visits after full training",
        f"{right} {best}, minus no window", below=-0.01, control="as many visits without a window, by fewer epochs", **ours),
    report.Claim("stopping_does_too", "It protects against LiRA no more than a dense training that is stopped early",
        f"AUC of LiRA, RSW, {best}, minus {sooner[-1]} epochs, then 1 a round", within=0.03, ours=True, control="no window, no full training"),
    report.Claim("score_not_chance", "From low scores to high protects against Conf more than random orders",
        f"{right} {best}, minus mean of 3 random orders", below=-0.01, control="the same window over scores shuffled thrice", **ours),
    report.Claim("less_exposed", "Members that no window visits are less exposed to LiRA than by as many visits of everybody",
        f"AUC of LiRA, never visited, {best}, minus no window", below=-0.02, control="the same samples", ours=True, margin=0.03),
    regime={"dense member accuracy": 0.95, "dense test accuracy": 0.6},
)  # fmt: skip
claims

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
members, visits = study.class_members, round_epochs[0]
orders, chance, some = ("high-to-low", "low-to-high"), [f"random order {k}" for k in (1, 2, 3)], widths[0] if whole else [narrow]
by = dict.fromkeys(orders, ranking) | {o: ranking.shuffle(k) for k, o in enumerate(chance)}
both = {c: Window(c[1], c[2], c[0]) for c in product(orders, some, steps[0])} | {(chance[-1], narrow, small): Window(narrow, small, orders[0])}
windows = {(o, w, small): Window(w, small, orders[o in (orders[1], *chance[:2])]) for o in by for w in (widths[0] if o in orders else some)} | both
fewer = {w: study.epochs_like(Window(w, small)) for w in some}  # epochs of all with as many visits
cell, plain = "{}, {}, w {}, s {}".format, "no window, {} epochs a round".format
ways = {"dense": dense, "Base": study.iterative()[-1]} | {plain(n): study.iterative(schedule=replace(short, epochs=n))[-1] for n in fewer.values()}
ways |= {cell("RSW", *c): study.iterative(sampling=sampling, ranking=by[c[0]])[-1] for c, sampling in windows.items()}
ways |= {cell("SWMR", *c): study.iterative(sampling=d, ranking=by[c[0]], objective=RMR(0.1, share=risky_share))[-1] for c, d in both.items()}
once = {f"{e} epochs, then 1 a round": study.setup.trained(schedule=replace(study.schedule, patience=None)).at(e) for e in sooner} | {plain(1): dense}
ways |= {way: study.iterative(one, replace(short, epochs=1))[-1] for way, one in once.items()}
attackers, signals = {"Conf": Threshold(), "LiRA": LiRA("offline_cdf")}, {way: each.signals()[:victims] for way, each in ways.items()}
attacks = {(way, name): each.attack(attacker, targets=victims) for way, each in ways.items() for name, attacker in attackers.items()}
results = lab.realize(attacks, signals, by)
found = audit.Comparison.of(results, signals, attacks)
seen, permuted = {way: found.leak(way, "Conf")["accuracy"] for way in ways}, {w: [cell("RSW", o, w, small) for o in chance] for w in some}
told = [(o, w, s, m, seen[cell(m, o, w, s)]) for m, cells in {"RSW": windows, "SWMR": both}.items() for o, w, s in cells if o in orders]
told += [
    (o, w, small, "RSW, mean of 3 random orders", audit.mean_ci(found.reached(*product(permuted[w], ["Conf"])))) for o, w in product(orders, some)
]
told += [(o, w, small, "as many visits, no window", seen[plain(n)]) for o, (w, n) in product(orders, fewer.items())]
points = [{"order": o, "window": f"{w}, {s}", "series": m, "value": value} for o, w, s, m, value in told]
falls = {o: found.accuracy_difference(*((cell("RSW", o, w, small), "Conf") for w in (narrow, wide))) for o in orders}
so = [f"{'' if falls[o].high < 0 else 'not '}surely from {o.replace('-', ' ')}" for o in sorted(orders, key=lambda o: falls[o].high)]
words = {"xlabel": "width w of the window, members of a class, and step s, ranks", "ylabel": "attack accuracy of Conf", "level": "Base"}
report.profile(points, "window", hue="series", facet="order", null=seen["Base"].value, title=f"Narrower windows leak less: {', '.join(so)}", **words)

# %%
line, shown = [*once, *(plain(fewer[w]) for w in some[::-1]), "Base"], [*orders, chance[0]]
series = {"no window, fewer epochs": line[1:]} | {f"RSW, {o}": [cell("RSW", *c) for c in windows if (c[0], c[2]) == (o, small)] for o in shown}
beside = {(o, a): found.at_matched_auc(cell("RSW", o, narrow, small), line, a) for o, a in product(shown, attackers)}
read = [each for each in beside.values() if each.resolved]
won, lost = sum(each.low > 0 for each in read), sum(each.high < 0 for each in read)
title = f"At equal leak w = {narrow} is surely more accurate than fewer epochs in {won} of {len(beside)} cases, less in {lost}"
report.tradeoff([r for a in attackers for r in found.plane(series, a)], level="guessing", xlabel="test accuracy", ylabel="attack AUC", title=title)

# %%
inside = {way: np.array([float(results[one]["accuracy_member"]) for one in each]) for way, each in signals.items()}
drawn = {c: [samples.member_visits(results[s], results[by[c[0]]], windows[c], visits) for s in signals["dense"]] for c in windows}
risky = {cell("RSW", *c): np.mean([n[own >= np.quantile(own, 1 - risky_share)].sum() / n.sum() for n, own in each]) for c, each in drawn.items()}
rows = [
    {"network": way, "member accuracy": audit.mean_ci(inside[way]), "risky visits": risky.get(way.replace("SWMR", "RSW")), "test accuracy": found.accuracy(way)}
    | {"Conf, accuracy": seen[way]} | {f"{a}, AUC": found.leak(way, a)["auc"] for a in attackers}
    | {f"LiRA, {audit.tpr_label(0.01, study.setup.design.members(0))}": found.leak(way, "LiRA")["tpr_at_1%"]} for way in ways
]  # fmt: skip
report.table(rows, caption=f"{victims} victims; a guess: .500. Risky visits: share of a window's visits that goes to members whom SWMR penalises")

# %%
early, few, window = list(once)[len(sooner) - 1], plain(fewer[narrow]), (rsw := partial(cell, "RSW"))("low-to-high", narrow, small)
pairs = {f"{narrow}, {small} − {w}, {s}, {o}": ([rsw(o, narrow, small)], [rsw(o, w, s)]) for w, s in ((wide, small), (narrow, far)) for o in orders}
pairs |= {f"SWMR minus RSW, {o}, w {w}, s {s}": ([cell("SWMR", o, w, s)], [rsw(o, w, s)]) for o, w, s in both}
pairs |= {f"{best}, minus {name}": ([window], side) for name, side in {"few visits": [few], early: [early], "random": permuted[narrow]}.items()}
report.table([
    {"difference": name, "test accuracy": audit.paired_difference(*(np.mean([found.accuracies[way] for way in side], axis=0) for side in pair))}
    | {"Conf, accuracy": found.stronger(*([(way, "Conf") for way in side] for side in pair))}
    | {f"{a}, AUC": found.stronger(*([(way, a) for way in side] for side in pair), number="auc") for a in attackers} for name, pair in pairs.items()
] + [{"difference": f"w = {narrow}, {o}, minus fewer epochs at equal {a} AUC", "test accuracy": gap} for (o, a), gap in beside.items()],
    caption="Paired. First w, then s; random: mean of 3 orders. Below 0 the first protects better. Last rows: beside the line")  # fmt: skip

# %% [markdown]
# ## Who is protected?
# Members at ranks that no window of a round visits, with the non-members whose scores would take these ranks, and all others; the same in each network.
# Scores below the median differ by little more than their errors: who is never visited from high to low is a nearly arbitrary pick among easy members.

# %%
groups, compared, exposed = ("never visited", "visited"), {"dense": "dense", "Base": "Base", "same visits": few}, {}
for o, (name, way), a in product(shown, [*compared.items(), ("window", "")], attackers):
    scored = results[attacks[way or rsw(o, narrow, small), a]]
    often = samples.window_visits(scored, results[by[o]], results[signals["dense"][0]], windows[o, narrow, small], visits)
    exposed |= {((o, g, name), a): part for g, part in zip(groups, samples.split_by_group(scored, often > 0, 2), strict=True)}
who = audit.Comparison({}, exposed)
moved = {(o, g): who.auc_difference((o, g, "window"), (o, g, "same visits"), "LiRA") for o, g in product(shown, groups)}
safer, risen = sum(moved[o, groups[0]].high < 0 for o in shown), sum(moved[o, groups[1]].low > 0 for o in shown)
points = [{"panel": (a, o), "network": n, "members": g, "value": who.leak((o, g, n), a)["auc"]} for (o, g, n), a in exposed]
title = f"LiRA against as many visits of all: the never visited surely safer in {safer} of 3 orders, the visited surely riskier in {risen}"
report.profile(points, "network", hue="members", facet="panel", level="guess", ylabel="AUC of the attack", title=title)

# %%
thin, high = {o: rsw(o, narrow, small) for o in orders}, [c for c in both if c[0] == orders[0]]
less = {way: {f"{way} fits less": audit.paired_difference(inside["Base"], inside[way])} for way in (*thin.values(), early)}
penalty = audit.paired_difference(*(np.mean([inside[cell(m, *c)] for c in high], axis=0) for m in ("RSW", "SWMR")))
report.judge(
    claims, **{f"narrow_{o.replace('-', '_')}": falls[o] for o in orders},
    small_step_is_best=found.stronger(*([(rsw(o, narrow, s), "Conf") for o in orders] for s in (small, far))),
    swmr_is_better=audit.largest(found.accuracy_difference((cell("SWMR", *c), "Conf"), (rsw(*c), "Conf")) for c in high),
    not_fewer_visits=found.accuracy_difference((window, "Conf"), (few, "Conf")), stopping_does_too=found.auc_difference(window, early, "LiRA"),
    score_not_chance=found.stronger([(window, "Conf")], [*product(permuted[narrow], ["Conf"])]), less_exposed=moved["low-to-high", groups[0]],
    checks={c.name: less[window] for c in claims} | {"narrow_high_to_low": less[thin["high-to-low"]], "stopping_does_too": less[early] | less[window]}
    | {"swmr_is_better": {"SWMR lowers member accuracy": penalty, ".05 of visits are risky": bool(min(risky[rsw(*c)] for c in high) > 0.05)}},
    regime={"dense member accuracy": audit.mean_ci(inside["dense"]), "dense test accuracy": found.accuracy("dense")},
)  # fmt: skip

# %% [markdown]
# **Caveat.** One data set, one kind of network, two attacks of ten, three random orders. All victims share one half of the samples and one set of shadows.
# No shadow saw that half, so LiRA knows *out* alone; an online one could do more against the never visited, whom even this one finds (figure).

# %%
report.provenance(results)
