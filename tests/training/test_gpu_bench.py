"""What a GPU will be asked to measure runs on the CPU, at sizes that take seconds."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from bench import equivalence as module
from bench import gpu

from leak_atlas.recipe import Model, Schedule

CPU = torch.device("cpu")
TINY = gpu.Size(
    width=2,
    images=40,
    pixels=8,
    batch=16,
    epochs=3,
    workers=0,
    fleet=(1, 2),
    widths=(2,),
    fleet_images=40,
    deep=(("resnet18", 1.0),),
    deep_pixels=8,
)


def test_every_section_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = gpu.measure(CPU, TINY, tmp_path / "gpu.json", strict=True)
    assert not report["missing"]
    assert {"usual loop", "eager bf16", "host, eager", "width 2, 2 models"} <= set(report["rows"])
    assert report["rows"]["largest difference to eager"] == {"weight": 0.0, "with_any_kernel": 0.0}
    assert all(np.isfinite(value) for row in report["rows"].values() for value in row.values())
    assert json.loads((tmp_path / "gpu.json").read_text())["rows"].keys() == report["rows"].keys()
    assert "usual loop" in capsys.readouterr().out


def test_equivalence_runs() -> None:
    schedule = Schedule(1, batch=500, lr=0.01)
    model = Model("resnet10", width=2)
    table = module.equivalence(CPU, seeds=2, schedule=schedule, model=model)
    assert set(table) == set(module.MARGINS)
