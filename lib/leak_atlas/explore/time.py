"""When in training a sample comes to be exposed: the plane epoch by epoch, and a sample's path
through it (Dynamics).

    study = Time(setup, [0, 2, 4, 8], {"LiRA": LiRA()}, judges=16)
    lab.realize(study.steps("LiRA"))
    time.explorer({"images": study}, "LiRA")

What is stored is shown at once. The rest is trained on a click, whose cost is told before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from IPython.display import HTML as Shown
from ipywidgets import HTML, BoundedIntText, HBox, Select, SelectionSlider, VBox

from leak_atlas import BadInput, audit, nearest
from leak_atlas.attacks import signals as scores
from leak_atlas.audit import FloatArray
from leak_atlas.data import readers
from leak_atlas.data.designs import Role
from leak_atlas.explore import base, look
from leak_atlas.explore.base import View
from leak_atlas.explore.look import WRAP, percent
from leak_atlas.explore.shelf import Shelf
from leak_atlas.localization import over_time, trajectories
from leak_atlas.localization.difficulty import difficulty
from leak_atlas.recipe import Attack, Attacker, Population, Setup, Signals, Step, registry
from leak_atlas.report.markup import drawn, png

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from leak_atlas.localization.disparity import Arrays
    from leak_atlas.report.sheet import Sheet

RULES: dict[str, float | Literal["balanced"]] = {
    f"{percent(rate)} FPR": rate for rate in (0.01, 0.05, 0.1, 0.2)
}
RULES |= {"best balanced accuracy": "balanced"}
FORMS: tuple[Literal["counted", "fitted"], ...] = ("counted", "fitted")
FINAL = "TPR − FPR in the last epoch"
MOVED = 12  # samples that are listed: those that end farthest from where they began


@dataclass(frozen=True, eq=False)
class Time:
    """Networks of `setup` on halves of one pool, each attacked by the others at checkpoints.

    `judges` networks of their own, each on a random `share` of the pool, tell how hard samples are;
    no attack knows them. The null is the same attack with membership permuted. Raises
    BadInput on data without pictures.
    """

    setup: Setup
    epochs: Sequence[int]  # checkpoints, 0: the initialisation
    attackers: Mapping[str, Attacker]  # by the words that offer them
    judges: int
    share: float = 0.7

    def __post_init__(self) -> None:
        look.pictured(self.setup.data)

    @cached_property
    def networks(self) -> Population:
        return self.setup.trained()

    def attack_over_time(self, attack: str, permuted: int | None = None) -> dict[int, Attack]:
        """Raises BadInput on an attack that is not offered."""
        if attack not in self.attackers:
            raise BadInput(
                f"there is no attack '{attack}' to look at{nearest(attack, list(self.attackers))}"
            )
        return self.networks.attack_over_time(self.attackers[attack], self.epochs, permuted)

    @cached_property
    def answers(self) -> dict[int, tuple[Signals, ...]]:
        """What the attacked networks say, by epoch."""
        return {epoch: self.networks.at(epoch or "init").signals() for epoch in self.epochs}

    @cached_property
    def judged(self) -> dict[int, tuple[Signals, ...]]:
        """What the judges say, by epoch."""
        own = Population(self.setup.memorization(self.judges, self.share).models)
        return {epoch: own.at(epoch or "init").signals() for epoch in self.epochs}

    def steps(self, attack: str) -> list[Any]:
        """All that is looked at: the attack and its null at each checkpoint, and what all networks
        say there.
        """
        attacks = [[*self.attack_over_time(attack, permuted).values()] for permuted in (None, 0)]
        return [*attacks, [*self.answers.values()], [*self.judged.values()]]


# --- the numbers ----------------------------------------------------------------------------------------------------


def losses(answers: Mapping[int, Sequence[Arrays]], index: NDArray[np.int_]) -> FloatArray:
    """Mean loss of the samples `index (n,)`, `(E, 2, n)`: by networks that did not train on them,
    and that did.
    """
    made = []
    for each in answers.values():
        own = [np.isin(one["index"], index) for one in each]
        found = np.array(
            [
                scores.loss(one["logits"][at], one["labels"][at])
                for one, at in zip(each, own, strict=True)
            ]
        )
        inside = np.array(
            [one["role"][at] == Role.MEMBER for one, at in zip(each, own, strict=True)]
        )
        with np.errstate(invalid="ignore"):
            made.append(
                [
                    np.where(side, found, 0.0).sum(axis=0) / side.sum(axis=0)
                    for side in (~inside, inside)
                ]
            )
    return np.array(made)


@dataclass(frozen=True, eq=False)
class Seen:
    """What is stored of a study: paths through the plane, losses, and how hard samples are."""

    epochs: Sequence[int]
    course: over_time.Trajectory
    path: FloatArray  # (E, 2, n)
    null: FloatArray | None
    loss: FloatArray  # (E, 2, n)
    measures: Mapping[str, FloatArray]  # by which samples are coloured, each (n,)

    @property
    def complete(self) -> bool:
        """Whether there is nothing more that could come to be stored."""
        return self.null is not None and len(self.measures) > 1

    @cached_property
    def aside(self) -> FloatArray:
        """How far aside `(2, n)` samples are drawn: within a counted rate's step, so that none hides
        another.
        """
        networks = len(self.course.member) / 2  # on either side of a sample
        counts = self.path * networks
        step = min(0.8 / networks, 0.08) if np.allclose(counts, np.rint(counts)) else 0.0
        return np.random.default_rng(0).uniform(-0.5, 0.5, self.path.shape[1:]) * step

    @cached_property
    def moved(self) -> FloatArray:
        """How far each sample ends from where it began."""
        return np.linalg.norm(self.path[-1] - self.path[0], axis=0)

    def rank(self, measure: str) -> FloatArray:
        """Share of the other samples that lie below each one, by a measure; ties count half."""
        from scipy.stats import rankdata

        found = self.measures[measure]
        return np.asarray((rankdata(found) - 1) / max(1, len(found) - 1))

    def agreement(self, measure: str, at: int) -> float:
        """Rank correlation of a measure with the samples' TPR - FPR at checkpoint `at`; NaN where
        all are equal.
        """
        risk = trajectories.advantage(self.path)[at]
        return float(audit.rank_correlation(self.measures[measure], risk, undefined=np.nan))

    def travelled(self, path: FloatArray) -> float:
        """Mean length of the samples' paths."""
        return float(
            trajectories.encoding_speed(path, self.course.epochs).mean()
            * np.ptp(self.course.epochs)
        )


