"""What users mistype and what others may have made to do harm: each is one clear line, exit code 2,
and leaves nothing.

A case is a command line in a folder of its own, where some files lie; `{here}` stands for that
folder.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from leak_atlas import LINE, BadInput, one_line
from leak_atlas.__main__ import exit_code, main
from leak_atlas.engine import files, paths
from leak_atlas.lab import cluster

OWN01 = "layers/own01_direction_or_length"


def everything(folder: Path) -> dict[str, int]:
    """The size of each file below a folder."""
    return {str(path): path.lstat().st_size for path in folder.rglob("*") if not path.is_dir()}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEAK_ATLAS_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(cluster, "PATIENCE", 0.5)
    return tmp_path


def refused(line: str, words: str, capsys: pytest.CaptureFixture[str], here: Path) -> None:
    """One line with these words, exit code 2, and nothing changed on the disk. Only /runs/ may have
    new files: there a batch reports what failed.
    """
    parts = [part.replace("{here}", str(here)).replace("{empty}", "") for part in line.split()]
    before = everything(here)
    assert main(parts) == 2
    errors = capsys.readouterr().err
    *warnings, error = errors.strip().splitlines()
    assert error.startswith(("leak atlas: ", "failed: ")) and words in error, error
    assert len(error) <= LINE + 100 and all(len(each) <= LINE + 100 for each in warnings), (
        "a line is short"
    )
    assert "Traceback" not in errors
    assert len(warnings) <= 1
    after = everything(here)
    new = after.keys() - before.keys()
    assert not {each for each in new if "/runs/" not in each}, "nothing is left"
    assert {path: after.get(path) for path in before} == before, "nothing is lost"


# ---------------------------------------------------------------- command lines

LINES = [
    ("nonsense", "No such command 'nonsense'"),
    ("audit", "Missing argument 'FILE'"),
    ("audit nope.npz", "cannot read nope.npz"),
    ("audit nope.npz --name index", "cannot be named 'index'"),
    ("model nope.pt", "cannot read nope.pt"),
    ("plan --profile quik", "did you mean 'quick'"),
    ("plan {empty}", "an empty pattern"),
    ("plan layers/fig99", "no notebook matches"),
    ("reproduce --workers 0", "--workers"),
    ("reproduce --queue bus", "'bus' is not one of 'slurm'"),
    (f"reproduce {OWN01} --profile smoke --queue slurm", "no command 'sbatch' here"),
    (f"plan {OWN01} --profile smoke --scheduler tcp://127.0.0.1:1", "no Dask scheduler answers"),
    ("plan -p epochs", "-p takes name=value"),
    ("plan -p epoch=3", "did you mean 'epochs'"),
    ("data get cifar11", "did you mean 'cifar10'"),
    ("report nothing", "there is no run of profile 'nothing'"),
]


@pytest.mark.parametrize(("line", "words"), LINES)
def test_a_command_line_is_answered(
    line: str, words: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(line, words, capsys, here)


VARIABLES = [
    (variable, value, words)
    for variable in ("LEAK_ATLAS_STORE", "LEAK_ATLAS_OUTPUTS", "LEAK_ATLAS_DATA")
    for value, words in (
        ("", f"{variable} is set but empty"),
        ("~nobody-of-this-name/x", f"{variable} cannot be '~nobody"),
    )
]


@pytest.mark.parametrize(("variable", "value", "words"), VARIABLES)
def test_a_variable_is_answered(
    variable: str, value: str, words: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv(variable, value)
    line = "data list" if variable.endswith("DATA") else f"plan {OWN01} --profile smoke"
    refused(line, words, capsys, here)


@pytest.mark.parametrize("variable", ["LEAK_ATLAS_STORE", "LEAK_ATLAS_OUTPUTS"])
@pytest.mark.parametrize("place", ["file", "file/below", "circle"])
def test_a_folder_that_cannot_be_one_is_named(
    variable: str, place: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    (here / "file").touch()
    (here / "circle").symlink_to("circle")
    monkeypatch.setenv(variable, str(here / place))
    refused(f"reproduce {OWN01} --profile smoke", str(here / place.split("/")[0]), capsys, here)


# ---------------------------------------------------------------- parameters

PARAMETERS = [
    # a number of another kind, or outside its range
    ("lr: 1e-3", "as in 1.0e-3"),
    ("lr: .nan", "lr takes"),
    ("lr: -0.1", "Schedule.lr takes 0 or more"),
    ("epochs: -1", "Schedule.epochs takes 1 or more"),
    ("epochs: 100000000000000000000", "epochs takes int"),
    ("pixels: 4000", "Data.pixels cannot be 4000"),
    # a name that nobody knows
    ("model: resnet11", "did you mean 'resnet1"),
    ("learning_rate: 0.1", "unknown parameter 'learning_rate'"),
    ("yes: 3", "takes names, not True: write it in quotes"),
    # another form
    ("- lr", "takes dict"),
    ("lr: [", "is not YAML"),
    (b"lr: \xff\xfe", "is not UTF-8"),
    ("epochs: !!python/object/apply:os.system [id]", "is not YAML"),
    ("lr: " + 3000 * "[" + 3000 * "]", "is not YAML"),
]


@pytest.fixture
def odd(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A profile's file of parameters for one notebook that has every usual one."""
    text = """\
# %% [markdown]
# # Odd

# %% tags=["parameters"]
data = "fashion-mnist-small"
pixels = 8
model = "resnet10"
width = 2
lr = 0.1
epochs = 2
batch = 32
augment = 0
pairs = 2

# %%
from leak_atlas import lab
from leak_atlas.recipe import Augment, Data, Halves, Model, Schedule, Setup

schedule = Schedule(epochs, batch, lr=lr, augment=Augment(augment) if augment else None)
lab.realize(Setup(Data(data, pixels), Halves(80, test=40), Model(model, width), schedule, pairs).pairs())
"""
    (here / "notebooks/odd").mkdir(parents=True)
    (here / "notebooks/odd/one.py").write_text(text)
    (here / "params/odd/odd").mkdir(parents=True)
    for name, place in (("NOTEBOOKS", "notebooks"), ("PARAMS", "params"), ("ROOT", "")):
        monkeypatch.setattr(paths, name, here / place)
    return here / "params/odd/odd/one.yaml"


