"""The wheel works in a project of somebody else, who has a package `lib` too."""

import os
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from leak_atlas.engine import paths

PROJECT = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())
SCRIPT = """
import lib
from pathlib import Path
from leak_atlas import own
import leak_atlas

assert lib.THEIRS and Path(leak_atlas.__file__).parents[1] == Path("site").resolve()
arrays = own.read("mine.npz")
result = own.audit(arrays)
assert result.verdict() and len(result.auc) > 3
shadows = arrays.target, arrays.labels, arrays.shadows, arrays.in_shadow
population = arrays.population, arrays.population_labels, arrays.population_shadows
for scores in (own.lira(*shadows), own.rmia(*shadows, *population), own.base(*shadows)):
    assert scores.shape == (300,)
"""


def install(target: Path) -> None:
    """The package as a wheel installs it; without the build backend, the files that it would pack."""
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    if not find_spec("hatchling"):
        for package in map(Path, wheel["packages"]):
            no_caches = shutil.ignore_patterns("__pycache__")
            shutil.copytree(paths.ROOT / package, target / package.name, ignore=no_caches)
        for source, place in wheel["force-include"].items():
            (target / place).parent.mkdir(parents=True)
            shutil.copy(paths.ROOT / source, target / place)
        return
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    built = target.with_name("wheel")
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", built, paths.ROOT]
    subprocess.run([*pip, *build], check=True)
    unpack = ["install", "--no-deps", "--no-index", "--target", target, *built.iterdir()]
    subprocess.run([*pip, *unpack], check=True)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a package `lib`, the wheel in `site`, and logits of a network that leaks."""
    folder = tmp_path_factory.mktemp("project")
    install(folder / "site")
    (folder / "lib").mkdir()
    (folder / "lib/__init__.py").write_text("THEIRS = True")
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300)
    trained = rng.random((9, 300)) < 0.5  # on which samples; the first model is the target
    right = np.eye(3)[labels] * 3
    logits = right + rng.normal(size=(9, 300, 3)) + right * trained[:, :, None]
    others = rng.normal(size=(9, 60, 3)) + right[:60]
    np.savez(
        folder / "mine.npz",
        target=logits[0],
        labels=labels,
        member=trained[0],
        shadows=logits[1:],
        in_shadow=trained[1:],
        population=others[0],
        population_labels=labels[:60],
        population_shadows=others[1:],
    )
    return folder


def python(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a Python there, without the repository on its path."""
    clean = {key: text for key, text in os.environ.items() if not key.startswith("LEAK_ATLAS_")}
    environment = clean | {"PYTHONPATH": f"{project / 'site'}:{project}"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_the_audit_api_beside_a_package_lib(project: Path) -> None:
    done = python(project, "-c", SCRIPT)
    assert done.returncode == 0, done.stderr


@pytest.mark.notebook
def test_commands_need_no_repository(project: Path) -> None:
    done = python(project, "-m", "leak_atlas", "audit", "mine.npz", "--fail-above", "auc=0.5")
    assert done.returncode == 1 and "above the limit" in done.stderr, done.stderr
    assert (project / "outputs/runs/own/mine.html").exists()
    done = python(project, "-m", "leak_atlas", "data", "get", "fashion-mnist-small")
    assert done.returncode == 0 and "is ready" in done.stdout, done.stderr


def test_reproduce_asks_for_the_repository_in_one_line(project: Path) -> None:
    done = python(project, "-m", "leak_atlas", "reproduce")
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert "a clone of the repository" in done.stderr
