"""How fast trainings were on each device, kept beside the results for the next preview."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass

from lib import BadInput, files, paths

# Operations below which a training tells what a job costs anyway, not how fast a device is.
TELLING = 1e10


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


@dataclass
class Kept:
    """What stands in the file."""

    rates: dict[str, float]  # operations per second by name of the device


def rates() -> dict[str, float]:
    """Operations per second of one training, by name of the device; a damaged file is removed, with a warning."""
    path = paths.store() / "rate.json"
    if not path.exists():
        return {}
    try:
        found: dict[str, float] = files.from_json(files.text(path), path, Kept).rates
        if odd := [name for name, rate in found.items() if rate <= 0]:
            raise BadInput(f"{path}: a rate is more than 0, unlike that of '{odd[0]}'")
        return found
    except BadInput as error:
        print(f"{error}: forgotten", file=sys.stderr)
        with suppress(OSError):
            path.unlink()
        return {}


def remember(paces: Mapping[str, Pace]) -> None:
    """Keeps how fast trainings were; two of them say little."""
    new = {device: pace.operations / pace.seconds for device, pace in paces.items() if pace.trainings >= 3}
    if new:
        with suppress(OSError):  # a full disk has been told of by those who could not store their results
            files.write(paths.store() / "rate.json", json.dumps(asdict(Kept(rates() | new))))
