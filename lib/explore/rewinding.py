"""CWRF's rewinding (A3) at any rate: its recipes, what is stored of it, and how two scores of weights are drawn.

Which weights a score selects is read from its stored maps, at any rate; what rewinding them does has to be trained.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lib import BadInput, audit, nearest, selection
from lib.audit import Estimate
from lib.explore.base import COLOURS, Shelf
from lib.localization import score_maps
from lib.localization.disparity import Arrays
from lib.recipe import SNIP, Attacker, Criterion, LiRA, Objective, Population, Schedule, Score, Step

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from lib.report.sheet import Sheet

# Rates that can be looked at, ten a decade: from one weight in 2,000 to every second.
GRID = tuple(
    round(digits * 10.0**power, 6)
    for power in (-4, -3, -2, -1)
    for digits in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
    if 5e-4 <= digits * 10.0**power <= 0.5
)
# Colour and marker of a layer type. None of them is A's or B's colour.
KINDS = {
    "conv": ("#0f8a66", "o"),
    "linear": ("#a8518a", "D"),
    "norm": ("#b98300", "^"),
    "attention": ("#3aa0d8", "v"),
    "embedding": ("#5b6570", "P"),
}


def percent(rate: float) -> str:
    return f"{100 * rate:.3g} %"


@dataclass(frozen=True, eq=False)
class Rewinding:
    """The weights that score highest go back to their initial values and stay there; the others are trained on.

    `criteria` are the scores to choose from, by the words that offer them. Each model goes by its own score. SNIP
    scores the initialisation, all others the trained model.
    """

    ordinary: Population
    schedule: Schedule  # of the training that follows
    objective: Objective
    criteria: Mapping[str, Criterion]
    attacker: Attacker = field(default_factory=LiRA)

    def scores(self, name: str) -> tuple[Score, ...]:
        """One a model. Raises BadInput on a score that is not offered."""
        if name not in self.criteria:
            raise BadInput(f"there is no score '{name}' to look at{nearest(name, list(self.criteria))}")
        criterion = self.criteria[name]
        return (self.ordinary.at("init") if isinstance(criterion, SNIP) else self.ordinary).score(criterion)

    def rewound(self, name: str, rate: float) -> Population:
        """A3 by one score at one rate."""
        by = self.scores(name)
        return self.ordinary.rewind_weights(by, rate).hold_weights(by, rate).train(self.schedule, self.objective)

    def references(self) -> dict[str, Population]:
        """What every rate is compared with: the attacked networks, and the same training with nothing rewound."""
        alone = f"{type(self.objective).__name__} alone"
        return {"ordinary": self.ordinary, alone: self.ordinary.train(self.schedule, self.objective)}

    def measured(self, models: Population) -> list[Step]:
        """Of each model its signals, and the attack in which they are each other's shadows."""
        return [*models.signals(), models.attack(self.attacker)]

    def steps(self, names: Iterable[str], rates: Iterable[float]) -> list[Step]:
        """All scores and references, and what comes of rewinding by the scores `names` at `rates`."""
        chains = [self.rewound(name, rate) for name in names for rate in rates]
        models = [*self.references().values(), *chains]
        return [
            *(s for name in self.criteria for s in self.scores(name)),
            *(s for m in models for s in self.measured(m)),
        ]


class Outcome(NamedTuple):
    """Test accuracy and AUC of the attack, over the models."""

    accuracy: Estimate
    auc: Estimate


def _outcome(attacker: Attacker, found: Sequence[Arrays]) -> Outcome:
    *signals, attack = found
    accuracy = audit.over([float(each["accuracy_test"]) for each in signals], bounds=(0, 1))
    row = audit.audit(attack["scores"], attack["member"], (), design_effect=attacker.crossing)
    return Outcome(accuracy, row["auc"])


