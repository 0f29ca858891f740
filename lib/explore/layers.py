"""Which stage tells D_h2 from D_h1, and what is frozen in front of it: an explorer over stored feature distances.

    explorer({("resnet10", "CE", "epoch 30"): [results[d] for d in distances]}, {"resnet10": results[anatomy]})

A case is (model, training, epoch); it holds one result of a `Distance` step a model pair, of stages, blocks or both.
Nothing is trained or read here: every control looks at arrays that are there.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
import numpy as np

from lib import BadInput, nearest
from lib.audit import Estimate
from lib.localization import disparity
from lib.localization.disparity import Arrays

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lib.report.sheet import Sheet

Case = tuple[str, str, str]  # model, training (a defence, say), epoch
Distances = Mapping[Case, Sequence[Arrays]]

MEASURES = {
    "euclidean": "Euclidean distance (the paper's)",
    "direction": "direction (1 - cosine)",
    "length": "length in M_h1",
    "length difference": "length in M_all minus M_h1",
}
COUNTS = {"parameters": "parameters", "activations": "activations", "flops": "FLOPs"}
HALVES = ("seen by both", "seen only by M_all")
HEIGHT = 2.9  # inches


def _names(result: Arrays) -> tuple[str, ...]:
    """The names of the parts, which a store keeps as the bytes of lines."""
    names = np.asarray(result["parts"])
    return tuple(bytes(names).decode().split("\n")) if names.dtype == np.uint8 else tuple(map(str, names))


@dataclass(frozen=True)
class Choice:
    """What is looked at: one value for each control, in the order in which earlier ones limit later ones."""

    model: str = ""
    training: str = ""
    epoch: str = ""
    parts: str = ""  # "stages" or "blocks"
    measure: str = ""  # a key of MEASURES
    part: str = ""  # whose histograms are drawn
    hold: str = ""  # everything before it is held


class Shelf:
    """Stored results in the order in which the controls ask for them; what was computed is kept."""

    def __init__(self, distances: Distances, anatomy: Mapping[str, Arrays], floors: Distances) -> None:
        self.anatomy = anatomy
        self.cases, self.floors = self._sorted(distances), self._sorted(floors)
        if not self.cases:
            raise BadInput("there are no distances to explore: give at least one result of a Distance step")
        self._profiles: dict[tuple[str, ...], tuple[list[Estimate], list[Estimate] | None]] = {}

    @staticmethod
    def _sorted(distances: Distances) -> dict[tuple[str, ...], list[Arrays]]:
        cases: dict[tuple[str, ...], list[Arrays]] = {}
        for case, results in distances.items():
            for result in results:
                kind = "blocks" if any("." in name for name in _names(result)) else "stages"
                cases.setdefault((*case, kind), []).append(result)
        return cases

    def options(self, chosen: Choice, control: str) -> list[str]:
        """What a control offers, given the controls before it."""
        order = ("model", "training", "epoch", "parts")
        if control in order:
            place = order.index(control)
            fixed = tuple(getattr(chosen, name) for name in order[:place])
            return list(dict.fromkeys(case[place] for case in self.cases if case[:place] == fixed))
        if control == "measure":
            return list(MEASURES)
        if control == "part":
            return list(_names(self.results(chosen)[0]))
        found = self.anatomy.get(chosen.model)
        return [] if found is None else list(dict.fromkeys(name.partition(".")[0] for name in _names(found)))

    def complete(self, wanted: Choice, strict: bool = False) -> Choice:
        """The choice with everything that is not set, or not there any more, at its default.

        The defaults are the first of what there is; of parts, the last stage. `strict` raises BadInput instead, where
        something was asked that is not there.
        """
        for control in Choice.__dataclass_fields__:
            options, value = self.options(wanted, control), getattr(wanted, control)
            if value in options:
                continue
            if strict and value:
                raise BadInput(f"there is no {control} '{value}' to look at{nearest(value, options)}")
            stages = [name for name in options if name.startswith("stage")]
            default = stages[-1] if control in ("part", "hold") and stages else options[0] if options else ""
            wanted = replace(wanted, **{control: default})
        return wanted

    def results(self, chosen: Choice) -> list[Arrays]:
        return self.cases[chosen.model, chosen.training, chosen.epoch, chosen.parts]

    def profile(self, chosen: Choice) -> tuple[list[Estimate], list[Estimate] | None]:
        """AUC of each part, and of the seed-noise floor where there is one."""
        case = (chosen.model, chosen.training, chosen.epoch, chosen.parts)
        if (*case, chosen.measure) not in self._profiles:
            distances, seen = disparity.read(self.results(chosen), chosen.measure)
            found, control = disparity.profile(distances, seen), None
            if case in self.floors:
                control = disparity.floor(disparity.measured(self.floors[case], chosen.measure), seen)
            self._profiles[*case, chosen.measure] = found, control
        return self._profiles[*case, chosen.measure]

    def halves(self, chosen: Choice) -> tuple[np.ndarray, np.ndarray]:
        """The part's values on D_h1 and on D_h2, of all pairs together."""
        place = self.options(chosen, "part").index(chosen.part)
        pairs = list(zip(*disparity.read(self.results(chosen), chosen.measure), strict=True))
        both = [np.concatenate([values[place, seen == side] for values, seen in pairs]) for side in (True, False)]
        return both[0], both[1]

    def frozen(self, chosen: Choice) -> dict[str, float]:
        """The share of parameters, activations and FLOPs in the parts before `hold`."""
        found = self.anatomy[chosen.model]
        stages = [name.partition(".")[0] for name in _names(found)]
        front = np.arange(len(stages)) < stages.index(chosen.hold)
        return {label: float(found[name][front].sum() / found[name].sum()) for name, label in COUNTS.items()}

    def says(self, chosen: Choice) -> str:
        """The chosen part's numbers in a sentence or two."""
        found, control = self.profile(chosen)
        names = self.options(chosen, "part")
        auc = found[names.index(chosen.part)]
        pairs = f"over {auc.n} model pairs" if auc.n > 1 else "in one model pair, so that other seeds are not covered"
        onset = disparity.onset(found, control, names)
        told = f"{onset} is the first to tell the halves apart." if onset else "No part surely tells the halves apart."
        return f"{chosen.part}, {MEASURES[chosen.measure]}: AUC {auc:.3f} {pairs}. {told}"

    def says_frozen(self, chosen: Choice) -> str:
        shares = [f"{100 * share:.0f} % of the {name}" for name, share in self.frozen(chosen).items()]
        if chosen.hold == self.options(chosen, "hold")[0]:
            return f"Holding everything before {chosen.hold} freezes nothing: all is trained again."
        return f"Holding everything before {chosen.hold} freezes {shares[0]}, {shares[1]} and {shares[2]}."


