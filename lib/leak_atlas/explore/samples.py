"""Which samples a pruned network remembers, and what a window over them does to their exposure
(WeMem).

    study = Samples(setup, Schedule(21), ranking, 10, {"LiRA": LiRA("offline_cdf")}, widths=[9],
    strides=[1])
    lab.realize(study.steps("LiRA", Way("RSW", 9, 1, "low-to-high")))
    samples.explorer({"bits": study}, Way("RSW", 9, 1, "low-to-high"), "LiRA")

What is stored is shown at once. The rest is trained on a click, whose cost is told before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from IPython.display import HTML as Shown
from ipywidgets import HTML, IntSlider, SelectionSlider
from markupsafe import Markup
from numpy.typing import NDArray

from leak_atlas import BadInput, audit, nearest
from leak_atlas.audit import Estimate, FloatArray
from leak_atlas.data import designs, readers
from leak_atlas.data.designs import Role
from leak_atlas.explore import base, look, shelf
from leak_atlas.explore.base import View
from leak_atlas.explore.look import marks, percent
from leak_atlas.explore.shelf import Measured, Outcome, Shelf
from leak_atlas.localization.samples import split_by_group, split_by_ranking, window_visits
from leak_atlas.recipe import (
    RMR,
    Attacker,
    Memorization,
    Population,
    Pruner,
    Schedule,
    Setup,
    Step,
    Window,
    registry,
)
from leak_atlas.report.markup import drawn, png

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from leak_atlas.localization.disparity import Arrays
    from leak_atlas.report import Table
    from leak_atlas.report.sheet import Sheet

DEFENCES = ("RSW", "SWMR")
RANDOM = "random order"  # the control: the same scores, permuted
ORDERS = ("low-to-high", "high-to-low", RANDOM)
PARTS, NEIGHBOURS = 4, 6  # of the pool by its scores; samples that lie next to the chosen one


class Way(NamedTuple):
    """One of DEFENCES, how many members of a class its window holds and by how many it moves, and
    one of ORDERS.
    """

    defence: str
    width: int
    step: int
    order: str

    @property
    def window(self) -> Window:
        return Window(
            self.width, self.step, "high-to-low" if self.order == "high-to-low" else "low-to-high"
        )

    def __str__(self) -> str:
        return f"{self.defence}, width {self.width}, step {self.step}, {self.order}"


@dataclass(frozen=True, eq=False)
class Samples:
    """Networks that are pruned in rounds, with a window over their members or without one (Base).

    `setup` trains the dense ones, victims first; each shadow walks its victims' whole chain.
    `ranking` speaks of the whole pool. Raises BadInput on data that are neither images nor bits.
    """

    setup: Setup
    schedule: Schedule  # of a round
    ranking: Memorization
    victims: int
    attackers: Mapping[str, Attacker]  # by the words that offer them
    # of windows, offered beside each ninth of a class' members; the last one to begin with
    widths: Sequence[int]
    # their steps, offered beside 0, 1 and 2 45ths; the first one to begin with
    strides: Sequence[int]
    risky: RMR = field(default_factory=RMR)  # SWMR's
    pruner: Pruner = "L1 unstructured"
    sparsity: float = 0.6
    rounds: int = 5
    head: bool = True

    def __post_init__(self) -> None:
        look.pictured(self.setup.data)

    @cached_property
    def grid(self) -> tuple[list[int], list[int]]:
        """Widths and steps that can be looked at."""
        size = self.setup.design.members(0) / self.setup.data.classes
        widths, steps = (
            (round(size * k / 9) for k in range(1, 10)),
            (round(size * k / 45) for k in range(3)),
        )
        return sorted({*self.widths, *widths} - {0}), sorted({*self.strides, *steps})

    def way(self, defence: str, order: str) -> Way:
        """With the window to begin with."""
        return Way(defence, self.widths[-1], self.strides[0], order)

    def pruned(self, way: Way | None = None) -> Population:
        """At the end of the last round; None: Base."""
        given: dict[str, Any] = {}
        if way:
            if way.defence not in DEFENCES or way.order not in ORDERS:
                wrong, known = (
                    (way.order, ORDERS) if way.defence in DEFENCES else (way.defence, DEFENCES)
                )
                raise BadInput(f"there is no '{wrong}' to look at{nearest(wrong, known)}")
            given = {"sampling": way.window, "ranking": self.ranked(way.order)}
            given |= {"objective": self.risky} if way.defence == "SWMR" else {}
        dense = self.setup.trained()
        return dense.iteratively(
            self.pruner, self.sparsity, self.schedule, self.rounds, self.head, **given
        )[-1]

    def ranked(self, order: str) -> Step:
        """The scores by which members are ordered."""
        return self.ranking.shuffle() if order == RANDOM else self.ranking

    def measured(self, models: Population, attack: str) -> Measured:
        return shelf.measured(models, self.attackers, attack, self.victims)

    def steps(self, attack: str, *ways: Way) -> list[Any]:
        """The scores in each order, Base, and all that is looked at of some ways."""
        each = [self.measured(self.pruned(way), attack) for way in (None, *ways)]
        return [[self.ranked(order) for order in ORDERS], each]


# --- the numbers ----------------------------------------------------------------------------------------------------


class Pool:
    """The samples that a study's scores speak of: pictures, labels, and what each is to each
    victim.
    """

    def __init__(self, study: Samples) -> None:
        data = study.setup.data
        self.data, self.classes = (
            readers.load(data.name, data.pixels),
            registry.find(data.name).classes,
        )
        self.roles = designs.roles(
            study.setup.design, self.data.labels, data.parts[0], study.victims
        )

    def members(self, victim: int, ranking: Arrays, by: Arrays, order: str) -> pd.DataFrame:
        """A victim's members: `index`, `label`, `score`, and `rank`, their place from 0 in their
        class.

        `by` are the scores that order them; of equal ones the first member ranks first, as in the
        training.
        """
        import pandas as pd

        inside = self.roles[victim, ranking["index"]] == Role.MEMBER
        index, score = ranking["index"][inside], by["score"][inside]
        frame = pd.DataFrame(
            {"index": index, "label": self.data.labels[index], "score": ranking["score"][inside]}
        )
        frame = frame.iloc[np.argsort(-score if order == "high-to-low" else score, kind="stable")]
        return frame.assign(rank=frame.groupby("label").cumcount())

    def neighbours(self, at: int, index: NDArray, count: int) -> tuple[NDArray, FloatArray]:
        """Those of the samples `index` that lie nearest to sample `at`, and how far: Euclidean, of
        pixels in [0, 1].
        """
        x = self.data.x[index].reshape(len(index), -1).astype(np.float32) - self.data.x[at].reshape(
            -1
        )
        far = np.linalg.norm(x, axis=1) / (255 if self.data.x.ndim == 4 else 1)
        far[index == at] = np.inf
        nearest = np.argsort(far, kind="stable")[:count]
        return index[nearest], far[nearest]

    def pictures(self, index: NDArray) -> NDArray[np.uint8]:
        return look.pictures(self.data.x[index])

    def strip(self, members: pd.DataFrame) -> NDArray[np.uint8]:
        """Members as one picture: a row for each class, a column for each rank."""
        tiles = np.pad(
            self.pictures(members["index"].to_numpy()),
            ((0, 0), (0, 1), (0, 1), (0, 0)),
            constant_values=255,
        )
        made = np.full(
            (len(self.classes), members["rank"].max() + 1, *tiles.shape[1:]), 255, np.uint8
        )
        made[members["label"], members["rank"]] = tiles
        return made.swapaxes(1, 2).reshape(made.shape[0] * made.shape[2], -1, 3)


def exposure(scored: Mapping[str, NDArray]) -> FloatArray:
    """Of each target's samples `(T, n)` the share of its non-members with a lower score, ties
    counted half.

    Its mean over a target's members is the attack's AUC.
    """
    made = []
    for scores, member in zip(
        scored["scores"], np.broadcast_to(scored["member"], scored["scores"].shape), strict=True
    ):
        outside = np.sort(scores[~member])
        below = np.searchsorted(outside, scores) + np.searchsorted(outside, scores, "right")
        made.append(below / 2 / len(outside))
    return np.array(made)


def by_rank(scored: Mapping[str, NDArray], members: Sequence[pd.DataFrame]) -> list[Estimate]:
    """Mean `exposure` of the members of each rank, over the targets, as far as each target has such
    members.
    """
    import pandas as pd

    shown, made = exposure(scored), []
    for values, index, frame in zip(
        shown, np.broadcast_to(scored["index"], shown.shape), members, strict=True
    ):
        own = pd.Series(values[np.searchsorted(index, frame["index"])])
        made.append(own.groupby(frame["rank"].to_numpy()).mean())
    table = pd.concat(made, axis=1, join="inner").sort_index()
    return [audit.mean_ci(row, bounds=(0, 1)) for row in table.to_numpy()]


def by_visits(
    pool: Pool, scored: Arrays, by: Arrays, window: Window, epochs: int
) -> dict[str, Estimate]:
    """AUC among the samples that a window visits and among those that it never does, where there
    are both.
    """
    labelled = {"index": by["index"], "labels": pool.data.labels[by["index"]]}
    never = (window_visits(scored, by, labelled, window, epochs) == 0).astype(int)
    parts = dict(zip(("visited", "never visited"), split_by_group(scored, never, 2), strict=True))
    full = all(
        one["member"].any() and not one["member"].all() for part in parts.values() for one in part
    )
    return {name: audit.audit(part)["auc"] for name, part in parts.items()} if full else {}


def by_part(ranking: Arrays, attacks: Mapping[str, Arrays]) -> list[dict[str, Any]]:
    """AUC within each part of the scores, from the lowest, and how far the second attack's differs
    from the first's.
    """
    cut = {name: split_by_ranking(scored, ranking, PARTS) for name, scored in attacks.items()}
    ends = [each[[0, -1]].round(3) for each in np.array_split(np.sort(ranking["score"]), PARTS)]
    rows = []
    for i, scores in enumerate(ends):
        areas = {
            name: [float(audit.auc(one["scores"], one["member"])[0]) for one in parts[i]]
            for name, parts in cut.items()
        }
        row: dict[str, Any] = {
            "quarter": f"{i + 1}",
            "scores": " to ".join(f"{end + 0:.3f}".replace("-", "−") for end in scores),
        }
        row |= {
            f"AUC, {name.partition(',')[0]}": audit.mean_ci(each, bounds=(0, 1))
            for name, each in areas.items()
        }
        if len(areas) == 2:
            first, second = areas.values()
            row["difference"] = audit.paired_difference(second, first)
        rows.append(row)
    return rows


def of_sample(scored: Arrays, at: int) -> dict[str, Estimate | None]:
    """Exposure of one sample to the targets that trained on it, and to those that did not; None
    where none are.
    """
    shown = exposure(scored)
    here = np.broadcast_to(scored["index"], shown.shape) == at
    member = np.broadcast_to(scored["member"], shown.shape)
    sides = {"trained on it": here & member, "did not": here & ~member}
    return {
        name: audit.mean_ci(shown[own], bounds=(0, 1)) if own.any() else None
        for name, own in sides.items()
    }


# --- drawing --------------------------------------------------------------------------------------------------------

VISITS, EXPOSED = (
    "visits of a member in a round, by rank",
    "share of non-members that the members of a rank outrank",
)


def sheet(
    title: str,
    strip: NDArray[np.uint8],
    classes: Sequence[str],
    visits: NDArray,
    epochs: int,
    exposed: Mapping[str, Sequence[Estimate]],
) -> Sheet:
    """The strip under its title, and below it `visits` and `exposed` by rank; `move` lays an epoch
    and a sample on.
    """
    import pandas as pd

    from leak_atlas.report import figures
    from leak_atlas.report.sheet import FAINT, INK, WASH, Look, limits, spans

    names, ranks = [*exposed], np.arange(1, len(visits) + 1)
    styles = zip(names, (INK, look.COLOURS["B"]), "-:", strict=False)
    looks = {name: Look(name, colour, "o", dash) for name, colour, dash in styles}
    made = [
        {"panel": EXPOSED, "series": name, "_x": i + 1, "value": one}
        for name, each in exposed.items()
        for i, one in enumerate(each)
    ]
    table = spans(pd.DataFrame(made, columns=["panel", "series", "_x", "value"]))
    shown = limits(0.5, table)

    def dress(panel: str, ax: Axes) -> None:
        ax.set_xlim(0.5, len(visits) + 0.5)
        ax.grid(axis="x", visible=False)
        ax.tick_params(labelbottom=panel == EXPOSED)
        if panel == title:
            ax.grid(visible=False)
            ax.imshow(
                strip, extent=(0.5, len(visits) + 0.5, len(classes) - 0.5, -0.5), aspect="auto"
            )
            ax.set_yticks(range(len(classes)), classes)
            ax.spines[:].set_visible(False)
            ax.tick_params(length=0)
        elif panel == VISITS:
            ax.bar(
                ranks,
                visits,
                0.9,
                color=WASH,
                edgecolor=FAINT,
                linewidth=0.6,
                label="visits of the whole round",
            )
            ax.bar(
                [1], [0], color=look.COLOURS["B"], alpha=0.6, label="until the epoch that is shown"
            )
            ax.axhline(epochs, color=INK, linewidth=1.2, label="Base")
            ax.set_ylim(0, 1.1 * epochs)
        else:
            for rank in ranks[visits == 0]:
                ax.axvspan(
                    rank - 0.5, rank + 0.5, color=WASH, linewidth=0, zorder=0, label="never visited"
                )
            ax.axhline(0.5, **figures.GUESS)
            ax.set(ylim=shown, xlabel="rank in the class, in the order of the window")

    # so that tiles are about square
    rows = np.clip(round(7.6 / len(visits) * len(classes) / 1.1 + 0.2), 2, 5)
    panels = [*[[title]] * rows, [VISITS], [EXPOSED]]
    return figures.draw(
        [(table, figures.band)],
        looks=looks,
        hue="series",
        facet="panel",
        panels=panels,
        height=1.1,
        dress=dress,
    )


def move(fig: Sheet, window: Window, epoch: int, chosen: tuple[int, int], ranks: int) -> None:
    """Lays an epoch of the window, counted from 0, and a sample (its rank, from 0, and its class)
    over a `sheet`.
    """
    from matplotlib.patches import Rectangle

    from leak_atlas.report.sheet import INK

    over = dict[str, Any](animated=True, in_layout=False)
    for artist in fig.moving:
        artist.remove()
    strip, visits, _ = fig.axes
    start, end = (window.step * epoch + each + 0.5 for each in (0, window.width))
    spans = [(low, high) for low, high in ((0.5, start), (end, ranks + 0.5)) if low < high]
    fig.moving = [
        strip.axvspan(*span, color="white", alpha=0.7, linewidth=0, **over) for span in spans
    ]
    frame = Rectangle(
        (chosen[0] + 0.5, chosen[1] - 0.5), 1, 1, fill=False, edgecolor=INK, linewidth=2, **over
    )
    fig.moving.append(strip.add_patch(frame))
    for ax in (strip, visits):
        fig.moving.append(
            ax.axvspan(start, end, fill=False, edgecolor=look.COLOURS["B"], linewidth=2, **over)
        )
    so_far = window.visits(ranks, epoch + 1)
    fig.moving += visits.bar(
        range(1, ranks + 1), so_far, 0.9, color=look.COLOURS["B"], alpha=0.6, **over
    )


# --- the widget -----------------------------------------------------------------------------------------------------


class Explorer(base.Explorer):
    """A study (by the words that offer it), a defence with its window, an attack, and a member of a
    victim.
    """

    def __init__(
        self, studies: Mapping[str, Samples], defence: str, order: str, attack: str
    ) -> None:
        for study in studies.values():  # BadInput where one cannot be
            study.steps(attack, study.way(defence, order))
        super().__init__()
        self._studies, self._shelf, self._chosen, first = (
            studies,
            Shelf(),
            dict[str, Any](),
            next(iter(studies)),
        )
        self._seen = studies[first]  # what the widths and steps belong to
        self._pool = cache(lambda name: Pool(studies[name]))
        self._measured = cache(
            lambda name, way, attack: studies[name].measured(studies[name].pruned(way), attack)
        )
        self.data = self.listed("data", list(studies), first)
        self.defence, self.order = (
            self.listed("defence", DEFENCES, defence),
            self.listed("order", ORDERS, order),
        )
        self.attack = self.listed("attack", list(studies[first].attackers), attack)
        (widths, steps), begin = studies[first].grid, studies[first].way(defence, order)
        self.width = self.watched(
            "width", SelectionSlider(options=widths, value=begin.width, description="width")
        )
        self.step = self.watched(
            "step", SelectionSlider(options=steps, value=begin.step, description="step")
        )
        self.epoch = self.watched(
            "epoch", IntSlider(1, 1, 1, description="epoch").add_class("leak-atlas-epoch")
        )
        victims = [(f"victim {i}", i) for i in range(studies[first].victims)]
        self.victim, self.label = (
            self.listed("victim", victims, 0, "members of"),
            self.listed("label", [("", 0)], 0, "class"),
        )
        self.rank = self.watched(
            "rank", IntSlider(1, 1, 1, description="rank").add_class("leak-atlas-rank")
        )
        self.sample, self.parts = HTML(), HTML().add_class("leak-atlas-table")
        rows = [
            [self.data, self.defence, self.order, self.attack],
            [self.width, self.step, self.epoch],
            [self.victim, self.label, self.rank],
        ]
        self.lay(rows, below=[self.sample, self.parts])
        self.settle()

    @property
    def _way(self) -> Way:
        return Way(self.defence.value, self.width.value, self.step.value, self.order.value)

    def steps(self) -> list[list[Any]]:
        return [self._studies[self.data.value].steps(self.attack.value, self._way)]

    def needs(self, name: str, value: Any) -> Sequence[Step]:
        now, study = (
            self.state | {name: value},
            self._studies[self.data.value if name != "data" else value],
        )
        if study is not self._seen:  # it begins with its own window
            now |= {"width": study.widths[-1], "step": study.strides[0]}
        way = Way(now["defence"], now["width"], now["step"], now["order"])
        return [study.ranked(way.order), self._measured(now["data"], way, now["attack"])[1]]

    def attacks(self) -> dict[str, Arrays]:
        return self._chosen.get("attacks", {})

    def _asked(self, way: Way | None) -> Measured:
        return self._measured(self.data.value, way, self.attack.value)

    def _offer(self, study: Samples) -> None:
        """What can be chosen of this study, which begins with its own window; marks say what is
        trained.
        """
        begin = self._way._asdict() | {"width": study.widths[-1], "step": study.strides[0]}
        if study is not self._seen:
            for name, values in zip(("width", "step"), study.grid, strict=True):
                base.offer(
                    control := getattr(self, name), marks(values, (), "{:g}".format), begin[name]
                )
                control.value = begin[name]
            self._seen = study
        for name, values in zip(("width", "step"), study.grid, strict=True):
            self.mark(name, values, "{:g}".format)
        for name, names in (
            ("data", self._studies),
            ("defence", DEFENCES),
            ("order", ORDERS),
            ("attack", study.attackers),
        ):
            self.mark(name, list(names))
        self.epoch.max = study.schedule.epochs
        base.offer(
            self.label, [(name, i) for i, name in enumerate(self._pool(self.data.value).classes)], 0
        )

    def _draw(
        self,
        study: Samples,
        pool: Pool,
        scores: tuple[Arrays, Arrays],
        asked: Mapping[str, Measured],
        outcomes: Mapping[str, Outcome],
    ) -> dict[str, Any]:
        """What neither the epoch nor the chosen sample changes."""
        (ranking, by), way, epochs = scores, self._way, study.schedule.epochs
        members = [pool.members(victim, ranking, by, way.order) for victim in range(study.victims)]
        mine = members[self.victim.value]
        attacks = {
            name: found[0] for name in outcomes if (found := self._shelf.results(asked[name][1:]))
        }
        exposed = {name: by_rank(scored, members) for name, scored in attacks.items()}
        visits = np.array(
            way.window.visits(max(frame["rank"].max() for frame in members) + 1, epochs)
        )
        times = [visits[frame["rank"]] for frame in members]
        title = f"members of victim {self.victim.value}, each class in the order of the window: {way.order}"
        told = {
            "outcomes": outcomes,
            "members": mine,
            "attack": self.attack.value,
            "victim": self.victim.value,
            "share": np.concatenate(times).mean() / epochs,
            "never": (np.concatenate(times) == 0).mean(),
            "groups": {
                name: by_visits(pool, scored, by, way.window, epochs)
                for name, scored in attacks.items()
            },
        }
        fig = sheet(
            title, pool.strip(mine), pool.classes, visits[: mine["rank"].max() + 1], epochs, exposed
        )
        return {
            "told": told,
            "sheet": fig,
            "attacks": attacks,
            "visits": visits,
            "table": by_part(ranking, attacks),
        }

    def look(self) -> View:
        study, pool = self._studies[self.data.value], self._pool(self.data.value)
        self._offer(study)
        way, self.sample.value, self.parts.value, self._chosen = self._way, "", "", {}
        scores = self._shelf.results([study.ranking, study.ranked(way.order)])
        if not scores:
            return View(None, [], ["The memorization scores are not there yet."])
        asked = {"Base": self._asked(None), str(way): self._asked(way)}
        outcomes = {name: one for name, of in asked.items() if (one := self._shelf.outcome(*of))}
        key = self.data.value, way, self.attack.value, self.victim.value, *outcomes
        self._chosen = self.kept(
            key, lambda: self._draw(study, pool, (scores[0], scores[1]), asked, outcomes)
        )
        told, fig = self._chosen["told"], self._chosen["sheet"]
        own = told["members"][told["members"]["label"] == self.label.value]
        self.rank.max = len(own)
        epoch, sample = self.epoch.value - 1, own.iloc[self.rank.value - 1]
        first = way.step * epoch
        held = told["members"][told["members"]["rank"].between(first, first + way.width - 1)]
        words = {
            "epoch": epoch + 1,
            "epochs": study.schedule.epochs,
            "first": first + 1,
            "last": first + way.width,
        }
        said = drawn("remembered.txt", **told, **words, held=held, percent=percent).splitlines()
        move(
            fig,
            way.window,
            epoch,
            (self.rank.value - 1, self.label.value),
            told["members"]["rank"].max() + 1,
        )
        fig.finding = " ".join(said)
        self.sample.value = self._card(study, pool, scores[0], sample)
        self.parts.value = look.CELLS + self.table.drawn("html") if self._chosen["table"] else ""
        missing = [
            f"{name}: not trained yet at this choice, or not attacked so."
            for name in asked
            if name not in outcomes
        ]
        return View(fig, said, missing)

    @property
    def table(self) -> Table:
        """AUC of the attack within each quarter of the scores, before and after."""
        from leak_atlas import report

        caption = f"{self._way}: members against non-members of the same quarter of the pool, by their scores"
        return report.table(self._chosen.get("table", []), caption=caption)

    @property
    def card(self) -> Shown:
        """The chosen sample, for a page without a kernel."""
        return Shown(self.sample.value)

    def _card(self, study: Samples, pool: Pool, ranking: Arrays, sample: pd.Series) -> str:
        """The chosen sample: picture, score, neighbours, and its exposure before and after."""
        from PIL import Image

        from leak_atlas import report

        index, at = ranking["index"], int(sample["index"])
        near, far = pool.neighbours(at, index, NEIGHBOURS)
        shown = np.array([at, *near])
        place = np.searchsorted(index, shown)
        columns = (
            shown,
            pool.data.labels[shown],
            ranking["score"][place],
            [0.0, *far],
            pool.pictures(shown),
        )
        tiles = [
            {
                "at": i,
                "label": pool.classes[label],
                "score": score,
                "far": away,
                "png": png(Image.fromarray(own)),
            }
            for i, label, score, away, own in zip(*columns, strict=True)
        ]
        each = {name: of_sample(scored, at) for name, scored in self._chosen["attacks"].items()}
        rows = [
            {"share of non-members that it outranks, for networks that": name} | sides
            for name, sides in each.items()
        ]
        caption = "A row's numbers are means over few victims of one sample"
        words = {
            "error": ranking["error"][place[0]],
            "outside": ranking["outside"][place[0]],
            "rank": self.rank.value,
        }
        words |= {
            "victim": self.victim.value,
            "visits": self._chosen["visits"][self.rank.value - 1],
        }
        words["confidence"] = study.ranking.measure == "confidence"
        words["table"] = Markup(
            look.CELLS + report.table(rows, caption=caption).drawn("html") if rows else ""
        )
        return str(drawn("remembered.html", tiles=tiles, **words))


explorer = Explorer
