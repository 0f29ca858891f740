"""Panels of explorers' sheets: found once for sheets that are alike, anew for those that are not."""

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg

from leak_atlas.explore.look import Frames
from leak_atlas.report.sheet import Sheet


def drawn(frames: Frames, highest: float, title: str = "one line") -> np.ndarray:
    """Where the panels of a drawn sheet stand, pixels `(2, 4)`; its labels are as wide as `highest`
    wants.
    """
    sheet = Sheet(layout="constrained")
    for ax in sheet.subplots(1, 2):
        ax.plot([0, 1], [0, highest])
        ax.set_title(title, loc="left")
    frames.draw(sheet, FigureCanvasAgg(sheet))
    return np.array([ax.get_window_extent().bounds for ax in sheet.axes])


def test_like_sheets_have_one_layout_and_it_is_what_each_would_have_alone() -> None:
    frames = Frames()
    first, second = drawn(frames, 1.0), drawn(frames, 0.97)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(second, drawn(Frames(), 0.97), atol=3)


def test_wider_labels_and_longer_titles_have_a_layout_of_their_own() -> None:
    frames = Frames()
    first = drawn(frames, 1.0)
    for given in ({"highest": 123_456.0}, {"highest": 1.0, "title": "two\nlines"}):
        other = drawn(frames, **given)
        np.testing.assert_array_equal(other, drawn(Frames(), **given))
        assert np.abs(other - first).max() > 5
