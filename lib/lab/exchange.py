"""Plans for another machine, and the results that it sends back, as files. Both are checked before they are used."""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lib import BadInput, files, store
from lib.recipe import Step, load
from lib.recipe.core import KINDS, digest

if TYPE_CHECKING:
    from lib.lab.plans import Plan

PLAN = 2**30  # bytes of the largest plan
MANIFEST = "manifest.json"  # the first file of a part
LARGEST = {store.ARRAYS: 2**30, store.ENTRY: 2**24}  # bytes of the files of one result


@dataclass(frozen=True)
class PlanFile:
    """A flat table of recipes, in which parents stand as keys, and which of them are wanted."""

    format: Literal[1]
    wanted: list[str]
    recipes: dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Manifest:
    """What follows in a part: by key the files of each result, with their sizes in bytes."""

    format: Literal[1]
    entries: dict[str, dict[str, int]]


def dump(asked: Plan) -> dict[str, Any]:
    """A plan as JSON: recipes by key, and what each job has to yield.

    Attacks and self-audits stay at home: they are cheap (an attack net takes a second), and need more than torch.
    """
    table: dict[str, Any] = {}

    def put(step: Step) -> None:
        if step.key not in table:
            table[step.key] = step.record()
            for parent in Step.parents(step):  # what its record names, whatever of it has to be there first
                put(parent)

    wanted = [step for job in asked.jobs.values() if job.step.travels for step in job.yields]
    for step in wanted:
        put(step)
    return asdict(PlanFile(1, [step.key for step in wanted], table))


def undump(text: str, name: object = "the plan") -> list[Step]:
    """The steps of a plan file; BadInput where it is not one, or was made by another version of lib."""
    plan: PlanFile = files.from_json(text, name, PlanFile)
    made: dict[str, Step] = {}

    def step(key: str) -> Step:
        if key not in made:
            recipe = load(plan.recipes[key], step)
            if not isinstance(recipe, Step) or recipe.key != key:
                raise BadInput(f"recipe {key[:12]} of {name} has another key here: plan and lib differ in version")
            made[key] = recipe
        return made[key]

    try:
        return [step(key) for key in plan.wanted]
    except BadInput:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise BadInput(f"{name} holds a recipe that cannot be read: {type(error).__name__}: {error}") from error


def pack(keys: Iterable[str], folder: Path, megabytes: float) -> int:
    """Results as tar files of at most `megabytes` (2^20 bytes), larger where one result is.

    Each begins with its `Manifest`. Returns the number of parts. BadInput where the folder does not take them.
    """
    parts: list[dict[str, dict[str, int]]] = []
    size = float("inf")
    for key in keys:
        sizes = {name: (store.folder(key) / name).stat().st_size for name in LARGEST}
        if size + sum(sizes.values()) > megabytes * 2**20:
            parts, size = [*parts, {}], 0
        parts[-1][key] = sizes
        size += sum(sizes.values())
    files.folder(folder, "--pack names another folder")
    for old in folder.glob("part-*.tar"):
        old.unlink()
    for number, entries in enumerate(parts):
        path = folder / f"part-{number:03d}.tar"
        manifest = {MANIFEST: json.dumps(asdict(Manifest(1, entries))).encode()}
        try:
            with tarfile.open(path, "w") as tar:
                for place, blobs in chain([("", manifest)], ((f"{key}/", store.files(key)) for key in entries)):
                    for name, blob in blobs.items():
                        info = tarfile.TarInfo(place + name)
                        info.size = len(blob)
                        tar.addfile(info, io.BytesIO(blob))
        except OSError as error:
            path.unlink(missing_ok=True)
            raise BadInput(f"cannot write {path}: {error.strerror or error}; what is finished is kept") from error
    return len(parts)


def unpack(path: Path) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Key and files of each result in a part, checked one by one; nothing is written.

    BadInput, which names the part, where anything in it is not what `pack` writes: a link, another name or size than
    the manifest says, a result without a seal, one whose recipe does not have its key.
    """
    try:
        with tarfile.open(files.regular(path), "r:") as tar:  # not compressed: no larger than the file, unpacked
            raw = _member(tar, MANIFEST, files.LARGEST)
            manifest: Manifest = files.from_json(raw, f"{path}: {MANIFEST}", Manifest)
            for key, sizes in manifest.entries.items():
                if not re.fullmatch("[0-9a-f]{64}", key) or sizes.keys() != LARGEST.keys():
                    raise BadInput(f"'{key}' is no result")
                if over := [name for name, size in sizes.items() if size > LARGEST[name]]:
                    raise BadInput(f"{over[0]} of {key[:12]} is larger than {LARGEST[over[0]] >> 20} MB")
                found = {name: _member(tar, f"{key}/{name}", size) for name, size in sizes.items()}
                if {name: len(blob) for name, blob in found.items()} != sizes:
                    raise BadInput(f"files of {key[:12]} have other sizes than the manifest says")
                _recognize(key, store.checked(key, found))
                yield key, found
            if more := tar.next():
                raise BadInput(f"'{more.name}' is not in the manifest")
    except (BadInput, OSError, ValueError, tarfile.TarError, RecursionError, store.Corrupt) as error:
        why = getattr(error, "strerror", None) or error
        raise BadInput(f"cannot take {path}: {why}; pack this part again and bring it") from error


def _member(tar: tarfile.TarFile, name: str, largest: int) -> bytes:
    """The next file of an archive, which has to be `name`."""
    member = tar.next()
    if member is None or member.name != name:
        raise BadInput(f"{'it ends' if member is None else repr(member.name)} where '{name}' should be")
    file = tar.extractfile(member) if member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) else None
    if file is None or member.sparse is not None or member.size > largest:
        raise BadInput(f"'{name}' is no plain file of at most {largest} bytes")
    return file.read()


def _recognize(key: str, entry: store.Entry) -> None:
    """BadInput where this is not the sealed result of a step that has this key."""
    kind = KINDS.get(str(entry.record.get("kind")))
    if kind is None or not issubclass(kind, Step) or entry.record.get("revision", 1) != kind.revision:
        raise BadInput(f"{key[:12]} is of a kind that this version of lib does not know")
    if not entry.sealed:
        raise BadInput(f"{key[:12]} has no seal")
    if digest(entry.record) != key:
        raise BadInput(f"{key[:12]} is not the key of its recipe")
