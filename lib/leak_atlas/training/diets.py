"""Which members an epoch visits."""

import torch
from torch import Tensor

from leak_atlas.engine.digests import generic
from leak_atlas.recipe.diets import Diet, Window


@generic
def places(diet: Diet, ranking: Tensor, labels: Tensor, epoch: int) -> Tensor:
    """Places `(k,)` among n members that an epoch, counted from 0, visits, in any order; one may
    come several times.

    `ranking (n,)` is a score of each member, `labels (n,)` its class; all on the CPU. TypeError for
    an unknown diet.
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
        # A class that the window has left behind is skipped: it cuts none after it.
        end = end.where(count > start, start + diet.width).cummin(0).values
    return place[(rank >= start) & (rank < end[label])]
