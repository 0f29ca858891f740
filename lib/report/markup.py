"""The same table as HTML that also reads well where styles are stripped, as markdown and as plain text."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

Cell = str  # a `Markup` goes into HTML as it is, anything else is escaped


def html_table(
    head: Sequence[Cell], rows: Sequence[Sequence[Cell]], caption: Cell = "", numeric: Sequence[int] = ()
) -> Markup:
    """Left-aligned, columns `numeric` right-aligned with figures of one width. Words break into few lines, not many."""

    def style(column: int) -> str:
        if column in numeric:
            side = "right;font-variant-numeric:tabular-nums;white-space:nowrap"
        else:
            side = f"left;min-width:{min(18, max(len(str(row[column])) for row in (head, *rows)))}ch"
        return f"text-align:{side};vertical-align:top"

    lines = ['<table class="leakatlas">']
    if caption:
        lines.append(f'<caption style="text-align:left;caption-side:bottom">{escape(caption)}</caption>')
    cells = "".join(f'<th style="{style(i)}">{escape(cell)}</th>' for i, cell in enumerate(head))
    lines.append(f"<thead><tr>{cells}</tr></thead>")
    lines.append("<tbody>")
    for row in rows:
        cells = "".join(f'<td style="{style(i)}">{escape(cell)}</td>' for i, cell in enumerate(row))
        lines.append(f"<tr>{cells}</tr>")
    lines.append("</tbody></table>")
    return Markup("\n".join(lines))


def markdown_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "", numeric: Sequence[int] = ()
) -> str:
    """GitHub's kind."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    rule = "| " + " | ".join("---:" if i in numeric else "---" for i in range(len(head))) + " |"
    text = "\n".join([line(head), rule, *map(line, rows)])
    return f"{text}\n\n{caption}" if caption else text


def text_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "", numeric: Sequence[int] = ()
) -> str:
    """Columns padded with spaces, for a terminal."""
    lines = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    sides = [">" if i in numeric else "<" for i in range(len(head))]
    cells = [[f"{cell:{side}{width}}" for cell, side, width in zip(line, sides, widths, strict=True)] for line in lines]
    return "\n".join(["  ".join(line).rstrip() for line in cells] + ([caption] if caption else []))
