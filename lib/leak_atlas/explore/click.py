"""The click that trains: what is missing, what it would cost, and how it gets on, until it is done
or cancelled.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import ipywidgets as widgets

from leak_atlas import BadInput, duration, lab
from leak_atlas.engine import digests as code
from leak_atlas.engine import store
from leak_atlas.explore import aside
from leak_atlas.explore.look import AUTO, WRAP, status
from leak_atlas.lab.plans import kinds, steps_of


def begin(work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
    """Does some work while a kernel answers; None where there is none, and the work was not begun."""
    try:
        return asyncio.get_running_loop().create_task(work)
    except RuntimeError:
        work.close()
        return None


class Offer(widgets.VBox):
    """Says what is missing and what it would cost, and computes it on a click, aside, until it is
    cancelled.

    `steps` are all that is looked at now, one list for each asker; `done` is called after a click,
    with what went wrong or with nothing. Where there is no kernel, all is done at once.
    """

    def __init__(self, steps: Callable[[], list[list[Any]]], done: Callable[[str], None]) -> None:
        self._steps = steps
        self._done = done
        self._counting: asyncio.Task[None] | None = None
        self._training: asyncio.Task[None] | None = None
        self._aside: aside.Training | None = None
        self.cost = widgets.HTML().add_class("leak-atlas-cost")
        self.train = widgets.Button(icon="play", button_style="primary", layout=AUTO)
        self.train.add_class("leak-atlas-train")
        self.train.on_click(self._compute)
        self.bar = widgets.FloatProgress(max=1.0, layout={"width": "180px"})
        self.progress = widgets.HTML().add_class("leak-atlas-progress")
        self.cancel = widgets.Button(description="cancel", icon="stop", layout=AUTO)
        self.cancel.add_class("leak-atlas-cancel")
        self.cancel.on_click(self._cancel)
        offer = widgets.HBox([self.train, self.cost], layout=WRAP)
        self._running = widgets.HBox([self.bar, self.progress, self.cancel], layout=WRAP)
        _show(False, self._running, self.train)
        super().__init__([offer, self._running])

    def tell(self, wrong: str = "") -> None:
        """Counts what is missing now; `wrong` says why that cannot be."""
        if self._counting:
            self._counting.cancel()  # what the last choice would have cost
        self._say("", wrong)
        if wrong:
            return
        steps = self._steps()
        if all(step.stored and store.has(step.key) for step in steps_of(steps)):
            return
        self.cost.value = status("counting what it costs ...")
        self._counting = begin(self._count(steps))
        if not self._counting:
            try:
                self._say(aside.cost(steps))
            except BadInput as error:
                self._say("", str(error))

    async def _count(self, steps: list[list[Any]]) -> None:
        try:
            self._say(await aside.count(steps))
        except BadInput as error:
            self._say("", str(error))

    def _say(self, offer: str, wrong: str = "") -> None:
        self.cost.value = status(wrong)
        self.train.description = offer
        self.train.disabled = bool(self._training)
        _show(bool(offer), self.train)

    def _compute(self, _: Any) -> None:
        """Trains in another process, or, where there can be none, here."""
        if self._training or self.train.disabled:
            return
        self.train.disabled = True
        wrong = ""
        steps = self._steps()
        try:
            used = list(kinds(steps_of(steps)))
            code.check_files(used)  # or the other process would read another source
            if not code.kind_in_cell(used):
                self._training = begin(self._follow(steps, self.train.description))
            if self._training:
                return
            lab.realize(*steps)
        except (BadInput, lab.Failed) as error:
            wrong = str(error)
        self._done(wrong)

    def _cancel(self, _: Any) -> None:
        if self._aside:
            self._aside.cancel()

    async def _follow(self, steps: list[list[Any]], what: str) -> None:
        """Shows how a training gets on; other controls can be moved meanwhile."""
        wrong = ended = ""
        self.bar.value = 0.0
        self.cancel.disabled = True
        _show(True, self._running, self.bar, self.cancel)
        self.progress.value = status(f"{what}: starting ...")
        start = began = time.monotonic()
        try:
            self._aside = await asyncio.to_thread(aside.Training, steps)
            self.cancel.disabled = False
            async for progress in self._aside:
                if progress.done == 0:
                    began = time.monotonic()  # torch is loaded before that
                self.bar.value = progress.share
                self.progress.value = status(f"{what}: {_words(progress, start, began)}")
        except lab.Failed as error:
            wrong = str(error)
        if self._aside and self._aside.cancelled:
            ended = "cancelled; what is finished is kept"
        self.progress.value = status(ended)
        _show(False, self.bar, self.cancel)
        _show(bool(ended), self._running)
        self._training = self._aside = None
        self._done(wrong)


def _words(progress: aside.Progress, start: float, began: float) -> str:
    """How far a training is that `start`ed then, and whose first step `began` then."""
    now = time.monotonic()
    text = f"{progress.done} of {progress.steps} steps, {duration(now - start)} so far"
    if 0.02 < progress.share < 1:
        left = (now - began) * (1 - progress.share) / progress.share
        text += f", about {duration(left)} left"
    return text


def _show(shown: bool, *controls: widgets.Widget) -> None:
    for control in controls:
        control.layout.display = None if shown else "none"
