"""What the tests of all explorers share."""

import html
import re
import time
from typing import Any

import pytest

from leak_atlas import lab
from leak_atlas.engine import store
from leak_atlas.explore import aside, base, look


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is handed to `realize`, which does nothing."""
    calls: list[Any] = []
    monkeypatch.setattr(lab, "realize", lambda *steps: calls.append(steps))
    return calls


def text(markup: str) -> str:
    """The words of markup."""
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", markup)).split())


def offered(app: Any) -> bool:
    """Whether an explorer offers to train what is missing."""
    return app.offer.train.layout.display is None


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done for an answer: "read" and a key, "draw". To train is refused."""
    done: list[str] = []
    read, draw = store.read, look.Frames.draw

    def refuse(*steps: Any) -> None:
        raise AssertionError(f"{steps} are trained")

    monkeypatch.setattr(store, "read", lambda key: done.append(f"read {key}") or read(key))
    monkeypatch.setattr(look.Frames, "draw", lambda *args: done.append("draw") or draw(*args))
    for place, name in ((lab, "realize"), (aside, "Training")):
        monkeypatch.setattr(place, name, refuse)
    return done


def answered(app: base.Explorer, work: list[str], name: str, value: Any) -> None:
    """A stored choice is read once and drawn once; when it comes back, its answer is there without
    either.
    """
    start, before, drawn = app.state[name], app.picture.value, work.count("draw")
    app.choose(**{name: value})
    after = app.picture.value
    assert after and after != before and not app.view.missing
    reads = [each for each in work if each != "draw"]
    assert len(reads) == len({*reads}) and work.count("draw") == drawn + 1
    done, began = len(work), time.process_time()
    app.choose(**{name: start})
    assert app.picture.value == before
    app.choose(**{name: value})
    assert app.picture.value == after and len(work) == done
    assert time.process_time() - began < 2  # seconds, for two; on a machine that is not busy 0.05
