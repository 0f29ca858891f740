"""What benchmarks count and compare is what they say."""

import operator
from pathlib import Path

import pytest
from bench import where, workers
from bench.coverage import required

from leak_atlas.engine import store
from leak_atlas.recipe import At, Data, Model, RandomHalves, Schedule, Setup, Signals

BITS = Setup(Data("digits-bits"), RandomHalves(200), Model("fc", 8), Schedule(2), 4).trained()


def test_jobs_that_end_alike_are_counted_apart(
    own_outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainings = [state.training for state in BITS][:2]
    edited = BITS.rewind("head").signals()[:2]
    for step in (
        *trainings,
        *(Signals(At(one, 1)) for one in trainings),
        At(trainings[0]),
        *edited,
    ):
        store.write(
            step.key, step.record(), {}, {"finished": "now", "seconds": 2.0, "operations": 1.0}
        )
    monkeypatch.setattr(where, "priced", lambda kept: {})
    assert where.spent().groupby("kind")["core_s"].sum().to_dict() == {"Signals": 4.0, "Train": 4.0}


def test_only_the_effect_of_lira_may_cover_less() -> None:
    assert required("AUC of online LiRA, 6 targets, shift 0.5, design effect 1") == 0.0
    assert (
        required("AUC of RMIA, 6 targets, shift 0.5, design effect 1")
        == required("mean of 4 units")
        == 0.92
    )


def test_a_process_that_ends_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "plainly", operator.is_)  # it answers nothing
    with pytest.raises((EOFError, OSError)), workers.machine(BITS[0].training):
        pass
