"""Plans and company change nothing: recorded or not, alone or beside others, a training has the
same bits.
"""

import copy
from collections.abc import Callable, Collection, Iterator
from functools import partial

import numpy as np
import pytest
import torch

from leak_atlas import BadInput
from leak_atlas.data import augmentation
from leak_atlas.data.resident import Resident
from leak_atlas.models import Net, build
from leak_atlas.recipe import RMR, Augment, Model, RelaxLoss, Schedule
from leak_atlas.training import graph, loop
from leak_atlas.training.graph import Replay
from leak_atlas.training.loop import Diverged, Training, Trajectory, fit, fit_many, training
from leak_atlas.training.schedule import rate
from leak_atlas.training.update import Batch, Update
from tests.training.test_update import masks

MEMBERS = torch.arange(56)


@pytest.fixture(autouse=True)
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has checked no recording yet."""
    monkeypatch.setattr(graph, "_trusted", {}, raising=False)


def rehearsing(step: Update, batches: Collection[Batch]) -> dict[Batch, Replay]:
    """In place of a recording: takes steps, as a recording's end might, and replays by taking them."""
    for batch in batches:
        for _ in range(5):
            step.position.zero_()
            step(*batch)
    return {batch: partial(step, *batch) for batch in batches}


def same(a: Trajectory, b: Trajectory) -> bool:
    states = a.states.keys() == b.states.keys() and all(
        torch.equal(value, b.states[when][name])
        for when, state in a.states.items()
        for name, value in state.items()
    )
    return states and all(
        np.array_equal(values, b.history[name]) for name, values in a.history.items()
    )


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("frozen", ["nothing", "parts", "half"])
@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(3, batch=16, lr=0.05),
        Schedule(3, batch=16, lr=0.05, momentum=0.0, augment=Augment(1)),
        Schedule(3, batch=16, lr=0.05, nesterov=True, decay="steps", milestones=(1,)),
        Schedule(3, batch=16, lr=0.01, optimizer="adam", augment=Augment(1)),
        Schedule(3, batch=16, lr=0.05, sharpness=0.1),
    ],
    ids=["momentum", "plain", "nesterov", "adam", "sharpness"],
)
def test_a_recording_is_no_training(
    net: Net,
    data: Resident,
    monkeypatch: pytest.MonkeyPatch,
    schedule: Schedule,
    frozen: str,
    precision: str,
) -> None:
    monkeypatch.setattr(graph, "record", rehearsing)
    start = {name: value.clone() for name, value in net.state_dict().items()}
    found = {}
    for plan in ("eager", "graph"):
        net.load_state_dict(start)
        options = {
            "frozen": masks(net, frozen),
            "precision": precision,
            "wanted": ("init", 1),
            "plan": plan,
        }
        found[plan] = fit(net, data, MEMBERS, schedule, RelaxLoss(0.9), seed=4, **options)
    assert same(found["eager"], found["graph"])


def test_a_graph_needs_cuda_and_leaves_the_net_alone(net: Net, data: Resident) -> None:
    before = {name: value.clone() for name, value in net.state_dict().items()}
    with pytest.raises(BadInput, match="CUDA"):
        fit(net, data, MEMBERS, Schedule(2, batch=16), seed=0, plan="graph")
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())


def failing(step: Update, batches: Collection[Batch]) -> dict[Batch, Replay]:
    """Breaks off after a step, as a recording that meets an operation which cannot be recorded."""
    step(*next(iter(batches)))
    raise RuntimeError("operation not permitted when stream is capturing")


def idle(step: Update, batches: Collection[Batch]) -> dict[Batch, Replay]:
    """Replays nothing."""
    return dict.fromkeys(batches, lambda: None)


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
        (failing, "cannot be recorded (RuntimeError: operation not permitted"),
        (idle, "do something else"),
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
    start = copy.deepcopy(net)
    schedule = Schedule(2, batch=16, lr=0.05, augment=Augment(1))
    eager = fit(net, data, MEMBERS, schedule, seed=4, plan="eager")
    for turn in range(2):
        found = fit(copy.deepcopy(start), data, MEMBERS, schedule, seed=4, plan="graph")
        assert same(eager, found)
        said = capsys.readouterr().err
        assert said.count("\n") == (turn == 0), "one line, at first use"
        assert turn or words in said


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
    fit(net, data, MEMBERS, Schedule(2, batch=16), seed=4, plan="graph")
    assert len(replayed) == 2 * graph.TURNS + 2 * 4, (
        "two kinds of batches are checked, then trained on"
    )
    fit(net, data, MEMBERS, Schedule(2, batch=16), seed=5, plan="graph")
    assert len(replayed) == 2 * graph.TURNS + 2 * 2 * 4, "a process checks once"
    assert not capsys.readouterr().err


# ---------------------------------------------------------------- two optimizers in turn


