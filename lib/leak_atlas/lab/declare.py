"""What a notebook would ask for: its text, executed up to `realize` with a profile's parameters.
Trains nothing.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import linecache
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from leak_atlas import BadInput, lab, nearest
from leak_atlas.engine import files, paths
from leak_atlas.engine.shapes import shaped
from leak_atlas.recipe import Step

COMMON = "_common.yaml"

Given = dict[str, Any]  # parameters of a notebook by name


@dataclass(frozen=True)
class Notebook:
    """A notebook by its name, `layers/fig01_stage_and_block_disparity`."""

    name: str
    path: Path

    @cached_property
    def content(self) -> Any:
        """The parsed notebook. Raises BadInput if the file is not a notebook, or has no markdown
        cell (its first line is the title).
        """
        source = files.read_text(self.path)
        try:
            cells = _read(source)
        except Exception as error:  # its header is YAML
            raise BadInput(f"{self.path} is not a notebook: {error}") from error
        if not any(cell.cell_type == "markdown" and cell.source.strip() for cell in cells.cells):
            raise BadInput(f"{self.path} needs a cell of text: its first line is the title")
        return cells

    @property
    def title(self) -> str:
        texts = [cell.source.strip() for cell in self.content.cells if cell.cell_type == "markdown"]
        first = next(text for text in texts if text)
        return first.splitlines()[0].lstrip("# ").strip()

    @property
    def defaults(self) -> Given:
        """The parameters cell: one literal assignment a line."""
        cells = [cell for cell in self.content.cells if _is_parameters(cell)]
        if len(cells) != 1:
            why = f"needs exactly one cell tagged 'parameters', it has {len(cells)}"
            raise BadInput(f"{self.path} {why}")
        try:
            return dict(assigned(cells[0].source))
        except (ValueError, SyntaxError) as error:
            why = f"the parameters cell takes one 'name = literal' a line: {error}"
            raise BadInput(f"{self.path}: {why}") from error


def _is_parameters(cell: Any) -> bool:
    return "parameters" in cell.metadata.get("tags", [])


@cache
def assigned(source: str) -> Given:
    """The names and values of a parameters cell; asked for many times. Raises ValueError on a line
    that is no assignment of a literal, or gives a name twice.
    """
    values: Given = {}
    for line in ast.parse(source).body:
        match line:
            case ast.Assign(targets=[ast.Name(name)], value=value) if name not in values:
                values[name] = ast.literal_eval(value)
            case _:
                raise ValueError(f"line {line.lineno} is none, or gives a name twice")
    return values


@cache
def _read(source: str) -> Any:
    """The notebook of a text; a plan asks for each several times."""
    import jupytext

    return jupytext.reads(source, "py:percent")


@cache
def _has_cells(path: Path) -> bool:
    """Whether a file is a notebook: a module that one imports may lie in the same folder."""
    return b"# %%" in path.read_bytes()


def _every() -> list[Notebook]:
    """All notebooks, less copies that JupyterLab keeps in hidden folders, and less the one that
    `leak-atlas audit` runs on arrays, which declares no recipe."""
    every = []
    for path in sorted(paths.NOTEBOOKS.rglob("*.py")):
        name = str(path.relative_to(paths.NOTEBOOKS).with_suffix(""))
        hidden = name.startswith(".") or "/." in name
        if not hidden and name != "own/audit_my_logits" and _has_cells(path):
            every.append(Notebook(name, path))
    return every


def notebooks(only: Iterable[str] = ("*",)) -> list[Notebook]:
    """All notebooks that one of the patterns matches, in whole or at the beginning, with their
    folder or without.

    Those in the folder `own` are about what users bring: only a pattern that begins so takes them.
    Raises BadInput if a pattern matches none.
    """
    every = _every()
    chosen: dict[str, Notebook] = {}
    for pattern in only:
        if not pattern:
            raise BadInput("an empty pattern chooses no notebook: leave it out for all of them")
        own = pattern.startswith("own/")
        within = [one for one in every if own or not one.name.startswith("own/")]
        matching = {one.name: one for one in within if _matches(one, f"{pattern}*")}
        if not matching:
            names = [one.name for one in every] + [one.path.stem for one in every]
            raise BadInput(f"no notebook matches '{pattern}'{nearest(pattern.strip('*'), names)}")
        chosen |= matching
    return list(chosen.values())


def _matches(notebook: Notebook, pattern: str) -> bool:
    return fnmatch(notebook.name, pattern) or fnmatch(notebook.path.stem, pattern)


def profiles() -> list[str]:
    return sorted(path.name for path in paths.PARAMS.iterdir() if path.is_dir())


def _of_profile(profile: str) -> Path:
    """The folder of a profile. Raises BadInput if there is none, or if no notebook would read a
    file in it.
    """
    if profile not in profiles():
        raise BadInput(f"there is no profile '{profile}'{nearest(profile, profiles())}")
    folder = paths.PARAMS / profile
    known = {place for one in _every() for place in _files(one)}
    for path in sorted(folder.rglob("*.y*ml")):
        name = str(path.relative_to(folder))
        if name not in known and not path.name.startswith("."):
            raise BadInput(f"{path} belongs to no notebook{nearest(name, known)}")
    return folder


def _files(notebook: Notebook) -> list[str]:
    """The files of a profile that set a notebook's parameters: that for all notebooks, that for its
    folder, its own. A later file overrides an earlier one.

    The cells of a user's own notebook are the user's: the file for all notebooks does not set their
    parameters.
    """
    folder = notebook.name.rpartition("/")[0]
    of_all = [COMMON] if folder != "own" else []
    of_folder = [f"{folder}/{COMMON}"] if folder else []
    return [*of_all, *of_folder, f"{notebook.name}.yaml"]


def parameters(notebook: Notebook, profile: str, extra: Given | None = None) -> Given:
    """What a profile and `-p` (`extra`) set for a notebook, checked against the notebook's own
    names and types.

    What stands in a common file, the profile's or the folder's, is for the notebooks that have the
    parameter; a notebook's own file may differ.
    """
    folder, defaults = _of_profile(profile), notebook.defaults
    given: dict[str, tuple[Any, str]] = {}  # values, and where they stand
    for path in (folder / name for name in _files(notebook)):
        if path.exists():
            where = str(path.relative_to(paths.ROOT))
            values = files.read_yaml(path, where, Given | None) or {}
            known = _every_parameter() if path.name == COMMON else set(defaults)
            for name, value in values.items():
                if name not in known:
                    raise BadInput(f"{where}: unknown parameter '{name}'{nearest(name, known)}")
                given[name] = value, where
    given |= {name: (value, "-p") for name, value in (extra or {}).items()}
    fitting = {}
    for name, default in defaults.items():
        if name in given:
            value, where = given[name]
            fitting[name] = _like(default, value, f"{where}: {name}")
    return fitting


def _every_parameter() -> set[str]:
    """The names of the parameters of all notebooks."""
    return {name for one in _every() for name in one.defaults}


def _like(default: Any, value: Any, name: str) -> Any:
    """A value with the type of a default; None stands for any type."""
    if default is None or value is None:
        return value
    if isinstance(default, list) and isinstance(value, list):
        return [_like(default[0], each, name) for each in value] if default else value
    shape = float if isinstance(default, float) else type(default)
    try:
        return shaped(value, shape, name)
    except BadInput as error:
        raise BadInput(f"{error}; the default is {default!r}") from error


def declare(notebook: Notebook, given: Given) -> list[Step]:
    """The steps that a notebook asks of `realize`. Raises BadInput if the notebook fails with these
    parameters before it calls `realize`.
    """
    space: Given = {"__name__": "__main__"}
    # as in JupyterLab; workers of this machine inherit it
    if (folder := str(notebook.path.parent)) not in sys.path:
        sys.path.append(folder)
    with lab.planning(), contextlib.redirect_stdout(io.StringIO()):
        try:
            for number, cell in enumerate(notebook.content.cells):
                if cell.cell_type == "code":
                    _execute(cell.source, f"{notebook.path}, cell {number}", space)
                if _is_parameters(cell):
                    space.update(given)
        except lab.Planned as planned:
            return planned.steps
        except BadInput:
            raise
        except (Exception, SystemExit) as error:
            raise BadInput(
                f"{notebook.name} cannot be declared: {type(error).__name__}: {error}"
            ) from error
    return []


def _execute(source: str, name: str, space: Given) -> None:
    """Executes a cell. A kind that is defined in it is known by its text, which Python finds under
    the cell's name."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec", dont_inherit=True), space)


