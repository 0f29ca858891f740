"""What makes an audit worthless: swapped arrays, shadow models unlike the target, a model that
reads other inputs here than in its training.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import special

from leak_atlas import BadInput, audit
from leak_atlas.attacks.signals import log_confidence
from leak_atlas.audit import BoolArray, FloatArray
from leak_atlas.data.designs import Role
from leak_atlas.engine.compute import Arrays
from leak_atlas.own.attacks import THRESHOLDS
from leak_atlas.own.logits import Logits
from leak_atlas.recipe import ImportedModel

# Probability that one warning, of `member` or of `in_shadow`, is given where nothing leaks.
RISK = 0.005
# Standard errors above agreement by chance up to which predictions say nothing of labels.
BY_CHANCE = 3.0
# These attacks do not look at the label, or learn their orientation: below 0.5 they may be right.
UNORIENTED = ("entropy", "largest posterior", "attack network")
UNAWARE = (*THRESHOLDS, "BASE", "RMIA online")  # these attacks do not read `in_shadow`
# Largest difference between the accuracies of target and shadow models without a warning. In the
# example page's setting RMIA loses .015 of AUC at .024 on members, and .034 at .05, in either
# direction; LiRA's AUC was .35 where shadow models had .72 on non-members and the target .97.
ALIKE = {"members": 0.03, "non_members": 0.1}
LEVEL = 0.99  # of the interval beyond which a known accuracy is another one
LABELS_OF = {
    "target": "labels",
    "shadows": "labels",
    "population": "population_labels",
    "population_shadows": "population_labels",
}


def first_query(logits: NDArray) -> NDArray:
    """The first query of each sample: `(M, N, C)` of `(M, N, C)` or `(M, N, A, C)`."""
    return logits if logits.ndim == 3 else logits[:, :, 0]


def accuracy(logits: NDArray, labels: NDArray, inside: BoolArray) -> dict[str, float]:
    """Shares of members and of non-members that models with logits `(M, N, ...)` classify
    correctly, all models together, where they trained on the samples `inside (M, N)`.

    A side without samples is left out.
    """
    right = first_query(logits).argmax(axis=-1) == labels
    sides = {"members": right[inside], "non_members": right[~inside]}
    return {side: float(each.mean()) for side, each in sides.items() if each.size}


def accuracies(arrays: Logits) -> dict[str, dict[str, float]]:
    """`accuracy` of the target and of the shadow models."""
    shares = {"target": accuracy(arrays.target[None], arrays.labels, arrays.member[None])}
    if arrays.shadows is not None:
        shares["shadow models"] = accuracy(arrays.shadows, arrays.labels, arrays.trained)
    return shares


def in_words(shares: Mapping[str, float]) -> str:
    """What `accuracy` gives, in words."""
    sides = []
    for side, share in shares.items():
        sides.append(f"{100 * share:.1f} % on {side.replace('_', '-')}")
    return " and ".join(sides)


# ---------------------------------------------------------------- swapped arrays


def warnings(arrays: Logits, scores: Mapping[str, FloatArray]) -> tuple[str, ...]:
    """What looks swapped, a line each, which names the likely mistake; none: nothing does.

    `scores (N,)` of each attack, NaN: not scored. Where nothing leaks a warning is given with a
    probability of at most 2 `RISK`, however many attacks and shadow models there are.
    """
    if wrong := _labels(arrays):  # all else would follow from it
        return wrong
    swapped = _in_shadow(arrays)
    oriented = [name for name in scores if name not in UNORIENTED]
    if swapped:
        oriented = [name for name in oriented if name in UNAWARE]
    return swapped + _member(arrays, {name: scores[name] for name in oriented})


def _labels(arrays: Logits) -> tuple[str, ...]:
    """Warnings where models predict the labels no better than by chance, and worse than the largest
    class.
    """
    lines: dict[str, str] = {}
    for array, name in LABELS_OF.items():
        if array not in arrays.given or name in lines:
            continue
        logits = arrays.given[array]
        labels = arrays.given[name]
        classes = logits.shape[-1]
        models = logits if array.endswith("shadows") else logits[None]
        guesses = first_query(models).argmax(axis=-1)
        shares = np.bincount(labels, minlength=classes) / labels.size
        guessed = np.bincount(guesses.ravel(), minlength=classes) / guesses.size
        chance = float(shares @ guessed)
        error = np.sqrt(chance * (1 - chance) / labels.size)
        right = float(np.mean(guesses == labels))
        largest = shares.max()
        if right < largest and right <= chance + BY_CHANCE * error:
            lines[name] = (
                f"`{name}` look shifted, or `{array}` is in another order: {100 * right:.1f} % "
                f"are classified correctly, and the largest class has {100 * largest:.1f} %."
            )
    return tuple(lines.values())


def _deviation(scores: FloatArray, inside: BoolArray) -> float:
    """How far an AUC lies above one half, in standard errors of scores that say nothing of
    membership (Mann-Whitney).

    Ties make that error smaller than it is taken to be.
    """
    members = int(inside.sum())
    others = inside.size - members
    error = np.sqrt((inside.size + 1) / (12 * members * others))
    return float((audit.auc(scores, inside) - 0.5) / error)


def _in_shadow(arrays: Logits) -> tuple[str, ...]:
    """A warning where shadow models know the samples outside their training sets better than those
    inside.
    """
    if arrays.shadows is None:
        return ()
    deviations = []
    for logits, inside in zip(first_query(arrays.shadows), arrays.trained, strict=True):
        if inside.any() and not inside.all():
            confidence = log_confidence(logits, arrays.labels)
            deviations.append(_deviation(confidence, inside))
    # However much the models depend on each other, the mean varies no more than each of them.
    if not deviations or special.ndtr(np.mean(deviations)) >= RISK:
        return ()
    known = in_words(accuracies(arrays)["shadow models"])
    return (
        "`in_shadow` looks inverted: shadow models have a smaller loss on samples that they did "
        f"not train on (accuracy {known}). If yours is True where a model did not train, bring "
        "~in_shadow.",
    )


def _member(arrays: Logits, scores: Mapping[str, FloatArray]) -> tuple[str, ...]:
    """A warning where some AUC lies below one half by more than chance gives to the lowest of so
    many attacks.
    """
    deviations = {}
    for name, values in scores.items():
        known = ~np.isnan(values)
        deviations[name] = _deviation(values[known], arrays.member[known])
    border = special.ndtri(RISK / max(1, len(scores)))
    low = [name for name, deviation in deviations.items() if deviation < border]
    if not low:
        return ()
    worst = min(low, key=deviations.__getitem__)
    known = ~np.isnan(scores[worst])
    auc = audit.auc_interval(scores[worst][known], arrays.member[known])
    seen = f"the AUC of {worst} is {auc}, significantly below 0.5"
    if set(low) & set(UNAWARE):
        return (
            f"`member` looks inverted: {seen}. It is True where the target trained on a sample; if "
            "yours is the opposite, bring ~member. Members and non-members of different "
            "distributions look like that too.",
        )
    return (
        f"`in_shadow` looks inverted or misplaced: {seen}, and that of the target's own loss is "
        "not. Row m of it belongs to shadows[m], column n to sample n.",
    )


# ---------------------------------------------------------------- unlike models


def odd_shadows(arrays: Logits) -> list[str]:
    """What is odd about the shadow models, a warning each."""
    lines = [unlike_shadows(arrays), telling_count(arrays)]
    return [line for line in lines if line]


def unlike_shadows(arrays: Logits) -> str:
    """A warning where the shadow models' accuracy on their own members or non-members is not the
    target's; "": it is.

    Attacks compare a sample's loss in the target with its losses in the shadow models. The more the
    trainings differ, the less that comparison says of membership.
    """
    if arrays.shadows is None:
        return ""
    target = accuracies(arrays)["target"]
    models = []
    for logits, inside in zip(arrays.shadows, arrays.trained, strict=True):
        models.append(accuracy(logits[None], arrays.labels, inside[None]))
    for side, largest in ALIKE.items():
        known = [model[side] for model in models if side in model]
        if not known or min(known) <= target[side] <= max(known):
            continue
        mean = float(np.mean(known))
        if abs(target[side] - mean) > largest:
            return (
                f"Warning: The shadow models are unlike your model: accuracy on "
                f"{side.replace('_', '-')} is {target[side]:.2f} in your model and {mean:.2f} in "
                "the shadow models. So attacks by shadow models are weaker than they could be. "
                "Train these as the target was trained: the same epochs, learning rate, "
                "augmentation and weight decay, on as many samples."
            )
    return ""


def telling_count(arrays: Logits) -> str:
    """A warning where the number of shadow models that trained on a sample identifies members, so
    that attacks may read it instead of the target; "": it does not.
    """
    trained, _ = arrays.counts
    if not arrays.models or np.ptp(trained) == 0:
        return ""
    auc = audit.auc_interval(trained, arrays.member, 0.99)
    if auc.low <= 0.5 <= auc.high:
        return ""
    return (
        "Warning: The number of shadow models that trained on a sample identifies members (AUC "
        f"{auc}, 99 %), whatever they learnt: attacks may find that. Draw their training sets "
        "without regard to `member`."
    )


def refuse_another_accuracy(target: ImportedModel, known: float | None) -> None:
    """Raises BadInput if the target's accuracy on the whole test part of its data set, computed
    now, is not the `known` one, or where that one is no share. None: nothing is computed.

    The known accuracy may be of other test samples, and rounded: it is another one where it is
    outside the measured one's binomial interval at `LEVEL`.
    """
    if known is None:
        return
    if isinstance(known, bool) or not isinstance(known, int | float) or not 0 <= known <= 1:
        raise BadInput(f"known_accuracy is a share of the test samples: 0.87, not {known!r}")
    right = _classified(target)
    low, high = audit.clopper_pearson(right.sum(), right.size, LEVEL)
    if not low <= known <= high:
        raise BadInput(
            f"the model's test accuracy is {right.mean():.3f} here, but known_accuracy is "
            f"{known:g}: it reads other inputs here than in your training. Check mean and std of "
            f"{target.data.name}, the order of its classes, the size of its images, and that its "
            "test part is yours"
        )


def _classified(target: ImportedModel) -> BoolArray:
    """Whether a model classifies each test sample of its data set correctly."""
    import torch

    from leak_atlas.data.resident import resident
    from leak_atlas.models.subject import device
    from leak_atlas.training import answers, imported

    data = resident(target.data, device())
    rows = torch.arange(data.train, len(data.labels))
    logits, _ = answers.logits(imported.network(target).to(device()), data, rows)
    right = logits.argmax(dim=1) == data.labels[data.train :].cpu()
    return np.asarray(right.numpy())


def known_or_asked(signals: Arrays, known: float | None) -> str:
    """A sentence on the test accuracy that `Signals` gives, and a question where none is known."""
    test = np.isin(signals["role"], (Role.NONMEMBER, Role.TEST))
    right = signals["logits"].argmax(axis=1) == signals["labels"]
    measured = f"Test accuracy of the model, measured here: {right[test].mean():.3f}."
    if known is not None:
        return f"{measured} You know {known:g}."
    return (
        f"{measured} **Is this the test accuracy that you know?** If not, the model reads other "
        "inputs here than in your training (mean and std, order of classes, size of the images), "
        "and all numbers on this page are wrong. Write the accuracy that you know as "
        "`known_accuracy`: then the audit stops if it measures another one."
    )