def seen(
    study: Time, shelf: Shelf, attack: str, rule: str, form: Literal["counted", "fitted"]
) -> Seen | None:
    """None where the attack or the networks' answers are not stored; no null, no hardness where
    these are not.
    """

    def read(steps: Mapping[int, Sequence[Any]]) -> dict[int, list[Arrays]] | None:
        found = {epoch: shelf.results(each) for epoch, each in steps.items()}
        return (
            {epoch: each for epoch, each in found.items() if each} if all(found.values()) else None
        )

    def walked(permuted: int | None) -> over_time.Trajectory | None:
        found = read(
            {epoch: [each] for epoch, each in study.attack_over_time(attack, permuted).items()}
        )
        return (
            over_time.trajectory({epoch: own[0] for epoch, own in found.items()}) if found else None
        )

    course, null, answers, judged = walked(None), walked(0), read(study.answers), read(study.judged)
    if not course or not answers:
        return None
    path = trajectories.plane(course, RULES[rule], form)
    measures = {FINAL: trajectories.advantage(path)[-1]}
    if judged:
        hard = difficulty(judged, early=[epoch for epoch in study.epochs if epoch][:2][-1])
        at = np.searchsorted(hard.pop("index"), course.index)
        measures |= {name: values[at] for name, values in hard.items()}
    permuted = trajectories.plane(null, RULES[rule], form) if null else None
    return Seen(study.epochs, course, path, permuted, losses(answers, course.index), measures)


# --- drawing --------------------------------------------------------------------------------------------------------

PLANE = "all samples, and the path of the chosen one"
LOSS, RATES = "its loss (thin: mean of all)", "called a member (thin: all)"
SIDES = "networks that did not train on it", "networks that did"


def when(epoch: int) -> str:
    return f"epoch {epoch}" if epoch else "before training"


