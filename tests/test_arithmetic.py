"""Every processor with AVX2 computes with the same instructions, except where a user or bfloat16
needs others.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from leak_atlas import ARITHMETIC, PORTABLE
from leak_atlas.lab.plans import plan
from leak_atlas.lab.run import arithmetic_for
from leak_atlas.recipe import Data, Model, RandomHalves, Schedule, Setup
from leak_atlas.recipe.subjects import Precision

VARIABLE = "ONEDNN_MAX_CPU_ISA"
PROCESSOR = Path("/proc/cpuinfo")

pytestmark = pytest.mark.skipif(
    not PROCESSOR.exists() or " avx2 " not in PROCESSOR.read_text(), reason="no AVX2 here"
)


def set_by_import(**given: str) -> str:
    """The value of `VARIABLE` after `import leak_atlas` in a new process."""
    environment = {name: value for name, value in os.environ.items() if name not in PORTABLE}
    code = f"import leak_atlas, os; print(os.environ.get({VARIABLE!r}, ''))"
    command = [sys.executable, "-c", code]
    ended = subprocess.run(
        command, env=environment | given, capture_output=True, text=True, check=True
    )
    return ended.stdout.strip()


def test_import_chooses_the_portable_instructions() -> None:
    assert set_by_import() == "AVX2"
    assert torch.backends.cpu.get_cpu_capability() == "AVX2"


def test_a_user_chooses_others() -> None:
    assert set_by_import(**{ARITHMETIC: "native"}) == ""
    assert (
        set_by_import(**{ARITHMETIC: "native"} | PORTABLE) == ""
    )  # inherited from another process
    assert set_by_import(**{VARIABLE: "SSE41"}) == "SSE41"


@pytest.mark.parametrize(("precision", "expected"), [("fp32", "AVX2"), ("bf16", None)])
def test_bfloat16_on_a_cpu_has_the_processors_own(precision: Precision, expected: str) -> None:
    design, model = RandomHalves(20), Model("fc", 2)
    setup = Setup(Data("digits-bits"), design, model, Schedule(1), 2, precision=precision)
    with arithmetic_for(plan(setup.trained())):
        assert os.environ.get(VARIABLE) == expected
    assert os.environ[VARIABLE] == "AVX2"
