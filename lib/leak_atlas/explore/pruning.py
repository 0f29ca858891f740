"""What pruning does to a network: whom it exposes, and what goes, layer by layer (SAMIA and PPB).

    study = Pruning(setup, Schedule(6), 10, {"Base": CrossEntropy(), "PPB": PPB()}, {"Conf":
    Threshold()})
    lab.realize(study.steps("L1 unstructured", [0.6], ["Base"], "Conf"))
    pruning.explorer(study, "L1 unstructured", 0.6, "PPB", "Conf")

What is stored is shown at once. The rest is trained on a click, whose cost is told before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from ipywidgets import SelectionSlider

from leak_atlas import BadInput, audit, nearest
from leak_atlas.attacks import signals as scores
from leak_atlas.audit import Estimate
from leak_atlas.data.designs import Role
from leak_atlas.explore import base, shelf
from leak_atlas.explore.base import View
from leak_atlas.explore.look import along, marks, percent
from leak_atlas.explore.shelf import Measured, Outcome, Shelf
from leak_atlas.localization import divergence
from leak_atlas.recipe import (
    Attacker,
    Objective,
    Population,
    Pruner,
    Schedule,
    Setup,
    Sparsity,
    Step,
    registry,
)
from leak_atlas.report.markup import drawn

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from leak_atlas.localization.disparity import Arrays
    from leak_atlas.report.sheet import Sheet

GRID = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # sparsities that can be looked at


@dataclass(frozen=True, eq=False)
class Pruning:
    """Networks that are pruned and trained on with a defence; every shadow walks its victims' whole
    chain.

    `setup` trains the dense ones, victims first. The first of `defences` is no defence (the paper's
    Base). One that looks at non-members gets `reference` of them from outside the pool, and dense
    networks that are trained anew.
    """

    setup: Setup
    schedule: Schedule  # of the training after pruning
    victims: int
    defences: Mapping[str, Objective]  # by the words that offer them
    attackers: Mapping[str, Attacker]  # likewise
    reference: int = 0
    pruners: Sequence[Pruner] = get_args(Pruner)

    def pruned(self, pruner: Pruner, sparsity: float, defence: str) -> Population:
        """Raises BadInput on a defence that is not offered."""
        if defence not in self.defences:
            raise BadInput(
                f"there is no defence '{defence}' to look at{nearest(defence, list(self.defences))}"
            )
        objective, setup = self.defences[defence], self.setup
        if "reference" in objective.needs:
            setup = replace(setup, design=replace(setup.design, reference=self.reference))
        return setup.trained().pruned(pruner, sparsity).train(self.schedule, objective)

    def measured(self, models: Population, attack: str) -> Measured:
        """The victims' signals, and how they are attacked by the others."""
        return shelf.measured(models, self.attackers, attack, self.victims)

    def gone(self, pruner: Pruner, sparsity: float) -> list[Sparsity]:
        """Of each victim what is pruned, which does not depend on the defence."""
        return [
            Sparsity(state) for state in self.pruned(pruner, sparsity, next(iter(self.defences)))
        ][: self.victims]

    def steps(
        self, pruner: Pruner, sparsities: Iterable[float], defences: Iterable[str], attack: str
    ) -> list[Any]:
        """The dense networks, and all that is looked at of a pruner."""
        names, levels = list(defences), list(sparsities)
        cells = [
            self.measured(self.pruned(pruner, s, name), attack) for s in levels for name in names
        ]
        return [
            self.measured(self.setup.trained(), attack),
            cells,
            [self.gone(pruner, s) for s in levels],
        ]


def gaps(signals: Sequence[Arrays], classes: int) -> list[Estimate]:
    """Confidence gap of each class, mean over those victims that have members and non-members of
    it.
    """
    found = []
    for each in signals:
        pool = np.isin(each["role"], (Role.MEMBER, Role.NONMEMBER))
        label, member = each["labels"][pool], each["role"][pool] == Role.MEMBER
        confidence = scores.confidence(each["logits"][pool], label)
        found.append(divergence.gap_by_class(confidence, member, label, classes))
    known = [column[~np.isnan(column)] for column in np.transpose(found)]
    return [
        audit.mean_ci(column) if len(column) else Estimate(np.nan, np.nan, np.nan)
        for column in known
    ]