# --- drawing --------------------------------------------------------------------------------------------------------


def _figure(width: float, height: float, *panels: tuple[float, float]) -> tuple[Sheet, list[Axes]]:
    """A figure that pyplot does not know of, with panels at (left, width) in inches."""
    from lib.report.sheet import Sheet

    fig = Sheet(figsize=(width, height))
    return fig, [
        fig.add_axes((left / width, 0.55 / height, wide / width, (height - 0.95) / height)) for left, wide in panels
    ]


def _histograms(ax: Axes, shelf: Shelf, chosen: Choice) -> None:
    from lib.report import figures

    known, new = shelf.halves(chosen)
    both = np.concatenate([known, new])
    # A few far samples would squeeze all others into one bar; they stand in the outermost bars.
    low, high = np.quantile(both, [0.0, 0.995])
    edges = np.linspace(low, max(high, low + 1e-9), 31)
    looks: tuple[dict[str, Any], ...] = (
        {"color": figures.FAINT, "alpha": 0.6, "fill": True},
        {"color": "C1", "fill": False, "linewidth": 1.6},
    )
    for values, label, look in zip((known, new), HALVES, looks, strict=True):
        counts = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
        ax.stairs(counts / len(values), edges, label=label, **look)
    ax.set(xlabel=MEASURES[chosen.measure], title=f"{chosen.part}: share of samples", yticks=[])
    ax.spines["left"].set_visible(False)
    ax.set_ylim(0, ax.get_ylim()[1] * 1.25)
    ax.locator_params(axis="x", nbins=4)
    ax.legend(loc="upper right", handlelength=1.2)


