"""Auditing many score vectors: `leak_atlas.audit` against a loop over scikit-learn, equal to the
last tie.

Vectors of 2,000 scores, half of them members, rounded so that ties occur. One thread.
"""

from __future__ import annotations

import numpy as np
from sklearn.metrics import roc_auc_score, roc_curve

from bench.ratios import Ratio, compare
from leak_atlas import audit

VECTORS, SCORES = 100, 2000


def main() -> dict[str, Ratio]:
    rng = np.random.default_rng(0)
    member = np.arange(SCORES) < SCORES // 2
    own = rng.permuted(np.tile(member, (VECTORS, 1)), axis=1)
    scores = np.round(rng.normal(size=(VECTORS, SCORES)) + 0.3 * own, 3)
    shared = np.round(rng.normal(size=(VECTORS, SCORES)) + 0.3 * member, 3)

    def sklearn_row(row: np.ndarray, inside: np.ndarray) -> list[float]:
        fpr, tpr, _ = roc_curve(inside, row, drop_intermediate=False)
        low = [tpr[fpr <= f].max() for f in audit.HEADLINE_FPRS]
        return [roc_auc_score(inside, row), float(np.max(1 + tpr - fpr) / 2), *low]

    def sklearn_tpr(row: np.ndarray, inside: np.ndarray) -> float:
        fpr, tpr, _ = roc_curve(inside, row, drop_intermediate=False)
        return float(tpr[fpr <= 0.001].max())

    def theirs(values: np.ndarray, inside: np.ndarray) -> np.ndarray:
        inside = np.broadcast_to(inside, values.shape)
        return np.array([sklearn_row(*case) for case in zip(values, inside, strict=True)])

    def ours(values: np.ndarray, inside: np.ndarray) -> dict[str, audit.Estimate]:
        return audit.audit({"scores": values, "member": inside})

    for values, inside in ((scores, own), (shared, member)):
        expected = theirs(values, inside)
        found = [audit.auc(values, inside), audit.balanced_accuracy(values, inside)]
        found += [audit.tpr(values, inside, f) for f in audit.HEADLINE_FPRS]
        np.testing.assert_allclose(np.stack(found, axis=1), expected, rtol=0, atol=1e-12)
        means = [estimate.value for estimate in ours(values, inside).values()]
        np.testing.assert_allclose(means, expected.mean(axis=0), rtol=0, atol=1e-12)

    many = np.tile(shared, (10, 1))
    return {
        **compare(
            "audit", lambda: theirs(shared, member), lambda: ours(shared, member), 8, loops=5
        ),
        **compare(
            "audit, own members", lambda: theirs(scores, own), lambda: ours(scores, own), 8, loops=5
        ),
        **compare(
            "audit, TPR at 0.1 % FPR",
            lambda: [sklearn_tpr(row, member) for row in many],
            lambda: audit.tpr(many, member, 0.001),
            50,
            repeats=5,
            loops=10,
        ),
    }


if __name__ == "__main__":
    main()
