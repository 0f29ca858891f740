"""Tables and pages from the templates in `page`, pictures inside them, and tables as plain text."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

PAGE = Path(__file__).with_name("page")


@cache
def _templates() -> Any:
    import jinja2

    loader, escaped = jinja2.FileSystemLoader(PAGE), lambda name: ".html" in name
    return jinja2.Environment(loader=loader, autoescape=escaped, undefined=jinja2.ChainableUndefined)


def drawn(template: str, **values: Any) -> Markup:
    """A template of `page` with its values. In HTML a `Markup` stays as it is, anything else is escaped."""
    return Markup(_templates().get_template(f"{template}.j2").render(values))


def png(image: Any, **how: Any) -> str:
    """A picture of Pillow's as PNG in base64, as pages and notebooks hold it; `how` is what its writer takes."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG", **how)
    return base64.b64encode(buffer.getvalue()).decode()


def table(
    kind: str, head: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "", numeric: Sequence[int] = ()
) -> str:
    """A table as "html" that also reads well where styles are stripped, as "md", or as "txt" for a terminal."""
    if kind != "txt":
        return str(drawn(f"table.{kind}", head=head, rows=list(rows), caption=caption, numeric=numeric))
    lines = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    sides = [">" if i in numeric else "<" for i in range(len(head))]
    cells = [[f"{cell:{side}{width}}" for cell, side, width in zip(line, sides, widths, strict=True)] for line in lines]
    return "\n".join(["  ".join(line).rstrip() for line in cells] + ([caption] if caption else []))
