"""Counts against arithmetic."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from leak_atlas import rewinding
from leak_atlas.data.resident import Resident
from leak_atlas.models import Net, build
from leak_atlas.recipe import Augment, Model, Schedule
from leak_atlas.training import cost
from leak_atlas.training.cost import _level, _peak, _saving, anatomy, counted, peak, timed


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
    assert counts["flops"][:3].tolist() == expected and counts["flops"][-1] == 2 * 64 * 10
    net = build(Model("resnet10", width=8), 1, 10, seed=0)
    own = [sum(p.numel() for p in block.parameters()) for _, block in net.blocks()]
    np.testing.assert_array_equal(counts["parameters"], own)


# --- a training, as it runs


def images(n: int) -> Resident:
    x = torch.randint(
        256, (n, 8, 8, 1), generator=torch.Generator().manual_seed(0), dtype=torch.uint8
    )
    return Resident(x, torch.arange(n) % 4, torch.full((1,), 0.5), torch.full((1,), 0.25), n, 4)


def measured(n: int = 64, hold: str = "", **schedule: object) -> dict[str, float]:
    net = build(Model("resnet10", width=4), 1, 4, seed=0)
    frozen = rewinding.freeze(net.state_dict(), hold) if hold else {}
    given: dict[str, Any] = {
        "data": images(n),
        "members": torch.arange(n),
        "schedule": Schedule(3, **({"batch": 32} | schedule)),
    }
    given |= {"seed": 0, "frozen": frozen}
    times = {name: each[0] for name, each in timed([(net, given)], 3).items()}
    return times | peak(net, **given) | counted(net, **given)


COUNTED = ("flops", "flops_once", "saved_bytes")


def test_what_is_counted_is_the_same_in_every_run_and_grows_with_the_batch() -> None:
    found = [measured(), measured(), measured(batch=16)]
    assert set(found[0]) == {*COUNTED, "seconds", "first_seconds", "peak_bytes"}
    assert all(found[0][name] == found[1][name] > 0 for name in ("flops", "saved_bytes"))
    assert found[0]["flops"] == found[2]["flops"] and found[0]["flops_once"] == 0
    assert 1.9 < found[0]["saved_bytes"] / found[2]["saved_bytes"] < 2.1
    assert found[0]["seconds"] > 0 and found[0]["peak_bytes"] >= 0


class Training:
    """Stands for the loop: three epochs of so many steps, each of which works and then waits."""

    def __init__(self, steps: int, work: float = 0.0, wait: float = 0.0) -> None:
        self.steps, self.work, self.wait = steps, work, wait

    def run(
        self, log: list[tuple[int, int]], on_epoch: Callable[[int], None] | None = None
    ) -> Iterator[None]:
        for epoch in range(3):
            for _ in range(self.steps):
                log.append((self.steps, epoch))
                end = time.process_time() + self.work
                while time.process_time() < end:
                    pass
                time.sleep(self.wait)
                yield
            if on_epoch:
                on_epoch(epoch + 1)


def take_turns(
    monkeypatch: pytest.MonkeyPatch, trainings: list[Training]
) -> tuple[dict[str, Any], list[Any]]:
    """What is measured of such trainings, and by their numbers of steps which epoch each step
    belongs to.
    """
    log: list[tuple[int, int]] = []
    monkeypatch.setattr(cost, "training", lambda one, data, **given: one.run(log, **given))
    given = {"data": images(4)}
    return timed([(one, given) for one in trainings], 3), log  # type: ignore[list-item]


def test_trainings_take_turns_by_the_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    _, log = take_turns(monkeypatch, [Training(2), Training(3)])
    turns = [steps for steps, _ in log[2:]]  # a step of each has warmed up
    assert turns == [2, 2, 2, *[3] * 4, 2, 2, *[3] * 3, 2, 3, 3]
    assert [epoch for steps, epoch in log[2:] if steps == 3] == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_time_is_a_processors_and_each_epoch_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a training waits for is not counted, nor what others do in their turns."""
    busy, idle = Training(4, work=0.02), Training(2, work=0.02, wait=0.1)
    found, _ = take_turns(monkeypatch, [busy, idle])
    for name in ("first_seconds", "seconds"):
        assert found[name] == pytest.approx([0.08, 0.04], rel=0.2)


def test_flops_of_an_epoch_are_three_forward_passes_less_the_gradient_of_the_images() -> None:
    forward = anatomy(Model("resnet10", width=4), 1, 4, 8)["flops"]
    assert measured()["flops"] == 64 * (3 * forward.sum() - forward[0])


def test_what_is_held_costs_neither_memory_nor_operations() -> None:
    free, some, most = measured(), measured(hold="stage3"), measured(hold="head")
    assert free["saved_bytes"] > some["saved_bytes"] > most["saved_bytes"] > 0
    assert free["flops"] > some["flops"] > most["flops"] > 0
    counts = anatomy(Model("resnet10", width=4), 1, 4, 8)["flops"]
    # one sample more, to see its size
    assert some["flops_once"] == pytest.approx(64 * counts[:3].sum(), rel=0.02)
    again = measured(hold="stage3", augment=Augment(1))
    assert again["flops_once"] == 0 and again["flops"] == some["flops"] + 64 * counts[:3].sum()


def test_what_autograd_keeps_of_a_small_net_in_closed_form() -> None:
    """A linear layer keeps its input, a ReLU its output; cross-entropy its log-probabilities, the
    labels and the weight of the mean; no weights.
    """
    n, head = 20, nn.Sequential(nn.ReLU(), nn.Linear(7, 4))
    net = Net(OrderedDict(stem=nn.Flatten(), stage1=nn.Linear(64, 7), head=head))
    with _saving(net) as kept:
        nn.functional.cross_entropy(net(torch.randn(n, 1, 8, 8)), torch.arange(n) % 4).backward()
    assert sum(kept.values()) == 4 * n * (64 + 7 + 4) + 8 * n + 4


def test_the_peak_sees_memory_that_comes_and_goes() -> None:
    device = torch.device("cpu")
    big = torch.ones(2**26)  # 256 MiB, gone before the level is taken
    del big
    before = _level(device)
    big = torch.ones(2**24)
    del big
    assert 60 * 2**20 < _peak(device) - before < 80 * 2**20
