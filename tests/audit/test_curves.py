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
    found = audit.roc_band(scores, member)
    truth = stats.norm.cdf(1.0 + stats.norm.ppf(found.fpr))
    np.testing.assert_allclose(found.tpr, truth, atol=0.02)
    assert np.mean((found.low <= truth) & (truth <= found.high)) > 0.9
    assert found.resolution == 1 / 4000 and found.fpr[1] == 1 / 4000
    assert (
        found.fpr[0] == 0 and found.fpr[-1] == found.tpr[-1] == 1 and (np.diff(found.fpr) > 0).all()
    )


@pytest.mark.parametrize("one", [True, False])
def test_points_and_intervals_are_those_of_the_tables(one: bool) -> None:
    scores, member = gaussian(0.7, 4, 500)
    if one:
        scores, member = scores[0], member[0]
    found = audit.roc_band(scores, member)
    assert (found.low <= found.tpr).all() and (found.tpr <= found.high).all()
    assert (np.diff(found.tpr) >= 0).all() and (found.low >= 0).all() and (found.high <= 1).all()
    place = len(found.fpr) // 2
    fpr = found.fpr[place]
    row = audit.audit({"scores": scores, "member": member}, [fpr])
    same = audit.tpr_at_fpr(scores, member, fpr) if one else row[f"tpr_at_{100 * fpr:g}%"]
    assert (same.value, same.low, same.high) == (
        found.tpr[place],
        found.low[place],
        found.high[place],
    )
    with pytest.raises(ValueError, match=r"\(T, N\) or \(N,\)"):
        audit.roc_band(np.stack([scores, scores])[None], np.stack([member, member])[None])


def test_scores_that_know_nothing_lie_on_the_diagonal() -> None:
    """Pointwise at 95 %: the share of bands that hold the diagonal, over curves that are
    independent of each other.
    """
    inside = []
    for seed in range(40):
        scores, member = gaussian(0.0, 5, 300, seed)
        found = audit.roc_band(scores, member)
        inside.append(np.mean((found.low <= found.fpr) & (found.fpr <= found.high)))
    assert np.mean(inside) > 0.93
    flat = audit.roc_band(np.zeros(100), np.arange(100) < 50)
    assert not flat.tpr[:-1].any() and flat.tpr[-1] == 1
