"""What a training sees of its members in each epoch."""

from __future__ import annotations

from typing import Literal

from leak_atlas.recipe.core import Positive, Recipe, Whole

__all__ = ["Sampling", "Window"]


class Sampling(Recipe):
    """Which members an epoch visits, and how often, by a ranking: a score of each member."""

    def visits(self, members: int, epochs: int) -> list[int]:
        """How often each of a class' `members`, in their order, is visited in a training."""
        return [epochs] * members


class Window(Sampling):
    """WeMem's sliding window (Shang et al., NDSS 2025) over the members of each class, ordered by
    their scores.

    Epoch e, counted from 0 in each training, visits the ranks `step` * e to `step` * e + `width` -
    1 of each class that has them. In the published code a class that ends inside the window also
    cuts the windows of the classes after it, although they may be larger.
    """

    width: Positive = 500  # w, members of a class; slides, CIFAR-10: 1500, 1000, 500
    step: Whole = 50  # s, ranks by which the window moves in an epoch; 0 keeps it where it is
    order: Literal["high-to-low", "low-to-high"] = "low-to-high"  # of the scores

    def visits(self, members: int, epochs: int) -> list[int]:
        count = [0] * members
        for epoch in range(epochs):
            start = self.step * epoch
            for rank in range(start, min(start + self.width, members)):
                count[rank] += 1
        return count
