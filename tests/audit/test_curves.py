"""ROC curves: against their closed form, against the rates that they are made of, and against
nothing.
"""

import numpy as np
import pytest
from scipy import stats

from leak_atlas import audit


def gaussian(shift: float, targets: int, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    member = rng.permuted(np.tile(np.arange(2 * n) < n, (targets, 1)), axis=1)
    return rng.normal(size=member.shape) + shift * member, member


def test_the_curve_of_a_gaussian_shift_has_its_closed_form() -> None:
    scores, member = gaussian(1.0, 6, 4000)
    curve = audit.roc_band(scores, member)
    truth = stats.norm.cdf(1.0 + stats.norm.ppf(curve.fpr))
    np.testing.assert_allclose(curve.tpr, truth, atol=0.02)
    assert np.mean((curve.low <= truth) & (truth <= curve.high)) > 0.9
    assert curve.resolution == curve.fpr[1] == 1 / 4000
    assert (curve.fpr[0], curve.fpr[-1], curve.tpr[-1]) == (0, 1, 1)
    assert (np.diff(curve.fpr) > 0).all()
    assert (np.diff(curve.tpr) >= 0).all()


@pytest.mark.parametrize("one", [True, False])
def test_points_and_intervals_are_those_of_the_tables(one: bool) -> None:
    scores, member = gaussian(0.7, 4, 500)
    if one:
        scores, member = scores[0], member[0]
    curve = audit.roc_band(scores, member)
    assert (curve.low <= curve.tpr).all()
    assert (curve.tpr <= curve.high).all()
    place = len(curve.fpr) // 2
    fpr = curve.fpr[place]
    table = audit.audit({"scores": scores, "member": member}, [fpr])[f"tpr_at_{100 * fpr:g}%"]
    same = audit.tpr_at_fpr(scores, member, fpr) if one else table
    point = curve.tpr[place], curve.low[place], curve.high[place]
    assert (same.value, same.low, same.high) == point
    with pytest.raises(ValueError, match=r"\(T, N\) or \(N,\)"):
        audit.roc_band(np.stack([scores, scores])[None], np.stack([member, member])[None])


def test_scores_that_know_nothing_lie_on_the_diagonal() -> None:
    """Pointwise at 95 %: the share of bands that hold the diagonal, over independent curves."""
    inside = []
    for seed in range(40):
        curve = audit.roc_band(*gaussian(0.0, 5, 300, seed))
        inside.append(np.mean((curve.low <= curve.fpr) & (curve.fpr <= curve.high)))
    assert np.mean(inside) > 0.93
    constant = audit.roc_band(np.zeros(100), np.arange(100) < 50)
    assert (constant.tpr[:-1].max(), constant.tpr[-1]) == (0, 1)