class Ranked:
    """The weights of one model in the order of a score; `result` is that of a `Score`."""

    def __init__(self, result: Arrays) -> None:
        self.kinds = score_maps.kinds(result)
        self.ranks = selection.ranks(score_maps.maps(result))
        self.size = sum(each.size for each in self.ranks.values())

    def chosen(self, rate: float) -> dict[str, NDArray[np.bool_]]:
        """The same masks as `selection.highest`."""
        count = round(rate * self.size)
        return {name: places < count for name, places in self.ranks.items()}

    def by_tensor(self, rate: float) -> tuple[score_maps.Share, ...]:
        return score_maps.shares(self.chosen(rate))

    def chance(self, rate: float) -> NDArray:
        """Low and high ends, `(2, tensors)`, of 95 % of each tensor's shares where every weight is drawn on its own."""
        from scipy import stats

        sizes = [each.size for each in self.ranks.values()]
        return np.array(stats.binom.interval(0.95, sizes, rate)) / sizes

    def by_kind(self, rate: float) -> tuple[score_maps.Share, ...]:
        return score_maps.shares(self.chosen(rate), self.kinds)


class Side(NamedTuple):
    """One score: what came of rewinding by it at the rates that are stored, and which weights of a model it selects."""

    letter: str
    name: str
    outcomes: Mapping[float, Outcome]
    ranked: Ranked | None


class Stored:
    """What is stored of a rewinding at some rates, each read and counted once. Nothing is computed."""

    def __init__(self, of: Rewinding, rates: Iterable[float]) -> None:
        self.of, self.rates = of, sorted(set(rates))
        self._shelf = Shelf()
        self._chains: dict[tuple[str, float], Population] = {}

    def chain(self, name: str, rate: float) -> Population:
        if (name, rate) not in self._chains:
            self._chains[name, rate] = self.of.rewound(name, rate)
        return self._chains[name, rate]

    def outcome(self, models: Population) -> Outcome | None:
        return self._shelf.made(self.of.measured(models), partial(_outcome, self.of.attacker))

    def ranked(self, name: str, model: int) -> Ranked | None:
        return self._shelf.made([self.of.scores(name)[model]], lambda found: Ranked(found[0]))

    def side(self, letter: str, name: str, model: int) -> Side:
        found = {rate: self.outcome(self.chain(name, rate)) for rate in self.rates}
        return Side(letter, name, {r: one for r, one in found.items() if one}, self.ranked(name, model))

    def references(self) -> dict[str, Outcome]:
        found = {name: self.outcome(models) for name, models in self.of.references().items()}
        return {name: one for name, one in found.items() if one}


# --- in words -------------------------------------------------------------------------------------------------------


def agree(a: Ranked, b: Ranked, rate: float) -> tuple[float, float, float]:
    """The share of either selection that is in both, and the middle 95 % of what chance gives; NaN of no weight."""
    from scipy import stats

    count = round(rate * a.size)
    chosen = zip(a.chosen(rate).values(), b.chosen(rate).values(), strict=True)
    both = sum(int((one & two).sum()) for one, two in chosen)
    if not count:
        return (float("nan"),) * 3
    low, high = stats.hypergeom.interval(0.95, a.size, count, count)
    return both / count, float(low) / count, float(high) / count


def told(sides: Sequence[Side], rate: float, references: Mapping[str, Outcome]) -> list[str]:
    """The numbers in sentences."""
    out = []
    for side in sides:
        found, own = side.outcomes.get(rate), side.ranked
        text = f"{side.letter} ({side.name}) at {percent(rate)}: "
        text += _told(found) if found else "what comes of rewinding these weights is not trained yet"
        if own and (count := round(rate * own.size)):
            most = max(own.by_tensor(rate), key=lambda each: each.share)
            kind = max(own.by_kind(rate), key=lambda each: each.selected)
            text += (
                f". Of its {count:,} weights {percent(kind.selected / count)} are {kind.of}; "
                f"it takes the most of {most.of.removesuffix('.weight')}, {percent(most.share)}"
            )
        out.append(f"{text}.")
    ranked = [side.ranked for side in sides if side.ranked]
    if len(ranked) == 2 and round(rate * ranked[0].size):
        both, low, high = map(percent, agree(ranked[0], ranked[1], rate))
        out.append(f"A and B have {both} of their weights in common; by chance {low} to {high}.")
    if references:
        beside = "; ".join(f"{name}, {_told(one)}" for name, one in references.items())
        models = next(iter(references.values())).accuracy.n
        out.append(f"Beside them: {beside}. All are means over {models} models with 95 % intervals.")
    return out


