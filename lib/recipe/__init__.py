"""The vocabulary: frozen dataclasses that describe an experiment, each with a content key. No torch, no data.

An experiment is a small graph of steps. `Data`, `Design`, `Model`, `Objective` and `Schedule` say *what*; the steps
(`Train`, `At`, `Rewind`, `Hold`, `Signals`, ...) say *what is done with it*, and hold their parents as fields.

    pool = Setup(Data(), RandomHalves(pool=1000), Model("resnet10", width=8), Schedule(30), models=10).trained()
    private = pool.rewind("stage4").hold("stage4").train(Schedule(12), RelaxLoss(1.0))
    results = lab.realize(Attack(LiRA(), private))
"""

from lib.recipe.attacks import *
from lib.recipe.core import *
from lib.recipe.criteria import *
from lib.recipe.designs import *
from lib.recipe.diets import *
from lib.recipe.objectives import *
from lib.recipe.populations import *
from lib.recipe.readings import *
from lib.recipe.steps import *
from lib.recipe.subjects import *
