"""Is the audited model the one that the user knows, and are the shadow models like it?

Both are answered by accuracies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from leak_atlas import BadInput, audit
from leak_atlas.audit import BoolArray
from leak_atlas.data.designs import Role
from leak_atlas.engine.compute import Arrays
from leak_atlas.own.logits import Logits, hits
from leak_atlas.recipe import ImportedModel

if TYPE_CHECKING:
    from leak_atlas.recipe import Schedule

LEVEL = 0.99  # of the interval beyond which a known accuracy is another one
ROUNDED = 0.005  # difference between two accuracies of the same samples that rounding explains
# Largest difference between the member accuracies of target and shadow models without a warning,
# for logits and for models alike. In the example page's setting RMIA loses .015 of AUC at .024, and
# .034 at .05, in either direction.
ALIKE = 0.03
ALIKE_OUTSIDE = 0.1  # the same of non-members; LiRA's AUC was .35 where shadows had .72 for .97


@dataclass(frozen=True)
class Accuracy:
    """How many of some samples a network classifies correctly."""

    right: int
    samples: int

    @property
    def value(self) -> float:
        return self.right / self.samples

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Clopper and Pearson's: what other samples of the same population would have given."""
        low, high = audit.clopper_pearson(self.right, self.samples, level)
        return float(low), float(high)

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.right:,} of {self.samples:,})"


class Sides(NamedTuple):
    """Shares of a model's members and non-members that it classifies correctly; NaN: it has none."""

    members: float
    non_members: float

    def __str__(self) -> str:
        sides = zip(self, ("on members", "on non-members"), strict=True)
        known = [f"{100 * share:.1f} % {side}" for share, side in sides if not np.isnan(share)]
        return " and ".join(known)


def side_accuracy(signals: Arrays, *roles: Role) -> Accuracy:
    """The accuracy on the samples of these roles, from what `Signals` gives.

    ValueError where there are none.
    """
    chosen = np.isin(signals["role"], roles)
    if not chosen.any():
        raise ValueError(f"no sample has one of the roles {roles}")
    right = signals["logits"].argmax(axis=1) == signals["labels"]
    return Accuracy(int(right[chosen].sum()), int(chosen.sum()))


def measured_accuracy(target: ImportedModel) -> Accuracy:
    """The accuracy of imported weights on the whole test part of their data set, computed now."""
    import torch

    from leak_atlas.data.resident import resident
    from leak_atlas.models.subject import device
    from leak_atlas.training import answers, imported

    data = resident(target.data, device())
    rows = torch.arange(data.train, len(data.labels))
    logits, _ = answers.logits(imported.network(target).to(device()), data, rows)
    right = logits.argmax(dim=1) == data.labels[rows.to(data.device)].cpu()
    return Accuracy(int(right.sum()), len(rows))


def refuse_another_accuracy(target: ImportedModel, known: float | None) -> None:
    """BadInput where the target's test accuracy is not the `known` one, or that one is no share.

    The known accuracy may be of other test samples, and rounded: it is another one where it is
    outside the measured one's binomial interval at `LEVEL`. None: nothing is measured.
    """
    if known is None:
        return
    if not isinstance(known, int | float) or not 0 <= known <= 1:
        raise BadInput(f"known_accuracy is a share of the test samples: 0.87, not {known!r}")
    measured = measured_accuracy(target)
    low, high = measured.interval()
    if not low <= known <= high:
        raise BadInput(
            f"the model's test accuracy is {measured} here, but known_accuracy is {known:g}: it "
            "reads other inputs here than in your training. Check mean and std of "
            f"{target.data.name}, the order of its classes, the size of its images, and that its "
            "test part is yours"
        )


def known_or_asked(signals: Arrays, known: float | None) -> str:
    """A sentence on the measured test accuracy: it is the known one, or the user is asked."""
    measured = side_accuracy(signals, Role.NONMEMBER, Role.TEST)
    start = f"Test accuracy of the model, measured here: {measured}."
    if known is None:
        return (
            f"{start} **Is this the test accuracy that you know?** If not, the model reads other "
            "inputs here than in your training (mean and std, order of classes, size of the "
            "images), and all numbers on this page are wrong. Write the accuracy that you know as "
            "`known_accuracy`: then the audit stops if it measures another one."
        )
    if abs(measured.value - known) <= ROUNDED:
        return f"{start} It agrees with the {known:g} that you know."
    return (
        f"{start} You know {known:g}. Chance explains the difference only if you measured it on "
        "other test samples. If yours were the same, the model reads other inputs here: check mean "
        "and std."
    )