def _told(found: Outcome) -> str:
    return f"test accuracy {found.accuracy:.3f}, attack AUC {found.auc:.3f}"


def rows(sides: Sequence[Side], rate: float) -> list[dict[str, Any]]:
    """By layer type, in percent: its share of all weights, how much of it is selected, its part of the selection."""
    stored = [(side.letter, side.ranked) for side in sides if side.ranked]
    made: dict[str, dict[str, Any]] = {}
    for letter, own in stored:
        count = round(rate * own.size)
        for each in own.by_kind(rate):
            row = made.setdefault(each.of, {"layer type": each.of, "of all weights, %": 100 * each.weights / own.size})
            row[f"{letter} selects of it, %"] = 100 * each.share
            row[f"of {letter}'s selection, %"] = 100 * each.selected / count if count else float("nan")
    return list(made.values())


# --- drawing --------------------------------------------------------------------------------------------------------

SHOWN_RATES, NUMBERS = (0.001, 0.01, 0.1, 1.0), {"accuracy": "test accuracy", "auc": "AUC of the attack"}


class Drawing:
    """Accuracy and AUC over the rate and, for each side below, the share of each tensor that it selects at one rate.

    What stays is drawn once; what moves with the rate is laid over it, so that a slider can be followed.
    """

    def __init__(self, sides: Sequence[Side], references: Mapping[str, Outcome], rates: Sequence[float]) -> None:
        from lib.report import sheet

        self._sides, self._references = sides, references
        self._low, self._high = min(GRID[0], *rates), max(GRID[-1], *rates)
        self._moving: list[Artist] = []
        self._still: Any = None  # the pixels of what stays
        self._shown = [side for side in sides if side.ranked]
        layout: Any = [list(NUMBERS), *([side.letter] * len(NUMBERS) for side in self._shown)]
        self.sheet = sheet.Sheet(figsize=(8.7, 2.5 + 1.5 * len(self._shown)))
        heights = (2, *[1.15] * len(self._shown))
        self._axes: dict[str, Axes] = self.sheet.subplot_mosaic(layout, height_ratios=heights)
        for number in NUMBERS:
            self._outcomes(self._axes[number], number)
        for side in self._shown:
            self._tensors(self._axes[side.letter], side, names=side is self._shown[-1])
        key = self._axes["auc"].get_legend_handles_labels()
        sheet.finish(self.sheet, {label: artist for artist, label in zip(*key, strict=True)})

    def at(self, rate: float) -> Sheet:
        """The sheet at a rate."""
        for artist in self._moving:
            artist.remove()
        before = {artist for ax in self._axes.values() for artist in ax.get_children()}
        self._move(rate)
        self._moving = [each for ax in self._axes.values() for each in ax.get_children() if each not in before]
        for artist in self._moving:
            artist.set_in_layout(False)
        self.told = told(self._sides, rate, self._references)
        self.sheet.finding = " ".join(self.told)
        return self.sheet

    def picture(self, rate: float) -> bytes:
        """The sheet at a rate as a PNG, in a tenth of the time of drawing it anew."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from PIL import Image

        canvas = FigureCanvasAgg(self.sheet)
        if self._still is None:
            canvas.draw()
            self._still = canvas.copy_from_bbox(self.sheet.bbox)
        canvas.restore_region(self._still)
        self.at(rate)
        for artist in self._moving:
            artist.draw(canvas.get_renderer())
        buffer = io.BytesIO()
        Image.fromarray(np.asarray(canvas.buffer_rgba())).save(buffer, "PNG", compress_level=1)
        return buffer.getvalue()

    def _outcomes(self, ax: Axes, number: str) -> None:
        from lib.report import figures
        from lib.report.sheet import FLOOR, QUIET, Look

        ax.set(xscale="log", xlim=(0.8 * self._low, 1.25 * self._high), xlabel="rewind rate r, share of all weights")
        for (name, found), dash in zip(self._references.items(), ("-", (0, (4, 2))), strict=False):
            one: Estimate = getattr(found, number)
            ax.axhspan(one.low, one.high, color=FLOOR, alpha=0.6, linewidth=0, zorder=0)
            ax.axhline(one.value, color=QUIET, linewidth=1.2, linestyle=dash, label=name, zorder=1)
        for i, side in enumerate(self._sides):
            aside = 0.91 + 0.18 * i if len(self._sides) > 1 else 1.0  # alone, none is covered
            look = Look(f"{side.letter}: {side.name}", COLOURS[side.letter], "os"[i], ("-", "--")[i])
            if made := [{"_x": at * aside, "value": getattr(one, number)} for at, one in sorted(side.outcomes.items())]:
                figures.points(ax, figures.spans(made), look)
        if number == "auc":
            ax.axhline(0.5, **figures.GUESS)
        ticks = [each for each in SHOWN_RATES if self._low <= each <= self._high]
        ax.set_xticks(ticks, [percent(each) for each in ticks])
        ax.minorticks_off()
        ax.set_title(f"{NUMBERS[number]}, 95 % intervals")

    def _tensors(self, ax: Axes, side: Side, names: bool) -> None:
        """A logarithmic axis, tensors in the order of the network; what has hardly any share lies at the bottom."""
        from lib.report.sheet import FLOOR

        own, bottom = side.ranked, self._low / 20
        assert own is not None
        parts = [name.partition(".")[0] for name in own.ranks]
        starts = [i for i, part in enumerate(parts) if not i or part != parts[i - 1]]
        centres = [(a + b - 1) / 2 for a, b in zip(starts, [*starts[1:], len(parts)], strict=True)]
        ax.set(yscale="log", ylim=(bottom, 1.3), xlim=(-0.7, len(parts) - 0.3))
        ax.set_xticks(centres, [parts[i] if names else "" for i in starts])
        ax.set_yticks([bottom, *SHOWN_RATES], [f"≤ {percent(bottom)}", *map(percent, SHOWN_RATES)])
        ax.minorticks_off()
        ax.grid(axis="x", visible=False)
        ax.tick_params(axis="x", length=0)
        ax.vlines([start - 0.5 for start in starts[1:]], bottom, 1.3, color=FLOOR, linewidth=1)
        for kind in dict.fromkeys(own.kinds.values()):
            ax.plot([], [], KINDS[kind][1], color=KINDS[kind][0], markeredgecolor="white", label=kind)
        ax.legend(loc="lower right", bbox_to_anchor=(1.01, 1.0), ncols=len(KINDS), handletextpad=0.1, columnspacing=1)
        title = f"{side.letter}: what {side.name} selects of each tensor; grey: 95 % of chance"
        ax.set_title(title, color=COLOURS[side.letter])

    def _move(self, rate: float) -> None:
        from lib.report.sheet import FAINT, INK

        for number in NUMBERS:
            self._axes[number].axvline(rate, color=INK, linewidth=1.1, zorder=2)
        for side in self._shown:
            own, ax, bottom = side.ranked, self._axes[side.letter], self._low / 20
            assert own is not None
            low, high = np.maximum(own.chance(rate), bottom)
            ax.vlines(range(len(low)), low, high, color=FAINT, alpha=0.45, linewidth=7)
            ax.axhline(rate, color=INK, linewidth=1.1)
            found = list(enumerate(own.by_tensor(rate)))
            for kind in dict.fromkeys(own.kinds.values()):
                of = [(i, max(each.share, bottom)) for i, each in found if own.kinds[each.of] == kind]
                colour, marker = KINDS[kind]
                ax.plot(*zip(*of, strict=True), marker, color=colour, markeredgecolor="white", clip_on=False)
