"""Shares of layers and the agreement of two scores, on made-up maps."""

import numpy as np
import pytest
from scipy import stats

from leak_atlas import BadInput
from leak_atlas.engine.selection import highest
from leak_atlas.localization.score_maps import agreement, flat, kinds, maps, overlap, shares

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
    assert kinds(result) == GROUPS and list(maps(result)) == list(SHAPES)


def test_one_types_scores_stand_behind_one_another() -> None:
    scores = drawn(0) | {"stage1.norm.weight": np.arange(3, dtype=np.float32)}
    groups = GROUPS | {"stage1.norm.weight": "norm"}
    assert flat(scores, groups).shape == (2363,) and flat(scores, groups).dtype == float
    assert flat(scores, groups, "norm").tolist() == [*scores["stem.norm.weight"].tolist(), 0, 1, 2]
    with pytest.raises(BadInput, match="conv, norm, linear"):
        flat(scores, groups, "attention")


def test_shares_count_what_was_selected() -> None:
    chosen = {name: np.zeros(shape, bool) for name, shape in SHAPES.items()}
    chosen["stem.norm.weight"][:15] = True
    chosen["head.fc.weight"][0] = True
    by_kind = {each.of: (each.weights, each.selected) for each in shares(chosen, GROUPS)}
    assert by_kind == {"conv": (2000, 0), "norm": (60, 15), "linear": (300, 10)}
    assert [each.share for each in shares(chosen)] == pytest.approx([0, 0.25, 1 / 30])


def test_an_overlap_is_counted_over_all_tensors_and_chance_is_the_others_share() -> None:
    one, other = ({name: np.zeros(shape, bool) for name, shape in SHAPES.items()} for _ in range(2))
    one["stem.norm.weight"][:15] = one["head.fc.weight"][0] = True
    other["stem.norm.weight"][10:40] = True
    assert (overlap(one, other), overlap(other, one), overlap(one, one)) == (5 / 25, 5 / 30, 1)
    random = highest(drawn(5), 0.1)
    assert overlap(highest(drawn(6), 0.5), random) == pytest.approx(0.1, abs=0.03)
    with pytest.raises(BadInput, match="no weight is selected"):
        overlap(highest(drawn(5), 0), random)
    with pytest.raises(BadInput, match="differ in names or shapes"):
        overlap(one, {"stem.norm.weight": one["stem.norm.weight"]})


def test_agreement_is_scipys_and_covers_all_and_each_type() -> None:
    a, b, w = drawn(1), drawn(2), drawn(3)
    kinds = {each.kind: each for each in agreement(a, b, w, GROUPS)}
    assert list(kinds) == ["all", "conv", "norm", "linear"]
    assert [each.weights for each in kinds.values()] == [2360, 2000, 60, 300]
    assert kinds["norm"].share == pytest.approx(60 / 2360)
    x, y, z = (each["head.fc.weight"].ravel().astype(float) for each in (a, b, w))
    linear = kinds["linear"]
    assert linear.pearson == pytest.approx(stats.pearsonr(x, y).statistic)
    assert linear.spearman == pytest.approx(stats.spearmanr(x, y).statistic)
    residuals = [v - np.polyval(np.polyfit(z, v, 1), z) for v in (x, y)]
    assert linear.partial == pytest.approx(stats.pearsonr(*residuals).statistic)


def test_a_shared_magnitude_alone_correlates_and_is_taken_out() -> None:
    """Two scores that share only |w| are correlated, and so is the null; little is left given |w|."""
    w = {name: value**2 for name, value in drawn(3).items()}
    one, other = (
        product({name: 1 + 0.2 * v for name, v in drawn(seed).items()}, w) for seed in (1, 2)
    )
    shared = agreement(one, other, w, GROUPS)[1]
    assert min(shared.pearson, shared.null[0]) > 0.8
    assert shared.null[0] - 0.1 < shared.pearson
    assert abs(shared.partial_spearman) < 0.15 < shared.spearman
    gradient = product(drawn(4), w)
    same = agreement(gradient, gradient, w, GROUPS)[1]
    assert [same.pearson, same.partial] == pytest.approx([1, 1])
    assert same.null[1] < 0.99


def test_the_null_of_independent_scores_covers_zero() -> None:
    draws = np.random.default_rng(0)
    a, b = ({"x": np.exp(draws.normal(size=8000))} for _ in range(2))
    whole, _ = agreement(a, b, {"x": np.ones(8000)}, {"x": "conv"})
    assert whole.null[0] < 0 < whole.null[1] < whole.null[0] + 0.1
    assert max(abs(whole.pearson), abs(whole.spearman)) < 0.05


def test_the_null_keeps_the_layers_scales_and_within_is_the_mean_over_tensors() -> None:
    """Two scores that share only each tensor's scale: in the null, but not within a tensor."""
    draws = np.random.default_rng(1)
    a, b = ({f"t{k}": 3.0**k * draws.random(500) for k in range(6)} for _ in range(2))
    ones = {name: np.ones(500) for name in a}
    whole, _ = agreement(a, b, ones, dict.fromkeys(a, "conv"))
    assert whole.pearson - 0.05 < whole.null[0] > 0.6
    assert abs(whole.within) < 0.08
    within = [stats.pearsonr(a[name], b[name]).statistic for name in a]
    assert whole.within == pytest.approx(np.mean(within))


def test_a_score_that_does_not_vary_has_no_correlation_and_other_weights_are_refused() -> None:
    constant = {name: np.ones(shape) for name, shape in SHAPES.items()}
    rows = agreement(constant, drawn(0), constant, GROUPS)
    assert np.isnan([(each.pearson, each.partial) for each in rows]).all()
    with pytest.raises(BadInput, match="names or shapes"):
        agreement(drawn(0), {"stem.conv.weight": np.ones(3)}, drawn(1), GROUPS)
