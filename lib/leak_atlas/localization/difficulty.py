"""How hard a sample is to learn, from the answers of networks that no attack uses, epoch by epoch.

Chen et al. 2025 compare hardness measures but do not list them; these are the field's. A larger
value is harder, everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from leak_atlas.attacks.signals import loss
from leak_atlas.audit import BoolArray, FloatArray, IntArray
from leak_atlas.localization import Arrays, places_of
from leak_atlas.localization.samples import members_of

# measures that add up over training
EFFORT = "mean loss", "iteration learned", "forgetting", "margin", "spread of loss"
# measures of how uncertain an answer is
UNCERTAINTY = "aleatoric", "epistemic", "ensemble variance"


def difficulty(answers: Mapping[int, Sequence[Arrays]], early: int) -> dict[str, FloatArray]:
    """Hardness measures of each sample of a pool `(n,)`, by name; its `index (n,)` and `labels
    (n,)`.

    `answers` has, by epoch, what `Signals` of each of K networks have stored. `early` is the
    checkpoint of the early error. With p the posterior of a sample's class y and z its logits,
    means over the networks that trained on the sample of:

    - `mean loss`, `last loss`: -ln p over all checkpoints but the initialisation, and at the last;
    - `iteration learned`: the first checkpoint from which on the network is always right (twice
      the last one where there is none);
    - `forgetting`: how often it turns from right to wrong (Toneva et al. 2019);
    - `early error`: EL2N, || softmax(z) - onehot(y) || at `early` (Paul et al. 2021);
    - `margin`: minus AUM, the mean of max over others of z minus z_y (Pleiss et al. 2020);
    - `aleatoric`, `epistemic`: mean of p (1 - p), and variance of p, over checkpoints (Seedat et
      al. 2022; the root of the variance is Swayamdipta et al.'s variability, 2020);
    - `spread of loss`: its interquartile range over checkpoints (LT-IQR, Pollock et al. 2025).

    Over the networks that did not train on it, at the last checkpoint: `ensemble variance` of p,
    and `inconsistency`, the share that is wrong (1 - the C-score of Jiang et al. 2021).
    `memorization`: mean p of those that did minus that of those that did not (Feldman & Zhang
    2020). A sample without networks on a side has the median of the others.
    """
    epochs = sorted(epoch for epoch in answers if epoch)
    last = answers[epochs[-1]]
    pool, inside = members_of(last)
    label = last[0]["labels"][pool]
    sample = np.arange(len(label))

    # Axes: E checkpoints, K networks, n samples, and of z also C classes.
    logits = [[one["logits"][pool] for one in answers[epoch]] for epoch in epochs]
    z = np.stack(logits)
    log_posterior = z - np.logaddexp.reduce(z, axis=-1, keepdims=True)
    true = z[..., sample, label].astype(float)
    log_p = log_posterior[..., sample, label].astype(float)
    losses = -log_p
    p = np.exp(log_p)
    right = z.argmax(axis=-1) == label

    rival = z.copy()
    rival[..., sample, label] = -np.inf
    error = np.exp(log_posterior[epochs.index(early)])
    error[..., sample, label] -= 1
    checkpoints = np.array([*epochs, 2.0 * epochs[-1]])
    lower, upper = np.quantile(losses, [0.25, 0.75], axis=0)
    outside = _mean(p[-1], ~inside)

    of_members = {
        "mean loss": losses.mean(axis=0),
        "last loss": losses[-1],
        "iteration learned": checkpoints[settled(right)],
        "forgetting": (right[:-1] & ~right[1:]).sum(axis=0),
        "early error": np.linalg.norm(error, axis=-1),
        "margin": (rival.max(axis=-1) - true).mean(axis=0),
        "aleatoric": (p * (1 - p)).mean(axis=0),
        "epistemic": p.var(axis=0),
        "spread of loss": upper - lower,
    }
    of_others = {
        "ensemble variance": np.square(p[-1] - outside),
        "inconsistency": ~right[-1],
    }
    measures = {}
    for name, values in of_members.items():
        measures[name] = _mean(values, inside)
    for name, values in of_others.items():
        measures[name] = _mean(values, ~inside)
    measures["memorization"] = _mean(p[-1], inside) - outside
    measures["index"] = last[0]["index"][pool]
    measures["labels"] = label
    return measures


def measures_of(
    answers: Mapping[int, Sequence[Arrays]], early: int, samples: IntArray
) -> dict[str, FloatArray]:
    """The measures of `difficulty`, each `(n,)`, of the `samples (n,)` alone."""
    measures = difficulty(answers, early)
    places = places_of(samples, measures.pop("index"))
    del measures["labels"]
    return {name: values[places] for name, values in measures.items()}


def settled(right: BoolArray) -> IntArray:
    """The first of P answers from which on all are right, of `right (P, ...)`: `(...)`; P: none."""
    right_to_the_end = right[::-1].cumprod(axis=0).sum(axis=0)
    return len(right) - right_to_the_end


def mean_over_members(
    readings: Sequence[Arrays],
    name: str,
    answers: Sequence[Arrays],
) -> FloatArray:
    """Mean of a reading of each sample over the networks that trained on it, `(n,)`.

    `readings` hold the array `name (n,)` for each network (`GradientNorm`, `PredictionDepth`);
    `answers` are the same networks' `Signals`, in the same order.
    """
    _, inside = members_of(answers)
    values = np.stack([reading[name] for reading in readings])
    return _mean(values.astype(float), inside)


def mean_losses(answers: Mapping[int, Sequence[Arrays]]) -> FloatArray:
    """Mean cross-entropy of each sample at each checkpoint, nats: over the networks that did not
    train on it, and over those that did, `(E, 2, n)`.

    `answers` as for `difficulty`; `members_of` has the n samples.
    """
    means = []
    for networks in answers.values():
        pool, inside = members_of(networks)
        losses = [loss(one["logits"][pool], one["labels"][pool]) for one in networks]
        values = np.stack(losses)
        means.append([_mean(values, ~inside), _mean(values, inside)])
    return np.array(means)


def _mean(values: NDArray, side: BoolArray) -> FloatArray:
    """Mean of `values (K, n)` over the networks of a side; the median of the others without any."""
    number = side.sum(axis=0)
    with np.errstate(invalid="ignore"):
        means = np.where(side, values, 0.0).sum(axis=0) / number
    known = number > 0
    return np.where(known, means, np.median(means[known]))


def mean_loss_until(answers: Mapping[int, Sequence[Arrays]]) -> FloatArray:
    """Mean loss of each sample until each checkpoint but the initialisation, `(E, n)`.

    See `difficulty`, whose `index` names the samples.
    """
    epochs = sorted(epoch for epoch in answers if epoch)
    pool, inside = members_of(answers[epochs[-1]])
    total = np.zeros(inside.shape)
    means = []
    for number, epoch in enumerate(epochs, start=1):
        losses = [loss(one["logits"][pool], one["labels"][pool]) for one in answers[epoch]]
        total += np.stack(losses)
        means.append(_mean(total / number, inside))
    return np.stack(means)
