"""The loop against a plain one, and its promises: same bits, frozen is frozen, best on dev."""

import copy

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from leak_atlas import BadInput
from leak_atlas.data import augmentation
from leak_atlas.data.resident import Resident
from leak_atlas.models import Net, build
from leak_atlas.recipe import Augment, CrossEntropy, Model, RelaxLoss, Schedule
from leak_atlas.training import answers, update
from leak_atlas.training.frozen import freezing
from leak_atlas.training.loop import Diverged, fit
from leak_atlas.training.schedule import rate
from leak_atlas.training.update import Task, Update, sizes
from tests.training.test_plans import same

# with batches of 16 a tail of 8: in one of 2, BatchNorm makes signs of rounding errors
MEMBERS = torch.arange(56)
DEV = {"dev": torch.arange(72, 96)}
SHORT = Schedule(3, batch=16, lr=0.05)


def equal(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def difference(a: dict[str, Tensor], b: dict[str, Tensor]) -> float:
    return max(float((a[name].double() - b[name].double()).abs().max()) for name in a)


def plain_loop(net: Net, data: Resident, schedule: Schedule, seed: int) -> None:
    """What `fit` must equal, written in the most obvious way: contiguous, unfused, image by image."""
    kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[schedule.optimizer]
    more = (
        {"momentum": schedule.momentum, "nesterov": schedule.nesterov}
        if schedule.optimizer == "sgd"
        else {}
    )
    steps = kind(
        net.parameters(), lr=schedule.lr, weight_decay=schedule.weight_decay, foreach=False, **more
    )
    height, width, _ = data.shape
    for epoch in range(schedule.epochs):
        steps.param_groups[0]["lr"] = rate(schedule, epoch)
        perm, dy, dx, flip = augmentation.tables(seed, epoch, len(MEMBERS), schedule.augment)
        net.train()
        for part in torch.arange(len(MEMBERS)).split(sizes(len(MEMBERS), schedule.batch)):
            images = []
            for i in part.tolist():
                image = data.samples[MEMBERS[perm[i]]].permute(2, 0, 1).float() / 255
                if schedule.augment:
                    image = functional.pad(image, [schedule.augment.crop] * 4)
                    image = image[:, dy[i] : dy[i] + height, dx[i] : dx[i] + width]
                    image = image.flip(2) if flip[i] else image
                images.append((image - data.mean[:, None, None]) / data.std[:, None, None])
            steps.zero_grad()
            labels = data.labels[MEMBERS[perm[part]]]
            functional.cross_entropy(net(torch.stack(images).contiguous()), labels).backward()
            steps.step()


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(2, batch=16, lr=0.02),
        Schedule(2, batch=16, lr=0.02, augment=Augment(1)),
        Schedule(2, batch=16, lr=0.02, nesterov=True, decay="steps", milestones=(1,)),
        Schedule(2, batch=16, lr=1e-3, optimizer="adam", decay="constant"),
    ],
    ids=["sgd", "augmented", "nesterov", "adam"],
)
def test_the_loop_is_the_plain_loop(net: Net, data: Resident, schedule: Schedule) -> None:
    plain = copy.deepcopy(net).to(memory_format=torch.contiguous_format)
    fit(net, data, MEMBERS, schedule, seed=3)
    plain_loop(plain, data, schedule, seed=3)
    # Adam divides by the root of a squared gradient: where that is nearly zero, rounding decides
    # the sign of a step.
    assert difference(net.state_dict(), plain.state_dict()) < (
        2e-3 if schedule.optimizer == "adam" else 1e-4
    )


def test_it_learns(net: Net, data: Resident) -> None:
    calls: list[int] = []
    found = fit(
        net, data, torch.arange(72), Schedule(8, batch=16, lr=0.1), seed=0, on_epoch=calls.append
    )
    assert calls == list(range(1, 9))
    assert found.history["loss"][-1] < found.history["loss"][0] / 2
    assert found.history["accuracy"][-1] > 0.9
    assert answers.accuracy(net, data, torch.arange(72, 96)) > 0.8
    assert set(found.history) == {"loss", "accuracy", "rate"} and found.history["rate"][0] == 0.1
    assert not net.training


