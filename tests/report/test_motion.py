"""The plane over epochs: every sample counted in its cell, bytes that a script can read, nothing
asked of anybody.
"""

import base64
import re
from html.parser import HTMLParser

import nbformat
import numpy as np
import pytest

from leak_atlas import BadInput, report
from leak_atlas.report import motion, render

EPOCHS = [0, 1, 2, 5, 10, 20, 40]
TITLE = "Mass leaves the diagonal"


def course(samples: int = 300, networks: int = 0, seed: int = 0) -> np.ndarray:
    """Rates that leave the diagonal; counted over so many networks, or exact."""
    rng = np.random.default_rng(seed)
    gone = np.linspace(0, 0.4, len(EPOCHS))[:, None] * rng.random(samples)
    share = np.stack([0.5 - gone, 0.5 + gone], axis=1)
    return rng.binomial(networks, share) / networks if networks else share


def dots(shown: report.Moving) -> list[np.ndarray]:
    """Of each panel, the bytes `(E, 2, n)` that its script reads."""
    found = re.findall(r'data-rates="([^"]+)" data-sizes="([^"]+)"', shown.html)
    each = [
        (np.frombuffer(base64.b64decode(rates), np.uint8), sum(map(int, size[1:-1].split(","))))
        for rates, size in found
    ]
    return [rates.reshape(len(EPOCHS), 2, size) for rates, size in each]


# ---------------------------------------------------------------- small multiples


def test_each_course_is_a_row_and_each_epoch_a_column() -> None:
    fig = report.planes({"digits": course(), "CIFAR-10": course(seed=1)}, EPOCHS, title=TITLE)
    panels = [ax for ax in fig.axes if ax.get_aspect() == 1]
    assert [ax.get_title(loc="left") for ax in panels[:5]] == [
        "before training",
        "epoch 2",
        "epoch 5",
        "epoch 10",
        "epoch 40",
    ]
    assert (
        len(panels) == 10
        and panels[0].get_ylabel() == "digits"
        and panels[5].get_ylabel() == "CIFAR-10"
    )
    for ax, at in zip(panels, (0, 2, 3, 4, 6), strict=False):
        (mesh,) = ax.collections
        assert np.nansum(mesh.get_array()) == 300
        assert mesh.get_clim() == panels[-1].collections[0].get_clim()
        centres = course().mean(axis=2)[: at + 1]
        np.testing.assert_allclose(np.transpose(ax.lines[1].get_data()), centres)
        np.testing.assert_allclose(np.ravel(ax.lines[2].get_data()), centres[-1])
    assert len(fig.png()) < 120_000


@pytest.mark.parametrize("networks", [4, 16, 63, 64, 100, 128])
def test_a_cell_holds_as_many_points_of_the_lattice_as_any_other(networks: int) -> None:
    lattice = np.arange(networks + 1) / networks
    edges = motion._edges(lattice.astype(np.float32).astype(float))
    counts = np.histogram(lattice, edges)[0]
    assert counts.sum() == networks + 1 and len(edges) <= motion.FINEST + 1
    assert networks < 8 or len(set(counts[:-1])) == 1 >= len(set(counts)) - 1
    fig = report.planes({"": course(networks=networks)}, EPOCHS)
    assert np.nansum(fig.axes[4].collections[0].get_array()) == 300


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"over_time": {}}, "needs a course"),
        ({"epochs": [0, 2, 1, 5, 10, 20, 40]}, "in their order"),
        ({"epochs": [0, 1]}, r"'a' is \(7, 2, 300\); 2 epochs make it \(2, 2, n\)"),
        ({"over_time": {"a": course() + 0.6}}, "no rates"),
        ({"over_time": {"a": course() * np.nan}}, "no rates"),
    ],
)
def test_what_is_no_course_is_refused(given: dict[str, object], said: str) -> None:
    for draw in (report.planes, lambda **how: report.moving(**how, title="")):
        with pytest.raises(BadInput, match=said):
            draw(**{"over_time": {"a": course()}, "epochs": EPOCHS} | given)


# ---------------------------------------------------------------- over time