def _profile(ax: Axes, shelf: Shelf, chosen: Choice) -> None:
    from lib.report import figures

    names, (found, control) = shelf.options(chosen, "part"), shelf.profile(chosen)
    at, place = np.arange(len(names)), names.index(chosen.part)
    if control:
        lows, highs = [c.low for c in control], [c.high for c in control]
        ax.bar(at, np.subtract(highs, lows), 0.9, lows, color=figures.FLOOR, label="two seeds, same data")
    ax.axhline(0.5, color=figures.QUIET, linewidth=0.9, linestyle=(0, (2, 2)))
    ax.vlines(at, [e.low for e in found], [e.high for e in found], color="C0", alpha=0.6, linewidth=1.8)
    ax.plot(at, [e.value for e in found], color="C0", marker="o", markeredgecolor="white")
    ax.plot([place], [found[place].value], "D", color="C1", markersize=9, markeredgecolor="white", label="chosen part")
    several = len(names) > 8  # of many blocks, the first of each stage is named
    ticks = [i for i, name in enumerate(names) if not several or name.endswith(".0") or name == "head"]
    ax.set_xticks(ticks, [names[i].removesuffix(".0") for i in ticks] if several else names)
    ax.set(xlim=(-0.5, len(names) - 0.5), title="AUC of each part, 95 % interval")
    ax.grid(axis="x", visible=False)
    ax.legend(loc="best")


def _frozen(ax: Axes, shelf: Shelf, chosen: Choice) -> None:
    from lib.report import figures

    shares = shelf.frozen(chosen)
    at, held = np.arange(len(shares)), 100 * np.array(list(shares.values()))
    ax.barh(at, held, 0.6, color="C0", label="held")
    ax.barh(at, 100 - held, 0.6, held, color=figures.FLOOR, hatch="//", edgecolor="white", label="trained again")
    for y, share in enumerate(held):
        ax.text(share + 1 if share < 75 else share - 1, y, f"{share:.0f} %", va="center",
                ha="left" if share < 75 else "right", color=figures.INK if share < 75 else "white")  # fmt: skip
    ax.set_yticks(at, list(shares))
    ax.set(xlim=(0, 100), xticks=[], ylim=(len(shares) - 0.5, -0.6), title=f"share held before {chosen.hold}")
    ax.grid(visible=False)
    ax.legend(loc="upper left", bbox_to_anchor=(0, -0.06), ncols=2)


def static(
    distances: Distances,
    anatomy: Mapping[str, Arrays] | None = None,
    floors: Distances | None = None,
    **chosen: str,
) -> Figure:
    """What `explorer` shows at one choice, as a figure: histograms, AUC of each part, and what is held.

    `chosen` sets `Choice`'s fields; the others take the first of what there is, part and hold the last stage.
    Raises BadInput where there is no such field or value.
    """
    controls = list(Choice.__dataclass_fields__)
    for name in chosen:
        if name not in controls:
            raise BadInput(f"an explorer has no control '{name}'{nearest(name, controls)}")
    shelf = Shelf(distances, anatomy or {}, floors or {})
    choice = shelf.complete(Choice(**chosen), strict=True)
    panels = [(0.25, 3.0), (3.75, 3.9)]
    if choice.hold:
        panels.append((8.6, 2.2))
    fig, axes = _figure(11.0 if choice.hold else 7.9, HEIGHT, *panels)
    for ax, draw in zip(axes, (_histograms, _profile, _frozen), strict=False):
        draw(ax, shelf, choice)
    fig.finding = shelf.says(choice)
    return fig


def _image(fig: Figure, alt: str) -> str:
    """The figure as an element that carries its own text for those who cannot see it."""
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png", pil_kwargs={"compress_level": 1})
    data = base64.b64encode(buffer.getvalue()).decode()
    width = fig.get_figwidth() * fig.dpi
    text = html.escape(alt, quote=True)
    return f'<img alt="{text}" src="data:image/png;base64,{data}" style="width:{width:.0f}px;max-width:100%">'


# --- the widget -----------------------------------------------------------------------------------------------------