def test_same_call_same_bits_whatever_was_drawn_before(data: Resident) -> None:
    schedule = Schedule(3, batch=16, augment=Augment(1))
    ends = []
    for noise in (1, 2):
        torch.manual_seed(noise)
        own = build(Model("resnet10", width=2), 1, 3, seed=0)
        torch.rand(noise)
        ends.append(fit(own, data, MEMBERS, schedule, seed=7).states["last"])
    assert equal(*ends)
    other = fit(
        build(Model("resnet10", width=2), 1, 3, seed=0), data, MEMBERS, schedule, seed=8
    ).states["last"]
    assert not equal(ends[0], other)


def test_what_is_wanted_changes_nothing(net: Net, data: Resident) -> None:
    start = copy.deepcopy(net)
    alone = fit(copy.deepcopy(net), data, MEMBERS, SHORT, seed=1)
    asked = fit(net, data, MEMBERS, SHORT, seed=1, wanted=("init", 1, 2, 3, "last"))
    assert set(alone.states) == {"last"} and set(asked.states) == {"init", 1, 2, 3, "last"}
    assert equal(alone.states["last"], asked.states["last"])
    assert equal(asked.states[3], asked.states["last"])
    assert equal(asked.states["init"], dict(start.state_dict()))
    assert not equal(asked.states[1], asked.states[2])
    assert all(value.is_contiguous() for value in asked.states["last"].values())
    two = fit(start, data, MEMBERS, Schedule(3, batch=16, lr=0.05), seed=1, wanted=(2,))
    assert equal(two.states[2], asked.states[2])


def test_at_the_end_of_an_epoch_the_live_net_may_be_read(net: Net, data: Resident) -> None:
    """Weights and statistics of that epoch, and signals off them; whoever reads changes nothing."""
    live: dict[int, dict[str, Tensor]] = {}
    read: dict[int, Tensor] = {}
    frozen = {name: mask for name, mask in masks(net, 2).items() if not name.startswith("stage")}

    def reading(epoch: int) -> None:
        live[epoch] = {name: value.clone() for name, value in net.state_dict().items()}
        read[epoch] = answers.logits(net, data, MEMBERS)[0]

    start = copy.deepcopy(net)
    found = fit(
        net, data, MEMBERS, SHORT, seed=1, frozen=frozen, wanted=(1, 2, 3), on_epoch=reading
    )
    assert same(
        found,
        fit(copy.deepcopy(start), data, MEMBERS, SHORT, seed=1, frozen=frozen, wanted=(1, 2, 3)),
    )
    assert sorted(live) == [1, 2, 3]
    for epoch, state in live.items():
        assert equal(state, found.states[epoch])
        start.load_state_dict(found.states[epoch])
        assert torch.equal(read[epoch], answers.logits(start, data, MEMBERS)[0])


def test_bf16_stays_near_and_keeps_float32_weights(net: Net, data: Resident) -> None:
    low = fit(copy.deepcopy(net), data, MEMBERS, SHORT, seed=1, precision="bf16")
    full = fit(net, data, MEMBERS, SHORT, seed=1)
    assert all(value.dtype in (torch.float32, torch.int64) for value in low.states["last"].values())
    assert not equal(low.states["last"], full.states["last"])
    np.testing.assert_allclose(low.history["loss"], full.history["loss"], atol=0.1)


def test_batches_keep_the_tail_but_no_single_sample() -> None:
    assert sizes(50, 16) == [16, 16, 16, 2]
    assert sizes(49, 16) == [16, 16, 17]
    assert sizes(32, 16) == [16, 16]
    assert sizes(17, 16) == [17]
    assert [sizes(n, 16) for n in (9, 1, 0)] == [[9], [1], []]


# ---------------------------------------------------------------- frozen


def masks(net: Net, start: int) -> dict[str, Tensor]:
    """All of the parts before number `start`, statistics included."""
    parts = net.names()[:start]
    return {
        name: torch.ones_like(value, dtype=torch.bool)
        for name, value in net.state_dict().items()
        if name.split(".")[0] in parts
    }


OPTIMIZERS = [
    Schedule(3, batch=16, lr=0.1, weight_decay=0.01),
    Schedule(3, batch=16, lr=0.1, momentum=0.0, weight_decay=0.01),
    Schedule(3, batch=16, lr=0.01, optimizer="adam", weight_decay=0.01),
    Schedule(3, batch=16, lr=0.1, weight_decay=0.01, augment=Augment(1)),
]


@pytest.mark.parametrize("schedule", OPTIMIZERS, ids=["momentum", "sgd", "adam", "augmented"])
@pytest.mark.parametrize("start", [1, 4, 5])
def test_held_parts_keep_their_bits(
    net: Net, data: Resident, schedule: Schedule, start: int
) -> None:
    # so that weights, statistics and counters are not those of a fresh net
    fit(net, data, MEMBERS, SHORT, seed=0)
    frozen = masks(net, start)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    after = fit(net, data, MEMBERS, schedule, RelaxLoss(0.5), seed=1, frozen=frozen).states["last"]
    for name, value in before.items():
        if name in frozen:
            assert torch.equal(value, after[name]), name
        elif name.endswith(("weight", "running_mean")):
            assert not torch.equal(value, after[name]), name
    assert all(parameter.requires_grad for parameter in net.parameters())


@pytest.mark.parametrize("schedule", OPTIMIZERS, ids=["momentum", "sgd", "adam", "augmented"])
def test_partly_held_tensors_keep_those_bits(net: Net, data: Resident, schedule: Schedule) -> None:
    generator = torch.Generator().manual_seed(0)
    frozen = {
        name: torch.rand(value.shape, generator=generator) < 0.5
        for name, value in net.state_dict().items()
        if value.dim() > 0
    }
    before = {name: value.clone() for name, value in net.state_dict().items()}
    after = fit(net, data, MEMBERS, schedule, seed=1, frozen=frozen).states["last"]
    for name, mask in frozen.items():
        assert torch.equal(before[name][mask], after[name][mask]), name
    moved = [
        float((before[name] != after[name])[~mask].float().mean())
        for name, mask in frozen.items()
        if (~mask).any()
    ]
    assert np.mean(moved) > 0.9


def test_held_weights_with_free_statistics(net: Net, data: Resident) -> None:
    frozen = {
        name: mask for name, mask in masks(net, 4).items() if name in dict(net.named_parameters())
    }
    before = {name: value.clone() for name, value in net.state_dict().items()}
    after = fit(net, data, MEMBERS, SHORT, seed=1, frozen=frozen).states["last"]
    assert all(torch.equal(before[name], after[name]) for name in frozen)
    assert not torch.equal(before["stem.norm.running_mean"], after["stem.norm.running_mean"])


def test_held_statistics_are_what_training_normalises_with(net: Net, data: Resident) -> None:
    """One batch that is the whole data set: with frozen statistics the features must be those of
    evaluation mode.
    """
    frozen = masks(net, 5)
    features = {}
    handle = net.stage4.register_forward_hook(
        lambda _, __, output: features.setdefault("training", output.detach())
    )
    # an augmentation that does nothing
    schedule = Schedule(1, batch=56, lr=0.0, augment=Augment(0, flip=False))
    fit(net, data, MEMBERS, schedule, seed=1, frozen=frozen)
    handle.remove()
    with torch.no_grad():
        perm = augmentation.tables(1, 0, 56, schedule.augment).perm
        evaluated = net.eval()[:5](augmentation.plain(data, MEMBERS[perm]))
    torch.testing.assert_close(features["training"], evaluated)


@pytest.mark.parametrize("start", [1, 3, 5])
def test_kept_features_are_the_eager_path(
    net: Net, data: Resident, monkeypatch: pytest.MonkeyPatch, start: int
) -> None:
    other = copy.deepcopy(net)
    kept = fit(net, data, MEMBERS, SHORT, seed=1, frozen=masks(net, start)).states["last"]
    monkeypatch.setattr(update, "CACHE", 0)
    eager = fit(other, data, MEMBERS, SHORT, seed=1, frozen=masks(net, start)).states["last"]
    assert difference(kept, eager) < 1e-5


def test_what_cannot_be_held_is_refused(net: Net, data: Resident) -> None:
    with pytest.raises(BadInput, match="nowhere"):
        fit(net, data, MEMBERS, SHORT, seed=0, frozen={"nowhere": torch.tensor(True)})
    with pytest.raises(BadInput, match="shape"):
        fit(net, data, MEMBERS, SHORT, seed=0, frozen={"head.fc.bias": torch.tensor([True])})
    with pytest.raises(BadInput, match="everything is frozen"):
        fit(net, data, MEMBERS, SHORT, seed=0, frozen=masks(net, 6))
    assert all(parameter.requires_grad for parameter in net.parameters())


# ---------------------------------------------------------------- ends


def test_early_stopping_keeps_the_best_on_dev(
    net: Net, data: Resident, monkeypatch: pytest.MonkeyPatch
) -> None:
    accuracies = iter([0.2, 0.5, 0.4, 0.5, 0.3, 0.9])
    monkeypatch.setattr(answers, "accuracy", lambda *_: next(accuracies))
    schedule = Schedule(10, batch=16, patience=2)
    found = fit(net, data, MEMBERS, schedule, seed=0, samples=DEV, wanted=(2, 5, 9))
    # Best in epoch 2; epochs 3 and 4 are forgiven, epoch 5 is the third without a better one.
    assert found.history["dev_accuracy"].tolist() == [0.2, 0.5, 0.4, 0.5, 0.3]
    assert set(found.states) == {2, 5, "last"}
    assert equal(found.states["last"], found.states[2])
    assert equal(dict(net.state_dict()), found.states[2])


def test_nobody_looks_at_dev_without_a_patience(
    net: Net, data: Resident, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        answers, "accuracy", lambda *_: pytest.fail("an evaluation that nobody asked for")
    )
    found = fit(copy.deepcopy(net), data, MEMBERS, SHORT, seed=0, samples=DEV)
    assert "dev_accuracy" not in found.history
    assert equal(found.states["last"], fit(net, data, MEMBERS, SHORT, seed=0).states["last"])


def test_divergence_names_its_epoch(net: Net, data: Resident) -> None:
    with pytest.raises(Diverged, match="epoch") as caught:
        fit(net, data, MEMBERS, Schedule(6, batch=16, lr=1e30, decay="constant"), seed=0)
    assert 1 <= caught.value.epoch <= 6


@pytest.mark.parametrize(
    ("members", "schedule"),
    [(torch.arange(1), SHORT), (MEMBERS, Schedule(1, patience=1))],
)
def test_contradictions_are_refused(
    net: Net, data: Resident, members: Tensor, schedule: Schedule
) -> None:
    with pytest.raises(BadInput):
        fit(net, data, members, schedule, seed=0)


def test_a_common_order_is_that_of_the_pool_without_the_others(net: Net, data: Resident) -> None:
    """Whom M_all meets and M_h1 knows, M_h1 meets in the same order, with the same crops and flips."""
    schedule, pool = Schedule(2, 8, augment=Augment(1)), torch.arange(10, 70)
    half = pool[torch.randperm(60, generator=torch.Generator().manual_seed(1))[:30]].sort().values
    with freezing(net, {}) as hold:
        whole = Update(CrossEntropy(), Task(net, hold, data, pool, schedule, "fp32", 5))
        one = Update(
            CrossEntropy(), Task(net, hold, data, half, schedule, "fp32", 5, {"pool": pool})
        )
        alone = Update(CrossEntropy(), Task(net, hold, data, half, schedule, "fp32", 5))
    for epoch in range(2):
        drawn, skipped, own = (each.tables(5, epoch) for each in (whole, one, alone))
        known = torch.isin(pool[drawn.perm], half)
        assert torch.equal(half[skipped.perm], pool[drawn.perm][known]) and not torch.equal(
            own.perm, skipped.perm
        )
        assert all(torch.equal(a, b[known]) for a, b in zip(skipped[1:], drawn[1:], strict=True))
