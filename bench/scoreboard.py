"""Which mode catches which receiver: by what, after how much, in what time. And is a right one ever accused?

All variants, wrong ones and right ones, in each mode alone. "After" is how many deliveries had been handed
over when the first proof that is written out was complete, how many schedules had been played, or how many
processes killed. With `--campaign` the right ones are then raced and explored until there were as many races
and schedules as asked for; not one of them may be accused.

Exit code 1 if a wrong receiver is caught by no mode, or a right one is accused.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from oncebench.audit import audit
from oncebench.crash.campaign import crash
from oncebench.explore.plan import Plan
from oncebench.explore.search import Search
from oncebench.explore.strategies import Random
from oncebench.explore.views import Views
from oncebench.messages import NEVER, BadInput
from oncebench.race import Policy, Race, race
from oncebench.receivers.loader import Receiver, load
from oncebench.receivers.registry import VARIANTS
from oncebench.results.crashed import of_crashes
from oncebench.results.environment import environment
from oncebench.results.schema import RaceResult
from oncebench.results.summary import of_race
from oncebench.stores.sqlite import Settings
from oncebench.testing import exploring
from oncebench.testing.stage import stage
from oncebench.workload import Workload

ROOT = Path(__file__).parents[1]
SAVED = ROOT / "results" / "scoreboard.json"
BEGIN, END = "<!-- scoreboard -->", "<!-- end of scoreboard -->"
JOURNALS = ("wal", "delete")
AT_ONCE = (*Workload().phases, "conflicting")
THREADED = ("same", "distinct", "spread", "conflicting", "paused")
MODES = ("sequential", "race", "threads", "explore", "crash", "kills")
UNITS = {"explore": "schedules", "crash": "kills"}
POLICY = Policy(deadline=15, time_limit=60)


@dataclass
class Cell:
    """One receiver in one mode.

    Attributes:
        verdict: Broken, sound or unknown.
        kinds: By what it was caught, the first proof's kind first.
        after: Deliveries, schedules or kills until then; all that were tried if it was not caught.
        seconds: The same in time.
        because: Why it is unknown.
    """

    verdict: str
    kinds: list[str] = field(default_factory=list)
    after: int = 0
    seconds: float = 0.0
    because: list[str] = field(default_factory=list)


# ---------------------------------------------------------------------------------------------- the measures


def measured(name: str, ids: int, most: int, seed: int) -> Iterator[tuple[str, Cell]]:
    """One receiver in every mode.

    Args:
        name: Of a variant.
        ids: In each part of a race.
        most: Schedules begun in each part of the exploration at the most.
        seed: From which everything follows.
    """
    receiver = load(name)
    alone = Workload(seed, workers=1, ids=ids, phases=("sequence", "neighbours"))
    yield "sequential", raced(receiver, alone, POLICY)[0]
    cell, threaded = raced(receiver, Workload(seed, ids=ids, phases=AT_ONCE), POLICY)
    yield "race", cell
    if threaded:
        on_threads = Workload(seed, ids=ids, phases=THREADED)
        yield "threads", raced(receiver, on_threads, replace(POLICY, threads=4))[0]
    yield "explore", explored(receiver, most, seed)
    yield "crash", crashed(receiver, seed)
    # Different ids only: what is found here was done by a death, or is found in "race" too.
    killed = Workload(seed, ids=4 * ids, phases=("distinct",))
    yield "kills", raced(receiver, killed, replace(POLICY, kills=max(8, ids // 4)))[0]


def raced(receiver: Receiver, work: Workload, policy: Policy) -> tuple[Cell, bool]:
    """In both journal modes, until it is caught; and whether it makes connections for threads."""
    cell = Cell("sound")
    threaded = False
    for journal in JOURNALS:
        ended = race(receiver, work, Settings(journal), policy)  # type: ignore[arg-type]
        result = of_race(ended)
        threaded |= ended.threaded
        # Where nobody shares an id there is nothing to race for, which makes a race unknown but not silent.
        nothing_raced = work.phases == ("distinct",) and len(result.because) == 1
        if result.verdict == "unknown" and not (nothing_raced and "raced nothing" in result.because[0]):
            cell.verdict = "unknown"
            cell.because += [f"{journal}: {reason}" for reason in result.because]
        if result.violations:
            after, seconds, kind = first_proof(ended, result)
            kinds = [kind, *(each for each in result.violation_counts if each != kind)]
            return Cell("broken", kinds, cell.after + after, cell.seconds + seconds), threaded
        cell.after += result.tallies.deliveries
        cell.seconds += result.seconds
    return cell, threaded


def first_proof(ended: Race, result: RaceResult) -> tuple[int, float, str]:
    """Deliveries and seconds until one of the proofs was complete, and its kind."""
    history = ended.drained
    last = int(history.invoked.max())
    proofs = []
    if ended.before is not None and ended.after is not None:
        for violation in audit(history, ended.before, ended.after).violations:
            ends = [op.invoked if op.completed == NEVER else op.completed for op in violation.operations]
            proofs.append((max(ends, default=last), str(violation.kind)))
    at, kind = min(proofs, default=(last, str(result.violations[0].kind)))
    return int((history.invoked <= at).sum()), (at - int(history.invoked.min())) / 1e9, kind


def explored(receiver: Receiver, most: int, seed: int) -> Cell:
    """All parts; if that finds something, once more up to the first schedule that shows it."""
    began = time.monotonic()
    found = exploring.explore(receiver, most=most, seed=seed)
    cell = Cell(str(found.verdict), because=found.because)
    cell.after, cell.seconds = found.run, time.monotonic() - began
    if found.verdict != "broken":
        return cell
    began, played = time.monotonic(), 0
    for part in found.parts:
        if not part.failures:
            played += part.run
            continue
        with stage(receiver, part.plan, part.setting) as (site, crew):
            for run in Search(crew, site, part.plan, Views(), most=most).runs():
                played += 1
                if counts := exploring.judge(run).counts:
                    first = str(next(iter(counts)))
                    kinds = [first, *(str(kind) for kind in found.failures if str(kind) != first)]
                    # Parts in which nothing is wrong were not played again: their share of the first time.
                    share = sum(p.run for p in found.parts[: found.parts.index(part)]) / max(1, found.run)
                    return Cell("broken", kinds, played, time.monotonic() - began + share * cell.seconds)
    return cell


def crashed(receiver: Receiver, seed: int) -> Cell:
    """A kill at each point, in both journal modes."""
    began = time.monotonic()
    ended = [crash(receiver, Settings(journal), seed=seed, deadline=15) for journal in JOURNALS]  # type: ignore[arg-type]
    seconds = time.monotonic() - began
    result = of_crashes(receiver.name, "sound", ended)
    wrong = [n for n, point in enumerate(result.points) if point.verdict == "broken"]
    if not wrong:
        reasons = [reason for point in result.points for reason in point.because]
        because = list(dict.fromkeys([*result.because, *reasons])) if result.verdict == "unknown" else []
        return Cell(str(result.verdict), [], len(result.points), seconds, because)
    kinds = list(dict.fromkeys(kind for n in wrong for kind in result.points[n].violations))
    return Cell("broken", kinds, wrong[0] + 1, seconds * (wrong[0] + 1) / len(result.points))


# ---------------------------------------------------------------------------------------------- the campaign


@dataclass
class Campaign:
    """Right receivers, again and again.

    Attributes:
        races: How many were run, half of them with workers killed.
        deliveries: In them.
        schedules: How many were played.
        receivers: Who took part.
        accused: What was found, with the command that shows it again; must be empty.
        seconds: How long it took.
    """

    races: int = 0
    deliveries: int = 0
    schedules: int = 0
    receivers: list[str] = field(default_factory=list)
    accused: list[str] = field(default_factory=list)
    seconds: float = 0.0


def campaign(
    names: Sequence[str], races: int, schedules: int, ids: int, tell: Callable[[Campaign], None]
) -> Campaign:
    """Race and explore right receivers until there were as many races and schedules."""
    result = Campaign(receivers=list(names))
    began = time.monotonic()
    for nth, name in zip(range(races), itertools.cycle(names), strict=False):
        work = Workload(seed=nth, ids=ids, phases=AT_ONCE)
        kills = 8 if nth // len(names) % 2 else 0
        journal = JOURNALS[(nth // len(names) // 2) % 2]
        ended = race(load(name), work, Settings(journal), replace(POLICY, kills=kills))  # type: ignore[arg-type]
        outcome = of_race(ended)
        result.races += 1
        result.deliveries += outcome.tallies.deliveries
        if outcome.violations:
            again = f"oncebench run {name} --seed {nth} --ids {ids} --kills {kills} --journal {journal}"
            result.accused.append(
                f"{' '.join(outcome.violation_counts)}: {again} --workload {','.join(AT_ONCE)}"
            )
        result.seconds = time.monotonic() - began
        tell(result)
    can_be = list(names)
    for seed in itertools.count():
        for name in list(can_be):
            if result.schedules >= schedules:
                return result
            plans = [Plan.of(plan, 2 + seed % 2) for plan in exploring.DEFAULT_SCENARIOS]
            try:
                found = exploring.explore(load(name), plans=plans, strategy=Random(40), seed=seed)
            except BadInput:  # it cannot be stepped, and says why
                can_be.remove(name)
                continue
            if not found.run or any(part.because for part in found.parts):
                can_be.remove(name)
            result.schedules += found.run
            for kind, failure in found.failures.items():
                result.accused.append(f"{kind}: {failure.command(name)}")
            result.seconds = time.monotonic() - began
            tell(result)
        if not can_be:
            return result
    raise AssertionError


# -------------------------------------------------------------------------------------------- the scoreboard


def board(names: Sequence[str], arguments: Sequence[str], at_once: int) -> list[dict[str, Any]]:
    """Each receiver in a process of its own, since some of them harm it."""

    def one(name: str) -> dict[str, Any]:
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            command = [sys.executable, __file__, "--one", name, file.name, *arguments]
            ended = subprocess.run(command, capture_output=True, text=True)
            said = file.read().decode()
        cells: dict[str, Any] = {}
        for line in said.splitlines():
            cells.update(json.loads(line))
        if ended.returncode:
            last = ended.stderr.strip().splitlines()[-1:] or [f"exit code {ended.returncode}"]
            missing = next(mode for mode in MODES if mode not in cells and mode != "threads")
            cells[missing] = asdict(Cell("unknown", because=[f"the bench's process ended: {last[0]}"]))
        verdicts = " ".join(f"{mode} {cell['verdict']}" for mode, cell in cells.items())
        print(f"{name}: {verdicts}", file=sys.stderr)
        variant = VARIANTS[name]
        return {
            "name": name,
            "case": getattr(variant, "case", ""),
            "expected": variant.expected,
            "modes": cells,
        }

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(one, names))


def faults(saved: dict[str, Any]) -> list[str]:
    """What must not be: wrong ones that nothing catches, right ones that are accused."""
    found = []
    for row in saved["receivers"]:
        caught = [mode for mode, cell in row["modes"].items() if cell["verdict"] == "broken"]
        if row["expected"] == "broken" and not caught:
            found.append(f"{row['name']} is wrong, and no mode says so")
        if row["expected"] == "sound" and caught:
            found.append(f"{row['name']} is right, and accused by {' and '.join(caught)}")
    return found + [f"accused: {each}" for each in (saved["campaign"] or {}).get("accused", [])]


def show(saved: dict[str, Any]) -> None:
    """The table, all of it."""
    table = Table(box=None, header_style="bold")
    for heading in ("receiver", "case", *MODES):
        table.add_column(heading, overflow="fold")
    order = sorted(saved["receivers"], key=lambda row: ("broken", "unknown", "sound").index(row["expected"]))
    for row in order:
        name = row["name"] if row["expected"] == "broken" else f"{row['name']} ({row['expected']})"
        cells = [_cell(row["modes"].get(mode), UNITS.get(mode, "deliveries")) for mode in MODES]
        table.add_row(name, row["case"], *cells)
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    print(_campaign_line(saved) or "no campaign was run")
    for fault in faults(saved):
        print(f"WRONG: {fault}")


def _cell(cell: dict[str, Any] | None, unit: str) -> str:
    if cell is None:
        return ""
    if cell["verdict"] == "broken":
        return f"{' '.join(cell['kinds'])}\nafter {cell['after']:,} {unit}, {cell['seconds']:.2g} s"
    word = "silent" if cell["verdict"] == "sound" else "unknown"
    return f"{word}\n{cell['after']:,} {unit}, {cell['seconds']:.2g} s"


def markdown(saved: dict[str, Any]) -> str:
    """The same in short: for the README."""
    lines = [
        "| wrong receiver | " + " | ".join(MODES) + " |",
        "| --- |" + " --- |" * len(MODES),
    ]
    for row in saved["receivers"]:
        if row["expected"] != "sound":
            cells = [_short(row["modes"].get(mode)) for mode in MODES]
            lines.append(
                f"| `{row['name']}`{' ' + row['case'] if row['case'] else ''} | {' | '.join(cells)} |"
            )
    right = [row for row in saved["receivers"] if row["expected"] == "sound"]
    accused = sum(cell["verdict"] == "broken" for row in right for cell in row["modes"].values())
    lines += [
        "",
        "The first kind found, and after how many deliveries (explore: schedules; crash: kills); "
        f"- is nothing found, ? no verdict. Right receivers: {len(right)}, accused: {accused}. "
        f"{_campaign_line(saved)}".strip(),
    ]
    return "\n".join(lines)


def _short(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return ""
    if cell["verdict"] == "broken":
        return f"{cell['kinds'][0]} {cell['after']:,}"
    return "-" if cell["verdict"] == "sound" else "?"


def _campaign_line(saved: dict[str, Any]) -> str:
    run = saved["campaign"]
    if not run:
        return ""
    return (
        f"Right ones again and again: {run['schedules']:,} schedules and {run['races']:,} races "
        f"({run['deliveries']:,} deliveries), accused: {len(run['accused'])}."
    )


def refresh(file: Path, text: str) -> None:
    """Put the table between its two comments.

    Raises:
        BadInput: They are not there.
    """
    whole = file.read_text(encoding="utf-8")
    before, begin, rest = whole.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise BadInput(f"{file} has no {BEGIN} ... {END}: put both where the table shall be")
    file.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")


def main() -> None:
    """Measure, tell, save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--ids", type=int, default=60, help="in each part of a race")
    parser.add_argument(
        "--most", type=int, default=2000, help="schedules begun in each part of an exploration"
    )
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--at-once", type=int, default=1, help="receivers that are measured at the same time")
    parser.add_argument("--campaign", action="store_true", help="race and explore the right ones at length")
    parser.add_argument("--races", type=int, default=200, help="of the campaign")
    parser.add_argument("--schedules", type=int, default=10_000, help="of the campaign")
    parser.add_argument("--saved", action="store_true", help="measure nothing: show what was saved")
    parser.add_argument("--json", type=Path, default=SAVED, metavar="FILE")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="put the table between its comments here"
    )
    parser.add_argument("receivers", nargs="*", default=list(VARIANTS))
    chosen = parser.parse_args()
    if chosen.one:
        name, file = chosen.one
        with Path(file).open("w", encoding="utf-8") as out:
            for mode, cell in measured(name, chosen.ids, chosen.most, chosen.seed):
                out.write(json.dumps({mode: asdict(cell)}) + "\n")
                out.flush()
        return
    saved = json.loads(chosen.json.read_text(encoding="utf-8")) if chosen.saved else measure(chosen)
    show(saved)
    if chosen.markdown is not None:
        refresh(chosen.markdown, markdown(saved))
    sys.exit(1 if faults(saved) else 0)


def measure(chosen: argparse.Namespace) -> dict[str, Any]:
    """All of it, saved."""
    arguments = ["--ids", str(chosen.ids), "--most", str(chosen.most), "--seed", str(chosen.seed)]
    receivers = board(chosen.receivers, arguments, chosen.at_once)
    right = [name for name in chosen.receivers if VARIANTS[name].expected == "sound"]
    ran = None
    if chosen.campaign:

        def tell(so_far: Campaign) -> None:
            print(
                f"\r{so_far.races} races, {so_far.schedules} schedules", end="", file=sys.stderr, flush=True
            )

        ran = asdict(campaign(right, chosen.races, chosen.schedules, max(4, chosen.ids // 5), tell))
        print(file=sys.stderr)
    surroundings = environment(Path(tempfile.gettempdir()))
    words = [*arguments, *(["--campaign"] if chosen.campaign else [])]
    words += chosen.receivers if chosen.receivers != list(VARIANTS) else []
    saved = {
        "made_with": f"bench/scoreboard.py {' '.join(words)}",
        "environment": msgspec.to_builtins(surroundings),
        "receivers": receivers,
        "campaign": ran,
    }
    chosen.json.write_text(json.dumps(saved, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return saved


if __name__ == "__main__":
    main()
