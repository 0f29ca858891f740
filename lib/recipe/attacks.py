"""How membership is inferred from signals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from lib import BadInput
from lib.recipe.core import Recipe, Step
from lib.recipe.steps import Signals, State


@dataclass(frozen=True, eq=False)
class Attacker(Recipe):
    """How a score is made from signals; larger = more likely member."""

    crossing: ClassVar[float] = 1.0  # design effect of the AUC over targets that are each other's shadows, at most


@dataclass(frozen=True, eq=False)
class Threshold(Attacker):
    """Song & Mittal's threshold attacks (and Yeom's gap, `correctness`), thresholds chosen on the shadows."""

    signal: Literal["correctness", "confidence", "loss", "entropy", "modified_entropy"] = "confidence"
    by_class: bool = True
    sign: Literal["fixed", "shadows"] = "fixed"  # `shadows`: they say whether members have the larger loss


@dataclass(frozen=True, eq=False)
class LiRA(Attacker):
    """Carlini et al. 2022. The paper's offline test is one-sided (`offline_cdf`), its code's two-sided (`offline_pdf`);
    the code's fixed variance is `code`, and its centre the median."""

    mode: Literal["online", "offline_cdf", "offline_pdf"] = "online"
    variance: Literal["pooled", "per_sample", "shrunk", "code"] = "pooled"
    centre: Literal["mean", "median"] = "mean"
    views: int = 1

    @property
    def crossing(self) -> float:  # type: ignore[override]  # measured: 1.2 to 2.3 online, .35 to 1.2 offline
        return 2.3 if self.mode == "online" else 1.2


@dataclass(frozen=True, eq=False)
class RMIA(Attacker):
    """Zarifzadeh et al. 2024, with a held-out population."""

    mode: Literal["online", "offline"] = "online"
    gamma: float = 2.0
    a: float = 0.3  # of the offline mode
    temperature: float = 1.0
    views: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.views > 1 and self.temperature != 1:
            raise BadInput("RMIA over several views is stored for temperature 1 alone; set views=1 or temperature=1.0")


@dataclass(frozen=True, eq=False)
class BASE(Attacker):
    """Lassila et al. 2025: the log ratio of the target's confidence and the shadows' mean."""


@dataclass(frozen=True, eq=False)
class Network(Attacker):
    """A net trained on the shadows' outputs: Shokri et al. 2017 on posteriors, Nasr et al. 2018 on label and posterior.

    One for all classes. PPTP names both and prints nothing of the net: widths and dropout are those of its authors'
    earlier code (the pruning papers' has 512, 256, 128), Adam at 1e-3 is Nasr's, batch and epochs are ours: a second on
    one core for eight shadows of 1,000 samples, and on made-up shadows twice the epochs score no better.
    """

    inputs: Literal["posterior", "posterior_label"] = "posterior"
    hidden: tuple[int, ...] = (128, 64, 64)
    dropout: float = 0.2  # after each hidden layer
    epochs: int = 20
    batch: int = 256
    lr: float = 1e-3
    seed: int = 0  # of the experiment; each target's net draws its own from it


@dataclass(frozen=True, eq=False)
class Attack(Step):
    """Scores of every target by shadows; a shadow that shares the target's complement pair never helps.

    Result: `scores (T, n)`, `member (T, n)` over the pool's samples, `thresholds (T,)` (NaN where the attack names
    none), and of a trained attacker the nets, `net/... (T, ...)`.
    """

    attacker: Attacker
    targets: tuple[State, ...]
    shadows: tuple[State, ...] = ()  # empty: the targets are each other's shadows (an adaptive attacker)

    place: ClassVar = "host"
    travels: ClassVar = False

    @property
    def crossed(self) -> bool:
        """Whether some targets are each other's shadows, so that their scores are not independent."""
        return not self.shadows or len({*self.targets} & {*self.shadows}) > 1

    @property
    def design_effect(self) -> float:
        """Variance of the mean AUC over these targets, relative to independent targets, at most (`Attacker.crossing`).

        Only the AUC's: a TPR's is 1.
        """
        return self.attacker.crossing if self.crossed else 1.0

    def parents(self) -> Iterator[Step]:
        views = getattr(self.attacker, "views", 1)
        seen: dict[str, Step] = {}
        for state in (*self.targets, *self.shadows):
            signals = Signals(state, views)
            seen[signals.key] = signals
        yield from seen.values()
