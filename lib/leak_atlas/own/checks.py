"""Are the arrays what their names say? Accuracies, and warnings where members, shadow models or
labels look swapped.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
from scipy import special

from leak_atlas import audit
from leak_atlas.attacks.signals import log_confidence
from leak_atlas.audit import BoolArray, FloatArray
from leak_atlas.own.logits import Logits

# probability that one warning, of `member` or of `in_shadow`, is given where nothing leaks
RISK = 0.005
# standard errors above agreement by chance up to which predictions say nothing of labels
BY_CHANCE = 3.0
# of the accuracies on members of target and shadow models, from which on a note is given
DIFFERENCE = 0.05
# They do not look at the label, or learn their orientation: below 0.5 they may be right.
UNORIENTED = ("entropy", "largest posterior", "attack network")


class Accuracy(NamedTuple):
    """Shares of a model's members and non-members that it classifies correctly; NaN: there are
    none.
    """

    members: float
    non_members: float

    def __str__(self) -> str:
        names = ("on members", "on non-members")
        known = [
            (share, name) for share, name in zip(self, names, strict=True) if not np.isnan(share)
        ]
        return " and ".join(f"{100 * share:.1f} % {name}" for share, name in known)


def accuracies(arrays: Logits) -> dict[str, Accuracy]:
    """Accuracy of the target and, over all of them, of the shadow models, each on its own members
    and non-members.
    """
    found = {"target": _accuracy(_hits(arrays.target[None], arrays.labels), arrays.member[None])}
    if arrays.shadows is not None and arrays.in_shadow is not None:
        found["shadow models"] = _accuracy(_hits(arrays.shadows, arrays.labels), arrays.in_shadow)
    return found


def warnings(
    arrays: Logits, scores: Mapping[str, FloatArray], unaware: Collection[str]
) -> tuple[str, ...]:
    """What looks swapped, a line each, which names the likely mistake; none: nothing does.

    `scores (N,)` of each attack, NaN: not scored; `unaware` names those that do not read
    `in_shadow`. Where nothing leaks a warning is given with a probability of at most 2 `RISK`,
    however many attacks and shadow models there are.
    """
    if wrong := _labels(arrays):  # of which all else would follow
        return wrong
    swapped = _in_shadow(arrays)
    oriented = {name: each for name, each in scores.items() if name not in UNORIENTED}
    if swapped:
        oriented = {name: each for name, each in oriented.items() if name in unaware}
    return (*swapped, *_member(arrays, oriented, unaware))


def mismatch(arrays: Logits) -> tuple[str, ...]:
    """A note where shadow models fit their members otherwise than the target does: they are no
    copies of it.
    """
    found = accuracies(arrays)
    own, others = (
        found[name].members if name in found else np.nan for name in ("target", "shadow models")
    )
    if not abs(own - others) > DIFFERENCE:
        return ()
    lead = f"Shadow models classify {100 * others:.1f} % of their members correctly, the target {100 * own:.1f} %"
    return (
        f"{lead}. Attacks by shadow models may then be too weak: train these as the target was trained.",
    )


def _plain(logits: np.ndarray) -> np.ndarray:
    """The first query of each sample: `(M, N, C)` of `(M, N, C)` or `(M, N, A, C)`."""
    return logits if logits.ndim == 3 else logits[:, :, 0]


def _hits(logits: np.ndarray, labels: np.ndarray) -> BoolArray:
    """Whether each model classifies each sample correctly, `(M, N)`."""
    return np.asarray(_plain(logits).argmax(axis=-1) == labels)


def _accuracy(hits: BoolArray, inside: BoolArray) -> Accuracy:
    return Accuracy(
        *(float(hits[side].mean()) if side.any() else np.nan for side in (inside, ~inside))
    )


def _deviation(scores: FloatArray, inside: BoolArray) -> float:
    """How far an AUC lies above one half, in standard errors of scores that say nothing of
    membership (Mann-Whitney).

    Ties make that error smaller than it is taken to be.
    """
    members = int(inside.sum())
    others = inside.size - members
    error = np.sqrt((inside.size + 1) / (12 * members * others))
    return float((audit.auc(scores, inside) - 0.5) / error)


def _member(
    arrays: Logits, scores: Mapping[str, FloatArray], unaware: Collection[str]
) -> tuple[str, ...]:
    """A warning where some AUC lies below one half by more than chance gives to the lowest of so
    many attacks.
    """
    known = {name: ~np.isnan(each) for name, each in scores.items()}
    far = {
        name: _deviation(scores[name][known[name]], arrays.member[known[name]]) for name in scores
    }
    low = [name for name in far if len(far) * special.ndtr(far[name]) < RISK]
    if not low:
        return ()
    worst = min(low, key=far.__getitem__)
    number = audit.auc_interval(scores[worst][known[worst]], arrays.member[known[worst]])
    seen = f"the AUC of {worst} is {number}, significantly below 0.5"
    if set(low) & set(unaware):
        return (
            f"`member` looks inverted: {seen}. It is True where the target trained on a sample; if yours is the "
            "opposite, bring ~member. Members and non-members of different distributions look like that too.",
        )
    return (
        f"`in_shadow` looks inverted or misplaced: {seen}, and that of the target's own loss is not. Row m of it "
        "belongs to shadows[m], column n to sample n.",
    )


def _in_shadow(arrays: Logits) -> tuple[str, ...]:
    """A warning where shadow models know the samples outside their training sets better than those
    inside.
    """
    if arrays.shadows is None or arrays.in_shadow is None:
        return ()
    models = zip(_plain(arrays.shadows), arrays.in_shadow, strict=True)
    far = [
        _deviation(log_confidence(z, arrays.labels), own)
        for z, own in models
        if own.any() and not own.all()
    ]
    # However much the models depend on each other, the mean varies no more than each of them.
    if not far or special.ndtr(np.mean(far)) >= RISK:
        return ()
    return (
        "`in_shadow` looks inverted: shadow models have a smaller loss on samples that they did not train on (accuracy "
        f"{accuracies(arrays)['shadow models']}). If yours is True where a model did not train, bring ~in_shadow.",
    )


def _labels(arrays: Logits) -> tuple[str, ...]:
    """Warnings where models predict the labels no better than by chance, and worse than the largest
    class.
    """
    parts = {
        "target": (arrays.target[None], "labels", arrays.labels),
        "shadows": (arrays.shadows, "labels", arrays.labels),
        "population": (
            None if arrays.population is None else arrays.population[None],
            "population_labels",
            arrays.population_labels,
        ),
        "population_shadows": (
            arrays.population_shadows,
            "population_labels",
            arrays.population_labels,
        ),
    }
    found: dict[str, str] = {}
    for array, (logits, name, labels) in parts.items():
        if (
            logits is not None
            and labels is not None
            and name not in found
            and (odd := _unlike(logits, labels, name))
        ):
            found[name] = f"`{name}` look shifted, or `{array}` is in another order: {odd}"
    return tuple(found.values())


def _unlike(logits: np.ndarray, labels: np.ndarray, name: str) -> str:
    """What is odd about labels `(N,)` of logits `(M, N, ...)`; "": nothing."""
    guesses, classes = _plain(logits).argmax(axis=-1), logits.shape[-1]
    shares = np.bincount(labels, minlength=classes) / labels.size
    accuracy, largest = float(np.mean(guesses == labels)), float(shares.max())
    chance = float(shares @ np.bincount(guesses.ravel(), minlength=classes) / guesses.size)
    error = np.sqrt(chance * (1 - chance) / labels.size)
    if accuracy >= largest or accuracy > chance + BY_CHANCE * error:
        return ""
    moved = {
        f"{name} {sign} 1": float(np.mean(guesses == (labels + step) % classes))
        for sign, step in (("+", 1), ("-", -1))
    }
    better = max(moved, key=moved.__getitem__)
    clear = moved[better] > largest + BY_CHANCE * np.sqrt(largest * (1 - largest) / labels.size)
    hint = f" With {better} it is {100 * moved[better]:.1f} %." if clear else ""
    return f"{100 * accuracy:.1f} % are classified correctly, and the largest class has {100 * largest:.1f} %.{hint}"
