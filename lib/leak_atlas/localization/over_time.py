"""The scores of an attack at each checkpoint of training, and jackknife intervals of measures.

A `Trajectory` has the scores; `leak_atlas.localization.trajectories` measures it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leak_atlas.audit import BoolArray, Estimate, FloatArray, IntArray
from leak_atlas.audit.samples import placements
from leak_atlas.audit.targets import Scored
from leak_atlas.localization import Arrays
from leak_atlas.recipe import Attack, Population, Signals

SPLITS = 20  # random halvings of samples and networks, whose differences give an interval
TRIES = 1000  # halvings of networks that are drawn before a single group is left out
LEAST = 2  # groups of networks without which the scores of a sample have no spread
ALL = slice(None)


@dataclass(frozen=True)
class Trajectory:
    """The scores that an attack gives n samples on J networks of one pool at E checkpoints.

    `epochs (E,)`, 0 for the initialisation; `scores (E, J, n)`; `member (J, n)`; `index (n,)`, the
    samples. `group (J,)` numbers what is independent: a complement pair, or a network alone.
    """

    epochs: IntArray
    scores: FloatArray
    member: BoolArray
    index: IntArray
    group: IntArray

    def part(
        self,
        networks: NDArray | slice = ALL,
        samples: NDArray | slice = ALL,
    ) -> Trajectory:
        """The trajectory of some networks and some samples only."""
        return Trajectory(
            self.epochs,
            self.scores[:, networks][:, :, samples],
            self.member[networks][:, samples],
            self.index[samples],
            self.group[networks],
        )


def trajectory(scored: Mapping[int, Scored], group: Sequence[int] | None = None) -> Trajectory:
    """The trajectory of what an `Attack` has stored at each checkpoint, by epoch.

    All judge the same samples of the same networks. `group (J,)` numbers what is independent;
    without it each network is a group.
    """
    epochs = sorted(scored)
    first = scored[epochs[0]]
    scores = np.stack([scored[epoch]["scores"] for epoch in epochs])
    member = np.broadcast_to(first["member"], scores.shape[1:])
    groups = np.arange(len(member)) if group is None else np.array(group)
    return Trajectory(
        np.array(epochs),
        scores,
        member,
        first["index"],
        groups,
    )


def read(results: Any, attacks: Mapping[int, Attack]) -> Trajectory:
    """The trajectory that `Population.attack_over_time` asked for, from what `lab.realize` gave.

    Groups are the pairs of the design, so that trajectories of one population's halves number them
    alike, as `across_halves` needs it.
    """
    scored = {epoch: results[attack] for epoch, attack in attacks.items()}
    targets = next(iter(attacks.values())).targets
    return trajectory(scored, Population(targets).complement_pairs)


def read_halves(
    results: Any, halves: Sequence[Sequence[Mapping[int, Attack]]]
) -> list[list[Trajectory]]:
    """The trajectories of both halves of each division of the networks, see `read`."""
    return [[read(results, half) for half in division] for division in halves]


def outputs(results: Any, signals: Mapping[int, Sequence[Signals]]) -> dict[int, list[Arrays]]:
    """What `Signals` of each network have stored, by epoch, from what `lab.realize` gave."""
    stored = {}
    for epoch, steps in signals.items():
        stored[epoch] = [results[step] for step in steps]
    return stored


def joined_by_rank(*trajectories: Trajectory) -> Trajectory:
    """One trajectory of the networks of several, where each network is judged at its own rates.

    At each checkpoint a score becomes the share of that network's non-members with lower scores
    (equal ones count half). So attacks are compared whose scores have different scales in each
    network: RMIA's, and those of learned attacks, of which each trajectory may have one. Each AUC
    is kept. All have the same checkpoints and samples.
    """
    first = trajectories[0]
    scores = []
    members = []
    groups = []
    used = 0
    for one in trajectories:
        scores.append(_shares_below(one))
        members.append(one.member)
        groups.append(used + _numbered(one.group))
        used += len(np.unique(one.group))
    return Trajectory(
        first.epochs,
        np.concatenate(scores, axis=1),
        np.concatenate(members),
        first.index,
        np.concatenate(groups),
    )


def _shares_below(one: Trajectory) -> FloatArray:
    """The share of a network's non-members with lower scores than each sample, `(E, J, n)`."""
    shares = np.empty(one.scores.shape)
    for network, inside in enumerate(one.member):
        scores = one.scores[:, network]
        shares[:, network] = placements(scores, scores[:, ~inside])
    return shares


def _numbered(group: IntArray) -> IntArray:
    """The same groups, numbered from 0."""
    return np.unique(group, return_inverse=True)[1]


def generalisation_gaps(one: Trajectory) -> FloatArray:
    """Mean score of members minus that of non-members at each checkpoint, `(E,)`.

    With `Threshold("loss", by_class=False)` it is the gap in loss, as scores are minus the loss.
    """
    inside = one.scores[:, one.member].mean(axis=1)
    return inside - one.scores[:, ~one.member].mean(axis=1)


# --- intervals ----------------------------------------------------------------------------------


