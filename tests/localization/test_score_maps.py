"""Shares of layers and the agreement of two scores, on made-up maps."""

import numpy as np
import pytest
from scipy import stats

from leak_atlas.engine.selection import highest
from leak_atlas.localization.score_maps import (
    concentration,
    correlations,
    flat,
    kinds,
    maps,
    overlap,
    shares,
    shuffled_gradients,
)

GROUPS = {"stem.conv.weight": "conv", "stem.norm.weight": "norm", "head.fc.weight": "linear"}
SHAPES = {"stem.conv.weight": (40, 50), "stem.norm.weight": (60,), "head.fc.weight": (30, 10)}


def drawn(seed: int) -> dict[str, np.ndarray]:
    draws = np.random.default_rng(seed)
    return {
        name: np.exp(draws.normal(size=shape)).astype(np.float32) for name, shape in SHAPES.items()
    }


def product(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: a[name] * b[name] for name in a}


def test_a_result_is_read() -> None:
    text = "\n".join(f"{name} {kind}" for name, kind in GROUPS.items())
    result = drawn(0) | {
        "scored/kinds": np.frombuffer(text.encode(), np.uint8),
        "history/ce": np.zeros(3),
    }
    assert kinds(result) == GROUPS
    assert list(maps(result)) == list(SHAPES)


def test_shares_count_what_was_selected() -> None:
    chosen = {name: np.zeros(shape, bool) for name, shape in SHAPES.items()}
    chosen["stem.norm.weight"][:15] = True
    chosen["head.fc.weight"][0] = True
    by_kind = {each.of: (each.weights, each.selected) for each in shares(chosen, GROUPS)}
    assert by_kind == {"conv": (2000, 0), "norm": (60, 15), "linear": (300, 10)}
    assert [each.share for each in shares(chosen)] == pytest.approx([0, 0.25, 1 / 30])


def test_an_overlap_is_counted_over_all_tensors_and_chance_is_the_others_share() -> None:
    one = {name: np.zeros(shape, bool) for name, shape in SHAPES.items()}
    other = {name: np.zeros(shape, bool) for name, shape in SHAPES.items()}
    one["stem.norm.weight"][:15] = one["head.fc.weight"][0] = True
    other["stem.norm.weight"][10:40] = True
    assert (overlap(one, other), overlap(other, one), overlap(one, one)) == (5 / 25, 5 / 30, 1)
    random = highest(drawn(5), 0.1)
    assert overlap(highest(drawn(6), 0.5), random) == pytest.approx(0.1, abs=0.03)


def test_correlations_are_scipys_and_cover_all_and_each_type() -> None:
    a = drawn(1)
    b = drawn(2)
    found = correlations(a, b, GROUPS)
    assert list(found) == ["all", "conv", "norm", "linear"]
    x, y = (each["head.fc.weight"].ravel() for each in (a, b))
    assert found["linear"] == pytest.approx(stats.pearsonr(x, y).statistic)
    x, y = (flat(each, GROUPS) for each in (a, b))
    assert found["all"] == pytest.approx(stats.pearsonr(x, y).statistic)


def test_a_score_that_does_not_vary_has_no_correlation() -> None:
    constant = {name: np.ones(shape) for name, shape in SHAPES.items()}
    assert np.isnan(list(correlations(constant, drawn(0), GROUPS).values())).all()


def test_concentration_by_hand_and_of_chance() -> None:
    score = {"x": np.array([9.0, 0.0, 0.0, 0.0]), "y": np.array([[0.5, 0.5]])}
    other = {"x": np.array([0.0, 1.0, 0.0, 0.0]), "y": np.array([[2.0, 0.0]])}
    assert concentration(score, 1 / 6) == pytest.approx(0.9)
    assert concentration(score, 2 / 6, by=other) == pytest.approx(0.05)
    assert concentration(drawn(1), 0.1, by=drawn(2)) == pytest.approx(0.1, abs=0.02)
    assert concentration(drawn(1), 1.0) == pytest.approx(1)


def test_shuffled_gradients_keep_magnitudes_and_scales_alone() -> None:
    """Scores that share only |w| and each tensor's scale agree with their null as with each other."""
    size = {name: value**2 * 3.0**k for k, (name, value) in enumerate(drawn(3).items())}
    one = {name: (1 + 0.2 * value) * size[name] for name, value in drawn(1).items()}
    other = {name: (1 + 0.2 * value) * size[name] for name, value in drawn(2).items()}
    null = shuffled_gradients(one, size, seed=0)
    true = correlations(one, other, GROUPS)["all"]
    assert true > 0.8
    assert correlations(null, other, GROUPS)["all"] == pytest.approx(true, abs=0.05)
    same = product(drawn(4), size)
    assert correlations(shuffled_gradients(same, size, seed=0), same, GROUPS)["linear"] < 0.95
