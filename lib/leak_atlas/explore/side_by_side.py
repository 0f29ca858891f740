"""Arrays of one or two probes -> what is drawn and said of them: profiles on one axis, histograms,
samples.

A `Side` is what is stored of one probe at one epoch. Nothing here knows of widgets, of recipes or
of the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from leak_atlas.audit import Estimate
from leak_atlas.explore.look import stages_of
from leak_atlas.localization import disparity
from leak_atlas.localization.disparity import Arrays
from leak_atlas.report.markup import drawn, png

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from leak_atlas.data.readers import Samples
    from leak_atlas.report.sheet import Sheet

Pairs: TypeAlias = Sequence[Arrays]  # one a pair of networks
MEASURES = {
    "euclidean": "Euclidean distance (the paper's)",
    "direction": "direction (1 - cosine)",
    "length": "length in M_h1",
    "length difference": "length in M_all minus M_h1",
}
COUNTS = {"parameters": "parameters", "activations": "activations", "flops": "FLOPs"}
SHOWN = 6  # samples at either end


def names_of(result: Arrays) -> list[str]:
    """The names of the parts, which a store keeps as the bytes of lines."""
    return bytes(result["parts"]).decode().split("\n")


def quantity(measure: str) -> str:
    """What a measure is, within a sentence."""
    return MEASURES[measure].partition(" (")[0]


class Side:
    """One probe at one epoch: `results` of its `Distance` steps, one a pair, read by one of
    MEASURES.

    `letter` is A or B, `name` what tells it from the other side in a few words. `floors` are
    distances between seeds on the same data, `anatomy` the counts of the architecture; both may be
    none.
    """

    def __init__(
        self,
        letter: str,
        name: str,
        results: Pairs,
        measure: str,
        floors: Pairs = (),
        anatomy: Arrays | None = None,
    ) -> None:
        self.letter, self.name, self.measure, self.anatomy = letter, name, measure, anatomy
        self.parts = names_of(results[0])
        self.read = disparity.read(results, measure)
        self.index = [
            np.asarray(each["index"])[np.asarray(each["seen_a"], bool)] for each in results
        ]
        self.profile = disparity.profile(*self.read)
        self.floor = (
            disparity.floor(disparity.measured(floors, measure), self.read[1]) if floors else None
        )
        self.onset = disparity.onset(self.profile, self.floor, self.parts)

    def place(self, part: str) -> int:
        """Where a part is; of what is not here, the last block of its stage that is not behind it."""
        if part in self.parts:
            return self.parts.index(part)
        stage, _, number = part.partition(".")
        own = [i for i, name in enumerate(stages_of(self.parts)) if name == stage] or [
            len(self.parts) - 1
        ]
        return own[min(int(number or len(own)), len(own) - 1)]

    def samples(self, part: str, pair: int) -> pd.DataFrame:
        """The samples of one pair by their values at a part: `index` in the data set, `value`, and
        seen by `both`?
        """
        import pandas as pd

        values, both = self.read[0][pair][self.place(part)], self.read[1][pair]
        found = pd.DataFrame({"index": self.index[pair], "value": values, "both": both})
        return found.sort_values("value", kind="stable", ignore_index=True)

    def held(self, part: str) -> dict[str, float]:
        """What share of parameters, activations and FLOPs comes before the part's stage; nothing
        where none counted.
        """
        if self.anatomy is None:
            return {}
        front = stages_of(names_of(self.anatomy)).index(stages_of(self.parts)[self.place(part)])
        return {
            words: self.anatomy[kind][:front].sum() / self.anatomy[kind].sum()
            for kind, words in COUNTS.items()
        }


def merged(sides: Sequence[Side]) -> list[str]:
    """All parts of the sides, stage by stage, each stage's blocks those of the side that has more."""
    stages = sorted(
        dict.fromkeys(own for side in sides for own in stages_of(side.parts)), key="head".__eq__
    )
    blocks = [
        [[name for name in side.parts if stages_of([name]) == [stage]] for side in sides]
        for stage in stages
    ]
    return [name for each in blocks for name in max(each, key=len)]


def told(sides: Sequence[Side], part: str) -> list[str]:
    """The part's numbers in a sentence or two for each side; B minus A, where they can be compared
    pair by pair.
    """
    return drawn("probes.txt", sides=sides, part=part, gaps=_gaps(*sides)).splitlines()


