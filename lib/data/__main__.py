"""`python -m lib.data` lists the data sets; `python -m lib.data get NAME` prepares one."""

from __future__ import annotations

import sys

from lib import paths
from lib.command import Parser, command
from lib.data import readers, registry


@command
def main(arguments: list[str] | None = None) -> int:
    parser = Parser(prog="python -m lib.data", description="List data sets, or get one.")
    verbs = parser.add_subparsers(dest="verb")
    verbs.add_parser("list", help="each data set, whether it is there and how to get it (the default)")
    get = verbs.add_parser("get", help="download or take over a data set, check it, prepare it")
    get.add_argument("names", nargs="+", metavar="NAME")
    chosen = parser.parse_args(arguments)
    if chosen.verb == "get":
        for name in chosen.names:
            registry.find(name)
        for name in chosen.names:
            print(f"{name} is ready: {readers.prepare(name)}", flush=True)
    else:
        print(listing())
    return 0


def listing() -> str:
    """The table of data sets, and how to get a missing one; within 100 columns unless the folder's name is long."""
    form = "{:<19} {:>7} {:>7}  {:<7} {:>7}  {:<5}  {}"
    lines = [form.format("NAME", "TRAIN", "TEST", "SHAPE", "CLASSES", "THERE", "WHAT, AND WHERE IT IS FROM")]
    for entry in registry.ENTRIES.values():
        shape = "x".join(map(str, entry.shape)) or "-"
        there = "yes" if readers.there(entry.name) else "no"
        cells = (f"{entry.train:,}", f"{entry.test:,}", shape, len(entry.classes), there, entry.title)
        lines += [form.format(entry.name, *cells), f"{'':<19} {entry.source}"]
    lines += [
        "",
        "Get one that is not there:  python -m lib.data get NAME",
        "It takes your own files (an archive or its folder; idx files, plain or .gz; .npy files) from",
        f"{paths.data()}/NAME, and downloads them where there are none.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
