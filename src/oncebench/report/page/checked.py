"""A check on the page: one verdict, what was tried, each kind of violation, then each mode."""

from __future__ import annotations

from collections.abc import Iterator

from oncebench.report.checked import NEVER_TRIED
from oncebench.report.page import crashed, explored, raced
from oncebench.report.page.blocks import (
    Block,
    Evidence,
    Line,
    Page,
    Row,
    Section,
    Table,
    Verdict,
    evidence,
    of_run,
)
from oncebench.report.texts import duration
from oncebench.results.checked import CheckRun, Found


def page(run: CheckRun) -> Page:
    """All of it."""
    found = [f"{one.kind}: found by {', '.join(one.modes)}" for one in run.found]
    because = [f"unknown, because {reason}" for reason in run.because]
    return of_run(
        run,
        "Check of one receiver in every mode",
        [Verdict(run.target, run.verdict, run.expected_verdict, [*found, *because])],
        [_section(run)],
        [("seed", str(run.seed))],
    )


def _section(run: CheckRun) -> Section:
    modes = [
        Row([mode.name, mode.verdict, duration(mode.seconds * 1e9), mode.tried], "verdict")
        for mode in run.modes
    ]
    blocks: list[Block] = [
        Table("What was tried", ["mode", "verdict", "took", "tried"], modes, numbers=False),
        *(Line(f"not tried: {what}", "reason") for what in run.untried),
        Line(f"never tried: {NEVER_TRIED}"),
        *(_evidence(run, found, first=n == 0) for n, found in enumerate(run.found)),
    ]
    return Section(run.target, blocks, list(_modes(run)), run.verdict)


def _evidence(run: CheckRun, found: Found, first: bool) -> Evidence:
    """With its steps, if exploring found it."""
    for one in run.explore.violations if run.explore is not None else ():
        if found.proof.schedule and (one.kind, one.schedule) == (found.kind, found.proof.schedule):
            return explored.counterexample(one, open=first)
    return evidence(found.proof, found.replay, open=first)


def _modes(run: CheckRun) -> Iterator[Section]:
    for mode, result in run.results():
        if mode != "crash":
            yield from (raced.section(variant, mode) for variant in result.variants)
    if run.explore is not None:
        yield explored.section(run.explore, "explore")
    for variant in run.crash.variants if run.crash is not None else ():
        yield crashed.section(variant, "crash")
