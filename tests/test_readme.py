"""Commands of README and of documents do what is said, typed as they are printed in a shell with the
environment.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from leak_atlas.__main__ import commands
from leak_atlas.engine import paths

DOCUMENTS = ("README.md", "docs/answers.md", "docs/own.md", "docs/settings.md")
README = "\n".join((paths.ROOT / name).read_text() for name in DOCUMENTS)
ANSWERS = (paths.ROOT / "docs/answers.md").read_text()
FENCED = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
BLOCKS = [block for language, block in FENCED if not language]  # of the shell
COMMANDS = [
    shlex.join(shlex.split(line, comments=True)) for block in BLOCKS for line in block.splitlines()
]
OURS = [line for line in COMMANDS if re.match(r"(\w+=\S+ )?leak-atlas ", line)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As after `make env`: the project's folders, an environment in .venv, and outputs of its own."""
    for name in ("lib", "notebooks", "params"):
        (tmp_path / name).symlink_to(paths.ROOT / name)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    (tmp_path / "outputs").mkdir()
    (tmp_path / "bin").mkdir()  # an environment that was made before the command has none
    (tmp_path / "bin/leak-atlas").write_text('#!/bin/sh\nexec python -m leak_atlas "$@"\n')
    (tmp_path / "bin/leak-atlas").chmod(0o755)
    return tmp_path


def typed(line: str, folder: Path) -> str:
    """What a command prints in an activated environment, without what this test would set."""
    own = {
        "PATH": f"{folder}/bin:{folder}/.venv/bin:/usr/bin:/bin",
        "HOME": os.environ.get("HOME", "/"),
        "PYTHONPATH": str(folder / "lib"),
        "LEAK_ATLAS_OUTPUTS": str(folder / "outputs"),
    }
    done = subprocess.run(
        ["sh", "-c", line], cwd=folder, env=own, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_every_command_is_shown() -> None:
    shown = {line.rpartition("leak-atlas ")[2].split()[0] for line in OURS}
    assert shown | {"site", "app"} == set(commands.commands), "site and make app are shown"
    assert "-m leak_atlas" not in README


@pytest.mark.parametrize("name", sorted(commands.commands))
def test_a_command_answers_to_help_with_an_example_and_its_options(name: str) -> None:
    shown = CliRunner().invoke(commands, [name, "--help"]).output
    assert f"Usage: commands {name}" in shown and f"Example: leak-atlas {name}" in shown
    lines = [line for line in OURS if f"leak-atlas {name}" in line]
    options = {option for line in lines for option in re.findall(r" (--?[a-z-]+)\b", line)}
    assert all(re.search(rf"(?<!\S){option}\b", shown) for option in options)


def test_help_comes_at_once() -> None:
    """The list of commands imports no room."""
    script = "import sys, leak_atlas.__main__ as m; m.main([]); print(sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert "reproduce" in loaded
    assert not re.search(r"'(torch|numpy|leak_atlas\.(lab|recipe|report))'", loaded)


@pytest.mark.notebook
def test_a_day_with_one_notebook(folder: Path) -> None:
    """Stock papermill, a batch with `-p`, the data sets: each as printed."""
    wanted = r"jupytext|papermill|fig15 .*-p seed=1|leak-atlas data$"
    chosen = [line for line in COMMANDS if re.search(wanted, line)]
    assert len(chosen) == 4
    printed = {line: typed(line, folder) for line in chosen}
    text = (folder / "outputs/fig15_smoke.ipynb").read_text()
    assert (
        "injected-parameters" in text
        and '"seed = 1' in text
        and '"epochs = 2' in text
        and '"dev = 40' in text
    )
    batch = next(text for line, text in printed.items() if "leak-atlas reproduce" in line)
    assert "1 of 1 notebooks executed; read outputs/runs/smoke+seed=1/index.html" in batch
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
    others = {"PYTHONPATH", "JUPYTER_PATH", "LEAK_ATLAS_SEEN"}  # Python's, Jupyter's, a test's
    assert found - listed <= others
    assert {name for name in listed if name.startswith("LEAK_ATLAS_")} <= found


def _shown(value: float, decimals: int) -> str:
    """As the table writes a number: `−.035`, `17.3`, `0`."""
    digits = f"{abs(value):.{decimals}f}"
    if not float(digits):
        return "0"
    return ("−" if value < 0 else "") + digits.removeprefix("0")


FINDING = re.compile(
    r"\[(?P<verdict>yes|no|undecided|underpowered|manipulation check failed)[^\]]*\]"
    r"\((?:\.\./)?outputs/reports/(?P<profile>[\w-]+)/(?P<page>[^)]+)\.ipynb\)"
    r": (?P<value>−?[\d.]+)(?: epochs)? \((?P<low>−?[\d.]+) to (?P<high>−?[\d.]+)\)"
)
WORDS = {
    "holds": "yes",
    "fails": "no",
    "undecided": "undecided",
    "underpowered": "underpowered",
    "inert": "manipulation check failed",
}
FINDINGS = list(FINDING.finditer(README))


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda one: f"{one['profile']}/{one['page']}")
def test_a_finding_is_a_claim_of_its_report(finding: re.Match[str]) -> None:
    reports = json.loads(
        (paths.ROOT / f"outputs/reports/{finding['profile']}/results.json").read_text()
    )
    (report,) = [one for one in reports if one["notebook"] == finding["page"]]
    shown = finding.group("value", "low", "high")
    decimals = max(len(number.partition(".")[2]) for number in shown)
    measured = [
        (
            WORDS[claim["verdict"]],
            *(_shown(claim[part], decimals) for part in ("value", "low", "high")),
        )
        for claim in report["claims"]
    ]
    assert finding.group("verdict", "value", "low", "high") in measured