@pytest.mark.parametrize(("content", "words"), PARAMETERS, ids=lambda case: repr(case)[:40])
def test_a_file_of_parameters_is_answered(
    content: str | bytes, words: str, odd: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd.write_bytes(content if isinstance(content, bytes) else content.encode())
    refused("plan --profile odd", words, capsys, here)


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        ("lr=1e999", "lr takes float"),
        ("width=100000000", "resnet10 cannot be built with these sizes"),
    ],
)
def test_a_parameter_at_the_shell_is_answered(
    pair: str, words: str, odd: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(f"plan --profile odd -p {pair}", words, capsys, here)


def test_a_file_that_no_notebook_would_read_is_named(odd: Path, here: Path, capsys: Any) -> None:
    odd.with_name("onee.yaml").write_text("lr: 1.0")
    refused("plan --profile odd", "did you mean 'odd/one.yaml'", capsys, here)


PARAMETERS_CELL = '# %% [markdown]\n# # T\n\n# %% tags=["parameters"]\n'
NOTEBOOKS = [
    ("# %%\n1", "needs a cell of text"),
    ("# %% [markdown]\n# # T\n\n# %%\n1", "exactly one cell tagged 'parameters'"),
    (PARAMETERS_CELL + "a = 1\na = 2", "gives a name twice"),
    (PARAMETERS_CELL + "print(1)", "takes one 'name = literal' a line"),
    (PARAMETERS_CELL + "a = 1\n\n# %%\n1 / 0", "ZeroDivisionError"),
    (PARAMETERS_CELL + "a = 1\n\n# %%\nimport sys\nsys.exit(3)", "SystemExit: 3"),
]


@pytest.mark.parametrize(("content", "words"), NOTEBOOKS, ids=lambda case: repr(case)[-30:])
def test_a_notebook_that_is_none_is_named(
    content: str | bytes, words: str, odd: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = content if isinstance(content, bytes) else content.encode()
    (here / "notebooks/odd/one.py").write_bytes(raw)
    refused("plan --profile odd", words, capsys, here)


# ---------------------------------------------------------------- what a run has left

EXECUTED = '{"notebook": "odd/one", "title": "Odd", "status": "executed"}'
CLAIM = dict.fromkeys(("name", "text", "quantity", "rule", "paper", "control"), "x") | {
    "verdict": "holds",
    "n": 3,
}
CLAIM |= {"value": 0.5, "low": 0.4, "high": None}


def judged(**changes: Any) -> dict[str, str | bytes]:
    """A run's files, with a claim as another version of the library may have written it."""
    row = {name: value for name, value in (CLAIM | changes).items() if value != "missing"}
    return {"one.run.json": EXECUTED, "one.claims.json": json.dumps([row]), "one.ipynb": "{"}


RUNS = [
    (judged(), "one.ipynb is not a notebook"),
    ({"one.run.json": "[]"}, "one.run.json takes dict"),
    ({"one.run.json": b"\xff"}, "one.run.json is not UTF-8"),
    ({"one.run.json": EXECUTED, "one.claims.json": "{"}, "one.claims.json is not JSON"),
    ({"one.run.json": EXECUTED, "one.claims.json": "[1]"}, "one.claims.json: 0 takes dict"),
]


@pytest.mark.parametrize(("left", "words"), RUNS, ids=lambda case: repr(case)[-50:])
def test_what_a_run_has_left_is_checked(
    left: dict[str, str | bytes], words: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = paths.runs("odd") / "odd"
    place.mkdir(parents=True)
    for name, content in left.items():
        (place / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    refused("report odd", words, capsys, here)


# ---------------------------------------------------------------- how a command ends


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (BadInput("a\nb" + 10**6 * "c"), 2, "a b"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (OSError(28, "No space left on device"), 2, "output: No space left on device"),
        (PermissionError(13, "Permission denied", "x.txt"), 2, "x.txt: Permission denied"),
        (MemoryError(), 2, "out of memory"),
    ],
)
def test_what_stops_a_command_is_one_line(
    error: BaseException, code: int, words: str, capsys: Any
) -> None:
    def work() -> int:
        raise error

    assert exit_code(work) == code
    errors = capsys.readouterr().err
    assert words in errors
    assert errors.count("\n") == 1
    assert len(errors) < LINE + 20


def test_a_line_is_short_and_keeps_both_ends() -> None:
    assert one_line("a\x1b[31m\r\n\tb\u200bc") == "a [31m b c"
    long = one_line("begin " + 10**7 * "x" + " end")
    assert len(long) == LINE
    assert long.startswith("begin x")
    assert long.endswith("x end")
    assert " ... " in long


# ---------------------------------------------------------------- the reader itself


def test_files_are_read_in_utf8_and_written_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.json"
    files.write_text(path, '{"ü": 1}')
    assert files.read_json(path, dict[str, int]) == {"ü": 1}
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert files.read_json(path, dict[str, float]) == {"a": 1.0}
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
        with pytest.raises(OSError, match="full"):
            files.write_text(path, "other")
    assert [each.name for each in tmp_path.iterdir()] == ["x.json"]
    assert b"a" in path.read_bytes()
    path.write_text('{"cells": 5}')
    with pytest.raises(BadInput, match="is not a notebook"):
        files.read_notebook(path)
