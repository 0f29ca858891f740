"""Exact sparsity, and zeros that stay."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.models import build
from lib.pruning import magnitudes, prune
from lib.recipe import Model, Schedule
from lib.training.loop import fit
from tests.test_rewinding import images

MODEL = Model("resnet10", width=2)


def state() -> dict[str, torch.Tensor]:
    return build(MODEL, 1, 3, 0).state_dict()


@settings(deadline=None)
@given(st.floats(0, 1), st.sampled_from(["global", "layer"]))
def test_sparsity_is_exact(sparsity: float, scope: str) -> None:
    before = state()
    importance = magnitudes(before)
    after, gone = prune(before, sparsity, scope=scope)  # type: ignore[arg-type]
    counts = {name: int(mask.sum()) for name, mask in gone.items()}
    if scope == "layer":
        assert counts == {name: round(sparsity * values.size) for name, values in importance.items()}
    else:
        assert sum(counts.values()) == round(sparsity * sum(values.size for values in importance.values()))
    for name, value in after.items():
        mask = gone.get(name, torch.zeros_like(value, dtype=torch.bool))
        assert not value[mask].any() and torch.equal(value[~mask], before[name][~mask])
    kept = np.concatenate([importance[name][~gone[name].numpy()] for name in gone])
    lost = np.concatenate([importance[name][gone[name].numpy()] for name in gone])
    if scope == "global" and kept.size and lost.size:
        assert lost.max() <= kept.min()


def test_magnitude_spares_norms_and_biases_and_scores_decide_where_given() -> None:
    before = state()
    assert all(before[name].dim() > 1 for name in magnitudes(before)) and "head.fc.weight" in magnitudes(before)
    scores = {"stem.norm.weight": np.array([3.0, 1.0]), "head.fc.bias": np.array([2.0, 5.0, 4.0])}
    after, gone = prune(before, 0.4, scores)
    assert gone["stem.norm.weight"].tolist() == [False, True] and gone["head.fc.bias"].tolist() == [True, False, False]
    assert all(torch.equal(after[name], before[name]) for name in before if name not in scores)
    _, gone = prune(before, 0.4, scores, largest=True)
    assert not gone["stem.norm.weight"].any() and gone["head.fc.bias"].tolist() == [False, True, True]


@settings(deadline=None)
@given(st.floats(0, 1))
def test_zeros_of_before_are_counted(more: float) -> None:
    once, gone = prune(state(), 0.5)
    _, again = prune(once, 0.5 + 0.5 * more)
    assert all((again[name] | ~mask).all() for name, mask in gone.items())


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_zeros_stay_zero_and_the_rest_learns(optimizer: str) -> None:
    net = build(MODEL, 1, 3, 0)
    start, gone = prune(net.state_dict(), 0.7)
    net.load_state_dict(start)
    schedule = Schedule(2, batch=8, optimizer=optimizer, lr=0.01, weight_decay=0.1)
    end = fit(net, images(), torch.arange(24), schedule, seed=0, held=gone).states["last"]
    for name, mask in gone.items():
        assert not end[name][mask].any()
        assert not torch.equal(end[name], start[name]), name