def test_each_verdict_of_the_table_has_its_number() -> None:
    links = re.findall(r"\]\((?:\.\./)?outputs/reports/[^)]+\.ipynb\)", ANSWERS)
    assert len(links) == len(FINDINGS) > 50


# A verdict of README's table, and the same verdict of docs/answers.md in the same row.
VERDICT = re.compile(
    r"\[(?P<verdict>[a-z ]*[a-z])[^\]]*\]\((?:\.\./)?outputs/reports/(?P<report>[^)]+)\.ipynb\)"
)
DRAWS = re.compile(r"(?P<draws>\w+ draws)\]\((?:docs/)?draws\.md\): (?P<verdict>\w+)")


def _verdicts(row: str) -> set[tuple[str, ...]]:
    """What a row of a table says: reports with verdicts, and those of several draws."""
    reports = {one.group("report", "verdict") for one in VERDICT.finditer(row)}
    return reports | {one.group("draws", "verdict") for one in DRAWS.finditer(row)}


def test_each_row_of_the_readme_is_a_row_of_the_answers() -> None:
    short, full = (
        [_verdicts(row) for row in (paths.ROOT / name).read_text().splitlines() if "| [" in row]
        for name in ("README.md", "docs/answers.md")
    )
    short = [row for row in short if row]
    assert len(short) > 10
    for row in short:
        assert row in full
    links = re.findall(r"outputs/reports/([^)]+)\.ipynb", (paths.ROOT / "README.md").read_text())
    assert {*links} == {report for row in short for report, _ in row if "/" in report}


def test_the_count_of_printed_numbers_is_that_of_their_table() -> None:
    table = (paths.ROOT / "docs/printed_numbers.md").read_text()
    (count,) = re.findall(r"^(\d+ of \d+ numbers) of the papers lie", table, re.MULTILINE)
    assert f"{count} lie in our intervals" in README


def test_pooled_draws_are_those_of_their_document() -> None:
    pooled = re.findall(r"draws\]\((?:docs/)?draws.md\): \w+, (\S+) \((\S+) to (\S+?)\)", README)
    document = (paths.ROOT / "docs/draws.md").read_text().replace("0.", ".")
    assert pooled
    for value, low, high in pooled:
        assert f"| {value} [{low}, {high}] |" in document
