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


def test_the_graph_sections_are_there_on_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their bookkeeping, with times that are made up."""

    class Device:
        type = "cuda"

    report = gpu.Report()
    monkeypatch.setattr(gpu, "images", lambda *_: None)
    monkeypatch.setattr(gpu, "pace", lambda *_, **__: (np.array([0.4, 0.5, 0.6]), 3.0))
    monkeypatch.setattr(gpu, "usual", lambda *_, **__: np.array([2.0, 2.5, 3.0]))
    monkeypatch.setattr(gpu, "host", lambda _, plan: {"eager": 6.0, "graph": 0.1}[plan])
    monkeypatch.setattr(gpu, "equality", lambda *_, **__: 0.0)
    monkeypatch.setattr(gpu, "fused", lambda *_: 0.001)
    for section in gpu.sections(Device(), gpu.Size(), report).values():  # type: ignore[arg-type]
        section()
    expected = {
        "usual loop over graph": 5.0,
        "usual loop over graph, 100 epochs": 250 / 53,
        "floor over graph with streams": 0.21 / 0.5,
        "MFU, graph alone": 3.33e9 * 25_000 / 0.5 / 790e12,
        "host: 0.3 ms over graph": 3.0,
    }
    found = {name: report["ratios"][name]["ratio"] for name in expected}
    assert found == pytest.approx(expected, rel=0.01)
    assert report["rows"]["width 16, 4 models"]["gain"] == pytest.approx(0.5 / 50 * 1e3)


def test_a_failure_is_noted_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> None:
        raise RuntimeError("no kernel")

    monkeypatch.setattr(gpu, "sections", lambda *_: {"one": failing, "two": lambda: None})
    assert gpu.measure(CPU, TINY, None)["missing"] == {"one": "RuntimeError: no kernel"}
    monkeypatch.setattr(gpu, "LIMIT", -1.0)
    assert set(gpu.measure(CPU, TINY, None)["missing"].values()) == {"no time left"}


def test_equivalence_runs_and_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule, model = Schedule(1, batch=500, lr=0.01), Model("resnet10", width=2)
    table = module.equivalence(CPU, seeds=2, schedule=schedule, model=model)
    assert set(table) == set(module.MARGINS)
    made = iter([(0.5, 0.1, 0.6)] * 4 + [(0.5, 0.2, 0.7), (0.5, 0.2, 0.5)] * 2)
    monkeypatch.setattr(
        module, "fit_many", lambda jobs, _: ((seed, None) for seed, _ in enumerate(jobs))
    )
    monkeypatch.setattr(module, "quantities", lambda *_: next(made))
    table = module.equivalence(CPU, seeds=4, schedule=schedule, model=model)
    assert [row["verdict"] for row in table.values()] == ["equivalent", "different", "undecided"]
