"""Criteria that score single weights: learnability and vulnerability (CWRF), and the controls that
could explain them away.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from leak_atlas.recipe.core import Amount, Positive, Recipe, Share, Whole

__all__ = [
    "SNIP",
    "Change",
    "Criterion",
    "Learnability",
    "Magnitude",
    "Random",
    "Taylor",
    "Vulnerability",
]


class Criterion(Recipe):
    """How a weight's score is made; larger = more of what the criterion is named after."""

    # samples of the design, beside the members, that it looks at: "reference"
    needs: ClassVar[tuple[str, ...]] = ()
    compares: ClassVar[bool] = False  # whether it looks at the chain's initialisation too

    def passes(self, members: int, reference: int) -> float:
        """Forward passes through the network that it costs, over this many samples; a backward pass
        costs two.
        """
        return 0.0


class Taylor(Criterion):
    """First-order Taylor importance, summed over updates: sum_t |g_t w_t|, w before update t
    (Molchanov et al. 2019).

    g is the gradient of one batch's loss alone (no weight decay). A few tens of steps from the
    state that is scored; their number, batch, optimizer and rate are lost from CWRF's text. Adam at
    1e-3 is what it trains with as far as the text tells. The steps' weights are thrown away.
    """

    steps: Positive = 50  # T; a few tens in CWRF, number lost
    batch: Positive = 128  # samples of each set; all members where there are fewer
    optimizer: Literal["sgd", "adam"] = "adam"  # SGD without momentum
    lr: Amount = 1e-3  # constant
    # another number draws other batches: how well does a score agree with itself?
    draw: Whole = 0
    # k: only every k-th member is seen, in the order of the data set; 1: all
    every: Positive = 1

    def passes(self, members: int, reference: int) -> float:
        return 3.0 * self.steps * min(self.batch, -(-members // self.every))


class Learnability(Taylor):
    """CWRF, eq. 2: the updates descend the members' cross-entropy."""


class Vulnerability(Taylor):
    """CWRF, eq. 3-4: the updates push the outputs on reference samples back to the untrained net,
    members kept fitted.

    They descend (1 - weight) CE(members) + weight KL(model || untrained net). The text gives
    neither the weight (lambda) nor the direction of the divergence. CE + mu KL is the same up to a
    factor, with mu = weight / (1 - weight).
    """

    needs: ClassVar = ("reference",)
    compares: ClassVar = True

    weight: Share = 0.5  # lambda; lost. 0 is cross-entropy alone

    def passes(self, members: int, reference: int) -> float:
        """The initial network sees all reference samples once."""
        return (
            super().passes(members, reference)
            + 3.0 * self.steps * min(self.batch, reference)
            + reference
        )


class SNIP(Criterion):
    """Lee et al. 2019: |g w| / sum |g w| on one class-balanced batch; they score the
    initialisation, `at("init")`.
    """

    batch: Positive = 128  # theirs, for MNIST and CIFAR-10

    def passes(self, members: int, reference: int) -> float:
        return 3.0 * min(self.batch, members)


class Magnitude(Criterion):
    """|w|."""


class Change(Criterion):
    """|w - w_0|, how far a weight is from its initialisation."""

    compares: ClassVar = True


class Random(Criterion):
    """A number drawn for each weight, uniform on [0, 1): each model draws its own."""

    seed: int = 0
