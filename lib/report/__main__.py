"""`python -m lib.report PROFILE`: the index of a run, its cleaned notebooks in outputs/reports, the README's table."""

import sys

from lib import BadInput, nearest, paths, typed
from lib.command import Parser, command
from lib.report import render


@command
def main(arguments: list[str] | None = None) -> int:
    parser = Parser(prog=typed("lib.report"), description=__doc__)
    parser.add_argument("profile", help="a run of lib.batch: a folder of outputs/runs, `quick` or `quick+seed=1`")
    chosen = parser.parse_args(arguments)
    if chosen.profile == "own":
        raise BadInput(f"audits of your own are not published; read {paths.runs('own') / 'index.html'}")
    folder = paths.runs(chosen.profile)
    if not folder.is_dir() or folder.parent != paths.runs("."):
        there = [path.name for path in paths.runs(".").glob("*") if path.is_dir()]
        hint = nearest(chosen.profile, there) if there else f"; `{typed('lib.batch')}` makes one"
        raise BadInput(f"there is no run of profile '{chosen.profile}'{hint}")
    render.index(folder)
    print(f"index: {folder / 'index.html'}")
    names = render.publish(folder, paths.reports())
    print(f"{len(names)} reports published: {paths.reports() / chosen.profile / 'index.md'}")
    if render.refresh_readme(paths.ROOT / "README.md", render.results_table(paths.reports())):
        print("README.md: results table refreshed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
