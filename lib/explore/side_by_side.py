"""Arrays of one or two probes -> what is drawn and said of them: profiles on one axis, histograms, samples.

A `Side` is what is stored of one probe at one epoch. Nothing here knows of widgets, of recipes or of the store.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lib.explore.base import COLOURS
from lib.localization import disparity
from lib.localization.disparity import Arrays

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lib.report.sheet import Sheet

MEASURES = {
    "euclidean": "Euclidean distance (the paper's)",
    "direction": "direction (1 - cosine)",
    "length": "length in M_h1",
    "length difference": "length in M_all minus M_h1",
}
COUNTS = {"parameters": "parameters", "activations": "activations", "flops": "FLOPs"}
BOTH, ONE = "both", "M_all only"  # who has seen a sample
SHOWN = 6  # samples at either end
WIDE, LEFT, RIGHT = 8.7, 0.52, 5.75  # inches: the sheet, and both ends of the profiles' axis


def names_of(result: Arrays) -> list[str]:
    """The names of the parts, which a store keeps as the bytes of lines."""
    return bytes(result["parts"]).decode().split("\n")


def quantity(measure: str) -> str:
    """What a measure is, within a sentence."""
    return MEASURES[measure].partition(" (")[0]


@dataclass(frozen=True)
class Sample:
    """A sample of the pool, and its value at a part."""

    index: int  # in the data set
    value: float
    both: bool  # seen by M_all and M_h1, or by M_all only


class Side:
    """One probe at one epoch: `results` of its `Distance` steps, one a pair, read by one of MEASURES.

    `letter` is A or B, `name` what tells it from the other side in a few words.
    `floors` are distances between seeds on the same data, `anatomy` the counts of the architecture; both may be none.
    """

    def __init__(
        self,
        letter: str,
        name: str,
        results: Sequence[Arrays],
        measure: str,
        floors: Sequence[Arrays] = (),
        anatomy: Arrays | None = None,
    ) -> None:
        self.letter, self.name, self.measure, self.anatomy = letter, name, measure, anatomy
        self.parts = names_of(results[0])
        self.read = disparity.read(results, measure)
        self.index = [np.asarray(each["index"])[np.asarray(each["seen_a"], bool)] for each in results]
        self.profile = disparity.profile(*self.read)
        self.floor = disparity.floor(disparity.measured(floors, measure), self.read[1]) if floors else None

    def place(self, part: str) -> int:
        """Where a part is; of what is not here, the last block of its stage that is not behind it."""
        if part in self.parts:
            return self.parts.index(part)
        stage, _, number = part.partition(".")
        own = [i for i, name in enumerate(self.parts) if name.partition(".")[0] == stage]
        return own[min(int(number or len(own)), len(own) - 1)] if own else len(self.parts) - 1

    def halves(self, part: str) -> tuple[NDArray, NDArray]:
        """The part's values on what both have seen and on what only M_all has seen, of all pairs together."""
        pairs = list(zip(*self.read, strict=True))
        known, new = (
            np.concatenate([np.asarray(values)[self.place(part), np.asarray(seen) == side] for values, seen in pairs])
            for side in (True, False)
        )
        return known, new

    def samples(self, part: str, pair: int) -> tuple[list[Sample], list[Sample]]:
        """The samples with the largest and with the smallest values at a part in one pair, the most extreme first."""
        values, seen = np.asarray(self.read[0][pair])[self.place(part)], np.asarray(self.read[1][pair])
        order = np.argsort(values, kind="stable")
        made = [Sample(int(self.index[pair][i]), float(values[i]), bool(seen[i])) for i in order]
        return made[::-1][:SHOWN], made[:SHOWN]

    def far(self, part: str, pair: int) -> tuple[int, float]:
        """How many samples are the farthest tenth, and the share of them that only M_all has seen."""
        values, seen = np.asarray(self.read[0][pair])[self.place(part)], np.asarray(self.read[1][pair])
        count = max(1, len(values) // 10)
        return count, float(1 - seen[np.argsort(values, kind="stable")[::-1][:count]].mean())

    def held(self, part: str) -> dict[str, float]:
        """The share of parameters, activations and FLOPs in what comes before the part's stage."""
        assert self.anatomy is not None
        stages = [name.partition(".")[0] for name in names_of(self.anatomy)]
        front = np.arange(len(stages)) < stages.index(self.parts[self.place(part)].partition(".")[0])
        return {
            label: float(self.anatomy[name][front].sum() / self.anatomy[name].sum()) for name, label in COUNTS.items()
        }

    def says(self, part: str) -> str:
        """The part's numbers in a sentence or two."""
        place = self.place(part)
        auc = self.profile[place]
        pairs = f"over {auc.n} pairs" if auc.n > 1 else "in one pair, so that other seeds are not covered"
        onset = disparity.onset(self.profile, self.floor, self.parts)
        told = (
            f"{onset} is the first to tell the halves apart."
            if onset
            else "Before the head, no part surely tells the halves apart."
        )
        return f"{self.parts[place]}: AUC {auc:.3f} {pairs}. {told}"

    def says_held(self, part: str) -> str:
        stage = self.parts[self.place(part)].partition(".")[0]
        if self.anatomy is None:
            return ""
        if stage == self.parts[0]:
            return f"Holding everything before {stage} freezes nothing: all is trained again."
        shares = [f"{100 * share:.0f} % of the {name}" for name, share in self.held(part).items()]
        return f"Holding everything before {stage} freezes {shares[0]}, {shares[1]} and {shares[2]}."


def merged(sides: Sequence[Side]) -> list[str]:
    """All parts of the sides, stage by stage, each stage's blocks those of the side that has more."""
    stages = list(dict.fromkeys(name.partition(".")[0] for side in sides for name in side.parts))
    if stages and "head" in stages:
        stages = [*(stage for stage in stages if stage != "head"), "head"]
    blocks = [[[n for n in side.parts if n.partition(".")[0] == stage] for side in sides] for stage in stages]
    return [name for each in blocks for name in max(each, key=len)]


def told(sides: Sequence[Side], part: str) -> list[str]:
    """A sentence or two for each side."""
    return [f"{side.letter} ({side.name}), {side.says(part)}" for side in sides]


def says_difference(sides: Sequence[Side], part: str) -> str:
    """B minus A in a sentence; nothing where they cannot be compared pair by pair."""
    if not _paired(sides):
        return ""
    gap = disparity.versus(sides[1].read, sides[0].read, sides[0].place(part))
    side = "further from" if gap.value > 0 else "closer to"
    sure = "" if gap.low > 0 or gap.high < 0 else ", which may be chance"
    return f"At {part}, B is {abs(gap.value):.3f} {side} 0.5 than A{sure} (B - A: {gap.low:+.3f} to {gap.high:+.3f})."


def _paired(sides: Sequence[Side]) -> bool:
    return len(sides) == 2 and sides[0].parts == sides[1].parts and sides[0].profile[0].n == sides[1].profile[0].n


# --- drawing --------------------------------------------------------------------------------------------------------


def sheet(sides: Sequence[Side], part: str) -> Sheet:
    """Profiles of one or two sides on one axis, B minus A below, and the part's histograms at the right."""
    from lib.report import figures, rows
    from lib.report.sheet import INK, WASH, Look, Sheet

    fig = Sheet(figsize=(WIDE, 3.9))
    left = ["profile"] * 3 + ["gap" if _paired(sides) else "profile"]
    right = [side.letter for side in sides for _ in range(4 // len(sides))]
    edges = {"left": LEFT / WIDE, "right": 1 - 0.1 / WIDE, "bottom": 0.09, "top": 0.92}
    grid = {"hspace": 0.95, "wspace": 0.12, "width_ratios": (RIGHT - LEFT, WIDE - RIGHT - 0.6), **edges}
    axes = fig.subplot_mosaic([[*pair] for pair in zip(left, right, strict=True)], gridspec_kw=grid)
    top = axes["profile"]
    stages = list(dict.fromkeys(name.partition(".")[0] for name in merged(sides)))
    for i, side in enumerate(sides):
        many = len(side.parts) > 2 * len(stages)
        at = np.array(_places(side.parts, stages)) + (0 if many or len(sides) == 1 else 0.18 * i - 0.09)
        look = Look(f"{side.letter}: {side.name}", COLOURS[side.letter], "os"[i], ("-", "--")[i], 4 if many else 6)
        found = figures.spans(rows(side.parts, side.profile)).assign(_x=at)
        if side.floor:
            figures.steps(top, figures.spans(rows(side.parts, side.floor)).assign(_x=at), look, 0.16)
        figures.points(top, found, look)
        figures.marker(**figures.RING)(top, found.iloc[[side.place(part)]], look)
        _histograms(axes[side.letter], side, part)
    handles = {label: handle for handle, label in zip(*top.get_legend_handles_labels(), strict=True)}
    top.legend(handles.values(), handles.keys(), loc="best")
    top.axhline(0.5, **figures.GUESS)
    top.set_title("AUC of each part, 95 % interval")
    shown = [axes[name] for name in dict.fromkeys(left)]
    if len(shown) == 2:
        gaps = [disparity.versus(sides[1].read, sides[0].read, i) for i in range(len(sides[0].parts))]
        found = figures.spans(rows(sides[0].parts, gaps)).assign(_x=_places(sides[0].parts, stages))
        figures.points(shown[1], found, Look("", INK, "D", "none"))
        shown[1].axhline(0, **figures.GUESS)
        shown[1].set_title("how far the AUC is from 0.5: B minus A")
        shown[1].locator_params(axis="y", nbins=4)
    here = stages.index(part.partition(".")[0])
    for ax in shown:
        ax.set_xticks(range(len(stages)), stages if ax is shown[-1] else [""] * len(stages))
        ax.set_xlim(-0.5, len(stages) - 0.5)
        ax.grid(axis="x", visible=False)
        ax.axvspan(here - 0.5, here + 0.5, color=WASH, alpha=0.5, zorder=0, linewidth=0)
    fig.finding = " ".join(told(sides, part))
    return fig


def _places(parts: Sequence[str], stages: Sequence[str]) -> list[float]:
    """A part's place on an axis on which every stage is one wide, however many blocks it has."""
    owners = [name.partition(".")[0] for name in parts]
    return [stages.index(own) + (owners[:i].count(own) + 0.5) / owners.count(own) - 0.5 for i, own in enumerate(owners)]


def _histograms(ax: Axes, side: Side, part: str) -> None:
    from lib.report import figures

    names = f"seen by {BOTH}", f"seen by {ONE}"
    found, looks = figures.shares(side.halves(part), names), figures.outlined(names)
    looks[names[1]] = looks[names[1]]._replace(colour=COLOURS[side.letter])
    for name, look in looks.items():
        figures.stairs(ax, found[found["who"] == name], look)
    ax.set_title(f"{side.letter}, {side.parts[side.place(part)]}: {quantity(side.measure)}")
    figures.bare(ax)
    ax.set_ylim(0, 1.3 * found["_y"].max())
    ax.legend(loc="upper right", handlelength=1.2)


@dataclass(frozen=True, eq=False)
class Images:
    """A data set to look at: `x (N, H, W, C)` uint8, `labels (N,)`, and the labels' names."""

    x: NDArray
    labels: NDArray
    classes: Sequence[str]


def gallery(samples: Sequence[Sample], images: Images, colour: str) -> str:
    """Samples as a row of images, each with its label, its value and who has seen it."""
    from PIL import Image

    out = []
    for sample in samples:
        buffer, pixels = io.BytesIO(), images.x[sample.index]
        Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(buffer, "PNG")
        label = html.escape(images.classes[int(images.labels[sample.index])], quote=True)
        seen, frame = (BOTH, "1px solid #9aa5b1") if sample.both else (ONE, f"3px solid {colour}")
        out.append(
            f'<figure style="margin:0;width:68px;text-align:center;font-size:11px;line-height:1.3">'
            f'<img alt="{label}, {sample.value:.3g}, seen by {seen}" title="sample {sample.index}" '
            f'src="data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}" style="width:56px;height:56px;'
            f'box-sizing:border-box;border:{frame};image-rendering:pixelated">'
            f"<figcaption>{label}<br>{sample.value:.3g}<br>{seen}</figcaption></figure>"
        )
    return f'<div style="display:flex;flex-wrap:wrap;gap:8px 6px">{"".join(out)}</div>'
