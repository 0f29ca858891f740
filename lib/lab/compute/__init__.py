"""What each kind of step computes. The only place where recipes meet the rooms that do the work."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Generator, Mapping
from datetime import UTC, datetime
from typing import Any

from lib import store
from lib.lab.compute import attacks, cost, readings, states, training
from lib.lab.compute.states import Arrays
from lib.lab.plans import Job, work
from lib.recipe import (
    Anatomy,
    Attack,
    Choose,
    Cost,
    Distance,
    Network,
    Score,
    SelfAudit,
    Shuffled,
    Signals,
    Similarity,
    StageMembership,
    StageProbe,
    Step,
    Train,
)

COMPUTE: Mapping[type, Callable[[Any], Arrays]] = {
    Signals: readings.signals,
    Choose: readings.choose,
    Distance: readings.distance,
    Similarity: readings.similarity,
    StageMembership: readings.stage_membership,
    StageProbe: readings.stage_probe,
    Score: readings.score,
    Shuffled: readings.shuffled,
    Anatomy: readings.anatomy,
    Cost: cost.cost,
    SelfAudit: readings.self_audit,
    Attack: attacks.attack,
}


def run(job: Job) -> Generator[None, None, dict[str, Any]]:
    """Computes and stores what a job yields; returns when, where and how long. Pauses as `training.train` does.

    What is stored already is not written again.
    """
    start = time.perf_counter()
    made = (
        (yield from training.train(job.step, job.asked))
        if isinstance(job.step, Train)
        else {job.key: COMPUTE[type(job.step)](job.step)}
    )
    meta = _meta(job.step, time.perf_counter() - start)
    for step in reversed(job.yields):  # the training itself last: if it is there, so is what was asked of it
        store.write(step.key, step.record(), made[step.key], meta)
    return meta


def _meta(step: Step, seconds: float) -> dict[str, Any]:
    import numpy

    meta: dict[str, Any] = {
        "seconds": round(seconds, 3),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version(), "numpy": numpy.__version__},
        "device": "cpu",
    }
    attack_net = isinstance(step, Attack) and isinstance(step.attacker, Network)
    if attack_net or not isinstance(step, Attack | Choose | SelfAudit):
        import torch

        meta["versions"]["torch"] = torch.__version__
        meta["threads"] = torch.get_num_threads()
        meta["device"] = "cpu" if attack_net else states.device_name()
        meta["operations"] = work(step)
    return meta
