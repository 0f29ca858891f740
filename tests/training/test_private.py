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
from leak_atlas.recipe import DPSGD, Augment, Model, Schedule
from leak_atlas.training import private
from leak_atlas.training.frozen import freezing
from leak_atlas.training.loop import fit
from leak_atlas.training.private import Private
from tests.training.small import MEMBERS, STILL, begun, equal, masks, same, trained, values

SILENT = DPSGD(noise=0, clip=1e6)  # neither noise nor clipping
PLAIN = Schedule(1, batch=16, lr=0.1, decay="constant", **STILL)
STEP = 56 / 4  # expected size of a batch


@pytest.fixture
def net() -> Net:
    return build(Model("vit", width=1), 1, 3, seed=0, size=8)


@pytest.fixture
def linear() -> Net:
    torch.manual_seed(0)
    head = nn.Sequential(nn.Flatten(), nn.LayerNorm(64), nn.Linear(64, 3))
    return Net(OrderedDict(stem=nn.Identity(), head=head))


def take(step: Private, rows: list[int], rate: float = 0.1) -> None:
    """One step on just these members."""
    still = torch.zeros(len(rows), dtype=torch.int64)
    places = torch.tensor(rows, dtype=torch.int64)
    step.begin(0, rate, augmentation.Tables(places, still, still, still.bool()))
    step(*step.batches(0)[0])


def flat(net: Net) -> Tensor:
    """All weights in a row."""
    return torch.cat([weight.detach().flatten() for weight in net.parameters()])


def drawn_by(step: Private) -> tuple[Tensor, ...]:
    """The tables `(4, size)` of each batch of the epoch that has begun."""
    return step.order[:, 0].split([batch.size for batch in step.batches(0)], dim=1)


def gradient(net: Net, data: Resident, rows: list[int]) -> Tensor:
    """The gradient of the mean loss of some samples, all weights in a row."""
    logits = net(augmentation.plain(data, torch.tensor(rows)))
    loss = functional.cross_entropy(logits, data.labels[rows])
    return torch.cat([part.flatten() for part in torch.autograd.grad(loss, [*net.parameters()])])


def clipped(vector: Tensor, clip: float) -> Tensor:
    return vector * min(1.0, clip / float(vector.norm()))


# ---------------------------------------------------------------- one step


@pytest.mark.parametrize("name", ["vit", "linear", "atm-xt"])
@pytest.mark.parametrize("clip", [0.05, 1e6])
def test_a_step_follows_the_sum_of_clipped_gradients(
    net: Net, linear: Net, data: Resident, name: str, clip: float
) -> None:
    own = {"vit": net, "linear": linear}.get(name) or build(Model(name, width=4), 1, 3, seed=0)
    rows = [3, 1, 40, 17, 5]
    total = sum(clipped(gradient(own, data, [row]), clip) for row in rows)
    expected = flat(own) - 0.1 * total / STEP
    step = begun(own, data, DPSGD(noise=0, clip=clip), PLAIN)
    take(step, rows)
    torch.testing.assert_close(flat(own), expected, atol=2e-7, rtol=1e-4)
    assert int(step.position) == 5


@pytest.mark.parametrize("noise", [0.0, 2.0])
def test_a_batch_in_parts_takes_the_step_of_the_whole(
    net: Net, data: Resident, monkeypatch: pytest.MonkeyPatch, noise: float
) -> None:
    rows = [3, 1, 40, 17, 5]
    objective = DPSGD(noise=noise, clip=0.05)
    loss = functional.cross_entropy(net(augmentation.plain(data, MEMBERS[rows])), data.labels[rows])
    whole = copy.deepcopy(net)
    take(begun(whole, data, objective, PLAIN), rows)

    float32_gradients = 4 * len(flat(net))
    monkeypatch.setattr(private, "ROOM", 2 * float32_gradients)
    step = begun(net, data, objective, PLAIN)
    take(step, rows)
    assert step.part == 2
    torch.testing.assert_close(flat(net), flat(whole), atol=2e-7, rtol=1e-4)
    assert float(step.loss) / 5 == pytest.approx(float(loss.detach()), rel=1e-5)


