"""`python -m lib.data` lists the data sets; `python -m lib.data get NAME` prepares one."""

from __future__ import annotations

import argparse
import sys
import textwrap

from lib import BadInput
from lib.data import readers, registry


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lib.data", description="List data sets, or get one.")
    verbs = parser.add_subparsers(dest="verb")
    verbs.add_parser("list", help="each data set, whether it is there and how to get it (the default)")
    get = verbs.add_parser("get", help="download or take over a data set, check it, prepare it")
    get.add_argument("names", nargs="+", metavar="NAME")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.verb == "get":
            for name in chosen.names:
                registry.find(name)
            for name in chosen.names:
                print(f"{name} is ready: {readers.prepare(name)}", flush=True)
        else:
            print(listing())
    except BadInput as error:
        print(f"leak atlas: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("leak atlas: interrupted; nothing half prepared is left", file=sys.stderr)
        return 130
    return 0


def listing() -> str:
    """The table of data sets, at most 100 columns wide."""
    lines = [f"{'NAME':<20} {'TRAIN':>7} {'TEST':>7}  {'THERE':<6} WHAT"]
    for entry in registry.ENTRIES.values():
        there = "yes" if readers.there(entry.name) else "no"
        shape = "x".join(map(str, entry.shape))
        what = f"{entry.title}; {len(entry.classes)} classes{f', {shape}' if shape else ''}"
        how = entry.source if entry.embedded or there == "yes" else readers.how(entry)
        first, *rest = [*textwrap.wrap(what, 55), *textwrap.wrap(how, 55, break_long_words=False)]
        lines.append(f"{entry.name:<20} {entry.train:>7,} {entry.test:>7,}  {there:<6} {first}")
        lines += [f"{'':<44} {line}" for line in rest]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
