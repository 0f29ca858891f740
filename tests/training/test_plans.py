"""Recorded or not, alone or together with others, a training has the same bits."""

import copy
from collections.abc import Callable, Collection
from functools import partial

import pytest
import torch

from leak_atlas import BadInput
from leak_atlas.data import augmentation
from leak_atlas.data.resident import Resident
from leak_atlas.models import Net, build
from leak_atlas.recipe import RMR, Augment, CrossEntropy, Model, RelaxLoss, Schedule
from leak_atlas.training import graph, loop
from leak_atlas.training.graph import Replay
from leak_atlas.training.loop import Diverged, Training, Trajectory, fit, fit_many, training
from leak_atlas.training.schedule import rate
from leak_atlas.training.update import Batch, Update
from tests.training.small import MEMBERS, begun, equal, masks, rehearsing, same, trained, values

SCHEDULES = {
    "momentum": Schedule(3, batch=16, lr=0.05),
    "plain": Schedule(3, batch=16, lr=0.05, momentum=0.0, augment=Augment(1)),
    "nesterov": Schedule(3, batch=16, lr=0.05, nesterov=True),
    "adam": Schedule(3, batch=16, lr=0.01, optimizer="adam", augment=Augment(1)),
    "sharpness": Schedule(3, batch=16, lr=0.05, sharpness=0.1),
}


@pytest.fixture(autouse=True)
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has checked no recording yet."""
    monkeypatch.setattr(graph, "_trusted", {}, raising=False)


def test_a_recording_is_trusted_for_its_kind_of_step_alone(net: Net, data: Resident) -> None:
    """Another objective, optimizer, SAM or precision is checked anew."""
    plain = SCHEDULES["momentum"]
    steps = [
        begun(net, data, CrossEntropy(), plain),
        begun(net, data, RelaxLoss(0.5), plain),
        begun(net, data, CrossEntropy(), SCHEDULES["adam"]),
        begun(net, data, CrossEntropy(), SCHEDULES["sharpness"]),
        begun(net, data, CrossEntropy(), plain, precision="bf16"),
    ]
    kinds = {graph._kind(step) for step in steps}
    assert len(kinds) == len(steps)
    assert graph._kind(begun(net, data, CrossEntropy(), plain)) in kinds


@pytest.mark.parametrize(("frozen", "precision"), [("parts", "bf16"), ("half", "fp32")])
@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_a_recording_is_no_training(
    net: Net,
    data: Resident,
    monkeypatch: pytest.MonkeyPatch,
    schedule: Schedule,
    frozen: str,
    precision: str,
) -> None:
    monkeypatch.setattr(graph, "record", rehearsing)
    options = {"frozen": masks(net, frozen), "precision": precision, "wanted": ("init", 1)}
    eager = trained(net, data, RelaxLoss(0.9), schedule, plan="eager", **options)
    assert same(eager, trained(net, data, RelaxLoss(0.9), schedule, plan="graph", **options))


def test_a_graph_needs_cuda_and_leaves_the_network_alone(net: Net, data: Resident) -> None:
    before = values(net)
    with pytest.raises(BadInput, match="CUDA"):
        fit(net, data, MEMBERS, Schedule(2, batch=16), seed=0, plan="graph")
    assert equal(before, values(net))


def failing(step: Update, batches: Collection[Batch]) -> dict[Batch, Replay]:
    """Breaks off after a step, as a recording that meets an operation which cannot be recorded."""
    step(*next(iter(batches)))
    raise RuntimeError("operation not permitted when stream is capturing")


def stuck(step: Update, batches: Collection[Batch]) -> dict[Batch, Replay]:
    """Replays a step on the samples with which it was recorded."""

    def replay(batch: Batch) -> None:
        position = step.position.clone()
        step.position.zero_()
        step(*batch)
        step.position.copy_(position + batch.size)

    return {batch: partial(replay, batch) for batch in batches}


def without_statistics(step: Update, batches: Collection[Batch]) -> dict[Batch, Replay]:
    """Replays a step that leaves the statistics of the norms as they are."""

    def replay(batch: Batch) -> None:
        before = [buffer.clone() for buffer in step.net.buffers()]
        step(*batch)
        for buffer, value in zip(step.net.buffers(), before, strict=True):
            buffer.copy_(value)

    return {batch: partial(replay, batch) for batch in batches}


@pytest.mark.parametrize(
    ("recorder", "words"),
    [
        (failing, "cannot be recorded"),
        (stuck, "do something else"),
        (without_statistics, "do something else"),
    ],
)
def test_a_recording_that_fails_or_differs_is_not_used_and_a_line_says_so(
    recorder: Callable[[Update, Collection[Batch]], dict[Batch, Replay]],
    words: str,
    net: Net,
    data: Resident,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(graph, "record", recorder)
    schedule = Schedule(2, batch=16, lr=0.05, augment=Augment(1))
    eager = trained(net, data, None, schedule, plan="eager")
    for turn in range(2):
        assert same(eager, trained(net, data, None, schedule, plan="graph"))
        line = capsys.readouterr().err
        assert line.count("\n") == (turn == 0), "one line, at first use"
        assert turn or words in line


def test_a_recording_that_does_the_same_is_used(
    net: Net, data: Resident, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replayed: list[Batch] = []

    def counted(step: Update, batches: Collection[Batch]) -> dict[Batch, Replay]:
        def replay(batch: Batch) -> None:
            replayed.append(batch)
            step(*batch)

        return {batch: partial(replay, batch) for batch in batches}

    monkeypatch.setattr(graph, "record", counted)
    for training_number in (1, 2):
        trained(net, data, None, Schedule(2, batch=16), plan="graph")
        # A process checks two kinds of batches once; each training has 2 epochs of 4 batches.
        assert len(replayed) == 2 * graph.TURNS + training_number * 2 * 4
    assert not capsys.readouterr().err


# ---------------------------------------------------------------- two optimizers in turn


# The weight decay of the schedule is not used.
GENERAL = Schedule(3, batch=16, lr=0.005, optimizer="adam", weight_decay=7.0, augment=Augment(1))
APART = RMR(1.0, 1e-3, share=0.5, form="code")
EVEN = 1.0 - MEMBERS % 2  # scores of the members


def test_two_optimizers_in_turn_are_two_optimizers_in_turn(net: Net, data: Resident) -> None:
    """RMR's published form, written out: each optimizer has its own moments, and both move the same
    weights.
    """
    plain = copy.deepcopy(net).train()
    of_risky = torch.optim.Adam(plain.parameters(), weight_decay=APART.risky)
    of_others = torch.optim.Adam(plain.parameters(), weight_decay=APART.general)
    for epoch in range(3):
        perm, *views = augmentation.tables(4, epoch, 56, GENERAL.augment)
        rows = torch.cat([perm[perm % 2 == 0], perm[perm % 2 == 1]]).split([16, 12] * 2)
        places = torch.arange(56).split([16, 12] * 2)
        turns = (of_risky, of_risky, of_others, of_others)
        for optimizer, row, place in zip(turns, rows, places, strict=True):
            optimizer.param_groups[0]["lr"] = rate(GENERAL, epoch)
            optimizer.zero_grad()
            x = augmentation.gather(data, MEMBERS[row], *(view[place] for view in views), 1)
            torch.nn.functional.cross_entropy(plain(x), data.labels[MEMBERS[row]]).backward()
            optimizer.step()
    found = trained(net, data, APART, GENERAL, seed=4, ranking=EVEN).states["last"]
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(found[name], value, atol=2e-3, rtol=0, msg=name)


def test_a_recording_is_kept_for_each_phase(
    net: Net, data: Resident, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two batches of one size that differ in phase are two recordings."""
    made: list[Batch] = []

    def recording(step: Update, batches: Collection[Batch]) -> dict[Batch, Replay]:
        made.extend(batches)
        return rehearsing(step, batches)

    monkeypatch.setattr(graph, "record", recording)
    options = {"frozen": masks(net, "half"), "wanted": ("init", 1), "ranking": EVEN}
    eager = trained(net, data, APART, GENERAL, plan="eager", **options)
    assert same(eager, trained(net, data, APART, GENERAL, plan="graph", **options))
    assert made == [(16, "risky"), (12, "risky"), (16, "general"), (12, "general")]