def test_text_has_gradients_of_its_own() -> None:
    """Words that are looked up and positions that are added; padding has no gradient."""
    net = build(Model("transformer", width=8), 20, 3, seed=0, size=6)
    words = [[3, 4, 5, 3, 0, 0], [7, 2, 0, 0, 0, 0], [1, 1, 1, 9, 9, 19]]
    assert_gradients_of_their_own(net, torch.tensor(words))


@pytest.mark.parametrize("name", ["resnet10", "vgg11", "densenet121", "wrn16"])
def test_networks_with_groupnorm_have_them_too(name: str) -> None:
    """In float64: two channels of a group on a map of one pixel are their signs, whose float32
    gradients are noise.
    """
    net = build(Model(name, width=4, norm="group"), 1, 3, seed=0)
    net.to(torch.float64, memory_format=torch.contiguous_format)
    generator = torch.Generator().manual_seed(0)
    assert_gradients_of_their_own(net, torch.randn(3, 1, 8, 8, generator=generator).double())


def assert_gradients_of_their_own(net: Net, x: Tensor) -> None:
    labels = torch.tensor([0, 2, 1])
    hooks = private.Hooks(net, loss_reduction="mean")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        functional.cross_entropy(net(x), labels).backward()
    found = [parameter.grad_sample.clone() for parameter in net.parameters()]
    hooks.cleanup()
    for row in range(3):
        value = functional.cross_entropy(net(x[row : row + 1]), labels[row : row + 1])
        alone = torch.autograd.grad(value, list(net.parameters()))
        for own, expected in zip(found, alone, strict=True):
            torch.testing.assert_close(own[row], expected, atol=1e-6, rtol=1e-4)


def test_an_empty_batch_is_noise_alone(net: Net, data: Resident) -> None:
    before = flat(net)
    step = begun(net, data, DPSGD(noise=2.0, clip=0.5), PLAIN)
    take(step, [], rate=1.0)
    assert float((flat(net) - before).std()) == pytest.approx(2.0 * 0.5 / STEP, rel=0.05)
    assert not (step.position or step.loss or step.right)
    still = values(net)
    take(begun(net, data, DPSGD(noise=0.0), PLAIN), [], rate=1.0)
    assert equal(still, values(net))


# ---------------------------------------------------------------- a training


def test_without_noise_and_clipping_it_is_sgd_on_the_same_batches(net: Net, data: Resident) -> None:
    plain = copy.deepcopy(net)
    optimizer = torch.optim.SGD(plain.parameters(), momentum=0.9, weight_decay=5e-4)
    step = begun(net, data, SILENT, Schedule(2, batch=16, augment=Augment(1)))
    for epoch, rate in enumerate((0.05, 0.025)):
        optimizer.param_groups[0]["lr"] = rate
        step.begin(epoch, rate, step.tables(3, epoch))
        for batch, (index, *views) in zip(step.batches(epoch), drawn_by(step), strict=True):
            step(*batch)
            optimizer.zero_grad()
            logits = plain(augmentation.gather(data, MEMBERS[index], *views, 1))
            labels = data.labels[MEMBERS[index]]
            (functional.cross_entropy(logits, labels, reduction="sum") / STEP).backward()
            optimizer.step()
    torch.testing.assert_close(flat(net), flat(plain), atol=1e-5, rtol=1e-4)


