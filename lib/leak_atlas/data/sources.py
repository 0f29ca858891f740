"""The source files of a data set: found in the user's folder or fetched, checked by digest,
unpacked into a folder.
"""

import contextlib
import gzip
import hashlib
import sys
import zipfile
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np

from leak_atlas import BadInput, reason, typed
from leak_atlas.engine import paths
from leak_atlas.engine.files import regular
from leak_atlas.recipe.registry import Entry, File

__all__ = ["bring", "check", "files", "find", "how", "inside", "npz", "placed", "reading"]

UNPACKED = 2**36  # bytes that an .npz unpacks to
UNREADABLE = (OSError, ValueError, TypeError, EOFError, MemoryError, RuntimeError, zlib.error)
LIMIT = 2**30  # bytes of one file; the largest that is known, SVHN's train part, holds 182 million


def bring(entry: Entry) -> str:
    """Which files of one's own to put where, as the end of a sentence."""
    several = ", ".join(file.name for file in entry.files)
    what = f"{entry.archive.name} or its folder {entry.folders[0]}" if entry.archive else several
    return f"put {what} into {paths.data() / entry.name}"


def how(entry: Entry) -> str:
    """How to get a data set, as the end of a sentence."""
    get = f"`{typed(f'leak-atlas data get {entry.name}')}`"
    fetched = all(file.url for file in entry.downloads or entry.files)
    return (
        f"get it with {get}, or first {bring(entry)}"
        if fetched
        else f"{bring(entry)}, then run {get}"
    )


def find(entry: Entry, scratch: Path) -> Path:
    """The folder with the files of a set: the user's own, or below `scratch`, where archives and
    downloads go.

    An archive is checked before it is unpacked. Only the user's unpacked folder of an archive whose
    files have no digests of their own goes unchecked, and that is said.
    """
    home = paths.data() / entry.name
    if entry.archive and (home / entry.archive.name).is_file():
        return _unpacked(entry, entry.archive, home, scratch)
    alone = entry.files[0] == entry.archive
    for place in (home / folder for folder in entry.folders):
        if alone and place.is_dir() and inside(place):
            print(
                f"{place} has no known digest: form and numbers are checked, content not",
                file=sys.stderr,
            )
            return place
        if not alone and all(placed(place, file).is_file() for file in entry.files):
            return place
    _fetch(entry, scratch)
    return _unpacked(entry, entry.archive, scratch, scratch) if entry.archive else scratch


def _fetch(entry: Entry, into: Path) -> None:
    wanted = entry.downloads or entry.files
    if not all(file.url for file in wanted):
        raise BadInput(f"{entry.name} cannot be downloaded; {bring(entry)}")
    import pooch

    hashes = {file.name: f"md5:{file.digest}" for file in wanted}
    urls = {file.name: file.url for file in wanted}
    store = pooch.create(into, base_url="", registry=hashes, urls=urls, retry_if_failed=2)
    print(f"{entry.name} is fetched from the network: {entry.source}", file=sys.stderr, flush=True)
    try:
        for name in hashes:
            store.fetch(name, progressbar=True)
    except (OSError, ValueError) as error:  # a ValueError where the digest is another
        raise BadInput(
            f"{entry.name} could not be downloaded ({reason(error)}); {bring(entry)}"
        ) from error


def _unpacked(entry: Entry, archive: File, at: Path, scratch: Path) -> Path:
    import pooch

    with (at / archive.name).open("rb") as file:
        check(entry, archive.name, hashlib.file_digest(file, "md5").hexdigest(), archive.digest)
    unpack = pooch.Unzip if archive.name.endswith(".zip") else pooch.Untar
    unpack(extract_dir=str(scratch / "unpacked"))(str(at / archive.name), "download", None)
    folder = scratch / "unpacked" / entry.folders[0]
    return folder if folder.is_dir() else scratch / "unpacked"  # CINIC-10's archive has no folder


def check(entry: Entry, name: str, digest: str, expected: str) -> None:
    """BadInput where a digest is not the pinned one."""
    if digest != expected:
        kind = "SHA-256" if entry.embedded else "MD5"
        raise BadInput(
            f"{entry.name}: the {kind} of {name} is {digest}, expected {expected}; {_again(entry)}"
        )


def _again(entry: Entry) -> str:
    return "reinstall the package" if entry.embedded else "remove it and get it again"


def files(entry: Entry, source: Path) -> list[bytes]:
    """The contents of `entry.files`, in their order, each with its pinned digest; a file may be
    there as .gz.
    """
    contents = []
    for file in entry.files:
        path = placed(source, file)
        opens = gzip.open if path.suffix == ".gz" else open
        with reading(entry, path, _again(entry)), opens(path, "rb") as stream:
            contents.append(stream.read(LIMIT))
        kind = "sha256" if entry.embedded else "md5"
        check(entry, file.name, hashlib.new(kind, contents[-1]).hexdigest(), file.digest)
    return contents


@contextlib.contextmanager
def reading(entry: Entry, path: Path, remedy: str) -> Iterator[None]:
    """BadInput, which names set and file, where the file cannot be read inside."""
    try:
        yield
    except UNREADABLE as error:
        raise BadInput(
            f"{entry.name}: {path} cannot be read ({reason(error)}); {remedy}"
        ) from error


def npz(path: Path, wanted: Collection[str] = ()) -> dict[str, np.ndarray]:
    """The arrays of an .npz by name, of which none is unpickled. BadInput, which names the file.

    Where names are `wanted`, all other arrays are empty.
    """
    try:
        with zipfile.ZipFile(regular(path)) as packed:
            size = sum(file.file_size for file in packed.infolist())
        if size > UNPACKED:
            raise BadInput(f"{path} unpacks to {size:,} bytes; {UNPACKED:,} are the most")
        with np.load(path, allow_pickle=False) as packed:
            arrays = dict.fromkeys(packed.files, np.empty(0))
            arrays |= {name: packed[name] for name in arrays if not wanted or name in wanted}
    except zipfile.BadZipFile as error:
        raise BadInput(f"{path} is no .npz; numpy.savez_compressed makes one") from error
    except UNREADABLE as error:
        objects = "allow_pickle" in str(error)
        remedy = "; write Python objects as text or numbers: a.astype(str)" if objects else ""
        raise BadInput(f"{path} cannot be read ({reason(error)}){remedy}") from error
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise BadInput(f"{path}: {name} is no array of numpy")
    return arrays


def placed(folder: Path, file: File) -> Path:
    """Where a file of a set lies in a folder, as it is or as .gz."""
    packed = folder / f"{file.name}.gz"
    return packed if packed.is_file() and not (folder / file.name).exists() else folder / file.name


def inside(folder: Path) -> list[Path]:
    """All files below a folder, in the order of text; BadInput for a link that leaves it."""
    below = sorted(folder.rglob("*"), key=Path.as_posix)
    for path in below:
        if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
            raise BadInput(f"{path} is a link that leaves {folder}; put the file itself there")
    return [path for path in below if path.is_file()]
