"""A page as plain pieces, written as Markdown and as HTML: both say the same.

Text may have `code` in backticks and nothing else.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from acf.report import html
from acf.report.frames import data_uri


class Heading(NamedTuple):
    text: str


class Text(NamedTuple):
    text: str


class Table(NamedTuple):
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


class Picture(NamedTuple):
    """A PNG, by its place beside the page and by its content."""

    place: str
    content: bytes
    alt: str


Block = Heading | Text | Table | Picture


def markdown(title: str, blocks: Sequence[Block]) -> str:
    return "\n\n".join([f"# {title}", *map(_markdown, blocks)]) + "\n"


def body(title: str, blocks: Sequence[Block]) -> str:
    """For `acf.report.page.whole`."""
    return f"<header><h1>{html.escape(title)}</h1></header><section>{''.join(map(_html, blocks))}</section>"


def _markdown(block: Block) -> str:
    match block:
        case Heading(text):
            return f"## {text}"
        case Text(text):
            return text
        case Table(columns, rows):
            lines = [columns, ("---",) * len(columns), *rows]
            return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
        case Picture(place, _, alt):
            return f"![{alt}]({place})"


def _html(block: Block) -> str:
    match block:
        case Heading(text):
            return f"<h2>{_inline(text)}</h2>"
        case Text(text):
            return f"<p>{_inline(text)}</p>"
        case Table(columns, rows):
            return html.table([*map(_inline, columns)], [[*map(_inline, row)] for row in rows])
        case Picture(place, content, alt):
            name = html.escape(place.rsplit("/", 1)[-1].removesuffix(".png"))
            image = f"<img data-figure='{name}' alt='{html.escape(alt)}' src='{data_uri(content)}'>"
            return f"<figure class='plot'>{image}</figure>"


def _inline(text: str) -> str:
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text))
