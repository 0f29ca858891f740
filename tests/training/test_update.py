"""The step may be recorded: on tensors without values, where asking for one is an error, every kind
of it runs.
"""

import copy
import itertools

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeCopyMode, FakeTensorMode

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
    core,
)
from leak_atlas.training import update as module
from leak_atlas.training.defences import update_for
from leak_atlas.training.frozen import freezing
from leak_atlas.training.loop import fit
from leak_atlas.training.objectives import loss
from leak_atlas.training.update import Task, Update

# A processor with a number is another device than the processor, and builds of torch without CUDA
# know it.
ELSEWHERE = torch.device("cpu", 1)

OBJECTIVES = {
    "cross-entropy": CrossEntropy(),
    "smoothed": CrossEntropy(0.1),
    "relaxed": RelaxLoss(),
    "relaxed-code": RelaxLoss(form="code", upper=0.5),
    "high-entropy": HAMP(),
    "high-entropy-code": HAMP(form="code"),
    "convex-concave": CCL(),
    "quadratic": CCL(form="quadratic"),
    "adversarial": AdversarialRegularization(steps=2, width=32),
    "sparsity": PAST(),
    "class-wise": CSKD(),
    "distillation": Distillation(),
}
MEMBERS, REFERENCE = torch.arange(56), torch.arange(56, 72)
OTHERS = {"reference": REFERENCE}
SOFT = torch.full((56, 3), 1 / 3)
RANKING = torch.rand(56, generator=torch.Generator().manual_seed(5))


def masks(net: Net, frozen: str) -> dict[str, Tensor]:
    """Of nothing, of the first parts with their statistics, or of half of each tensor."""
    generator = torch.Generator().manual_seed(0)
    state = net.state_dict()
    if frozen == "parts":
        return {
            n: torch.ones_like(v, dtype=torch.bool)
            for n, v in state.items()
            if n.startswith(("stem", "stage1"))
        }
    return {
        n: torch.rand(v.shape, generator=generator) < 0.5
        for n, v in state.items()
        if v.dim() and frozen == "half"
    }


def without_values(
    net: Net, data: Resident, schedule: Schedule, objective: Objective, frozen: str, precision: str
) -> tuple[Update, FakeTensorMode]:
    """A training's step whose tensors have shapes, types and devices, but no values."""
    # made before the first step, as they are before a recording
    data.row, data.padded(1), data.window(1)
    mode = FakeTensorMode()
    with freezing(net, masks(net, frozen)) as hold:
        step = update_for(
            objective, Task(net, hold, data, MEMBERS, schedule, precision, 0, OTHERS, SOFT)
        )
        hold.train()
        with FakeCopyMode(mode):
            return copy.deepcopy(step), mode


CHOICES = (
    tuple(OBJECTIVES),
    ("nothing", "parts", "half"),
    ("sgd", "adam"),
    (None, Augment(1)),
    ("fp32", "bf16"),
)
# an orthogonal array: any two columns hold all four pairs
ROWS = ((0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0))
CASES = [
    (objective, frozen, *(pair[k] for pair, k in zip(CHOICES[2:], ROWS[(i + j) % 4], strict=True)))
    for (i, objective), (j, frozen) in itertools.product(
        enumerate(CHOICES[0]), enumerate(CHOICES[1])
    )
]
# Each objective also meets features that are kept, which needs two choices at once: frozen first
# parts, no augmentation.
CASES += [(objective, "parts", "sgd", None, "bf16") for objective in CHOICES[0][::2]]


def test_any_two_choices_meet_in_a_case() -> None:
    for (a, these), (b, those) in itertools.combinations(enumerate(CHOICES), 2):
        assert {(case[a], case[b]) for case in CASES} == set(itertools.product(these, those))
    assert {case[0] for case in CASES if (case[1], case[3]) == ("parts", None)} == set(OBJECTIVES)


@pytest.mark.parametrize(("objective", "frozen", "optimizer", "augment", "precision"), CASES)
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
    assert (step.kept is not None) == (frozen == "parts" and augment is None)
    with mode:
        for size in (16, 16, 8):
            step(size)
    for _, learner in step.learners():
        assert len(learner.state) == len(learner.param_groups[0]["params"])


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_sharpness_goes_with_every_objective(net: Net, data: Resident, objective: str) -> None:
    schedule = Schedule(2, batch=16, augment=Augment(1), sharpness=0.05)
    step, mode = without_values(net, data, schedule, OBJECTIVES[objective], "half", "fp32")
    with mode:
        for size in (16, 8):
            step(size)


