"""Pieces of HTML."""

from collections.abc import Sequence
from html import escape as _escape

import numpy as np

from acf.report.colours import heat
from acf.report.drawing import Drawing, number
from acf.report.frames import data_uri


def escape(text: object) -> str:
    return _escape(str(text), quote=True)


def svg_figure(drawing: Drawing, alt: str) -> str:
    return _figure(drawing, alt, data_uri(drawing.svg(), "image/svg+xml"))


def png_figure(drawing: Drawing, alt: str) -> str:
    return _figure(drawing, alt, data_uri(drawing.png))


def _figure(drawing: Drawing, alt: str, source: str) -> str:
    width = round(drawing.figure.get_size_inches()[0] * 84)
    return (
        f"<figure class='plot'><img data-figure='{escape(drawing.name)}' alt='{escape(alt)}' "
        f"style='width:{width}px' src='{source}'></figure>"
    )


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells are HTML already; the first one of a row names it."""
    head = "".join(f"<th scope='col'>{column}</th>" for column in columns)
    body = "".join(
        f"<tr><th scope='row'>{row[0]}</th>{''.join(f'<td>{cell}</td>' for cell in row[1:])}</tr>" for row in rows
    )
    return f"<div class='wide'><table class='plain'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def score_cell(mean: float, std: float, *, seeds: int) -> str:
    return f"{mean:.3f} ± {std:.3f}" if seeds > 1 else f"{mean:.3f}"


def heat_table(
    name: str,
    caption: str,
    values: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    tips: Sequence[Sequence[str]] | None = None,
    keys: Sequence[int] | None = None,
    outlined: Sequence[int] | None = None,
    top: float = 1.0,
) -> str:
    """A heatmap as a table: every value can be read, copied and printed.

    `keys` are the numbers of the rows in `scores.json`, where they stand in another order here; `outlined` is the
    column of each row that is its own.
    """
    head = "".join(f"<th scope='col'><span>{escape(column)}</span></th>" for column in columns)
    upright = " class='upright'" if max(map(len, columns)) > 6 else ""
    lines = []
    for i, label in enumerate(rows):
        cells = []
        for j, value in enumerate(values[i]):
            background, colour = heat(float(value) / top)
            tip = tips[i][j] if tips else f"{label}, {columns[j]}: {value:.4g}"
            own = " class='own'" if outlined is not None and outlined[i] == j else ""
            shown = "–" if value != value else number(value, top)
            cells.append(
                f"<td{own} style='background:{background};color:{colour}' data-column='{j}' "
                f"data-value='{value:.6f}' title='{escape(tip)}'>{shown}</td>"
            )
        key = i if keys is None else keys[i]
        lines.append(f"<tr data-row='{key}'><th scope='row'>{escape(label)}</th>{''.join(cells)}</tr>")
    return (
        f"<div class='heatmap'><p>{caption}</p><table class='heat' data-heat='{name}'>"
        f"<thead{upright}><tr><td></td>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )
