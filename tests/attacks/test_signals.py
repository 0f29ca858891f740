"""Signals against closed forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from leak_atlas.attacks import signals


def test_signals_are_their_definitions() -> None:
    z = np.random.default_rng(0).normal(0, 4, size=(50, 7))
    rows = np.arange(50)
    y = rows % 7
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    p_y = p[rows, y]
    terms = p * np.log(1 - p)
    others = terms.sum(axis=1) - terms[rows, y]
    expected = {
        "scaled_confidence": np.log(p_y / (1 - p_y)),
        "confidence": p_y,
        "loss": np.log(p_y),
        "entropy": (p * np.log(p)).sum(axis=1),
        "modified_entropy": (1 - p_y) * np.log(p_y) + others,
        "correctness": z.argmax(axis=1) == y,
        "top1": p.max(axis=1),
    }
    assert expected.keys() == signals.SCORES.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(signals.score(name, z, y), values, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(signals.loss(z, y), -np.log(p_y), atol=1e-12)
    np.testing.assert_allclose(signals.log_confidence(z, y), np.log(p_y), atol=1e-12)


def test_extreme_logits_keep_their_digits() -> None:
    assert signals.scaled_confidence([1e4, 0.0], 0) == 1e4
    assert signals.scaled_confidence([0.0, 1e4, -1e4], 0) == -1e4
    z = np.stack([np.linspace(40, 600, 50), np.zeros(50)], axis=1)
    zero = np.zeros(50, dtype=int)
    assert (signals.confidence(z, zero) == 1).all(), "a probability rounds to 1"
    assert np.all(np.diff(signals.log_confidence(z, zero)) > 0)


def test_entropies_of_certain_and_uniform_answers() -> None:
    certain = np.array([2000.0, 0.0, 0.0])
    assert signals.modified_entropy(certain, 0) == signals.entropy(certain, 0) == 0
    assert signals.modified_entropy(certain, 1) == pytest.approx(2 * np.log(1e30))
    assert signals.modified_entropy(np.zeros(10), 4) == pytest.approx(2.1672, abs=1e-4)
    assert signals.entropy(np.zeros(10), 4) == pytest.approx(np.log(10))
    # It falls as p_y grows while the others keep their proportions, even beside a class that is
    # nearly certain.
    rising = np.stack([np.linspace(-60, 60, 500), np.zeros(500), np.full(500, -45.0)], axis=1)
    assert np.all(np.diff(signals.modified_entropy(rising, np.zeros(500, dtype=int))) < 0)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    hnp.arrays(
        float,
        st.tuples(st.integers(1, 6), st.integers(2, 5)),
        elements=st.floats(-800, 800),
    ),
    st.integers(0, 1),
)
def test_every_signal_is_finite_and_orders_confident_above_wrong(z: np.ndarray, label: int) -> None:
    classes = np.arange(z.shape[1])
    for name in signals.SCORES:
        assert np.all(np.isfinite(signals.score(name, z, label)))
        if name not in ("entropy", "top1"):  # which do not look at the label
            right = signals.score(name, 1000.0 * (classes == label), label)
            wrong = signals.score(name, 1000.0 * (classes != label), label)
            assert right > wrong


@pytest.mark.parametrize("name", signals.SCORES)
def test_signals_broadcast_over_models_and_queries(name: str) -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(3, 8, 2, 5))
    y = rng.integers(5, size=8)
    values = signals.score(name, z, y[:, None])
    assert values.shape == (3, 8, 2)
    assert values.dtype == np.float64
    np.testing.assert_allclose(values[1, :, 1], signals.score(name, z[1, :, 1], y))
