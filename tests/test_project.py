"""The promises of the house: one list of dependencies, notebooks that read alike, nothing derived
committed.
"""

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from jupytext import TextFileContentsManager
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from leak_atlas import report
from leak_atlas.engine import paths
from leak_atlas.lab.declare import Notebook, notebooks, parameters, profiles
from leak_atlas.recipe import registry

PACKAGE = paths.ROOT / "lib" / "leak_atlas"
PROJECT = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())
ALL = notebooks(("*", "own/*"))
OWN = [
    Notebook(f"own/{path.stem}", path)
    for path in sorted(paths.NOTEBOOKS.glob("own/audit_my_logits.py"))
]


def git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=paths.ROOT, capture_output=True, text=True, check=False
    ).stdout


def test_torch_and_torchvision_are_pinned_together() -> None:
    pinned = [
        line for line in PROJECT["project"]["dependencies"] if re.match(r"torch(vision)?==", line)
    ]
    assert len(pinned) == 2


def test_the_lock_holds_every_dependency_within_its_range() -> None:
    """Without local versions (`+cpu`), which would pin a build. The extra `cluster` is not tested
    as a whole.
    """
    lines = (paths.ROOT / "requirements.lock").read_text().splitlines()
    pinned = [line.split("==") for line in lines if not line.startswith("#")]
    odd = [line for line in pinned if not re.fullmatch(r"[\w.]+", line[-1])]
    assert not odd, f"requirements.lock takes name==version, without a local part: {odd}"
    versions = {canonicalize_name(name): version for name, version in pinned}
    assert len(versions) == len(pinned)
    extras = PROJECT["project"]["optional-dependencies"]
    asked = map(Requirement, (*PROJECT["project"]["dependencies"], *extras["dev"], *extras["docs"]))
    wrong = [
        f"{one}"
        for one in asked
        if versions.get(canonicalize_name(one.name), "") not in one.specifier
    ]
    assert not wrong, f"requirements.lock has no version within: {', '.join(wrong)}"


def test_what_is_cited_is_this_version() -> None:
    cited, project = yaml.safe_load((paths.ROOT / "CITATION.cff").read_text()), PROJECT["project"]
    assert cited["version"] == project["version"] and cited["license"] == project["license"]["text"]
    assert len(cited["references"]) == 5
    assert f"## [{cited['version']}]" in (paths.ROOT / "CHANGELOG.md").read_text()


def test_lib_is_not_ignored_and_derived_notebooks_are() -> None:
    assert not git("check-ignore", "lib/leak_atlas/recipe/core.py")
    assert git("check-ignore", "notebooks/layers/x.ipynb")
    assert not git("ls-files", "notebooks/*.ipynb")


ROOMS = (
    "recipe",
    "engine.store",
    "audit",
    "lab",
    "report",
    "recipe.registry",
    "localization.score_maps",
)


def test_declaring_and_reading_need_no_torch() -> None:
    heavy = "[m for m in ('torch', 'matplotlib') if m in sys.modules]"
    for room in ROOMS:
        script = f"import leak_atlas.{room}, sys; print(*{heavy})"
        found = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        assert not found.stdout.split(), f"leak_atlas.{room} imports {found.stdout}"


ORDER = [
    "engine.paths",
    "engine.shapes",
    "engine.files",
    "engine.processes",
    "engine.digests",
    "engine.store",
    "engine.selection",
    "recipe",
    "engine.compute",
    "audit",
    "data",
    "models",
    "rewinding",
    "pruning",
    "models.subject",
    "training",
    "attacks",
    "localization",
    "lab",
    "report",
    "own",
    "explore",
    "report.batch",
    "__main__",
]


def room(module: str) -> int:
    """The place of a module in the order of the rooms."""
    name = module.removeprefix("leak_atlas.")
    return ORDER.index(name if name in ORDER else name.split(".")[0])


def imported(path: Path) -> set[str]:
    """Modules of `leak_atlas` that a file imports when it runs (not for type checkers alone)."""
    text = re.sub(r"if TYPE_CHECKING:\n((?:    .*\n|\n)+)", "", path.read_text())
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            deeper = {f"{node.module}.{name.name}" for name in node.names}
            known = {one for one in deeper if one.removeprefix("leak_atlas.") in ORDER}
            found |= known if node.module == "leak_atlas" or known else {node.module}
    return {one for one in found if one.startswith("leak_atlas.")}


def test_a_room_imports_only_rooms_above_it() -> None:
    for path in sorted(PACKAGE.rglob("*.py")):
        own = ".".join(path.relative_to(paths.ROOT / "lib").with_suffix("").parts).removesuffix(
            ".__init__"
        )
        if own != "leak_atlas":
            for module in imported(path):
                assert room(module) <= room(own), f"{own} imports {module}, a room below it"


REALIZES = "lab.(?:realize|compare|probe)"  # the calls that compute


