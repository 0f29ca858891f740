"""Sampling schedules: which members an epoch visits."""

import torch
from torch import Tensor

from leak_atlas.engine.digests import generic
from leak_atlas.recipe.sampling import Sampling, Window


@generic
def places(
    sampling: Sampling,
    ranking: Tensor,
    labels: Tensor,
    epoch: int,
) -> Tensor:
    """Places `(k,)` among n members that an epoch, counted from 0, visits, in any order. A place
    may occur several times.

    `ranking (n,)` is a score of each member, `labels (n,)` its class; all tensors are on the CPU.
    TypeError for an unknown schedule.
    """
    raise TypeError(f"no places are written for {type(sampling).__name__}")


@places.register
def window(
    sampling: Window,
    ranking: Tensor,
    labels: Tensor,
    epoch: int,
) -> Tensor:
    """A window of ranks within each class. Of equal scores the first member ranks first."""
    by_score = ranking.argsort(descending=sampling.order == "high-to-low", stable=True)
    place = by_score[labels[by_score].argsort(stable=True)]  # class by class
    label = labels[place]
    count = labels.bincount()
    first = count.cumsum(0) - count  # of each class, in `place`
    rank = torch.arange(len(place)) - first[label]
    start = sampling.step * epoch
    inside = (rank >= start) & (rank < start + sampling.width)
    return place[inside]
