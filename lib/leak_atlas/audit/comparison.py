"""Variants of the same networks, compared: what each measures, and by how much two differ."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from leak_atlas.audit.estimates import Estimate
from leak_atlas.audit.rates import FloatArray, auc, tpr_label
from leak_atlas.audit.targets import (
    HEADLINE_FPRS,
    Scored,
    TargetScores,
    audit,
    by_target,
    jackknife,
    mean_ci,
    own_accuracy,
    own_rates,
    paired_difference,
    units,
)

__all__ = ["Comparison", "described"]

Pair = tuple[Hashable, Hashable]
NETWORK = {"test accuracy": "test", "member accuracy": "member"}  # metrics that need no attacker
FINDS = 0.53  # least attack accuracy of an attack that finds members; a guess has 0.5
LABELS = {
    "auc": "AUC",
    "accuracy": "accuracy at its own threshold",
    "majority": "accuracy of a majority guess",
    "best_balanced_accuracy": "balanced accuracy at the best threshold (an oracle's)",
}


@dataclass(frozen=True)
class Points:
    """Points in the plane of AUC and another number: `areas` and `heights`, `(points, n)`, a column
    a unit.
    """

    areas: FloatArray
    heights: FloatArray

    def mean(self, units: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Both numbers of each point, `(points,)`, as means over some units."""
        return self.areas[:, units].mean(axis=1), self.heights[:, units].mean(axis=1)

    def above(self, line: Points, units: FloatArray) -> float:
        """How far these points lie above a line at their own AUC, in the mean over points.

        The line joins the means over units in the order of their AUC. It is linear between points,
        and level beyond its ends.
        """
        areas, heights = self.mean(units)
        along, height = line.mean(units)
        order = np.argsort(along, kind="stable")
        return float(np.mean(heights - np.interp(areas, along[order], height[order])))

    def outside(self, line: Points) -> bool:
        """Whether the mean AUC of a point lies beyond the ends of a line."""
        areas, ends = self.areas.mean(axis=1), line.areas.mean(axis=1)
        return bool(areas.min() < ends.min() or areas.max() > ends.max())


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

    accuracies: Mapping[Hashable, Sequence[float]]
    # by variant and attacker, as `Attack` stores them
    attacks: Mapping[tuple[Hashable, str], Scored | Sequence[Scored]]
    design_effects: Mapping[tuple[Hashable, str], float] = field(default_factory=dict)
    members: Mapping[Hashable, Sequence[float]] = field(default_factory=dict)
    checkpoints: Mapping[Hashable, Sequence[Hashable]] = field(default_factory=dict)
    results: Any = field(default=None, repr=False, compare=False)
    _leaks: dict[Any, dict[str, Estimate]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

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

        Repeated experiments: a list of an `Attack` each, and for each a `Signals` or the list of
        its targets'.
        """
        scored, effects = {}, {}
        for key, attack in attacks.items():
            several = isinstance(attack, list | tuple)
            scored[key] = [results[one] for one in attack] if several else results[attack]
            effects[key] = getattr(attack, "design_effect", 1.0)
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

    def leak(
        self, variant: Hashable, attacker: str, fprs: Sequence[float] = HEADLINE_FPRS
    ) -> dict[str, Estimate]:
        """As `audit`: AUC, accuracies, TPRs. Tables, figures and claims read the same ones, which
        are computed once.
        """
        key = variant, attacker, tuple(fprs)
        if key not in self._leaks:
            scored = self.attacks[variant, attacker]
            self._leaks[key] = audit(scored, fprs, self._design_effect(attacker, variant))
        return dict(self._leaks[key])

    def measured(self, variant: Hashable, attacker: str, metric: str = "auc") -> FloatArray:
        """A metric of each unit, `(n,)`.

        Metrics: "test accuracy" and "member accuracy" of the networks; of the attacker "auc", and
        at the attacker's own thresholds "accuracy" and "balanced" (the mean of the accuracies on
        members and on non-members). ValueError on another metric, and where the attacker names no
        threshold.
        """
        if metric in NETWORK:
            return np.asarray(self._networks(metric)[variant], np.float64)
        scored = self._scored(variant, attacker)
        if metric == "auc":
            return units(scored, auc)
        if metric not in ("accuracy", "balanced"):
            raise ValueError(f"there is no metric '{metric}'")
        right = own_accuracy(scored)
        if right is None:
            raise ValueError(f"{attacker} has no own thresholds")
        if metric == "accuracy":
            return right
        hits, alarms = own_rates(self.attacks[variant, attacker])
        return (hits + 1 - alarms) / 2

    def estimate(self, variant: Hashable, attacker: str, metric: str = "auc") -> Estimate:
        """A metric as figures and tables show it: the mean over units with its 95 % interval.

        Metrics as `measured`, "tpr@0.01" (at any FPR), and all of `leak`. KeyError where the
        attacker has none.
        """
        if metric in NETWORK:
            return mean_ci(self._networks(metric)[variant])
        if metric == "balanced":
            return mean_ci(self.measured(variant, attacker, metric), bounds=(0, 1))
        if not metric.startswith("tpr@"):
            return self.leak(variant, attacker)[metric]
        fpr = float(metric.removeprefix("tpr@"))
        return self.leak(variant, attacker, (fpr,))[f"tpr_at_{100 * fpr:g}%"]

    def rows(
        self,
        attacker: str,
        metric: str = "auc",
        names: Sequence[str] = (),
        variants: Iterable[Hashable] | None = None,
    ) -> list[dict[str, Any]]:
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
                row: dict[str, Any] = dict(zip(columns, parts, strict=True))
                rows.append(row | {"value": self.estimate(variant, attacker, metric)})
        return rows

    def table(
        self,
        attackers: Sequence[str] = (),
        numbers: Sequence[str] = (
            "auc",
            "accuracy",
            "majority",
            "best_balanced_accuracy",
            "tpr_at_1%",
        ),
    ) -> list[dict[str, Any]]:
        """A table's rows, one a variant: its test accuracy, and of each attacker (all by default)
        the `numbers` of `leak`.

        A number that an attacker does not have is left out; a TPR stands under its `tpr_label`.
        """
        fprs = [float(name[7:-1]) / 100 for name in numbers if name.startswith("tpr_at_")]
        rows = []
        for variant in self.accuracies:
            row: dict[str, Any] = {"variant": described(variant)}
            row["test accuracy"] = self.accuracy(variant)
            for attacker in attackers or self.attackers:
                if (variant, attacker) not in self.attacks:
                    continue
                leak = self.leak(variant, attacker, fprs)
                labels = self._labels(variant, attacker, fprs)
                for number in numbers:
                    if number in leak:
                        row[f"{attacker}, {labels[number]}"] = leak[number]
            rows.append(row)
        return rows

    def plane(
        self,
        lines: Mapping[str, Sequence[Hashable]],
        attacker: str,
        number: str = "auc",
        panel: str = "",
    ) -> list[dict[str, Any]]:
        """Rows for `report.tradeoff`: the variants of each line, in order, with test accuracy and a
        number of `leak`.
        """
        rows = []
        for name, variants in lines.items():
            for variant in variants:
                row: dict[str, Any] = {"variant": name, "attack": panel or attacker}
                row["accuracy"] = self.accuracy(variant)
                row["auc"] = self.estimate(variant, attacker, number)
                rows.append(row)
        return rows

    def frontier(
        self,
        attacker: str,
        early_stopping: Sequence[Hashable] = (),
        variants: Iterable[Hashable] | None = None,
        metric: str = "auc",
        panel: str = "",
    ) -> list[dict[str, Any]]:
        """Rows for `report.tradeoff`: variants, and a line of earlier epochs.

        Tuples with the same first part make a line (a defence's strengths), any other variant is a
        line of its own. The last line is `early_stopping`: the variants given, or else every
        network with its `checkpoints`. Variants that the attacker did not attack are left out.
        """
        epochs: dict[str, Sequence[Hashable]] = {"early stopping": early_stopping}
        if not early_stopping:
            epochs = {
                f"{described(network)}, by epoch": [*stops, network]
                for network, stops in self.checkpoints.items()
            }
        drawn = [variant for line in epochs.values() for variant in line]
        lines: dict[str, list[Hashable]] = {}
        for variant in self.variants if variants is None else variants:
            if variant not in drawn and (variant, attacker) in self.attacks:
                name = variant[0] if isinstance(variant, tuple) else variant
                lines.setdefault(str(name), []).append(variant)
        return self.plane(lines | epochs, attacker, metric, panel)

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
        if metric in NETWORK:
            accuracies = self._networks(metric)
            return paired_difference(accuracies[one], accuracies[other])
        return self.mean_contrast([(one, attacker)], [(other, against or attacker)], metric)

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
        each = [self.measured(variant, str(attacker), number) for variant, attacker in pairs]
        return np.asarray(np.mean(each, axis=0))

    def mean_contrast(
        self, ones: Sequence[Pair], others: Sequence[Pair], number: str = "accuracy"
    ) -> Estimate:
        """What `ones` reach in the mean minus what `others` do, see `mean_measured`."""
        effects = [self._design_effect(str(name), variant) for variant, name in (*ones, *others)]
        effect = max(effects) if number == "auc" else 1.0
        first = self.mean_measured(*ones, number=number)
        second = self.mean_measured(*others, number=number)
        return paired_difference(first, second, design_effect=effect)

    def most_accurate(
        self, attacker: str, others: Sequence[str], variants: Sequence[Hashable]
    ) -> Estimate:
        """Share of a unit's variants on which none of the other attackers is more accurate, each at
        its own thresholds. A tie counts.
        """
        own = self._own(attacker, variants)
        best = np.max([self._own(name, variants) for name in others], axis=0)
        return mean_ci((own >= best).mean(axis=0), bounds=(0, 1))

    def gain_minus_cost(
        self, defended: Sequence[Hashable], undefended: Sequence[Hashable], attacker: str
    ) -> FloatArray:
        """Attack accuracy that a defence takes from an attacker minus the test accuracy that it
        costs, `(n,)`: the mean over several variants with the defence and their counterparts.
        """
        gains, costs = [], []
        for one, other in zip(defended, undefended, strict=True):
            found = [self.measured(v, attacker, "accuracy") for v in (other, one)]
            right = [self.measured(v, attacker, "test accuracy") for v in (other, one)]
            gains.append(found[0] - found[1])
            costs.append(right[0] - right[1])
        return np.asarray(np.mean(gains, axis=0) - np.mean(costs, axis=0))

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
        fits = self._mean_of("member accuracy", undefended)
        fits_defended = self._mean_of("member accuracy", defended)
        found = mean_ci(self._own(attacker, undefended).mean(axis=0))
        checks: dict[str, Estimate | bool] = {
            f"{attacker} finds members without a defence": found.low > FINDS,
            f"{name} lowers the accuracy on members": paired_difference(fits, fits_defended),
        }
        if keeps:
            least = keeps * self._mean_of("test accuracy", undefended).mean()
            kept = bool(self._mean_of("test accuracy", defended).mean() >= least)
            checks[f"{name} keeps {keeps:.0%} of the test accuracy"] = kept
        return checks

    def better_curve(
        self, ones: Sequence[Hashable], others: Sequence[Hashable], attacker: str
    ) -> Estimate:
        """The area that the strengths `ones` dominate in the plane of accuracy and AUC, minus that
        of `others`.

        A point dominates all that is less accurate and leaks more: the larger area belongs to the
        curve that lies further down and right, over its whole range (the hypervolume of Zitzler &
        Thiele 1999, of one target at a time, counted from accuracy 0 and AUC 1).
        """
        first, second = self._dominated(ones, attacker), self._dominated(others, attacker)
        effect = self._design_effect(attacker, *ones, *others)
        return paired_difference(first, second, design_effect=effect)

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

    def at_matched_auc(
        self,
        variant: Hashable | list[Hashable],
        line: Sequence[Hashable],
        attacker: str,
        other: Hashable | list[Hashable] | None = None,
        heights: Mapping[Hashable, Sequence[float]] | None = None,
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
        sides = [_listed(variant)] if other is None else [_listed(variant), _listed(other)]
        joined = self._points(line, attacker, heights)
        compared = [self._points(side, attacker, heights) for side in sides]

        def gap(units: FloatArray) -> float:
            above = [points.above(joined, units) for points in compared]
            return above[0] if other is None else above[0] - above[1]

        reasons = [
            _unmatched(side, attacker, points, joined)
            for side, points in zip(sides, compared, strict=True)
            if points.outside(joined)
        ]
        effect = self._design_effect(attacker, *line, *(v for side in sides for v in side))
        estimate = jackknife(gap, joined.areas.shape[1], effect, resolved=not reasons)
        return replace(estimate, reason="; ".join(reasons))

    def placebo(self, attacker: str, network: Hashable = None) -> list[dict[str, Any]]:
        """Rows for `report.table`: what `early_stopping` gives for the network's own epochs, each
        compared with the others.

        The true value is 0, but for the bend of the curve between two epochs: a value above 0 is
        the most by which the comparison can favour a defence there. The first and the last epoch
        have no epochs on both sides, and are left out. ValueError as `early_stopping`.
        """
        line = self._epochs(network)
        rows = []
        for epoch in line[1:-1]:
            others = [one for one in line if one != epoch]
            gain = self.at_matched_auc(epoch, others, attacker)
            rows.append({"stopped early": described(epoch), "minus the other epochs": gain})
        return rows

    def with_strongest(self, name: str) -> Comparison:
        """The same comparison with one more attacker, `name`: on each variant it is the attacker
        with the highest mean AUC there.
        """
        attacks, effects = dict(self.attacks), dict(self.design_effects)
        for variant in self.variants:
            strongest = variant, self.strongest(variant)
            attacks[variant, name] = self.attacks[strongest]
            effects[variant, name] = self.design_effects.get(strongest, 1.0)
        return replace(self, attacks=attacks, design_effects=effects)

    def strongest(self, variant: Hashable) -> str:
        """The attacker with the highest mean AUC on a variant."""
        named = [attacker for one, attacker in self.attacks if one == variant]
        return max(named, key=lambda attacker: self.measured(variant, attacker).mean())

    def pruned_as_asked(
        self, removed: Mapping[tuple[str, float], Sequence[Any]], slack: float = 0.03
    ) -> dict[str, bool]:
        """Whether each pruner removed the share that it was asked for: checks for `report.judge`.

        `removed` has the `Sparsity` of each target by pruner and sparsity. Unstructured pruners
        count weights of the network, the others filters of the convolutions. The target with the
        smallest share counts; it may lack `slack`.
        """
        checks = {}
        for (pruner, sparsity), steps in removed.items():
            shares = [_removed_share(self.results[step], pruner) for step in steps]
            checks[f"{pruner} removes {sparsity:.0%}"] = min(shares) > sparsity - slack
        return checks

    @property
    def variants(self) -> list[Hashable]:
        """All variants, in their order."""
        return list(dict.fromkeys([*self.accuracies, *(variant for variant, _ in self.attacks)]))

    @property
    def attackers(self) -> list[str]:
        """The names of all attackers, in their order."""
        return list(dict.fromkeys(name for _, name in self.attacks))

    def _own(self, attacker: str, variants: Sequence[Hashable]) -> FloatArray:
        """Attack accuracy at its own thresholds of each variant in each unit, `(len(variants), n)`."""
        return np.array([self.measured(variant, attacker, "accuracy") for variant in variants])

    def _mean_of(self, metric: str, variants: Sequence[Hashable]) -> FloatArray:
        """An accuracy of each unit's networks, mean over variants, `(n,)`."""
        return _stacked(self._networks(metric), variants).mean(axis=0)

    def _networks(self, metric: str) -> Mapping[Hashable, Sequence[float]]:
        return self.accuracies if metric == "test accuracy" else self.members

    def _labels(self, variant: Hashable, attacker: str, fprs: Sequence[float]) -> dict[str, str]:
        """What a table's columns are called; of a TPR it depends on the number of non-members."""
        outside = min(one.non_members for one in self._scored(variant, attacker))
        return LABELS | {f"tpr_at_{100 * fpr:g}%": tpr_label(fpr, outside) for fpr in fprs}

    def _scored(self, variant: Hashable, attacker: str) -> list[TargetScores]:
        return by_target(self.attacks[variant, attacker])

    def _design_effect(self, attacker: str, *variants: Hashable) -> float:
        """Of a list of attacks 1, as experiments are independent."""
        return max(self.design_effects.get((variant, attacker), 1.0) for variant in variants)

    def _areas(self, variants: Sequence[Hashable], attacker: str) -> FloatArray:
        """AUC of each variant in each unit, `(len(variants), n)`."""
        return np.array([self.measured(variant, attacker) for variant in variants])

    def _points(
        self,
        variants: Sequence[Hashable],
        attacker: str,
        heights: Mapping[Hashable, Sequence[float]] | None,
    ) -> Points:
        heights = self.accuracies if heights is None else heights
        return Points(self._areas(variants, attacker), _stacked(heights, variants))

    def _epochs(self, network: Hashable) -> list[Hashable]:
        """The checkpoints of a network (None: of the only one that has some), and its end."""
        networks = [network] if network is not None else list(self.checkpoints)
        if len(networks) != 1 or networks[0] not in self.checkpoints:
            raise ValueError(f"early stopping needs one network with checkpoints, not {networks}")
        return [*self.checkpoints[networks[0]], networks[0]]

    def _dominated(self, variants: Sequence[Hashable], attacker: str) -> FloatArray:
        """The area that the variants dominate in each unit, `(n,)`."""
        private, accuracy = 1 - self._areas(variants, attacker), _stacked(self.accuracies, variants)
        order = np.argsort(-accuracy, axis=0)
        steps = np.take_along_axis(accuracy, order, axis=0)
        heights = np.maximum.accumulate(np.take_along_axis(private, order, axis=0), axis=0)
        widths = -np.diff(steps, axis=0, append=0)
        return np.asarray((widths * heights).sum(axis=0))


def described(variant: Hashable) -> str:
    """A variant's key in words: a named tuple prints itself, another tuple its parts."""
    if isinstance(variant, tuple) and not hasattr(variant, "_fields"):
        return ", ".join(map(str, variant))
    return str(variant)


def _accuracies(
    results: Any, signals: Mapping[Any, Sequence[Any]], name: str
) -> dict[Hashable, Sequence[float]]:
    """An accuracy of each unit of each variant: of a network, or the mean of several."""
    accuracies: dict[Hashable, Sequence[float]] = {}
    for variant, units_ in signals.items():
        networks = [unit if isinstance(unit, list | tuple) else [unit] for unit in units_]
        accuracies[variant] = [_mean(results, unit, name) for unit in networks]
    return accuracies


def _mean(results: Any, steps: Sequence[Any], name: str) -> float:
    return float(np.mean([results[step][name] for step in steps]))


def _stacked(
    values: Mapping[Hashable, Sequence[float]], variants: Sequence[Hashable]
) -> FloatArray:
    """A number of each variant in each unit, `(len(variants), n)`."""
    return np.array([values[variant] for variant in variants], dtype=np.float64)


def _removed_share(counts: Mapping[str, Any], pruner: str) -> float:
    """What a pruner removed of what it ranks: weights of the network, or filters."""
    if pruner in ("L1 unstructured", "random weights"):
        return float(counts["network"])
    return float(counts["filters_gone"].sum() / counts["filters"].sum())


def _listed(item: Any) -> list[Any]:
    """One or several, as a list: a tuple may be a key."""
    return item if isinstance(item, list) else [item]


def _unmatched(side: Sequence[Hashable], attacker: str, points: Points, line: Points) -> str:
    """Why variants cannot be compared with a line at matched AUC."""
    names = " and ".join(map(described, side))
    ends = line.areas.mean(axis=1)
    areas = " and ".join(f"{area:.3f}" for area in points.areas.mean(axis=1))
    return (
        f"no epoch has the AUC of {attacker} on {names} (mean {areas}; "
        f"the epochs reach {ends.min():.3f} to {ends.max():.3f})"
    )
