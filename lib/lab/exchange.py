"""Plans for another machine, and the results that it sends back, as files. Both are checked before they are used."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from lib import BadInput, files, store
from lib.lab.plans import Plan, behind
from lib.recipe import Step, load
from lib.recipe.core import KINDS, digest

PLAN = 2**30  # bytes of the largest plan
LARGEST = {store.ARRAYS: 2**30, store.ENTRY: 2**24}  # bytes of the files of one result


@dataclass(frozen=True)
class PlanFile:
    """A flat table of recipes, in which parents stand as keys, and which of them are wanted."""

    format: Literal[1]
    wanted: list[str]
    recipes: dict[str, dict[str, Any]]


def dump(asked: Plan) -> dict[str, Any]:
    """A plan as JSON: recipes by key, and what each job has to yield.

    Attacks and self-audits stay at home: they are cheap (an attack net takes a second), and need more than torch.
    """
    wanted = [step for job in asked.jobs.values() if job.step.travels for step in job.yields]
    named = behind(wanted, Step.parents)  # what records name, whatever of it has to be there first
    return asdict(PlanFile(1, [step.key for step in wanted], {step.key: step.record() for step in named}))


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
    """Results as zip files of at most `megabytes` (2^20 bytes), larger where one result is.

    Returns the number of parts. BadInput where the folder does not take them, and where results are corrupt: these are
    forgotten, and the parts that are there stay as they are.
    """
    parts: list[list[str]] = []
    corrupt: list[store.Corrupt] = []
    size = float("inf")
    for key in keys:
        try:
            own = sum(map(len, store.files(key).values()))
        except store.Corrupt as error:
            store.discard(key)
            corrupt.append(error)
            continue
        if size + own > megabytes * 2**20:
            parts, size = [*parts, []], 0
        parts[-1].append(key)
        size += own
    if corrupt:
        more = f" and {len(corrupt) - 1} more" * (len(corrupt) > 1)
        raise BadInput(f"{corrupt[0]}{more}: forgotten; run the same command again")
    files.folder(folder, "--pack names another folder")
    for old in folder.glob("part-*.zip"):
        old.unlink()
    for number, part in enumerate(parts):
        path = folder / f"part-{number:03d}.zip"
        try:
            with ZipFile(path, "w") as packed:
                for key in part:
                    for name, blob in store.files(key).items():
                        packed.writestr(f"{key}/{name}", blob)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise BadInput(f"cannot write {path}: {error.strerror or error}; what is finished is kept") from error
    return len(parts)


def unpack(path: Path) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Key and files of each result in a part, checked one by one; nothing is written.

    BadInput, which names the part, where anything in it is not what `pack` writes: another file, a compressed or large
    one, half a result, a result without a seal, one whose recipe does not have its key.
    """
    found: dict[str, dict[str, ZipInfo]] = {}
    try:
        with ZipFile(files.regular(path)) as packed:
            for member in packed.infolist():
                key, _, name = member.filename.partition("/")
                if not re.fullmatch("[0-9a-f]{64}", key) or name not in LARGEST or name in found.get(key, ()):
                    raise BadInput(f"'{member.filename}' is no file of a result")
                stored = (member.compress_type, member.compress_size) == (ZIP_STORED, member.file_size)
                if not stored or member.file_size > LARGEST[name]:
                    raise BadInput(f"{name} of {key[:12]} is compressed, or larger than {LARGEST[name] >> 20} MB")
                found.setdefault(key, {})[name] = member
            for key, own in found.items():
                if own.keys() != LARGEST.keys():
                    raise BadInput(f"{key[:12]} is half a result")
                blobs = {name: packed.read(member) for name, member in own.items()}
                _recognize(key, store.checked(key, blobs))
                yield key, blobs
    except Exception as error:  # a reader may raise anything on what was made to break it
        why = getattr(error, "strerror", None) or error
        raise BadInput(f"cannot take {path}: {why}; pack this part again and bring it") from error


def _recognize(key: str, entry: store.Entry) -> None:
    """BadInput where this is not the sealed result of a step that has this key."""
    kind = KINDS.get(str(entry.record.get("kind")))
    if kind is None or not issubclass(kind, Step) or entry.record.get("revision", 1) != kind.revision:
        raise BadInput(f"{key[:12]} is of a kind that this version of lib does not know")
    if not entry.sealed:
        raise BadInput(f"{key[:12]} has no seal")
    if digest(entry.record) != key:
        raise BadInput(f"{key[:12]} is not the key of its recipe")
