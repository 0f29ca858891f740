"""Every figure draws what it is given, says its finding, and stays small."""

import base64
import io
import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from leak_atlas import audit, report
from leak_atlas.audit import Estimate
from leak_atlas.report import figures, sheet
from tests.report.overlaps import overlaps
from tests.report.parts import rows as rows_of

STAGES = ["stem", "stage1", "stage2", "stage3", "stage4"]
TITLE = "Disparity begins in stage 4, and this title is long enough that it has to be wrapped over a second line of text"


def near(value: float) -> Estimate:
    return Estimate(value, value - 0.02, value + 0.02, 5)


def series(**labels: object) -> list[dict[str, object]]:
    return rows_of(STAGES, [near(v) for v in (0.5, 0.5, 0.49, 0.52, 0.6)], **labels)


def two_distributions() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.gamma(9, 0.1, 300), rng.gamma(9, 0.12, 200)


SIDES = ("members", "non-members")


def a_grid_of_histograms() -> Figure:
    groups = {("plain", stage): two_distributions() for stage in STAGES[1:]}
    groups["augmented", "stage4"] = two_distributions()
    notes = {("plain", "stage4"): "AUC 0.60 [0.58, 0.62]"}
    return report.histograms(groups, SIDES, notes, title=TITLE)


def a_constant_histogram() -> Figure:
    return report.histograms({"stem": (np.zeros(9), np.zeros(9))}, SIDES)


def a_profile_of_everything() -> Figure:
    rows = series(measure="direction", depth="resnet10")
    rows += series(measure="Euclidean", depth="resnet10")
    floor = series(depth="resnet10")
    return report.profile(rows, hue="measure", facet="depth", floor=floor, title=TITLE)


def a_profile_of_few_pairs() -> Figure:
    unknown = Estimate(np.nan, np.nan, np.nan)
    one = Estimate(0.6, -np.inf, np.inf, 1, False)
    return report.profile(rows_of(STAGES[:3], [one, Estimate(0.5, -1, 2, 2), unknown]))


def a_tradeoff() -> Figure:
    rows = []
    for i, variant in enumerate(("ordinary", "scratch", "risky stages")):
        for strength in range(3):
            point = {"accuracy": near(0.7 + 0.02 * strength), "auc": near(0.7 - 0.02 * i)}
            rows.append({"variant": variant, "attack": "LiRA"} | point)
    return report.tradeoff(rows, title=TITLE)


def a_comparison_with_a_paper() -> Figure:
    known = {"setting": "2x2", "value": near(0.7), "paper": 0.52}
    unknown = {"setting": "4x4", "value": near(0.7), "paper": None}
    return report.against_paper([known, unknown], source="paper (X)")


def curves_on_a_logarithmic_axis() -> Figure:
    rates = {"fpr": np.logspace(-3, 0, 9), "value": np.logspace(-2, 0, 9), "attack": ["loss"] * 9}
    return report.curves(pd.DataFrame(rates), "fpr", facet="attack", log_x=True, diagonal=True)


def a_density() -> Figure:
    x = np.random.default_rng(0).lognormal(-5, 2, 9000)
    groups = {("ResNet", "all"): (x, x**1.1), ("ResNet", "norm"): (x[:60], x[:60])}
    return report.density(
        groups, counted="points", title=TITLE, notes={("ResNet", "all"): "r = 0.95"}
    )


SHIFTS = {"CE": 1.2, "RelaxLoss": 0.8}  # of the scores of members


def bands(targets: int, shifts: dict[str, float] = SHIFTS) -> dict[str, audit.Roc]:
    rng, found = np.random.default_rng(0), {}
    for name, shift in shifts.items():
        member = rng.permuted(np.tile(np.arange(400) < 200, (targets, 1)), axis=1)
        scores = rng.normal(size=member.shape) + shift * member
        found[name] = audit.roc_band(scores, member)
    return found


def a_roc() -> Figure:
    return report.roc(bands(targets=4), title=TITLE)


FIGURES = (
    a_grid_of_histograms,
    a_constant_histogram,
    a_profile_of_everything,
    a_profile_of_few_pairs,
    a_tradeoff,
    a_comparison_with_a_paper,
    curves_on_a_logarithmic_axis,
    a_density,
    a_roc,
)


