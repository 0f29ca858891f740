"""How often each 95 % interval of `leak_atlas.audit` holds the truth, by simulation;
docs/coverage.md keeps the table.

Every row repeats an experiment whose truth is known and counts. A few minutes on one core.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np
from scipy import special, stats

from leak_atlas import audit
from leak_atlas.attacks.lira import lira
from leak_atlas.attacks.rmia import rmia
from leak_atlas.data import designs, honesty, readers
from leak_atlas.data.designs import Role
from leak_atlas.localization import disparity
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
        ("online LiRA", online, (1.0, LiRA().crossing)),
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
                    held(audit.over(each, design_effect=wide), areas.mean()) for each in areas
                ]
                row = f"AUC of {name}, {models} targets, shift {shift:g}, design effect {wide:g}"
                yield row, float(np.mean(inside)), f"measured effect {effect:.2f}"
            truth = float(np.mean([one.value for one in rates]))
            row = f"TPR of {name} at 5 % FPR, {models} targets, shift {shift:g}"
            yield row, float(np.mean([held(one, truth) for one in rates])), ""


def over_few(rng: np.random.Generator) -> Iterator[Row]:
    for n in (4, 10):
        yield (
            f"mean of {n} units",
            np.mean([held(audit.over(x), 0) for x in rng.normal(size=(4000, n))]),
            "",
        )
    for k in (3, 8):
        each = [[audit.over(x) for x in rng.normal(size=(k, 10))] for _ in range(2000)]
        found = np.mean([audit.least(one).high >= 0 for one in each])
        before = np.mean([min(e.high for e in one) >= 0 for one in each])
        yield (
            f"far end of the least of {k}, no effect (97.5 %)",
            found,
            f"{before:.3f} without its correction",
        )
    for n in (4, 6):
        hits, tenth, ratio = [], [], []
        for _ in range(150):
            expected = rng.uniform(0.5, 2, 30)
            excess = 1.3 * 8 / rng.chisquare(8, 30)
            own = [
                audit.over(x * s)
                for x, s in zip(rng.normal(size=(30, n)), np.sqrt(excess * expected), strict=True)
            ]
            made = audit.moderate(own, expected / n)
            hits += [held(one, 0) for one in made]
            tenth += list(excess >= np.sort(excess)[-3])
            ratio.append(
                np.mean([m.high - m.low for m in made]) / np.mean([o.high - o.low for o in own])
            )
        yield (
            f"moderated, {n} units, 30 comparisons",
            np.mean(hits),
            f"{np.mean(ratio):.2f} of the plain width",
        )
        yield f"moderated, {n} units, most heterogeneous tenth", np.mean(np.array(hits)[tenth]), ""


def of_distances(rng: np.random.Generator) -> Iterator[Row]:
    shifts = np.array([0.0, 0.3, -0.2, 0.8])
    truth = stats.norm.cdf(0.8 / np.sqrt(2)) - stats.norm.cdf(0.3 / np.sqrt(2))
    inside, apart = [], []
    for _ in range(500):
        seen = [rng.permutation(400) < 200 for _ in range(4)]
        drawn = [[rng.normal(size=(4, 400)) + shifts[:, None] * ~s for s in seen] for _ in range(2)]
        inside.append(held(disparity.contrast(drawn[0], seen, 3, [0, 1, 2]), truth))
        apart.append(held(disparity.setting_difference((drawn[0], seen), (drawn[1], seen), 3), 0))
    yield "contrast of a stage with three others, 4 pairs", np.mean(inside), ""
    yield "one stage in two settings, 4 pairs", np.mean(apart), ""


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


EVERY: tuple[Callable[[np.random.Generator], Iterator[Row]], ...] = (
    over_samples,
    over_few,
    over_targets,
    of_distances,
    of_inputs,
)
BELOW = {"LiRA.* effect 1": 0.0, "tenth": 0.8}  # ends of rows that cover less, as the documents say


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
