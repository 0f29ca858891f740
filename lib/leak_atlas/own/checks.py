"""What makes an audit worthless: swapped arrays, shadow models unlike the target, a model that
reads other inputs here than in its training.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from leak_atlas import BadInput, audit
from leak_atlas.attacks.signals import log_confidence
from leak_atlas.audit import BoolArray, FloatArray
from leak_atlas.data.designs import Role
from leak_atlas.engine.compute import Arrays
from leak_atlas.own.attacks import THRESHOLDS
from leak_atlas.own.logits import Logits
from leak_atlas.recipe import ImportedModel

# Probability that one warning, of `member` or of `in_shadow`, is given where nothing leaks. Those
# of `in_shadow`, inverted or in another order, are two.
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
    probability of at most 3 `RISK`, however many attacks and shadow models there are.
    """
    if wrong := _labels(arrays):  # all else would follow from it
        return wrong
    swapped = _in_shadow(arrays) or _rows(arrays)
    oriented = [name for name in scores if name not in UNORIENTED]
    if swapped:
        oriented = [name for name in oriented if name in UNAWARE]
    return swapped + _member(arrays, {name: scores[name] for name in oriented})


def _labels(arrays: Logits) -> tuple[str, ...]:
    """Warnings where models predict the labels no better than by chance, and worse than the largest
    class.

    Labels in another order look like that, and so does a population that cannot be predicted: a
    model that memorised random labels is no better on it.
    """
    lines: dict[str, str] = {}
    for array, name in LABELS_OF.items():
        if array not in arrays.given or name in lines:
            continue
        logits = arrays.given[array]
        labels = arrays.given[name]
        models = logits if array.endswith("shadows") else logits[None]
        guesses = first_query(models).argmax(axis=-1)
        right = float(np.mean(guesses == labels))
        largest = np.bincount(labels).max() / labels.size
        if right < largest and _by_chance(guesses, labels):
            whom = "samples outside their training sets" if name != "labels" else "the samples"
            lines[name] = (
                f"Models classify {whom} no better than by chance: {100 * right:.1f} % correctly in "
                f"`{array}`, and the largest class has {100 * largest:.1f} %. If your data are "
                f"learnable, `{name}` or `{array}` is shifted or in another order."
            )
    return tuple(lines.values())


def _by_chance(guesses: NDArray, labels: NDArray) -> bool:
    """Whether classes `(M, n)` that models predict agree with the labels `(n,)` no more often than
    they would in another order.
    """
    classes = 1 + max(int(guesses.max()), int(labels.max()))
    shares = np.bincount(labels, minlength=classes) / labels.size
    guessed = np.bincount(guesses.ravel(), minlength=classes) / guesses.size
    chance = float(shares @ guessed)
    error = np.sqrt(chance * (1 - chance) / labels.size)
    return bool(np.mean(guesses == labels) <= chance + BY_CHANCE * error)


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
    deviations = _deviations(arrays)
    # However much the models depend on each other, the mean varies no more than each of them.
    if not deviations or special.ndtr(np.mean(deviations)) >= RISK:
        return ()
    known = in_words(accuracies(arrays)["shadow models"])
    return (
        "`in_shadow` looks inverted: shadow models have a smaller loss on samples that they did "
        f"not train on (accuracy {known}). If yours is True where a model did not train, bring "
        "~in_shadow.",
    )


def _confidences(arrays: Logits) -> FloatArray:
    """The shadow models' log confidence in each sample's label, `(M, N)`."""
    confidences = np.empty(arrays.trained.shape)
    for place, logits in enumerate(arrays.given.get("shadows", ())):
        confidences[place] = log_confidence(first_query(logits[None])[0], arrays.labels)
    return confidences


def _deviations(arrays: Logits) -> list[float]:
    """`_deviation` of each shadow model's confidence, where it trained on some samples and not on
    all.
    """
    deviations = []
    for confidence, inside in zip(_confidences(arrays), arrays.trained, strict=True):
        if inside.any() and not inside.all():
            deviations.append(_deviation(confidence, inside))
    return deviations