@pytest.mark.parametrize("frozen", ["nothing", "half"])
def test_sharpness_takes_the_gradient_uphill(net: Net, data: Resident, frozen: str) -> None:
    """One step, against SAM written down: the norm is of free weights, and statistics know the
    first pass alone.
    """
    rho, lr, mask = 0.3, 0.1, masks(net, frozen)
    other, before = (
        copy.deepcopy(net).train(),
        {n: p.detach().clone() for n, p in net.named_parameters()},
    )
    free = {
        n: ~mask[n] if n in mask else torch.ones_like(p, dtype=torch.bool)
        for n, p in before.items()
    }

    def slopes() -> dict[str, Tensor]:
        other.zero_grad()
        x = (data.samples[MEMBERS].permute(0, 3, 1, 2).float() / 255 - data.mean) / data.std
        torch.nn.functional.cross_entropy(other(x), data.labels[MEMBERS]).backward()
        return {n: torch.where(free[n], p.grad, 0.0) for n, p in other.named_parameters()}

    up = slopes()
    statistics = {n: b.clone() for n, b in other.named_buffers()}
    size = torch.cat([part.flatten() for part in up.values()]).norm()
    with torch.no_grad():
        for name, parameter in other.named_parameters():
            parameter.add_(rho * up[name] / size)
    down = slopes()
    fit(
        net,
        data,
        MEMBERS,
        Schedule(1, 56, lr=lr, momentum=0.0, weight_decay=0.0, sharpness=rho),
        seed=0,
        frozen=mask,
    )
    assert max((up[n] - down[n]).abs().max() for n in up) > 1e-3, "uphill is elsewhere"
    for name, parameter in net.named_parameters():
        torch.testing.assert_close(
            parameter.detach(), before[name] - lr * down[name], rtol=1e-3, atol=1e-5
        )
    for name, buffer in net.named_buffers():
        if name not in mask:
            torch.testing.assert_close(buffer, statistics[name])


def test_a_host_branch_would_be_noticed(
    net: Net, data: Resident, monkeypatch: pytest.MonkeyPatch
) -> None:
    def branching(objective: Objective, logits: Tensor, labels: Tensor, epoch: Tensor) -> Tensor:
        mean = torch.nn.functional.cross_entropy(logits, labels)
        return mean if mean > 1 else -mean

    monkeypatch.setattr(module, "loss", branching)
    step, mode = without_values(net, data, Schedule(2, batch=16), CrossEntropy(), "nothing", "fp32")
    with mode, pytest.raises(DataDependentOutputException):
        step(16)


KINDS = (
    "relaxed",
    "high-entropy",
    "convex-concave",
    "adversarial",
    "sparsity",
    "class-wise",
    "distillation",
)


@pytest.mark.parametrize(
    ("objective", "optimizer", "frozen"),
    [
        (KINDS[i], ("sgd", "adam")[k], ("nothing", "half")[(i + k) % 2])
        for i in range(len(KINDS))
        for k in range(2)
    ],
)
def test_every_tensor_of_a_step_is_on_the_device(
    net: Net, data: Resident, objective: str, optimizer: str, frozen: str
) -> None:
    """All tensors pretend to lie on a second device: one that is made on the first, or left there,
    does not mix.
    """
    schedule = Schedule(2, batch=16, optimizer=optimizer, augment=Augment(1))
    step, mode = without_values(net, data, schedule, OBJECTIVES[objective], frozen, "fp32")
    own = [parameter for network, _ in step.learners() for parameter in network.parameters()]
    for tensor in (*mode.fake_tensor_converter.tensor_memo.values(), *own):
        tensor.fake_device = ELSEWHERE
    with mode:
        for size in (16, 8):
            step(size)
    assert step.loss.device == step.data.samples.device == ELSEWHERE
    for _, learner in step.learners():
        for state in learner.state.values():
            assert {value.device for value in state.values()} == {ELSEWHERE}
    step.ahead.fake_device = torch.device("cpu")
    with mode, pytest.raises(RuntimeError, match="same device"):
        step(16)


