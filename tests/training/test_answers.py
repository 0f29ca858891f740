"""Logits and scaled confidences."""

from collections import OrderedDict
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional

from leak_atlas import BadInput, lab
from leak_atlas.data import augmentation
from leak_atlas.data.designs import Role
from leak_atlas.data.resident import Resident
from leak_atlas.models import Net
from leak_atlas.recipe import Data, Model, RandomHalves, Schedule, Setup, VictimAttacker
from leak_atlas.training import answers


def test_scaled_confidence_closed_forms() -> None:
    z = torch.randn(5, 4, generator=torch.Generator().manual_seed(0)).double()
    labels = torch.arange(5) % 4
    p = z.softmax(1).gather(1, labels[:, None])[:, 0]
    for shift in (0, 7):
        torch.testing.assert_close(
            answers.scaled_confidence(z + shift, labels), torch.log(p / (1 - p))
        )
    extreme = answers.scaled_confidence(torch.tensor([[1e4, 0.0]]), torch.tensor([0]))
    assert torch.isfinite(extreme).all()


@pytest.mark.parametrize("views", [1, 2, 18])
def test_shapes_types_and_the_plain_view(net: Net, data: Resident, views: int) -> None:
    index = torch.arange(5, 60)
    z, confidence = answers.logits(net, data, index, views)
    assert z.shape == (55, 3)
    assert z.dtype == torch.float32
    assert confidence.shape == (55, views)
    assert confidence.dtype == torch.float64
    torch.testing.assert_close(confidence[:, 0], answers.scaled_confidence(z, data.labels[index]))
    assert not z.is_inference() and net.training  # as it was before


@pytest.mark.parametrize("count", [2, 18])
def test_a_view_is_the_shifted_and_mirrored_image(net: Net, data: Resident, count: int) -> None:
    index = torch.arange(20)
    _, found = answers.logits(net, data, index, count)
    padded = functional.pad(data.samples, (0, 0, 1, 1, 1, 1))
    for place, (dy, dx, flip) in enumerate(augmentation.views(count, 1)):
        samples = padded[:, 1 + dy : 9 + dy, 1 + dx : 9 + dx]
        moved = replace(data, samples=samples.flip(2) if flip else samples, _made={})
        _, expected = answers.logits(net, moved, index)
        torch.testing.assert_close(found[:, place], expected[:, 0])


@pytest.mark.parametrize("signal", ["logits", "sensitivity"])
def test_a_signal_does_not_depend_on_the_batch(net: Net, data: Resident, signal: str) -> None:
    def read(index: torch.Tensor) -> torch.Tensor:
        if signal == "logits":
            return answers.logits(net, data, index)[0]
        return answers.sensitivity(net, data, index, queries=2)

    every = read(torch.arange(96).repeat(3))
    rows = torch.tensor([95, 3, 50])
    assert torch.equal(every[rows], read(rows))
    assert torch.equal(every[:96], every[192:])
    assert net.training  # as it was before


def linear(data: Resident, scale: float) -> Net:
    """A softmax regression on 8x8 pixels."""
    fc = nn.Linear(64, 3)
    nn.init.normal_(fc.weight, std=scale, generator=torch.Generator().manual_seed(0))
    return Net(OrderedDict(head=nn.Sequential(nn.Flatten(), fc)))


def test_sensitivity_of_a_softmax_regression_is_its_jacobian(data: Resident) -> None:
    """E |J d| = sqrt(2 / pi) ||J_c|| for each class; and 0 where nothing depends on the input."""
    index = torch.tensor([0, 7, 50])
    assert not answers.sensitivity(linear(data, 0.0), data, index).any()
    net = linear(data, 0.05)
    found = answers.sensitivity(net, data, index, queries=1000)
    assert found.shape == (3, 3)
    assert found.dtype == torch.float64
    assert not found.is_inference()
    weight = net.head[1].weight.detach().double()
    p = net(augmentation.plain(data, index)).detach().double().softmax(1)
    rows = p[:, :, None] * (weight - (p @ weight)[:, None])
    torch.testing.assert_close(found, (2 / torch.pi) ** 0.5 * rows.norm(dim=2), rtol=0.1, atol=0)


@pytest.mark.parametrize("numbers", [False, True])
def test_bits_and_numbers_have_a_sensitivity_too(data: Resident, numbers: bool) -> None:
    samples = data.samples.flatten(1) > 100
    others = replace(data, samples=samples.float() if numbers else samples.to(torch.uint8))
    assert answers.sensitivity(linear(others, 0.05), others, torch.arange(5)).gt(0).all()


def test_another_seed_draws_other_noise(net: Net, data: Resident) -> None:
    one, other = (answers.sensitivity(net, data, torch.arange(5), 2, seed=seed) for seed in (0, 1))
    assert not torch.equal(one, other)


@pytest.mark.parametrize("test", [40, 0])
def test_accuracies_are_those_of_each_role(test: int) -> None:
    """Without test samples the test accuracy is that on non-members."""
    design = VictimAttacker(400, test=test, dev=20)
    models = Setup(Data(pixels=8), design, Model("resnet10", width=2), Schedule(1, 32), 2).trained()
    signals = models.at("init").signals()[0]
    found = lab.realize(signals)[signals]
    correct = found["logits"].argmax(axis=1) == found["labels"]
    roles = {
        "member": Role.MEMBER,
        "nonmember": Role.NONMEMBER,
        "dev": Role.DEV,
        "test": Role.TEST if test else Role.NONMEMBER,
    }
    for name, role in roles.items():
        assert found[f"accuracy_{name}"] == correct[found["role"] == role].mean(), name


def test_sensitivity_is_read_for_the_samples_of_a_rows_own_pool() -> None:
    design = VictimAttacker(400, test=40, dev=20)
    schedule = Schedule(1, 32)
    models = Setup(Data(pixels=8), design, Model("resnet10", width=2), schedule, 2).trained()
    results = lab.realize(models.sensitivity(queries=2), models.signals())
    for found, signals in zip(models.sensitivity(queries=2), models.signals(), strict=True):
        one = results[found]
        plain = results[signals]
        assert one["sensitivity"].shape == (180, 10)
        place = plain["index"].searchsorted(one["index"])
        assert all((plain[name][place] == one[name]).all() for name in ("labels", "role", "index"))


def test_text_has_no_sensitivity_and_noise_has_a_size() -> None:
    models = Setup(Data(), RandomHalves(100), Model("resnet10"), Schedule(1), 1)
    transformer = Model("transformer", width=8)
    words = replace(models, data=Data("wordnet-glosses"), model=transformer).trained()
    with pytest.raises(BadInput, match="images, bits or numbers"):
        words.sensitivity()
    with pytest.raises(BadInput, match="eps cannot be"):
        models.trained().sensitivity(eps=0)
