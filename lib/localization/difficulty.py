"""How hard a sample is to learn, by the answers of networks that no attack knows, epoch by epoch (numpy).

Chen et al. 2025 compare hardness measures whose list is not known; these are the field's. Larger is harder, everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from lib.audit import FloatArray
from lib.data.designs import Role
from lib.localization.divergence import partial_correlation

# What adds up over training, what one look at it tells, and what networks without the sample tell.
EFFORT = "mean loss", "iteration learned", "forgetting", "margin", "spread of loss"
UNCERTAINTY = "aleatoric", "epistemic", "ensemble variance"
LOOK = "last loss", "early error"
OTHERS = "inconsistency", "memorization"


def difficulty(answers: Mapping[int, Sequence[Mapping[str, NDArray]]], early: int) -> dict[str, FloatArray]:
    """Measures of each sample of a pool `(n,)`, by name, and `index (n,)`.

    `answers` has what `Signals` store of each of K networks at each checkpoint, by epoch. Means are over the networks
    that trained on the sample, of, with p the posterior of its class y and z its logits:

    - `mean loss`, `last loss`: -ln p over all checkpoints but an initialisation, and at the last one;
    - `iteration learned`: the first checkpoint from which on it is always right (the last one's double where none is);
    - `forgetting`: how often it turns from right to wrong (Toneva et al. 2019), here from checkpoint to checkpoint;
    - `early error`: EL2N, || softmax(z) - onehot(y) || at the checkpoint `early` (Paul et al. 2021);
    - `margin`: minus AUM, the mean of max over others of z minus z_y (Pleiss et al. 2020);
    - `aleatoric`, `epistemic`: mean of p (1 - p), and variance of p, over checkpoints (Seedat et al. 2022; the spread
      of p is Swayamdipta et al.'s variability, 2020);
    - `spread of loss`: its interquartile range over checkpoints (LT-IQR, Pollock et al. 2025).

    Of networks that did not train on it, at the last checkpoint: `ensemble variance` of p, `inconsistency`, the share
    that is wrong (1 - the C-score of Jiang et al. 2021). `memorization`: p of those that did minus p of those that did
    not (Feldman & Zhang 2020). A sample that a side does not know takes the median of the others.
    """
    epochs = sorted(epoch for epoch in answers if epoch)
    roles = np.stack([one["role"] for one in answers[epochs[-1]]])
    pool = np.isin(roles, (Role.MEMBER, Role.NONMEMBER)).all(axis=0)
    inside = (roles == Role.MEMBER)[:, pool]
    label = answers[epochs[-1]][0]["labels"][pool]
    z = np.stack([np.stack([one["logits"][pool] for one in answers[epoch]]) for epoch in epochs])
    own = np.eye(z.shape[-1], dtype=bool)[label]
    place = np.broadcast_to(label[:, None], (*z.shape[:-1], 1))
    log = z - np.logaddexp.reduce(z, axis=-1, keepdims=True)
    true, loss = (np.take_along_axis(values, place, -1)[..., 0].astype(float) for values in (z, -log))
    p, right = np.exp(-loss), z.argmax(axis=-1) == label
    rival = np.where(own, -np.inf, z).max(axis=-1)
    wrong_last = np.where(right, 0, np.array(epochs)[:, None, None]).max(axis=0)
    following = dict(zip([0, *epochs], [*epochs, 2 * epochs[-1]], strict=True))
    learned = np.vectorize(following.__getitem__, otypes=[float])(wrong_last)
    quartiles = np.quantile(loss, [0.25, 0.75], axis=0)
    at = epochs.index(early)

    outside = _mean(p[-1], ~inside)
    made = {
        "mean loss": _mean(loss.mean(axis=0), inside),
        "last loss": _mean(loss[-1], inside),
        "iteration learned": _mean(learned, inside),
        "forgetting": _mean((right[:-1] & ~right[1:]).sum(axis=0).astype(float), inside),
        "early error": _mean(np.linalg.norm(np.exp(log[at]) - own, axis=-1), inside),
        "margin": _mean((rival - true).mean(axis=0), inside),
        "aleatoric": _mean((p * (1 - p)).mean(axis=0), inside),
        "epistemic": _mean(p.var(axis=0), inside),
        "spread of loss": _mean(quartiles[1] - quartiles[0], inside),
        "ensemble variance": _mean(np.square(p[-1] - outside), ~inside),
        "inconsistency": _mean((~right[-1]).astype(float), ~inside),
        "memorization": _mean(p[-1], inside) - outside,
    }
    return made | {"index": answers[epochs[-1]][0]["index"][pool]}


def averaged(read: Sequence[Mapping[str, NDArray]], name: str, answers: Sequence[Mapping[str, NDArray]]) -> FloatArray:
    """A reading's array (`GradientNorm`, `PredictionDepth`) of each sample, `(n,)`, over networks that trained on it.

    `answers` are the networks' `Signals`, in their order, which tell who trained on what.
    """
    roles = np.stack([one["role"] for one in answers])
    pool = np.isin(roles, (Role.MEMBER, Role.NONMEMBER)).all(axis=0)
    return _mean(np.stack([one[name] for one in read]).astype(float), (roles == Role.MEMBER)[:, pool])


def follows(measures: FloatArray, risk: FloatArray, given: FloatArray | None = None) -> FloatArray:
    """Spearman's correlation of each of `measures (K, n)` with a risk `(n,)`, `(K,)`.

    With a measure `given (n,)`: of what its ranks leave of both (partial correlation). 0 where nothing is left.
    """
    ranks, own = stats.rankdata(measures, axis=1), stats.rankdata(risk)
    if given is not None:
        known = np.broadcast_to(stats.rankdata(given)[:, None], (len(ranks), len(risk), 1))
        return partial_correlation(ranks, np.broadcast_to(own, ranks.shape), known)
    ranks, own = ranks - ranks.mean(axis=1, keepdims=True), own - own.mean()
    size = np.linalg.norm(ranks, axis=1) * np.linalg.norm(own)
    return np.divide(ranks @ own, size, out=np.zeros(len(ranks)), where=size > 0)


def within(values: FloatArray, label: NDArray[np.int_]) -> FloatArray:
    """Ranks within each class, as shares of it, `(..., n)`: what a class has in common is gone."""
    made = np.empty(values.shape)
    for one in np.unique(label):
        own = label == one
        made[..., own] = (stats.rankdata(values[..., own], axis=-1) - 0.5) / own.sum()
    return made


def _mean(values: FloatArray, side: NDArray[np.bool_]) -> FloatArray:
    """Of `values (K, n)` over the networks of a side; the median of the others where it has none."""
    number = side.sum(axis=0)
    with np.errstate(invalid="ignore"):
        found = np.where(side, values, 0.0).sum(axis=0) / number
    return np.where(number > 0, found, np.median(found[number > 0]))
