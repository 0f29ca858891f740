"""README's commands do what it says, typed as they are printed in a shell that activated nothing."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from leak_atlas.engine import paths

README = (paths.ROOT / "README.md").read_text()
FENCED = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
BLOCKS = [block for language, block in FENCED if not language]  # of the shell
COMMANDS = [
    shlex.join(shlex.split(line, comments=True)) for block in BLOCKS for line in block.splitlines()
]
OURS = [line for line in COMMANDS if " -m leak_atlas." in line]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As after `make env`: the project's folders, an environment in .venv, and outputs of its own."""
    for name in ("lib", "notebooks", "params"):
        (tmp_path / name).symlink_to(paths.ROOT / name)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    (tmp_path / "outputs").mkdir()
    return tmp_path


def typed(line: str, folder: Path) -> str:
    """What a command prints; without what an activated environment, or this test, would set."""
    own = {
        "PATH": "/usr/bin:/bin",
        "HOME": os.environ.get("HOME", "/"),
        "LEAK_ATLAS_OUTPUTS": str(folder / "outputs"),
    }
    done = subprocess.run(
        ["sh", "-c", line], cwd=folder, env=own, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_every_command_has_an_interpreter() -> None:
    assert len(OURS) >= 8 and all(
        re.search(r"(^|=\S+ )\.venv/bin/python -m leak_atlas\.", line) for line in OURS
    )
    assert not re.search(r"(?<!/)\bpython -m leak_atlas", README)


VERBS = {line: re.findall(r"leak_atlas\.[\w.]+", line)[0] for line in OURS}


@pytest.mark.parametrize("verb", sorted(set(VERBS.values())))
def test_modules_answer_to_help(verb: str, folder: Path) -> None:
    """With the command as it can be typed again, and with each option that README gives it."""
    said = typed(f".venv/bin/python -m {verb} --help", folder)
    assert f"usage: .venv/bin/python -m {verb} " in said
    lines = [line.partition(f"{verb} ")[2] for line in OURS if VERBS[line] == verb]
    options = {option for line in lines for option in re.findall(r" (--?[a-z-]+)\b", line)}
    assert all(re.search(rf"(?<!\S){option}\b", said) for option in options)


@pytest.mark.notebook
def test_a_day_with_one_notebook(folder: Path) -> None:
    """Stock papermill, a batch with `-p`, its report: each as printed."""
    wanted = r"jupytext|papermill|fig15 -p seed=1|-m leak_atlas\.report smoke|-m leak_atlas\.data$"
    chosen = [line for line in COMMANDS if re.search(wanted, line)]
    assert len(chosen) == 5
    # writes into README: elsewhere
    publishes = next(line for line in chosen if "leak_atlas.report smoke" in line)
    found = {
        line: typed(line, folder) for line in sorted(chosen, key=chosen.index) if line != publishes
    }
    text = (folder / "outputs/fig15_smoke.ipynb").read_text()
    assert (
        "injected-parameters" in text
        and '"seed = 1' in text
        and '"epochs = 2' in text
        and '"dev = 40' in text
    )
    batch = next(said for line, said in found.items() if "leak_atlas.report.batch" in line)
    assert re.search(
        r"1 of 1 notebooks executed; of \d+ claims .*; read outputs/runs/smoke\+seed=1/index.html",
        batch,
    )
    assert not (folder / "outputs/runs/smoke").exists()


def test_make_has_the_targets() -> None:
    for target in {line.split()[1] for line in COMMANDS if line.startswith("make ")} | {
        "lab",
        "help",
    }:
        assert (
            subprocess.run(["make", "-n", target], cwd=paths.ROOT, capture_output=True).returncode
            == 0
        )


def asked() -> Iterator[str]:
    """Environment variables that the library asks for, or tests of ours."""
    for path in sorted((paths.ROOT / "lib").rglob("*.py")):
        yield from re.findall(r"""environ(?:\.get\(|\[)["'](\w+)["']""", path.read_text())
    for path in sorted(
        (*(paths.ROOT / "lib").rglob("*.py"), *(paths.ROOT / "tests").rglob("*.py"))
    ):
        yield from re.findall(r"LEAK_ATLAS_[A-Z]+", path.read_text())


def test_every_environment_variable_is_in_the_table() -> None:
    table = README[README.index("| Variable |") :].split("\n\n")[0]
    listed, found = {*re.findall(r"`([A-Z_]{4,})`", table)}, {*asked()}
    assert found - listed <= {"PYTHONPATH", "LEAK_ATLAS_SEEN"}, "the shell's own, and a test's"
    assert {name for name in listed if name.startswith("LEAK_ATLAS_")} <= found
