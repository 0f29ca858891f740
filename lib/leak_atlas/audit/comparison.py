"""Ways to train the same models, side by side: what each measures, and by how much two differ."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from leak_atlas.audit.estimates import Estimate, moderate
from leak_atlas.audit.rates import FloatArray, auc, tpr_label
from leak_atlas.audit.samples import delong_difference
from leak_atlas.audit.targets import (
    HEADLINE_FPRS,
    Scored,
    audit,
    over,
    own_accuracy,
    own_rates,
    paired_difference,
    pooled,
    units,
)

__all__ = ["Comparison"]

Pair = tuple[Hashable, Hashable]
LABELS = {
    "auc": "AUC",
    "accuracy": "accuracy at its own threshold",
    "majority": "accuracy of a majority guess",
    "best_balanced_accuracy": "balanced accuracy at the best threshold (an oracle's)",
}


@dataclass(frozen=True)
class Comparison:
    """Each way's test accuracy `(n,)`, and what each attacker scored: `scores (T, N)` and `member
    (T, N)` or `(N,)`.

    The units of all ways are the same in the same order (their seeds, members and initialisations),
    so differences are paired. Units are the targets of one attack; where they are each other's
    shadows, `design_effects` tell by how much the variance of their mean AUC grows. Or, where a way
    has a list of attacks, units are these repeated experiments (several victims, several seeds),
    each with the mean of its targets.

    `family` declares pairs of ways whose AUC differences belong together: their variances are
    moderated (`moderate`, over all pairs and attackers), expected from samples by DeLong's paired
    variance.
    """

    accuracies: Mapping[Hashable, Sequence[float]]
    # by way and attacker, as `Attack` stores them
    attacks: Mapping[tuple[Hashable, str], Scored | Sequence[Scored]]
    design_effects: Mapping[tuple[Hashable, str], float] = field(default_factory=dict)
    family: Sequence[Pair] = ()

    @classmethod
    def of(
        cls,
        results: Any,
        signals: Mapping[Any, Iterable[Any]],
        attacks: Mapping[Any, Any],
        family: Sequence[Pair] = (),
    ) -> Comparison:
        """From what `lab.realize` gave: each way's `Signals`, one a unit, and its `Attack` by
        attacker.

        Repeated experiments: a list of an `Attack` each, and for each a `Signals` or the list of
        its targets'.
        """

        def read(asked: Any, what: Any) -> Any:
            return [what(one) for one in asked] if isinstance(asked, list | tuple) else what(asked)

        def accuracy(signal: Any) -> float:
            return float(results[signal]["accuracy_test"])

        return cls(
            {
                way: [float(np.mean(read(unit, accuracy))) for unit in each]
                for way, each in signals.items()
            },
            {key: read(attack, results.__getitem__) for key, attack in attacks.items()},
            {key: getattr(attack, "design_effect", 1.0) for key, attack in attacks.items()},
            family,
        )

    def accuracy(self, way: Hashable) -> Estimate:
        return over(self.accuracies[way])

    def leak(
        self, way: Hashable, attacker: str, fprs: Sequence[float] = HEADLINE_FPRS
    ) -> dict[str, Estimate]:
        """As `audit`: AUC, accuracies, TPRs. Tables, figures and claims ask for the same ones: made
        once.
        """
        asked = way, attacker, tuple(fprs)
        if asked not in self._leaks:
            self._leaks[asked] = audit(
                self.attacks[way, attacker], fprs, self._design_effect(attacker, way)
            )
        return dict(self._leaks[asked])

    def rows(
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
        """A table's rows, one a way: its test accuracy, and of each attacker (all by default) the
        `numbers` of `leak`.

        A number that an attacker does not have is left out; a TPR stands under its `tpr_label`.
        """
        out = []
        for way in self.accuracies:
            row = {"way": ", ".join(map(str, way)) if isinstance(way, tuple) else str(way)}
            out.append(row | {"test accuracy": self.accuracy(way)})
            for name in attackers or dict.fromkeys(key[1] for key in self.attacks):
                if (way, name) in self.attacks:
                    rates = {
                        number: float(number[7:-1]) / 100
                        for number in numbers
                        if number.startswith("tpr_at_")
                    }
                    leak = self.leak(way, name, list(rates.values()))
                    outside = min(
                        np.sum(~np.asarray(one["member"]), axis=-1).min()
                        for one in self._found(way, name)
                    )
                    said = LABELS | {
                        number: tpr_label(fpr, outside) for number, fpr in rates.items()
                    }
                    out[-1] |= {
                        f"{name}, {said[number]}": leak[number]
                        for number in numbers
                        if number in leak
                    }
        return out

    def plane(
        self,
        lines: Mapping[str, Sequence[Hashable]],
        attacker: str,
        number: str = "auc",
        panel: str = "",
    ) -> list[dict[str, Any]]:
        """Rows for `report.tradeoff`: the ways of each line, in order, with test accuracy and a
        number of `leak`.
        """
        return [
            {
                "variant": name,
                "attack": panel or attacker,
                "accuracy": self.accuracy(way),
                "auc": leak[number],
            }
            for name, ways in lines.items()
            for way in ways
            for leak in [self.leak(way, attacker)]
        ]

    def more_accurate(self, one: Hashable, other: Hashable) -> Estimate:
        """Test accuracy of `one` minus that of `other`."""
        return paired_difference(self.accuracies[one], self.accuracies[other])

    def more_leaky(
        self, one: Hashable, other: Hashable, attacker: str, fpr: float | None = None
    ) -> Estimate:
        """AUC of `one` minus that of `other`; or their TPRs at an FPR, where both have as many
        non-members.

        The interval of a difference of TPRs is never narrower than what the pooled counts allow
        (Newcombe 1998, with Clopper-Pearson's intervals), or two rows of zeros would claim
        certainty.
        """
        if fpr is None:
            if (other, one, attacker) in self._moderated:
                return -self._moderated[other, one, attacker]
            return self._moderated.get((one, other, attacker)) or self._difference(
                one, other, attacker
            )
        (rates, ends, shown), (others, their_ends, theirs) = (
            pooled(self._found(w, attacker), fpr) for w in (one, other)
        )
        mean, (low, high) = paired_difference(rates, others), np.subtract(ends, rates.mean())
        other_low, other_high = np.subtract(their_ends, others.mean())
        least, most = mean.value - np.hypot(low, other_high), mean.value + np.hypot(high, other_low)
        shown &= mean.resolved and theirs
        return replace(mean.widened(float(least), float(most)), resolved=shown)

    def reached(
        self, *pairs: Pair, number: Literal["accuracy", "balanced", "auc"] = "accuracy"
    ) -> FloatArray:
        """What attackers reach on each unit, `(n,)`: the mean over pairs of a way and an attacker.

        `accuracy` is that at the attacker's own thresholds, `balanced` the mean of those of members
        and of non-members: ValueError where one names none.
        """

        def read(way: Hashable, attacker: str) -> FloatArray | None:
            if number == "auc":
                return self._areas(way, attacker)
            if number == "accuracy":
                return own_accuracy(self._found(way, attacker))
            tpr, fpr = own_rates(self._found(way, attacker))
            return (tpr + 1 - fpr) / 2

        each = [read(way, str(attacker)) for way, attacker in pairs]
        if any(one is None for one in each):
            raise ValueError(
                f"{' and '.join(dict.fromkeys(str(name) for _, name in pairs))} need own thresholds"
            )
        return np.asarray(np.mean(each, axis=0))  # type: ignore[arg-type]

    def more_right(self, one: Pair, other: Pair) -> Estimate:
        """Attack accuracy of `one`, a way and an attacker, at that attacker's own thresholds, minus
        that of `other`.

        ValueError where one of them names no threshold.
        """
        return self.stronger([one], [other])

    def stronger(
        self,
        ones: Sequence[Pair],
        others: Sequence[Pair],
        number: Literal["accuracy", "auc"] = "accuracy",
    ) -> Estimate:
        """What `ones` reach in the mean minus what `others` do, see `reached`."""
        effect = (
            max(self._design_effect(str(name), way) for way, name in (*ones, *others))
            if number == "auc"
            else 1.0
        )
        first, second = self.reached(*ones, number=number), self.reached(*others, number=number)
        return paired_difference(first, second, design_effect=effect)

    def better_curve(
        self, ones: Sequence[Hashable], others: Sequence[Hashable], attacker: str
    ) -> Estimate:
        """The area that the strengths `ones` dominate in the plane of accuracy and AUC, minus that
        of `others`.

        A point dominates all that is less accurate and leaks more: the larger area belongs to the
        curve that lies further down and right, over its whole range (the hypervolume of Zitzler &
        Thiele 1999, of one target at a time, counted from accuracy 0 and AUC 1).
        """
        first, second = (self._dominated(ways, attacker) for ways in (ones, others))
        return paired_difference(
            first, second, design_effect=self._design_effect(attacker, *ones, *others)
        )

    def beside_line(
        self,
        way: Hashable | list[Hashable],
        line: Sequence[Hashable],
        attacker: str,
        other: Hashable | list[Hashable] | None = None,
        heights: Mapping[Hashable, Sequence[float]] | None = None,
    ) -> Estimate:
        """Test accuracy of `way` minus that of a `line` at equal leak; minus the same of an `other`
        way, if any.

        The line joins ways that belong together (a network's epochs, a defence's strengths) in the
        order of their AUC, for each unit its own. At equal leak rather than at equal accuracy,
        since epochs go on to leak where they have ceased to learn. `heights` compares something
        else than test accuracy, `(n,)` of each way. A list of ways (all strengths of a defence) is
        compared by their mean, each at its own leak.

        Beyond its ends the line is level, which is a guess: where more than a quarter of the units
        of a way (or of a list of ways) lie there, nothing is resolved. ValueError on a line of
        fewer than two ways.
        """
        if len(line) < 2:
            raise ValueError("a line joins two ways or more")
        high = self.accuracies if heights is None else heights
        areas = np.array([self._areas(each, attacker) for each in line]).T
        order = np.argsort(areas, axis=1, kind="stable")
        levels = np.take_along_axis(np.array([high[each] for each in line]).T, order, axis=1)
        areas = np.take_along_axis(areas, order, axis=1)
        sides = [
            side if isinstance(side, list) else [side]
            for side in ((way,) if other is None else (way, other))
        ]
        off, beyond = [], []
        for side in sides:
            leak = np.array([self._areas(each, attacker) for each in side])
            met = np.array(
                [
                    [np.interp(*unit) for unit in zip(own, areas, levels, strict=True)]
                    for own in leak
                ]
            )
            off.append((np.array([high[each] for each in side]) - met).mean(axis=0))
            beyond.append(((leak < areas[:, 0]) | (leak > areas[:, -1])).mean())
        effect = self._design_effect(attacker, *(each for side in sides for each in side), *line)
        difference = off[0] if other is None else off[0] - off[1]
        return over(difference, design_effect=effect, resolved=bool(max(beyond) <= 0.25))

    def _found(self, way: Hashable, attacker: str) -> list[Scored]:
        found = self.attacks[way, attacker]
        return [found] if isinstance(found, Mapping) else list(found)

    def _design_effect(self, attacker: str, *ways: Hashable) -> float:
        """Of a list of attacks 1, as experiments are independent."""
        return max(self.design_effects.get((way, attacker), 1.0) for way in ways)

    def _areas(self, way: Hashable, attacker: str) -> FloatArray:
        return units(self._found(way, attacker), auc)

    def _difference(self, one: Hashable, other: Hashable, attacker: str) -> Estimate:
        effect = self._design_effect(attacker, one, other)
        return paired_difference(
            self._areas(one, attacker), self._areas(other, attacker), design_effect=effect
        )

    @cached_property
    def _leaks(self) -> dict[tuple[Hashable, str, tuple[float, ...]], dict[str, Estimate]]:
        return {}

    @cached_property
    def _moderated(self) -> dict[tuple[Hashable, Hashable, str], Estimate]:
        attackers = dict.fromkeys(attacker for _, attacker in self.attacks)
        pairs = [
            (*pair, a)
            for pair in self.family
            for a in attackers
            if all((way, a) in self.attacks for way in pair)
        ]
        if not pairs:
            return {}
        found = moderate(
            [self._difference(*pair) for pair in pairs], [self._expected(*pair) for pair in pairs]
        )
        return dict(zip(pairs, found, strict=True))

    def _expected(self, one: Hashable, other: Hashable, attacker: str) -> float:
        """The squared error of `_difference` from samples alone."""
        experiments = []
        for pair in zip(self._found(one, attacker), self._found(other, attacker), strict=True):
            scores = [np.atleast_2d(each["scores"]) for each in pair]
            inside = [
                np.broadcast_to(each["member"], rows.shape)
                for each, rows in zip(pair, scores, strict=True)
            ]
            spread = [delong_difference(*target) for target in zip(*scores, *inside, strict=True)]
            experiments.append(np.mean(spread) / len(spread))
        return float(np.mean(experiments) / len(experiments)) * self._design_effect(
            attacker, one, other
        )

    def _dominated(self, ways: Sequence[Hashable], attacker: str) -> FloatArray:
        """`(n,)`."""
        private = 1 - np.array([self._areas(way, attacker) for way in ways])
        accuracy = np.array([self.accuracies[way] for way in ways], dtype=np.float64)
        order = np.argsort(-accuracy, axis=0)
        steps = np.take_along_axis(accuracy, order, axis=0)
        heights = np.maximum.accumulate(np.take_along_axis(private, order, axis=0), axis=0)
        widths = steps - np.vstack([steps[1:], np.zeros_like(steps[:1])])
        return np.asarray((widths * heights).sum(axis=0))
