"""The promises of the house: one list of dependencies, notebooks that read alike, nothing derived committed."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from lib import paths, report
from lib.lab.declare import Notebook, notebooks, parameters, profiles

PROJECT = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())
ALL = notebooks()


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=paths.ROOT, capture_output=True, text=True, check=False).stdout


def test_condas_door_opens_on_the_same_list() -> None:
    environment = yaml.safe_load((paths.ROOT / "environment.yml").read_text())
    python, pip, from_pip = environment["dependencies"]
    assert python == f"python{PROJECT['project']['requires-python']}"
    assert pip == "pip"
    assert from_pip == {"pip": ["-e .[dev]"]}
    assert "dev" in PROJECT["project"]["optional-dependencies"]


def test_torch_and_torchvision_are_pinned_together() -> None:
    pinned = [line for line in PROJECT["project"]["dependencies"] if re.match(r"torch(vision)?==", line)]
    assert len(pinned) == 2


def test_lib_is_not_ignored_and_derived_notebooks_are() -> None:
    assert not git("check-ignore", "lib/recipe/core.py")
    assert git("check-ignore", "notebooks/layers/x.ipynb")
    assert not git("ls-files", "notebooks/*.ipynb")


def test_lib_imports_from_anywhere(tmp_path: Path) -> None:
    for place in (Path("/"), tmp_path):
        found = subprocess.run(
            [sys.executable, "-c", "import lib; print(lib.__file__)"],
            cwd=place,
            capture_output=True,
            text=True,
            check=True,
        )
        assert Path(found.stdout.strip()) == paths.ROOT / "lib" / "__init__.py"


@pytest.mark.parametrize(
    "room",
    ["lib.recipe", "lib.store", "lib.audit", "lib.lab", "lib.report", "lib.data.registry", "lib.localization.weights"],
)
def test_declaring_and_reading_need_no_torch(room: str) -> None:
    script = f"import {room}, sys; print('torch' in sys.modules, 'matplotlib' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False"]


ORDER = [
    "files", "command", "paths", "data.registry", "recipe", "audit", "data", "models", "training", "selection",
    "pruning", "rewinding", "attacks", "localization", "store", "lab", "report", "explore", "batch",
]  # fmt: skip


def room(module: str) -> int:
    """The place of a module in the order of the rooms."""
    name = module.removeprefix("lib.")
    return ORDER.index(name if name in ORDER else name.split(".")[0])


def imported(path: Path) -> set[str]:
    """Modules of `lib` that a file imports when it runs (not for type checkers alone)."""
    text = re.sub(r"if TYPE_CHECKING:\n((?:    .*\n|\n)+)", "", path.read_text())
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            deeper = {f"{node.module}.{name.name}" for name in node.names}
            known = {one for one in deeper if one.removeprefix("lib.") in ORDER}
            found |= known if node.module == "lib" or known else {node.module}
    return {one for one in found if one.startswith("lib.")}


def test_a_room_imports_only_rooms_above_it() -> None:
    for path in sorted((paths.ROOT / "lib").rglob("*.py")):
        own = ".".join(path.relative_to(paths.ROOT).with_suffix("").parts).removesuffix(".__init__")
        if own != "lib":
            for module in imported(path):
                assert room(module) <= room(own), f"{own} imports {module}, a room below it"


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
class TestNotebook:
    def test_reads_like_the_others(self, one: Notebook) -> None:
        text = one.path.read_text()
        cells = one.text.cells
        assert one.text.metadata.kernelspec.name == "python3"
        assert (
            sum(line.startswith("# ") for c in cells if c.cell_type == "markdown" for line in c.source.splitlines())
            == 1
        )
        assert len(text.splitlines()) <= 190
        assert "sys.path" not in text and not re.search(r"""open\(|['"]\.\.?/""", text)
        assert text.count("lab.realize(") >= 1
        if not one.name.startswith(("explore", "start")):
            assert text.count("lab.realize(") == 1
            order = [
                text.index(word) for word in ("report.claims(", "lab.realize(", "report.judge(", "report.provenance(")
            ]
            assert order == sorted(order), "rules come before results"

    def test_parameters_say_their_unit_and_origin(self, one: Notebook) -> None:
        cell = next(c for c in one.text.cells if "parameters" in c.metadata.get("tags", []))
        for line in cell.source.splitlines():
            assert re.match(r"\w+ = .+  # \S", line), f"{one.name}: '{line}' needs a comment"

    @pytest.mark.parametrize("profile", profiles())
    def test_profiles_fit(self, one: Notebook, profile: str) -> None:
        given = parameters(one, profile)
        assert set(given) <= set(one.defaults)


@pytest.mark.parametrize("profile", profiles())
def test_parameter_files_belong_to_notebooks(profile: str) -> None:
    names = {one.name for one in ALL}
    for path in (paths.PARAMS / profile).rglob("*.yaml"):
        name = str(path.relative_to(paths.PARAMS / profile).with_suffix(""))
        assert name == "_common" or name in names, f"params/{profile}/{name}.yaml belongs to no notebook"


def test_common_parameters_are_declared_by_every_notebook() -> None:
    for profile in profiles():
        common = yaml.safe_load((paths.PARAMS / profile / "_common.yaml").read_text()) or {}
        for one in ALL:
            assert set(common) <= set(one.defaults), f"{one.name} lacks one of {set(common)}"


def test_nothing_large_or_foreign_is_tracked() -> None:
    for name in git("ls-files").split():
        path = paths.ROOT / name
        if path.exists():
            assert path.stat().st_size <= 4 * 2**20, f"{name} is too large"


def test_the_readme_says_what_the_reports_say() -> None:
    table = report.results_table(paths.ROOT / "outputs" / "reports")
    assert table in (paths.ROOT / "README.md").read_text(), "make report PROFILE=quick refreshes it"
