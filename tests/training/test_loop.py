"""The loop against a plain one, and its promises: same bits, frozen is frozen, best on dev."""

import copy
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from leak_atlas import BadInput
from leak_atlas.data import augmentation
from leak_atlas.data.resident import Resident
from leak_atlas.models import Net
from leak_atlas.recipe import Augment, RelaxLoss, Schedule
from leak_atlas.training import answers, update
from leak_atlas.training.frozen import Frozen
from leak_atlas.training.loop import Diverged, fit
from leak_atlas.training.schedule import rate
from leak_atlas.training.update import sizes
from tests.training.small import (
    MEMBERS,
    SHORT,
    difference,
    equal,
    masks,
    same,
    trained,
    values,
    whole,
)

DEV = {"dev": torch.arange(72, 96)}
BEFORE_HEAD = ("stem", "stage")


def plain_loop(net: Net, data: Resident, schedule: Schedule, seed: int) -> None:
    """What `fit` must equal, written in the most obvious way: contiguous, unfused, image by image."""
    options: dict[str, Any] = {"lr": schedule.lr, "weight_decay": schedule.weight_decay}
    if schedule.optimizer == "adam":
        steps: torch.optim.Optimizer = torch.optim.Adam(net.parameters(), foreach=False, **options)
    else:
        options |= {"momentum": schedule.momentum, "nesterov": schedule.nesterov}
        steps = torch.optim.SGD(net.parameters(), foreach=False, **options)
    for epoch in range(schedule.epochs):
        steps.param_groups[0]["lr"] = rate(schedule, epoch)
        tables = augmentation.tables(seed, epoch, len(MEMBERS), schedule.augment)
        net.train()
        for part in torch.arange(len(MEMBERS)).split(sizes(len(MEMBERS), schedule.batch)):
            steps.zero_grad()
            images = torch.stack([image(data, schedule, tables, i) for i in part.tolist()])
            labels = data.labels[MEMBERS[tables.perm[part]]]
            functional.cross_entropy(net(images.contiguous()), labels).backward()
            steps.step()


def image(data: Resident, schedule: Schedule, tables: augmentation.Tables, i: int) -> Tensor:
    """The normalised image at place i of an epoch."""
    height, width, _ = data.shape
    pixels = data.samples[MEMBERS[tables.perm[i]]].permute(2, 0, 1).float() / 255
    if schedule.augment:
        pixels = functional.pad(pixels, [schedule.augment.crop] * 4)
        down = int(tables.dy[i])
        right = int(tables.dx[i])
        pixels = pixels[:, down : down + height, right : right + width]
        pixels = pixels.flip(2) if tables.flip[i] else pixels
    return (pixels - data.mean[:, None, None]) / data.std[:, None, None]


@pytest.mark.parametrize(
    ("schedule", "error"),
    [
        (Schedule(2, batch=16, lr=0.02), 1e-4),
        (Schedule(2, batch=16, lr=0.02, augment=Augment(1)), 1e-4),
        (Schedule(2, batch=16, lr=0.02, nesterov=True), 1e-4),
        # Adam divides by the root of a squared gradient: where that is nearly zero, rounding decides
        # the sign of a step.
        (Schedule(2, batch=16, lr=1e-3, optimizer="adam", decay="constant"), 2e-3),
    ],
    ids=["sgd", "augmented", "nesterov", "adam"],
)
def test_the_loop_is_the_plain_loop(
    net: Net, data: Resident, schedule: Schedule, error: float
) -> None:
    found = trained(net, data, schedule=schedule, seed=3).states["last"]
    plain = net.to(memory_format=torch.contiguous_format)
    plain_loop(plain, data, schedule, seed=3)
    assert difference(found, plain.state_dict()) < error


def test_it_learns(net: Net, data: Resident) -> None:
    calls: list[int] = []
    schedule = Schedule(8, batch=16, lr=0.1)
    found = fit(net, data, torch.arange(72), schedule, seed=0, on_epoch=calls.append)
    assert calls == list(range(1, 9))
    assert found.history["loss"][-1] < found.history["loss"][0] / 2
    assert found.history["accuracy"][-1] > 0.9
    assert answers.accuracy(net, data, DEV["dev"]) > 0.8
    assert set(found.history) == {"loss", "accuracy", "rate"}
    assert found.history["rate"][0] == 0.1
    assert not net.training


