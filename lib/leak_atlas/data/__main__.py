"""`python -m leak_atlas.data` lists the data sets; `get NAME` prepares one, `add NAME PATH` makes
one of your own.
"""

import sys
from argparse import ArgumentTypeError, RawDescriptionHelpFormatter
from pathlib import Path

from leak_atlas import BadInput, typed
from leak_atlas.data import own, readers
from leak_atlas.engine import paths
from leak_atlas.engine.command import Parser, command
from leak_atlas.recipe import registry
from leak_atlas.recipe.registry import DESCRIPTION, Entry

HELP = """

Get one that is not there:  {get}
It takes your own files (an archive or its folder; idx files, plain or .gz; .npy files) from
{data}/NAME, and downloads them where there are none.
Make one of your own:       {add}"""

FORMS = """
PATH is one of

  table.csv    numbers or bits, a sample a line; the column `label` (--label) has the classes
  arrays.npz   `x` and `y`, or `x_train`, `y_train`, `x_test`, `y_test`: x is uint8 images (N, H, H)
               or (N, H, H, 3), or rows of numbers (N, D); y (N,) whole numbers or names
  pictures/    a folder of pictures for each class, or `train/` and `test/` with such folders

Then try a defence on it:   {use}"""


@command
def main(arguments: list[str] | None = None) -> int:
    parser = Parser(
        prog=typed("leak_atlas.data"), description="List data sets, get one, or add one."
    )
    verbs = parser.add_subparsers(dest="verb")
    verbs.add_parser(
        "list", help="each data set, whether it is there and how to get it (the default)"
    )
    get = verbs.add_parser("get", help="download or take over a data set, check it, prepare it")
    get.add_argument("names", nargs="+", metavar="NAME")
    add = verbs.add_parser(
        "add",
        help="make a data set of your own from a folder of pictures, an .npz or a .csv",
        epilog=FORMS.format(
            use=typed("leak_atlas.report.batch --only own/my_defence -p data=NAME")
        ),
        formatter_class=RawDescriptionHelpFormatter,
    )
    add.add_argument("name", metavar="NAME")
    add.add_argument("path", metavar="PATH", type=Path)
    add.add_argument(
        "--label",
        default="label",
        help="a .csv's column of classes, or its place if there is no header",
    )
    add.add_argument(
        "--seed", default=0, type=int, help="draws the test part where there is none (default 0)"
    )
    side = "resize each image's shorter side to S pixels and crop the middle, S x S, as torchvision evaluates"
    add.add_argument("--size", metavar="S", type=int, help=side)
    mean = "what a model subtracts from pixel / 255, a value a channel: 0.5,0.5,0.5 (default: the train part's)"
    add.add_argument("--mean", metavar="M,M,M", type=values, default=(), help=mean)
    std = "what it then divides by, a value a channel (default: the train part's)"
    add.add_argument("--std", metavar="S,S,S", type=values, default=(), help=std)
    chosen = parser.parse_args(arguments)
    if chosen.verb == "get":
        for name in chosen.names:
            registry.find(name)
        for name in chosen.names:
            print(f"{name} is ready: {readers.prepare(name)}", flush=True)
    elif chosen.verb == "add":
        given = {name: getattr(chosen, name) for name in ("label", "seed", "size", "mean", "std")}
        print(told(own.add(chosen.name, chosen.path, **given)))
    else:
        print(listing())
    return 0


def values(text: str) -> tuple[float, ...]:
    """Numbers with a comma between each two."""
    try:
        return tuple(map(float, text.split(",")))
    except ValueError as error:
        raise ArgumentTypeError(
            f"numbers with commas are needed, 0.5,0.5,0.5, not {text!r}"
        ) from error


def told(entry: Entry) -> str:
    """What became of a user's files: the set, how networks read it, and how to use it."""
    parts = f"{entry.train:,} train and {entry.test:,} test samples of {len(entry.classes)} classes"
    lines = [
        f"{entry.name} is ready: {entry.kind} of shape {entry.shape}, {parts}{entry.note and f'; {entry.note}'}"
    ]
    if entry.kind == "images":
        mean, std = (",".join(f"{value:.6g}" for value in each) for each in (entry.mean, entry.std))
        lines += [
            f"Networks read (pixel / 255 - mean) / std, where mean is {mean} and std is {std}.",
            f"Both are stored in {registry.folder(entry.name) / DESCRIPTION} and are part of the set's digest:",
            "with other values it is another data set, and all results are computed anew.",
        ]
    elif entry.kind == "numbers":
        lines.append(
            "Networks read (value - mean) / std of each column; both are computed of the train part."
        )
    lines.append(
        f"Use it: {typed(f'leak_atlas.report.batch --only own/my_defence -p data={entry.name}')}"
    )
    return "\n".join(lines)


def listing() -> str:
    """The table of data sets, and how to get a missing one; within 100 columns unless a name is
    long.
    """
    form = "{:<19} {:>7} {:>7}  {:<7} {:>7}  {:<5}  {}"
    lines = [
        form.format(
            "NAME", "TRAIN", "TEST", "SHAPE", "CLASSES", "THERE", "WHAT, AND WHERE IT IS FROM"
        )
    ]
    for name in registry.names():
        try:
            entry = registry.find(name)
        except BadInput as error:  # a user's description that was changed
            lines.append(str(error))
            continue
        shape, there = (
            "x".join(map(str, entry.shape)) or "-",
            "yes" if readers.there(name) else "no",
        )
        sizes = f"{entry.train:,}", f"{entry.test:,}", shape, len(entry.classes)
        lines += [form.format(name, *sizes, there, entry.title), f"{'':<19} {entry.source}"]
    for name in sorted(registry.ORIGINALS.keys() - set(registry.names())):
        one = registry.ORIGINALS[name]
        facts = (
            name,
            f"{one.size:,}",
            "-",
            str(one.bits),
            one.classes,
            "no",
            f"to be added: {one.path} in",
        )
        lines += [form.format(*facts), f"{'':<19} {one.archive}"]
    return "\n".join(lines) + HELP.format(
        data=paths.data(),
        get=typed("leak_atlas.data get NAME"),
        add=typed("leak_atlas.data add NAME PATH"),
    )


if __name__ == "__main__":
    sys.exit(main())
