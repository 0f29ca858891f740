"""The vocabulary: frozen dataclasses that describe an experiment, each with a content key. No torch, no data.

An experiment is a small graph of steps. `Data`, `Design`, `Model`, `Objective` and `Schedule` say *what*; the steps
(`Train`, `At`, `Rewind`, `Hold`, `Signals`, ...) say *what is done with it*, and hold their parents as fields.

    pool = population(Data(), RandomHalves(pool=1000), Model("resnet10", width=8), Schedule(30), models=10)
    private = pool.rewind("stage4").hold("stage4").train(Schedule(12), RelaxLoss(1.0))
    results = lab.realize(Attack(LiRA(), private))
"""

from lib.recipe.attacks import BASE, RMIA, Attack, Attacker, LiRA, Network, Threshold
from lib.recipe.core import KINDS, Recipe, Step, load
from lib.recipe.populations import (
    Pair,
    Population,
    choose,
    model_seed,
    population,
    probe_pairs,
    seed_floors,
    self_audit,
)
from lib.recipe.steps import (
    Anatomy,
    At,
    Choose,
    Cost,
    Distance,
    Edit,
    Hold,
    Rewind,
    SelfAudit,
    Signals,
    Similarity,
    StageMembership,
    StageProbe,
    State,
    Train,
)
from lib.recipe.subjects import (
    Augment,
    CrossEntropy,
    Data,
    Design,
    Halves,
    Model,
    Objective,
    RandomHalves,
    RelaxLoss,
    Schedule,
    VictimAttacker,
)

__all__ = [
    "BASE",
    "KINDS",
    "RMIA",
    "Anatomy",
    "At",
    "Attack",
    "Attacker",
    "Augment",
    "Choose",
    "Cost",
    "CrossEntropy",
    "Data",
    "Design",
    "Distance",
    "Edit",
    "Halves",
    "Hold",
    "LiRA",
    "Model",
    "Network",
    "Objective",
    "Pair",
    "Population",
    "RandomHalves",
    "Recipe",
    "RelaxLoss",
    "Rewind",
    "Schedule",
    "SelfAudit",
    "Signals",
    "Similarity",
    "StageMembership",
    "StageProbe",
    "State",
    "Step",
    "Threshold",
    "Train",
    "VictimAttacker",
    "choose",
    "load",
    "model_seed",
    "population",
    "probe_pairs",
    "seed_floors",
    "self_audit",
]