@lru_cache(maxsize=4)
def _gaps(first: Side, second: Side | None = None) -> list[Estimate]:
    """By part, how much further from 0.5 the second side's AUC is; none where they cannot be
    compared pair by pair.
    """
    if not second or first.parts != second.parts or first.profile[0].n != second.profile[0].n:
        return []
    return [
        disparity.setting_difference(second.read, first.read, i) for i in range(len(first.parts))
    ]


# --- drawing --------------------------------------------------------------------------------------------------------

PROFILE, GAP = "AUC of each part, 95 % interval", "how far the AUC is from 0.5: B minus A"


def sheet(sides: Sequence[Side], part: str) -> Sheet:
    """Profiles of one or two sides on one axis, B minus A below, and the part's histograms at the
    right.
    """
    import pandas as pd

    from leak_atlas.report import figures, rows
    from leak_atlas.report.sheet import INK, WASH, Look, looks_of

    stages = list(dict.fromkeys(stages_of(merged(sides))))

    def along(
        side: Side, found: Sequence[Estimate], panel: str = PROFILE, aside: float = 0.0
    ) -> pd.DataFrame:
        """On an axis on which every stage is one wide, however many blocks it has."""
        own = stages_of(side.parts)
        at = [
            stages.index(each) + (own[:i].count(each) + 0.5) / own.count(each) - 0.5
            for i, each in enumerate(own)
        ]
        made = figures.spans(
            rows(side.parts, found, panel=panel, side=side.letter if panel == PROFILE else GAP)
        )
        return made.assign(_x=np.array(at) + aside)

    names = "seen by both", "seen by M_all only"
    looks = figures.outlined(names) | {GAP: Look("", INK, "D", "none")}
    looks[names[1]] = looks[names[1]]._replace(colour=INK)
    layers: list[tuple[pd.DataFrame, figures.Mark]] = []
    right = []
    for i, side in enumerate(sides):
        many = len(side.parts) > 2 * len(stages)
        aside = 0.0 if many or len(sides) == 1 else 0.18 * i - 0.09
        own = looks_of("AB")[side.letter]
        looks[side.letter] = own._replace(
            label=f"{side.letter}: {side.name}", size=4 if many else 6
        )
        found = along(side, side.profile, aside=aside)
        layers += [
            (found, figures.points),
            (found.iloc[[side.place(part)]], figures.marker(**figures.RING)),
        ]
        if side.floor:
            layers.append((along(side, side.floor, aside=aside), partial(figures.steps, wide=0.16)))
        right.append(f"{side.letter}, {side.parts[side.place(part)]}: {quantity(side.measure)}")
        pool = pd.concat([side.samples(part, pair) for pair in range(len(side.index))])
        both = [pool["value"][pool["both"] == known] for known in (True, False)]
        halves = figures.shares(both, names, [both])
        layers.append(
            (halves.rename(columns={"who": "side"}).assign(panel=right[-1]), figures.stairs)
        )
    if gaps := _gaps(*sides):
        layers.append((along(sides[0], gaps, GAP), figures.points))

    def dress(panel: str, ax: Axes) -> None:
        if panel in right:
            return figures.bare(panel, ax)
        here = stages.index(stages_of([part])[0])
        ax.axvspan(here - 0.5, here + 0.5, color=WASH, alpha=0.5, zorder=0, linewidth=0)
        ax.axhline(0 if panel == GAP else 0.5, **figures.GUESS)
        ax.set_xticks(range(len(stages)), stages)
        ax.set_xlim(-0.5, len(stages) - 0.5)
        ax.grid(axis="x", visible=False)
        ax.locator_params(axis="y", nbins=2 if panel == GAP else 6)

    left = [PROFILE] * 3 + [GAP if gaps else PROFILE]
    panels = [[left[i], left[i], right[i * len(sides) // 4]] for i in range(4)]
    fig = figures.draw(
        layers, looks=looks, hue="side", facet="panel", panels=panels, height=0.95, dress=dress
    )
    fig.finding = " ".join(told(sides, part))
    return fig


def ends(
    samples: pd.DataFrame, data: Samples, classes: Sequence[str]
) -> dict[str, list[dict[str, Any]]]:
    """The samples at both ends of their values, each with its class and its picture."""
    from PIL import Image

    def shown(at: int, value: float, both: bool) -> dict[str, Any]:
        pixels, label = data.x[at], classes[data.labels[at]]
        image = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
        return {"at": at, "value": value, "both": both, "label": label, "png": png(image)}

    found = {"largest": samples[: -SHOWN - 1 : -1], "smallest": samples[:SHOWN]}
    return {
        title: [shown(*each) for each in end.itertuples(index=False)]
        for title, end in found.items()
    }
