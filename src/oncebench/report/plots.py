"""Plots as PNG or SVG, by matplotlib, from the same data as the page's drawings."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from oncebench.report.charts import Bar, Chart, Timeline
from oncebench.report.texts import duration, printable

_COLOURS = {"completion": "#0b62c4", "lock": "#b34700", "mark": "#59636e"}
_OUTCOMES = {
    "applied": "#0b62c4",
    "duplicate": "#4a7ab0",
    "conflict": "#7a3fa8",
    "locked": "#b34700",
    "error": "#b3151b",
}
_WIDTH, _HEIGHT = 5.2, 3.0
_MOST = 24


def plot(data: Sequence[tuple[str, Chart | Timeline]], format: Literal["png", "svg"]) -> bytes:
    """All of them in one picture, two beside each other.

    Args:
        data: Each with whose it is.
        format: Of the picture.
    """
    shown = data[:_MOST]
    columns = min(2, len(shown))
    lines = math.ceil(len(shown) / columns)
    figure = Figure(figsize=(_WIDTH * columns, _HEIGHT * lines), layout="constrained")
    for n, (whose, one) in enumerate(shown):
        axes = figure.add_subplot(lines, columns, n + 1)
        axes.set_title(_plain(f"{whose}: {one.title}"), fontsize=9, parse_math=False)
        _timeline(axes, one) if isinstance(one, Timeline) else _chart(axes, one)
        axes.tick_params(labelsize=8)
    written = io.BytesIO()
    figure.savefig(written, format=format, dpi=150, metadata={"Date": None} if format == "svg" else None)
    return written.getvalue()


def _chart(axes: Axes, data: Chart) -> None:
    for curve in data.curves:
        x, y = [at for at, _ in curve.points], [value for _, value in curve.points]
        colour = _COLOURS[curve.role]
        if data.shape == "bars":
            axes.bar(x, y, color=colour, label=curve.name)
        elif data.shape == "steps":
            dashes = "--" if curve.role == "lock" else "-"
            axes.step(x, y, where="post", color=colour, label=curve.name, linewidth=1.2, linestyle=dashes)
        else:
            axes.plot(x, y, marker="o", color=colour, label=curve.name)
    if data.log_x:
        axes.set_xscale("log")
    if data.unit == "ns":
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: duration(value)))
    for at, label in data.marks:
        axes.axvline(at, color=_COLOURS["mark"], linewidth=0.8, linestyle=":")
        axes.annotate(
            _plain(label), (at, 1), xycoords=("data", "axes fraction"), rotation=90, fontsize=6, va="top",
            parse_math=False,
        )  # fmt: skip
    axes.set_ylim(bottom=0)
    axes.set_xlabel(data.x_label, fontsize=8)
    axes.set_ylabel(data.y_label, fontsize=8)
    if len(data.curves) > 1:
        axes.legend(fontsize=7)


def _timeline(axes: Axes, data: Timeline) -> None:
    rows: list[str] = []
    for worker, bars in data.lanes:
        for row in range(1 + max((bar.row for bar in bars), default=0)):
            for bar in bars:
                if bar.row == row:
                    _bar(axes, bar, len(rows), data.length)
            rows.append(worker if row == 0 else "")
    axes.set_yticks(range(len(rows)), rows)
    axes.invert_yaxis()
    axes.set_xlim(0, data.length * 1.02)
    axes.set_xlabel("time since the first call" if data.unit == "ns" else "step of the schedule", fontsize=8)
    if data.unit == "ns":
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: duration(value)))


def _bar(axes: Axes, bar: Bar, row: int, length: float) -> None:
    end = length if bar.end is None else bar.end
    axes.barh(
        row, max(end - bar.start, length * 0.006), left=bar.start, height=0.5,
        color=_OUTCOMES.get(bar.outcome, _COLOURS["mark"]), hatch="//" if bar.end is None else None,
    )  # fmt: skip
    axes.annotate(
        _plain(bar.label), (bar.start, row), fontsize=7, color="white", va="center", xytext=(3, 0),
        textcoords="offset points", parse_math=False, clip_on=True,
    )  # fmt: skip


def _plain(text: str) -> str:
    text = printable(text)
    return text if len(text) <= 70 else f"{text[:69]}…"
