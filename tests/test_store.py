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


def test_a_listing_by_kind_is_what_all_heads_would_say() -> None:
    kinds = ["Train", "Signals", "Train", "Attack", "Trains"]
    for number, kind in enumerate(kinds):
        store.write(f"{number}{KEY[1:]}", {"kind": kind, "of": {"step": KEY}}, {}, {})
    for kind in {*kinds, "Trai"}:
        every = [key for key in store.listing() if store.describe(key)["record"]["kind"] == kind]
        assert list(store.listing(kind)) == every and len(every) == kinds.count(kind)


def test_an_entry_that_is_there_stays() -> None:
    put()
    store.write(KEY, {"kind": "Test", "n": 2}, {"x": np.zeros(1)}, {})
    assert store.read(KEY).record["n"] == 1
    assert not list((paths.store() / ".partial").iterdir())


@pytest.mark.parametrize("name", [store.ARRAYS, store.ENTRY])
def test_a_flipped_bit_is_noticed(name: str) -> None:
    put()
    path = store.folder(KEY) / name
    blob = bytearray(path.read_bytes())
    blob[len(blob) // 2] ^= 1
    path.write_bytes(bytes(blob))
    with pytest.raises(store.Corrupt, match=KEY[:12]):
        store.read(KEY)
    store.discard(KEY)
    assert not store.has(KEY)
    put()
    assert store.read(KEY).record["n"] == 1


def test_a_missing_key_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        store.read(KEY)
    with pytest.raises(KeyError):
        store.describe(KEY)


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


def test_a_store_that_cannot_be_written_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    monkeypatch.setenv("LEAK_ATLAS_STORE", str(file / "store"))
    with pytest.raises(BadInput, match="cannot write to the store"):
        put()


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


def test_what_other_machines_left_goes_after_a_week() -> None:
    """Whether they still live cannot be seen from here."""
    put()
    left = paths.store() / ".partial" / f"{KEY}.elsewhere.example.org.17-1"
    left.mkdir()
    store.sweep()
    assert left.exists()
    os.utime(left, (0, 0))
    store.sweep()
    assert not left.exists()
