"""`python -m lib.data` lists the data sets; `get NAME` prepares one, `add NAME PATH` makes one of your own."""

import sys
from pathlib import Path

from lib import BadInput, paths, registry, typed
from lib.command import Parser, command
from lib.data import own, readers

HELP = """

Get one that is not there:  {get}
It takes your own files (an archive or its folder; idx files, plain or .gz; .npy files) from
{data}/NAME, and downloads them where there are none.
Make one of your own:       {add}"""


@command
def main(arguments: list[str] | None = None) -> int:
    parser = Parser(prog=typed("lib.data"), description="List data sets, get one, or add one.")
    verbs = parser.add_subparsers(dest="verb")
    verbs.add_parser("list", help="each data set, whether it is there and how to get it (the default)")
    get = verbs.add_parser("get", help="download or take over a data set, check it, prepare it")
    get.add_argument("names", nargs="+", metavar="NAME")
    add = verbs.add_parser("add", help="make a data set of your own from a folder of pictures, an .npz or a .csv")
    add.add_argument("name", metavar="NAME")
    add.add_argument("path", metavar="PATH", type=Path)
    add.add_argument("--label", default="label", help="a .csv's column of classes, or its place if there is no header")
    add.add_argument("--seed", default=0, type=int, help="draws the test part where there is none (default 0)")
    chosen = parser.parse_args(arguments)
    if chosen.verb == "get":
        for name in chosen.names:
            registry.find(name)
        for name in chosen.names:
            print(f"{name} is ready: {readers.prepare(name)}", flush=True)
    elif chosen.verb == "add":
        entry = own.add(chosen.name, chosen.path, chosen.label, chosen.seed)
        parts = f"{entry.train:,} train and {entry.test:,} test samples of {len(entry.classes)} classes"
        print(f"{entry.name} is ready: {entry.kind} of shape {entry.shape}, {parts}{entry.note and f'; {entry.note}'}")
    else:
        print(listing())
    return 0


def listing() -> str:
    """The table of data sets, and how to get a missing one; within 100 columns unless a name is long."""
    form = "{:<19} {:>7} {:>7}  {:<7} {:>7}  {:<5}  {}"
    lines = [form.format("NAME", "TRAIN", "TEST", "SHAPE", "CLASSES", "THERE", "WHAT, AND WHERE IT IS FROM")]
    for name in registry.names():
        try:
            entry = registry.find(name)
        except BadInput as error:  # a user's description that was changed
            lines.append(str(error))
            continue
        shape, there = "x".join(map(str, entry.shape)) or "-", "yes" if readers.there(name) else "no"
        sizes = f"{entry.train:,}", f"{entry.test:,}", shape, len(entry.classes)
        lines += [form.format(name, *sizes, there, entry.title), f"{'':<19} {entry.source}"]
    for name in sorted(registry.ORIGINALS.keys() - set(registry.names())):
        one = registry.ORIGINALS[name]
        facts = name, f"{one.size:,}", "-", str(one.bits), one.classes, "no", f"to be added: {one.path} in"
        lines += [form.format(*facts), f"{'':<19} {one.archive}"]
    return "\n".join(lines) + HELP.format(
        data=paths.data(), get=typed("lib.data get NAME"), add=typed("lib.data add NAME PATH")
    )


if __name__ == "__main__":
    sys.exit(main())