def test_what_moves_is_where_the_samples_are() -> None:
    rates = course()
    (found,) = dots(report.moving({"a": rates}, EPOCHS, TITLE))
    back = (np.stack([found[:, 0], 255.0 - found[:, 1]], axis=1) / 255) * (
        1 + 2 * motion.MARGIN
    ) - motion.MARGIN
    order = np.argsort(np.digitize(rates[-1, 1] - rates[-1, 0], motion.LEVELS), kind="stable")
    np.testing.assert_allclose(back, rates[..., order], atol=0.6 / 255 * (1 + 2 * motion.MARGIN))


def test_counted_rates_are_shaken_within_their_step_and_alike_in_all_epochs() -> None:
    still = np.full((len(EPOCHS), 2, 400), 0.25)
    still[:, 0, :200], still[:, 1, 100:300] = 0.5, 0.75
    (found,) = dots(report.moving({"a": still}, EPOCHS, TITLE))
    assert (found == found[0]).all() and len(np.unique(found[0], axis=1).T) > 100
    assert not any(len(np.unique(each)) > 255 * motion.MARGIN * 4 for each in found[0])
    assert "are shaken" in report.moving({"a": still}, EPOCHS, TITLE).html
    assert "are shaken" not in report.moving({"a": course()}, EPOCHS, TITLE).html


def test_it_stays_small_however_many_samples_there_are() -> None:
    over_time = {
        name: course(20_000, networks, seed)
        for seed, (name, networks) in enumerate((("a", 0), ("b", 16), ("c", 64)))
    }
    shown = report.moving(over_time, EPOCHS, TITLE)
    assert [each.shape[2] for each in dots(shown)] == [
        600
    ] * 3 and "Of each course 600 samples" in shown.html
    assert len(shown.html) * 12 / len(EPOCHS) < 150_000
    mean = over_time["c"][-1].mean(axis=1)
    assert f"mean FPR {mean[0]:.3f}, TPR {mean[1]:.3f}" in shown.html, (
        "the centre is that of all samples"
    )


VOID = ("img", "input", "meta", "link", "br")


class Tags(HTMLParser):
    """What an element may load, and which are left open."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.asked, self.open, self.scripts = list[str](), list[str](), 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.asked += [
            value or ""
            for name, value in attrs
            if name in ("src", "href", "srcset", "action", "data")
        ]
        self.scripts += tag == "script"
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag in VOID or self.open.pop() == tag


def test_it_is_one_element_with_a_script_of_its_own_that_asks_nobody() -> None:
    shown = report.moving({"a < b & <script>": course()}, EPOCHS, f"{TITLE} by -0.2")
    tags = Tags(shown.html)
    assert (
        tags.scripts == 1
        and not tags.open
        and all(each.startswith("data:image/svg") for each in tags.asked)
    )
    assert not re.search(
        r"https?:|fetch|XMLHttp|import\(|eval|url\(", re.sub(r'"[^"]{500,}"', "", shown.html)
    )
    assert "a &lt; b &amp; &lt;script&gt;" in shown.html and "by −0.2" in shown.html
    assert (
        shown.html == report.moving({"a < b & <script>": course()}, EPOCHS, f"{TITLE} by -0.2").html
    )
    pictures = [base64.b64decode(each.partition(",")[2]).decode() for each in tags.asked]
    assert all(each.count("h0") == 300 and motion.TPR in each for each in pictures)


def test_a_page_and_a_published_notebook_keep_it() -> None:
    v4, shown = (
        nbformat.v4,
        [report.moving({"a": course(seed=i)}, EPOCHS, f"{TITLE} {i}") for i in range(2)],
    )
    outputs = [v4.new_output("display_data", each._repr_mimebundle_()) for each in shown]
    node = v4.new_notebook(cells=[v4.new_code_cell("", outputs=outputs)])
    kept = render.clean(node).cells[0].outputs
    assert [each.data["text/html"] for each in kept] == [each.html for each in shown]
    page = render.html(node, "Planes")
    for each in shown:
        data, script = (
            re.findall(r'data-rates="[^"]+"', each.html)[0],
            each.html.partition("<script>")[2],
        )
        assert data in page and script.partition("</script>")[0] in page
    outside = [each for each in Tags(page).asked if not each.startswith(("data:", "../"))]
    assert (
        not outside
        and page.count("<script") == 2
        and not re.search("<link|@import|cdnjs|unpkg|mathjax", page)
    )
