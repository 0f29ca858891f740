"""Learning rates by the epoch, and what the optimizers do."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from leak_atlas.recipe import Schedule
from leak_atlas.training.schedule import optimizer, rate


def rates(schedule: Schedule) -> list[float]:
    return [rate(schedule, epoch) for epoch in range(schedule.epochs)]


def test_cosine_is_torchs_by_the_epoch() -> None:
    schedule = Schedule(7, lr=0.1, decay="cosine")
    steps = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    annealed = torch.optim.lr_scheduler.CosineAnnealingLR(steps, T_max=7)
    expected = []
    for _ in range(7):
        expected.append(steps.param_groups[0]["lr"])
        steps.step()
        annealed.step()
    assert rates(schedule) == pytest.approx(expected)
    assert rates(Schedule(3, lr=0.2, decay="constant")) == [0.2] * 3


class Fused(TorchDispatchMode):
    """Notes calls of fused kernels and does not make them: for tensors without values there are
    none.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, Tensor]] = []

    def __torch_dispatch__(
        self, operator: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if "_fused_" not in str(operator):
            return operator(*args, **(kwargs or {}))
        self.calls.append((str(operator), kwargs["lr"]))
        assert {tensor.device.type for tensors in args for tensor in tensors} == {"cuda"}
        return None


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_on_cuda_all_that_a_recording_needs_is_on_the_device(name: str) -> None:
    """Pretended, without values: asking for one would be an error."""
    with FakeTensorMode(), Fused() as fused:
        weight = torch.nn.Parameter(torch.empty(3, device="cuda"))
        steps = optimizer(Schedule(optimizer=name), [weight])
        for _ in range(2):
            weight.grad = torch.empty(3, device="cuda")
            steps.step()
        assert [call for call, _ in fused.calls] == [f"aten._fused_{name}_.tensor_lr"] * 2
        for _, lr in fused.calls:
            assert (lr.device.type, lr.dtype, lr.shape) == ("cuda", torch.float32, ())
        assert {value.device.type for value in steps.state[weight].values()} == {"cuda"}
        assert steps.param_groups[0].get("capturable", True)
