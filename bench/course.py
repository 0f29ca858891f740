"""What a course costs: a training whose signals are read off at twelve epochs, against the same
training alone.

Networks of width 8 on small Fashion-MNIST at 16 x 16, pool 600, 60 epochs, one thread, in turn in
one process. Each time the network answers all that its design uses, 750 samples, while 300 are
trained on. Ratio of processor time: what may be taken, 1.3 times that of the training alone, over
what is taken. The last epoch is not there: its weights are stored anyway. Bytes are those on disk:
of the weights, which a checkpoint would take, over those of its signals, which do not grow with the
network; nothing is required of this ratio. No checkpoint's weights may be stored.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import torch

from bench.ratios import Ratio, row
from bench.scale import fresh_store
from leak_atlas.engine import store
from leak_atlas.lab import plans
from leak_atlas.lab.jobs import learn_kinds
from leak_atlas.lab.run import run
from leak_atlas.lab.training import train
from leak_atlas.recipe import Data, Model, RandomHalves, Schedule, Setup, Signals
from leak_atlas.training.loop import fit_many

EPOCHS, AT = 60, (1, 2, 3, 5, 8, 12, 17, 23, 30, 38, 47, 55)
TIMES, ROUNDS = 1.3, 7


def seconds(running: Generator[None, None, Any]) -> float:
    """Processor time of a training."""
    start = time.process_time()
    ((_, outcome),) = fit_many([running])
    assert not isinstance(outcome, Exception), outcome
    return time.process_time() - start


def main() -> dict[str, Ratio]:
    """Print and return the ratios."""
    torch.set_num_threads(1)
    learn_kinds()
    found: dict[str, Ratio] = {}
    for name in ("cnn4", "resnet10"):
        design, schedule = RandomHalves(600, test=150), Schedule(EPOCHS, 64, "adam", lr=0.005)
        step = Setup(Data(pixels=16), design, Model(name, 8), schedule, 1).trained()[0].training
        read = [Signals(step.at(epoch)) for epoch in AT]
        seconds(train(step, signals=read))
        taken = [seconds(train(step, signals=read)) / seconds(train(step)) for _ in range(ROUNDS)]
        print(
            f"{name}: {len(AT)} readings of {EPOCHS} epochs take {sorted(taken)[ROUNDS // 2]:.2f} times the training"
        )
        found |= row(f"a course's time, {name}", [TIMES / each for each in taken], 1.0)
        with fresh_store():
            assert not run(plans.plan([read]), 1), "a training failed"
            entries = [[*store.folder(one.key).iterdir()] for one in (step, *read)]
            weights, *signals = (sum(file.stat().st_size for file in files) for files in entries)
            assert not any(store.has(one.of.key) for one in read), (
                "weights of a checkpoint are stored"
            )
            print(
                f"{name}: {weights:,} bytes of weights at the end, {signals[0]:,} of signals at each checkpoint"
            )
            ratios = [weights / each for each in signals]
            found |= row(f"a course's bytes, {name}: weights against signals", ratios, 0.0)
    return found


if __name__ == "__main__":
    main()
