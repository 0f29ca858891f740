# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does SAM suppress the encoding of membership?
#
# **Dynamics, SGD against sharpness-aware minimization.** The article says that SAM "actively suppresses the encoding of
# membership information compared to standard SGD", as its solutions are flatter and generalize better. A reading note
# has one number: the probability per interval of moving into the high-risk state peaks at .9 % with SAM, 2.7 % with
# SGD. Later work finds the opposite at the end of training: SAM leaks more (arXiv 2310.00488).
#
# **It would be wrong if** as many samples became high-risk, or the final leak were as large. **It would be beside the
# point if** SAM only learned more slowly, along the line of SGD's own epochs. Controls: equal epochs; equal leak, with
# the accuracy and gap of SGD's epochs; a rate that never falls. As a step of SAM takes two gradients, a row with as
# many stands below, unjudged: half-way through its schedule SAM has not annealed. Half as long a training was not run.
#
# **Our definitions** (the paper's are not known): one threshold for all samples at 10 % FPR, anew at each checkpoint.
# High-risk: called a member by 80 % or more of the networks that trained on it, and by 20 % or fewer of the others.

# %% tags=["parameters"]
data = "fashion-mnist-small"  # data set (leak-atlas data); reading note: CIFAR-10 and three others
pixels = 8  # side of the images after area resize; 0: as they are
model = "cnn4"  # architecture (reading note: CNNs of several depths, WRN28-2)
width = 8  # channels of its first layer (not stated)
pool = 600  # samples, of which each network trains on half (not stated)
test = 200  # test samples (not stated)
epochs = 40  # of every network (not stated; "by epoch 150" is early)
batch = 50  # samples a step (group code: 128)
optimizer = "sgd"  # with momentum .9; SAM takes the same steps, with gradients from uphill
lr = 0.05  # rate at the start (group code: 0.1)
decay = "cosine"  # of that rate, by the epoch (group code: cosine)
rhos = [0.1]  # how far uphill SAM goes (not stated; .05 is usual); claims are on the first
constant_lr = 0.03  # rate of the networks whose rate never falls (ours)
networks = 32  # each attacked by the others less its complement (group code: 20 shadows)
checkpoints = [0, 2, 4, 8, 12, 16, 24, 32, 40]  # epochs at which the attack looks; 0: before training
rate = 0.1  # share of non-members that reach the threshold, at each checkpoint (ours)
learnt = 0.6  # least test accuracy of networks that have learnt (ours)
seed = 1  # seed of design, initialisation and order
precision = "fp32"  # fp32, or bf16 where the hardware has it

# %%
from dataclasses import replace

import numpy as np
from leak_atlas import audit, lab, report
from leak_atlas.localization import over_time, trajectories
from leak_atlas.recipe import RMIA, Data, LiRA, Model, RandomHalves, Schedule, Setup

last, half = checkpoints[-1], max(t for t in checkpoints if t and 2 * t in checkpoints)
sgd, sams, steady = "SGD", ["SAM", *(f"SAM, rho {rho:g}" for rho in rhos[1:])], "constant rate"
sam, gap, beside = sams[0], "member minus test accuracy", "minus SGD's epochs at equal AUC of RMIA"
paper, ours, later = ({"paper": each} for each in ("the article; a reading note", "ours", "arXiv 2310.00488"))
enters, size = "share of the others that enters it in an interval, mean", {"below": 0.0, "margin": 0.02}
epoch, line = {"control": "equal epochs; paired networks"}, {"control": "each network's own SGD epochs, equal leak"}
claims = report.claims(
    report.Claim("into_high", f"At a threshold of {rate:.0%} FPR SAM moves fewer samples into the high-risk state", f"{enters}, SAM minus SGD", below=0.0, margin=0.015, **paper, **epoch),
    report.Claim("final", "SAM's networks leak less in the end", f"AUC of LiRA, epoch {last}, SAM minus SGD", **size, **paper, **epoch),
    report.Claim("accuracy_line", "SAM's networks have the test accuracy of SGD's epochs of equal leak", f"test accuracy, SAM {beside}", within=0.02, **ours, **line),
    report.Claim("gap_line", "For its generalization gap SAM leaks more than SGD's own earlier epochs", f"{gap}, SAM {beside}", **size, **later, **line),
    report.Claim("steady_gap", "For its gap a constant rate leaks less than SGD's epochs: the schedule alone moves it", f"{gap}, constant {beside}", above=0.0, margin=0.02, **ours, **line),
    report.Claim("steady_grows", f"A rate that never falls encodes as much after epoch {half}", f"AUC of RMIA gained after epoch {half}, minus SGD's", within=0.03, **ours, **epoch),
    regime={"SGD, member accuracy": 0.95, "SGD, test accuracy": learnt, "SAM, test accuracy": learnt},
)  # fmt: skip
claims

