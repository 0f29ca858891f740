"""The table of data sets, and the lines about a set that was added."""

from __future__ import annotations

from leak_atlas import BadInput, typed
from leak_atlas.data import readers
from leak_atlas.engine import paths
from leak_atlas.recipe import registry
from leak_atlas.recipe.registry import DESCRIPTION, Entry

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
    for name, one in registry.ORIGINALS.items():
        if name not in names:
            size, what = f"{one.size:,}", f"to be added: {one.path} in"
            lines.append(ROW.format(name, size, "-", str(one.bits), one.classes, "no", what))
            lines.append(f"{'':<19} {one.archive}")
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
    shape = "x".join(map(str, entry.shape)) or "-"
    there = "yes" if readers.there(entry.name) else "no"
    sizes = f"{entry.train:,}", f"{entry.test:,}", shape, len(entry.classes)
    return [ROW.format(entry.name, *sizes, there, entry.title), f"{'':<19} {entry.source}"]


def added(entry: Entry) -> str:
    """What became of a user's files: the set, how networks read it, and how to use it."""
    parts = f"{entry.train:,} train and {entry.test:,} test samples of {len(entry.classes)} classes"
    note = f"; {entry.note}" if entry.note else ""
    lines = [f"{entry.name} is ready: {entry.kind} of shape {entry.shape}, {parts}{note}"]
    if entry.kind == "images":
        mean, std = (",".join(f"{value:.6g}" for value in each) for each in (entry.mean, entry.std))
        at = registry.folder(entry.name) / DESCRIPTION
        lines.append(
            f"Networks read (pixel / 255 - mean) / std, where mean is {mean} and std {std}."
        )
        lines.append(f"Both are stored in {at}; with other values it is another data set.")
    use = typed(f"leak-atlas reproduce own/my_defence -p data={entry.name}")
    return "\n".join([*lines, f"Use it: {use}"])