@pytest.mark.parametrize(
    "objective", ["cross-entropy", "adversarial", "sparsity", "class-wise", "distillation"]
)
def test_rehearsals_leave_no_trace(net: Net, data: Resident, objective: str) -> None:
    before = {name: value.clone() for name, value in net.state_dict().items()}
    with freezing(net, {}) as hold:
        schedule = Schedule(2, batch=16)
        task = Task(net, hold, data, MEMBERS, schedule, "fp32", 0, OTHERS, SOFT)
        step = update_for(OBJECTIVES[objective], task)
        others = [
            value for network, _ in step.learners()[1:] for value in network.state_dict().values()
        ]
        assert len(others) == (20 if objective == "adversarial" else 0)
        asides = [value.clone() for value in others]
        step.begin(0, 0.1, step.tables(0, 0))
        places = [tensor.data_ptr() for tensor in net.state_dict().values()]
        with step.undone():
            step(16)
            assert any(
                not torch.equal(before[name], value) for name, value in net.state_dict().items()
            )
            assert not others or any(
                not torch.equal(*pair) for pair in zip(others, asides, strict=True)
            )
        with pytest.raises(KeyboardInterrupt), step.undone():
            step(8)
            raise KeyboardInterrupt
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert places == [tensor.data_ptr() for tensor in net.state_dict().values()]
    assert all(torch.equal(value, aside) for value, aside in zip(others, asides, strict=True))
    assert not (step.position or step.loss or step.right)
    for network, optimizer in step.learners():
        assert all(parameter.grad is None for parameter in network.parameters())
        assert all(
            not value.any() for state in optimizer.state.values() for value in state.values()
        )


def test_counts(net: Net, data: Resident) -> None:
    """Loss and hits of an epoch, against a net that does not move."""
    with freezing(net, {}) as hold:
        step = Update(
            CrossEntropy(), Task(net, hold, data, MEMBERS, Schedule(2, batch=16, lr=0.0), "fp32", 0)
        )
        order = torch.arange(55, -1, -1)
        still = torch.zeros(56, dtype=torch.int64)
        step.begin(0, 0.0, module.augmentation.Tables(order, still, still, still.bool()))
        loss, right = 0.0, 0
        for rows in order.split(16):
            step(len(rows))
            with torch.no_grad():
                logits = net(module.augmentation.plain(data, rows))
            loss += float(
                torch.nn.functional.cross_entropy(logits, data.labels[rows], reduction="sum")
            )
            right += int((logits.argmax(1) == data.labels[rows]).sum())
        assert int(step.position) == 56 and int(step.right) == right
        assert float(step.loss) == pytest.approx(loss, rel=1e-6)


def test_a_defence_of_ones_own_is_a_class_and_a_function(
    net: Net, data: Resident, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its logits are float32 whatever the network computes in."""
    monkeypatch.setattr(core, "KINDS", dict(core.KINDS))  # which this test's class does not join
    seen: list[torch.dtype] = []

    class Confident(Objective):
        weight: float = 0.5

    @loss.register
    def confident(objective: Confident, logits: Tensor, labels: Tensor, epoch: Tensor) -> Tensor:
        seen.append(logits.dtype)
        return (
            torch.nn.functional.cross_entropy(logits, labels)
            - objective.weight * logits.logsumexp(dim=1).mean()
        )

    schedule = Schedule(2, batch=16, lr=0.05)
    found = fit(copy.deepcopy(net), data, MEMBERS, schedule, Confident(), seed=0, precision="bf16")
    plain = fit(net, data, MEMBERS, schedule, CrossEntropy(), seed=0, precision="bf16")
    assert found.history["loss"][-1] < plain.history["loss"][-1] and set(seen) == {torch.float32}


def test_float32_is_not_tf32_and_other_switches_stay() -> None:
    cudnn = torch.backends.cudnn
    with cudnn.flags(enabled=True, benchmark=True, deterministic=True):
        with module.float32():
            assert (cudnn.allow_tf32, cudnn.benchmark, cudnn.deterministic) == (False, True, True)
        assert cudnn.allow_tf32
