"""How often each 95 % interval of `leak_atlas.audit` holds the truth, by simulation;
docs/coverage.md keeps the table.

Every row repeats an experiment whose truth is known and counts. A few minutes on one core.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator

import numpy as np
from scipy import special, stats

from leak_atlas import audit
from leak_atlas.attacks.lira import lira
from leak_atlas.attacks.rmia import rmia
from leak_atlas.data import designs, honesty, readers
from leak_atlas.data.designs import Role
from leak_atlas.localization import disparity, over_time, trajectories
from leak_atlas.recipe import RMIA, Halves, LiRA, RandomHalves

Row = tuple[str, float | np.floating, str]


def held(found: audit.Estimate, truth: float) -> bool:
    return found.low <= truth <= found.high


def shifted(rng: np.random.Generator, shift: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    member = np.arange(2 * n) < n
    return rng.normal(size=2 * n) + shift * member, member


def over_samples(rng: np.random.Generator) -> Iterator[Row]:
    for area, n in ((0.5, 100), (0.76, 100), (0.99, 50), (0.99, 100), (0.99, 500)):
        shift = np.sqrt(2) * stats.norm.ppf(area)
        found = [audit.auc_interval(*shifted(rng, shift, n)) for _ in range(2000)]
        plain = np.mean([abs(one.value - area) <= 1.96 * one.error for one in found])
        yield (
            f"AUC {area:g}, {n} a side",
            np.mean([held(one, area) for one in found]),
            f"{plain:.3f} on the plain scale",
        )
    for fpr, n in ((0.01, 500), (0.01, 2000), (0.001, 1000), (0.001, 20_000)):
        truth = stats.norm.sf(stats.norm.isf(fpr) - 1.5)
        found = [audit.tpr_at_fpr(*shifted(rng, 1.5, n), fpr) for _ in range(1000)]
        width = np.mean([one.high - one.low for one in found])
        yield (
            f"TPR at {100 * fpr:g} % FPR, {n} a side",
            np.mean([held(one, truth) for one in found]),
            f"width {width:.3f}",
        )


def population(
    rng: np.random.Generator, level: np.ndarray, shift: float, models: int
) -> tuple[np.ndarray, np.ndarray]:
    """Signals and membership `(models, n)` of complement pairs on one pool whose samples differ in
    difficulty.
    """
    n = len(level)
    halves = rng.permuted(np.tile(np.arange(n) < n // 2, (models // 2, 1)), axis=1)
    member = np.stack([halves, ~halves], axis=1).reshape(models, n)
    return level + rng.normal(size=member.shape) + shift * member, member


def over_targets(rng: np.random.Generator, runs: int = 250) -> Iterator[Row]:
    """Populations whose models are each other's shadows; the truth is the mean over all runs on the
    pool.
    """

    def online(
        values: np.ndarray, member: np.ndarray, t: int, others: np.ndarray, z: np.ndarray
    ) -> np.ndarray:
        return lira(values[t], values[others], member[others], LiRA())

    def ratios(
        values: np.ndarray, member: np.ndarray, t: int, others: np.ndarray, z: np.ndarray
    ) -> np.ndarray:
        values, z = special.log_expit(values), special.log_expit(z)
        return rmia(values[t], values[others], member[others], z[t], z[others], RMIA())

    level = rng.normal(size=400)
    for name, attack, effects in (
        ("online LiRA", online, (1.0, LiRA().max_design_effect)),
        ("RMIA", ratios, (1.0,)),
    ):
        for models, shift in ((6, 0.5), (10, 0.0), (10, 0.5)):
            found = []
            for _ in range(runs):
                values, member = population(rng, level, shift, models)
                # samples that no model trained on
                z = rng.normal(size=200) + rng.normal(size=(models, 200))
                apart = [np.arange(models) // 2 != t // 2 for t in range(models)]
                scores = np.stack(
                    [attack(values, member, t, others, z) for t, others in enumerate(apart)]
                )
                found.append((scores, member))
            areas = np.array([audit.auc(*one) for one in found])
            rates = [
                audit.audit({"scores": s, "member": m}, (0.05,))["tpr_at_5%"] for s, m in found
            ]
            effect = areas.mean(1).var(ddof=1) / (areas.var(1, ddof=1).mean() / models)
            for wide in effects:
                inside = [
                    held(audit.mean_ci(each, design_effect=wide), areas.mean()) for each in areas
                ]
                row = f"AUC of {name}, {models} targets, shift {shift:g}, design effect {wide:g}"
                yield row, float(np.mean(inside)), f"measured effect {effect:.2f}"
            truth = float(np.mean([one.value for one in rates]))
            row = f"TPR of {name} at 5 % FPR, {models} targets, shift {shift:g}"
            yield row, float(np.mean([held(one, truth) for one in rates])), ""


def over_few(rng: np.random.Generator) -> Iterator[Row]:
    for rate, n in ((0.02, 100), (0.3, 100)):
        ends = [audit.clopper_pearson(k, n) for k in rng.binomial(n, rate, 4000)]
        inside = np.mean([low <= rate <= high for low, high in ends])
        yield f"rate of {rate:g} in {n} samples (Clopper-Pearson)", inside, ""
    for n in (4, 10):
        yield (
            f"mean of {n} units",
            np.mean([held(audit.mean_ci(x), 0) for x in rng.normal(size=(4000, n))]),
            "",
        )
    for k in (3, 8):
        each = [[audit.mean_ci(x) for x in rng.normal(size=(k, 10))] for _ in range(2000)]
        found = np.mean([audit.least(one).high >= 0 for one in each])
        before = np.mean([min(e.high for e in one) >= 0 for one in each])
        yield (
            f"far end of the least of {k}, no effect (97.5 %)",
            found,
            f"{before:.3f} without its correction",
        )


def of_distances(rng: np.random.Generator) -> Iterator[Row]:
    """Stages whose features tell unseen samples by shifts, in pairs of networks."""
    shifts = np.array([0.0, 0.3, -0.2, 0.8])
    areas = stats.norm.cdf(shifts / np.sqrt(2))
    held_by = dict.fromkeys(
        (
            "AUC of a stage, 3 pairs",
            "AUC of a stage between seeds, 3 halves",
            "distance of a stage's AUC from 0.5, 3 pairs",
            "contrast of a stage with three others, 4 pairs",
            "one stage in two settings, 4 pairs",
        ),
        0.0,
    )
    for _ in range(500):
        seen = [rng.permutation(400) < 200 for _ in range(4)]
        one, other = (
            [rng.normal(size=(4, 400)) + shifts[:, None] * ~half for half in seen] for _ in range(2)
        )
        stage = disparity.profile(one[:3], seen[:3])[1]
        nothing = [distance[:1] for distance in one[:2]]
        contrast = disparity.lead([(one, seen)], 3, [0, 1, 2])
        difference = disparity.setting_difference((one, seen), (other, seen), 3)
        held_now = (
            held(stage, areas[1]),
            held(disparity.floor(nothing, seen[1:])[0], 0.5),
            held(disparity.strength(stage), areas[1] - 0.5),
            held(contrast, areas[3] - areas[1]),
            held(difference, 0),
        )
        for row, inside in zip(held_by, held_now, strict=True):
            held_by[row] += inside / 500
    for row, share in held_by.items():
        yield row, share, ""


def of_ranks(rng: np.random.Generator) -> Iterator[Row]:
    """Spearman's correlation of normal variables."""
    for rho in (0.0, 0.5, 0.9):
        truth = 6 / np.pi * np.arcsin(rho / 2)
        inside = []
        for _ in range(2000):
            x, y = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], 200).T
            inside.append(held(audit.rank_correlation_interval(x, y), truth))
        yield f"rank correlation {rho:g}, 200 samples", np.mean(inside), ""


