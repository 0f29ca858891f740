"""Are the arrays what their names say? Warnings where members, shadow models or labels look
swapped.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from scipy import special

from leak_atlas import audit
from leak_atlas.attacks.signals import log_confidence
from leak_atlas.audit import BoolArray, FloatArray
from leak_atlas.own.accuracy import accuracies
from leak_atlas.own.logits import Logits, first_query

# probability that one warning, of `member` or of `in_shadow`, is given where nothing leaks
RISK = 0.005
# standard errors above agreement by chance up to which predictions say nothing of labels
BY_CHANCE = 3.0
OF_LABELS = {  # which labels belong to which logits
    "target": "labels",
    "shadows": "labels",
    "population": "population_labels",
    "population_shadows": "population_labels",
}
# They do not look at the label, or learn their orientation: below 0.5 they may be right.
UNORIENTED = ("entropy", "largest posterior", "attack network")


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
    oriented = {name: values for name, values in scores.items() if name not in UNORIENTED}
    if swapped:
        oriented = {name: values for name, values in oriented.items() if name in unaware}
    return (*swapped, *_member(arrays, oriented, unaware))


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
    judged = {}
    for name, values in scores.items():
        known = ~np.isnan(values)
        judged[name] = values[known], arrays.member[known]
    far = {name: _deviation(*values) for name, values in judged.items()}
    low = [name for name in far if len(far) * special.ndtr(far[name]) < RISK]
    if not low:
        return ()
    worst = min(low, key=far.__getitem__)
    auc = audit.auc_interval(*judged[worst])
    seen = f"the AUC of {worst} is {auc}, significantly below 0.5"
    if set(low) & set(unaware):
        return (
            f"`member` looks inverted: {seen}. It is True where the target trained on a sample; if "
            "yours is the opposite, bring ~member. Members and non-members of different "
            "distributions look like that too.",
        )
    return (
        f"`in_shadow` looks inverted or misplaced: {seen}, and that of the target's own loss is "
        "not. Row m of it belongs to shadows[m], column n to sample n.",
    )


def _in_shadow(arrays: Logits) -> tuple[str, ...]:
    """A warning where shadow models know the samples outside their training sets better than those
    inside.
    """
    if arrays.shadows is None or arrays.in_shadow is None:
        return ()
    models = zip(first_query(arrays.shadows), arrays.in_shadow, strict=True)
    far = [
        _deviation(log_confidence(z, arrays.labels), inside)
        for z, inside in models
        if inside.any() and not inside.all()
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
    lines: dict[str, str] = {}
    for array, name in OF_LABELS.items():
        logits, labels = getattr(arrays, array), getattr(arrays, name)
        if logits is None or name in lines:
            continue
        models = logits if array.endswith("shadows") else logits[None]
        if odd := _unlike(models, labels, name):
            lines[name] = f"`{name}` look shifted, or `{array}` is in another order: {odd}"
    return tuple(lines.values())


def _unlike(logits: np.ndarray, labels: np.ndarray, name: str) -> str:
    """What is odd about labels `(N,)` of logits `(M, N, ...)`; "": nothing."""
    guesses, classes = first_query(logits).argmax(axis=-1), logits.shape[-1]
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
