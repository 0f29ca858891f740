"""What is known of each data set without touching it: the table registry.toml, and what users added
of their own.

`digest` names the content: results carry it in their keys, so a data set that changed can never
answer for the old one. Standard library only, so that a recipe's key can hold a digest where there
are no data.
"""

import hashlib
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_type_hints

from leak_atlas import BadInput, nearest, reason, typed
from leak_atlas.engine import paths
from leak_atlas.engine.shapes import shaped

__all__ = [
    "DESCRIPTION",
    "ENTRIES",
    "NAME",
    "ORIGINALS",
    "Entry",
    "File",
    "Kind",
    "Original",
    "find",
    "folder",
    "names",
]

Kind = Literal["images", "bits", "numbers", "text"]
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")  # of a user's own set; it names a folder too
DESCRIPTION = "set.toml"  # of a user's own set, beside its arrays
_AXES = {"images": 3, "bits": 1, "numbers": 1, "text": 0}


class File(NamedTuple):
    """A file by name and content."""

    name: str
    digest: str  # in hex: MD5; SHA-256 of what comes with the package, and of a user's own arrays
    url: str = ""


class Original(NamedTuple):
    """A set of the papers that a user adds from the original files: its content is not pinned."""

    bits: int
    classes: int
    size: int
    path: str  # in the archive: a file or a folder
    archive: str  # and where it is


@dataclass(frozen=True)
class Entry:
    """The facts about one data set; `lib/leak_atlas/recipe/registry.toml` tells more of its fields.
    Raises BadInput if they do not fit.
    """

    name: str
    title: str
    kind: Kind
    shape: tuple[int, ...]  # of a sample: (H, W, C) of images, (D,) of bits and numbers, () of text
    classes: tuple[str, ...]  # the label is the index
    train: int  # samples in the train part, which come first
    test: int
    format: str  # which of the readers in lib/leak_atlas/data/formats.py takes its files
    files: tuple[File, ...]  # what is read, or the one archive that holds it
    source: str  # where it is from, one line
    licence: str
    mean: tuple[float, ...] = ()  # of the train part's pixels in [0, 1], one a channel
    std: tuple[float, ...] = ()
    embedded: bool = False  # there without a download: in this package, or in one that it requires
    downloads: tuple[File, ...] = ()  # what is fetched, where it is not `files`
    # where a user's files may lie; the first is where an archive unpacks
    folders: tuple[str, ...] = ()
    # the larger set from which it is taken; then `files` are the MD5s of the resulting arrays
    part_of: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        if len(self.shape) != _AXES[self.kind] or min(self.train, self.test, *self.shape) < 1:
            raise BadInput(
                f"{self.name}: {self.train} train and {self.test} test {self.kind} of shape "
                f"{self.shape} cannot be"
            )
        channels = self.shape[-1] if self.kind == "images" else 0
        if not len(self.mean) == len(self.std) == channels or min(self.std, default=1) <= 0:
            raise BadInput(
                f"{self.name}: mean {self.mean} and deviation {self.std} do not fit {channels} "
                "channels of pixels"
            )
        if not 1 < len(self.classes) == len(set(self.classes)):
            raise BadInput(f"{self.name}: classes are two or more, each named once")

    @property
    def digest(self) -> str:
        """SHA-256, in hex, that identifies the content."""
        if self.embedded:
            return self.files[0].digest
        text = "".join(f"{file.name} {file.digest}\n" for file in self.files)
        # A user's description can be edited, so what it says of the arrays is part of the content.
        text += (
            f"{self.kind} {self.train} {self.mean} {self.std} {self.classes}" if self.own else ""
        )
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def own(self) -> bool:
        """Whether a user added it."""
        return self.format == "own"

    @property
    def archive(self) -> File | None:
        """The one file that holds all others, where there is one."""
        fetched = self.downloads or self.files
        return fetched[0] if fetched[0].name.endswith((".zip", ".tar.gz")) else None

    @property
    def size(self) -> int:
        """Samples, train and test part together."""
        return self.train + self.test


def _entry(name: str, table: dict[str, Any], classes: dict[str, list[str]]) -> Entry:
    """One table of TOML as an entry; raises KeyError, TypeError or ValueError if it is none."""
    values = table | {"name": name}
    for field in {"files", "downloads"} & set(table):
        values[field] = [File(*map(str, row)) for row in table[field]]
    if isinstance(table.get("classes"), str):
        values["classes"] = classes[table["classes"]]
    kinds = get_type_hints(Entry)
    return Entry(**{field: shaped(value, kinds[field], field) for field, value in values.items()})


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
# known to the library
ENTRIES = {name: _entry(name, one, _TABLE["classes"]) for name, one in _TABLE["sets"].items()}
ORIGINALS = {name: Original(**one) for name, one in _TABLE["originals"].items()}


def folder(name: str) -> Path:
    """Where the prepared arrays of a set lie."""
    return paths.data() / name / "prepared"


@cache
def _described(path: Path, _changed: int) -> Entry:
    try:
        return _entry(path.parents[1].name, tomllib.loads(path.read_text("utf-8")), {})
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise BadInput(
            f"{path} describes no data set ({reason(error)}); remove {path.parents[1]} and add it "
            "again"
        ) from error


def names() -> list[str]:
    """All data sets: those that the library knows, then those that the user added."""
    own = {path.parents[1].name for path in paths.data().glob(f"*/prepared/{DESCRIPTION}")}
    return [*ENTRIES, *sorted(own - set(ENTRIES))]


def find(name: str) -> Entry:
    """The entry of that name; BadInput, with the nearest name or how to add it, where there is
    none.
    """
    if name in ENTRIES:
        return ENTRIES[name]
    path = folder(str(name)) / DESCRIPTION
    if name in ORIGINALS and not path.is_file():
        original = ORIGINALS[name]
        raise BadInput(
            f"{name} is not there; unpack {original.archive}, then run "
            f"`{typed(f'leak-atlas data add {name} {original.path}')}`"
        )
    if not NAME.fullmatch(str(name)) or not path.is_file():
        raise BadInput(f"there is no data set '{name}'{nearest(str(name), [*names(), *ORIGINALS])}")
    return _described(path, path.stat().st_mtime_ns)