# %% [markdown]
# ## Train, and look at checkpoints
# LiRA gives each sample its place. RMIA judges the lines, as its targets hardly depend on each other. The null:
# membership permuted among the samples, the same networks, the same attack.

# %%
design, schedule = RandomHalves(pool, test=test, seed=seed), Schedule(epochs, batch, optimizer=optimizer, lr=lr, decay=decay)
setup = Setup(Data(data, pixels or None), design, Model(model, width), schedule, networks, seed, precision)
schedules = {sgd: schedule} | {name: replace(schedule, sharpness=rho) for name, rho in zip(sams, rhos, strict=True)}
schedules |= {steady: replace(schedule, lr=constant_lr, decay="constant")}
ways = {name: setup.trained(schedule=each) for name, each in schedules.items()}
asked = {(name, permuted): each.attack_over_time(LiRA(), checkpoints, permuted) for name, each in ways.items() for permuted in (None, 0)}
ratios = {name: each.attack_over_time(RMIA(), checkpoints) for name, each in ways.items()}
signals = {(name, t): each.at(t or "init").signals() for name, each in ways.items() for t in checkpoints}
results = lab.realize(asked, ratios, signals)
attacks = {((name, t), "LiRA"): asked[name, None][t] for name, t in signals} | {((name, t), "RMIA"): ratios[name][t] for name, t in signals}
found = audit.Comparison.of(results, signals, attacks)
one, null = ({name: over_time.read(results, asked[name, permuted]) for name in ways} for permuted in (None, 0))
path, noise = ({name: trajectories.plane(course, rate) for name, course in each.items()} for each in (one, null))
high = {name: float(np.mean(trajectories.states(each)[-1] == trajectories.HIGH)) for name, each in path.items()}
title = f"At the end {high[sgd]:.0%} of the samples are high-risk with SGD, {high[sam]:.0%} with SAM"
report.planes({name: path[name] for name in (sgd, sam)}, checkpoints, title=title)

# %% [markdown]
# ## Into the high-risk state
# Of the samples outside the state the share that is in it at the next checkpoint, on the same grid in all ways. At
# equal leak: SGD's share of high-risk samples, straight between checkpoints, where its AUC of LiRA is SAM's last one.


# %%
def compared(a, b):
    areas, made = [[audit.auc(scores, each.member).mean() for scores in each.scores] for each in (a, b)], []
    for *rule, border in kinds:
        paths = [trajectories.plane(each, *rule) for each in (a, b)]
        found, ends = [trajectories.states(path, high=border) for path in paths], [trajectories.displacement(path) for path in paths]
        moved, (few, many) = [trajectories.entry_shares(each) for each in found], [np.mean(each == trajectories.HIGH, axis=1) for each in found]
        shift = [take(moved[0]) - take(moved[1]) for take in (np.mean, np.max)]
        made.append([*shift, few[-1] - many[-1], -trajectories.difference_at_level(many, areas[1], few, areas[0]), ends[0] - ends[1]])
    return np.ravel(np.transpose(made))


kinds = [*((r, "counted", 0.8) for r in (rate, rate / 2, 2 * rate, "balanced")), (rate, "fitted", 0.8), (rate, "counted", 0.7)]
apart = np.array(over_time.jackknife(compared, one[sam], one[sgd]), object).reshape(5, -1)
shares = {name: over_time.jackknife(lambda each: trajectories.entry_shares(trajectories.states(trajectories.plane(each, rate))), course)
          for name, course in one.items()}  # fmt: skip
peaks, means = ({name: take([e.value for e in each]) for name, each in shares.items()} for take in (max, np.mean))
shares["null"] = [audit.Estimate(v, v, v) for v in trajectories.entry_shares(trajectories.states(noise[sgd])).tolist()]
rows = [{"way": name, "epoch": t + last / 100 * k, "value": replace(e, low=max(0.0, e.low))}
        for k, (name, each) in enumerate(shares.items()) for t, e in zip(checkpoints[1:], each, strict=True)]  # fmt: skip
fewer = "fewer" if apart[0, 0].high < 0 else "more" if apart[0, 0].low > 0 else "not surely more or fewer"
title = f"SAM moves {fewer} samples into the high-risk state: in the mean {means[sam]:.1%} an interval, SGD {means[sgd]:.1%}"
words = {"title": title, "xlabel": "epoch, end of the interval", "ylabel": "share that enters"}
report.tradeoff(rows, "epoch", "value", hue="way", null=None, better="", **words)

# %%
surely = f"{sum(each.high < 0 for each in apart[0])} of {len(kinds)} definitions surely fewer"
named = ("enters the state, mean over intervals", "at the peak (reading note: −.018)", "high-risk at the end", "the same at equal AUC of LiRA")
named += ("displacement of the centre of mass",)
rows = [{"threshold": r if isinstance(r, str) else f"{r:.0%} FPR", "rates": form, "high-risk from TPR": border} | dict(zip(named, each, strict=True))
        for (r, form, border), each in zip(kinds, apart.T, strict=True)]  # fmt: skip