def shares(gone: Sequence[Arrays]) -> pd.DataFrame:
    """What is gone of each tensor's weights, and of its whole filters where it has some, mean over
    the victims.
    """
    import pandas as pd

    first, made = gone[0], list[dict[str, Any]]()
    names, kinds = (bytes(first[each]).decode().split("\n") for each in ("names", "kinds"))
    for at, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        for series, part, whole in (
            (kind, "gone", "weights"),
            ("whole filters", "filters_gone", "filters"),
        ):
            if size := first[whole][at]:
                value = audit.mean_ci([each[part][at] / size for each in gone], bounds=(0, 1))
                made.append(
                    {
                        "tensor": name.removesuffix(".weight"),
                        "series": series,
                        "_x": at,
                        "value": value,
                    }
                )
    return pd.DataFrame(made)


# --- drawing --------------------------------------------------------------------------------------------------------

PLANE, GAPS, GONE = (
    "attack AUC and test accuracy",
    "confidence gap of each class",
    "share that is gone of each tensor",
)
AROUND: dict[str, Any] = {
    "markerfacecolor": "none",
    "markersize": 10,
    "markeredgewidth": 1.3,
    "linestyle": "none",
}
SERIES = ("pruned", "defended", "dense", "conv", "linear", "norm", "whole filters")


def sheet(
    planes: Mapping[str, Mapping[float, Outcome]],
    gaps_of: Mapping[str, Sequence[Estimate]],
    gone: pd.DataFrame | None,
    names: Mapping[str, str],
    classes: Sequence[str],
    here: float,
) -> Sheet:
    """Outcomes by sparsity and gaps by class, of those of SERIES that `names` has words for, and
    `shares`, if any.
    """
    import pandas as pd

    from leak_atlas.report import figures
    from leak_atlas.report.sheet import INK, limits, looks_of, spans

    reached = [(series, s, one) for series, of in planes.items() for s, one in sorted(of.items())]
    plane = pd.DataFrame(
        [{"panel": PLANE, "series": series, "at": s, **one} for series, s, one in reached]
    )
    plane = spans(spans(plane, "accuracy", "_x"), "auc")
    ranges = limits(None, plane, name="_x", least=0.01), limits(0.5, plane)
    each = [(series, i, one) for series, of in gaps_of.items() for i, one in enumerate(of)]
    aside = {series: 0.2 * (i - (len(gaps_of) - 1) / 2) for i, series in enumerate(gaps_of)}
    by_class = [
        {"panel": GAPS, "series": series, "_x": i + aside[series], "value": one}
        for series, i, one in each
    ]
    looks = {
        name: look._replace(label=names.get(name, name)) for name, look in looks_of(SERIES).items()
    }
    looks = {"dense": looks.pop("dense")._replace(colour=INK), **looks}
    looks["whole filters"] = looks["whole filters"]._replace(marker="o")
    apart = {name: look._replace(dash="none") for name, look in looks.items()}

    def alone(ax: Axes, rows: pd.DataFrame, look: Any) -> None:
        """Points that no line joins."""
        figures.points(ax, rows, apart[rows["series"].iloc[0]])

    def dress(panel: str, ax: Axes) -> None:
        if panel == PLANE:
            ax.axhline(0.5, **figures.GUESS)
            ax.set(xlim=ranges[0], ylim=ranges[1], xlabel="test accuracy", ylabel="attack AUC")
        elif panel == GAPS:
            ax.axhline(0, **figures.GUESS)
            ax.set_xticks(
                range(len(classes)), classes, rotation=30, ha="right", rotation_mode="anchor"
            )
            ax.grid(axis="x", visible=False)
        elif gone is not None:
            along(ax, gone.drop_duplicates("_x")["tensor"])
            ax.set_ylim(-0.04, 1.04)

    ringed = plane[(plane["at"] == here) | (plane["series"] == "dense")]
    layers: list[tuple[pd.DataFrame, figures.Mark]] = [
        (plane, figures.points),
        (ringed, figures.marker(**figures.RING)),
    ]
    layers.append((spans(pd.DataFrame(by_class)), alone))
    if gone is not None:
        whole, table = gone["series"] == "whole filters", spans(gone.assign(panel=GONE))
        layers += [(table[~whole], alone), (table[whole], figures.marker(**AROUND))]
    panels = [[PLANE, GAPS], *[[GONE, GONE]] * (gone is not None)]
    return figures.draw(
        layers, looks=looks, hue="series", facet="panel", panels=panels, height=2.6, dress=dress
    )


# --- the widget -----------------------------------------------------------------------------------------------------