def _matches(arrays: Logits) -> FloatArray:
    """How well each row of `in_shadow` fits each shadow model, `(M, M)`: what `_deviation` gives of
    model m's confidence, with the samples of row r as members. 0: the row has but one side.

    All models know easy samples well, so the mean over the models is subtracted from each sample's
    confidence. If rows are independent draws, the deviation from the row of another model is
    about standard normal or lower.
    """
    confidences = _confidences(arrays)
    ranks = stats.rankdata(confidences - confidences.mean(axis=0), axis=1)
    samples = len(arrays.labels)
    members = arrays.trained.sum(axis=1)
    errors = np.sqrt(members * (samples - members) * (samples + 1) / 12)
    excess = (ranks - (samples + 1) / 2) @ arrays.trained.T
    return np.asarray(excess / np.where(errors > 0, errors, np.inf))


def _rows(arrays: Logits) -> tuple[str, ...]:
    """A warning where shadow models know the samples of another row of `in_shadow` clearly better
    than those of their own row: two models at least, as a row that is in another place takes the
    place of a second one.
    """
    if arrays.models < 2:
        return ()
    matches = _matches(arrays)
    own = matches.diagonal().copy()
    np.fill_diagonal(matches, -np.inf)
    others = matches.max(axis=1)
    border = -special.ndtri(RISK / matches.size)
    misplaced = np.flatnonzero((others > border) & (others - own > border))
    # A row that is in another place takes the place of a row that is misplaced too. Otherwise one
    # model that overfits much more than the others makes its complement row fit them.
    best = matches.argmax(axis=1)
    misplaced = misplaced[np.isin(best[misplaced], misplaced)]
    if len(misplaced) < 2:
        return ()
    first = misplaced[0]
    return (
        "`in_shadow` has rows in another order than `shadows`: compared with the other shadow "
        f"models, shadows[{first}] fits the samples of row {best[first]} better than those of row "
        f"{first}, its own; so do {len(misplaced)} of {arrays.models} models with other rows. Row m "
        "belongs to shadows[m].",
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


def odd_models(arrays: Logits) -> list[str]:
    """What is odd about the target and the shadow models, a warning each."""
    lines = [
        guessing_target(arrays),
        unaware_shadows(arrays),
        unlike_shadows(arrays),
        telling_count(arrays),
    ]
    return [line for line in lines if line]


def guessing_target(arrays: Logits) -> str:
    """A warning where the target classifies neither its members nor the others better than by
    chance; "": it does.
    """
    guesses = first_query(arrays.target[None])[0].argmax(axis=-1)
    for side in (arrays.member, ~arrays.member):
        if not _by_chance(guesses[None, side], arrays.labels[side]):
            return ""
    return (
        "Warning: The target classifies neither members nor non-members better than by chance. "
        "Either it nearly always predicts one class, or it was not trained, or `labels` or `target` "
        "is in another order."
    )


def unaware_shadows(arrays: Logits) -> str:
    """A warning where the target's confidence identifies its members, and no shadow model's
    confidence identifies the samples of its row; "": it does.

    Columns of `in_shadow` in another order look like that, and so do shadow models that were
    trained too little. So the attacks that need no shadow models still count.
    """
    deviations = _deviations(arrays)
    if len(deviations) < 2:
        return ""
    target = first_query(arrays.target[None])[0]
    of_target = _deviation(log_confidence(target, arrays.labels), arrays.member)
    together = np.sqrt(len(deviations))  # of a mean over models, in its standard errors
    if of_target < BY_CHANCE or of_target * together < 3 * BY_CHANCE:
        return ""  # not clear enough to expect a deviation of the shadow models
    if np.mean(deviations) > min(BY_CHANCE, of_target / 2):
        return ""
    # This one is more powerful, except where the rows are alike.
    if _matches(arrays).diagonal().sum() / together > BY_CHANCE:
        return ""
    return (
        "Warning: The target's loss identifies its members, and no shadow model's loss identifies "
        "the samples that it trained on by `in_shadow`. Either samples in `in_shadow` are in "
        "another order than in `shadows`, or the shadow models were trained much less than the "
        "target. Attacks by shadow models say nothing here."
    )


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
