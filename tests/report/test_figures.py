"""Every figure draws what it is given, says its finding, and stays small."""

import base64
import io
import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

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


def texts(fig: Figure) -> str:
    """All words of a figure."""
    from matplotlib.text import Text

    return "\n".join(item.get_text() for item in fig.findobj(Text))


def size(fig: Figure) -> tuple[int, int]:
    from PIL import Image

    with Image.open(io.BytesIO(base64.b64decode(fig.png()))) as picture:  # type: ignore[attr-defined]
        return picture.size


def two_distributions() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.gamma(9, 0.1, 300), rng.gamma(9, 0.12, 200)


def scattered(points: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).lognormal(-5, 2, points)
    return x, x**1.1


def tradeoffs(attacks: list[str], strengths: int = 1) -> list[dict[str, object]]:
    return [
        {
            "variant": v,
            "attack": a,
            "accuracy": near(0.7 + 0.01 * i + 0.02 * s),
            "auc": near(0.7 - 0.02 * i + 0.02 * s),
        }
        for a in attacks
        for i, v in enumerate(("ordinary", "scratch", "risky stages"))
        for s in range(strengths)
    ]


def bands(*names: str, targets: int = 4, samples: int = 400) -> dict[str, audit.Roc]:
    rng, found = np.random.default_rng(0), {}
    for i, name in enumerate(names):
        member = rng.permuted(np.tile(np.arange(samples) < samples // 2, (targets, 1)), axis=1)
        scores = rng.normal(size=member.shape) + (1.2 - 0.4 * i) * member
        found[name] = (
            audit.roc_band(scores, member) if targets > 1 else audit.roc_band(scores[0], member[0])
        )
    return found


FIGURES = {
    "histograms": lambda: report.histograms(
        {s: two_distributions() for s in STAGES[1:]}, title=TITLE
    ),
    "histograms, noted grid": lambda: report.histograms(
        {(a, s): two_distributions() for a in ("plain", "augmented") for s in STAGES[1:]},
        title=TITLE,
        notes={("plain", "stage4"): "AUC 0.60 [0.58, 0.62]"},
    ),
    "histograms, constant": lambda: report.histograms({"stem": (np.zeros(9), np.zeros(9))}),
    "profile": lambda: report.profile(series(), title=TITLE),
    "profile, everything": lambda: report.profile(
        series(measure="direction", depth="resnet10")
        + series(measure="Euclidean", depth="resnet10"),
        hue="measure",
        facet="depth",
        floor=series(depth="resnet10"),
        title=TITLE,
    ),
    "profile, blocks": lambda: report.profile(
        rows_of(["stem", "stage1.0", "stage1.1", "stage2.0"], map(near, (0.5, 0.5, 0.6, 0.6))),
        begins="stage2",
    ),
    "profile, one pair and two": lambda: report.profile(
        rows_of(
            STAGES[:3],
            [
                Estimate(0.6, -np.inf, np.inf, 1, False),
                Estimate(0.5, -1, 2, 2),
                Estimate(*[np.nan] * 3),
            ],
        )
    ),
    "tradeoff, one model": lambda: report.tradeoff(
        [
            {
                "variant": "a",
                "accuracy": Estimate(0.7, -np.inf, np.inf, 1, False),
                "auc": Estimate(0.7, 0.2, 1.2, 2),
            }
        ]
    ),
    "tradeoff": lambda: report.tradeoff(tradeoffs(["LiRA"], strengths=3), title=TITLE),
    "against paper": lambda: report.against_paper(
        [{"setting": s, "value": near(0.7), "paper": p} for s, p in (("2×2", 0.52), ("4×4", None))],
        source="paper (X)",
    ),
    "curves": lambda: report.curves(
        [
            {"epoch": e, "value": 0.5 + e / 100, "attack": a}
            for a in ("loss", "LiRA")
            for e in range(9)
        ],
        "epoch",
        hue="attack",
        null=0.5,
    ),
    "curves, ROC": lambda: report.curves(
        pd.DataFrame(
            {"fpr": np.logspace(-3, 0, 9), "value": np.logspace(-2, 0, 9), "attack": ["loss"] * 9}
        ),
        "fpr",
        facet="attack",
        log="xy",
        diagonal=True,
    ),
    "density": lambda: report.density(
        {
            (net, kind): scattered(n)
            for net in ("ResNet", "ViT")
            for kind, n in (("all", 9000), ("norm", 60))
        },
        title=TITLE,
        notes={("ResNet", "all"): "r = 0.95"},
    ),
    "roc, one target": lambda: report.roc(bands("CE", targets=1)),
}


@pytest.mark.parametrize("name", FIGURES)
def test_figure_is_drawn_small_and_the_same_twice(name):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    data, about = FIGURES[name]()._repr_mimebundle_()
    assert data == FIGURES[name]()._repr_mimebundle_()[0]
    assert len(data["image/png"]) < 120_000
    assert about["image/png"]["width"] <= 924
    assert plt.get_fignums() == before, "a figure that pyplot knows is shown twice"


def test_facets_may_have_different_parts():
    four, five = ([f"stage{i}" for i in range(1, n + 1)] for n in (4, 5))  # a ResNet's and a VGG's
    rows = [
        {"part": p, "value": near(0.6), "network": n}
        for n, ps in (("resnet", four), ("vgg", five))
        for p in ps
    ]
    fig = report.profile(rows, facet="network", null=None)
    drawn = [ax.lines[0].get_xdata() for ax in fig.axes]
    assert [list(map(round, x)) for x in drawn] == [[0, 1, 2, 3], [0, 1, 2, 3, 4]]
    assert [label.get_text() for label in fig.axes[0].get_xticklabels()] == [
        stage.replace("stage", "stage ") for stage in five
    ]


def test_series_and_facets_stand_in_the_order_of_the_rows():
    # has not the first parts
    late = [row | {"variant": "late", "net": "a"} for row in series()[2:]]
    rows = [
        row | {"value": 0.5, "low": 0.5, "high": 0.5}
        for row in late + series(variant="early", net="b")
    ]
    fig = report.profile(rows, hue="variant", facet="net", null=None)
    assert [ax.get_title(loc="left") for ax in fig.axes] == ["a", "b"]
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["late", "early"]


def test_interval_from_estimates_and_from_columns_is_the_same():
    held = pd.DataFrame({"part": STAGES, "value": [near(0.5 + i / 50) for i in range(5)]})
    spread = rows_of(STAGES, held["value"])
    assert report.profile(held).png() == report.profile(spread).png()


def test_endless_intervals_leave_the_frame_and_do_not_squeeze_it():
    endless = [Estimate(0.6, -np.inf, np.inf, 1, False), Estimate(0.5, -9.0, 9.0, 2)]
    ax = report.profile(rows_of(["stage1", "stage2"], endless)).axes[0]
    low, high = ax.get_ylim()
    assert 0.2 < low < 0.5 < 0.6 < high < 0.9
    ends = np.concatenate([path.vertices[:, 1] for path in ax.collections[0].get_paths()])
    assert ends.min() < low and ends.max() > high and np.isfinite(ends).all()


def test_roc_stops_at_the_resolution_and_says_so():
    found = bands("CE", "RelaxLoss")
    fig = report.roc(found, title=TITLE)
    for word in ("CE", "RelaxLoss", "guessing", "underpowered", "false positive rate"):
        assert word in texts(fig)
    linear, log = fig.axes
    assert log.get_xscale() == log.get_yscale() == "log" and linear.get_xscale() == "linear"
    for ax, start in ((linear, 0), (log, 1 / 200)):
        drawn, diagonal = ax.lines[:-1], ax.lines[-1]
        assert [min(line.get_xdata()) for line in drawn] == [start] * 2
        assert np.array_equal(*diagonal.get_data())
        assert (
            len({line.get_linestyle() for line in drawn})
            == len({line.get_color() for line in drawn})
            == 2
        )
    assert log.get_xlim()[0] < 1 / 200
    assert [ax.get_title(loc="left") for ax in report.roc({("loss", "CE"): found["CE"]}).axes] == [
        "loss, linear axes",
        "loss, logarithmic axes",
    ]


def test_density_counts_every_point_once():
    x, y = scattered(9000)
    x[:40] = 0  # has no logarithm: on the border
    fig = report.density(
        {("ResNet", "all"): (x, y), ("ResNet", "norm"): (x[:60], y[:60])},
        counted="weights",
        xlabel="a",
        ylabel="b",
    )
    many, few, bar = fig.axes
    for ax, points in ((many, 9000), (few, 60)):
        (mesh,) = ax.collections
        assert np.nansum(mesh.get_array()) == points and np.nansum(mesh.get_array().T[0]) >= 40
        assert mesh.get_clim() == (1, np.nanmax(many.collections[0].get_array()))
    assert many.get_xlim() == few.get_xlim() and many.get_xscale() == many.get_yscale() == "log"
    assert bar.get_ylabel() == "weights in a cell" and bar.get_yscale() == "log"
    assert {"a", "b", "ResNet, all"} <= set(texts(fig).split("\n"))


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
    names = [ax.get_title(loc="left") for ax in panels[:5]]
    assert names == ["before training", "epoch 2", "epoch 5", "epoch 10", "epoch 40"]
    assert [panels[0].get_ylabel(), panels[5].get_ylabel()] == ["digits", "CIFAR-10"]
    for ax, at in zip(panels, (0, 2, 3, 4, 6), strict=False):
        (mesh,) = ax.collections
        assert np.nansum(mesh.get_array()) == 300
        centres = one.mean(axis=2)[: at + 1]
        np.testing.assert_allclose(np.transpose(ax.lines[1].get_data()), centres)
    assert len(fig.png()) < 120_000


@pytest.mark.parametrize("networks", [8, 16, 63, 64, 100, 128])
def test_a_cell_holds_as_many_points_of_the_lattice_as_any_other(networks):
    lattice = np.arange(networks + 1) / networks
    edges = figures.rate_cells(lattice.astype(np.float32).astype(float))
    counts = np.histogram(lattice, edges)[0]
    assert counts.sum() == networks + 1 and len(edges) <= figures.FINEST + 2
    assert len(set(counts[:-1])) == 1


def test_logarithmic_histograms_share_an_axis_and_show_their_means():
    rare = (np.repeat([0.0, 1.0], [999, 1]), np.repeat([0.0, 1.0], [500, 500]))
    fig = report.histograms({"rare": rare, "even": rare[::-1]}, ("members", "others"), log=True)
    assert {ax.get_yscale() for ax in fig.axes} == {"log"}
    ((low, high),) = {ax.get_ylim() for ax in fig.axes}
    assert 0 < low < 0.001 and high > 0.999, "every share that is not zero lies within"
    assert [line.get_xdata()[0] for line in fig.axes[0].lines] == pytest.approx([0.001, 0.5])
    assert {"members", "others", "mean of members", "mean of others"} <= set(
        texts(fig).splitlines()
    )


def test_series_differ_in_more_than_colour():
    fig = report.profile(
        [row for name in "abcdefg" for row in series(variant=name)], hue="variant", null=None
    )
    looks = [(line.get_marker(), str(line.get_linestyle())) for line in fig.axes[0].lines]
    assert len(looks) == 7 and len({marker for marker, _ in looks}) == 7


CROWDED = [
    {
        "variant": f"defence {i} at strength {i / 7:.2f}",
        "accuracy": near(0.75 + 0.004 * np.sin(5 * i)),
        "auc": near(0.8 + 0.02 * np.cos(3 * i)),
    }
    for i in range(12)
]
LONG = "retrained from the initialisation with RelaxLoss at strength"
HARD = {
    "profile of many": lambda: report.profile(
        [{"part": f"{LONG} {i}", "value": near(0.5 + i / 100)} for i in range(16)], title=LONG * 4
    ),
    "against paper": lambda: report.against_paper(
        [
            {"setting": f"{LONG} {i}", "value": near(0.7), "paper": 0.6, "panel": f"{LONG} {k}"}
            for i in range(9)
            for k in range(3)
        ],
        facet="panel",
        source=LONG,
        title=LONG * 3,
    ),
    "tradeoff": lambda: report.tradeoff(
        [
            row | {"attack": f"{LONG} {attack}", "variant": f"{LONG} {row['variant']}"}
            for row in CROWDED
            for attack in "abc"
        ],
        title=LONG * 3,
        level="the dense network, trained on",
    ),
    "histograms": lambda: report.histograms(
        {(LONG, f"{LONG} {i}"): two_distributions() for i in range(4)},
        (LONG, f"{LONG} 2"),
        {
            (LONG, f"{LONG} {i}"): "AUC 0.60 [0.58, 0.62] over 12 pairs of networks"
            for i in range(4)
        },
    ),
}


@pytest.mark.parametrize("name", HARD)
def test_no_words_meet_or_leave_the_canvas(name):
    fig = HARD[name]()
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


def test_a_far_null_is_named_and_does_not_squeeze_the_points():
    rows = [
        {"variant": v, "accuracy": near(0.7), "auc": near(auc)}
        for v, auc in (("a", 0.9), ("b", 0.93))
    ]
    fig = report.tradeoff(rows, facet=None)
    assert fig.axes[0].get_ylim()[0] > 0.7 and "no difference (0.5)" in texts(fig)
    assert "no difference: " not in texts(report.tradeoff(tradeoffs(["LiRA"]), null=0.6))
    assert "guessing" in texts(report.tradeoff(tradeoffs(["LiRA"]), level="guessing"))