def test_states_that_are_wanted_change_nothing(net: Net, data: Resident) -> None:
    alone = trained(net, data).states
    wanted = trained(net, data, wanted=("init", 1, 2, 3, "last")).states
    assert set(alone) == {"last"}
    assert set(wanted) == {"init", 1, 2, 3, "last"}
    assert equal(alone["last"], wanted["last"])
    assert equal(wanted[3], wanted["last"])
    assert equal(wanted["init"], net.state_dict())
    assert not equal(wanted[1], wanted[2])
    assert all(value.is_contiguous() for value in wanted["last"].values())


def test_at_the_end_of_an_epoch_the_network_may_be_read(net: Net, data: Resident) -> None:
    """Its weights and statistics are those of that epoch; reading signals changes nothing."""
    live: dict[int, dict[str, Tensor]] = {}
    read: dict[int, Tensor] = {}
    options = {"seed": 1, "frozen": whole(net.state_dict(), ("stem",)), "wanted": (1, 2, 3)}
    start = copy.deepcopy(net)
    alone = fit(copy.deepcopy(net), data, MEMBERS, SHORT, **options)

    def reading(epoch: int) -> None:
        live[epoch] = values(net)
        read[epoch] = answers.logits(net, data, MEMBERS)[0]

    assert same(alone, fit(net, data, MEMBERS, SHORT, on_epoch=reading, **options))
    for epoch, state in live.items():
        assert equal(state, alone.states[epoch])
        start.load_state_dict(state)
        assert torch.equal(read[epoch], answers.logits(start, data, MEMBERS)[0])


def test_bf16_stays_near_and_keeps_float32_weights(net: Net, data: Resident) -> None:
    gentle = replace(SHORT, lr=0.01)  # a high rate amplifies what is rounded
    low = trained(net, data, schedule=gentle, precision="bf16")
    full = trained(net, data, schedule=gentle)
    assert all(value.dtype in (torch.float32, torch.int64) for value in low.states["last"].values())
    assert not equal(low.states["last"], full.states["last"])
    np.testing.assert_allclose(low.history["loss"], full.history["loss"], atol=0.1)


def test_batches_keep_the_tail_but_no_single_sample() -> None:
    expected = {
        50: [16, 16, 16, 2],
        49: [16, 16, 17],
        32: [16, 16],
        17: [17],
        9: [9],
        1: [1],
        0: [],
    }
    assert {n: sizes(n, 16) for n in expected} == expected


# ---------------------------------------------------------------- frozen

OPTIMIZERS = {
    "momentum": Schedule(3, batch=16, lr=0.1, weight_decay=0.01),
    "sgd": Schedule(3, batch=16, lr=0.1, momentum=0.0, weight_decay=0.01),
    "adam": Schedule(3, batch=16, lr=0.01, optimizer="adam", weight_decay=0.01),
    "augmented": Schedule(3, batch=16, lr=0.1, weight_decay=0.01, augment=Augment(1)),
}
optimizers = pytest.mark.parametrize("schedule", OPTIMIZERS.values(), ids=OPTIMIZERS)


@optimizers
@pytest.mark.parametrize("parts", [("stem",), BEFORE_HEAD], ids=["stem", "all but the head"])
def test_frozen_parts_keep_their_bits(
    net: Net, data: Resident, schedule: Schedule, parts: tuple[str, ...]
) -> None:
    # Weights, statistics and counters are not those of a new network.
    before = trained(net, data, seed=0).states["last"]
    net.load_state_dict(before)
    frozen = whole(before, parts)
    after = fit(net, data, MEMBERS, schedule, RelaxLoss(0.5), seed=1, frozen=frozen).states["last"]
    for name, value in before.items():
        if name in frozen:
            assert torch.equal(value, after[name]), name
        elif name.endswith(("weight", "running_mean")):
            assert not torch.equal(value, after[name]), name
    assert all(parameter.requires_grad for parameter in net.parameters())


@optimizers
def test_partly_frozen_tensors_keep_those_bits(
    net: Net, data: Resident, schedule: Schedule
) -> None:
    frozen = masks(net, "half")
    before = net.state_dict()
    after = trained(net, data, schedule=schedule, frozen=frozen).states["last"]
    moved = []
    for name, mask in frozen.items():
        changed = before[name] != after[name]
        assert not changed[mask].any(), name
        moved += [float(changed[~mask].float().mean())] if (~mask).any() else []
    assert np.mean(moved) > 0.9


