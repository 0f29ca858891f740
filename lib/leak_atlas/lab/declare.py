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
from difflib import SequenceMatcher
from fnmatch import fnmatch
from functools import cache, cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from leak_atlas import BadInput, lab, nearest
from leak_atlas.engine import files, paths
from leak_atlas.recipe import Step

COMMON = "_common.yaml"
LONGEST = 60  # characters of what a run's name tells of `-p`
SHORT = 2**20  # bytes of the longest file of parameters
# 1 or more, of all ints
COUNTS = {"pairs", "models", "shadows", "runs", "few", "many", "sub_models", "pool", "pools"}


@dataclass(frozen=True)
class Notebook:
    """A notebook by its name, `layers/fig01_stage_and_block_disparity`."""

    name: str
    path: Path

    @cached_property
    def text(self) -> Any:
        """The notebook, with a cell of text at its head; BadInput where the file is none."""
        source = files.text(self.path)
        try:
            found = _read(source)
        except Exception as error:  # its header is YAML
            raise BadInput(f"{self.path} is not a notebook: {error}") from error
        if not any(cell.cell_type == "markdown" and cell.source.strip() for cell in found.cells):
            raise BadInput(f"{self.path} needs a cell of text: its first line is the title")
        return found

    @property
    def title(self) -> str:
        first = next(
            cell.source
            for cell in self.text.cells
            if cell.cell_type == "markdown" and cell.source.strip()
        )
        return first.strip().splitlines()[0].lstrip("# ").strip()

    @property
    def defaults(self) -> dict[str, Any]:
        """The parameters cell: one literal assignment a line."""
        cells = [cell for cell in self.text.cells if "parameters" in cell.metadata.get("tags", [])]
        if len(cells) != 1:
            raise BadInput(
                f"{self.path} needs exactly one cell tagged 'parameters', it has {len(cells)}"
            )
        try:
            return dict(_assigned(cells[0].source))
        except (ValueError, SyntaxError, RecursionError) as error:
            raise BadInput(
                f"{self.path}: the parameters cell takes one 'name = literal' a line: {error}"
            ) from error


@cache
def _assigned(source: str) -> dict[str, Any]:
    """The names and values of a parameters cell; every profile asks for those of all notebooks,
    many times.
    """
    out: dict[str, Any] = {}
    for line in ast.parse(source).body:
        match line:
            case ast.Assign(targets=[ast.Name(name)], value=value) if name not in out:
                out[name] = ast.literal_eval(value)
            case _:
                raise ValueError(f"line {line.lineno} is none, or gives a name twice")
    return out


@cache
def _has_cells(path: Path) -> bool:
    """Whether a file is a notebook: a module that one imports may lie beside it."""
    return b"# %%" in path.read_bytes() if path.is_file() else True


@cache
def _read(source: str) -> Any:
    """The notebook of a text; a plan asks for each several times."""
    import jupytext

    return jupytext.reads(source, "py:percent")


def _every() -> list[Notebook]:
    return [
        Notebook(str(path.relative_to(paths.NOTEBOOKS).with_suffix("")), path)
        for path in sorted(paths.NOTEBOOKS.rglob("*.py"))
        # JupyterLab keeps copies of what it opens, hidden
        if "/." not in f"/{path.relative_to(paths.NOTEBOOKS)}"
        and _has_cells(path)
        # `leak-atlas audit` runs it, on arrays: it declares no recipe
        and not path.match("own/audit_my_logits.py")
    ]


def notebooks(only: Iterable[str] = ("*",)) -> list[Notebook]:
    """All notebooks that one of the patterns matches, in whole or at the beginning, with their
    folder or without.

    Those in the folder `own` are about what users bring: only a pattern that begins so takes them.
    BadInput where a pattern matches none.
    """
    every = _every()
    chosen = []
    for pattern in only:
        if not pattern:
            raise BadInput(
                "an empty pattern chooses no notebook: leave it out for all of them, or say 'layers/*'"
            )
        within = [
            one for one in every if pattern.startswith("own/") or not one.name.startswith("own/")
        ]
        found = [
            one
            for one in within
            if fnmatch(one.name, f"{pattern}*") or fnmatch(one.path.stem, f"{pattern}*")
        ]
        if not found:
            near = max((one.name for one in every), key=partial(_alike, pattern), default="none")
            raise BadInput(f"no notebook matches '{pattern}'; the nearest is '{near}'")
        chosen += [one for one in found if one not in chosen]
    return chosen


