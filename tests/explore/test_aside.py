"""Costs and trainings that are done aside: a kernel answers meanwhile, a training is cancelled, all
ends with it.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from leak_atlas import lab
from leak_atlas.explore import aside
from leak_atlas.explore.instrument import Instrument
from leak_atlas.explore.layers import Layers
from leak_atlas.explore.setting import Setting
from leak_atlas.recipe import Data, Halves, Model, Schedule
from tests.explore.conftest import text

TINY = Setting(
    Data(pixels=8), Halves(40, test=20), Model("resnet10", width=2), Schedule(2, 20), models=2
)


async def until(true: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


async def longest() -> float:
    """The longest time for which the loop did not answer, until this is cancelled."""
    worst, last = 0.0, time.monotonic()
    try:
        while True:
            await asyncio.sleep(0.01)
            worst, last = max(worst, time.monotonic() - last), time.monotonic()
    except asyncio.CancelledError:
        return worst


def test_a_kernel_answers_while_costs_are_counted_and_networks_trained(own_outputs: Any) -> None:
    async def use() -> None:
        app = Instrument(Layers(TINY, TINY.but("stage-4 stride", 1)))
        assert "counting what it costs" in app.offer.cost.value
        watch = asyncio.create_task(longest())
        await until(lambda: app.offer.train.description)
        watch.cancel()
        assert await watch < 1 and app.offer.train.description.startswith(
            "train 8 networks, about "
        )
        app.offer.train.click()
        await until(lambda: "steps" in app.offer.progress.value)
        app.choose(parts="blocks")  # other choices are alive
        assert app.offer.train.disabled
        await until(lambda: not app.offer._training)
        assert app.rows and "A (stage-4 stride 2): furthest from chance is stage" in text(
            app.says.value
        )
        assert (
            app.offer.train.layout.display == "none" and app.offer._running.layout.display == "none"
        )
        app.choose(A_width="64", A_epochs="40", A_pool="2000")
        await until(lambda: app.offer.train.layout.display is None)
        app.offer.train.click()
        await until(lambda: "steps" in app.offer.progress.value)
        app.offer.cancel.click()
        await until(lambda: not app.offer._training)
        assert "what is finished is kept" in app.offer.progress.value
        await until(lambda: app.offer.train.layout.display is None and not app.offer.train.disabled)
        app.offer.train.click()
        await until(lambda: "steps" in app.offer.progress.value)
        assert {
            each.layout.display for each in (app.offer._running, app.offer.bar, app.offer.cancel)
        } == {None}
        app.offer.cancel.click()
        await until(lambda: not app.offer._training)

    was = "torch" in sys.modules
    asyncio.run(use())
    assert ("torch" in sys.modules) == was


def test_a_process_that_dies_is_told(own_outputs: Any) -> None:
    async def use() -> None:
        training = await asyncio.to_thread(aside.Training, [TINY.steps()])
        with pytest.raises(lab.Failed, match="ended with code -9; what is finished is kept"):
            async for _ in training:
                training._process.kill()

    asyncio.run(use())


def test_an_interrupt_of_a_cell_ends_no_process_aside(own_outputs: Any) -> None:
    """JupyterLab sends it to all processes of a kernel, those that start included."""

    async def use() -> None:
        training = await asyncio.to_thread(aside.Training, [TINY.steps()])
        counted = asyncio.create_task(aside.count([TINY.steps()]))
        await until(lambda: aside._counter()._processes)
        for pid in (training._process.pid, *aside._counter()._processes):
            os.kill(pid, signal.SIGINT)
        assert await counted
        assert [each.done async for each in training][-1] > 1

    aside._counter.cache_clear()
    asyncio.run(use())


def test_the_cell_that_is_exported_shows_the_same(own_outputs: Any) -> None:
    app = Instrument(Layers(TINY, TINY))
    assert app.code == "app.choose()"
    app.choose(A_width="4", B_stage4_stride="1")
    app.export.click()
    assert app.code in text(app.links.value) and app.code.count("=") == 2
    again: dict[str, Any] = {"app": Instrument(Layers(TINY, TINY))}
    exec(app.code, again)
    assert again["app"].state == app.state
    app.choose(parts="blocks")
    assert not app.links.value  # of what was shown before
