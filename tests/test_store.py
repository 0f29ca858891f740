import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from leak_atlas import BadInput
from leak_atlas.engine import paths, store

KEY = "ab" + 62 * "0"
ARRAYS = {
    "x": np.arange(6, dtype=np.float32).reshape(2, 3),
    "flag": np.asarray([True, False]),
    "n": np.asarray(3),
}


def put(key: str = KEY) -> None:
    store.write(key, {"kind": "Test", "n": 1}, ARRAYS, {"seconds": 1.0})


def test_what_is_written_is_read() -> None:
    assert not store.has(KEY)
    put()
    entry = store.read(KEY)
    assert entry.record == {"kind": "Test", "n": 1}
    for name, array in ARRAYS.items():
        assert np.array_equal(entry.arrays[name], array) and entry.arrays[name].dtype == array.dtype
    assert list(entry.arrays) == list(ARRAYS), (
        "the order of a state dict is the order of its layers"
    )
    assert list(store.listing()) == [KEY]
    assert store.describe(KEY)["meta"] == {"seconds": 1.0}


def test_an_entry_that_is_there_stays() -> None:
    put()
    store.write(KEY, {"kind": "Test", "n": 2}, {"x": np.zeros(1)}, {})
    assert store.read(KEY).record["n"] == 1
    assert not list((paths.store() / ".partial").iterdir())


def test_what_a_killed_writer_leaves_is_no_entry_and_is_swept() -> None:
    """A process is killed between writing the files and moving them: the store has nothing, the
    next run cleans up.
    """
    script = textwrap.dedent(f"""
        import os, signal
        from pathlib import Path
        import numpy as np
        from leak_atlas.engine import store
        Path.rename = lambda self, to: os.kill(os.getpid(), signal.SIGKILL)
        store.write("{KEY}", {{}}, {{"x": np.zeros(3)}}, {{}})
    """)
    subprocess.run([sys.executable, "-c", script], env=dict(os.environ), check=False, timeout=60)
    assert not store.has(KEY)
    assert list((paths.store() / ".partial").iterdir())
    store.sweep()
    assert not list((paths.store() / ".partial").iterdir())
    put()
    assert store.has(KEY)


def test_a_read_only_store_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        monkeypatch.setattr(
            Path, "rename", lambda *_: (_ for _ in ()).throw(OSError(30, "Read-only file system"))
        )
    else:
        paths.store().mkdir(parents=True)
        paths.store().chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(BadInput, match="cannot write"):
        put()
    assert not store.has(KEY)


def test_an_entry_leaves_whole_and_the_listing_is_sorted() -> None:
    keys = [f"{place:02x}" + 62 * "0" for place in (200, 3, 77)]
    for key in keys:
        put(key)
    assert list(store.listing()) == sorted(keys)
    store.discard(keys[0])
    store.discard(keys[0])
    assert list(store.listing()) == sorted(keys[1:])
    assert not store.folder(keys[0]).exists() and not list((paths.store() / ".partial").iterdir())