class Explorer(base.Explorer):
    """A pruner, a sparsity, a defence and an attack, beginning with those given; `sparsities` may
    be chosen too.
    """

    def __init__(
        self,
        study: Pruning,
        pruner: Pruner,
        sparsity: float,
        defence: str,
        attack: str,
        sparsities: Iterable[float] = (),
    ) -> None:
        # BadInput where one cannot be
        for one, name in [(pruner, defence), *product(study.pruners, study.defences)]:
            study.measured(study.pruned(one, sparsity, name), attack)
        super().__init__()
        self._study, self._shelf, self._chain = study, Shelf(), cache(study.pruned)
        self._dense, (self._base, *_) = study.setup.trained(), study.defences
        self._sparsities = sorted({*GRID, *sparsities, sparsity})
        self.pruner = self.listed("pruner", study.pruners, pruner)
        slider = SelectionSlider(
            options=marks(self._sparsities, ()), value=sparsity, description="sparsity"
        )
        self.sparsity = self.watched("sparsity", slider.add_class("leak-atlas-sparsity"))
        self.defence = self.listed("defence", list(study.defences), defence)
        self.attack = self.listed("attack", list(study.attackers), attack)
        self._attacked: dict[str, Arrays] = {}
        self.lay([[self.pruner, self.sparsity, self.defence, self.attack]])
        self.settle()

    def _shown(self) -> dict[str, str]:
        """The series that are compared now, and the defence of each; dense networks have none."""
        return {"pruned": self._base} | (
            {"defended": self.defence.value} if self.defence.value != self._base else {}
        )

    def _measured(self, sparsity: float, defence: str) -> Measured:
        return self._study.measured(
            self._chain(self.pruner.value, sparsity, defence), self.attack.value
        )

    def steps(self) -> list[list[Any]]:
        return [
            self._study.steps(
                self.pruner.value, [self.sparsity.value], self._shown().values(), self.attack.value
            )
        ]

    def needs(self, name: str, value: Any) -> Sequence[Step]:
        now = self.state | {name: value}
        chain = self._chain(now["pruner"], now["sparsity"], now["defence"])
        return [self._study.measured(chain, now["attack"])[1]]

    def attacks(self) -> dict[str, Arrays]:
        return self._attacked

    def look(self) -> View:
        # or those of another choice would be exported where nothing is stored of this one
        self._attacked = {}
        pruner, here, shelf, shown = (
            self.pruner.value,
            self.sparsity.value,
            self._shelf,
            self._shown(),
        )
        asked = {
            series: {s: self._measured(s, name) for s in self._sparsities}
            for series, name in shown.items()
        }
        asked = {"dense": {0.0: self._study.measured(self._dense, self.attack.value)}} | asked
        planes = {
            series: {s: one for s, m in of.items() if (one := shelf.outcome(*m))}
            for series, of in asked.items()
        }
        self.mark("sparsity", self._sparsities, percent)
        for name, options in (
            ("pruner", self._study.pruners),
            ("defence", self._study.defences),
            ("attack", self._study.attackers),
        ):
            self.mark(name, list(options))
        names = {"dense": "dense"} | {series: f"{pruner}, {name}" for series, name in shown.items()}
        at = {series: here if series in shown else 0.0 for series in names}
        missing = [
            f"{names[each]}: not trained yet at this choice, or not attacked so."
            for each in names
            if at[each] not in planes[each]
        ]
        counted = shelf.results(self._study.gone(pruner, here))
        if not counted:
            missing.append("What goes is not counted yet.")
        if not any(planes.values()):
            return View(None, [], missing)
        classes = registry.find(self._study.setup.data.name).classes
        signals = {each: shelf.results(asked[each][at[each]][0]) for each in names}
        attacked = {names[each]: shelf.results([asked[each][at[each]][1]]) for each in names}
        self._attacked = {name: own[0] for name, own in attacked.items() if own}
        found = {each: gaps(own, len(classes)) for each, own in signals.items() if own}
        gone = shares(counted) if counted else None
        words = {
            "names": names,
            "at": at,
            "planes": planes,
            "gaps": found,
            "classes": classes,
            "gone": counted,
        }
        said = drawn(
            "pruned.txt", **words, attack=self.attack.value, mean=np.mean, percent=percent
        ).splitlines()
        known = [
            (name, series, frozenset(planes[series]), series in found)
            for series, name in names.items()
        ]
        key = *known, self.attack.value, here, gone is not None
        fig = self.kept(key, partial(sheet, planes, found, gone, names, classes, here))
        fig.finding = " ".join(said)
        return View(fig, said, missing)


explorer = Explorer
