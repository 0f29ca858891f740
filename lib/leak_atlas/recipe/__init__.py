"""The vocabulary: frozen dataclasses that describe an experiment, each with a content key. No
torch, no data.

An experiment is a small graph of steps. `Data`, `Design`, `Model`, `Objective` and `Schedule` say
*what*; the steps (`Train`, `At`, `Rewind`, `Freeze`, `Signals`, ...) say *what is done with it*,
and hold their parents as fields.

    model = Model("resnet10", width=8)
    setup = Setup(Data(), RandomHalves(pool=1000), model, Schedule(30), models=10)
    private = setup.trained().rewind("stage4").freeze("stage4").train(Schedule(12), RelaxLoss(1.0))
    results = lab.realize(private.attack(LiRA()))
"""

from leak_atlas.recipe.atlas import *
from leak_atlas.recipe.attacks import *
from leak_atlas.recipe.core import *
from leak_atlas.recipe.criteria import *
from leak_atlas.recipe.designs import *
from leak_atlas.recipe.objectives import *
from leak_atlas.recipe.populations import *
from leak_atlas.recipe.readings import *
from leak_atlas.recipe.sampling import *
from leak_atlas.recipe.steps import *
from leak_atlas.recipe.studies import *
from leak_atlas.recipe.subjects import *