# which is not taken
GENERAL = Schedule(3, batch=16, lr=0.005, optimizer="adam", weight_decay=7.0, augment=Augment(1))
APART = RMR(1.0, 1e-3, tau=0.5, form="code")
EVEN = 1.0 - MEMBERS % 2  # their scores


def test_two_optimizers_in_turn_are_two_optimizers_in_turn(net: Net, data: Resident) -> None:
    """RMR's published form, written out: each optimizer has its own moments, and both move the same
    weights.
    """
    plain = copy.deepcopy(net).train()
    made = [
        torch.optim.Adam(plain.parameters(), weight_decay=decay)
        for decay in (APART.risky, APART.general)
    ]
    for epoch in range(3):
        perm, *views = augmentation.tables(4, epoch, 56, GENERAL.augment)
        turns = torch.cat([perm[perm % 2 == parity] for parity in (0, 1)]).split([16, 12] * 2)
        places = torch.arange(56).split([16, 12] * 2)
        for own, turn, place in zip(
            (made[0], made[0], made[1], made[1]), turns, places, strict=True
        ):
            own.param_groups[0]["lr"] = rate(GENERAL, epoch)
            own.zero_grad()
            x = augmentation.gather(data, MEMBERS[turn], *(view[place] for view in views), 1)
            torch.nn.functional.cross_entropy(plain(x), data.labels[MEMBERS[turn]]).backward()
            own.step()
    fit(net, data, MEMBERS, GENERAL, APART, seed=4, ranking=EVEN)
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(net.state_dict()[name], value, atol=2e-3, rtol=0, msg=name)


@pytest.mark.parametrize("frozen", ["nothing", "half"])
def test_a_recording_is_kept_for_each_phase(
    net: Net, data: Resident, monkeypatch: pytest.MonkeyPatch, frozen: str
) -> None:
    """Two batches of one size that differ in phase are two recordings."""
    made: list[Batch] = []

    def recording(step: Update, batches: Collection[Batch]) -> dict[Batch, Replay]:
        made.extend(batches)
        return rehearsing(step, batches)

    monkeypatch.setattr(graph, "record", recording)
    options = {"frozen": masks(net, frozen), "seed": 4, "wanted": ("init", 1), "ranking": EVEN}
    found = [
        fit(copy.deepcopy(net), data, MEMBERS, GENERAL, APART, plan=p, **options)
        for p in ("eager", "graph")
    ]
    assert same(*found)
    assert made == [(16, "risky"), (12, "risky"), (16, "general"), (12, "general")]


# ---------------------------------------------------------------- several


def one(data: Resident, seed: int, epochs: int = 2, lr: float = 0.05) -> Training:
    schedule = Schedule(epochs, batch=16, lr=lr, decay="constant", augment=Augment(1))
    return training(
        build(Model("resnet10", width=2), 1, 3, seed), data, MEMBERS, schedule, seed=seed
    )


@pytest.mark.parametrize("lanes", [1, 2, 3, 9])
def test_company_changes_nothing(data: Resident, lanes: int) -> None:
    epochs = (3, 1, 2, 4, 1)
    alone = [dict(fit_many([one(data, seed, n)]))[0] for seed, n in enumerate(epochs)]
    found = dict(
        loop._in_turn(
            enumerate(one(data, seed, n) for seed, n in enumerate(epochs)), [None] * lanes
        )
    )
    assert sorted(found) == [0, 1, 2, 3, 4]
    for number, expected in enumerate(alone):
        outcome = found[number]
        assert (
            isinstance(outcome, Trajectory)
            and isinstance(expected, Trajectory)
            and same(outcome, expected)
        )


def test_one_error_ends_none_but_its_own(data: Resident) -> None:
    jobs = [one(data, 0), one(data, 1, 6, lr=1e30), one(data, 2)]
    found = dict(loop._in_turn(enumerate(jobs), [None, None]))
    assert isinstance(found[1], Diverged)
    assert isinstance(found[0], Trajectory) and isinstance(found[2], Trajectory)


def test_networks_are_made_when_their_turn_comes(data: Resident) -> None:
    made: list[int] = []

    def jobs() -> Iterator[Training]:
        for seed in range(4):
            made.append(seed)
            yield one(data, seed, 1)

    ends = loop._in_turn(enumerate(jobs()), [None, None])
    assert next(ends)[0] == 0 and made == [0, 1]
    assert sorted(number for number, _ in ends) == [1, 2, 3] and made == [0, 1, 2, 3]


def test_without_cuda_one_after_the_other(data: Resident, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert [number for number, _ in fit_many([one(data, 0, 3), one(data, 1, 1)], streams=4)] == [
        0,
        1,
    ]


def test_an_abandoned_training_gives_the_net_back(net: Net, data: Resident) -> None:
    under_way = training(
        net, data, MEMBERS, Schedule(2, batch=16), seed=0, frozen=masks(net, "parts")
    )
    next(under_way)
    assert not net.stem.conv.weight.requires_grad
    under_way.close()
    assert all(parameter.requires_grad for parameter in net.parameters())