report.table(rows, caption=f"SAM minus SGD, by how the plane and its state are defined. The first is judged; {surely}")

# %% [markdown]
# ## Earlier on the same line, or off it?
# Each network's own epochs make its line; below 0 in the last column: more leak for the gap that is there. Of two
# networks of equal leak SAM's is further in its schedule, so the title speaks of all of SAM's after the middle.

# %%
member = {way: [float(results[s]["accuracy_member"]) for s in each] for way, each in signals.items()}
gaps = {way: np.subtract(member[way], found.accuracies[way]) for way in signals}
off = {way: [found.at_matched_auc(way, [(sgd, t) for t in checkpoints[1:]], "RMIA", heights=heights) for heights in (None, member, gaps)]
       for way in signals if way[0] != sgd and way[1] >= half}  # fmt: skip
worst = audit.largest(off[sam, t][2] for t in checkpoints if t > half)
plane = [
    {"variant": name, "gap": audit.mean_ci(gaps[name, t]), "auc": found.leak((name, t), "RMIA")["auc"]} for name in ways for t in checkpoints[1:]
]
less = f"{'surely more' if worst.high < 0 else 'not surely more'} than SGD's own earlier epochs, after epoch {half}"
report.tradeoff(plane, "gap", title=f"For its generalization gap SAM leaks {less}", better="", xlabel=gap, ylabel="AUC of RMIA", level="guessing")

# %%
rows = [{"way": way[0], "epoch": way[1], "members": audit.mean_ci(member[way]), "test": found.accuracy(way)}
        | {f"AUC of {a}": found.leak(way, a)["auc"] for a in ("LiRA", "RMIA")}
        | dict(zip((f"{each}, beside SGD's line" for each in ("test", "members", "gap")), off.get(way, [None] * 3), strict=True))
        for way in signals if way[1] in (half, 2 * half, last) or way in off]  # fmt: skip
caption = f"Mean of {networks} networks. Beside SGD's line: less that of its epochs of equal AUC of RMIA"
report.table(rows, caption=f"{caption}. SAM at {half} took as many gradients as SGD at {2 * half}, but has not annealed")

# %% [markdown]
# ## Verdicts

# %%
areas = {way: found.reached((way, "RMIA"), number="auc") for way in signals}
slower, other = (audit.paired_difference(member[sgd, half], member[name, half]) for name in (sam, steady))
beats = {f"{a} beats a guess: {w}": found.leak((w, last), a)["auc"].low > 0.5 for a in ("LiRA", "RMIA") for w in (sgd, sam, steady)}
acts = {sam: {"SAM fits members later": slower}, steady: {"the constant rate fits members otherwise": other.low > 0 or other.high < 0}}
notes = {"into_high": f"{surely}; peaks {peaks[sam]:.1%}, {peaks[sgd]:.1%} (reading note: .9, 2.7 %); at equal leak {apart[3, 0]} are high-risk"}
notes |= {"accuracy_line": f"does not single SAM out: the constant rate's is {off[steady, last][0]}"}
notes |= {"gap_line": f"not apart from annealing, by which SGD's earlier epochs are behind; the constant rate's gap: {off[steady, last][2]}"}
notes |= {"final": f"SAM is right about {np.mean(member[sam, last]):.3f} of its members, SGD about {np.mean(member[sgd, last]):.3f}"}
report.judge(
    claims,
    into_high=apart[0, 0],
    final=found.auc_difference((sam, last), (sgd, last), "LiRA"),
    **{name: off[way, last][k] for name, way, k in (("accuracy_line", sam, 0), ("gap_line", sam, 2), ("steady_gap", steady, 2))},
    steady_grows=audit.paired_difference(areas[steady, last] - areas[steady, half], areas[sgd, last] - areas[sgd, half]),
    notes=notes,
    checks={claim.name: beats | acts[steady if "steady" in claim.name else sam] for claim in claims},
    regime=dict(zip(claims.regime, (float(np.mean(member[sgd, last])), *(found.accuracy((name, last)) for name in (sgd, sam))), strict=True)),
)  # fmt: skip

# %% [markdown]
# **Caveat.** The constant rate is lower at the start than the cosine's and higher at the end. SAM's last epochs are
# annealed, SGD's earlier ones less: a shorter, annealed SGD could lie where SAM does; it was not run. Whether SAM's
# minima are flatter is not measured: that it acts is read off its members, which it fits later. The peak, the paper's
# measure, is not resolved: the mean is judged. Rules were settled on draw 0, a referee's objections in hand, and are
# judged on this one (seed 1).

# %%
report.provenance(results)
