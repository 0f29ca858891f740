"""Tables and pages from the templates in `page`, pictures inside them, and tables as plain text."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

PAGE = Path(__file__).with_name("page")


@cache
def _templates() -> Any:
    from jinja2 import ChainableUndefined, Environment, FileSystemLoader, select_autoescape

    escaped = select_autoescape(["html.j2"])
    return Environment(
        loader=FileSystemLoader(PAGE), autoescape=escaped, undefined=ChainableUndefined
    )


def drawn(template: str, **values: Any) -> str:
    """A template of `page` with its values. A result in HTML is a `Markup`. In HTML, values of type
    `Markup` are inserted as they are; all others are escaped.
    """
    text = _templates().get_template(f"{template}.j2").render(values)
    return Markup(text) if template.endswith(".html") else text


def proper(text: str) -> str:
    """The text with a true minus before its numbers."""
    return re.sub(r"(?<![\w-])-(?=\.?\d)", "−", text)


def png(image: Any, **how: Any) -> str:
    """A picture of Pillow's as PNG in base64, as pages and notebooks hold it; `how` is what its
    writer takes.
    """
    buffer = io.BytesIO()
    image.save(buffer, "PNG", **how)
    return base64.b64encode(buffer.getvalue()).decode()


def table(
    kind: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    caption: str = "",
    numeric: Sequence[int] = (),
) -> str:
    """A table as "html" that also reads well where styles are stripped, as "md", or as "txt" for a
    terminal.
    """
    return str(drawn(f"table.{kind}", head=head, rows=list(rows), caption=caption, numeric=numeric))