def unlike(one: Notebook) -> Iterator[str]:
    """How a notebook differs from the others."""
    text, read = one.path.read_text(), one.content
    titles = [
        line
        for cell in read.cells
        if cell.cell_type == "markdown"
        for line in cell.source.splitlines()
    ]
    if sum(line.startswith("# ") for line in titles) != 1:
        yield "it has not exactly one title"
    calls = ("report.claims", REALIZES, "report.judge", "report.provenance")
    found = [re.search(rf"{call}\(", text) for call in calls]
    order = [call.start() if call else -1 for call in found]
    if one.name.startswith(("explore", "start", "own")):
        if order[1] < 0 and one not in OWN:
            yield "it realizes nothing"
    elif len(re.findall(rf"{REALIZES}\(", text)) != 1:
        yield "it does not realize exactly once"
    elif min(order) < 0 or order != sorted(order):
        yield "rules come before results: claims, realize, judge, provenance"
    for cell in read.cells:
        if "parameters" in cell.metadata.get("tags", []):
            for line in cell.source.splitlines():
                if not re.match(r"\w+ = .+  # \S", line):
                    yield f"'{line}' needs a comment that gives unit and origin"


HEADER = """# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # """


def test_all_notebooks_have_one_header() -> None:
    odd = [
        path for path in paths.NOTEBOOKS.rglob("*.py") if not path.read_text().startswith(HEADER)
    ]
    assert not odd


@pytest.mark.parametrize("root", [".", "notebooks"])
def test_jupyterlab_writes_every_notebook_back_as_it_is_committed(
    root: str, tmp_path: Path
) -> None:
    """Whether it is started in the repository or in its notebooks, and whatever it notes about a
    run.
    """
    ours = shutil.ignore_patterns("*.ipynb", ".ipynb_checkpoints")
    shutil.copytree(paths.NOTEBOOKS, tmp_path / "notebooks", ignore=ours)
    shutil.copy(paths.ROOT / "pyproject.toml", tmp_path)
    files = TextFileContentsManager(root_dir=str(tmp_path / root))
    for path in sorted((tmp_path / "notebooks").rglob("*.py")):
        committed, name = path.read_bytes(), str(path.relative_to(tmp_path / root))
        opened = files.get(name, type="notebook")
        opened["content"]["metadata"]["language_info"] = {"name": "python", "version": "3.11.2"}
        opened["content"]["metadata"]["widgets"] = {
            "application/vnd.jupyter.widget-state+json": {"state": {}}
        }
        for cell in opened["content"]["cells"]:
            cell["metadata"] |= {
                "editable": True,
                "collapsed": True,
                "jupyter": {"outputs_hidden": True},
            }
        files.save({"type": "notebook", "content": opened["content"]}, name)
        assert path.read_bytes() == committed, f"saving changes {path.name}"
        assert path.with_suffix(".ipynb").exists(), "outputs are kept beside it"


def test_notebooks_read_alike() -> None:
    found = [f"{one.name}: {fault}" for one in (*ALL, *OWN) for fault in unlike(one)]
    assert not found, "\n".join(found)


def test_a_notebook_that_is_opened_shows_what_quick_has_stored() -> None:
    for one in ALL:
        given = parameters(one, "quick")
        assert given == {name: one.defaults[name] for name in given}, (
            f"{one.name}: its defaults are not quick's"
        )


def test_profiles_fit_their_notebooks_and_use_each_data_set() -> None:
    """Each file belongs to a notebook, each value to one of its parameters, what is in `_common` to
    some notebook's.
    """
    every = []
    for profile in profiles():
        for one in ALL:
            given = parameters(one, profile)  # raises BadInput on a name that nobody has
            every.append(one.defaults | given)
    used = json.dumps(every)
    unused = [name for name in registry.ENTRIES if f'"{name}"' not in used]
    assert not unused, (
        f"no profile uses {unused}: name them in params/, or take them out of lib/leak_atlas/recipe/registry.toml"
    )


def test_each_data_set_that_the_papers_profiles_need_is_explained() -> None:
    text = (paths.ROOT / "docs/data.md").read_text()
    needed = json.dumps([parameters(one, name) for name in ("desk", "paper") for one in ALL])
    for name, entry in registry.ENTRIES.items():
        if f'"{name}"' in needed and not entry.embedded:
            assert f"leak-atlas data get {name}`" in text


def test_nothing_large_is_tracked() -> None:
    names = git("ls-files").split()
    assert "pyproject.toml" in names
    for name in names:
        path = paths.ROOT / name
        if path.exists():
            assert path.stat().st_size <= 4 * 2**20, f"{name} is too large"


def test_the_findings_say_what_the_reports_say() -> None:
    table = report.results_table(paths.ROOT / "outputs" / "reports")
    assert table in (paths.ROOT / "docs/findings.md").read_text(), (
        "make report PROFILE=quick refreshes it"
    )
