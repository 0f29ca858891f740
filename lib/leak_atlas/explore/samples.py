"""Which members does a window over the memorization ranking visit, and who is exposed? (WeMem)

    studies = {"bits": WindowStudy(...)}
    Instrument(Samples(studies, {"LiRA": LiRA("offline_cdf")}, RMR(share=0.2), ninths=2, step=1))

Networks are pruned in rounds. Base trains on all members in each epoch of a round, RSW on those in
a window that slides over the members of each class; SWMR also penalizes the weights on the members
with the highest scores. The *exposure* of a sample is the share of a target's non-members that get
a lower score from the attack; its mean over the members is the AUC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from leak_atlas import audit
from leak_atlas.audit import FloatArray
from leak_atlas.data import designs, readers
from leak_atlas.data.designs import Role
from leak_atlas.explore import charts, look, shelf
from leak_atlas.explore.charts import Chart, by
from leak_atlas.explore.instrument import Choice, Description, Pointer, Rows, State
from leak_atlas.explore.shelf import Measured, Shelf
from leak_atlas.localization.samples import split_by_group, split_by_ranking, window_visits
from leak_atlas.recipe import RMR, Attacker, Step, Window, WindowStudy, registry

if TYPE_CHECKING:
    import pandas as pd

    from leak_atlas.localization.disparity import Arrays

DEFENCES = ("RSW", "SWMR")
RANDOM = "random order"  # the control: from low to high, of the same scores, permuted
ORDERS = {"low-to-high": "low-to-high", "high-to-low": "high-to-low", RANDOM: "low-to-high"}
PARTS, NEIGHBOURS = 4, 6  # parts of the ranking; members that are nearest to the chosen one
BASE, WINDOW = "Base", "window"
COLOURS = {BASE: charts.INK, WINDOW: look.COLOURS["B"]}
TargetRows = list[dict[str, Any]]


class Samples(Description):
    """The window and the attack of one study; `penalty` is what SWMR adds to RSW.

    A window has a width in ninths of a class' members, and moves by `step` members an epoch.
    """

    name = "samples"
    title = "Whom does a window over the ranking protect?"
    question = "Which members does a window visit, and which are exposed to an attack?"
    hint = (
        "Play moves the window through the epochs of a round. Click a member to read its score, its"
        " exposure and the members that look most like it."
    )

    def __init__(
        self,
        studies: Mapping[str, WindowStudy],
        attackers: Mapping[str, Attacker],
        penalty: RMR,
        ninths: int,
        step: int,
    ) -> None:
        self._studies, self._attackers, self._penalty = studies, attackers, penalty
        self._shelf, first = Shelf(), next(iter(studies))
        for study in studies.values():
            look.pictured(study.data)
        targets = {str(target): target for target in range(studies[first].targets)}
        widths = {f"{each}/9": each for each in range(1, 10)}
        steps = {str(each): each for each in sorted({0, 1, 2, step})}
        attacks = {name: name for name in attackers}
        width = "of the window, as a share of a class' members"
        self.choices = [
            Choice("data", {name: name for name in studies}, first),
            Choice("defence", {name: name for name in DEFENCES}, DEFENCES[0]),
            Choice("order", ORDERS, "low-to-high", meaning="of the scores"),
            Choice("attack", attacks, next(iter(attacks))),
            Choice("width", widths, f"{ninths}/9", meaning=width),
            Choice("step", steps, str(step), meaning="members an epoch"),
            Choice("target", targets, "0", label="members of target", more=True),
        ]
        self._pool = cache(lambda name: Pool(studies[name]))

    # ------------------------------------------------------------ recipes

    def study(self, state: State) -> WindowStudy:
        return self._studies[state["data"]]

    def window(self, state: State) -> Window:
        study = self.study(state)
        members = study.setup.design.members(0) / study.data.classes
        width = max(1, round(members * self.value(state, "width") / 9))
        return Window(width, self.value(state, "step"), self.value(state, "order"))

    def ranking(self, state: State) -> Step:
        """The scores by which members are ordered."""
        study = self.study(state)
        return study.ranking.shuffle() if state["order"] == RANDOM else study.ranking

    def measured(self, state: State) -> dict[str, Measured]:
        """The outputs and the attack of Base and of the window."""
        study = self.study(state)
        penalty = self._penalty if state["defence"] == "SWMR" else None
        windowed = study.windowed(self.window(state), self.ranking(state), penalty)
        populations = {BASE: study.base, WINDOW: windowed}
        return {
            name: shelf.measured(networks, self._attackers, state["attack"], study.targets)
            for name, networks in populations.items()
        }

    def steps(self, state: State) -> list[list[Step]]:
        measured = [step for own in self.measured(state).values() for step in (*own[0], own[1])]
        return [[self.study(state).ranking, self.ranking(state), *measured]]

    def beginning(self) -> list[list[Step]]:
        """What a notebook trains: on all data Base, both defences and their control's order."""
        start = {choice.name: choice.start for choice in self.choices}
        steps: list[list[Step]] = [[each.ranking.shuffle() for each in self._studies.values()]]
        for data, defence, attack in product(self._studies, DEFENCES, self._attackers):
            steps += self.steps(start | {"data": data, "defence": defence, "attack": attack})
        return steps

    def marks(self, state: State, side: str) -> Sequence[Step]:
        return [self.ranking(state), self.measured(state)[WINDOW][1]]

    # ------------------------------------------------------------ rows

    def rows(self, state: State) -> Rows:
        study, pool, window = self.study(state), self._pool(state["data"]), self.window(state)
        if not (scores := self._shelf.results([study.ranking, self.ranking(state)])):
            return {}
        ranking, by_score = scores
        members = [
            pool.members(target, ranking, by_score, window.order) for target in range(study.targets)
        ]
        attacks = {
            name: results[0]
            for name, (_, attack) in self.measured(state).items()
            if (results := self._shelf.results([attack]))
        }
        chosen = members[self.value(state, "target")]
        exposed = [row for each in attacks.items() for row in _by_rank(*each, members)]
        rows = {"exposure": exposed, "members": pool.rows(chosen, attacks)}
        rows["ranks"] = [
            {"rank": rank + 1, "visits": [window.visits(rank + 1, epoch)[rank] for epoch in epochs]}
            for epochs in [range(1, study.fine_tuning + 1)]
            for rank in range(chosen["rank"].max() + 1)
        ]
        rows["parts"] = [row for each in attacks.items() for row in _by_part(*each, ranking)]
        return rows

    def tables(self, state: State, rows: Rows) -> dict[str, pd.DataFrame]:
        import pandas as pd

        members = pd.DataFrame(rows["members"]).drop(columns=["image", "near"])
        return {"members": members, "exposure": pd.DataFrame(rows["exposure"])}

    # ------------------------------------------------------------ figure

    def pointers(self, state: State, rows: Rows) -> list[Pointer]:
        epochs = [*range(1, len(rows["ranks"][0]["visits"]) + 1)]
        highest = max(rows["members"], key=lambda row: row["score"])
        return [
            Pointer("epoch", "epoch", epochs, 1 + len(epochs) // 2, slider=True, play=True),
            Pointer("sample", "sample_sample", [], highest["sample"], hidden=True),
        ]

    def sentences(self, state: State, rows: Rows) -> list[str]:
        if not rows:
            return ["The memorization scores are not stored yet."]
        window, epochs = self.window(state), len(rows["ranks"][0]["visits"])
        epoch = state.get("epoch", 1 + epochs // 2)
        first = window.step * (epoch - 1) + 1
        total = [rows["ranks"][row["rank"] - 1]["visits"][-1] for row in rows["members"]]
        sentences = [
            f"In epoch {epoch} of {epochs} of a round the window holds ranks {first} to"
            f" {first + window.width - 1} of each class. A round visits members"
            f" {look.percent(np.mean(total) / epochs)} as often as Base does;"
            f" {look.percent(np.mean(np.array(total) == 0))} of the members are never visited."
        ]
        for name, measured in self.measured(state).items():
            words = f"{state['defence']} ({name})" if name == WINDOW else name
            if not (outcome := self._shelf.outcome(*measured)):
                sentences.append(f"{words} is not stored yet.")
                continue
            sentences.append(
                f"{words}: test accuracy {outcome['accuracy']:.3f}, AUC of {state['attack']}"
                f" {outcome['auc']:.3f} (mean over targets, 95 % interval)"
                f"{self._by_visits(state, measured)}."
            )
        return sentences

    def _by_visits(self, state: State, measured: Measured) -> str:
        """AUC among the samples of ranks that the window never visits, where there are such."""
        scored, by_score = self._shelf.results([measured[1], self.ranking(state)]) or []
        labels = self._pool(state["data"]).data.labels[by_score["index"]]
        labelled = {"index": by_score["index"], "labels": labels}
        epochs = self.study(state).fine_tuning
        never = window_visits(scored, by_score, labelled, self.window(state), epochs) == 0
        visited, not_visited = split_by_group(scored, never.astype(int), 2)
        if not all(0 < np.mean(one["member"]) < 1 for one in (*visited, *not_visited)):
            return ""
        never_auc, auc = (audit.audit(part)["auc"] for part in (not_visited, visited))
        return f"; {never_auc:.3f} among ranks never visited, {auc:.3f} among the others"

    def chart(self, state: State, rows: Rows, narrow: bool) -> Chart:
        window, ranks = self.window(state), len(rows["ranks"])
        sample = charts.selection("sample", "image", sample=state["sample"])
        inside = f"datum.rank > {window.step} * (epoch - 1)"
        inside += f" && datum.rank <= {window.step} * (epoch - 1) + {window.width}"
        width = 300 if narrow else 620
        held = charts.on(
            charts.rows("ranks", charts.where(inside)),
            {"aggregate": [_ends("min", "first"), _ends("max", "last")]},
            charts.calculate(first="datum.first - 0.5", last="datum.last + 0.5"),
        )
        outline = {"fill": None, "stroke": COLOURS[WINDOW], "strokeWidth": 2.5, "aria": False}
        frame = charts.layers(
            held, charts.mark("rect", outline, x=by("first:Q"), x2={"field": "last"})
        )
        x = by(
            "rank:Q", scale={"domain": [0.5, ranks + 0.5], "nice": False}, title="rank in the class"
        )
        left = {
            f"members of target {state['target']}, {state['order']}": _members(
                rows, sample, inside, frame, x, width
            ),
            "visits in a round (line: Base)": _visits(rows["ranks"], frame, x, width),
            f"exposure of the members of each rank to {state['attack']}": _exposure(x, width),
        }
        chosen = charts.rows("members", charts.chosen("sample"))
        near = charts.on(
            chosen,
            {"flatten": ["near"]},
            {"window": [{"op": "row_number", "as": "place"}]},
            {"lookup": "near", "from": PICTURES},
            charts.calculate(sample="datum.near"),
        )
        small = 280 if narrow else 320
        right = {
            f"the chosen sample, and its exposure to {state['attack']}": _card(chosen),
            "the members of this target that look most like it": charts.pictures(
                near, sample, "label", NEAR_TIPS, small, NEIGHBOURS
            ),
            f"quarters of the scores: AUC of {state['attack']}": _parts(small),
        }
        both = [charts.side_by_side(each, narrow=True) for each in (left, right)]
        line = {"vconcat" if narrow else "hconcat": both}
        params = [{"name": "epoch", "value": state["epoch"]}]
        return charts.page([line], "Members by rank, and the window over them", params)


# ---------------------------------------------------------------- rows


class Pool:
    """The samples that a study ranks: pictures, labels, and the role of each in each target."""

    def __init__(self, study: WindowStudy) -> None:
        data, design = study.data, study.setup.design
        self.name, self.data = data.name, readers.load(data.name, data.pixels)
        self.classes = registry.find(data.name).classes
        self.roles = designs.roles(design, self.data.labels, data.parts[0], study.targets)

    def members(self, target: int, ranking: Arrays, by_score: Arrays, order: str) -> pd.DataFrame:
        """A target's members: `index`, `label`, `score`, and `rank`, their place from 0 in their
        class.

        `by_score` orders them; of equal scores the first member ranks first, as in the training.
        """
        import pandas as pd

        inside = self.roles[target, ranking["index"]] == Role.MEMBER
        index, scores = ranking["index"][inside], by_score["score"][inside]
        columns = {"score": ranking["score"][inside], "label": self.data.labels[index]}
        frame = pd.DataFrame({"index": index} | columns)
        order_of = np.argsort(-scores if order == "high-to-low" else scores, kind="stable")
        frame = frame.iloc[order_of]
        return frame.assign(rank=frame.groupby("label").cumcount())

    def rows(self, members: pd.DataFrame, attacks: Mapping[str, Arrays]) -> list[dict[str, Any]]:
        """A row a member, with its mean exposure to the targets that trained on it, and to the
        others.
        """
        index = members["index"].to_numpy()
        names, images = [f"{self.name} {i}" for i in index], look.pictures(self.data.x[index])
        near = [[names[i] for i in each] for each in _neighbours(self.data.x[index])]
        exposed = {name: _of_samples(scored) for name, scored in attacks.items()}
        rows = []
        for i, member in enumerate(members.to_dict("records")):
            label = self.classes[member["label"]]
            row = {"sample": names[i], "class": label, "label": f"{label} ({names[i]})"}
            row |= {"rank": member["rank"] + 1, "score": round(member["score"], 3)}
            for name, means in exposed.items():
                own = means.loc[member["index"]]
                row |= {f"{name} {side}": _rounded(own.get(side == "in")) for side in ("in", "out")}
            rows.append(row | {"image": charts.png(images[i]), "near": near[i]})
        return rows


def _rounded(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else round(float(value), 3)


def _neighbours(x: Any) -> list[list[int]]:
    """The places of those that are nearest to each sample, by Euclidean distance of the pixels."""
    flat = x.reshape(len(x), -1).astype(np.float32)
    squares = np.square(flat).sum(axis=1)
    far = squares[:, None] + squares - 2 * flat @ flat.T
    np.fill_diagonal(far, np.inf)
    return np.argsort(far, axis=1, kind="stable")[:, :NEIGHBOURS].tolist()


def exposure(scored: Mapping[str, Any]) -> FloatArray:
    """Of each target's samples `(T, n)` the share of its non-members with a lower score; ties count
    half.
    """
    shares = []
    members = np.broadcast_to(scored["member"], scored["scores"].shape)
    for scores, member in zip(scored["scores"], members, strict=True):
        outside = np.sort(scores[~member])
        below = np.searchsorted(outside, scores) + np.searchsorted(outside, scores, "right")
        shares.append(below / 2 / len(outside))
    return np.array(shares)


def _of_samples(scored: Mapping[str, Any]) -> pd.DataFrame:
    """Mean exposure of each sample over targets that trained on it (True), and over the others."""
    import pandas as pd

    shares = exposure(scored)
    index, member = (np.broadcast_to(scored[name], shares.shape) for name in ("index", "member"))
    columns = {"index": index.ravel(), "member": member.ravel(), "share": shares.ravel()}
    return pd.DataFrame(columns).groupby(["index", "member"])["share"].mean().unstack()


def _by_rank(
    name: str, scored: Mapping[str, Any], members: Sequence[pd.DataFrame]
) -> list[dict[str, Any]]:
    """Mean exposure of the members of each rank that every target has, over the targets."""
    import pandas as pd

    shares, by_target = exposure(scored), []
    index = np.broadcast_to(scored["index"], shares.shape)
    for share, own, frame in zip(shares, index, members, strict=True):
        exposed = pd.Series(share[np.searchsorted(own, frame["index"])])
        by_target.append(exposed.groupby(frame["rank"].to_numpy()).mean())
    table = pd.concat(by_target, axis=1, join="inner").sort_index()
    return [
        {"variant": name, "rank": rank + 1} | charts.interval(audit.mean_ci(row, bounds=(0, 1)))
        for rank, row in zip(table.index.tolist(), table.to_numpy(), strict=True)
    ]


def _by_part(name: str, scored: Arrays, ranking: Arrays) -> list[dict[str, Any]]:
    """AUC within each quarter of the scores, over the targets."""
    rows = []
    for part, own in enumerate(split_by_ranking(scored, ranking, PARTS)):
        areas = [float(audit.auc(one["scores"], one["member"])[0]) for one in own]
        estimate = audit.mean_ci(areas, bounds=(0, 1))
        rows.append({"variant": name, "quarter": part + 1} | charts.interval(estimate))
    return rows


# ---------------------------------------------------------------- figure

INTERVAL = "format(datum.low, '.3f') + ' to ' + format(datum.high, '.3f')"
PICTURES = {"data": {"name": "members"}, "key": "sample", "fields": ["image", "label", "score"]}
SCORE = by("score:Q", title="memorization score", format=".2f")
NEAR_TIPS = [by("label:N", title="sample"), SCORE]
EXPOSED = [
    by("variant:N"),
    by("auc:Q", title="mean over targets", format=".3f"),
    by("interval:N", title="95 % interval"),
]
VARIANT = by("variant:N", scale=charts.colours(COLOURS), legend=charts.LEGEND)
CHANCE = charts.mark(
    "rule", {"strokeDash": [4, 4], "color": charts.QUIET, "aria": False}, y={"datum": 0.5}
)


def _ends(of: str, name: str) -> dict[str, str]:
    return {"op": of, "field": "rank", "as": name}


def _members(
    rows: Rows, sample: dict[str, Any], inside: str, frame: Chart, x: Any, width: int
) -> Chart:
    """Pictures of the members, a row a class; those outside the window are pale."""
    classes = sorted({row["class"] for row in rows["members"]})
    size = width / len(rows["ranks"])
    look = {"width": size, "height": max(size, 14), "cursor": "pointer"}
    y = by("class:N", sort=classes, title=None, axis={"domain": False, "ticks": False})
    place = {"x": x | {"axis": None}, "y": y}
    pale = {"condition": {"test": inside, "value": 1}, "value": 0.25}
    tips = [*NEAR_TIPS, by("rank:Q")]
    images = charts.mark("image", look, **place, url=by("image:N"), opacity=pale, tooltip=tips)
    images["encoding"]["description"] = by("label:N")
    square = {"filled": False, "stroke": charts.PURPLE, "strokeWidth": 2.5, "opacity": 1}
    ring = charts.mark("square", square | {"size": (size + 3) ** 2, "aria": False}, **place)
    ring |= {"transform": [charts.chosen("sample")]}
    tiles = charts.layers(charts.rows("members"), images | {"params": [sample]}, ring)
    height = len(classes) * (max(size, 14) + 1)
    return {"layer": [tiles, frame], "width": width, "height": height}


def _visits(ranks: TargetRows, frame: Chart, x: Any, width: int) -> Chart:
    """How often a round visits each rank: in all, and until the chosen epoch."""
    epochs = len(ranks[0]["visits"])
    counted = charts.calculate(now="datum.visits[epoch - 1]", all=f"datum.visits[{epochs - 1}]")
    x, bar, axis = x | {"axis": None}, {"width": 0.8 * width / len(ranks)}, {"tickCount": 3}
    bars = [
        charts.mark("bar", bar | {"color": colour}, x=x, y=by(f"{of}:Q", title=None, axis=axis))
        for of, colour in (("all", "#d9d9d9"), ("now", COLOURS[WINDOW]))
    ]
    base = charts.mark("rule", {"color": charts.INK, "aria": False}, y={"datum": epochs})
    return charts.layers(charts.rows("ranks", counted), *bars, base, width=width, height=80)


def _exposure(x: Any, width: int) -> Chart:
    """Exposure by rank before and after, with 95 % intervals."""
    words = charts.calculate(interval=INTERVAL)
    low = by("low:Q", scale={"zero": False}, title=None)
    band = charts.mark(
        "area", {"opacity": 0.15, "aria": False}, x=x, y=low, y2={"field": "high"}, color=VARIANT
    )
    shown = {"color": VARIANT, "tooltip": EXPOSED}
    line = charts.mark("line", {"point": True}, x=x, y=by("auc:Q"), **shown)
    return charts.layers(
        charts.rows("exposure", words), CHANCE, line, band, width=width, height=150
    )


def _parts(width: int) -> Chart:
    """AUC of each quarter before and after, with 95 % intervals."""
    words = charts.calculate(interval=INTERVAL)
    title = "quarter of the scores, from the lowest"
    shown: dict[str, Any] = {
        "x": by("quarter:O", title=title, axis={"labelAngle": 0}),
        "xOffset": by("variant:N", sort=[*COLOURS]),
        "color": VARIANT,
        "tooltip": EXPOSED,
    }
    low = by("low:Q", title=None, scale={"zero": False})
    rule = charts.mark("rule", y=low, y2={"field": "high"}, **shown)
    point = charts.mark("point", {"filled": True, "size": 60}, y=by("auc:Q"), **shown)
    return charts.layers(charts.rows("parts", words), CHANCE, rule, point, width=width, height=130)


def _card(chosen: Chart) -> Chart:
    """The picture of the chosen sample, its score and its exposure in words."""
    share = "format(datum['{0} {1}'], '.0%')".format
    words = [
        "datum.label",
        "'memorization score ' + datum.score + ', rank ' + datum.rank",
        *(
            f"'{name}: ' + {share(name, 'in')} + ' as a member, ' + {share(name, 'out')} + ' else'"
            for name in COLOURS
        ),
    ]
    known = charts.on(chosen, charts.calculate(words=f"[{', '.join(words)}]"))
    image = {"width": 64, "height": 64, "x": 34, "y": 36, "aria": False}
    text = {"align": "left", "x": 78, "y": 14, "lineHeight": 17, "fontSize": 11}
    picture = charts.mark("image", image, url=by("image:N"))
    shown = charts.mark("text", text, text=by("words:N"))
    return charts.layers(known, picture, shown, width=280, height=76)
