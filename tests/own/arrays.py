"""Logits as a user brings them, simulated, and the command that audits them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np


def simulated(
    leak: float, n: int = 600, models: int = 16, queries: int = 0, seed: int = 0
) -> dict[str, Any]:
    """Logits of five classes; who trained on a sample has its label's logit larger by `leak`. A
    file's arrays.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(5, size=n)
    other = rng.integers(5, size=200)
    hardness = rng.normal(2, 2, n)
    own = rng.normal(2, 2, 200)
    shape = (queries,) if queries else ()

    def answered(y: np.ndarray, towards: np.ndarray) -> np.ndarray:
        z = rng.normal(0, 0.5, (len(y), *shape, 5))
        z[np.arange(len(y)), ..., y] += np.reshape(towards, (-1, *(1 for _ in shape)))
        return z.astype(np.float32)

    member = rng.random(n) < 0.5
    seen = rng.random((models, n)) < 0.5
    return {
        "target": answered(labels, hardness + leak * member),
        "labels": labels,
        "member": member,
        "shadows": np.stack([answered(labels, hardness + leak * inside) for inside in seen]),
        "in_shadow": seen,
        "population": answered(other, own),
        "population_labels": other,
        "population_shadows": np.stack([answered(other, own) for _ in range(models)]),
    }


def written(path: Path, arrays: dict[str, Any], **changed: Any) -> Path:
    """An .npz of the arrays; None leaves one out."""
    values = arrays | changed
    np.savez(path, **{name: value for name, value in values.items() if value is not None})
    return path


def audited(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """`leak-atlas audit` in a folder."""
    line = [sys.executable, "-m", "leak_atlas", "audit", *arguments]
    return subprocess.run(line, cwd=cwd, capture_output=True, text=True, timeout=300)
