"""Compares variants of the same networks: accuracy and leakage of each, paired differences."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from leak_atlas.audit.estimates import (
    Estimate,
    Row,
    Rows,
)
from leak_atlas.audit.rates import BoolArray, FloatArray, IntArray, auc, tpr_label
from leak_atlas.audit.targets import (
    HEADLINE_FPRS,
    Scored,
    audit,
    by_target,
    jackknife,
    mean_ci,
    own_accuracy,
    own_rates,
    paired_difference,
    tpr_key,
    units,
)

__all__ = ["PLACEBO", "Comparison", "described", "possible_bias"]

Pair = tuple[Hashable, Hashable]
Heights = Mapping[Hashable, Sequence[float]]
NETWORK = ("test accuracy", "member accuracy")  # metrics that need no attacker
PLACEBO = "test accuracy minus that of the other epochs"
SLACK = 0.03  # of the share that a pruner was asked to remove
FINDS = 0.53  # least attack accuracy of an attack that finds members; a guess has 0.5


@dataclass(frozen=True)
class Points:
    """Points in the plane of AUC and another number, one for each of some `variants`: `areas` and
    `heights`, `(points, n)`, a column a unit.
    """

    variants: Sequence[Hashable]
    areas: FloatArray
    heights: FloatArray

    @property
    def mean_areas(self) -> FloatArray:
        """AUC of each point, `(points,)`, the mean over units."""
        return np.asarray(self.areas.mean(axis=1))

    def of(self, chosen: IntArray) -> tuple[FloatArray, FloatArray]:
        """Both numbers of each point, `(points,)`, as means over some units."""
        areas = self.areas[:, chosen].mean(axis=1)
        heights = self.heights[:, chosen].mean(axis=1)
        return areas, heights

    def above(self, line: Points, chosen: IntArray) -> float:
        """How far these points lie above a line at their own AUC, in the mean over points.

        The line joins the means over units in the order of their AUC. It is linear between points,
        and level beyond its ends.
        """
        areas, heights = self.of(chosen)
        line_areas, line_heights = line.of(chosen)
        order = np.argsort(line_areas, kind="stable")
        matched = np.interp(areas, line_areas[order], line_heights[order])
        return float(np.mean(heights - matched))

    def outside(self, line: Points) -> BoolArray:
        """Whether the mean AUC of each point, `(points,)`, lies beyond the ends of a line."""
        areas = self.mean_areas
        ends = line.mean_areas
        return np.asarray((areas < ends.min()) | (areas > ends.max()))


@dataclass(frozen=True)
class Comparison:
    """Each variant's test accuracy `(n,)`, and what each attacker scored: `scores (T, N)` and
    `member (T, N)` or `(N,)`.

    The units of all variants are the same in the same order (their seeds, members and
    initialisations), so differences are paired. Units are the targets of one attack; where they are
    each other's shadows, `design_effects` has by how much the variance of their mean AUC grows. Or,
    where a variant has a list of attacks, units are these repeated experiments (several targets,
    several seeds), each with the mean of its targets.

    `checkpoints` has the variants that are earlier epochs of a variant, in their order;
    `members` each variant's accuracy on members `(n,)`. `results` is what `lab.realize` returned.
    """

    accuracies: Heights
    # by variant and attacker, as `Attack` stores them
    attacks: Mapping[tuple[Hashable, str], Scored | Sequence[Scored]]
    design_effects: Mapping[tuple[Hashable, str], float] = field(default_factory=dict)
    members: Heights = field(default_factory=dict)
    checkpoints: Mapping[Hashable, Sequence[Hashable]] = field(default_factory=dict)
    results: Any = field(default=None, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        results: Any,
        signals: Mapping[Any, Sequence[Any]],
        attacks: Mapping[Any, Any],
        checkpoints: Mapping[Hashable, Sequence[Hashable]] | None = None,
    ) -> Comparison:
        """From what `lab.realize` returned: each variant's `Signals`, one a unit, and its `Attack`
        by attacker.
        """
        scored = {}
        effects = {}
        for key, attack in attacks.items():
            scored[key] = results[attack]
            effects[key] = attack.design_effect
        return cls(
            accuracies=_accuracies(results, signals, "accuracy_test"),
            attacks=scored,
            design_effects=effects,
            members=_accuracies(results, signals, "accuracy_member"),
            checkpoints=checkpoints or {},
            results=results,
        )

    def accuracy(self, variant: Hashable) -> Estimate:
        """Test accuracy."""
        return self.estimate(variant, "", "test accuracy")

    @cached_property
    def _leaks(self) -> dict[Any, dict[str, Estimate]]:
        return {}

    def leak(
        self, variant: Hashable, attacker: str, fprs: Sequence[float] = HEADLINE_FPRS
    ) -> dict[str, Estimate]:
        """As `audit`: AUC, accuracies, TPRs. They are computed once."""
        key = variant, attacker, tuple(fprs)
        if key not in self._leaks:
            scored = self.attacks[variant, attacker]
            effect = self._design_effect(attacker, variant)
            self._leaks[key] = audit(scored, fprs, effect)
        return dict(self._leaks[key])

    def measured(self, variant: Hashable, attacker: str, metric: str = "auc") -> FloatArray:
        """A metric of each unit, `(n,)`.

        Metrics: "test accuracy" and "member accuracy" of the networks; of the attacker "auc", and
        at the attacker's own thresholds "accuracy" and "balanced" (the mean of the accuracies on
        members and on non-members). ValueError on another metric, and where the attacker names no
        threshold.
        """
        if metric == "test accuracy":
            return np.asarray(self.accuracies[variant], np.float64)
        if metric == "member accuracy":
            return np.asarray(self.members[variant], np.float64)
        if (variant, attacker) not in self.attacks:
            raise ValueError(f"attacker '{attacker}' did not attack {described(variant)}")
        scored = self.attacks[variant, attacker]
        if metric == "auc":
            return units(by_target(scored), auc)
        if metric == "accuracy":
            return own_accuracy(by_target(scored))
        if metric == "balanced":
            hits, alarms = own_rates(scored)
            return (hits + 1 - alarms) / 2
        raise ValueError(f"there is no metric '{metric}'")

    def estimate(self, variant: Hashable, attacker: str, metric: str = "auc") -> Estimate:
        """A metric as figures and tables show it: the mean over units with its 95 % interval.

        Metrics as `measured`, "tpr@0.01" (at any FPR), and all of `leak`. Raises ValueError on
        another one.
        """
        if metric in (*NETWORK, "balanced"):
            return mean_ci(self.measured(variant, attacker, metric), bounds=(0, 1))
        if not metric.startswith("tpr@"):
            leak = self.leak(variant, attacker)
            if metric not in leak:
                raise ValueError(f"{attacker} has no metric '{metric}' on {described(variant)}")
            return leak[metric]
        fpr = _fpr(metric)
        leak = self.leak(variant, attacker, (fpr,))
        return leak[tpr_key(fpr)]

    def rows(
        self,
        attacker: str,
        metric: str = "auc",
        names: Sequence[str] = (),
        variants: Iterable[Hashable] | None = None,
    ) -> Rows:
        """Rows for `report.profile`, one a variant: the parts of its key, and the estimate as
        "value".

        `names` are the columns for a key's parts. By default they are the fields of a named tuple,
        or else one column "variant". Left out: variants whose keys have another number of parts,
        and those that the attacker did not attack.
        """
        rows = []
        for variant in self.variants if variants is None else variants:
            if metric not in NETWORK and (variant, attacker) not in self.attacks:
                continue
            columns = tuple(names) or getattr(variant, "_fields", ("variant",))
            parts = variant if isinstance(variant, tuple) and len(columns) > 1 else (variant,)
            if len(parts) == len(columns):
                row: Row = dict(zip(columns, parts, strict=True))
                rows.append(row | {"value": self.estimate(variant, attacker, metric)})
        return rows

    def table(self, attackers: Sequence[str] = (), metrics: Sequence[str] = ("auc",)) -> Rows:
        """A table's rows, one a variant: its test accuracy, and the AUC or TPRs ("tpr@0.01") of
        each attacker, all by default.
        """
        rows = []
        for variant in self.accuracies:
            row: Row = {"variant": described(variant)}
            row["test accuracy"] = self.accuracy(variant)
            for attacker in attackers or self.attackers:
                if (variant, attacker) not in self.attacks:
                    continue
                for metric in metrics:
                    label = self._label(variant, attacker, metric)
                    row[f"{attacker}, {label}"] = self.estimate(variant, attacker, metric)
            rows.append(row)
        return rows

    def _label(self, variant: Hashable, attacker: str, metric: str) -> str:
        """What a table calls a metric; of a TPR it depends on the number of non-members."""
        if metric == "auc":
            return "AUC"
        scored = by_target(self.attacks[variant, attacker])
        fewest = min(one.non_members for one in scored)
        return tpr_label(_fpr(metric), fewest)

    def plane(
        self,
        lines: Mapping[str, Sequence[Hashable]],
        attacker: str,
        metric: str = "auc",
        panel: str = "",
    ) -> Rows:
        """Rows for `report.tradeoff`: the variants of each line, in order, with test accuracy and a
        metric of `estimate`.
        """
        rows = []
        for name, variants in lines.items():
            for variant in variants:
                row: Row = {"variant": name, "attack": panel or attacker}
                row["accuracy"] = self.accuracy(variant)
                row["auc"] = self.estimate(variant, attacker, metric)
                rows.append(row)
        return rows

    def frontier(self, attacker: str) -> Rows:
        """Rows for `report.tradeoff`: all variants that the attacker attacked, and a line of the
        earlier epochs of each network.

        Tuples with the same first part make a line (a defence's strengths), any other variant is a
        line of its own.
        """
        epochs = {}
        for network, stops in self.checkpoints.items():
            epochs[f"{described(network)}, by epoch"] = [*stops, network]
        drawn = [variant for line in epochs.values() for variant in line]
        lines: dict[str, list[Hashable]] = {}
        for variant in self.variants:
            if variant not in drawn and (variant, attacker) in self.attacks:
                name = variant[0] if isinstance(variant, tuple) else variant
                lines.setdefault(str(name), []).append(variant)
        return self.plane(lines | epochs, attacker)

    def contrast(
        self,
        one: Hashable,
        other: Hashable,
        attacker: str = "",
        metric: str = "auc",
        against: str = "",
    ) -> Estimate:
        """Paired difference, `one` minus `other`: the mean over units with its 95 % interval.

        Metrics as `measured`. `against` is the attacker of `other`, by default the same.
        """
        first = one, attacker
        second = other, against or attacker
        return self.mean_contrast([first], [second], metric)

    def accuracy_difference(self, one: Hashable, other: Hashable) -> Estimate:
        """Test accuracy of `one` minus that of `other`."""
        return self.contrast(one, other, metric="test accuracy")

    def auc_difference(self, one: Hashable, other: Hashable, attacker: str) -> Estimate:
        """AUC of `one` minus that of `other`."""
        return self.contrast(one, other, attacker)

    def mean_measured(self, *pairs: Pair, number: str = "accuracy") -> FloatArray:
        """What attackers reach on each unit, `(n,)`: the mean over pairs of a variant and an
        attacker, of a metric of `measured`.
        """
        each = []
        for variant, attacker in pairs:
            each.append(self.measured(variant, str(attacker), number))
        return np.asarray(np.mean(each, axis=0))

    def mean_contrast(
        self, ones: Sequence[Pair], others: Sequence[Pair], number: str = "accuracy"
    ) -> Estimate:
        """What `ones` reach in the mean minus what `others` do, see `mean_measured`."""
        effect = 1.0
        if number == "auc":
            for variant, attacker in (*ones, *others):
                effect = max(effect, self._design_effect(str(attacker), variant))
        first = self.mean_measured(*ones, number=number)
        second = self.mean_measured(*others, number=number)
        return paired_difference(first, second, design_effect=effect)

    def _each(self, variants: Sequence[Hashable], metric: str, attacker: str = "") -> FloatArray:
        """A metric of each variant in each unit, `(len(variants), n)`."""
        return np.array([self.measured(variant, attacker, metric) for variant in variants])

    def most_accurate(
        self, attacker: str, others: Sequence[str], variants: Sequence[Hashable]
    ) -> Estimate:
        """Share of a unit's variants on which none of the other attackers is more accurate, each at
        its own thresholds. A tie counts.
        """
        own = self._each(variants, "accuracy", attacker)
        accuracies = [self._each(variants, "accuracy", name) for name in others]
        ahead = own >= np.max(accuracies, axis=0)
        return mean_ci(ahead.mean(axis=0), bounds=(0, 1))

    def gain_minus_cost(
        self, defended: Sequence[Hashable], undefended: Sequence[Hashable], attacker: str
    ) -> FloatArray:
        """Attack accuracy that a defence takes from an attacker minus the test accuracy that it
        costs, `(n,)`: the mean over several variants with the defence and their counterparts.
        """
        found, found_defended = (
            self._each(variants, "accuracy", attacker) for variants in (undefended, defended)
        )
        right, right_defended = (
            self._each(variants, "test accuracy") for variants in (undefended, defended)
        )
        gains = found - found_defended
        costs = right - right_defended
        return np.asarray(gains.mean(axis=0) - costs.mean(axis=0))

    def defence_acts(
        self,
        defended: Sequence[Hashable],
        undefended: Sequence[Hashable],
        attacker: str,
        name: str = "the defence",
        keeps: float = 0.0,
    ) -> dict[str, Estimate | bool]:
        """Checks for `report.judge`: the attacker finds members without the defence; with it the
        networks fit their members less, and keep a share of their test accuracy. Means over
        several variants.
        """
        attack_accuracy = mean_ci(self._each(undefended, "accuracy", attacker).mean(axis=0))
        fits = self._each(undefended, "member accuracy").mean(axis=0)
        fits_defended = self._each(defended, "member accuracy").mean(axis=0)
        checks: dict[str, Estimate | bool] = {
            f"{attacker} finds members without a defence": attack_accuracy.low > FINDS,
            f"{name} lowers the accuracy on members": paired_difference(fits, fits_defended),
        }
        if keeps:
            least = keeps * self._each(undefended, "test accuracy").mean()
            kept = self._each(defended, "test accuracy").mean()
            claim = f"{name} keeps {keeps:.0%} of the test accuracy"
            checks[claim] = bool(kept >= least)
        return checks

    def early_stopping(
        self, variant: Hashable | list[Hashable], attacker: str, network: Hashable = None
    ) -> Estimate:
        """Test accuracy of a variant minus that of a network's own earlier epochs at matched AUC.

        The one form of this comparison. The epochs are the `checkpoints` of `network` (by default
        the only network that has some) and its end, see `at_matched_auc`. They have to surround the
        variant's AUC: else nothing is resolved, and `reason` says so. ValueError without
        checkpoints, or where several networks have some and none is named.
        """
        return self.at_matched_auc(variant, self._epochs(network), attacker)

    def stopped_line(self, shown: Iterable[Hashable], attacker: str) -> list[Hashable]:
        """The epochs of early stopping and their network's end, for a figure of these variants.

        The first epochs are left out, down to the last one that leaks less than all of them.
        ValueError as `early_stopping`.
        """
        lowest = min(self.estimate(variant, attacker).value for variant in shown)
        line = self._epochs(None)
        while len(line) > 2 and self.estimate(line[1], attacker).value < lowest:
            line = line[1:]
        return line

    def at_matched_auc(
        self,
        variant: Hashable | list[Hashable],
        line: Sequence[Hashable],
        attacker: str,
        other: Hashable | list[Hashable] | None = None,
        heights: Heights | None = None,
    ) -> Estimate:
        """Test accuracy of `variant` minus that of a `line` at the same AUC; minus the same of an
        `other` variant, if any.

        The line joins variants that belong together (a network's epochs, a defence's strengths).
        Its points are the means over units, and so is the AUC at which it is read: one unit's own
        curve is so noisy that it would favour the variant where it is steep or flat. The interval
        is the jackknife's over units. At matched AUC rather than at matched accuracy, since later
        epochs leak more and learn no more. `heights` compares something else than test accuracy,
        `(n,)` of each variant. A list of variants (all strengths of a defence) is compared by their
        mean, each at its own AUC.

        Beyond its ends the line is level, which is a guess: where the AUC of a variant lies there,
        nothing is resolved, and `reason` says so. ValueError on a line of fewer than two variants.
        """
        if len(line) < 2:
            raise ValueError("a line joins two variants or more")
        joined = self._points(line, attacker, heights)
        sides = [_listed(one) for one in (variant, other) if one is not None]
        compared = [self._points(side, attacker, heights) for side in sides]

        def gap(chosen: IntArray) -> float:
            first, *second = [points.above(joined, chosen) for points in compared]
            return first - sum(second)

        return self._matched(gap, attacker, [(points, joined) for points in compared])

    def between_lines(
        self,
        line: Sequence[Hashable],
        other: Sequence[Hashable],
        attacker: str,
        at: list[Hashable],
    ) -> Estimate:
        """Test accuracy of a line minus that of another one, at the AUC of some variants.

        It is what the variants gain over `other` minus what they gain over `line`, each as
        `at_matched_auc` has it, paired over units. The mean over variants, each at its own AUC.
        """
        upper = self._points(line, attacker)
        lower = self._points(other, attacker)
        variants = self._points(at, attacker)

        def gap(chosen: IntArray) -> float:
            return variants.above(lower, chosen) - variants.above(upper, chosen)

        return self._matched(gap, attacker, [(variants, upper), (variants, lower)])

    def _matched(
        self,
        gap: Callable[[IntArray], float],
        attacker: str,
        pairs: Sequence[tuple[Points, Points]],
    ) -> Estimate:
        """A gap, with its interval over units; `pairs` are the variants and the line of each
        comparison in it.
        """
        reasons = []
        for points, line in pairs:
            if points.outside(line).any():
                reasons.append(_unmatched(attacker, points, line))
        every = [one for points, line in pairs for one in (*line.variants, *points.variants)]
        effect = self._design_effect(attacker, *every)
        units = line.areas.shape[1]
        estimate = jackknife(gap, units, effect, resolved=not reasons)
        return replace(estimate, reason="; ".join(reasons))

    def placebo(
        self, attacker: str, shown: Sequence[Hashable] = (), line: Sequence[Hashable] = ()
    ) -> Rows:
        """Rows for `report.table`: what `early_stopping` gives for the network's own epochs, each
        compared with the others. `shown`: rows for these epochs alone, such as `stopped_line`.
        `line`: variants that take the place of the epochs.

        The true value is 0, but for the bend of the curve between two epochs: a value above 0 is
        the most by which the comparison can favour a defence there. A value below 0 shows that this
        epoch lies low: it favours a defence at the same AUC, too. The first and the last epoch have
        no epochs on both sides, and are left out. ValueError as `early_stopping`.
        """
        column = "network" if line else "network stopped early"
        line = list(line) or self._epochs(None)
        inner = [epoch for epoch in line[1:-1] if not shown or epoch in shown]
        rows = []
        for epoch in inner:
            others = [one for one in line if one != epoch]
            gain = self.at_matched_auc(epoch, others, attacker)
            rows.append({column: described(epoch), PLACEBO: gain})
        return rows

    def among(self, samples: IntArray) -> Comparison:
        """The same comparison where attacks are judged on some samples alone.

        `samples` are their indices in the data set. Accuracies stay those on all samples.
        """
        attacks: dict[tuple[Hashable, str], Scored | Sequence[Scored]] = {}
        for key, stored in self.attacks.items():
            if isinstance(stored, Mapping):
                attacks[key] = _restricted(stored, samples)
            else:
                attacks[key] = [_restricted(one, samples) for one in stored]
        return replace(self, attacks=attacks)

    def with_strongest(self, name: str) -> Comparison:
        """The same comparison with one more attacker, `name`: on each variant it is the attacker
        with the highest mean AUC there.
        """
        attacks, effects = dict(self.attacks), dict(self.design_effects)
        for variant in dict.fromkeys(one for one, _ in self.attacks):
            strongest = variant, self.strongest(variant)
            attacks[variant, name] = self.attacks[strongest]
            effects[variant, name] = self.design_effects.get(strongest, 1.0)
        return replace(self, attacks=attacks, design_effects=effects)

    def strongest(self, variant: Hashable) -> str:
        """The attacker with the highest mean AUC on a variant."""
        named = [attacker for one, attacker in self.attacks if one == variant]
        return max(named, key=lambda attacker: self.measured(variant, attacker).mean())

    def pruned_as_asked(
        self, removed: Mapping[tuple[str, float], Sequence[Any]]
    ) -> dict[str, bool]:
        """Whether each pruner removed the share that it was asked for: checks for `report.judge`.

        `removed` has the `Sparsity` of each target by pruner and sparsity. Unstructured pruners
        count weights of the network, the others filters of the convolutions. The target with the
        smallest share counts; it may lack `SLACK`.
        """
        checks = {}
        for (pruner, sparsity), steps in removed.items():
            shares = [_removed_share(self.results[step], pruner) for step in steps]
            claim = f"{pruner} removes {sparsity:.0%}"
            checks[claim] = min(shares) > sparsity - SLACK
        return checks

    @property
    def variants(self) -> list[Hashable]:
        """All variants, in their order."""
        attacked = [variant for variant, _ in self.attacks]
        return list(dict.fromkeys([*self.accuracies, *attacked]))

    @property
    def attackers(self) -> list[str]:
        """The names of all attackers, in their order."""
        return list(dict.fromkeys(name for _, name in self.attacks))

    def _design_effect(self, attacker: str, *variants: Hashable) -> float:
        """The largest one of an attacker on some variants; 1 where the targets are independent."""
        return max(self.design_effects.get((variant, attacker), 1.0) for variant in variants)

    def _points(
        self, variants: Sequence[Hashable], attacker: str, heights: Heights | None = None
    ) -> Points:
        areas = self._each(variants, "auc", attacker)
        if heights is None:
            return Points(variants, areas, self._each(variants, "test accuracy"))
        given = [heights[variant] for variant in variants]
        return Points(variants, areas, np.array(given, np.float64))

    def _epochs(self, network: Hashable) -> list[Hashable]:
        """The checkpoints of a network (None: of the only one that has some), and its end."""
        networks = [network] if network is not None else list(self.checkpoints)
        if len(networks) != 1 or networks[0] not in self.checkpoints:
            raise ValueError(f"early stopping needs one network with checkpoints, not {networks}")
        return [*self.checkpoints[networks[0]], networks[0]]


def _restricted(stored: Scored, samples: IntArray) -> Scored:
    """An attack's scores `(T, n)` and members `(T, n)` or `(n,)` of some samples, by their index.
    ValueError if targets have different pools.
    """
    if np.ndim(stored["index"]) > 1:
        raise ValueError("targets have different pools: no sample is common to all")
    chosen = np.isin(stored["index"], samples)
    kept = {name: np.asarray(stored[name])[..., chosen] for name in ("scores", "member", "index")}
    return {**stored, **kept}


def possible_bias(placebo: Rows) -> Estimate:
    """The largest gain of `Comparison.placebo`: what a defence without effect may gain.

    Its interval is the one of its row, so it is not corrected for the choice among epochs.
    Unresolved rows are used only if no row is resolved. ValueError on no rows.
    """
    gains = [row[PLACEBO] for row in placebo]
    if not gains:
        raise ValueError("the possible bias needs a line of three points or more")
    known = [gain for gain in gains if gain.resolved]
    return max(known or gains, key=attrgetter("value"))


def described(variant: Hashable) -> str:
    """A variant's key in words: a named tuple prints itself, another tuple its parts."""
    if isinstance(variant, tuple) and not hasattr(variant, "_fields"):
        return ", ".join(map(str, variant))
    return str(variant)


def _accuracies(
    results: Any, signals: Mapping[Any, Sequence[Any]], name: str
) -> dict[Hashable, Sequence[float]]:
    """An accuracy of each network of each variant."""
    accuracies: dict[Hashable, Sequence[float]] = {}
    for variant, steps in signals.items():
        accuracies[variant] = [float(results[step][name]) for step in steps]
    return accuracies


def _fpr(metric: str) -> float:
    """The FPR of a metric such as "tpr@0.01"."""
    return float(metric.removeprefix("tpr@"))


def _removed_share(counts: Mapping[str, Any], pruner: str) -> float:
    """What a pruner removed of what it ranks: weights of the network, or filters."""
    if pruner in ("L1 unstructured", "random weights"):
        return float(counts["network"])
    return float(counts["filters_gone"].sum() / counts["filters"].sum())


def _listed(item: Any) -> list[Any]:
    """One or several, as a list: a tuple may be a key."""
    return item if isinstance(item, list) else [item]


def _unmatched(attacker: str, points: Points, line: Points) -> str:
    """Why variants cannot be compared with a line at matched AUC."""
    beyond = points.outside(line)
    outside = [one for one, out in zip(points.variants, beyond, strict=True) if out]
    names = " and ".join(described(one) for one in outside)
    areas = " and ".join(f"{area:.3f}" for area in points.mean_areas[beyond])
    first = line.mean_areas.min()
    last = line.mean_areas.max()
    return (
        f"the AUC of {attacker} on {names} is {areas}; the networks to compare with have AUCs of "
        f"{first:.3f} to {last:.3f}, so none matches"
    )