def _alike(pattern: str, name: str) -> float:
    """How near a pattern comes to a notebook's name, with or without its folder, as far as the
    pattern goes.
    """
    given = pattern.strip("*")[:100]
    ends = (name[: len(given)], name.rpartition("/")[2][: len(given)])
    return (
        1.0 if given in name else max(SequenceMatcher(None, given, each).ratio() for each in ends)
    )


def profiles() -> list[str]:
    return sorted(path.name for path in paths.PARAMS.iterdir() if path.is_dir())


def _of_profile(profile: str) -> Path:
    """The folder of a profile. BadInput where there is none, or a file in it would be passed over
    in silence.
    """
    if profile not in profiles():
        raise BadInput(f"there is no profile '{profile}'{nearest(profile, profiles())}")
    folder = paths.PARAMS / profile
    known = {COMMON, *(place for one in _every() for place in _files(one))}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if not path.is_dir() and not path.name.startswith(".") and name not in known:
            raise BadInput(f"{path} belongs to no notebook{nearest(name, known)}")
        if path.is_symlink() and not path.exists():
            raise BadInput(f"{path} is a link to a file that is not there")
    return folder


def _files(notebook: Notebook) -> tuple[str, ...]:
    """What a profile may say of a notebook: of all, of its folder, of itself; the later beats the
    earlier.

    What stands in the cells of a user's own is the user's: a profile's cast does not overwrite it.
    """
    folder = notebook.name.rpartition("/")[0]
    return *((COMMON,) if folder != "own" else ()), f"{folder}/{COMMON}", f"{notebook.name}.yaml"


def parameters(
    notebook: Notebook, profile: str, extra: dict[str, Any] | None = None
) -> dict[str, Any]:
    """What a profile sets for a notebook, checked against the notebook's own names and types.

    What stands in a common file, the profile's or the folder's, is for the notebooks that have the
    parameter; a notebook's own file may differ.
    """
    folder, defaults = _of_profile(profile), notebook.defaults
    out: dict[str, tuple[str, Any]] = {}  # where a value stands, and the value
    for path in (folder / name for name in _files(notebook)):
        if path.exists():
            where = str(path.relative_to(paths.ROOT))
            given = files.from_yaml(files.text(path, SHORT), where, dict[str, Any] | None) or {}
            known = (
                {name for one in notebooks() for name in one.defaults}
                if path.name == COMMON
                else defaults
            )
            for name in given.keys() - known:
                raise BadInput(f"{where}: unknown parameter '{name}'{nearest(name, list(known))}")
            out |= {name: (where, value) for name, value in given.items()}
    out |= {name: ("-p", value) for name, value in (extra or {}).items()}
    return {
        name: _typed(where, name, value, defaults)
        for name, (where, value) in out.items()
        if name in defaults
    }


def setting(given: dict[str, Any]) -> str:
    """A notebook's data, model and sizes in words, as the header of its page has them.

    A size that several networks or data sets share stands there once.
    """
    model = _listed(given.get("model") or given.get("models"))
    words = {
        "model": model,
        "width": _listed(given.get("width")) if model else "",
        "data": _shown(given.get("data"), given.get("pixels")),
        "pool": _listed(given.get("pool")),
        "epochs": _listed(given.get("epochs")),
        "file": _listed(given.get("file")),
    }
    forms = {
        "width": " at width {}",
        "data": ", {}",
        "pool": ", pool of {} samples",
        "epochs": ", {} epochs",
        "file": ", {}",
    }
    parts = [forms.get(name, "{}").format(value) for name, value in words.items() if value]
    return "".join(parts).removeprefix(", ")


