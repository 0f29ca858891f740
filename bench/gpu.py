"""Training on one GPU: how fast, and whether it is still the same training.

    python -m bench.gpu              speed, in at most 8 minutes
    python -m bench.gpu equivalence  eager float32 against recorded bfloat16, over seeds

Both print a table and leave it as JSON in $OUT (`gpu.json`, `equivalence.json`) where that is set;
the speed table is written after each section, so that a run cut short keeps what it has. Images are
random: the time does not depend on what they show. An epoch's time is between the ends of two
epochs of one training, both with an idle stream: the drawing and sending of its tables is in it,
recording is not (that is `setup`). Several trainings on streams: the time of an epoch divided by
their number.

The usual loop: four DataLoader workers, started anew for each epoch, cut and mirror image by image
(with torch, which is faster than PIL), float32 with channels first and torch's own default for
TF32, `.item()` twice a step. Our float32 is real float32, without TF32: slower than the usual
loop's on purpose.

Floors are computed, never measured: floating-point operations at 790 TFLOP/s plus the bytes of
fused bfloat16 layers at 4.3 TB/s, one after the other, for the images stated.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from bench.data import CROP, MEAN, STD
from bench.equivalence import equivalence
from bench.ratios import Ratio
from leak_atlas.data import augmentation
from leak_atlas.data.resident import Resident
from leak_atlas.models import build, skeleton
from leak_atlas.recipe import Augment, Model, RelaxLoss, Schedule
from leak_atlas.training.cost import anatomy
from leak_atlas.training.loop import Mode, Training, fit_many, training

PEAK = 790e12  # FLOP/s of a large bfloat16 matrix product on an H200
LIMIT = 420.0  # seconds after which no section is begun


@dataclass(frozen=True)
class Size:
    """What is run; the defaults are what is reported."""

    width: int = 64
    images: int = 25_000
    pixels: int = 32
    batch: int = 128
    epochs: int = 5  # of a training; the first is not timed
    floor: float = 0.21  # seconds an epoch
    workers: int = 4
    streams: tuple[int, ...] = (2, 4)
    fleet: tuple[int, ...] = (1, 4, 16)
    widths: tuple[int, ...] = (16, 64)
    fleet_images: int = 6_400
    # name, floor in seconds of 50,000 images of 64 pixels; 6,400 of them are run
    deep: tuple[tuple[str, float], ...] = (("resnet18", 1.66), ("resnet34", 3.1), ("resnet50", 6.4))
    deep_pixels: int = 64

    @property
    def model(self) -> Model:
        return Model("resnet18", width=self.width)


def images(n: int, pixels: int, device: torch.device) -> Resident:
    """Random colour images, ten classes."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(0, 256, (n, pixels, pixels, 3), dtype=torch.uint8, generator=generator)
    y = torch.randint(0, 10, (n,), generator=generator)
    mean, std = torch.tensor(MEAN, device=device), torch.tensor(STD, device=device)
    return Resident(x.to(device), y.to(device), mean, std, n, 10)


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


# ---------------------------------------------------------------- the usual loop


class Usual(Dataset[tuple[Tensor, int]]):
    """Image by image on the CPU, as most training code does it."""

    def __init__(self, data: Resident) -> None:
        self.pixels = data.samples.cpu().permute(0, 3, 1, 2).contiguous()
        self.labels = data.labels.tolist()
        self.mean, self.std = data.mean.cpu()[:, None, None], data.std.cpu()[:, None, None]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        image, size = functional.pad(self.pixels[i], [CROP] * 4), self.pixels.shape[-1]
        top, left, mirrored = torch.randint(2 * CROP + 1, (3,)).tolist()
        image = image[:, top : top + size, left : left + size]
        image = image.flip(2) if mirrored % 2 else image
        return (image.float() / 255 - self.mean) / self.std, self.labels[i]


