import numpy as np

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
        assert np.array_equal(entry.arrays[name], array)
        assert entry.arrays[name].dtype == array.dtype
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


def test_an_entry_leaves_whole_and_the_listing_is_sorted() -> None:
    keys = [f"{place:02x}" + 62 * "0" for place in (200, 3, 77)]
    for key in keys:
        put(key)
    assert list(store.listing()) == sorted(keys)
    store.discard(keys[0])
    store.discard(keys[0])
    assert list(store.listing()) == sorted(keys[1:])
    assert not store.folder(keys[0]).exists()
    assert not list((paths.store() / ".partial").iterdir())
