"""`oncebench replay`: one schedule of one receiver, step by step."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated

import typer

LOCKS = ("error", "wait")
JOURNALS = ("wal", "delete")
CREWS = ("greenlets", "threads", "processes")


def replay(
    target: Annotated[str, typer.Argument(help="The receiver.")],
    schedule: Annotated[
        str,
        typer.Argument(help="Whose turn it is, a letter a statement: ABBA; A! kills A, + is an hour."),
    ],
    deliveries: Annotated[
        str | None,
        typer.Option(help="What A, B, ... are handed, as m1:3,m2:5/m1:3; one message to all if not given."),
    ] = None,
    locks: Annotated[
        str, typer.Option(help="error: a refused lock is an answer; wait: wait as with a busy timeout.")
    ] = "error",
    journal: Annotated[str, typer.Option(help="wal or delete.")] = "wal",
    on: Annotated[str, typer.Option(help="greenlets, threads or processes.")] = "greenlets",
    json: Annotated[bool, typer.Option("--json", help="Print the steps as JSON instead.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Only what is wrong.")] = False,
) -> None:
    """Play one schedule and show each statement, its result, its locks, and what others could see."""
    from oncebench.cli.values import one_of
    from oncebench.explore.plan import TICK, Plan, moves
    from oncebench.explore.strategies import play_told
    from oncebench.explore.terminal import unheard
    from oncebench.testing.exploration import Setting
    from oncebench.testing.exploring import play, taken

    one_of([locks], LOCKS, "--locks")
    one_of([journal], JOURNALS, "--journal")
    one_of([on], CREWS, "--on")
    receiver = taken(target)
    if deliveries is None:
        letters = {letter for letter in schedule if "A" <= letter <= "Z"}
        plan = Plan.parse("/".join(["m1:3"] * (ord(max(letters, default="A")) - ord("A") + 1)))
    else:
        plan = Plan.parse(deliveries)
    told = moves(schedule, plan.workers)
    plan = replace(plan, clocked=on != "processes", jumps=told.count(TICK))
    setting = Setting(journal, locks, on)  # type: ignore[arg-type]
    with unheard():
        run, findings = play(receiver, plan, lambda at: play_told(at, told), setting, recording=True)
    if json:
        import msgspec

        from oncebench.results.explored import steps_of

        shown = {
            "target": receiver.name,
            "schedule": "".join(run.schedule),
            "deliveries": str(plan),
            "journal": journal,
            "locks": locks,
            "verdict": findings.verdict,
            "steps": steps_of(run),
            "operations": run.drained,
            "after": {"total": run.after.total, "inbox": run.after.inbox},
            "violations": findings.violations,
        }
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(shown), indent=1) + b"\n")
    else:
        from oncebench.explore.timeline import WIDTH, timeline
        from oncebench.report.console import Console

        console = Console()
        if not quiet:
            console.print(timeline(run, min(console.width, WIDTH) if console.is_terminal else WIDTH))
        colour = "red" if findings.violations else "green"
        console.print(f"{receiver.name}: {findings.verdict}", style=f"bold {colour}", markup=False)
        for violation in findings.violations:
            console.print(f"  {violation.kind} {violation.id}: {violation.message}", markup=False)
    raise typer.Exit(int(findings.verdict != receiver.expected and bool(findings.violations)))