def usual(data: Resident, size: Size, loader: bool) -> np.ndarray:
    """Seconds of each epoch but the first, through a DataLoader or from what lies on the device."""
    device, n = data.device, len(data.labels)
    net = build(size.model, 3, 10, seed=0)
    net = net.to(memory_format=torch.contiguous_format).to(device).train()  # type: ignore[call-overload]
    steps = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    workers = (
        DataLoader(Usual(data), size.batch, shuffle=True, num_workers=size.workers)
        if loader
        else None
    )

    def on_device(epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        tables = augmentation.tables(0, epoch, n, Augment(CROP))
        for perm, dy, dx, flip in zip(
            *(column.to(device).split(size.batch) for column in tables), strict=True
        ):
            yield (
                augmentation.gather(data, perm, dy, dx, flip, CROP).contiguous(),
                data.labels[perm],
            )

    ends = []
    for epoch in range(max(2, size.epochs - 1)):
        for x, y in workers if workers is not None else on_device(epoch):
            x, y = x.to(device), y.to(device)
            steps.zero_grad()
            logits = net(x)
            loss = functional.cross_entropy(logits, y)
            loss.backward()
            steps.step()
            _ = loss.item(), (logits.argmax(1) == y).sum().item()
        ends.append(time.perf_counter())
    return np.diff(ends)


# ---------------------------------------------------------------- ours


def pace(
    data: Resident,
    model: Model,
    size: Size,
    plan: Mode,
    precision: str = "bf16",
    streams: int = 1,
    compiled: bool = False,
) -> tuple[np.ndarray, float]:
    """Seconds an epoch and model, one for each epoch but the first, and what passes before the
    first one begins.
    """
    everyone, schedule = (
        torch.arange(len(data.labels)),
        Schedule(size.epochs, batch=size.batch, augment=Augment(CROP)),
    )
    ends: list[list[float]] = [[] for _ in range(streams)]

    def one(number: int) -> Training:
        net = build(model, 3, 10, number).to(data.device)
        if compiled:
            net.compile(dynamic=False)
        return training(
            net,
            data,
            everyone,
            schedule,
            seed=number,
            precision=precision,
            plan=plan,
            on_epoch=lambda _: ends[number].append(time.perf_counter()),
        )

    start = time.perf_counter()
    for _, outcome in fit_many(map(one, range(streams)), streams):
        if isinstance(outcome, Exception):
            raise outcome
    epochs = np.diff(ends).ravel() / streams
    return epochs, min(end[0] for end in ends) - start - float(np.median(epochs))


def host(data: Resident, plan: Mode) -> float:
    """Milliseconds of the host for a step of a network so thin that the device has next to nothing
    to do.
    """
    members, batch = torch.arange(640) % len(data.labels), 8
    net = build(Model("resnet18", width=4), 3, 10, 0).to(data.device)
    one = training(
        net, data, members, Schedule(1, batch=batch, augment=Augment(CROP)), seed=0, plan=plan
    )
    found = []
    wait(data.device)
    with torch.cuda.stream(torch.cuda.Stream() if data.device.type == "cuda" else None):
        for _ in range(5):
            next(one)
        # few at a time, from an idle device: a full queue would make the host wait
        for _ in range(20):
            wait(data.device)
            start = time.perf_counter()
            next(one)
            next(one)
            found.append((time.perf_counter() - start) / 2 * 1e3)
        one.close()
    return float(np.median(found))


def equality(data: Resident, plan: Mode, streams: int, deterministic: bool) -> float:
    """Largest difference of a weight between eager trainings and those of `plan`, several at once;
    `deterministic` is cuDNN's switch. Two epochs with a tail, under both optimizers and precisions.
    """
    worst = 0.0
    members, kinds = (
        torch.arange(min(1000, len(data.labels))),
        list(itertools.product(("sgd", "adam"), ("fp32", "bf16"))),
    )

    def one(kind: tuple[str, str], plan: Mode) -> Training:
        net = build(Model("resnet10", width=8), 3, 10, seed=0).to(data.device)
        schedule = Schedule(
            2, 64, "adam" if kind[0] == "adam" else "sgd", lr=0.01, augment=Augment(CROP)
        )
        return training(
            net, data, members, schedule, RelaxLoss(1.0), seed=1, precision=kind[1], plan=plan
        )

    with torch.backends.cudnn.flags(enabled=True, deterministic=deterministic):
        alone = dict(fit_many(one(kind, "eager") for kind in kinds))
        beside = dict(fit_many((one(kind, plan) for kind in kinds), streams))
    for number, expected in alone.items():
        found = beside[number]
        if isinstance(expected, Exception) or isinstance(found, Exception):
            raise RuntimeError(f"{kinds[number]}: {expected!r}, {found!r}")
        for name, value in expected.states["last"].items():
            worst = max(
                worst, float((value.double() - found.states["last"][name].double()).abs().max())
            )
    return worst


def fused(data: Resident, model: Model, fleet: int, batch: int, steps: int = 30) -> float:
    """Seconds a step and model of `fleet` networks whose weights are stacked (`torch.func.vmap`),
    bfloat16; recorded where there is CUDA."""
    nets = [build(model, 3, 10, seed).to(data.device) for seed in range(fleet)]
    parameters, buffers = torch.func.stack_module_state(nets)
    shape = skeleton(model, 3, 10).train()
    rate = torch.tensor(0.1, device=data.device)
    optimizer = torch.optim.SGD(list(parameters.values()), rate, 0.9, weight_decay=5e-4, fused=True)
    index = torch.randint(len(data.labels), (fleet * batch,), device=data.device)
    dy, dx = torch.randint(2 * CROP + 1, (2, fleet * batch), device=data.device)

    def loss(
        parameters: dict[str, Tensor], buffers: dict[str, Tensor], x: Tensor, y: Tensor
    ) -> Tensor:
        logits = torch.func.functional_call(shape, (parameters, buffers), (x,))
        return functional.cross_entropy(logits.float(), y)

    def step() -> None:
        x = augmentation.gather(data, index, dy, dx, dx % 2, CROP).unflatten(0, (fleet, batch))
        with torch.autocast(data.device.type, torch.bfloat16, cache_enabled=False):
            losses = torch.func.vmap(loss)(
                parameters, buffers, x, data.labels[index].view(fleet, batch)
            )
        optimizer.zero_grad(set_to_none=True)
        losses.sum().backward()
        optimizer.step()

    run: Callable[[], None] = step
    wait(data.device)
    with torch.cuda.stream(torch.cuda.Stream() if data.device.type == "cuda" else None):
        for _ in range(3):
            step()
        if data.device.type == "cuda":
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
                step()
            run = graph.replay
        run()
        wait(data.device)
        start = time.perf_counter()
        for _ in range(steps):
            run()
        wait(data.device)
        return (time.perf_counter() - start) / steps / fleet


# ---------------------------------------------------------------- sections


class Report(dict[str, Any]):
    """`rows`: what was measured; `ratios`: what is required; `missing`: sections that failed or had
    no time.
    """

    def __init__(self) -> None:
        super().__init__(rows={}, ratios={}, missing={})

    def row(self, name: str, **values: float) -> None:
        self["rows"][name] = values
        print(
            f"  {name:34s}" + "  ".join(f"{key} {value:.4g}" for key, value in values.items()),
            flush=True,
        )

    def require(self, name: str, ratio: float | np.ndarray, required: float) -> None:
        found = np.atleast_1d(ratio)
        numbers = {
            "ratio": np.median(found),
            "low": found.min(),
            "high": found.max(),
            "required": required,
        }
        self["ratios"][name] = {key: float(value) for key, value in numbers.items()}


def sections(device: torch.device, size: Size, report: Report) -> dict[str, Callable[[], None]]:
    """What is measured, in this order; sections that need CUDA are left out elsewhere."""
    cuda = device.type == "cuda"
    plan: Mode = "graph" if cuda else "eager"
    data = images(size.images, size.pixels, device)
    fleet_data = images(size.fleet_images, size.pixels, device)
    work = 3 * int(anatomy(size.model, 3, 10, size.pixels)["flops"].sum()) * size.images
    epochs: dict[str, np.ndarray] = {}

    def note(name: str, found: np.ndarray, setup: float = 0.0) -> None:
        epochs[name], epoch = found, float(np.median(found))
        speed = {"epoch_s": epoch, "low": found.min(), "high": found.max(), "setup_s": setup}
        report.row(name, **speed, mfu=work / epoch / PEAK, over_floor=epoch / size.floor)

    def ours(
        name: str, plan: Mode, precision: str, streams: int = 1, compiled: bool = False
    ) -> None:
        note(name, *pace(data, size.model, size, plan, precision, streams, compiled))

    def same() -> None:
        free, worst = (equality(data, plan, 2, deterministic) for deterministic in (False, True))
        report.row("largest difference to eager", weight=worst, with_any_kernel=free)
        report.require("recorded trainings are the eager ones", float(worst <= 1e-5), 1.0)

    def steps() -> None:
        note("usual loop", usual(data, size, loader=True))
        note("usual loop, resident data", usual(data, size, loader=False))
        ours("eager fp32", "eager", "fp32")
        ours("eager bf16", "eager", "bf16")

    def graphs() -> None:
        ours("graph fp32", "graph", "fp32")
        ours("graph bf16", "graph", "bf16")
        for streams in size.streams:
            ours(f"graph bf16, {streams} streams", "graph", "bf16", streams)
        # Neither is a default of ours: kernels chosen by timing differ between runs, deterministic
        # ones may be slower.
        for switch in ("benchmark", "deterministic"):
            with torch.backends.cudnn.flags(enabled=True, **{switch: True}):
                ours(f"graph bf16, cudnn.{switch}", "graph", "bf16")
        alone, best = (
            epochs["graph bf16"],
            min((epochs[name] for name in epochs if "streams" in name), key=np.median),
        )
        setup = report["rows"]["graph bf16"]["setup_s"]
        report.require("usual loop over graph", epochs["usual loop"] / np.median(alone), 3.0)
        hundred = 100 * epochs["usual loop"] / (setup + 100 * np.median(alone))
        report.require("usual loop over graph, 100 epochs", hundred, 5.0)
        report.require("floor over graph with streams", size.floor / best, 1 / 1.5)
        report.require("MFU, graph alone", work / alone / PEAK, 0.25)
        report.require("MFU, graph with streams", work / best / PEAK, 0.35)

    def launches() -> None:
        for kind in dict.fromkeys(("eager", plan)):
            report.row(f"host, {kind}", ms_per_step=host(fleet_data, kind))
        if cuda:
            report.require(
                "host: 0.3 ms over graph", 0.3 / report["rows"]["host, graph"]["ms_per_step"], 1.0
            )

    def deep() -> None:
        some = images(size.fleet_images, size.deep_pixels, device)
        for name, floor in size.deep:
            found, setup = pace(some, Model(name, width=size.width), size, plan)  # type: ignore[arg-type]
            found = found * 50_000 / size.fleet_images
            report.row(
                f"{name}, 64 px",
                epoch_s=float(np.median(found)),
                setup_s=setup,
                over_floor=np.median(found) / floor,
            )
            if cuda:
                report.require(
                    f"floor over {name}, 64 px",
                    floor / found,
                    1 / (2.0 if name == "resnet18" else 2.5),
                )

    def fleets() -> None:
        count = -(-size.fleet_images // size.batch)
        for width, fleet in itertools.product(size.widths, size.fleet):
            model = Model("resnet18", width=width)
            values = {"vmap_ms": fused(fleet_data, model, fleet, size.batch) * 1e3}
            streams = fleet if cuda else 1
            values["streams_ms"] = (
                float(np.median(pace(fleet_data, model, size, plan, streams=streams)[0]))
                / count
                * 1e3
            )
            report.row(
                f"width {width}, {fleet} models",
                **values,
                gain=values["streams_ms"] / values["vmap_ms"],
            )

    def compilation() -> None:
        ours("graph bf16, compiled", "graph", "bf16", compiled=True)
        ours("graph bf16, compiled, 2 streams", "graph", "bf16", 2, compiled=True)

    every = {
        "equality": same,
        "steps": steps,
        "graphs": graphs,
        "host": launches,
        "deep": deep,
        "fleets": fleets,
    }
    return (
        (every | {"compile": compilation})
        if cuda
        else {name: every[name] for name in every if name != "graphs"}
    )


def measure(device: torch.device, size: Size, path: Path | None, strict: bool = False) -> Report:
    """Every section on `device`; a failure is noted and the others go on, unless `strict`."""
    report, start = Report(), time.perf_counter()
    report["torch"] = torch.__version__
    report["device"] = torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)
    for name, section in sections(device, size, report).items():
        print(f" {name} ({time.perf_counter() - start:.0f} s)", flush=True)
        if time.perf_counter() - start > LIMIT:
            report["missing"][name] = "no time left"
            continue
        try:
            section()
        except Exception as error:
            if strict:
                raise
            report["missing"][name] = f"{type(error).__name__}: {error}"
            print(f"  failed: {report['missing'][name][:300]}", flush=True)
        if device.type == "cuda":
            torch.cuda.empty_cache()
        write(report, path)
    report["seconds"] = round(time.perf_counter() - start)
    write(report, path)
    for name, row in report["ratios"].items():
        print(
            f"{name}: {row['ratio']:.3g} ({row['low']:.3g} to {row['high']:.3g}), required {row['required']:.3g}"
        )
    return report


def write(report: dict[str, Any], path: Path | None) -> None:
    if path is not None:
        path.write_text(json.dumps(report, indent=1, default=float))


def main(path: Path | None = None) -> dict[str, Ratio]:
    """Print the speed table and return the ratios; without CUDA nothing."""
    if not torch.cuda.is_available():
        print("no CUDA device: nothing measured")
        return {}
    return measure(torch.device("cuda"), Size(), path or out("gpu.json"))["ratios"]


def out(name: str) -> Path | None:
    return Path(os.environ["OUT"]) / name if "OUT" in os.environ else None


if __name__ == "__main__":
    if sys.argv[1:] == ["equivalence"] and torch.cuda.is_available():
        verdicts = equivalence(torch.device("cuda"))
        write(verdicts, out("equivalence.json"))
        sys.exit(any(row["verdict"] != "equivalent" for row in verdicts.values()))
    main()