@pytest.mark.parametrize("draw", FIGURES)
def test_figure_is_drawn_small_and_the_same_twice(draw):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    data, about = draw()._repr_mimebundle_()
    assert data == draw()._repr_mimebundle_()[0]
    assert len(data["image/png"]) < 120_000
    assert about["image/png"]["width"] <= 924
    assert plt.get_fignums() == before, "a figure that pyplot knows is shown twice"


def test_roc_stops_at_the_resolution():
    linear, log = a_roc().axes
    assert log.get_xscale() == log.get_yscale() == "log"
    assert linear.get_xscale() == "linear"
    for ax, start in ((linear, 0), (log, 1 / 200)):
        assert [min(line.get_xdata()) for line in ax.lines[:-1]] == [start, start]
    assert log.get_xlim()[0] < 1 / 200


def test_a_picture_keeps_the_colours_of_bands():
    five = bands(targets=10, shifts={"a": 2.0, "b": 1.5, "c": 1.2, "d": 0.8, "e": 0.4})
    fig = report.roc({(row, name): one for row in "xy" for name, one in five.items()})
    picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(fig.png()))).convert("RGB"))
    shown = np.unique(picture.reshape(-1, 3), axis=0)
    for band in fig.axes[0].collections:
        *colour, alpha = band.get_facecolor()[0]
        on_white = 255 * (alpha * np.array(colour) + 1 - alpha)
        assert np.abs(shown - on_white).max(axis=1).min() <= 1


def test_density_counts_every_point_once():
    x = np.random.default_rng(0).lognormal(-5, 2, 900)
    x[:40] = 0  # has no logarithm: on the border
    groups = {("ResNet", "all"): (x, x), ("ResNet", "norm"): (x[:60], x[:60])}
    fig = report.density(groups, counted="points")
    for ax, points in zip(fig.axes, (900, 60), strict=False):
        (mesh,) = ax.collections
        assert np.nansum(mesh.get_array()) == points
        assert np.nansum(mesh.get_array().T[0]) >= 40


def test_endless_intervals_leave_the_frame_and_do_not_squeeze_it():
    endless = [Estimate(0.6, -np.inf, np.inf, 1, False), Estimate(0.5, -9.0, 9.0, 2)]
    ax = report.profile(rows_of(["stage1", "stage2"], endless)).axes[0]
    low, high = ax.get_ylim()
    assert 0.2 < low < 0.5 < 0.6 < high < 0.9
    ends = np.concatenate([path.vertices[:, 1] for path in ax.collections[0].get_paths()])
    assert ends.min() < low and ends.max() > high and np.isfinite(ends).all()


# ---------------------------------------------------------------- what marks draw


def test_a_band_covers_the_intervals() -> None:
    rows = [{"epoch": epoch, "value": Estimate(0.9, 0.8, 0.95, 5)} for epoch in (1, 2)]
    (band,) = report.curves(rows, "epoch").axes[0].collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0.8, 0.95)


def test_a_tradeoff_joins_accuracy_and_auc_in_the_order_of_the_rows() -> None:
    rows = [{"accuracy": 0.7, "auc": 0.6}, {"accuracy": 0.8, "auc": 0.55}]
    (ax,) = report.tradeoff([row | {"variant": "dense"} for row in rows]).axes
    assert ax.lines[0].get_xydata().tolist() == [[0.7, 0.6], [0.8, 0.55]]


def test_chance_bars_cover_the_intervals() -> None:
    floor = rows_of(["stem"], [Estimate(0.5, 0.45, 0.52, 5)])
    (ax,) = report.profile(rows_of(["stem"], [near(0.6)]), floor=floor).axes
    (bar,) = ax.patches
    assert (bar.get_y(), bar.get_height()) == pytest.approx((0.45, 0.07))


def test_the_papers_number_is_a_hollow_marker() -> None:
    (ax,) = report.against_paper([{"setting": "2x2", "value": near(0.7), "paper": 0.52}]).axes
    hollow = [line for line in ax.lines if line.get_markerfacecolor() == "none"]
    assert [0.52] in [list(line.get_xdata()) for line in hollow]


def test_hatches_begin_at_their_first_stage_and_end_at_the_last() -> None:
    parts = ["stem", "stage1", "stage2", "head"]
    rows = rows_of(parts, [near(0.5)] * 4)
    (ax,) = report.profile(rows, hatch_from="stage1").axes
    (patch,) = ax.patches
    assert (patch.get_x(), patch.get_width()) == (0.5, 2.0)