def sheet(found: Seen) -> Sheet:
    """Means over all samples; `move` lays an epoch and a sample on."""
    import pandas as pd
    from matplotlib.cm import ScalarMappable

    from leak_atlas.report import figures
    from leak_atlas.report.figures import FPR, TPR
    from leak_atlas.report.sheet import SEQUENTIAL, Look

    styles = zip(SIDES, ("A", "B"), ("--", "-"), strict=True)
    looks = {name: Look(name, look.COLOURS[letter], "", dash) for name, letter, dash in styles}
    means = [(LOSS, found.loss), (RATES, found.path)]
    made = [
        {"panel": panel, "series": name, "_x": i, "_y": row}
        for panel, values in means
        for side, name in enumerate(SIDES)
        for i, row in enumerate(np.nanmean(values[:, side], axis=1))
    ]
    low, high = np.nanquantile(found.loss, (0.02, 0.998))
    names, every = [str(epoch) for epoch in found.epochs], 1 + len(found.epochs) // 8

    def thin(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
        ax.plot(
            rows["_x"],
            rows["_y"],
            color=look.colour,
            linestyle=look.dash,
            linewidth=0.9,
            label=look.label,
        )

    def dress(panel: str, ax: Axes) -> None:
        if panel == PLANE:
            ax.plot((0, 1), (0, 1), **figures.GUESS)
            ax.set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05), aspect="equal", xlabel=FPR, ylabel=TPR)
            return
        ax.set_xticks(range(0, len(names), every), names[::every])
        ax.set_xlim(-0.3, len(names) - 0.7)
        if panel == LOSS:
            ax.set(yscale="log", ylim=(max(low, 1e-6) / 1.5, high * 1.5))
        else:
            ax.set(ylim=(-0.05, 1.05), xlabel="epoch")

    fig = figures.draw(
        [(pd.DataFrame(made), thin)],
        looks=looks,
        hue="series",
        facet="panel",
        height=2.6,
        dress=dress,
        panels=[[PLANE] * 3 + [LOSS] * 2, [PLANE] * 3 + [RATES] * 2],
    )
    bar = fig.colorbar(
        ScalarMappable(cmap=SEQUENTIAL), ax=fig.axes[0], location="bottom", aspect=45, pad=0.02
    )
    bar.set_ticks([0, 1], labels=["lowest", "highest"])
    bar.set_label("rank by what colours", labelpad=-8)
    return fig


def move(fig: Sheet, found: Seen, at: int, sample: int, measure: str) -> None:
    """Lays checkpoint `at` and a sample, both by their places, over a `sheet`."""
    from leak_atlas.report.figures import CENTRE
    from leak_atlas.report.sheet import INK, SEQUENTIAL

    over = dict[str, Any](animated=True, in_layout=False)
    for artist in fig.moving:
        artist.remove()
    plane, *others = fig.axes[:3]
    rank = found.rank(measure)
    order = np.argsort(rank, kind="stable")
    x, y = (found.path[at] + found.aside)[:, order]
    fig.moving = [
        plane.scatter(
            x, y, 16, rank[order], cmap=SEQUENTIAL, vmin=0, vmax=1, linewidths=0, alpha=0.8, **over
        )
    ]
    centre = trajectories.centre_of_mass(found.path[: at + 1])
    own = found.path[:, :, sample] + found.aside[:, sample]
    for way, colour, here, mark in ((centre, CENTRE, -1, "o"), (own, INK, at, "D")):
        fig.moving += plane.plot(*way.T, color="white", linewidth=3, **over)
        fig.moving += plane.plot(*way.T, color=colour, linewidth=1.4, **over)
        fig.moving += plane.plot(
            *way[here], color=colour, marker=mark, markersize=8, markeredgecolor="white", **over
        )
    for ax, values in zip(others, (found.loss, found.path), strict=True):
        fig.moving.append(ax.axvline(at, color=INK, linewidth=0.8, **over))
        for side, letter in enumerate("AB"):
            line = values[:, side, sample]
            fig.moving += ax.plot(
                line,
                "--o" if letter == "A" else "-o",
                color=look.COLOURS[letter],
                linewidth=2,
                markersize=4,
                **over,
            )


# --- the widget -----------------------------------------------------------------------------------------------------


