"""A disk that is full or read-only: one clear line, no torn entry, what is finished is kept, a
rerun goes on.

Asked of a real file system in memory of one megabyte where this process may mount one, and of
simulated errors of the operating system everywhere.
"""

import errno
import os
import subprocess
from collections.abc import Iterator
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leak_atlas import BadInput, lab
from leak_atlas.__main__ import main
from leak_atlas.engine import paths, store
from leak_atlas.lab import cluster
from tests.faults import narrow, tiny

KEY = "ef" + 62 * "2"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte, seen at a folder of this test; gone afterwards."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(
            f"no small file system: {error} {getattr(error, 'stderr', '')}; errors are simulated instead"
        )
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def remount(place: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", place], check=True)


def fill(place: Path, leave: int) -> Path:
    """Takes all space but `leave` bytes, in whole pages."""
    facts = os.statvfs(place)
    ballast = place / "ballast"
    ballast.write_bytes(bytes(max(facts.f_bavail * facts.f_frsize - leave, 0)))
    return ballast


def no_torn_entry() -> None:
    for key in store.listing():
        store.read(key)
    assert not list((paths.store() / ".partial").glob("*"))


def test_a_full_disk_is_named_and_a_rerun_goes_on(
    disk: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    lab.realize(tiny.asked())
    undisturbed = tiny.fingerprint()
    monkeypatch.setenv("LEAK_ATLAS_STORE", str(disk / "store"))
    fill(disk, 300 * 1024)
    with pytest.raises(
        BadInput, match=r"cannot write to the store .*: No space left on device; .* goes on"
    ) as caught:
        lab.realize(tiny.asked())
    assert "\n" not in str(caught.value)
    assert "Traceback" not in capfd.readouterr().err
    no_torn_entry()
    kept = tiny.fingerprint()
    assert kept
    assert kept.items() < undisturbed.items()
    places = {key: store.folder(key).stat().st_ino for key in kept}
    remount(disk, "size=16m")
    lab.realize(tiny.asked())
    assert tiny.fingerprint() == undisturbed
    assert {key: store.folder(key).stat().st_ino for key in kept} == places
    no_torn_entry()


def test_a_store_that_became_read_only_is_named_and_read(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remount(disk, "size=16m")
    monkeypatch.setenv("LEAK_ATLAS_STORE", str(disk / "store"))
    half = tiny.asked()[-1]
    lab.realize(half)
    before = tiny.fingerprint()
    remount(disk, "ro")
    assert lab.realize(half)[half[0]]["logits"].shape, "what is there is there"
    with pytest.raises(BadInput, match=r"cannot write to the store .*: Read-only file system"):
        lab.realize(tiny.asked())
    with pytest.raises(BadInput, match="Read-only file system"):
        store.discard(half[0].key)
    assert tiny.fingerprint() == before
    remount(disk, "rw")
    lab.realize(tiny.asked())
    assert before.items() < tiny.fingerprint().items()


def test_a_store_that_has_everything_need_not_be_writable(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As one that others fill and all read: a batch writes its pages elsewhere, and trains nothing."""
    remount(disk, "size=64m")
    monkeypatch.setenv("LEAK_ATLAS_STORE", str(disk / "store"))
    lab.realize(tiny.asked())
    remount(disk, "ro")
    tiny.page(tmp_path, monkeypatch)
    assert main(["reproduce", "--profile", "smoke", "--workers", "1"]) == 0
    output = capfd.readouterr().out
    assert "nothing to compute" in output
    assert "1 of 1 notebooks executed" in output


@pytest.mark.parametrize("workers", [1, 2])
def test_the_first_refusal_of_the_disk_ends_a_run(
    workers: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What comes after it would only be trained to be thrown away."""
    monkeypatch.setenv("LEAK_ATLAS_PROGRESS", "log")  # another test may have loaded ipykernel
    monkeypatch.setattr("leak_atlas.lab.run.ENOUGH", 0.0)
    forkserver._forkserver._stop()
    with monkeypatch.context() as patch:
        patch.setattr(cluster, "PRELOAD", [*cluster.PRELOAD, "tests.faults.narrowed"])
        narrow.narrowed(patch.setattr)
        with pytest.raises(BadInput, match=r"cannot write to the store .*Disk quota exceeded"):
            lab.realize(tiny.asked(), workers=workers)
    forkserver._forkserver._stop()
    assert not capfd.readouterr().err
    begun = len((paths.store() / "begun").read_text().split())
    kept = len(list(store.listing()))
    assert narrow.ROOM <= kept <= 2 * begun, "a job stores two entries at most"
    assert begun <= kept + 2 * workers, "nothing is begun once the disk has refused"
    for key in store.listing():
        store.read(key)
    lab.realize(tiny.asked(), workers=workers)


@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EACCES, errno.EIO]
)
@pytest.mark.parametrize("call", ["mkdir", "write", "rename"])
def test_every_refusal_of_the_disk_is_one_line_and_no_entry(
    call: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    paths.store().mkdir(parents=True)
    with monkeypatch.context() as patch:
        if call == "write":
            patch.setattr(Path, "write_bytes", refuse)
        else:
            patch.setattr(os, call, refuse)
        with pytest.raises(
            BadInput, match=f"cannot write to the store .*: {os.strerror(number)}"
        ) as caught:
            store.write(KEY, {}, {"x": np.zeros(3)}, {})
    assert "\n" not in str(caught.value)
    assert not store.has(KEY)
    no_torn_entry()
    store.write(KEY, {}, {"x": np.zeros(3)}, {})
    assert store.has(KEY)