def test_an_interval_that_is_open_on_both_sides_has_two_arrows() -> None:
    endless = Estimate(0.6, -np.inf, np.inf, 1, False)
    (ax,) = report.profile(rows_of(["stage1", "stage2"], [endless, near(0.5)])).axes
    arrows = {line.get_marker(): list(line.get_ydata()) for line in ax.lines}
    low, high = ax.get_ylim()
    assert (arrows["v"], arrows["^"]) == ([low], [high])


def test_a_diagonal_is_where_both_values_are_equal() -> None:
    rows = [{"fpr": fpr, "value": 2 * fpr} for fpr in (0.1, 0.4)]
    (ax,) = report.curves(rows, "fpr", diagonal=True).axes
    x, y = ax.lines[-1].get_data()
    assert x.tolist() == y.tolist()


def test_rare_values_have_a_line_at_each_mean() -> None:
    pair = np.array([1.0, 3.0]), np.array([2.0, 6.0])
    (ax,) = report.histograms({"stem": pair}, SIDES, log=True).axes
    assert [line.get_xdata()[0] for line in ax.lines] == [2.0, 4.0]


def test_a_histogram_counts_every_value_also_beyond_its_last_bin() -> None:
    pair = np.array([0.0] * 999 + [1e6]), np.linspace(0, 1, 100)
    rows = figures.histogram_rows(pair, SIDES, [pair])
    assert rows.groupby("who")["_y"].sum().tolist() == pytest.approx([1, 1])


# ---------------------------------------------------------------- planes

EPOCHS = [0, 1, 2, 5, 10, 20, 40]


def trajectory(samples: int = 300, networks: int = 16) -> np.ndarray:
    """Counted rates that leave the diagonal, `(7, 2, samples)`."""
    rng = np.random.default_rng(networks)
    gone = np.linspace(0, 0.4, len(EPOCHS))[:, None] * rng.random(samples)
    share = np.stack([0.5 - gone, 0.5 + gone], axis=1)
    return rng.binomial(networks, share) / networks


def test_a_plane_has_a_row_for_each_trajectory_and_counts_every_sample():
    one, other = trajectory(), trajectory(networks=63)
    fig = report.planes({"digits": one, "CIFAR-10": other}, EPOCHS, title=TITLE)
    panels = [ax for ax in fig.axes if ax.get_aspect() == 1]
    places = [(rates, at) for rates in (one, other) for at in (0, 2, 3, 4, 6)]
    for ax, (rates, at) in zip(panels, places, strict=True):
        (mesh,) = ax.collections
        edges = [figures.cell_edges(rates[:, side]) for side in (0, 1)]
        fpr, tpr = rates[at]
        expected = np.histogram2d(fpr, tpr, edges)[0].T
        shown = np.ma.filled(mesh.get_array(), np.nan).reshape(expected.shape)
        np.testing.assert_array_equal(np.nan_to_num(shown), expected)
        centres = rates.mean(axis=2)[: at + 1]
        np.testing.assert_allclose(np.transpose(ax.lines[1].get_data()), centres)


@pytest.mark.parametrize("networks", [8, 16, 63, 64, 100, 128])
def test_a_cell_holds_as_many_points_of_the_lattice_as_any_other(networks):
    lattice = np.arange(networks + 1) / networks
    edges = figures.cell_edges(lattice.astype(np.float32).astype(float))
    counts = np.histogram(lattice, edges)[0]
    assert counts.sum() == networks + 1 and len(edges) <= figures.MAX_CELLS + 2
    assert len(set(counts[:-1])) == 1


def test_series_differ_in_more_than_colour():
    fig = report.profile(
        [row for name in "abcdefg" for row in series(variant=name)], hue="variant", reference=None
    )
    looks = [(line.get_marker(), str(line.get_linestyle())) for line in fig.axes[0].lines]
    assert len(looks) == 7 and len({marker for marker, _ in looks}) == 7


LONG = "retrained from the initialisation with RelaxLoss at strength"


def a_profile_of_many() -> Figure:
    rows = [{"part": f"{LONG} {i}", "value": near(0.5 + i / 100)} for i in range(16)]
    return report.profile(rows, title=LONG * 4)


