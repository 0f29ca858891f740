"""Logits and scaled confidences."""

import pytest
import torch

from lib.data.resident import Resident
from lib.models import Net
from lib.training import answers


def test_scaled_confidence_closed_forms() -> None:
    two = torch.tensor([[3.0, 1.0], [1.0, 3.0]])
    assert answers.scaled_confidence(two, torch.tensor([0, 0])).tolist() == [2.0, -2.0]
    z = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(5) % 4
    p = z.double().softmax(1).gather(1, labels[:, None])[:, 0]
    torch.testing.assert_close(answers.scaled_confidence(z, labels), torch.log(p / (1 - p)))
    torch.testing.assert_close(answers.scaled_confidence(z + 7, labels), torch.log(p / (1 - p)), atol=1e-5, rtol=0)
    assert torch.isfinite(answers.scaled_confidence(torch.tensor([[1e4, 0.0]]), torch.tensor([0]))).all()


@pytest.mark.parametrize("views", [1, 2, 18])
def test_shapes_types_and_the_plain_view(net: Net, data: Resident, views: int) -> None:
    index = torch.arange(5, 60)
    z, confidence = answers.logits(net, data, index, views)
    assert z.shape == (55, 3) and z.dtype == torch.float32
    assert confidence.shape == (55, views) and confidence.dtype == torch.float64
    torch.testing.assert_close(confidence[:, 0], answers.scaled_confidence(z, data.labels[index]))
    assert not z.is_inference() and net.training  # as it was before


def test_mirrored_view_is_the_mirrored_image(net: Net, data: Resident) -> None:
    mirrored = Resident(data.samples.flip(2), data.labels, data.mean, data.std, data.train, data.classes)
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
    assert answers.accuracy(net, data, index) == float((z.argmax(1) == data.labels[:30]).double().mean())
