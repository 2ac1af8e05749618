"""Charts and timelines as SVG that takes its colours from the page. Text goes through an XML writer."""

from __future__ import annotations

import math
from collections.abc import Callable
from xml.etree import ElementTree as ET

from oncebench.report.charts import Chart, Timeline, ticks
from oncebench.report.texts import duration, printable

_Place = Callable[[float], float]
_WIDTH, _HEIGHT = 340.0, 190.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 8.0, 22.0, 34.0
_LANE_HEAD, _ROW = 18, 30
_SHORT_LABEL = 30  # signs beside a bar: more would leave a narrow page


def chart(data: Chart) -> str:
    """One chart, as wide as its place."""
    svg = _svg(data.says, viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}", width="100%")
    points = [point for curve in data.curves for point in curve.points]
    xs = [x for x, _ in points] + [at for at, _ in data.marks]
    low, high = (min(xs), max(xs)) if xs else (0.0, 1.0)
    if data.shape == "bars":
        low, high = low - 0.5, high + 0.5
    elif data.log_x:
        low, high = low / 1.1, high * 1.1
    elif low == high:
        high = low + 1.0
    top = max([y for _, y in points] + [0.0]) or 1.0

    def scaled(value: float) -> float:
        return math.log(value) if data.log_x else value

    def x(value: float) -> float:
        share = (scaled(value) - scaled(low)) / (scaled(high) - scaled(low))
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - value / top * (_HEIGHT - _BOTTOM - _TOP)

    _axes(svg, data, x, y, (low, high, top))
    for curve in data.curves:
        if data.shape == "bars":
            wide = 0.7 * (x(1.0) - x(0.0))
            for at, value in curve.points:
                bar = _add(svg, "rect", f"fill {curve.role}", x=x(at) - wide / 2, y=y(value), width=wide,
                           height=y(0) - y(value))  # fmt: skip
                _add(bar, "title").text = f"worker {at:.0f}: {value:,.0f} {curve.name}"
        else:
            steps = data.shape == "steps"
            drawn = _add(svg, "path", f"curve {curve.role}", d=_path(curve.points, x, y, steps))
            _add(drawn, "title").text = curve.name
            for at, value in curve.points if not steps else ():
                dot = _add(svg, "circle", f"fill {curve.role}", cx=x(at), cy=y(value), r=3)
                _add(dot, "title").text = f"{at:.0f}: {value:,.0f}"
    if len(data.curves) > 1:
        _legend(svg, data)
    return ET.tostring(svg, encoding="unicode")


def timeline(data: Timeline) -> str:
    """A lane for each worker; places in percent, so that signs keep their size on any page."""
    heights = [_LANE_HEAD + _ROW * (1 + max((bar.row for bar in bars), default=0)) for _, bars in data.lanes]
    height = sum(heights) + 20
    svg = _svg(f"Timeline: {data.title}", width="100%", height=str(height))
    y = 0
    for (worker, bars), tall in zip(data.lanes, heights, strict=True):
        _add(svg, "line", "grid", x1="0", x2="100%", y1=y, y2=y)
        _text(svg, worker, "lane", x="0", y=y + 13)
        for bar in bars:
            start = 100 * bar.start / data.length
            end = 100.0 if bar.end is None else 100 * bar.end / data.length
            top = y + _LANE_HEAD + _ROW * bar.row
            drawn = _add(svg, "g", f"op {_word(bar.outcome)}{' never' if bar.end is None else ''}")
            _add(drawn, "title").text = printable(bar.says)
            _add(drawn, "rect", x=f"{min(start, 99.4):.3f}%", y=top, width=f"{max(0.6, end - start):.3f}%",
                 height=10, rx=2)  # fmt: skip
            if not bar.label:
                continue
            right = start > 50
            place = {"x": f"{min(end, 100):.3f}%", "text-anchor": "end"} if right else {"x": f"{start:.3f}%"}
            label = bar.label if len(bar.label) <= _SHORT_LABEL else f"{bar.label[: _SHORT_LABEL - 1]}…"
            _text(drawn, label, "said", y=top + 22, **place)
        y += tall
    _add(svg, "line", "grid", x1="0", x2="100%", y1=y, y2=y)
    axis = duration if data.unit == "ns" else (lambda at: f"step {at:,.0f}")
    _text(svg, axis(0.0) if data.unit == "ns" else "step 0", "tick", x="0", y=y + 14)
    _text(svg, axis(data.length), "tick", x="100%", y=y + 14, **{"text-anchor": "end"})
    return ET.tostring(svg, encoding="unicode")