def _listed(value: Any) -> str:
    """Values as words, each once: `256, 16 and 8`; "" where there is none."""
    values = value if isinstance(value, list) else [value]
    words = [f"{one:,}" if isinstance(one, int) else str(one) for one in values if one]
    *first, last = dict.fromkeys(words) or [""]
    return f"{', '.join(first)} and {last}" if first else last


def _shown(data: str | list[str] | None, pixels: int | list[int] | None) -> str:
    """Data sets with the sides of their images; 0 and None say that they are as they are, as bits
    and texts always.
    """
    names = data if isinstance(data, list) else [data] if data else []
    sides = pixels if isinstance(pixels, list) else [pixels]
    sizes = [f" at {side} x {side} pixels" if side else "" for side in sides]
    if len(set(sizes)) == 1:  # said once
        return " and ".join(names) + sizes[0] * bool(names)
    return " and ".join(map("".join, zip(names, sizes, strict=False)))


def _typed(source: str, name: str, value: Any, defaults: dict[str, Any]) -> Any:
    default = defaults[name]
    if (
        isinstance(default, float)
        and type(value) in (int, float)
        and abs(value) <= sys.float_info.max
    ):
        return float(value)
    if type(value) is int and value < (least := int(name in COUNTS)):
        raise BadInput(f"{source}: {name} takes {least} or more, not {value}")
    if None not in (default, value) and (
        isinstance(default, float) or type(value) is not type(default)
    ):
        hint = " (YAML reads 1e-3 as text; write 1.0e-3)" if isinstance(value, str) else ""
        raise BadInput(
            f"{source}: {name} takes {type(default).__name__}, as in {default!r}, not {value!r}{hint}"
        )
    if isinstance(default, list) and default:
        return [_typed(source, name, each, {name: default[0]}) for each in value or []]
    return value


def declare(notebook: Notebook, given: dict[str, Any]) -> list[Step]:
    """The steps that a notebook asks of `realize`; BadInput where its parameters cannot be meant."""
    space: dict[str, Any] = {"__name__": "__main__"}
    # as in JupyterLab; workers of this machine inherit it
    if (beside := str(notebook.path.parent)) not in sys.path:
        sys.path.append(beside)
    with lab.planning(), contextlib.redirect_stdout(io.StringIO()):
        try:
            for number, cell in enumerate(notebook.text.cells):
                if cell.cell_type == "code":
                    # a kind that is defined in it is known by its text
                    name = f"{notebook.path}, cell {number}"
                    linecache.cache[name] = (
                        len(cell.source),
                        None,
                        cell.source.splitlines(keepends=True),
                        name,
                    )
                    exec(compile(cell.source, name, "exec", dont_inherit=True), space)
                    if "parameters" in cell.metadata.get("tags", []):
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


def run_name(profile: str, extra: Mapping[str, Any]) -> str:
    """The folder of a run: its profile, and what `-p` changes in it: `quick+seed=1`. Safe as the
    name of a file.

    What is too long or cannot stand in a name is cut or replaced, and a digest of the whole ends
    it.
    """
    texts = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in sorted(extra.items())
    }
    whole = "".join(f"+{name}={value}" for name, value in texts.items())
    bare = whole.translate(str.maketrans("", "", ' []"'))  # [1, 2] is 1,2
    safe = re.sub(r"[^\w.,=+-]", "_", bare, flags=re.ASCII)
    if safe == bare and len(safe) <= LONGEST and "[[" not in whole:
        return profile + safe
    return f"{profile}{safe[:LONGEST]}-{sha256(whole.encode()).hexdigest()[:8]}"


def read_parameters(pairs: Iterable[str]) -> dict[str, Any]:
    """`-p name=value` as typed at the shell; values are JSON where they can be, text where they
    cannot.
    """
    out: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise BadInput(f"-p takes name=value, not '{pair}'")
        if name in out:
            raise BadInput(f"-p gives {name} twice")
        try:
            out[name] = json.loads(text)
        except (ValueError, RecursionError):
            out[name] = text
    return out
