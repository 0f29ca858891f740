"""LiRA scores, 64 shadows x 5,000 samples x 2 queries, and RMIA's share of z: vectorised against
sample by sample.

LiRA's rival is the authors' way: split each sample's signals by membership, numpy's median and std
over the stacked halves, scipy's log densities. RMIA's is the definition: every sample against every
z. One thread.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.stats import norm

from bench.ratios import Ratio, compare
from leak_atlas.attacks.lira import lira
from leak_atlas.attacks.rmia import rmia
from leak_atlas.recipe import RMIA, LiRA

SHADOWS, SAMPLES, QUERIES, POPULATION = 64, 5000, 2, 2000


def peer(phi: np.ndarray, shadows: np.ndarray, member: np.ndarray, fixed: bool) -> np.ndarray:
    ins = np.array([shadows[member[:, j], j, :] for j in range(shadows.shape[1])])
    outs = np.array([shadows[~member[:, j], j, :] for j in range(shadows.shape[1])])
    s_in = np.std(ins) if fixed else np.std(ins, axis=1)
    s_out = s_in if fixed else np.std(outs, axis=1)
    at_in = norm.logpdf(phi, np.median(ins, axis=1), s_in + 1e-30)
    return (at_in - norm.logpdf(phi, np.median(outs, axis=1), s_out + 1e-30)).mean(axis=1)


def every_pair(
    x: np.ndarray, others: np.ndarray, z: np.ndarray, others_z: np.ndarray
) -> np.ndarray:
    ratio_z = np.exp(z) / np.exp(others_z).mean(axis=0)
    return np.array([np.mean(p / ratio_z > 2) for p in np.exp(x) / np.exp(others).mean(axis=0)])


def main() -> dict[str, Ratio]:
    rng = np.random.default_rng(0)
    member = rng.permuted(np.tile(np.arange(SHADOWS)[:, None] < SHADOWS // 2, (1, SAMPLES)), axis=0)
    shadows = (
        rng.normal(size=(SHADOWS, SAMPLES, QUERIES))
        + rng.normal(0, 3, (SAMPLES, 1))
        + member[:, :, None]
    )
    phi = shadows[0] + rng.normal(size=(SAMPLES, QUERIES))
    results: dict[str, Ratio] = {}
    for variance in ("per_sample", "code"):
        slow = partial(peer, phi, shadows, member, variance == "code")
        fast = partial(lira, phi, shadows, member, LiRA(variance=variance, centre="median"))
        np.testing.assert_allclose(fast(), slow(), rtol=1e-8, atol=1e-8)
        results |= compare(f"LiRA, {variance}", slow, fast, 2)

    x, others = -rng.exponential(size=SAMPLES), -rng.exponential(size=(8, SAMPLES))
    z, others_z = -rng.exponential(size=POPULATION), -rng.exponential(size=(8, POPULATION))
    slow = partial(every_pair, x, others, z, others_z)
    fast = partial(rmia, x, others, member[:8], z, others_z, RMIA())
    np.testing.assert_allclose(fast(), slow(), rtol=0, atol=1e-12)
    return results | compare("RMIA", slow, fast, 5, loops=10)


if __name__ == "__main__":
    main()
