"""Signals: from a model's logits to one number per sample.

``logits (..., C)``; ``labels`` broadcast against ``(...)`` by numpy's rules, so logits ``(M, N, A,
C)`` want ``labels[:, None]``. All in float64 and from logits: a probability that was rounded to 1
has lost what separates the most confident members. Natural logarithms. `score` gives each signal
the orientation "larger = more likely member".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from leak_atlas.audit import FloatArray

# log(p) is never taken below this probability in the (modified) entropy, as in Song & Mittal's own
# evaluation.
LOG_FLOOR = float(np.log(1e-30))


def _read(logits: ArrayLike, labels: ArrayLike) -> tuple[FloatArray, NDArray]:
    """The logits in float64, and the labels as indices ``(..., 1)`` into their last axis."""
    z = np.asarray(logits, dtype=np.float64)
    columns = np.broadcast_to(labels, z.shape[:-1])
    return z, columns[..., None]


def _logsumexp(values: FloatArray) -> FloatArray:
    largest = values.max(axis=-1, keepdims=True)
    total = np.exp(values - largest).sum(axis=-1)
    return np.asarray(np.log(total) + largest[..., 0])


def _margin(z: FloatArray, columns: NDArray) -> FloatArray:
    """log p_c - log(1 - p_c) for the given column c of each row."""
    others = z.copy()
    np.put_along_axis(others, columns, -np.inf, axis=-1)
    of_column = np.take_along_axis(z, columns, axis=-1)
    return of_column[..., 0] - _logsumexp(others)


def scaled_confidence(logits: ArrayLike, labels: ArrayLike) -> FloatArray:
    """log p_y - log(1 - p_y) = z_y - logsumexp of the other logits (Carlini et al. 2022, section
    VI).

    Close to normal over models; unbounded. Larger = more likely member.
    """
    z, columns = _read(logits, labels)
    return _margin(z, columns)


def loss(logits: ArrayLike, labels: ArrayLike) -> FloatArray:
    """Cross entropy -log p_y in nats, exact down to 1e-300. Smaller = more likely member."""
    return np.logaddexp(0.0, -scaled_confidence(logits, labels))


def log_confidence(logits: ArrayLike, labels: ArrayLike) -> FloatArray:
    """log p_y, what `rmia` and `base` take. Larger = more likely member."""
    return -loss(logits, labels)


def confidence(logits: ArrayLike, labels: ArrayLike) -> FloatArray:
    """p_y. Larger = more likely member. Rounds to 1 above a margin of 37: rank by
    `scaled_confidence` instead.
    """
    return np.asarray(special.expit(scaled_confidence(logits, labels)))


def top_confidence(logits: ArrayLike, labels: ArrayLike) -> FloatArray:
    """max p, whatever the label. Larger = more likely member."""
    return confidence(logits, np.argmax(logits, axis=-1))


def correctness(logits: ArrayLike, labels: ArrayLike) -> FloatArray:
    """1 where the first largest logit is the label's, else 0 (Yeom et al. 2018). Larger = more
    likely member.
    """
    z, columns = _read(logits, labels)
    return (z.argmax(axis=-1) == columns[..., 0]).astype(np.float64)


def _log_posteriors(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log p and log(1 - p) of every class ``(..., C)``, both precise for p close to 0 or 1."""
    log_p = z - _logsumexp(z)[..., None]
    p = np.minimum(np.exp(log_p), 0.75)
    log_rest = np.log1p(-p)
    # The largest posterior may be close to 1, where both lose digits: computed from the margin.
    top = z.argmax(axis=-1)[..., None]
    margin = _margin(z, top)[..., None]
    log_p_top = -np.logaddexp(0.0, -margin)
    log_rest_top = -np.logaddexp(0.0, margin)
    np.put_along_axis(log_p, top, log_p_top, axis=-1)
    np.put_along_axis(log_rest, top, log_rest_top, axis=-1)
    return log_p, log_rest


def entropy(logits: ArrayLike, labels: ArrayLike) -> FloatArray:
    """-sum p log p (Song & Mittal 2021) in nats, whatever the label. Smaller = more likely member."""
    log_p, _ = _log_posteriors(np.asarray(logits, dtype=np.float64))
    terms = np.exp(log_p) * np.maximum(log_p, LOG_FLOOR)
    return np.asarray(-np.sum(terms, axis=-1)) + 0.0


def modified_entropy(logits: ArrayLike, labels: ArrayLike) -> FloatArray:
    """-(1 - p_y) log p_y - sum over the others of p_i log(1 - p_i) (Song & Mittal 2021). Smaller =
    more likely member.

    Logarithms have a floor at 1e-30, so that a certain mistake costs 2 ln 1e30 = 138.155.
    """
    z, columns = _read(logits, labels)
    log_p, log_rest = _log_posteriors(z)
    terms = np.exp(log_p) * np.maximum(log_rest, LOG_FLOOR)
    rest_y = np.take_along_axis(np.exp(log_rest), columns, axis=-1)
    log_y = np.take_along_axis(log_p, columns, axis=-1)
    of_label = rest_y * np.maximum(log_y, LOG_FLOOR)
    np.put_along_axis(terms, columns, of_label, axis=-1)
    return -terms.sum(axis=-1) + 0.0


# By name: the signal, and the sign with which larger = more likely member.
SCORES: dict[str, tuple[Callable[[ArrayLike, ArrayLike], FloatArray], int]] = {
    "scaled_confidence": (scaled_confidence, 1),
    "confidence": (confidence, 1),
    "loss": (loss, -1),
    "entropy": (entropy, -1),
    "modified_entropy": (modified_entropy, -1),
    "correctness": (correctness, 1),
    "top1": (top_confidence, 1),
}


def score(
    name: str,
    logits: ArrayLike,
    labels: ArrayLike,
) -> FloatArray:
    """The named signal of `SCORES`, turned so that larger = more likely member."""
    signal, sign = SCORES[name]
    return sign * signal(logits, labels)