def test_statistics_may_be_free_where_weights_are_frozen(net: Net, data: Resident) -> None:
    weights = dict(net.named_parameters())
    frozen = whole({n: v for n, v in weights.items() if not n.startswith("head")}, BEFORE_HEAD)
    after = trained(net, data, frozen=frozen).states["last"]
    assert all(torch.equal(weights[name], after[name]) for name in frozen)
    assert not torch.equal(net.stem.norm.running_mean, after["stem.norm.running_mean"])


def test_frozen_statistics_are_what_training_normalises_with(net: Net, data: Resident) -> None:
    """One batch that is the whole data set: with frozen statistics the features are those of
    evaluation mode.
    """
    features = {}
    handle = net.stage4.register_forward_hook(
        lambda _, __, output: features.setdefault("training", output.detach())
    )
    # an augmentation that does nothing, so that no features are kept
    schedule = Schedule(1, batch=56, lr=0.0, augment=Augment(0, flip=False))
    fit(net, data, MEMBERS, schedule, seed=1, frozen=whole(net.state_dict(), BEFORE_HEAD))
    handle.remove()
    with torch.no_grad():
        perm = augmentation.tables(1, 0, 56, schedule.augment).perm
        evaluated = net.eval()[:5](augmentation.plain(data, MEMBERS[perm]))
    torch.testing.assert_close(features["training"], evaluated)


@pytest.mark.parametrize("norm", [nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d])
def test_frozen_statistics_of_every_batchnorm_are_used(norm: Callable[[int], nn.Module]) -> None:
    net = Net(OrderedDict(norm=norm(4)))
    frozen = Frozen(net, whole(net.state_dict(), ("norm",)))
    frozen.train()
    assert net.training
    assert not net.norm.training


@pytest.mark.parametrize("parts", [("stem",), ("stem", "stage1", "stage2"), BEFORE_HEAD], ids=str)
def test_kept_features_are_the_eager_path(
    net: Net, data: Resident, monkeypatch: pytest.MonkeyPatch, parts: tuple[str, ...]
) -> None:
    frozen = whole(net.state_dict(), parts)
    kept = trained(net, data, frozen=frozen).states["last"]
    monkeypatch.setattr(update, "CACHE", 0)
    assert difference(kept, trained(net, data, frozen=frozen).states["last"]) < 1e-5


def test_a_network_that_is_frozen_wholly_is_refused(net: Net, data: Resident) -> None:
    with pytest.raises(BadInput, match="everything is frozen"):
        fit(net, data, MEMBERS, SHORT, seed=0, frozen=whole(net.state_dict(), ("",)))
    assert all(parameter.requires_grad for parameter in net.parameters())


# ---------------------------------------------------------------- ends


def test_early_stopping_keeps_the_best_on_dev(
    net: Net, data: Resident, monkeypatch: pytest.MonkeyPatch
) -> None:
    accuracies = iter([0.2, 0.5, 0.4, 0.5, 0.3, 0.9])

    def accuracy(read: Net, _: Resident, index: Tensor) -> float:
        assert read is net
        assert torch.equal(index, DEV["dev"])
        return next(accuracies)

    monkeypatch.setattr(answers, "accuracy", accuracy)
    schedule = Schedule(10, batch=16, patience=2)
    found = fit(net, data, MEMBERS, schedule, seed=0, samples=DEV, wanted=(2, 5, 9))
    # Best in epoch 2; epochs 3 and 4 are forgiven, epoch 5 is the third without a better one.
    assert found.history["dev_accuracy"].tolist() == [0.2, 0.5, 0.4, 0.5, 0.3]
    assert set(found.states) == {2, 5, "last"}
    assert equal(found.states["last"], found.states[2])
    assert equal(values(net), found.states[2])


@pytest.mark.parametrize(("epochs", "named"), [(4, 3), (2, 2)], ids=["its loss", "its weights"])
def test_divergence_names_the_epoch_that_shows_it(
    net: Net, data: Resident, epochs: int, named: int
) -> None:
    """Weights that are no numbers after epoch 2 give such a loss in epoch 3, if there is one."""

    def spoil(epoch: int) -> None:
        if epoch == 2:
            nn.init.constant_(net.head.fc.weight, torch.nan)

    with pytest.raises(Diverged, match=f"in epoch {named}") as caught:
        fit(net, data, MEMBERS, Schedule(epochs, batch=16), seed=0, on_epoch=spoil)
    assert caught.value.epoch == named