def accuracies(arrays: Logits) -> dict[str, Sides]:
    """Accuracy of the target and, over all of them together, of the shadow models."""
    sides = {"target": _sides(hits(arrays.target[None], arrays.labels), arrays.member[None])}
    if arrays.shadows is not None and arrays.in_shadow is not None:
        sides["shadow models"] = _sides(hits(arrays.shadows, arrays.labels), arrays.in_shadow)
    return sides


def unlike_shadows(arrays: Logits, training: Schedule | None = None) -> str:
    """A warning where the shadow models' accuracy on their own members or non-members is not the
    target's; "": it is.

    Attacks compare a sample's loss in the target with its losses in the shadow models. The more the
    trainings differ, the less that comparison says of membership. `training` is that of shadow
    models that were trained here: then the warning says what to change in it.
    """
    if arrays.shadows is None or arrays.in_shadow is None:
        return ""
    target = accuracies(arrays)["target"]
    right = hits(arrays.shadows, arrays.labels)
    models = [_sides(*model) for model in zip(right, arrays.in_shadow, strict=True)]
    if means := _difference(target.members, [model.members for model in models], ALIKE):
        return f"{_unlike('members', *means)} {_of_training(means, training)}"
    outside = [model.non_members for model in models]
    if means := _difference(target.non_members, outside, ALIKE_OUTSIDE):
        return f"{_unlike('non-members', *means)} {_of_sizes(arrays, training)}"
    return ""


def _sides(right: BoolArray, inside: BoolArray) -> Sides:
    """The accuracies on members, `inside`, and on the others; both arrays have one shape."""
    return Sides(
        *(float(right[side].mean()) if side.any() else np.nan for side in (inside, ~inside))
    )


def _difference(
    target: float, models: Sequence[float], largest: float
) -> tuple[float, float] | None:
    """The target's accuracy and the shadow models' mean, where they differ by more than `largest`.

    None too where some shadow models are better than the target and some are worse, and where an
    accuracy is not known (NaN).
    """
    known = [accuracy for accuracy in models if not np.isnan(accuracy)]
    mean = float(np.mean(known)) if known else np.nan
    if not abs(target - mean) > largest or min(known) <= target <= max(known):
        return None
    return target, mean


def _unlike(side: str, target: float, mean: float) -> str:
    return (
        f"The shadow models are unlike your model: accuracy on {side} is {target:.2f} in your model "
        f"and {mean:.2f} in the shadow models. So attacks by shadow models are weaker than they "
        "could be."
    )


def _of_training(means: tuple[float, float], training: Schedule | None) -> str:
    """What to change where the accuracies on members differ."""
    if training is None:
        return "Train these as the target was trained."
    target, shadows = means
    cause = f"{'more' if target > shadows else 'fewer'} epochs, another lr, augmentation or weight decay"
    return (
        f"The likely cause: your training had {cause} than the parameters of this page say. Write "
        "your own values there. If you do not know them, "
        f"{'raise' if target > shadows else 'lower'} `epochs` (now {training.epochs}) or try "
        f"another `lr` (now {training.lr:g}) until both accuracies agree."
    )


def _of_sizes(arrays: Logits, training: Schedule | None) -> str:
    """What to change where the accuracies on non-members alone differ."""
    assert arrays.in_shadow is not None
    cause = (
        f"The likely cause: your model trained on {arrays.member.sum():,} samples, and each shadow "
        f"model on {arrays.in_shadow[0].sum():,}"
    )
    if training is None:
        return f"{cause}. Train these on as many samples as the target, and as it was trained."
    return (
        f"{cause}; or your training had other values than the parameters of this page say. Add "
        "samples to the test part until it has as many as the train part, and write your own "
        "values into the parameters."
    )
