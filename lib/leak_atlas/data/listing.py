"""The table of data sets, and the lines about a set that was added."""

from __future__ import annotations

from leak_atlas import BadInput, typed
from leak_atlas.data import readers
from leak_atlas.engine import paths
from leak_atlas.recipe import registry
from leak_atlas.recipe.registry import DESCRIPTION, Entry, Original

ROW = "{:<19} {:>7} {:>7}  {:<7} {:>7}  {:<5}  {}"
HEAD = "NAME", "TRAIN", "TEST", "SHAPE", "CLASSES", "THERE", "WHAT, AND WHERE IT IS FROM"


def listing() -> str:
    """The table of data sets, and how to get a missing one; within 100 columns unless a name is
    long.
    """
    lines = [ROW.format(*HEAD)]
    names = registry.names()
    for name in names:
        try:
            lines += _rows(registry.find(name))
        except BadInput as error:  # a user's description that was changed
            lines.append(str(error))
    for name, original in registry.ORIGINALS.items():
        if name not in names:
            lines += _rows_of_original(name, original)
    lines += [
        "",
        f"Get one that is not there:  {typed('leak-atlas data get NAME')}",
        "It takes your own files (an archive or its folder; idx files, plain or .gz; .npy files) from",
        f"{paths.data()}/NAME, and downloads them where there are none.",
        f"Make one of your own:       {typed('leak-atlas data add NAME PATH')}",
    ]
    return "\n".join(lines)


def _rows(entry: Entry) -> list[str]:
    """A data set in the table."""
    row = ROW.format(
        entry.name,
        f"{entry.train:,}",
        f"{entry.test:,}",
        "x".join(map(str, entry.shape)) or "-",
        len(entry.classes),
        "yes" if readers.there(entry.name) else "no",
        entry.title,
    )
    return [row, f"{'':<19} {entry.source}"]


def _rows_of_original(name: str, original: Original) -> list[str]:
    """A data set of the papers in the table, before it is added."""
    row = ROW.format(
        name,
        f"{original.size:,}",
        "-",
        str(original.bits),
        original.classes,
        "no",
        f"to be added: {original.path} in",
    )
    return [row, f"{'':<19} {original.archive}"]


def added(entry: Entry) -> str:
    """What became of a user's files: the set, how networks read it, and how to use it."""
    facts = f"{entry.name} is ready: {entry.kind} of shape {entry.shape}"
    parts = f"{entry.train:,} train and {entry.test:,} test samples"
    note = f"; {entry.note}" if entry.note else ""
    lines = [f"{facts}, {parts} of {len(entry.classes)} classes{note}"]
    if entry.kind == "images":
        mean = ",".join(f"{value:.6g}" for value in entry.mean)
        std = ",".join(f"{value:.6g}" for value in entry.std)
        at = registry.folder(entry.name) / DESCRIPTION
        lines += [
            f"Networks read (pixel / 255 - mean) / std, where mean is {mean} and std {std}.",
            f"Both are stored in {at}; with other values it is another data set.",
        ]
    use = typed(f"leak-atlas reproduce own/my_defence -p data={entry.name}")
    lines.append(f"Use it: {use}")
    return "\n".join(lines)