# ---------------------------------------------------------------- several


def one(data: Resident, seed: int, epochs: int = 2, lr: float = 0.05) -> Training:
    schedule = Schedule(epochs, batch=16, lr=lr, decay="constant", augment=Augment(1))
    net = build(Model("resnet10", width=2), 1, 3, seed)
    return training(net, data, MEMBERS, schedule, seed=seed)


@pytest.mark.parametrize("lanes", [1, 2, 9])
def test_other_trainings_change_nothing(data: Resident, lanes: int) -> None:
    epochs = (3, 1, 2, 4, 1)
    together = (one(data, seed, n) for seed, n in enumerate(epochs))
    found = dict(loop._in_turn(enumerate(together), [None] * lanes))
    assert sorted(found) == [0, 1, 2, 3, 4]
    for seed, n in enumerate(epochs):
        ((_, alone),) = fit_many([one(data, seed, n)])
        outcome = found[seed]
        assert isinstance(outcome, Trajectory)
        assert isinstance(alone, Trajectory)
        assert same(outcome, alone)


def test_an_error_ends_only_its_own_training(data: Resident) -> None:
    jobs = [one(data, 0), one(data, 1, 6, lr=1e30), one(data, 2)]
    found = dict(loop._in_turn(enumerate(jobs), [None, None]))
    assert isinstance(found[1], Diverged)
    assert isinstance(found[0], Trajectory)
    assert isinstance(found[2], Trajectory)


def test_an_abandoned_training_gives_the_network_back(net: Net, data: Resident) -> None:
    frozen = masks(net, "parts")
    begun = training(net, data, MEMBERS, Schedule(2, batch=16), seed=0, frozen=frozen)
    next(begun)
    assert not net.stem.conv.weight.requires_grad
    begun.close()
    assert all(parameter.requires_grad for parameter in net.parameters())
