"""A run as one HTML file that needs nothing else: no network, no script, no font."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from importlib import resources

import jinja2
from markupsafe import Markup

from oncebench.report import charts
from oncebench.report.page import checked, crashed, explored, raced, swept, wired
from oncebench.report.page.blocks import Page, drawn
from oncebench.report.texts import MEANS, printable
from oncebench.results.checked import CheckRun
from oncebench.results.explored import ExploreRun
from oncebench.results.forms import AnyRun
from oncebench.results.swept import SweepRun
from oncebench.results.wired import WireRun

_HERE = resources.files(__name__)


def html(runs: Sequence[AnyRun]) -> bytes:
    """The page of one or more runs."""
    pages = [of_run(run) for run in runs]
    style = (_HERE / "page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    engine = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    throughput = list(charts.throughput(runs)) if len(runs) > 1 else []
    template = engine.from_string((_HERE / "page.html").read_text(encoding="utf-8"))
    return template.render(
        pages=pages,
        throughput=[drawn("Throughput against workers", throughput)] if throughput else [],
        title=_title(pages),
        style=Markup(style),  # ours
        digest=digest,
        means=MEANS,
        svg=Markup,  # what report/drawing.py wrote through an XML writer
    ).encode()


def of_run(run: AnyRun) -> Page:
    """What the page of a run says."""
    match run:
        case CheckRun():
            return checked.page(run)
        case ExploreRun():
            return explored.page(run)
        case WireRun():
            return wired.page(run)
        case SweepRun():
            return swept.page(run)
        case _:
            return crashed.page(run) if run.kind == "crash" else raced.page(run)


def _title(pages: Sequence[Page]) -> str:
    """The verdicts in one line, receivers named as long as there are few."""
    verdicts = [verdict for page in pages for verdict in page.verdicts]
    if len(verdicts) <= 3:
        return ", ".join(f"{verdict.name}: {verdict.word}" for verdict in verdicts) or "nothing ran"
    words = Counter(verdict.word for verdict in verdicts)
    return ", ".join(f"{count} {word}" for word, count in words.items())


def _shown(value: object) -> object:
    """Whatever reaches the page: signs that hide or turn the direction of text are spelled out."""
    return value if isinstance(value, Markup) else printable(str(value))