class Explorer(base.Explorer):
    """A study (by the words that offer it), an attack and its threshold, an epoch, a sample, and
    what colours.
    """

    def __init__(self, studies: Mapping[str, Time], attack: str, rule: str = "10 % FPR") -> None:
        for study in studies.values():  # BadInput where one cannot be
            study.steps(attack)
        if rule not in RULES:
            raise BadInput(f"there is no threshold '{rule}' to look at{nearest(rule, list(RULES))}")
        super().__init__()
        self._studies, self._shelf, first = studies, Shelf(), next(iter(studies))
        self._steps = cache(lambda name, attack: studies[name].steps(attack))
        self._data = cache(
            lambda name: readers.load(
                studies[name].setup.data.name, studies[name].setup.data.pixels
            )
        )
        self._found: Seen | None = None
        self.data = self.listed("data", list(studies), first)
        self.attack = self.listed("attack", list(studies[first].attackers), attack)
        self.rule = self.listed("rule", list(RULES), rule, "threshold")
        self.form = self.listed("form", FORMS, "counted", "rates")
        self.colour = self.listed("colour", [FINAL], FINAL)
        slider = SelectionSlider(
            options=self._epochs(first), value=len(studies[first].epochs) - 1, description="epoch"
        )
        self.epoch = self.watched("epoch", slider.add_class("leak-atlas-epoch"))
        self.sample = self.watched(
            "sample", BoundedIntText(0, 0, 0, description="sample").add_class("leak-atlas-sample")
        )
        self.moved = Select(
            options=[("", 0)], description="farthest", rows=6, layout={"width": "320px"}
        )
        # another way to choose a sample
        self.moved.observe(partial(self._changed, self._take), names="value")
        self.card_ = HTML()
        aside = HBox(
            [VBox([self.sample, self.moved]), self.card_],
            layout=WRAP | {"align_items": "flex-start"},
        )
        self.lay(
            [[self.data, self.attack, self.rule, self.form], [self.epoch, self.colour]],
            below=[aside],
        )
        self.settle()

    def _epochs(self, data: str) -> list[tuple[str, int]]:
        return [(when(epoch), at) for at, epoch in enumerate(self._studies[data].epochs)]

    def _take(self, sample: int | None) -> None:
        """A sample of the list is clicked on."""
        if sample is not None:
            self._quiet = True
            self.sample.value = sample
            self._quiet = False

    def steps(self) -> list[list[Any]]:
        return [self._steps(self.data.value, self.attack.value)]

    def needs(self, name: str, value: Any) -> Sequence[Step]:
        now = self.state | {name: value}
        study = self._studies[now["data"]]
        return [study.attack_over_time(now["attack"])[study.epochs[-1]]]

    def attacks(self) -> dict[str, Arrays]:
        study = self._studies[self.data.value]
        found = self._shelf.results(
            [study.attack_over_time(self.attack.value)[study.epochs[self.epoch.value]]]
        )
        return (
            {f"{self.attack.value}, {when(study.epochs[self.epoch.value])}": found[0]}
            if found
            else {}
        )

    def _draw(self, study: Time, *asked: Any) -> tuple[Seen | None, Sheet | None]:
        found = seen(study, self._shelf, *asked)
        return found, sheet(found) if found else None

    def look(self) -> View:
        study, self.card_.value = self._studies[self.data.value], ""
        base.offer(self.epoch, self._epochs(self.data.value), len(study.epochs) - 1)
        key = self.data.value, self.attack.value, self.rule.value, self.form.value
        found, fig = self.kept(
            key,
            partial(self._draw, study, *key[1:]),
            lambda made: bool(made[0] and made[0].complete),
        )
        self._found = found
        for name, options in (("data", self._studies), ("attack", study.attackers)):
            self.mark(name, list(options))
        if not found or not fig:
            return View(None, [], [f"The course of {self.attack.value} is not there yet."])
        base.offer(self.colour, list(found.measures), FINAL)
        self.sample.max = len(found.course.index) - 1
        far = np.argsort(-found.moved, kind="stable")[:MOVED].tolist()
        base.offer(
            self.moved,
            [(f"sample {each}: moved by {found.moved[each]:.2f}", each) for each in far],
            None,
        )
        self.moved.value = self.sample.value if self.sample.value in far else None
        at, sample, measure = self.epoch.value, self.sample.value, self.colour.value
        missing = (
            ["How far samples travel by chance is not known yet."] if found.null is None else []
        )
        missing += ["How hard samples are is not known yet."] if len(found.measures) == 1 else []
        words = {
            "found": found,
            "at": at,
            "when": when(study.epochs[at]),
            "measure": measure,
            "final": FINAL,
        }
        words |= {
            "attack": self.attack.value,
            "rule": self.rule.value,
            "form": self.form.value,
            "judges": study.judges,
        }
        words |= {"centre": trajectories.centre_of_mass, "displacement": trajectories.displacement}
        said = drawn("timed.txt", **words, networks=len(found.course.member)).splitlines()
        move(fig, found, at, sample, measure)
        fig.finding = " ".join(said)
        self.card_.value = self._card(found, sample)
        return View(fig, said, missing)

    @property
    def card(self) -> Shown:
        """The chosen sample, for a page without a kernel."""
        return Shown(self.card_.value)

    def _card(self, found: Seen, sample: int) -> str:
        """The chosen sample: picture, class, where it is in the end, and how hard it is by each
        measure.
        """
        from PIL import Image

        data, at = self._data(self.data.value), int(found.course.index[sample])
        classes = registry.find(self._studies[self.data.value].setup.data.name).classes
        rows = [
            (name, values[sample], found.rank(name)[sample])
            for name, values in found.measures.items()
        ]
        picture = png(Image.fromarray(look.pictures(data.x[[at]])[0]))
        words = {
            "label": classes[data.labels[at]],
            "png": picture,
            "rows": rows,
            "moved": found.moved[sample],
        }
        return str(
            drawn("timed.html", sample=sample, at=at, number=len(found.course.index), **words)
        )


explorer = Explorer
