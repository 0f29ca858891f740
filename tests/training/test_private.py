"""Differentially private training against plain sums of clipped gradients, and what it promises."""

import copy
import math
import warnings
from collections import OrderedDict

import numpy as np
import pytest
import torch
from opacus.accountants import RDPAccountant
from torch import Tensor, nn
from torch.nn import functional

from leak_atlas import BadInput
from leak_atlas.data import augmentation
from leak_atlas.data.resident import Resident
from leak_atlas.models import Net, build
from leak_atlas.recipe import DPSGD, Augment, CrossEntropy, Model, Schedule
from leak_atlas.training import private
from leak_atlas.training.defences import update_for
from leak_atlas.training.frozen import freezing
from leak_atlas.training.loop import fit
from leak_atlas.training.private import Private
from leak_atlas.training.update import Task
from tests.training.test_plans import same
from tests.training.test_update import MEMBERS, masks

SILENT = DPSGD(noise=0, clip=1e6)  # neither noise nor clipping
SHORT = Schedule(3, batch=16, lr=0.05)
PLAIN = Schedule(1, batch=16, lr=0.1, momentum=0.0, weight_decay=0.0, decay="constant")


@pytest.fixture
def net() -> Net:
    return build(Model("vit", width=1), 1, 3, seed=0, size=8)


@pytest.fixture
def linear() -> Net:
    torch.manual_seed(0)
    head = nn.Sequential(nn.Flatten(), nn.LayerNorm(64), nn.Linear(64, 3))
    return Net(OrderedDict(stem=nn.Identity(), head=head))


def private_step(
    net: Net, data: Resident, objective: DPSGD, schedule: Schedule = PLAIN, seed: int = 0
) -> Private:
    with freezing(net, {}) as hold:
        step = update_for(objective, Task(net, hold, data, MEMBERS, schedule, "fp32", seed))
    assert isinstance(step, Private)
    return step


def take(step: Private, rows: list[int], rate: float = 0.1) -> None:
    """One step on just these members."""
    still = torch.zeros(len(rows), dtype=torch.int64)
    step.begin(
        0,
        rate,
        augmentation.Tables(torch.tensor(rows, dtype=torch.int64), still, still, still.bool()),
    )
    step(*step.batches(0)[0])


def drawn_by(step: Private) -> tuple[Tensor, ...]:
    """The tables `(4, size)` of each batch of the epoch that has begun."""
    return step.order[:, 0].split([batch.size for batch in step.batches(0)], dim=1)


def clipped(net: Net, data: Resident, row: int, clip: float) -> list[Tensor]:
    """One sample's gradient, scaled to a norm of at most `clip`."""
    logits = net(augmentation.plain(data, torch.tensor([row])))
    gradients = torch.autograd.grad(
        functional.cross_entropy(logits, data.labels[[row]]), list(net.parameters())
    )
    norm = math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients))
    return [gradient * min(1.0, clip / norm) for gradient in gradients]


# ---------------------------------------------------------------- one step


@pytest.mark.parametrize("name", ["vit", "linear", "atm-xt"])
@pytest.mark.parametrize("clip", [0.05, 0.5, 1e6])
def test_a_step_follows_the_sum_of_clipped_gradients(
    net: Net, linear: Net, data: Resident, name: str, clip: float
) -> None:
    own = {"vit": net, "linear": linear}.get(name) or build(Model(name, width=4), 1, 3, seed=0)
    rows = [3, 1, 40, 17, 5]
    total = [
        sum(parts) for parts in zip(*(clipped(own, data, row, clip) for row in rows), strict=True)
    ]
    before = [parameter.detach().clone() for parameter in own.parameters()]
    step = private_step(own, data, DPSGD(noise=0, clip=clip))
    take(step, rows)
    for parameter, start, gradient in zip(own.parameters(), before, total, strict=True):
        torch.testing.assert_close(
            parameter.detach(), start - 0.1 * gradient / (56 / 4), atol=2e-7, rtol=1e-4
        )
    assert int(step.position) == 5


def test_text_has_gradients_of_its_own_too() -> None:
    """Words that are looked up and positions that are added: each sample's gradient, and nobody's
    padding.
    """
    net = build(Model("transformer", width=8), 20, 3, seed=0, size=6)
    assert_gradients_of_their_own(
        net, torch.tensor([[3, 4, 5, 3, 0, 0], [7, 2, 0, 0, 0, 0], [1, 1, 1, 9, 9, 19]])
    )


