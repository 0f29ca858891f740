"""Ways to train the same models, side by side: what each measures, and by how much two differ."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lib.audit.estimates import Estimate
from lib.audit.rates import auc, is_resolved, tpr
from lib.audit.samples import clopper_pearson
from lib.audit.targets import CROSSED, audit, over, paired_difference


@dataclass(frozen=True)
class Comparison:
    """Each way's test accuracy `(T,)`, and what each attacker scored: `scores (T, N)` and `member (T, N)` or `(N,)`.

    The targets of all ways are the same models in the same order (their seeds, members and initialisations), so
    differences are paired; under an attack they are each other's shadows, which widens intervals by `CROSSED`.
    """

    accuracies: Mapping[Hashable, Sequence[float]]
    attacks: Mapping[tuple[Hashable, str], Mapping[str, Any]]  # by way and attacker, as `Attack` stores them

    @classmethod
    def of(
        cls,
        results: Any,
        signals: Mapping[Hashable, Iterable[Hashable]],
        attacks: Mapping[tuple[Hashable, str], Hashable],
    ) -> Comparison:
        """From what `lab.realize` gave: each way's `Signals` of its targets, each way's `Attack` by attacker."""
        accuracies = {way: [float(results[s]["accuracy_test"]) for s in each] for way, each in signals.items()}
        return cls(accuracies, {key: results[attack] for key, attack in attacks.items()})

    def accuracy(self, way: Hashable) -> Estimate:
        return over(self.accuracies[way])

    def leak(self, way: Hashable, attacker: str) -> dict[str, Estimate]:
        """As `audit`: AUC, best balanced accuracy, TPRs."""
        found = self.attacks[way, attacker]
        return audit(found["scores"], found["member"])

    def more_accurate(self, one: Hashable, other: Hashable) -> Estimate:
        """Test accuracy of `one` minus that of `other`."""
        return paired_difference(self.accuracies[one], self.accuracies[other])

    def more_leaky(self, one: Hashable, other: Hashable, attacker: str, fpr: float | None = None) -> Estimate:
        """AUC of `one` minus that of `other`; or their TPRs at an FPR, where both have as many non-members.

        The interval of a difference of TPRs is never narrower than what the pooled counts allow (Newcombe 1998, with
        Clopper-Pearson's intervals), or two rows of zeros would claim certainty.
        """
        both = [self.attacks[way, attacker] for way in (one, other)]
        if fpr is None:
            first, second = (auc(found["scores"], found["member"]) for found in both)
            return paired_difference(first, second, design_effect=CROSSED)
        rates, ends, resolved = [], [], True
        for found in both:
            rate = tpr(found["scores"], found["member"], fpr)
            members = np.broadcast_to(np.sum(found["member"], axis=-1), rate.shape)
            rates.append(rate)
            ends.append(clopper_pearson(np.rint(rate @ members), members.sum()) - rate.mean())
            resolved &= is_resolved(fpr, int(found["scores"].shape[1] - members.max()))
        (low, high), (other_low, other_high) = ends
        mean = paired_difference(rates[0], rates[1], design_effect=CROSSED)
        least, most = mean.value - np.hypot(low, other_high), mean.value + np.hypot(high, other_low)
        return Estimate(mean.value, min(mean.low, float(least)), max(mean.high, float(most)), mean.n, resolved)

    def better_curve(self, ones: Sequence[Hashable], others: Sequence[Hashable], attacker: str) -> Estimate:
        """The area that the strengths `ones` dominate in the plane of accuracy and AUC, minus that of `others`.

        A point dominates all that is less accurate and leaks more: the larger area belongs to the curve that lies
        further down and right, over its whole range (the hypervolume of Zitzler & Thiele 1999, of one target at a time,
        counted from accuracy 0 and AUC 1).
        """
        first, second = (self._dominated(ways, attacker) for ways in (ones, others))
        return paired_difference(first, second, design_effect=CROSSED)

    def _dominated(self, ways: Sequence[Hashable], attacker: str) -> NDArray[np.float64]:
        """`(T,)`."""
        found = [self.attacks[way, attacker] for way in ways]
        private = 1 - np.array([auc(each["scores"], each["member"]) for each in found])
        accuracy = np.array([self.accuracies[way] for way in ways], dtype=np.float64)
        order = np.argsort(-accuracy, axis=0)
        steps = np.take_along_axis(accuracy, order, axis=0)
        heights = np.maximum.accumulate(np.take_along_axis(private, order, axis=0), axis=0)
        widths = steps - np.vstack([steps[1:], np.zeros_like(steps[:1])])
        return np.asarray((widths * heights).sum(axis=0))