class Explorer(widgets.VBox):
    """Controls, pictures and sentences; `choice` is what is shown. Made by `explorer`."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf, self._busy = shelf, False
        self.choice = shelf.complete(Choice())
        labels = {"parts": "look at", "hold": "hold everything before"}
        self.controls: dict[str, Any] = {}
        for name in Choice.__dataclass_fields__:
            options = self._options(name)
            kind = widgets.SelectionSlider if name == "hold" else widgets.Dropdown
            if name == "hold" and not shelf.anatomy:
                continue
            self.controls[name] = kind(
                options=options,
                value=getattr(self.choice, name),
                description=labels.get(name, name),
                tooltip=f"choose the {labels.get(name, name)}",
                style={"description_width": "initial"},
                layout=widgets.Layout(width="420px" if name == "hold" else "auto", max_width="100%"),
            )
            self.controls[name].observe(self._chosen, names="value")
        self.says, self.picture = widgets.HTML(), widgets.HTML()
        self.says_frozen, self.frozen = widgets.HTML(), widgets.HTML()
        wrap = widgets.Layout(flex_flow="row wrap", grid_gap="4px 12px")
        upper = [control for name, control in self.controls.items() if name != "hold"]
        rows: list[Any] = [widgets.HBox(upper, layout=wrap), self.says, self.picture]
        if "hold" in self.controls:
            self.controls["hold"].add_class("leak-atlas-boundary")
            self.says_frozen.add_class("leak-atlas-frozen")
            rows += [self.controls["hold"], self.says_frozen, self.frozen]
        super().__init__(rows)
        self._draw()
        self._draw_frozen()

    def _options(self, name: str) -> list[tuple[str, str]]:
        labels = MEASURES if name == "measure" else {}
        values = self._shelf.options(self.choice, name) or [""]  # a slider must have something to stand on
        return [(labels.get(value, value) or "-", value) for value in values]

    def _chosen(self, change: Mapping[str, Any]) -> None:
        if self._busy:
            return
        before = self.choice
        wanted = Choice(**{name: control.value for name, control in self.controls.items()})
        self.choice = self._shelf.complete(wanted)
        self._busy = True  # setting the options of later controls calls back
        try:
            for name, control in self.controls.items():
                options, value = self._options(name), getattr(self.choice, name)
                if list(control.options) != options:
                    control.options = options
                if control.value != value:
                    control.value = value
        finally:
            self._busy = False
        if replace(self.choice, hold=before.hold) != before:
            self._draw()
        if (self.choice.model, self.choice.hold) != (before.model, before.hold):
            self._draw_frozen()

    def _draw(self) -> None:
        said = self._shelf.says(self.choice)
        fig, axes = _figure(7.9, HEIGHT, (0.25, 3.0), (3.75, 3.9))
        _histograms(axes[0], self._shelf, self.choice)
        _profile(axes[1], self._shelf, self.choice)
        self.says.value, self.picture.value = _status(said), _image(fig, said)

    def _draw_frozen(self) -> None:
        if not self.choice.hold:
            self.says_frozen.value = self.frozen.value = ""
            return
        said = self._shelf.says_frozen(self.choice)
        fig, (ax,) = _figure(7.9, 2.0, (0.95, 6.7))
        _frozen(ax, self._shelf, self.choice)
        self.says_frozen.value, self.frozen.value = _status(said), _image(fig, said)


def _status(text: str) -> str:
    return f'<div role="status" aria-live="polite">{html.escape(text)}</div>'


def explorer(
    distances: Distances,
    anatomy: Mapping[str, Arrays] | None = None,
    floors: Distances | None = None,
) -> Explorer:
    """Dropdowns over what there is, histograms and AUC of each part, and a slider over what is held.

    `distances` maps (model, training, epoch) to the results of one `Distance` step a model pair; stages and blocks may
    lie side by side. `anatomy` maps a model to the result of its `Anatomy` step; without it there is no slider for that
    model. `floors` maps cases to distances between seeds on the same data, drawn as a grey band. Raises BadInput where
    there is nothing to show.
    """
    return Explorer(Shelf(distances, anatomy or {}, floors or {}))
