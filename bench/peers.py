"""Shadow networks the usual way and with the library: same data, same networks, same machine, in
one run.

The usual way is a script as most code of this field has it: torchvision's transforms on PIL images,
a DataLoader with two workers, float32, channels first, torch's own number of threads, `.item()`
after every step, one network after the other. With the library the same networks are a population
that two workers train into a fresh store. Both train from the same weights for as many epochs and
steps, with SGD and a cosine by the epoch, on the same members, cropped and flipped at random; what
differs are the draws. Ratio: the clock's time of the usual way over ours, starting the workers and
writing the store included. The test accuracies of both stand beside, and must agree where the
networks have learnt something. What is required is less than what is aimed at: 2.5 in bfloat16.

Images are the embedded part of Fashion-MNIST: at 16 pixels, and padded to 32 x 32 pixels in three
colours, as CIFAR's. bfloat16 is measured where the processor has instructions for it and
`LEAK_ATLAS_ARITHMETIC=native` allows them; both ways then use them.

    python -m bench.peers           # quick's size and ResNet18 of width 16
    python -m bench.peers 64        # ResNet18 of width 64 as well: half an hour
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from bench.ratios import Ratio, row
from bench.scale import fresh_store
from bench.step import fast_bfloat16
from bench.vision import torchvision
from leak_atlas.data import own
from leak_atlas.data.designs import Role
from leak_atlas.data.readers import load
from leak_atlas.lab import realize
from leak_atlas.models import build
from leak_atlas.models.subject import roles
from leak_atlas.recipe import Augment, Data, Model, RandomHalves, Schedule, Setup

SETS = "peers"  # the padded images, a set of one's own in a folder that goes afterwards
NEAR = 0.05  # how far the mean test accuracies may lie apart
LEARNT = 0.3  # below this accuracy, the times alone are compared


class Images(Dataset[tuple[torch.Tensor, int]]):
    """Some images of a set, one by one through PIL, as most code has it."""

    def __init__(self, setup: Setup, index: np.ndarray, crop: int) -> None:
        transforms = torchvision().transforms
        samples = load(setup.data.name, setup.data.pixels)
        self.x, self.y = samples.x[index], samples.labels[index].tolist()
        side, channels = self.x.shape[1], self.x.shape[-1]
        moves = (
            [transforms.RandomCrop(side, padding=crop), transforms.RandomHorizontalFlip()]
            if crop
            else []
        )
        self.transform = transforms.Compose(
            [*moves, transforms.ToTensor(), transforms.Normalize(*[[0.5] * channels] * 2)]
        )

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        from PIL import Image

        return self.transform(Image.fromarray(self.x[i].squeeze())), self.y[i]


def usual(setup: Setup) -> float:
    """Trains the population the usual way; its mean test accuracy."""
    s, found = setup.schedule, []
    assert s.augment
    role, index, _ = roles(setup.data, setup.design, tuple(range(setup.models)))
    for i in range(setup.models):
        members, tests = (
            Images(setup, index[role[i] == r], crop)
            for r, crop in ((Role.MEMBER, s.augment.crop), (Role.TEST, 0))
        )
        net = build(setup.model, setup.data.channels, setup.data.classes, i, setup.data.size)
        net = net.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]  # torch's stubs lack it
        optimizer = torch.optim.SGD(
            net.parameters(), s.lr, s.momentum, weight_decay=s.weight_decay, nesterov=s.nesterov
        )
        cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, s.epochs)
        loader = DataLoader(members, s.batch, shuffle=True, num_workers=2)
        for _ in range(s.epochs):
            total = right = 0.0
            for x, y in loader:
                optimizer.zero_grad()
                logits = net(x)
                loss = functional.cross_entropy(logits, y)
                loss.backward()
                optimizer.step()
                total += loss.item() * len(y)
                right += (logits.argmax(1) == y).sum().item()
            cosine.step()
        net.eval()
        with torch.no_grad():
            hits = sum(
                (net(x).argmax(1) == y).sum().item()
                for x, y in DataLoader(tests, 250, num_workers=2)
            )
        found.append(hits / len(tests))
    return float(np.mean(found))


def ours(setup: Setup) -> float:
    """Trains the population with the library, on two workers; its mean test accuracy."""
    with fresh_store():
        signals = setup.trained().signals()
        results = realize(signals, workers=2)
        return float(np.mean([results[one]["accuracy_test"] for one in signals]))


def spent(act: Callable[[], float]) -> tuple[float, float]:
    """The accuracy that `act` returns, and its seconds of the clock."""
    start = time.perf_counter()
    accuracy = act()
    return accuracy, time.perf_counter() - start


@contextmanager
def padded() -> Iterator[None]:
    """Inside, there is the set `peers`: the embedded images at 32 x 32 pixels in three colours."""
    samples = load("fashion-mnist-small")
    x = np.repeat(np.pad(samples.x, ((0, 0), (2, 2), (2, 2), (0, 0))), 3, axis=-1)
    before = os.environ.get("LEAK_ATLAS_DATA")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LEAK_ATLAS_DATA"] = folder
        try:
            train, test = (slice(samples.train), slice(samples.train, None))
            y = samples.labels
            np.savez(
                Path(folder) / "x.npz",
                x_train=x[train],
                y_train=y[train],
                x_test=x[test],
                y_test=y[test],
            )
            own.add(SETS, Path(folder) / "x.npz")
            yield
        finally:
            os.environ.pop("LEAK_ATLAS_DATA")
            if before is not None:
                os.environ["LEAK_ATLAS_DATA"] = before


def main(widths: tuple[int, ...] = (16,), rounds: int = 3) -> dict[str, Ratio]:
    """Print and return the ratios."""
    found: dict[str, Ratio] = {}

    def compared(name: str, required: float, *setups: Setup) -> None:
        """The first setup the usual way, each with the library."""
        times: dict[str, list[float]] = {}
        for _ in range(rounds):
            theirs = spent(lambda: usual(setups[0]))
            for setup in setups:
                mine = spent(lambda setup=setup: ours(setup))  # type: ignore[misc]
                kind = f"{name}, {setup.precision}"
                assert theirs[0] < LEARNT or abs(theirs[0] - mine[0]) < NEAR, (
                    f"{kind}: accuracy {theirs[0]:.3f} the usual way, {mine[0]:.3f}"
                )
                times.setdefault(kind, []).append(theirs[1] / mine[1])
                print(
                    f"  {kind}: test accuracy {theirs[0]:.3f} and {mine[0]:.3f}, {theirs[1]:.1f} s and {mine[1]:.1f} s"
                )
        for kind, ratios in times.items():
            found.update(row(kind, ratios, required))

    quick = Schedule(12, 64, lr=0.1, nesterov=True, augment=Augment(1))
    few = RandomHalves(600, test=600)
    compared(
        "16 shadows, ResNet10-w8", 2.0, Setup(Data(pixels=16), few, Model("resnet10", 8), quick, 16)
    )
    with padded():
        for width in widths:
            shadows, epochs, pool = (16, 6, 600) if width < 64 else (4, 4, 512)
            kinds: tuple[Literal["fp32", "bf16"], ...] = (
                ("fp32", "bf16") if fast_bfloat16() else ("fp32",)
            )
            schedule = Schedule(epochs, 64, lr=0.05, nesterov=True, augment=Augment(4))
            whole = Setup(
                Data(SETS),
                RandomHalves(pool, test=200),
                Model("resnet18", width),
                schedule,
                shadows,
            )
            compared(
                f"{shadows} shadows, ResNet18-w{width}",
                1.2,
                *(replace(whole, precision=one) for one in kinds),
            )
    return found


if __name__ == "__main__":
    main((16, *map(int, sys.argv[1:])), rounds=1 if len(sys.argv) > 1 else 3)