def jackknife(measure: Callable[..., Any], *trajectories: Trajectory, **options: Any) -> Any:
    """`measure(*trajectories, **options)`, a number or an array, as Estimates (`interval`).

    Leaving out a group drops the scores on its networks; the other scores stay. The trajectories
    may be of one population or of independent ones. Raises ValueError if they have different
    numbers of groups, or a single one.
    """
    numbers = [_numbered(one.group) for one in trajectories]
    counts = {int(number.max()) + 1 for number in numbers}
    if len(counts) != 1 or counts == {1}:
        raise ValueError(
            "a jackknife needs two groups of networks or more, the same in each trajectory"
        )

    def measured(left_out: IntArray, half: Half | None) -> Any:
        parts = []
        for one, number in zip(trajectories, numbers, strict=True):
            kept = ~np.isin(number, left_out)
            parts.append(one.part(kept, samples_of(half, one)))
        return measure(*parts, **options)

    return interval(measured, [np.arange(counts.pop())])


def contrast(
    measure: Callable[..., Any],
    ones: Sequence[Trajectory],
    others: Sequence[Trajectory],
    **options: Any,
) -> Any:
    """`measure(*ones, **options)` minus `measure(*others, **options)`, as `jackknife` has it."""

    def difference(*both: Trajectory) -> FloatArray:
        first = both[: len(ones)]
        second = both[len(ones) :]
        return np.subtract(measure(*first, **options), measure(*second, **options))

    return jackknife(difference, *ones, *others)


Half = tuple[int, int]  # the number of a halving of the samples, and which of its two halves


def samples_of(half: Half | None, one: Trajectory) -> BoolArray:
    """The samples `(n,)` of a trajectory that lie in a random half; None: all of them."""
    n = len(one.index)
    if half is None:
        return np.ones(n, bool)
    halving, side = half
    first = np.random.default_rng(halving).permutation(n) < n // 2
    return ~first if side else first


def halves_of_networks(sets: Sequence[IntArray], halving: int) -> tuple[IntArray, IntArray]:
    """Two random halves of the groups of networks, each to be left out in its turn.

    At most one group is in neither. `sets` are the groups that are measured together. Two of each
    set stay; where that is impossible, a single group is left out.
    """
    groups = len(np.unique(np.concatenate(sets)))
    rng = np.random.default_rng(halving)
    for _ in range(TRIES):
        order = rng.permutation(groups)
        both = order[: groups // 2], order[-(groups // 2) :]
        staying = [(~np.isin(own, left_out)).sum() for own in sets for left_out in both]
        if min(staying) >= LEAST:
            return both
    return order[:1], order[1:2]


def interval(measured: Callable[[IntArray, Half | None], Any], sets: Sequence[IntArray]) -> Any:
    """Estimates of a number, or of an array, over other networks and other samples.

    `measured(left_out, half)` measures without some groups of networks, on a half of the samples;
    None: on all. `sets` are the groups that it measures together, numbered from 0.

    Networks and samples are crossed: each network answers about each sample. Given the networks,
    samples are independent. So the difference between two halves of the samples has the error of
    other samples, and of what a network has with a sample. What is missing is what networks do to
    all samples alike. By that alone, one half of the networks differs from the other in both halves
    of the samples: the covariance of these two differences is the variance of the networks, and is
    at least 0. Adding the errors of leaving out single samples and single networks would count
    twice what both share. Measures that flag samples change more when a single group is left out
    than they do with other networks.
    """
    groups = len(np.unique(np.concatenate(sets)))
    nobody = np.arange(0)
    squares, products = [], []
    for halving in range(SPLITS):
        first, second = halves_of_networks(sets, halving)
        whole, moved = [], []
        for side in (0, 1):
            whole.append(np.asarray(measured(nobody, (halving, side)), float))
            without_first = measured(first, (halving, side))
            moved.append(np.subtract(without_first, measured(second, (halving, side))))
        squares.append((whole[0] - whole[1]) ** 2 / 4)
        size = len(first)
        scale = (groups - size) ** 2 / (2 * size * groups)
        products.append(moved[0] * moved[1] * scale)
    by_samples = np.mean(squares, axis=0)
    by_networks = np.maximum(np.mean(products, axis=0), 0)
    value = np.asarray(measured(nobody, None), float)
    return _estimates(value, by_samples, by_networks, groups)


def _estimates(
    value: Any,
    by_samples: Any,
    by_networks: Any,
    groups: int,
) -> Any:
    """An Estimate of a number; of an array of numbers, lists in lists as deep as the array."""
    if value.ndim == 0:
        return _estimate(value, by_samples, by_networks, groups)
    rows = zip(value, by_samples, by_networks, strict=True)
    return [_estimates(*row, groups) for row in rows]


def _estimate(
    value: float,
    by_samples: float,
    by_networks: float,
    groups: int,
) -> Estimate:
    """Student's interval, from the variances over other samples and over other networks.

    Degrees of freedom are Satterthwaite's.
    """
    from scipy import special

    variance = by_samples + by_networks
    df = float(groups - 1)
    if variance > 0:
        of_samples = by_samples**2 / SPLITS
        of_networks = by_networks**2 / (groups - 1)
        df = float(variance**2 / (of_samples + of_networks))
    error = float(np.sqrt(variance))
    reach = float(special.stdtrit(df, 0.975)) * error
    value = float(value)
    return Estimate(
        value,
        value - reach,
        value + reach,
        groups,
        error=error,
        df=df,
    )
