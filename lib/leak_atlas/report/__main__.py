"""`python -m leak_atlas.report PROFILE`: the index of a run, its cleaned notebooks in
outputs/reports, the README's table.

With --site and no profile: every published report as a page in outputs/site, to be read from a disk
or put anywhere.
"""

import sys

from leak_atlas import BadInput, nearest, typed
from leak_atlas.engine import paths
from leak_atlas.engine.command import Parser, command
from leak_atlas.report import contents


@command
def main(arguments: list[str] | None = None) -> int:
    parser = Parser(prog=typed("leak_atlas.report"), description=__doc__)
    parser.add_argument(
        "profile", nargs="?", help="a run of leak_atlas.report.batch: a folder of outputs/runs"
    )
    parser.add_argument(
        "--site", action="store_true", help="make the site of all published reports"
    )
    chosen = parser.parse_args(arguments)
    if chosen.profile is not None:
        _publish(chosen.profile)
    elif not chosen.site:
        raise BadInput("name the profile of a run, or --site")
    if chosen.site:
        place = paths.outputs() / "site"
        pages = contents.site(paths.reports(), paths.runs("."), place)
        print(f"{len(pages)} pages; open {place / 'index.html'}")
    return 0


def _publish(profile: str) -> None:
    if profile == contents.OWN:
        raise BadInput(
            f"audits of your own are not published; read {paths.runs('own') / 'index.html'}"
        )
    folder = paths.runs(profile)
    if not folder.is_dir() or folder.parent != paths.runs("."):
        there = [path.name for path in paths.runs(".").glob("*") if path.is_dir()]
        hint = (
            nearest(profile, there)
            if there
            else f"; `{typed('leak_atlas.report.batch')}` makes one"
        )
        raise BadInput(f"there is no run of profile '{profile}'{hint}")
    contents.index(folder)
    print(f"index: {folder / 'index.html'}")
    names = contents.publish(folder, paths.reports())
    print(f"{len(names)} reports published: {paths.reports() / profile / 'index.md'}")
    if contents.refresh_readme(paths.ROOT / "README.md", contents.results_table(paths.reports())):
        print("README.md: results table refreshed")


if __name__ == "__main__":
    sys.exit(main())