# ---------------------------------------------------------------- names


SIZES = {
    "model": "{}",
    "models": "{}",
    "width": "width {}",
    "data": "{}",
    "pixels": "{0} x {0} pixels",
    "pool": "a pool of {} samples",
    "epochs": "{} epochs",
    "file": "{}",
}


def setting(given: Mapping[str, Any]) -> str:
    """A notebook's model, data and sizes in words, as the header of its page has them: `resnet10,
    width 8, a pool of 600 samples`.

    What several networks or data sets share stands there once.
    """
    shown = []
    for name, words in SIZES.items():
        value = given.get(name)
        values = dict.fromkeys(value if isinstance(value, list) else [value])
        texts = [words.format(each) for each in values if each]
        if texts:
            shown.append(" and ".join(texts))
    return ", ".join(shown)


def run_name(profile: str, extra: Mapping[str, Any]) -> str:
    """The folder of a run: its profile, and what `-p` changes in it: `quick+seed=1`.

    What cannot stand in a file's name is left out.
    """
    texts = [f"+{name}={json.dumps(value)}" for name, value in sorted(extra.items())]
    return profile + re.sub(r"[^\w.,=+-]", "", "".join(texts), flags=re.ASCII)


def read_parameters(pairs: Iterable[str]) -> Given:
    """`-p name=value` as typed at the shell; values are JSON where they can be, text where they
    cannot.
    """
    values: Given = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise BadInput(f"-p takes name=value, not '{pair}'")
        if name in values:
            raise BadInput(f"-p sets '{name}' twice: give it once")
        try:
            values[name] = json.loads(text)
        except (ValueError, RecursionError):
            values[name] = text
    return values
