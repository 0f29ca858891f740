"""How fast trainings were on each device, kept beside the results for the next preview."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

from lib import paths

# Operations below which a training tells what a job costs anyway, not how fast a device is.
TELLING = 1e10


def rates() -> dict[str, float]:
    try:
        return {
            name: float(one) for name, one in json.loads((paths.store() / "rate.json").read_text())["rates"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


@dataclass
class Pace:
    """Trainings done on one device, summed: nearly all of the work."""

    trainings: int = 0
    operations: float = 0.0
    seconds: float = 0.0

    def count(self, operations: float, seconds: float) -> None:
        if operations < TELLING:
            return
        self.trainings += 1
        self.operations += operations
        self.seconds += seconds


def remember(paces: Mapping[str, Pace]) -> None:
    """Keeps how fast trainings were, by name of the device, for the next preview; two of them say little."""
    new = {device: pace.operations / pace.seconds for device, pace in paces.items() if pace.trainings >= 3}
    if not new:
        return
    path = paths.store() / "rate.json"
    partial = path.with_suffix(f".{os.getpid()}")
    try:
        partial.write_text(json.dumps({"rates": rates() | new}))
        partial.replace(path)
    except OSError:  # a full disk has been told of by those who could not store their results
        partial.unlink(missing_ok=True)
