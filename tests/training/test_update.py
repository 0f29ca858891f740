"""The step may be recorded: on tensors without values, where asking for one is an error, every kind
of step runs.
"""

import copy
import itertools

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeCopyMode, FakeTensorMode
from torch.nn import functional

from leak_atlas.data import augmentation
from leak_atlas.data.resident import Resident
from leak_atlas.models import Net
from leak_atlas.recipe import (
    CCL,
    CSKD,
    HAMP,
    PAST,
    AdversarialRegularization,
    Augment,
    CrossEntropy,
    Distillation,
    Objective,
    RelaxLoss,
    Schedule,
)
from leak_atlas.training import objectives
from leak_atlas.training import update as module
from leak_atlas.training.update import Update
from tests.training.small import MEMBERS, SHORT, STILL, begun, equal, masks, trained, values

# A processor with a number is another device than the processor, and builds of torch without CUDA
# know it.
ELSEWHERE = torch.device("cpu", 1)

OBJECTIVES = {
    "cross-entropy": CrossEntropy(),
    "relaxed": RelaxLoss(),
    "high-entropy": HAMP(),
    "convex-concave": CCL(),
    "adversarial": AdversarialRegularization(steps=2, width=32),
    "sparsity": PAST(),
    "class-wise": CSKD(),
    "distillation": Distillation(),
}


def without_values(
    net: Net, data: Resident, schedule: Schedule, objective: Objective, frozen: str, precision: str
) -> tuple[Update, FakeTensorMode]:
    """A training's step whose tensors have shapes, types and devices, but no values."""
    # made before the first step, as they are before a recording
    data.row, data.padded(1), data.window(1)
    mode = FakeTensorMode()
    step = begun(net, data, objective, schedule, frozen, precision=precision)
    step.frozen.train()
    with FakeCopyMode(mode):
        return copy.deepcopy(step), mode


# An orthogonal array: any two columns hold all four pairs of frozen tensors, of optimizer,
# augmentation and precision.
ROWS = (
    ("nothing", "sgd", None, "fp32"),
    ("half", "sgd", Augment(1), "bf16"),
    ("nothing", "adam", Augment(1), "fp32"),
    ("half", "adam", None, "bf16"),
    ("parts", "sgd", None, "bf16"),  # features are kept
    ("parts", "adam", Augment(1), "fp32"),
)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("frozen", "optimizer", "augment", "precision"), ROWS)
def test_no_step_asks_for_a_value(
    net: Net,
    data: Resident,
    objective: str,
    frozen: str,
    optimizer: str,
    augment: Augment | None,
    precision: str,
) -> None:
    schedule = Schedule(2, batch=16, optimizer=optimizer, augment=augment)
    step, mode = without_values(net, data, schedule, OBJECTIVES[objective], frozen, precision)
    assert (step.frozen_outputs is not None) == (frozen == "parts" and augment is None)
    with mode:
        for size in (16, 16, 8):
            step(size)
    for _, learner in step.learners():
        assert len(learner.state) == len(learner.param_groups[0]["params"])


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_tensor_of_a_step_is_on_the_device(net: Net, data: Resident, objective: str) -> None:
    """All tensors pretend to lie on a second device: one that is made on the first, or left there,
    does not mix. SAM's second pass included.
    """
    sharpness = 0 if objective == "sparsity" else 0.05  # PAST cannot take it
    schedule = Schedule(2, batch=16, optimizer="adam", augment=Augment(1), sharpness=sharpness)
    step, mode = without_values(net, data, schedule, OBJECTIVES[objective], "half", "fp32")
    own = [parameter for network, _ in step.learners() for parameter in network.parameters()]
    for tensor in (*mode.fake_tensor_converter.tensor_memo.values(), *own):
        tensor.fake_device = ELSEWHERE
    with mode:
        for size in (16, 8):
            step(size)
    assert step.loss.device == step.data.samples.device == ELSEWHERE
    states = [state for _, learner in step.learners() for state in learner.state.values()]
    assert {value.device for state in states for value in state.values()} == {ELSEWHERE}
    step.offsets.fake_device = torch.device("cpu")
    with mode, pytest.raises(RuntimeError, match="same device"):
        step(16)


def test_a_host_branch_would_be_noticed(
    net: Net, data: Resident, monkeypatch: pytest.MonkeyPatch
) -> None:
    def branching(objective: Objective, logits: Tensor, labels: Tensor, epoch: Tensor) -> Tensor:
        mean = functional.cross_entropy(logits, labels)
        return mean if mean > 1 else -mean

    monkeypatch.setattr(module, "loss", branching)
    step, mode = without_values(net, data, SHORT, CrossEntropy(), "nothing", "fp32")
    with mode, pytest.raises(DataDependentOutputException):
        step(16)


