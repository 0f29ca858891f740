"""What can befall an entry of the store: a flipped bit, an interruption at any system call, two
writers at once.
"""

import os
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leak_atlas.engine import paths, store
from tests.faults import tiny

KEY = "cd" + 62 * "1"
RECORD = {"kind": "Test", "deep": {"a": [1, 2.5, None]}}
META = {"seconds": 1e-05, "who": "me"}
ARRAYS = {"z": np.arange(12, dtype=np.float32).reshape(3, 4), "a": np.asarray([True, False])}


def put() -> None:
    store.write(KEY, RECORD, ARRAYS, META)


def whole() -> bool:
    """True where the entry is there and true, False where it is not there; anything else fails the
    test.
    """
    if not store.has(KEY):
        with pytest.raises(KeyError):
            store.read(KEY)
        assert KEY not in store.listing()
        return False
    entry = store.read(KEY)
    assert (entry.record, entry.meta, list(entry.arrays)) == (RECORD, META, list(ARRAYS))
    assert all(np.array_equal(entry.arrays[name], array) for name, array in ARRAYS.items())
    return True


# ---------------------------------------------------------------- bits


def test_every_single_bit_of_an_entry_is_under_a_digest() -> None:
    put()
    for name in (store.ARRAYS, store.ENTRY):
        path = store.folder(KEY) / name
        good = path.read_bytes()
        for byte in range(len(good)):
            for bit in range(8):
                path.write_bytes(good[:byte] + bytes([good[byte] ^ 1 << bit]) + good[byte + 1 :])
                with pytest.raises(store.Corrupt, match=KEY[:12]):
                    store.read(KEY)
                if name == store.ENTRY:
                    with pytest.raises(store.Corrupt, match=KEY[:12]):
                        store.describe(KEY)
        path.write_bytes(good)
    assert whole()


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    name=st.sampled_from([store.ARRAYS, store.ENTRY]),
    cut=st.floats(0, 1, exclude_max=True),
    tail=st.binary(),
)
def test_a_file_that_was_cut_or_overwritten_is_noticed(name: str, cut: float, tail: bytes) -> None:
    put()
    path = store.folder(KEY) / name
    good = path.read_bytes()
    damaged = good[: int(cut * len(good))] + tail
    path.write_bytes(damaged)
    if damaged == good:
        assert whole()
    else:
        with pytest.raises(store.Corrupt):
            store.read(KEY)
    path.write_bytes(good)


# ---------------------------------------------------------------- torn states


class Killed(BaseException):
    """As if the process had been killed here: no handler of ours takes it for an error."""


CALLS = ["mkdir", "rename", "unlink", "rmdir"]


class Disk:
    """Lets `allowed` changes of the file system pass and then none: a dead process cleans nothing
    up either.
    """

    def __init__(self, allowed: int, patch: pytest.MonkeyPatch) -> None:
        self.left = allowed
        for name in CALLS:
            patch.setattr(os, name, partial(self.change, getattr(os, name)))
        patch.setattr(Path, "write_bytes", lambda path, blob: self.write(path, blob))

    def change(self, call: Callable[..., Any], *given: Any, **more: Any) -> Any:
        if self.left <= 0:
            raise Killed
        self.left -= 1
        return call(*given, **more)

    def write(self, path: Path, blob: bytes) -> None:
        """Every file arrives in two halves."""
        with self.change(open, path, "wb", buffering=0) as file:
            self.change(file.write, blob[: len(blob) // 2])
            self.change(file.write, blob[len(blob) // 2 :])


def interrupted(act: Callable[[], None]) -> Iterator[int]:
    """Does `act`, killed before its 1st, 2nd, ... change of the file system, until it comes to its
    end.
    """
    for allowed in range(1000):
        with pytest.MonkeyPatch.context() as patch:
            Disk(allowed, patch)
            try:
                act()
            except Killed:
                killed = True
            else:
                killed = False
        if not killed:
            return
        yield allowed
    raise AssertionError("a thousand changes of the file system for one entry")


def test_an_interruption_at_any_change_of_the_disk_leaves_an_entry_or_none() -> None:
    """Both ways, with whatever earlier interruptions have left lying about."""
    seen = {False: 0, True: 0}
    for _ in interrupted(put):
        seen[whole()] += 1
    assert whole() and seen[False] >= 9, seen
    for _ in interrupted(lambda: store.discard(KEY)):
        seen[whole()] += 1
        put()
        assert whole()
    assert not whole()
    put()
    assert whole()


# ---------------------------------------------------------------- two at once


def _writer(place: Path, meet: Barrier, rounds: int) -> None:
    os.environ["LEAK_ATLAS_STORE"] = str(place)
    for round_ in range(rounds):
        key = f"{round_:064x}"
        meet.wait(60)
        store.write(key, {"round": round_}, ARRAYS, {"pid": os.getpid()})
        store.read(key)  # a write that returned is a result that is there


def test_two_processes_that_write_one_key_both_succeed_and_one_entry_is_there() -> None:
    meet = tiny.SERVER.Barrier(2)
    rounds = 100
    both = [
        tiny.SERVER.Process(target=_writer, args=(paths.store(), meet, rounds)) for _ in range(2)
    ]
    for process in both:
        process.start()
    for process in both:
        process.join(120)
    assert [process.exitcode for process in both] == [0, 0]
    keys = list(store.listing())
    assert len(keys) == rounds
    assert {store.read(key).meta["pid"] for key in keys} <= {process.pid for process in both}
    assert not list((paths.store() / ".partial").iterdir()), "the second is thrown away whole"