def test_every_member_is_as_likely_in_every_batch(net: Net, data: Resident) -> None:
    step = begun(net, data, DPSGD(), PLAIN)
    seen = torch.zeros(56)
    together = 0
    sizes = []
    for epoch in range(400):
        step.begin(epoch, 0.1, step.tables(1, epoch))
        assert len(step.batches(epoch)) == step.steps == 4
        sizes.append([batch.size for batch in step.batches(epoch)])
        for drawn in drawn_by(step):
            seen[drawn[0]] += 1
            together += int((drawn[0] == 0).any() and (drawn[0] == 1).any())
    assert abs(seen / 400 - 1).max() < 5 * math.sqrt(0.75 / 400)
    assert together / 1600 == pytest.approx(1 / 16, abs=0.02), "two members are drawn independently"
    # The sizes of an epoch's batches are binomial and independent.
    expected = 56 * 0.25 * 0.75 * np.eye(4)
    np.testing.assert_allclose(np.cov(sizes, rowvar=False), expected, atol=2.5)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_seed_is_a_training(net: Net, data: Resident, optimizer: str) -> None:
    schedule = Schedule(2, batch=16, lr=0.01, optimizer=optimizer, augment=Augment(1))
    torch.manual_seed(1)
    first = trained(net, data, DPSGD(), schedule)
    torch.manual_seed(2)
    assert same(first, trained(net, data, DPSGD(), schedule))
    assert not same(first, trained(net, data, DPSGD(), schedule, seed=2))
    assert not same(first, trained(net, data, DPSGD(noise=0), schedule))


def test_it_learns_and_leaves_nothing_behind(net: Net, data: Resident) -> None:
    schedule = Schedule(25, batch=14, lr=0.01, optimizer="adam")
    found = fit(net, data, MEMBERS, schedule, DPSGD(0.3), seed=0)
    assert found.history["accuracy"][-1] > 0.8 > 0.6 > found.history["accuracy"][0]
    assert not any(m._forward_hooks or m._backward_hooks for m in net.modules())
    assert not hasattr(net.head.fc.weight, "grad_sample")


# ---------------------------------------------------------------- frozen


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize(("frozen", "augment"), [("parts", None), ("half", Augment(1))])
def test_frozen_weights_keep_their_bits_under_noise(
    net: Net, data: Resident, frozen: str, optimizer: str, augment: Augment | None
) -> None:
    mask = masks(net, frozen)
    before = values(net)
    schedule = Schedule(2, 16, optimizer, 0.05, weight_decay=0.01, augment=augment)
    after = trained(net, data, DPSGD(noise=3), schedule, frozen=mask).states["last"]
    moved = []
    for name, value in after.items():
        kept = mask.get(name, torch.zeros_like(value, dtype=torch.bool))
        changed = before[name] != value
        assert not changed[kept].any()
        moved.append(float(changed[~kept].float().mean()))
    assert np.nanmean(moved) > 0.95


def test_frozen_weights_are_not_part_of_the_clipped_norm(net: Net, data: Resident) -> None:
    """The norm counts free weights alone: a sample's gradient there has the whole `clip`."""
    mask = {name: torch.ones_like(value, dtype=torch.bool) for name, value in values(net).items()}
    mask["head.fc.weight"][0] = False
    before = net.head.fc.weight.detach().clone()
    with freezing(net, mask) as kept:
        take(begun(net, data, DPSGD(noise=0, clip=1e-3), PLAIN, frozen=kept), [7], rate=1.0)
    moved = net.head.fc.weight.detach() - before
    assert not moved[1:].any()
    assert float(moved[0].norm()) == pytest.approx(1e-3 / STEP, rel=5e-3)


# ---------------------------------------------------------------- epsilon


def epsilon(net: Net, data: Resident, objective: DPSGD) -> np.ndarray:
    return trained(net, data, objective).history["epsilon"]


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


def test_without_noise_there_is_no_epsilon(net: Net, data: Resident) -> None:
    assert np.isinf(epsilon(net, data, DPSGD(noise=0))).all()


# ---------------------------------------------------------------- what is refused


def test_batchnorm_is_refused(data: Resident) -> None:
    with pytest.raises(BadInput, match="without BatchNorm"):
        trained(build(Model("resnet10", width=2), 1, 3, seed=0), data, DPSGD())
