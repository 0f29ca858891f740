"""What a study derives from its sizes. Keys of all populations that pages use: `test_golden`."""

from dataclasses import replace

import pytest

from leak_atlas import BadInput
from leak_atlas.recipe import Data, Model, Population, PruningStudy, Schedule, Window, WindowStudy

DATA = Data(pixels=8)
MODEL = Model("resnet10", width=4)
SIZES = {"fine_tuning": 3, "targets": 2, "shadows": 3, "seed": 5}


def pruning(decay: str) -> PruningStudy:
    schedule = Schedule(6, 16, "adam", 0.002, decay=decay, patience=2)
    return PruningStudy(DATA, MODEL, schedule, pool=80, dev=8, **SIZES)


@pytest.mark.parametrize(("decay", "ends"), [("constant", (6, 6)), ("cosine", (2, 4))])
def test_each_stop_ends_its_own_decay(decay: str, ends: tuple[int, int]) -> None:
    study = pruning(decay)
    free = replace(study.schedule, patience=None)
    for (epoch, stopped), end in zip(study.stopped([2, 4]).items(), ends, strict=True):
        whole = study.setup.trained(schedule=replace(free, epochs=end))
        assert stopped == whole.at(epoch)


@pytest.mark.parametrize("decay", ["constant", "cosine"])
def test_a_pruned_network_stops_before_or_after_pruning(decay: str) -> None:
    study = pruning(decay)
    free = replace(study.tuning, patience=None)
    stopped = study.pruned_early("slimming", 0.6, before=[4], after=[1, 2])
    assert list(stopped) == [5, 7, 8]

    def tuned(dense: Population, epoch: int) -> Population:
        bare = dense.pruned("slimming", 0.6)
        if decay == "constant":
            return bare.train(free).at(epoch)
        return bare.train(replace(free, epochs=epoch))

    assert stopped[5] == tuned(study.stopped([4])[4], 1)
    assert stopped[8] == tuned(study.dense, 2)


def test_sizes_that_leave_nothing_are_refused() -> None:
    with pytest.raises(BadInput, match="an epoch or more of fine-tuning"):
        pruning("cosine").pruned_early("slimming", 0.6, before=[4], after=[])
    schedule = Schedule(6, 16, "adam", 0.002, decay="constant")
    few = WindowStudy(DATA, MODEL, schedule, pool=24, dev=2, sparsity=0.6, rounds=2, **SIZES)
    with pytest.raises(BadInput, match="a member of each of 10 classes"):
        few.coverage(Window(3, 1))


def test_networks_stopped_early_are_as_sparse_as_base() -> None:
    schedule = Schedule(6, 16, "adam", 0.002, decay="constant")
    study = WindowStudy(DATA, MODEL, schedule, pool=400, dev=20, sparsity=0.6, rounds=3, **SIZES)
    base = {state.parent.sparsity for state in study.base}
    stopped = study.stopped_early([2, 4])
    assert list(stopped) == [2, 4]
    for population in stopped.values():
        assert {state.parent.sparsity for state in population} == base == {0.6}


def test_a_window_visits_what_it_covers() -> None:
    """Epochs visit ranks 0-2, 1-3 and 2-4 of nine: five of them, with nine visits."""
    schedule = Schedule(6, 16, "adam", 0.002, decay="constant")
    study = WindowStudy(
        DATA, MODEL, schedule, pool=400, dev=20, sparsity=0.6, rounds=2, judges=4, **SIZES
    )
    assert study.class_members == 9
    assert study.coverage(Window(3, 1)) == 5 / 9
    assert study.epochs_like(Window(3, 1)) == 1
    # nine members in one epoch; five in two
    assert study.extra_visits(Window(3, 1)) == pytest.approx((9 / 9 - 1, 10 / 9 - 1))


def test_the_same_members_are_visited_as_often_as_by_the_window() -> None:
    """Nine visits of five members are about two epochs."""
    schedule = Schedule(6, 16, "adam", 0.002, decay="constant")
    study = WindowStudy(
        DATA,
        MODEL,
        schedule,
        pool=400,
        dev=20,
        sparsity=0.6,
        rounds=2,
        judges=4,
        score_epochs=1,
        **SIZES,
    )
    fixed = study.same_members(Window(3, 1, "high-to-low"))
    assert (
        fixed
        == study.iterative(
            schedule=replace(study.tuning, epochs=2),
            sampling=Window(5, 0, "high-to-low"),
            ranking=study.ranking,
        )[-1]
    )
