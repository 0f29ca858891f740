"""Words of a figure that a reader could not read."""

from itertools import combinations
from typing import Any

from matplotlib.figure import Figure
from matplotlib.text import Text


def overlaps(fig: Figure, most: float = 2.0) -> list[str]:
    """Words that others overprint, or that the canvas cuts, by more than `most` dots.

    The box of leaning words is larger than they are, so that these may meet.
    """
    fig.draw_without_rendering()
    axes = [axis for ax in fig.axes for axis in (ax.xaxis, ax.yaxis)]
    owner = {label: axis for axis in axes for label in axis.get_ticklabels(which="both")}
    texts: list[Any] = [text for text in fig.findobj(Text) if _seen(text, owner.get(text))]
    boxes = {text: text.get_window_extent() for text in texts}
    canvas = fig.bbox.padded(most / 2)
    cut = [text for text, box in boxes.items() if not _contains(canvas, box)]
    problems = [f"'{text.get_text()}' is cut" for text in cut]
    upright = [text for text in texts if text.get_rotation() in (0, 90)]
    for one, other in combinations(upright, 2):
        if boxes[one].padded(-most).overlaps(boxes[other]):
            problems.append(f"'{one.get_text()}' meets '{other.get_text()}'")
    return problems


def _contains(canvas: Any, box: Any) -> bool:
    return bool(canvas.contains(box.x0, box.y0) and canvas.contains(box.x1, box.y1))


def _seen(text: Any, axis: Any) -> bool:
    """Is it drawn? A tick of an `axis` beyond its limits is not."""
    if not (text.get_text().strip() and text.get_visible() and text.get_alpha() != 0):
        return False
    if axis is None:
        return True
    at, (low, high) = text.get_position()[axis.axis_name == "y"], sorted(axis.get_view_interval())
    return bool(axis.axes.get_visible() and axis.get_visible() and low <= at <= high)
