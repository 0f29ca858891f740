"""Logits and scaled confidences."""

from collections import OrderedDict
from dataclasses import replace

import pytest
import torch
from torch import nn

from leak_atlas import BadInput, lab
from leak_atlas.data import augmentation
from leak_atlas.data.resident import Resident
from leak_atlas.models import Net
from leak_atlas.recipe import Data, Model, RandomHalves, Schedule, Setup, VictimAttacker
from leak_atlas.training import answers


def test_scaled_confidence_closed_forms() -> None:
    two = torch.tensor([[3.0, 1.0], [1.0, 3.0]])
    assert answers.scaled_confidence(two, torch.tensor([0, 0])).tolist() == [2.0, -2.0]
    z = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(5) % 4
    p = z.double().softmax(1).gather(1, labels[:, None])[:, 0]
    torch.testing.assert_close(answers.scaled_confidence(z, labels), torch.log(p / (1 - p)))
    torch.testing.assert_close(
        answers.scaled_confidence(z + 7, labels), torch.log(p / (1 - p)), atol=1e-5, rtol=0
    )
    assert torch.isfinite(
        answers.scaled_confidence(torch.tensor([[1e4, 0.0]]), torch.tensor([0]))
    ).all()


@pytest.mark.parametrize("views", [1, 2, 18])
def test_shapes_types_and_the_plain_view(net: Net, data: Resident, views: int) -> None:
    index = torch.arange(5, 60)
    z, confidence = answers.logits(net, data, index, views)
    assert z.shape == (55, 3) and z.dtype == torch.float32
    assert confidence.shape == (55, views) and confidence.dtype == torch.float64
    torch.testing.assert_close(confidence[:, 0], answers.scaled_confidence(z, data.labels[index]))
    assert not z.is_inference() and net.training  # as it was before


def test_mirrored_view_is_the_mirrored_image(net: Net, data: Resident) -> None:
    mirrored = Resident(
        data.samples.flip(2), data.labels, data.mean, data.std, data.train, data.classes
    )
    index = torch.arange(20)
    a, b = answers.logits(net, data, index, 2)[1], answers.logits(net, mirrored, index, 2)[1]
    torch.testing.assert_close(a, b.flip(1))


def test_a_score_does_not_depend_on_who_is_asked_beside(net: Net, data: Resident) -> None:
    every = answers.logits(net, data, torch.arange(96).repeat(3))[0]
    some = answers.logits(net, data, torch.tensor([3, 50, 95]))[0]
    assert torch.equal(every[[3, 50, 95]], some)
    assert torch.equal(every[:96], every[192:])


def test_accuracy(net: Net, data: Resident) -> None:
    index = torch.arange(30)
    z, _ = answers.logits(net, data, index)
    assert answers.accuracy(net, data, index) == float(
        (z.argmax(1) == data.labels[:30]).double().mean()
    )


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
    assert found.shape == (3, 3) and found.dtype == torch.float64 and not found.is_inference()
    weight = net.head[1].weight.detach().double()
    p = net(augmentation.plain(data, index)).detach().double().softmax(1)
    rows = p[:, :, None] * (weight - (p @ weight)[:, None])
    torch.testing.assert_close(found, (2 / torch.pi) ** 0.5 * rows.norm(dim=2), rtol=0.1, atol=0)


def test_sensitivity_of_a_sample_does_not_depend_on_who_is_asked_beside(
    net: Net, data: Resident
) -> None:
    every = answers.sensitivity(net, data, torch.arange(96).repeat(3), queries=2)
    some = answers.sensitivity(net, data, torch.tensor([95, 3, 50]), queries=2)
    assert torch.equal(every[[95, 3, 50]], some) and torch.equal(every[:96], every[192:])
    assert not torch.equal(
        answers.sensitivity(net, data, torch.tensor([95, 3, 50]), 2, seed=1), some
    )
    assert net.training  # as it was before


@pytest.mark.parametrize("numbers", [False, True])
def test_bits_and_numbers_have_a_sensitivity_too(data: Resident, numbers: bool) -> None:
    samples = data.samples.flatten(1) > 100
    others = replace(data, samples=samples.float() if numbers else samples.to(torch.uint8))
    assert answers.sensitivity(linear(others, 0.05), others, torch.arange(5)).gt(0).all()


def test_sensitivity_is_read_for_the_samples_of_a_rows_own_pool() -> None:
    setup = Setup(
        Data(pixels=8),
        VictimAttacker(400, test=40, dev=20),
        Model("resnet10", width=2),
        Schedule(1, 32),
        2,
    )
    models = setup.trained()
    results = lab.realize(models.sensitivity(queries=2), models.signals())
    for found, signals in zip(models.sensitivity(queries=2), models.signals(), strict=True):
        one, plain = results[found], results[signals]
        assert one["sensitivity"].shape == (180, 10) and one["sensitivity"].dtype == "float32"
        place = plain["index"].searchsorted(one["index"])
        assert all((plain[name][place] == one[name]).all() for name in ("labels", "role", "index"))
        assert sorted(set(one["role"].tolist())) == [1, 2] and (one["sensitivity"] > 0).any()
        assert results[found].meta["operations"] > 0


def test_what_has_no_sensitivity_is_told() -> None:
    words = Setup(
        Data("wordnet-glosses"), RandomHalves(100), Model("transformer", width=8), Schedule(1), 1
    ).trained()
    with pytest.raises(BadInput, match="images, bits or numbers"):
        words.sensitivity()
    with pytest.raises(BadInput, match="eps cannot be"):
        Setup(Data(), RandomHalves(100), Model("resnet10"), Schedule(1), 1).trained().sensitivity(
            eps=0
        )
