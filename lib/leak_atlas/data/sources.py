"""The source files of a data set: found in the user's folder or fetched, checked by digest,
unpacked into a folder.
"""

import contextlib
import csv
import gzip
import hashlib
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leak_atlas import BadInput, NothingKept, reason, typed
from leak_atlas.engine import paths
from leak_atlas.engine.files import require_file
from leak_atlas.recipe import registry
from leak_atlas.recipe.registry import Entry, File

__all__ = ["bring", "check", "files", "find", "how", "npz", "placed", "reading"]

# What a missing or damaged file makes readers raise.
UNREADABLE = (OSError, ValueError, TypeError, KeyError, EOFError, zlib.error, csv.Error)


def _origin(entry: Entry) -> Entry:
    """The set whose files are needed: of a part, the larger set."""
    return registry.find(entry.part_of) if entry.part_of else entry


def bring(entry: Entry) -> str:
    """Which files of one's own to put where, as the end of a sentence."""
    entry = _origin(entry)
    if entry.archive:
        what = f"{entry.archive.name} or its folder {entry.folders[0]}"
    else:
        what = ", ".join(file.name for file in entry.files)
    return f"put {what} into {paths.data() / entry.name}"


def how(entry: Entry) -> str:
    """How to get a data set, as the end of a sentence."""
    command = typed(f"leak-atlas data get {entry.name}")
    origin = _origin(entry)
    needed = origin.downloads or origin.files
    if all(file.url for file in needed):
        return f"get it with `{command}`, or first {bring(entry)}"
    return f"{bring(entry)}, then run `{command}`"


def find(entry: Entry, scratch: Path) -> Path:
    """The folder with the files of a set: the user's own, or below `scratch`, where archives and
    downloads go.

    An archive is checked before it is unpacked. Only the user's unpacked folder of an archive whose
    files have no digests of their own goes unchecked, and that is said.
    """
    home = paths.data() / entry.name
    archive = entry.archive
    if archive and (home / archive.name).is_file():
        return _unpacked(entry, archive, home, scratch)
    for name in entry.folders:
        folder = home / name
        if entry.files[0] != archive:
            if all(placed(folder, file).is_file() for file in entry.files):
                return folder
        elif folder.is_dir() and any(folder.iterdir()):
            print(f"{folder} has no known digest: its content is not checked", file=sys.stderr)
            return folder
    _fetch(entry, scratch)
    return _unpacked(entry, archive, scratch, scratch) if archive else scratch


def _fetch(entry: Entry, into: Path) -> None:
    """Downloads the files of a set, with a progress bar. Raises BadInput if that is not possible.

    An interrupt raises NothingKept.
    """
    wanted = entry.downloads or entry.files
    if not all(file.url for file in wanted):
        raise BadInput(f"{entry.name} cannot be downloaded; {bring(entry)}")
    import pooch

    store = pooch.create(
        into,
        base_url="",
        registry={file.name: f"md5:{file.digest}" for file in wanted},
        urls={file.name: file.url for file in wanted},
        retry_if_failed=2,
    )
    print(f"{entry.name} is fetched from the network: {entry.source}", file=sys.stderr, flush=True)
    try:
        for file in wanted:
            store.fetch(file.name, progressbar=True)
    except KeyboardInterrupt as stop:
        raise NothingKept("the download was interrupted; the same command starts it anew") from stop
    except (OSError, ValueError) as error:  # ValueError: another digest
        raise BadInput(
            f"{entry.name} could not be downloaded ({reason(error)}); {bring(entry)}"
        ) from error


def _unpacked(entry: Entry, archive: File, at: Path, scratch: Path) -> Path:
    """The folder that is in the archive below `at`, unpacked below `scratch`."""
    import pooch

    path = at / archive.name
    check(entry, path, archive.digest, path.read_bytes())

    into = scratch / "unpacked"
    kind = pooch.Unzip if archive.name.endswith(".zip") else pooch.Untar
    unpack = kind(extract_dir=str(into))
    unpack(str(path), "download", None)
    folder = into / entry.folders[0]
    return folder if folder.is_dir() else into  # CINIC-10's archive has no folder


def check(entry: Entry, file: Path | str, expected: str, content: bytes | memoryview) -> None:
    """Raises BadInput if the content of a file has another digest than the expected one."""
    algorithm = "sha256" if entry.embedded else "md5"
    digest = hashlib.new(algorithm, content).hexdigest()
    if digest != expected:
        raise BadInput(
            f"{entry.name}: the {algorithm.upper()} of {file} is {digest}, expected {expected}; "
            f"{again(entry)}"
        )


def again(entry: Entry) -> str:
    """What to do about damaged source files, as the end of a sentence."""
    from_package = entry.embedded or entry.part_of  # of a part, the list of its samples
    return "reinstall the package" if from_package else "remove it and get it again"


def files(entry: Entry, source: Path) -> list[bytes]:
    """The contents of `entry.files`, in their order, each with its pinned digest; a file may be
    there as .gz.
    """
    contents = []
    for file in entry.files:
        path = placed(source, file)
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            content = stream.read()
        check(entry, path, file.digest, content)
        contents.append(content)
    return contents


def placed(folder: Path, file: File) -> Path:
    """Where a file of a set lies in a folder, as it is or as .gz."""
    plain = folder / file.name
    packed = folder / f"{file.name}.gz"
    if packed.is_file() and not plain.exists():
        return packed
    return plain


@contextlib.contextmanager
def reading(what: object, remedy: str) -> Iterator[None]:
    """Raises BadInput, which names `what` is read inside, if a file is missing or damaged."""
    try:
        yield
    except BadInput:
        raise
    except UNREADABLE as error:
        raise BadInput(f"{what} cannot be read ({reason(error)}); {remedy}") from error


def npz(path: Path) -> dict[str, NDArray]:
    """The arrays of an .npz by name, of which none is unpickled. Raises BadInput, which names the
    file.
    """
    require_file(path)
    arrays = {}
    name = ""
    is_zip = True  # an error before the first read says nothing of the form
    try:
        with path.open("rb") as file:
            is_zip = file.read(2) == b"PK"
            file.seek(0)
            with np.load(file, allow_pickle=False) as packed:
                for name in packed.files:
                    arrays[name] = np.asarray(packed[name])
    except Exception as error:  # a damaged file fails anywhere in numpy's reader
        if "Object arrays" in str(error):
            why = f": {name} holds Python objects; save numbers, or names by .astype(str)"
        elif is_zip:
            damage = reason(error)
            why = f" is no .npz, or is damaged ({damage}); numpy.savez_compressed makes one"
        else:  # numpy takes it for a pickle, and advises to allow that
            why = " is no .npz; numpy.savez_compressed makes one"
        raise BadInput(f"{path}{why}") from error
    return arrays