@pytest.mark.parametrize("name", ["resnet10", "vgg11", "densenet121", "wrn16"])
def test_networks_with_groupnorm_have_them_too(name: str) -> None:
    """In float64: two channels of a group on a map of one pixel are their signs, whose float32
    gradients are noise.
    """
    net = build(Model(name, width=4, norm="group"), 1, 3, seed=0)
    net.to(torch.float64, memory_format=torch.contiguous_format)
    assert_gradients_of_their_own(
        net, torch.randn(3, 1, 8, 8, generator=torch.Generator().manual_seed(0)).double()
    )


def assert_gradients_of_their_own(net: Net, x: Tensor) -> None:
    labels = torch.tensor([0, 2, 1])
    hooks = private.Hooks(net, loss_reduction="mean")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        functional.cross_entropy(net(x), labels).backward()
    found = {name: parameter.grad_sample.clone() for name, parameter in net.named_parameters()}
    hooks.cleanup()
    for row in range(3):
        value = functional.cross_entropy(net(x[row : row + 1]), labels[row : row + 1])
        alone = torch.autograd.grad(value, list(net.parameters()))
        for name, gradient in zip(found, alone, strict=True):
            torch.testing.assert_close(found[name][row], gradient, atol=1e-6, rtol=1e-4)


def test_groups_are_averaged_before_they_are_clipped(
    net: Net, data: Resident, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven members in groups of three, the last alone, whether the batch is worked off at once or
    in parts.
    """
    rows, clip, before = [3, 1, 40, 17, 5, 8, 22], 0.5, copy.deepcopy(net)
    expected = [torch.zeros_like(parameter) for parameter in net.parameters()]
    for start in range(0, 7, 3):
        each = [clipped(net, data, row, math.inf) for row in rows[start : start + 3]]
        mean = [sum(parts) / len(parts) for parts in zip(*each, strict=True)]
        norm = math.sqrt(sum(float(part.square().sum()) for part in mean))
        for total, part in zip(expected, mean, strict=True):
            total += part * min(1.0, clip / norm)
    # one group
    for room in (private.ROOM, 4 * sum(parameter.numel() for parameter in net.parameters()) * 4):
        monkeypatch.setattr(private, "ROOM", room)
        own = copy.deepcopy(before)
        take(private_step(own, data, DPSGD(noise=0, clip=clip, group=3)), rows)
        for found, start, total in zip(
            own.parameters(), before.parameters(), expected, strict=True
        ):
            torch.testing.assert_close(
                found.detach(), start - 0.1 * total / (56 / 4 / 3), atol=2e-7, rtol=1e-4
            )
    noisy = copy.deepcopy(before)
    take(private_step(noisy, data, DPSGD(noise=2.0, clip=0.5, group=7)), [], rate=1.0)
    pairs = zip(noisy.parameters(), before.parameters(), strict=True)
    moved = torch.cat([(a - b).detach().flatten() for a, b in pairs])
    assert float(moved.std()) == pytest.approx(2.0 * 0.5 / (56 / 4 / 7), rel=0.05)


def test_one_large_gradient_moves_by_rate_times_clip_over_batch(net: Net, data: Resident) -> None:
    before = [parameter.detach().clone() for parameter in net.parameters()]
    take(private_step(net, data, DPSGD(noise=0, clip=0.01)), [7], rate=0.5)
    pairs = zip(net.parameters(), before, strict=True)
    moved = math.sqrt(sum(float((p.detach() - b).square().sum()) for p, b in pairs))
    assert moved == pytest.approx(0.5 * 0.01 / (56 / 4), rel=1e-3)


def test_large_batches_are_worked_off_in_parts(
    net: Net, data: Resident, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fit(copy.deepcopy(net), data, MEMBERS, SHORT, DPSGD(noise=0.1), seed=1)
    numbers = sum(parameter.numel() for parameter in net.parameters())
    monkeypatch.setattr(private, "ROOM", 4 * numbers * 3)  # three samples
    parts = fit(net, data, MEMBERS, SHORT, DPSGD(noise=0.1), seed=1)
    for name, value in whole.states["last"].items():
        torch.testing.assert_close(parts.states["last"][name], value, atol=1e-5, rtol=1e-4)
    np.testing.assert_array_equal(whole.history["epsilon"], parts.history["epsilon"])
    np.testing.assert_allclose(whole.history["loss"], parts.history["loss"], rtol=1e-5)


def test_an_empty_batch_is_noise_alone(net: Net, data: Resident) -> None:
    before = torch.cat([parameter.detach().flatten() for parameter in net.parameters()])
    step = private_step(net, data, DPSGD(noise=2.0, clip=0.5))
    take(step, [], rate=1.0)
    moved = torch.cat([parameter.detach().flatten() for parameter in net.parameters()]) - before
    assert float(moved.std()) == pytest.approx(2.0 * 0.5 / (56 / 4), rel=0.05)
    assert not (step.position or step.loss or step.right)
    still = copy.deepcopy(net.state_dict())
    take(private_step(net, data, DPSGD(noise=0.0)), [], rate=1.0)
    assert all(torch.equal(still[name], value) for name, value in net.state_dict().items())


# ---------------------------------------------------------------- a training


def test_without_noise_and_clipping_it_is_sgd_on_the_same_batches(net: Net, data: Resident) -> None:
    schedule = Schedule(2, batch=16, lr=0.05, augment=Augment(1))
    plain = copy.deepcopy(net)
    optimizer = torch.optim.SGD(plain.parameters(), 0.05, momentum=0.9, weight_decay=5e-4)
    step = private_step(net, data, SILENT, schedule)
    for epoch in range(2):
        optimizer.param_groups[0]["lr"] = 0.05 * (1, 0.5)[epoch]
        step.begin(epoch, 0.05 * (1, 0.5)[epoch], step.tables(3, epoch))
        for batch, drawn in zip(step.batches(epoch), drawn_by(step), strict=True):
            step(*batch)
            optimizer.zero_grad()
            index, dy, dx, flip = drawn
            x = augmentation.gather(data, MEMBERS[index], dy, dx, flip, 1)
            total = functional.cross_entropy(plain(x), data.labels[MEMBERS[index]], reduction="sum")
            (total / (56 / 4)).backward()
            optimizer.step()
    for found, expected in zip(net.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_every_member_is_as_likely_in_every_batch(net: Net, data: Resident) -> None:
    step = private_step(net, data, DPSGD())
    seen, sizes, together = torch.zeros(56), [], 0
    for epoch in range(400):
        step.begin(epoch, 0.1, step.tables(1, epoch))
        assert len(step.batches(epoch)) == step.steps == 4
        for drawn in drawn_by(step):
            seen[drawn[0]] += 1
            sizes.append(drawn.shape[1])
            together += int((drawn[0] == 0).any() and (drawn[0] == 1).any())
    assert abs(seen / 400 - 1).max() < 5 * math.sqrt(0.75 / 400)
    assert np.mean(sizes) == pytest.approx(14, abs=0.4)
    assert np.var(sizes) == pytest.approx(56 * 0.25 * 0.75, rel=0.15)
    assert together / 1600 == pytest.approx(1 / 16, abs=0.02), "two members are drawn independently"


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_seed_is_a_training(net: Net, data: Resident, optimizer: str) -> None:
    schedule = Schedule(2, batch=16, lr=0.01, optimizer=optimizer, augment=Augment(1))
    torch.manual_seed(1)
    first = fit(copy.deepcopy(net), data, MEMBERS, schedule, DPSGD(), seed=1)
    torch.manual_seed(2)
    second = fit(copy.deepcopy(net), data, MEMBERS, schedule, DPSGD(), seed=1, wanted=("init", 1))
    assert all(
        torch.equal(first.states["last"][name], value)
        for name, value in second.states["last"].items()
    )
    assert not same(first, fit(copy.deepcopy(net), data, MEMBERS, schedule, DPSGD(), seed=2))
    assert not same(first, fit(net, data, MEMBERS, schedule, DPSGD(noise=0), seed=1))


def test_it_learns_and_leaves_nothing_behind(net: Net, data: Resident) -> None:
    names = set(vars(net.head.fc.weight)) | set(vars(net))
    found = fit(
        net, data, MEMBERS, Schedule(25, batch=14, lr=0.01, optimizer="adam"), DPSGD(0.3), seed=0
    )
    assert found.history["accuracy"][-1] > 0.8 > 0.6 > found.history["accuracy"][0]
    assert set(found.history) == {"loss", "accuracy", "rate", "epsilon"}
    assert set(found.states["last"]) == set(net.state_dict()) and not any(
        "_module" in n for n in net.state_dict()
    )
    assert not any(m._forward_hooks or m._backward_hooks for m in net.modules())
    assert not hasattr(net.head.fc.weight, "grad_sample") and names <= set(
        vars(net.head.fc.weight)
    ) | set(vars(net))


def test_bf16_stays_near(net: Net, data: Resident) -> None:
    objective = DPSGD(noise=0.05)
    low = fit(copy.deepcopy(net), data, MEMBERS, SHORT, objective, seed=1, precision="bf16")
    full = fit(net, data, MEMBERS, SHORT, objective, seed=1)
    np.testing.assert_allclose(low.history["loss"], full.history["loss"], atol=0.1)
    assert all(value.dtype == torch.float32 for value in low.states["last"].values())


# ---------------------------------------------------------------- frozen


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("frozen", ["parts", "half"])
@pytest.mark.parametrize("augment", [None, Augment(1)], ids=["plain", "augmented"])
def test_held_weights_keep_their_bits_under_noise(
    net: Net, data: Resident, frozen: str, optimizer: str, augment: Augment | None
) -> None:
    mask, before = (
        masks(net, frozen),
        {name: value.clone() for name, value in net.state_dict().items()},
    )
    schedule = Schedule(
        2, batch=16, lr=0.05, weight_decay=0.01, optimizer=optimizer, augment=augment
    )
    after = fit(net, data, MEMBERS, schedule, DPSGD(noise=3), seed=1, frozen=mask).states["last"]
    assert mask and all(
        torch.equal(before[name][keep], after[name][keep]) for name, keep in mask.items()
    )
    moved = [
        (before[n] != v)[~mask[n] if n in mask else ...].float().mean() for n, v in after.items()
    ]
    assert np.nanmean(moved) > 0.95


def test_held_weights_are_out_of_what_is_clipped(net: Net, data: Resident) -> None:
    """The norm counts what may move alone: a sample's gradient there has the whole `clip` to
    itself.
    """
    mask = {"head.fc.weight": torch.ones(3, 8, dtype=torch.bool)}
    mask["head.fc.weight"][0] = False
    mask |= {
        name: torch.ones_like(value, dtype=torch.bool) for name, value in net.state_dict().items()
    } | mask
    before = net.head.fc.weight.detach().clone()
    with freezing(net, mask) as hold:
        step = update_for(
            DPSGD(noise=0, clip=1e-3), Task(net, hold, data, MEMBERS, PLAIN, "fp32", 0)
        )
        assert isinstance(step, Private)
        take(step, [7], rate=1.0)
    moved = net.head.fc.weight.detach() - before
    assert not moved[1:].any()
    assert float(moved[0].norm()) == pytest.approx(1e-3 / (56 / 4), rel=5e-3)


# ---------------------------------------------------------------- epsilon


def epsilon(net: Net, data: Resident, objective: DPSGD) -> np.ndarray:
    return fit(copy.deepcopy(net), data, MEMBERS, SHORT, objective, seed=0).history["epsilon"]


@pytest.mark.parametrize("noise", [0.5, 4.0])
def test_epsilon_is_opacus_own(net: Net, data: Resident, noise: float) -> None:
    found = epsilon(net, data, DPSGD(noise=noise, delta=1e-3))
    accountant = RDPAccountant()
    expected = []
    for _ in range(3):
        for _ in range(4):  # steps of an epoch
            accountant.step(noise_multiplier=noise, sample_rate=1 / 4)
        expected.append(accountant.get_epsilon(delta=1e-3))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert (np.diff(found) > 0).all()


def test_no_noise_has_no_epsilon_and_neither_has_a_group(net: Net, data: Resident) -> None:
    assert np.isinf(epsilon(net, data, DPSGD(noise=0))).all()
    assert np.isnan(epsilon(net, data, DPSGD(group=8))).all()


# ---------------------------------------------------------------- what is refused


def test_batchnorm_is_refused(data: Resident) -> None:
    with pytest.raises(BadInput, match="without BatchNorm"):
        fit(build(Model("resnet10", width=2), 1, 3, seed=0), data, MEMBERS, SHORT, DPSGD(), seed=0)


def test_it_is_not_recorded(net: Net, data: Resident) -> None:
    with pytest.raises(BadInput, match="one by one"):
        fit(net, data, MEMBERS, SHORT, DPSGD(), seed=0, plan="graph")
    assert not same(
        *(
            fit(copy.deepcopy(net), data, MEMBERS, SHORT, o, seed=0)
            for o in (DPSGD(), CrossEntropy())
        )
    )