def _axes(
    svg: ET.Element,
    data: Chart,
    x: _Place,
    y: _Place,
    bounds: tuple[float, float, float],
) -> None:
    low, high, top = bounds
    for value in ticks(0.0, top, log=False):
        _add(svg, "line", "grid", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y(value), y2=y(value))
        _text(svg, _compact(value), "tick", x=_LEFT - 4, y=y(value) + 3.5, **{"text-anchor": "end"})
    if data.shape == "steps":
        places = ticks(low, high, data.log_x)
    else:
        places = sorted({at for curve in data.curves for at, _ in curve.points})
        places = places[:: max(1, -(-len(places) // 12))]
    for value in places:
        label = duration(value) if data.unit == "ns" else f"{value:g}"
        _text(svg, label, "tick", x=x(value), y=_HEIGHT - _BOTTOM + 13, **{"text-anchor": "middle"})
    _text(svg, data.y_label, "label", x=2, y=11)
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    _text(svg, data.x_label, "label", x=middle, y=_HEIGHT - 5, **{"text-anchor": "middle"})
    for n, (at, label) in enumerate(data.marks):
        line = _add(svg, "line", "mark", x1=x(at), x2=x(at), y1=_TOP, y2=_HEIGHT - _BOTTOM)
        _add(line, "title").text = printable(f"{label}: {duration(at)}" if data.log_x else label)
        near_the_end = x(at) > _WIDTH - 70
        place = {"text-anchor": "end"} if near_the_end else {}
        height = _TOP + 8 + 10 * (n % 6)
        _text(svg, label[:12], "tick", x=x(at) + (-2 if near_the_end else 2), y=height, **place)


def _legend(svg: ET.Element, data: Chart) -> None:
    at = _WIDTH - _RIGHT
    for curve in reversed(data.curves):
        _text(svg, curve.name, "label", x=at, y=11, **{"text-anchor": "end"})
        at -= 6.0 * len(curve.name) + 4
        _add(svg, "line", f"curve {curve.role}", x1=at - 14, x2=at, y1=8, y2=8)
        at -= 22


def _path(points: list[tuple[float, float]], x: _Place, y: _Place, steps: bool) -> str:
    if not steps:
        return "M" + "L".join(f"{x(at):.1f} {y(value):.1f}" for at, value in points)
    words = [f"M{x(points[0][0]):.1f} {y(0):.1f}"] if points else []
    before = 0.0
    for at, value in points:
        if value != before or at == points[-1][0]:
            words.append(f"H{x(at):.1f}V{y(value):.1f}")
        before = value
    return "".join(words)


def _svg(says: str, **attributes: str) -> ET.Element:
    svg = ET.Element("svg", {"class": "chart", "role": "img", "aria-label": printable(says), **attributes})
    return svg


def _add(parent: ET.Element, tag: str, class_: str = "", **attributes: object) -> ET.Element:
    written = {
        key: f"{value:.1f}" if isinstance(value, float) else str(value) for key, value in attributes.items()
    }
    return ET.SubElement(parent, tag, {**({"class": class_} if class_ else {}), **written})


def _text(parent: ET.Element, text: str, class_: str, **attributes: object) -> None:
    _add(parent, "text", class_, **attributes).text = printable(text)


def _word(outcome: str) -> str:
    """A class of the page for it; a result file may say anything."""
    known = ("applied", "duplicate", "conflict", "locked", "error")
    return outcome if outcome in known else "indeterminate"


def _compact(value: float) -> str:
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"