def of_true_ranks(rng: np.random.Generator, runs: int = 200, n: int = 300) -> Iterator[Row]:
    """Rank correlations corrected for the measures' errors, of which each half has its own."""
    for rho in (0.0, 0.5, 0.95):
        truth = 6 / np.pi * np.arcsin(rho / 2)
        inside = []
        for _ in range(runs):
            true = rng.multivariate_normal([0.0, 0.0], [[1.0, rho], [rho, 1.0]], n).T
            halves = true + rng.normal(scale=0.5, size=(1, 2, 2, n))
            found = audit.disattenuated(["one", "other"], halves, draws=200)
            inside.append(held(found.of("one", "other"), truth))
        yield f"rank correlation {rho:g} corrected for errors, {n} samples", np.mean(inside), ""


def learning(rng: np.random.Generator, unlike: float) -> over_time.Trajectory:
    """Scores of 24 networks in complement pairs on 240 samples, at three checkpoints.

    Samples differ in what they leak. Half of the noise stays from one checkpoint to the next.
    `unlike`: how much networks differ in what they leak of all their members.
    """
    networks, n, epochs = 24, 240, [0, 10, 20]
    halves = rng.permuted(np.tile(np.arange(n) < n // 2, (networks // 2, 1)), axis=1)
    member = np.stack([halves, ~halves], axis=1).reshape(networks, n)
    leak = 2 * rng.gamma(1.5, 1 / 1.5, size=n)
    strength = np.repeat(1 + unlike * rng.normal(size=networks // 2), 2)[:, None]
    lasting = rng.normal(size=member.shape)
    scores = []
    for share in (0.0, 0.7, 1.0):
        noise = np.sqrt(0.5) * (lasting + rng.normal(size=member.shape))
        scores.append(noise + share * leak * strength * member)
    pairs = np.arange(networks) // 2
    return over_time.Trajectory(np.array(epochs), np.stack(scores), member, np.arange(n), pairs)


def exposure(one: over_time.Trajectory) -> np.ndarray:
    """The mean advantage at the end, the share of exposed samples, and the rank correlation of the
    advantages at two checkpoints.
    """
    path = trajectories.plane(one, 0.1, "fitted")
    gain = trajectories.advantage(path)
    exposed = trajectories.states(path)[-1] == trajectories.HIGH
    agreement = audit.rank_correlation(gain[1], gain[-1])
    return np.array([gain[-1].mean(), exposed.mean(), agreement])


def flagged_early(one: np.ndarray, other: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Of the tenth flagged at the end, the share that is flagged before, in the same half of the
    networks and in the other half.
    """
    flagged = trajectories.highest(one)
    ends = flagged[-1], trajectories.highest(other)[-1]
    shares = [trajectories.flagged_early(flagged, end)[1] for end in ends]
    return np.array(shares)


def of_trajectories(rng: np.random.Generator, runs: int = 500) -> Iterator[Row]:
    """Other networks and other samples; the truth is the mean over all runs."""
    for unlike, word in ((0.0, "alike"), (0.4, "unlike")):
        whole, parts = [], []
        for seed in range(runs):
            one = learning(rng, unlike)
            whole.append(over_time.jackknife(exposure, one))
            first = np.random.default_rng(seed).permutation(12)[:6]
            side = np.isin(one.group, first)
            halves = one.part(np.flatnonzero(side)), one.part(np.flatnonzero(~side))
            parts.append(trajectories.across_halves(flagged_early, [halves]))
        names = [
            "mean advantage",
            "share of exposed samples",
            "rank correlation of two checkpoints",
            "share flagged early, same networks",
            "share flagged early, other networks",
        ]
        estimates = [[*of_all, *of_halves] for of_all, of_halves in zip(whole, parts, strict=True)]
        for name, runs_of_one in zip(names, zip(*estimates, strict=True), strict=True):
            values = np.array([one.value for one in runs_of_one])
            truth = float(values.mean())
            errors = np.array([one.error for one in runs_of_one])
            ratio = np.sqrt(np.square(errors).mean()) / values.std(ddof=1)
            inside = np.mean([held(one, truth) for one in runs_of_one])
            yield f"{name}, networks {word}", inside, f"error {ratio:.2f} of the deviation"


def of_inputs(rng: np.random.Generator) -> Iterator[Row]:
    samples = readers.load("fashion-mnist-small", 14)
    for kind in (RandomHalves, Halves):
        found = []
        for seed in range(150):
            design = kind(600, 0, seed)
            index = designs.pool(design, samples.labels, samples.train)
            role = designs.roles(design, samples.labels, samples.train, [1])[0, index]
            judged = honesty.blind(
                samples.x[index], role == Role.MEMBER, samples.labels[index], seed
            )
            found.append(audit.auc_interval(*judged))
        mean = np.mean([one.value for one in found])
        row = f"blind classifier calls fair {kind.__name__} fair (97.5 %)"
        yield row, np.mean([one.low <= 0.5 for one in found]), f"mean AUC {mean:.3f}"


def at_matched_auc(rng: np.random.Generator, runs: int = 300) -> Iterator[Row]:
    """A variant on the curve of a network's own eight epochs: its distance from it is 0."""
    # of training; the last is the variant's
    fractions = np.array([0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 1, 0.5])
    names = [*"abcdefgh", "variant"]
    curves = {
        "straight": (fractions, fractions),
        "steep": (fractions, 0.4 * fractions**2),
        "flat": (fractions**0.2, fractions),
        "first steep, then flat": (1 - np.exp(-5 * fractions), fractions**2),
    }
    for shape, (learnt, leaked) in curves.items():
        heights, areas = 0.3 + 0.4 * learnt, 0.5 + 0.3 * leaked
        truth = heights[-1] - np.interp(areas[-1], areas[:-1], heights[:-1])
        for units in (6, 10):
            found, each_own = [], []
            for _ in range(runs):
                noise = rng.normal(0, 0.03, (2, 1 + len(names), units))
                accuracy = heights[:, None] + noise[0, :-1] + noise[0, -1]
                area = areas[:, None] + noise[1, :-1] + noise[1, -1]
                found.append(_matched(dict(zip(names, accuracy, strict=True)), area))
                own = [_height(area[:-1, i], accuracy[:-1, i], area[-1, i]) for i in range(units)]
                each_own.append(accuracy[-1].mean() - np.mean(own))
            bias = np.mean([one.value for one in found]) - truth
            yield (
                f"accuracy at matched AUC, {shape} curve, {units} targets",
                np.mean([held(one, truth) for one in found]),
                f"bias {bias:+.3f}; with each target's own curve {np.mean(each_own) - truth:+.3f}",
            )


def _height(areas: np.ndarray, heights: np.ndarray, area: float) -> float:
    order = np.argsort(areas)
    return float(np.interp(area, areas[order], heights[order]))


def _matched(accuracies: dict[str, np.ndarray], areas: np.ndarray) -> audit.Estimate:
    """By scores that have these AUCs: of a thousand members, so many are above all others."""
    member = np.arange(2000) < 1000
    attacks: dict[tuple[Hashable, str], dict[str, np.ndarray]] = {}
    for name, one in zip(accuracies, areas, strict=True):
        above = np.rint(2000 * one - 1000)
        scores = (np.arange(2000) < above[:, None]).astype(float)
        attacks[name, "A"] = {"scores": scores, "member": np.tile(member, (len(one), 1))}
    heights: dict[Hashable, list[float]] = {name: list(one) for name, one in accuracies.items()}
    *epochs, end = [name for name in accuracies if name != "variant"]
    compared = audit.Comparison(heights, attacks, checkpoints={end: epochs})
    return compared.early_stopping("variant", "A")


EVERY: tuple[Callable[[np.random.Generator], Iterator[Row]], ...] = (
    over_samples,
    over_few,
    over_targets,
    of_distances,
    of_ranks,
    of_true_ranks,
    of_trajectories,
    at_matched_auc,
    of_inputs,
)
BELOW = {
    "LiRA.* effect 1": 0.0,
    "exposed samples, networks unlike": 0.88,
}  # ends of rows that cover less, as the documents say


def required(row: str) -> float:
    """The least share of intervals that hold the truth."""
    return min((floor for end, floor in BELOW.items() if re.search(f"{end}$", row)), default=0.92)


def main() -> dict[str, dict[str, float]]:
    out = {}
    for simulate in EVERY:
        for name, share, told in simulate(np.random.default_rng(0)):
            print(f"| {name} | {share:.3f} | {told} |", flush=True)
            out[f"coverage: {name}"] = {"ratio": float(share), "required": required(name)}
    return out
