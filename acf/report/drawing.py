"""A figure with the numbers it shows."""

import csv
import io
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from acf.report.colours import HEAT, MISSING

CMAP = LinearSegmentedColormap.from_list("acf", HEAT).with_extremes(bad=MISSING)


@dataclass(frozen=True, eq=False)
class Drawing:
    name: str
    """Of its files: `NAME.png` and `NAME.csv`."""
    title: str
    figure: Figure
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def csv(self) -> str:
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([self.columns, *self.rows])
        return file.getvalue()

    @cached_property
    def png(self) -> bytes:
        """Drawn once, for the page and for its file."""
        return self._saved("png", dpi=160)

    def svg(self) -> bytes:
        return self._saved("svg")

    def _saved(self, kind: str, **options: Any) -> bytes:
        import matplotlib as mpl

        file = io.BytesIO()
        with mpl.rc_context({"svg.hashsalt": "acf"}):  # the same figure is the same file
            metadata = {"Date": None} if kind == "svg" else None
            self.figure.savefig(file, format=kind, metadata=metadata, bbox_inches="tight", **options)
        return file.getvalue()


def new_figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), layout="constrained")


def plain(axes: Any) -> None:
    """Only the two axes that carry numbers."""
    axes.spines[["top", "right"]].set_visible(False)


def heatmap(axes: Any, values: Any, rows: list[str], columns: list[str], *, top: float = 1.0) -> Any:
    """A heatmap with the value written in each cell."""
    image = axes.imshow(values, cmap=CMAP, vmin=0, vmax=top, aspect="auto")
    turned = max(map(len, columns)) > 3
    axes.set_xticks(range(len(columns)), columns, rotation=45 if turned else 0, ha="right" if turned else "center")
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0, labelsize=8)
    for (i, j), value in np.ndenumerate(np.asarray(values)):
        if value == value:
            colour = "white" if value > 0.55 * top else "#222222"
            axes.text(j, i, number(value, top), ha="center", va="center", color=colour, fontsize=7)
    return image


def number(value: float, top: float) -> str:
    """Short enough for a cell, whatever the largest value beside it is."""
    return f"{value:.2f}" if top < 10 else f"{value:.1f}" if top < 100 else f"{value:.0f}"
