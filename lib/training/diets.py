"""Which members an epoch visits."""

import torch
from torch import Tensor

from lib.code import generic
from lib.recipe.diets import Diet, Window


@generic
def places(diet: Diet, ranking: Tensor, labels: Tensor, epoch: int) -> Tensor:
    """Places `(k,)` among n members that an epoch, counted from 0, visits, in any order; one may come several times.

    `ranking (n,)` is a score of each member, `labels (n,)` its class; all on the CPU. TypeError for an unknown diet.
    """
    raise TypeError(f"no places are written for {type(diet).__name__}")


@places.register
def window(diet: Window, ranking: Tensor, labels: Tensor, epoch: int) -> Tensor:
    """Of equal scores the first member ranks first."""
    place = ranking.argsort(descending=diet.order == "high-to-low", stable=True)
    place = place[labels[place].argsort(stable=True)]  # class by class
    label, count = labels[place], labels.bincount()
    rank = torch.arange(len(place)) - (count.cumsum(0) - count)[label]
    start = diet.step * epoch
    end = count.clamp(max=start + diet.width)
    if diet.form == "code":
        end = end.cummin(0).values
    return place[(rank >= start) & (rank < end[label])]