@pytest.mark.parametrize("frozen", ["nothing", "half"])
def test_sharpness_takes_the_gradient_uphill(net: Net, data: Resident, frozen: str) -> None:
    """One step, against SAM written down: the norm is of free weights, and statistics know the
    first pass alone.
    """
    rho = 0.3
    lr = 0.1
    mask = masks(net, frozen)
    other = copy.deepcopy(net).train()
    x = (data.samples[MEMBERS].permute(0, 3, 1, 2).float() / 255 - data.mean) / data.std

    def slopes() -> dict[str, Tensor]:
        other.zero_grad()
        functional.cross_entropy(other(x), data.labels[MEMBERS]).backward()
        found = {name: weight.grad.clone() for name, weight in other.named_parameters()}
        for name in mask.keys() & found.keys():
            found[name][mask[name]] = 0
        return found

    up = slopes()
    statistics = {name: buffer.clone() for name, buffer in other.named_buffers()}
    norm = torch.cat([part.flatten() for part in up.values()]).norm()
    with torch.no_grad():
        for name, weight in other.named_parameters():
            weight.add_(rho * up[name] / norm)
    down = slopes()
    schedule = Schedule(1, 56, lr=lr, sharpness=rho, **STILL)
    found = trained(net, data, None, schedule, frozen=mask).states["last"]
    for name, weight in net.named_parameters():
        expected = weight.detach() - lr * down[name]
        torch.testing.assert_close(found[name], expected, rtol=1e-3, atol=1e-5)
    for name in statistics.keys() - mask.keys():
        torch.testing.assert_close(found[name], statistics[name])


@pytest.mark.parametrize(
    "objective", ["cross-entropy", "adversarial", "sparsity", "class-wise", "distillation"]
)
def test_rehearsals_leave_no_trace(net: Net, data: Resident, objective: str) -> None:
    step = begun(net, data, OBJECTIVES[objective])
    networks = [network for network, _ in step.learners()]
    assert len(networks) == (2 if objective == "adversarial" else 1)
    before = [values(network) for network in networks]
    step.begin(0, 0.1, step.tables(0, 0))
    with step.undone():
        step(16)
        assert not any(map(equal, before, map(values, networks)))
    with pytest.raises(KeyboardInterrupt), step.undone():
        step(8)
        raise KeyboardInterrupt
    assert all(map(equal, before, map(values, networks)))
    for network, optimizer in step.learners():
        assert all(parameter.grad is None for parameter in network.parameters())
        tensors = itertools.chain(*(state.values() for state in optimizer.state.values()))
        assert not any(tensor.any() for tensor in tensors)


def test_counts(net: Net, data: Resident) -> None:
    """Loss and hits of an epoch, against a network that does not move."""
    step = begun(net, data, CrossEntropy(), Schedule(2, batch=16, lr=0.0))
    order = torch.arange(55, -1, -1)
    still = torch.zeros(56, dtype=torch.int64)
    step.begin(0, 0.0, augmentation.Tables(order, still, still, still.bool()))
    loss = 0.0
    right = 0
    for rows in order.split(16):
        step(len(rows))
        with torch.no_grad():
            logits = net(augmentation.plain(data, rows))
        loss += float(functional.cross_entropy(logits, data.labels[rows], reduction="sum"))
        right += int((logits.argmax(1) == data.labels[rows]).sum())
    assert int(step.position) == 56
    assert int(step.right) == right
    assert float(step.loss) == pytest.approx(loss, rel=1e-6)


def test_every_second_epoch_of_relaxloss_flattens(net: Net, data: Resident) -> None:
    objective = RelaxLoss(5.0)  # above the loss
    step = begun(net, data, objective)
    for epoch in range(4):
        step.begin(epoch, 0.0, step.tables(0, epoch))
        step(16)
        rows = step.order[0, 0, :16]
        with torch.no_grad():
            logits = net(augmentation.plain(data, rows))
        expected = objectives.loss(objective, logits, data.labels[rows], torch.tensor(epoch % 2))
        assert float(step.loss) / 16 == pytest.approx(float(expected), rel=1e-5)


def test_float32_is_not_tf32_and_other_switches_stay() -> None:
    cudnn = torch.backends.cudnn
    with cudnn.flags(enabled=True, benchmark=True, deterministic=True):
        with module.float32():
            assert (cudnn.allow_tf32, cudnn.benchmark, cudnn.deterministic) == (False, True, True)
        assert cudnn.allow_tf32
