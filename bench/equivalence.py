"""Is recorded bfloat16 still the same training as eager float32? Over seeds, for a margin stated
beforehand.

    python -m bench.gpu equivalence

Arms are paired by seed: the same halves, the same initial weights, the same order of the samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from leak_atlas.data.designs import Role, roles
from leak_atlas.data.resident import Resident, resident
from leak_atlas.models import Net, build
from leak_atlas.recipe import Data, Model, RandomHalves, Schedule
from leak_atlas.training import answers
from leak_atlas.training.loop import Mode, Training, fit_many, training

# Stated before anything was measured: two arms are equivalent in a quantity where the 95 % interval
# of the mean paired difference over the seeds lies within this, to both sides.
SEEDS, STUDENT = 32, 2.04
MARGINS = {"test accuracy": 0.01, "train-test gap": 0.01, "loss attack AUC": 0.01}


def equivalence(
    device: torch.device,
    seeds: int = SEEDS,
    schedule: Schedule | None = None,
    model: Model | None = None,
) -> dict[str, dict[str, Any]]:
    """Eager float32 against recorded bfloat16 (eager off CUDA), paired by seed: the same halves of
    2,000 embedded images, the same initial weights, the same order. By quantity: means, the mean
    difference, its interval, verdict."""
    schedule, model = (
        schedule or Schedule(20, batch=64, lr=0.05),
        model or Model("resnet18", width=16),
    )
    data, design = resident(Data(), device), RandomHalves(pool=2000, test=2000)
    role = roles(design, data.labels.cpu().numpy(), data.train, seeds)
    arms: list[tuple[Mode, str, int]] = [
        ("eager", "fp32", 1),
        ("graph" if device.type == "cuda" else "eager", "bf16", 4),
    ]
    found = np.empty((2, seeds, 3))
    for arm, (plan, precision, streams) in enumerate(arms):
        nets = [build(model, data.shape[2], data.classes, seed).to(device) for seed in range(seeds)]

        def one(
            seed: int, nets: list[Net] = nets, plan: Mode = plan, precision: str = precision
        ) -> Training:
            members = torch.as_tensor(np.flatnonzero(role[seed] == Role.MEMBER))
            return training(
                nets[seed], data, members, schedule, seed=seed, precision=precision, plan=plan
            )

        for seed, outcome in fit_many(map(one, range(seeds)), streams):
            if isinstance(outcome, Exception):
                raise outcome
            found[arm, seed] = quantities(nets[seed], data, role[seed])
    table = {}
    for column, (name, margin) in enumerate(MARGINS.items()):
        a, b = found[..., column]
        middle, reach = float((b - a).mean()), STUDENT * float((b - a).std(ddof=1)) / seeds**0.5
        low, high = middle - reach, middle + reach
        verdict = "equivalent" if -margin <= low and high <= margin else "undecided"
        verdict = "different" if low > margin or high < -margin else verdict
        table[name] = {
            "fp32": a.mean(),
            "bf16": b.mean(),
            "difference": middle,
            "low": low,
            "high": high,
        }
        table[name] |= {"margin": margin, "seeds": seeds, "verdict": verdict}
        print(
            f"{name}: {a.mean():.4f} and {b.mean():.4f}, {middle:+.4f} ({low:+.4f} to {high:+.4f}): {verdict}"
        )
    return table


def quantities(net: Net, data: Resident, role: np.ndarray) -> tuple[float, float, float]:
    """Test accuracy, train accuracy above it, and the AUC of an attack that takes a small loss for
    membership.
    """
    accuracy, confidence = {}, {}
    for who in (Role.MEMBER, Role.NONMEMBER, Role.TEST):
        index = torch.as_tensor(np.flatnonzero(role == who))
        logits, scaled = answers.logits(net, data, index)
        accuracy[who] = float((logits.argmax(1) == data.labels.cpu()[index]).double().mean())
        confidence[who] = scaled[:, 0]  # a monotone function of the loss that does not saturate
    inside, outside = confidence[Role.MEMBER][:, None], confidence[Role.NONMEMBER]
    auc = float((inside > outside).double().mean() + (inside == outside).double().mean() / 2)
    return accuracy[Role.TEST], accuracy[Role.MEMBER] - accuracy[Role.TEST], auc