def many_comparisons_with_a_paper() -> Figure:
    rows = []
    for panel in range(3):
        for i in range(9):
            row = {"setting": f"{LONG} {i}", "value": near(0.7), "paper": 0.6}
            rows.append(row | {"panel": f"{LONG} {panel}"})
    return report.against_paper(rows, facet="panel", source=LONG, title=LONG * 3)


def a_crowded_tradeoff() -> Figure:
    rows = []
    for attack in "abc":
        for i in range(12):
            names = {"attack": f"{LONG} {attack}", "variant": f"{LONG} defence {i}"}
            accuracy = near(0.75 + 0.004 * np.sin(5 * i))
            rows.append(names | {"accuracy": accuracy, "auc": near(0.8 + 0.02 * np.cos(3 * i))})
    return report.tradeoff(rows, title=LONG * 3, reference_label="the dense network, trained on")


def histograms_with_long_names() -> Figure:
    groups = {(LONG, f"{LONG} {i}"): two_distributions() for i in range(4)}
    notes = dict.fromkeys(groups, "AUC 0.60 [0.58, 0.62] over 12 pairs of networks")
    return report.histograms(groups, (LONG, f"{LONG} 2"), notes)


HARD = (
    a_profile_of_many,
    many_comparisons_with_a_paper,
    a_crowded_tradeoff,
    histograms_with_long_names,
)


@pytest.mark.parametrize("draw", HARD)
def test_no_words_meet_or_leave_the_canvas(draw):
    fig = draw()
    assert not overlaps(fig)
    assert min(ax.bbox.height for ax in fig.axes) > 40, "panels keep their place beside the words"


def test_a_batch_keeps_figures_beside_their_page(tmp_path, monkeypatch):
    monkeypatch.setenv("LEAK_ATLAS_FIGURES", f"{tmp_path / 'fig01'}")
    monkeypatch.setattr(sheet, "COUNTED", itertools.count(1))
    shown = [
        report.profile(series(measure="a"), hue="measure")._repr_mimebundle_()[1]["image/png"]
        for _ in range(2)
    ]
    assert [about["figure"] for about in shown] == ["fig01.fig1", "fig01.fig2"]
    for kind in ("svg", "pdf", "csv"):
        one, two = ((tmp_path / f"fig01.fig{i}.{kind}").read_bytes() for i in (1, 2))
        assert one == two and one
    drawn = pd.read_csv(tmp_path / "fig01.fig1.csv")
    assert list(drawn["part"]) == STAGES and drawn["y_low"].tolist() == pytest.approx(
        [0.48, 0.48, 0.47, 0.5, 0.58]
    )


def test_a_title_of_wide_letters_stays_inside_its_figure() -> None:
    fig = report.profile(series(), title="MMMMMMMM " * 20)
    (head,) = fig.legends
    assert head.get_window_extent().width <= fig.bbox.width
    assert head.get_title().get_text().count("\n") < 6  # and uses the room that it has


def test_an_interval_that_leaves_the_axes_ends_in_an_arrow() -> None:
    rows = rows_of(["narrow", "wide"], [near(0.50), Estimate(0.55, 0.52, 0.9, 5)])
    (axes,) = report.against_paper(rows, "part").axes
    (arrow,) = [line for line in axes.lines if line.get_marker() == ">"]
    assert arrow.get_xydata().tolist() == [[axes.get_xlim()[1], 1.0]]
    assert not [line for line in axes.lines if line.get_marker() in "<v^"]


def test_panels_of_other_measures_have_other_limits() -> None:
    rows = []
    for measure, level in (("AUC", 0.9), ("TPR", 0.1)):
        for size in (2, 4):
            rows.append({"models": size, "measure": measure, "value": near(level)})
    for share, same in ((True, True), (False, False)):
        high, low = report.curves(rows, "models", facet="measure", share=share).axes
        assert (high.get_ylim() == low.get_ylim()) == same
    assert high.get_ylim()[0] > 0.8


def test_marked_curves_have_a_tick_and_a_marker_at_each_measured_value() -> None:
    rows = [{"models": size, "value": near(0.9)} for size in (2, 4, 22)]
    (axes,) = report.curves(rows, "models", marked=True).axes
    assert axes.get_xticks().tolist() == [2, 4, 22]
    assert axes.lines[0].get_marker() not in ("None", "")
