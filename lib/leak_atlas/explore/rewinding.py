"""CWRF's rewinding (A3) at any rate: its recipes, what is stored of it, and how two scores of
weights are drawn.

Which weights a score selects is read from its stored maps, at any rate; what rewinding them does
has to be trained.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leak_atlas import BadInput, nearest
from leak_atlas.engine import selection
from leak_atlas.explore.look import COLOURS, along, percent
from leak_atlas.explore.shelf import LOW, Outcome, Shelf
from leak_atlas.localization import score_maps
from leak_atlas.localization.disparity import Arrays
from leak_atlas.recipe import (
    SNIP,
    Attack,
    Attacker,
    Criterion,
    LiRA,
    Objective,
    Population,
    Schedule,
    Score,
    Step,
)
from leak_atlas.report.markup import drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from leak_atlas.report.sheet import Sheet

# Rates that can be looked at, ten a decade: from one weight in 2,000 to every second.
DECADE = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
GRID = [
    rate
    for ten in range(-4, 0)
    for digits in DECADE
    if 5e-4 <= (rate := float(f"{digits}e{ten}")) <= 0.5
]

# each with a look of its own
SERIES = ("A", "B", "conv", "linear", "norm", "embedding", "attention")


@dataclass(frozen=True, eq=False)
class Rewinding:
    """The weights that score highest go back to their initial values and stay there; the others are
    trained on.

    `criteria` are the scores to choose from, by the words that offer them. Each model goes by its
    own score. SNIP scores the initialisation, all others the trained model. Of `defences` and
    `attackers` the first ones are looked at where no other is named.
    """

    ordinary: Population
    schedule: Schedule  # of the training that follows
    defences: Mapping[str, Objective]  # of that training, by the words that offer them
    criteria: Mapping[str, Criterion]
    attackers: Mapping[str, Attacker] = field(default_factory=lambda: {"LiRA": LiRA()})  # likewise

    def scores(self, name: str) -> tuple[Score, ...]:
        """One a model. Raises BadInput on a score that is not offered."""
        if name not in self.criteria:
            raise BadInput(
                f"there is no score '{name}' to look at{nearest(name, list(self.criteria))}"
            )
        criterion = self.criteria[name]
        return (self.ordinary.at("init") if isinstance(criterion, SNIP) else self.ordinary).score(
            criterion
        )

    def rewound(self, name: str, rate: float, defence: str = "") -> Population:
        """A3 by one score at one rate. Raises BadInput on a score or a defence that is not offered."""
        by, objective = self.scores(name), _named(self.defences, defence, "defence")[1]
        return (
            self.ordinary.rewind_weights(by, rate)
            .freeze_weights(by, rate)
            .train(self.schedule, objective)
        )

    def references(self, defence: str = "") -> dict[str, Population]:
        """What every rate is compared with: the attacked networks, and the same training with
        nothing rewound.
        """
        name, objective = _named(self.defences, defence, "defence")
        return {
            "ordinary": self.ordinary,
            f"{name} alone": self.ordinary.train(self.schedule, objective),
        }

    def attack(self, models: Population, attack: str = "") -> Attack:
        """The attack in which the models are each other's shadows. Raises BadInput on one that is
        not offered.
        """
        return models.attack(_named(self.attackers, attack, "attack")[1])

    def measured(self, models: Population, attack: str = "") -> list[Step]:
        """Of each model its signals, and how they are attacked."""
        return [*models.signals(), self.attack(models, attack)]

    def steps(self, names: Iterable[str], rates: Iterable[float]) -> list[Step]:
        """All scores and references, and what comes of rewinding by the scores `names` at `rates`."""
        chains = [self.rewound(name, rate) for name in names for rate in rates]
        scores = [score for name in self.criteria for score in self.scores(name)]
        return scores + [
            step for each in [*self.references().values(), *chains] for step in self.measured(each)
        ]


def _named(offered: Mapping[str, Any], name: str, what: str) -> tuple[str, Any]:
    """Of what is offered the one of this name, or the first where there is no name. Raises BadInput
    on another one.
    """
    if name and name not in offered:
        raise BadInput(f"there is no {what} '{name}' to look at{nearest(name, list(offered))}")
    return (name, offered[name]) if name else next(iter(offered.items()))


class Ranked:
    """The weights of one model in the order of a score; `result` is that of a `Score`."""

    def __init__(self, result: Arrays) -> None:
        self.kinds = score_maps.kinds(result)
        self.ranks = selection.ranks(score_maps.maps(result))
        self.size = sum(each.size for each in self.ranks.values())

    def count(self, rate: float) -> int:
        return round(rate * self.size)

    def chosen(self, rate: float) -> dict[str, NDArray[np.bool_]]:
        """The same masks as `selection.highest`."""
        return {name: places < self.count(rate) for name, places in self.ranks.items()}

    def chance(self, rate: float) -> NDArray:
        """Low and high ends, `(2, tensors)`, of 95 % of each tensor's shares where every weight is
        drawn on its own.
        """
        from scipy import stats

        sizes = [each.size for each in self.ranks.values()]
        return np.array(stats.binom.interval(0.95, sizes, rate)) / sizes

    def shares(self, rate: float, by_kind: bool = False) -> tuple[score_maps.Share, ...]:
        """How much of each tensor, or of each layer type, is selected."""
        return score_maps.shares(self.chosen(rate), self.kinds if by_kind else None)


class Side(NamedTuple):
    """One score: what came of rewinding by it at the rates that are stored, and which weights of a
    model it selects.
    """

    letter: str
    name: str
    outcomes: Mapping[float, Outcome]
    ranked: Ranked | None


class Stored:
    """What is stored of a rewinding at some rates, each read and counted once. Nothing is computed."""

    def __init__(self, of: Rewinding, rates: Iterable[float]) -> None:
        self.of, self.rates, self.chain = of, sorted(set(rates)), cache(of.rewound)
        self._shelf = Shelf()

    def outcomes(self, models: Mapping[Any, Population], attack: str = "") -> dict[Any, Outcome]:
        measured = {
            key: (each.signals(), self.of.attack(each, attack)) for key, each in models.items()
        }
        found = {key: self._shelf.outcome(*each) for key, each in measured.items()}
        return {key: each for key, each in found.items() if each}

    def ranked(self, name: str, model: int) -> Ranked | None:
        found = self._shelf.results([self.of.scores(name)[model]])
        return Ranked(*found) if found else None

    def attacked(self, models: Population, attack: str = "") -> Arrays | None:
        found = self._shelf.results([self.of.attack(models, attack)])
        return found[0] if found else None

    def side(self, letter: str, name: str, model: int, defence: str = "", attack: str = "") -> Side:
        outcomes = self.outcomes(
            {rate: self.chain(name, rate, defence) for rate in self.rates}, attack
        )
        return Side(letter, name, outcomes, self.ranked(name, model))


# --- in words -------------------------------------------------------------------------------------------------------


def agree(a: Ranked, b: Ranked, rate: float) -> tuple[float, float, float]:
    """The share of either selection that is in both, and the middle 95 % of what chance gives; both
    select weights.
    """
    from scipy import stats

    count = a.count(rate)
    low, high = stats.hypergeom.interval(0.95, a.size, count, count)
    return (
        score_maps.overlap(a.chosen(rate), b.chosen(rate)),
        float(low) / count,
        float(high) / count,
    )


def told(sides: Sequence[Side], rate: float, references: Mapping[str, Outcome]) -> list[str]:
    """The numbers in sentences."""
    ranked = [side.ranked for side in sides if side.ranked and side.ranked.count(rate)]
    common = agree(ranked[0], ranked[1], rate) if len(ranked) == 2 else ()
    words = {
        "sides": sides,
        "rate": rate,
        "references": references,
        "common": common,
        "percent": percent,
    }
    return drawn("rewound.txt", **words).splitlines()


def tensors(sides: Sequence[Side], rate: float) -> list[dict[str, Any]]:
    """Of each tensor, in the order of the network: its name, layer type, number of weights, and how
    many go.
    """
    made: dict[str, dict[str, Any]] = {}
    for letter, own in [(side.letter, side.ranked) for side in sides if side.ranked]:
        for each in own.shares(rate):
            first = {"tensor": each.of, "layer type": own.kinds[each.of], "weights": each.weights}
            row = made.setdefault(each.of, first)
            row |= {
                f"{letter} selects": each.selected,
                f"{letter} selects of it, %": 100 * each.share,
            }
    return list(made.values())


def rows(sides: Sequence[Side], rate: float) -> list[dict[str, Any]]:
    """By layer type, in percent: its share of all weights, how much of it is selected, its part of
    the selection.
    """
    made: dict[str, dict[str, Any]] = {}
    for letter, own in [(side.letter, side.ranked) for side in sides if side.ranked]:
        for each in own.shares(rate, by_kind=True):
            row = made.setdefault(
                each.of, {"layer type": each.of, "of all weights, %": 100 * each.weights / own.size}
            )
            row[f"{letter} selects of it, %"] = 100 * each.share
            row[f"of {letter}'s selection, %"] = (
                100 * each.selected / (own.count(rate) or float("nan"))
            )
    return list(made.values())


# --- drawing --------------------------------------------------------------------------------------------------------

TICKS = (0.001, 0.01, 0.1, 1.0)
ACCURACY = {"test accuracy, 95 % intervals": "accuracy"}
LEAKS = {f"TPR at {percent(rate)} FPR": f"tpr_at_{100 * rate:g}%" for rate in LOW}
LEAKS = {"AUC of the attack": "auc", **LEAKS}


def sheet(
    sides: Sequence[Side],
    references: Mapping[str, Outcome],
    rates: Sequence[float],
    leak: str = "AUC of the attack",
) -> Sheet:
    """Accuracy and leak over the rate, and below an axis of tensors for each side; `move` lays a
    rate over it.
    """
    import pandas as pd

    from leak_atlas.report import figures
    from leak_atlas.report.sheet import FLOOR, QUIET, looks_of

    shown = ACCURACY | {f"{leak}, 95 % intervals": LEAKS[leak]}
    low, high = min([GRID[0], *rates]), max([GRID[-1], *rates])
    tensors = {
        f"{side.letter}: what {side.name} selects of each tensor; grey: 95 % of chance": side.ranked
        for side in sides
        if side.ranked
    }
    apart = 0.09 * (len(sides) - 1)  # so that none is covered
    made = [
        {
            "panel": panel,
            "side": side.letter,
            "_x": rate * (1 + apart * (i or -1)),
            "value": one[number],
        }
        for panel, number in shown.items()
        for i, side in enumerate(sides)
        for rate, one in sorted(side.outcomes.items())
    ]
    found = figures.spans(pd.DataFrame(made, columns=["panel", "side", "_x", "value"]))

    def outcomes(ax: Axes, number: str) -> None:
        for (name, beside), dash in zip(references.items(), ("-", (0, (4, 2))), strict=False):
            ax.axhspan(
                beside[number].low,
                beside[number].high,
                color=FLOOR,
                alpha=0.6,
                linewidth=0,
                zorder=0,
            )
            ax.axhline(
                beside[number].value,
                color=QUIET,
                linewidth=1.2,
                linestyle=dash,
                label=name,
                zorder=1,
            )
        if number == "auc":
            ax.axhline(0.5, **figures.GUESS)
        ax.set(
            xscale="log",
            xlim=(0.8 * low, 1.25 * high),
            xlabel="rewind rate r, share of all weights",
        )
        ticks = [each for each in TICKS if low <= each <= high]
        ax.set_xticks(ticks, [percent(each) for each in ticks])

    def shares(ax: Axes, own: Ranked) -> None:
        """Tensors in the order of the network; what has hardly any share lies at the bottom of the
        axis.
        """
        bottom = low / 20
        along(ax, own.ranks)
        ax.set(yscale="log", ylim=(bottom, 1.3))
        ax.set_yticks([bottom, *TICKS], [f"≤ {percent(bottom)}", *map(percent, TICKS)])
        for kind in dict.fromkeys(own.kinds.values()):
            ax.plot(
                [],
                [],
                looks[kind].marker,
                color=looks[kind].colour,
                markeredgecolor="white",
                label=kind,
            )

    def dress(panel: str, ax: Axes) -> None:
        if panel in shown:
            outcomes(ax, shown[panel])
        else:
            shares(ax, tensors[panel])
            ax.set_title(panel, color=COLOURS[panel[0]])
        ax.minorticks_off()

    looks = looks_of(SERIES)
    looks |= {
        side.letter: looks[side.letter]._replace(label=f"{side.letter}: {side.name}")
        for side in sides
    }
    panels = [[*shown], [*shown], *([panel] * len(shown) for panel in tensors)]
    layers = [(found, figures.points)]
    return figures.draw(
        layers, looks=looks, hue="side", facet="panel", panels=panels, height=1.3, dress=dress
    )


def move(fig: Sheet, sides: Sequence[Side], rate: float) -> None:
    """Lays a rate, and what is selected at it, over a `sheet` of these sides."""
    from leak_atlas.report.sheet import FAINT, INK, looks_of

    looks, over = looks_of(SERIES), dict[str, Any](animated=True, in_layout=False)
    for artist in fig.moving:
        artist.remove()
    top, below = fig.axes[:2], fig.axes[2:]
    fig.moving = [ax.axvline(rate, color=INK, linewidth=1.1, zorder=2, **over) for ax in top]
    for ax, own in zip(below, [side.ranked for side in sides if side.ranked], strict=True):
        bottom, found = ax.get_ylim()[0], list(enumerate(own.shares(rate)))
        chance = np.maximum(own.chance(rate), bottom)
        fig.moving.append(
            ax.vlines(range(len(found)), *chance, color=FAINT, alpha=0.45, linewidth=7, **over)
        )
        fig.moving.append(ax.axhline(rate, color=INK, linewidth=1.1, **over))
        for kind in dict.fromkeys(own.kinds.values()):
            of = [(i, max(each.share, bottom)) for i, each in found if own.kinds[each.of] == kind]
            look = {
                "color": looks[kind].colour,
                "markeredgecolor": "white",
                "clip_on": False,
                **over,
            }
            fig.moving += ax.plot(*zip(*of, strict=True), looks[kind].marker, **look)
