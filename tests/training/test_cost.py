"""Counts against arithmetic."""

from collections import OrderedDict
from typing import Any

import pytest
import torch
from torch import nn

from leak_atlas import rewinding
from leak_atlas.models import Net, build
from leak_atlas.recipe import Augment, Model, Schedule
from leak_atlas.training.cost import _saving, anatomy, counted
from tests.localization.small import images


def test_resnet18_at_full_width() -> None:
    counts = anatomy(Model("resnet18"), 3, 10, 32)
    assert counts["parameters"].sum() == 11_173_962
    # A training step is about three forward passes.
    assert 3 * counts["flops"].sum() / 1e9 == pytest.approx(3.33, abs=0.01)


def test_block_by_block() -> None:
    counts = anatomy(Model("resnet10", width=8), 1, 10, 16)
    parts = ["stem", "stage1.0", "stage2.0", "stage3.0", "stage4.0", "head"]
    assert counts["parts"].tolist() == parts
    assert counts["activations"].tolist() == [8 * 256, 8 * 256, 16 * 64, 32 * 16, 64 * 4, 10]
    block = 2 * 64 * (9 * 8 * 16 + 9 * 16 * 16 + 8 * 16)
    expected = [2 * 9 * 8 * 256, 2 * 2 * 9 * 8 * 8 * 256, block]
    assert counts["flops"][:3].tolist() == expected
    assert counts["flops"][-1] == 2 * 64 * 10


# --- a training, as it runs


def measured(n: int = 64, hold: str = "", **schedule: object) -> dict[str, float]:
    net = build(Model("resnet10", width=4), 1, 4, seed=0)
    frozen = rewinding.freeze(net.state_dict(), hold) if hold else {}
    given: dict[str, Any] = {
        "data": images(n, classes=4),
        "members": torch.arange(n),
        "schedule": Schedule(3, **({"batch": 32} | schedule)),
    }
    given |= {"seed": 0, "frozen": frozen}
    return counted(net, **given)


def test_what_is_counted_is_the_same_in_every_run_and_grows_with_the_batch() -> None:
    found = [measured(), measured(), measured(batch=16)]
    assert found[0] == found[1]
    assert found[0]["flops"] == found[2]["flops"]
    assert found[0]["flops_once"] == 0
    assert 1.9 < found[0]["saved_bytes"] / found[2]["saved_bytes"] < 2.1


def test_flops_of_an_epoch_are_three_forward_passes_less_the_gradient_of_the_images() -> None:
    forward = anatomy(Model("resnet10", width=4), 1, 4, 8)["flops"]
    assert measured()["flops"] == 64 * (3 * forward.sum() - forward[0])


def test_what_is_held_costs_neither_memory_nor_operations() -> None:
    free = measured()
    some = measured(hold="stage3")
    most = measured(hold="head")
    assert free["saved_bytes"] > some["saved_bytes"] > most["saved_bytes"] > 0
    assert free["flops"] > some["flops"] > most["flops"] > 0
    counts = anatomy(Model("resnet10", width=4), 1, 4, 8)["flops"]
    # one sample more, to see its size
    assert some["flops_once"] == pytest.approx(64 * counts[:3].sum(), rel=0.02)
    again = measured(hold="stage3", augment=Augment(1))
    assert again["flops_once"] == 0
    assert again["flops"] == some["flops"] + 64 * counts[:3].sum()


def test_passes_that_follow_each_other_keep_no_more_than_one() -> None:
    found = [measured(sharpness=0.1) for _ in range(2)]
    assert found[0] == found[1]
    assert found[0]["saved_bytes"] == measured()["saved_bytes"]
    assert found[0]["flops"] == pytest.approx(2 * measured()["flops"])


def test_what_autograd_keeps_of_a_small_net_in_closed_form() -> None:
    """A linear layer keeps its input, a ReLU its output; cross-entropy its log-probabilities, the
    labels and the weight of the mean; no weights.
    """
    n = 20
    head = nn.Sequential(nn.ReLU(), nn.Linear(7, 4))
    net = Net(OrderedDict(stem=nn.Flatten(), stage1=nn.Linear(64, 7), head=head))
    with _saving(net) as most:
        nn.functional.cross_entropy(net(torch.randn(n, 1, 8, 8)), torch.arange(n) % 4).backward()
    assert most == [4 * n * (64 + 7 + 4) + 8 * n + 4]
