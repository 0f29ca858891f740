"""Steps that compute nothing, with real keys and real files: what remains is planning, scheduling
and storing.
"""

import numpy as np

from leak_atlas.engine.compute import Arrays, Of, compute
from leak_atlas.recipe import Step


class FakeModel(Step):
    """Stands for a training."""

    row: int
    configuration: int


class FakeSignals(Step):
    """Stands for what is read off a model."""

    of: FakeModel


class FakeAttack(Step):
    """Stands for an attack on all models of a configuration."""

    signals: tuple[FakeSignals, ...]


def experiment(steps: int, shadows: int = 256) -> list[FakeAttack]:
    """About so many steps: configurations of `shadows` models, as many signals, one attack."""
    attacks = []
    for configuration in range(max(1, round(steps / (2 * shadows + 1)))):
        models = (FakeModel(row, configuration) for row in range(shadows))
        attacks.append(FakeAttack(tuple(FakeSignals(model) for model in models)))
    return attacks


@compute.register(FakeModel)
@compute.register(FakeSignals)
@compute.register(FakeAttack)
def _(step: Step, of: Of) -> Arrays:
    return {"x": np.frombuffer(bytes.fromhex(step.key[:16]), dtype=np.uint8)}
