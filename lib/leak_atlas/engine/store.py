"""Content-addressed results: one folder a key, whole or absent, checked by digest when read.

    <store>/<key[:2]>/<key>/arrays.safetensors    the arrays
                           /entry.json            recipe, meta, digest of the arrays, own digest

An entry is written next to its place and moved there in one rename, and leaves it in one rename, so
that existence means completeness whatever is killed when. Two processes that compute the same key
do the same work; the second result is thrown away whole. Every bit of both files is under a digest.
A machine that loses its power may tear an entry, which its digests tell when it is read, and it is
computed again.
"""

import errno
import hashlib
import json
import os
import shutil
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from leak_atlas import BadInput, one_line
from leak_atlas.engine import paths

ARRAYS, ENTRY = "arrays.safetensors", "entry.json"
BLANK = 64 * "0"  # stands for the seal while the seal is computed
# errors that mean a damaged entry; any other means a problem of the machine
TORN = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


class Corrupt(Exception):
    """A stored entry does not match its digest, or cannot be read."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(one_line(f"store entry {key[:12]} is corrupt ({why})"))
        self.key = key


class Gone(KeyError):
    """There is no entry of this key, or no longer: who found it corrupt has forgotten it."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return f"store entry {self.key[:12]} is gone"


class Refused(BadInput):
    """The disk does not take what is to be written to the store: it is full, read-only, or not
    ours."""


def _refused(error: OSError) -> Refused:
    return Refused(f"cannot write to the store {paths.store()}: {error.strerror or error}")


@dataclass(frozen=True)
class Entry:
    """What is stored under a key."""

    key: str
    record: dict[str, Any]
    meta: dict[str, Any]
    arrays: dict[str, NDArray]


def folder(key: str) -> Path:
    return paths.store() / key[:2] / key


def has(key: str) -> bool:
    return os.path.exists(f"{paths.store()}/{key[:2]}/{key}/{ENTRY}")


def write(
    key: str, record: Mapping[str, Any], arrays: Mapping[str, NDArray], meta: Mapping[str, Any]
) -> None:
    """Stores an entry whole, or leaves nothing; what is there already stays.

    Raises Refused where the store cannot be written (read-only, full).
    """
    if has(key):
        return
    blob = save({name: np.asarray(array, order="C") for name, array in arrays.items()})
    head = {"key": key, "record": record, "meta": meta, "names": list(arrays)}
    # the seal is the SHA-256 of this text with zeros in its place
    head |= {"sha256": hashlib.sha256(blob).hexdigest(), "seal": BLANK}
    unsealed = json.dumps(head, indent=1)
    seal = hashlib.sha256(unsealed.encode()).hexdigest()
    sealed = seal.join(unsealed.rsplit(BLANK, 1)).encode()
    _place(key, {ARRAYS: blob, ENTRY: sealed})


def _place(key: str, files: Mapping[str, bytes]) -> None:
    """Moves the files of an entry to their place in one rename."""
    partial = _aside(key)
    try:
        partial.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (partial / name).write_bytes(content)
        folder(key).parent.mkdir(parents=True, exist_ok=True)
        try:
            partial.rename(folder(key))
        except OSError:
            if has(key):
                return
            if not folder(key).exists():
                raise
            discard(key)  # what something outside this room has left of an entry
            partial.rename(folder(key))
    except OSError as error:
        raise _refused(error) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _aside(key: str) -> Path:
    """Where this thread, and nobody else, keeps an entry that is on its way in or out."""
    owner = f"{socket.gethostname()}.{os.getpid()}-{threading.get_ident()}"
    return paths.store() / ".partial" / f"{key}.{owner}"


def read(key: str) -> Entry:
    """The entry of a key.

    Raises Gone where there is none and Corrupt where it does not match its digests.
    """
    blob = _bytes(key, ARRAYS)
    head = _head(key, _bytes(key, ENTRY))
    if head["sha256"] != hashlib.sha256(blob).hexdigest():
        raise Corrupt(key, f"digest mismatch in {folder(key)}")
    try:
        arrays = load(blob)  # sorted by name and type; a state dict's order is that of its layers
        ordered = {name: arrays[name] for name in head["names"]}
    except (SafetensorError, KeyError) as error:
        raise Corrupt(key, f"{error} in {folder(key)}") from error
    return Entry(key, head["record"], head["meta"], ordered)


def describe(key: str) -> dict[str, Any]:
    """Recipe and meta without the arrays; errors as `read`."""
    return _head(key, _bytes(key, ENTRY))


def _bytes(key: str, name: str) -> bytes:
    try:
        return (folder(key) / name).read_bytes()
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not has(key):
            raise Gone(key) from None
        if isinstance(error, TORN) or error.errno == errno.EIO:
            raise Corrupt(key, f"{type(error).__name__} in {folder(key)}") from error
        # Too many open files, no memory, a share that is away: the entry is not to blame.
        why = f"cannot read the store {paths.store()}: {error.strerror or error}"
        raise BadInput(why) from error


def _head(key: str, text: bytes) -> dict[str, Any]:
    """What stands in the JSON file of an entry; Corrupt where its seal is broken."""
    try:
        head: dict[str, Any] = json.loads(text)
        before, after = text.rsplit(head["seal"].encode(), 1)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise Corrupt(key, f"{error} in {folder(key)}") from error
    unsealed = before + BLANK.encode() + after
    if head.get("key") != key or hashlib.sha256(unsealed).hexdigest() != head["seal"]:
        raise Corrupt(key, f"digest mismatch in {folder(key) / ENTRY}")
    return head


def discard(key: str) -> None:
    """Removes an entry, whole: it leaves its place in one rename. Raises BadInput if the store
    cannot be written.
    """
    out = _aside(f"{key}-out")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        folder(key).rename(out)
    except FileNotFoundError:
        return
    except OSError:  # no room for a name aside: its head goes first, so that it is never half there
        try:
            (folder(key) / ENTRY).unlink(missing_ok=True)
        except OSError as error:
            raise _refused(error) from error
        shutil.rmtree(folder(key), ignore_errors=True)
    shutil.rmtree(out, ignore_errors=True)


def listing() -> Iterator[str]:
    """All keys in the store, sorted."""
    for head in sorted(glob(f"??/*/{ENTRY}", root_dir=paths.store())):
        yield head.split(os.sep)[1]


def sweep() -> None:
    """Removes what processes of this machine that no longer live have left unfinished."""
    for place in (paths.store() / ".partial").glob(f"*.{socket.gethostname()}.*"):
        process = int(place.name.rpartition(".")[2].partition("-")[0])
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            shutil.rmtree(place, ignore_errors=True)
        except PermissionError:  # somebody else's, who lives
            continue
