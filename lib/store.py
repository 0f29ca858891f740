"""Content-addressed results: one folder a key, whole or absent, checked by digest when read. numpy, no torch.

    <store>/<key[:2]>/<key>/arrays.safetensors    the arrays
                           /entry.json            recipe, meta, the digest of the arrays

An entry is written beside its place and moved there in one rename, so that existence means completeness. Two processes
that compute the same key do the same work; the second result is thrown away whole.
"""

import hashlib
import json
import os
import shutil
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from lib import BadInput, paths

ARRAYS, ENTRY = "arrays.safetensors", "entry.json"


class Corrupt(Exception):
    """A stored entry does not match its digest, or cannot be read."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"store entry {key[:12]} is corrupt ({why})")
        self.key = key


@dataclass(frozen=True)
class Entry:
    """What is stored under a key."""

    key: str
    record: dict[str, Any]
    meta: dict[str, Any]
    arrays: dict[str, np.ndarray]


def folder(key: str) -> Path:
    return paths.store() / key[:2] / key


def has(key: str) -> bool:
    return (folder(key) / ENTRY).exists()


def write(key: str, record: Mapping[str, Any], arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
    """Stores an entry whole, or leaves nothing; what is there already stays.

    Raises BadInput where the store cannot be written (read-only, full).
    """
    if has(key):
        return
    blob = save({name: np.asarray(array, order="C") for name, array in arrays.items()})
    head = {"key": key, "record": record, "meta": meta, "names": list(arrays)}
    head["sha256"] = hashlib.sha256(blob).hexdigest()
    adopt(key, {ARRAYS: blob, ENTRY: json.dumps(head, indent=1).encode()})


def adopt(key: str, files: Mapping[str, bytes]) -> None:
    """Moves the files of an entry to their place in one rename."""
    partial = paths.store() / ".partial" / f"{key}.{socket.gethostname()}.{os.getpid()}"
    try:
        partial.mkdir(parents=True, exist_ok=True)
        for name, blob in files.items():
            with open(partial / name, "wb") as file:
                file.write(blob)
                file.flush()
                os.fsync(file.fileno())
        folder(key).parent.mkdir(parents=True, exist_ok=True)
        if not has(key):  # what a discard that was cut short left over
            shutil.rmtree(folder(key), ignore_errors=True)
        try:
            partial.rename(folder(key))
        except OSError:
            if not has(key):
                raise
    except OSError as error:
        raise BadInput(f"cannot write to the store {paths.store()}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def files(key: str) -> dict[str, bytes]:
    """The files of an entry as they are, checked.

    Raises KeyError where there is none and Corrupt where it does not match its digest.
    """
    place = folder(key)
    if not place.exists():
        raise KeyError(key)
    try:
        blobs = {name: (place / name).read_bytes() for name in (ARRAYS, ENTRY)}
        head = json.loads(blobs[ENTRY])
    except (OSError, ValueError) as error:
        raise Corrupt(key, f"{type(error).__name__} in {place}") from error
    if head.get("key") != key or head.get("sha256") != hashlib.sha256(blobs[ARRAYS]).hexdigest():
        raise Corrupt(key, f"digest mismatch in {place}")
    return blobs


def read(key: str) -> Entry:
    """The entry of a key; errors as `files`."""
    blobs = files(key)
    head = json.loads(blobs[ENTRY])
    arrays = load(blobs[ARRAYS])  # sorted by name and type; a state dict's own order is the order of the layers
    return Entry(key, head["record"], head["meta"], {name: arrays[name] for name in head["names"]})


def describe(key: str) -> dict[str, Any]:
    """Recipe and meta without the arrays; KeyError, Corrupt as `files`."""
    try:
        return json.loads((folder(key) / ENTRY).read_bytes())
    except FileNotFoundError:
        raise KeyError(key) from None
    except (OSError, ValueError) as error:
        raise Corrupt(key, str(error)) from error


def discard(key: str) -> None:
    """Removes an entry; its head goes first, so that it is never half there."""
    (folder(key) / ENTRY).unlink(missing_ok=True)
    shutil.rmtree(folder(key), ignore_errors=True)


def listing() -> Iterator[str]:
    """All keys in the store."""
    for place in sorted(paths.store().glob("[0-9a-f][0-9a-f]/*")):
        if (place / ENTRY).exists():
            yield place.name


def sweep() -> None:
    """Removes what processes of this machine that no longer live have left unfinished."""
    for place in (paths.store() / ".partial").glob("*"):
        host, pid = place.name.split(".", 1)[1].rsplit(".", 1)
        if host == socket.gethostname() and not Path(f"/proc/{pid}").exists() and Path("/proc/self").exists():
            shutil.rmtree(place, ignore_errors=True)
