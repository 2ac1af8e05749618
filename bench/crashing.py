"""Hundreds of kills under load: is anything lost or doubled, and what does a kill cost?

The baseline is the same race in which nobody dies. Right receivers race in all phases; wrong ones on
different ids only, so that what is found in them was done by a death, or is found in the baseline too.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path

from oncebench.messages import Outcome
from oncebench.race import Policy, Race, race
from oncebench.race.reading import KILLED
from oncebench.receivers.loader import load
from oncebench.results import RaceResult
from oncebench.results.summary import of_race
from oncebench.stores import sqlite
from oncebench.workload import Workload

RIGHT = ("immediate", "exclusive", "upsert", "group", "deferred")
WRONG = ("naive", "memory", "id_first", "stock_first", "ack_early")


def raced(name: str, journal: str, seed: int, ids: int, kills: int) -> tuple[Race, RaceResult]:
    """One race."""
    right = name not in WRONG
    work = Workload(seed=seed, ids=ids) if right else Workload(seed=seed, ids=8 * ids, phases=("distinct",))
    settings = sqlite.Settings(journal=journal)  # type: ignore[arg-type]
    ended = race(load(name), work, settings, Policy(kills=kills))
    return ended, of_race(ended)


def restart(ended: Race) -> list[float]:
    """Milliseconds from the last call before each death to the first of the worker that took its place."""
    history = ended.history
    gaps = []
    for row in (history.outcome == Outcome.INDETERMINATE).nonzero()[0].tolist():
        operation = history[row]
        if operation.detail == KILLED:
            heirs = history.invoked[(history.worker == operation.worker) & (history.call > operation.call)]
            if len(heirs):
                gaps.append((int(heirs.min()) - operation.invoked) / 1e6)
    return gaps


def main() -> None:
    """Print a line for each race; with `--json FILE` write them down too."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="of each receiver in each journal mode")
    parser.add_argument("--ids", type=int, default=400)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("receivers", nargs="*", default=[*RIGHT, *WRONG])
    chosen = parser.parse_args()
    rows = []
    bad = 0
    print("receiver     journal  kills  open  of them done  drained  verdict  seconds / without   restart ms")
    for name in chosen.receivers:
        for journal in ("wal", "delete"):
            _, base = raced(name, journal, chosen.seed, chosen.ids, 0)
            ended, result = raced(name, journal, chosen.seed, chosen.ids, chosen.kills)
            gaps = restart(ended)
            middle = statistics.median(gaps) if gaps else 0.0
            open_ = result.tallies.indeterminates.get(KILLED)
            count = open_.count if open_ else 0
            ratio = result.seconds / base.seconds
            found = " ".join(f"{kind} {n}" for kind, n in result.violation_counts.items())
            before = "".join(f"; without kills {kind} {n}" for kind, n in base.violation_counts.items())
            verdict = result.verdict if found or name not in WRONG else "-"  # raced nothing, found nothing
            print(
                f"{name:12} {journal:7} {result.kills:6} {count:5} {_done(ended)!s:>13} "
                f"{result.drain.redelivered:8}  {verdict:7} "
                f"{result.seconds:8.1f} / {base.seconds:.1f} = {ratio:.1f}  {middle:6.0f}  {found}{before}",
                flush=True,
            )
            bad += result.verdict != ("sound" if name in RIGHT else "broken")
            rows.append(
                {
                    "receiver": name,
                    "journal": journal,
                    "kills": result.kills,
                    "deliveries": result.tallies.deliveries,
                    "indeterminate": count,
                    "of_them_done": _done(ended),
                    "drained": result.drain.redelivered,
                    "effects": {"expected": result.effects.expected, "observed": result.effects.observed},
                    "verdict": str(result.verdict),
                    "violations": result.violation_counts,
                    "violations_without_kills": base.violation_counts,
                    "seconds": round(result.seconds, 2),
                    "seconds_without_kills": round(base.seconds, 2),
                    "restart_ms": round(middle, 1),
                }
            )
    if chosen.json:
        saved = {"seed": chosen.seed, "ids": chosen.ids, "races": rows}
        Path(chosen.json).write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")
    sys.exit(1 if bad else 0)


def _done(ended: Race) -> int | None:
    """Killed calls whose effect was committed; None where the witness knows no calls (`group`'s writer)."""
    seen = ended.between.witness if ended.between is not None else None
    if seen is None or (seen.call < 0).all():
        return None
    calls = set(seen.call.tolist())
    rows = (ended.history.outcome == Outcome.INDETERMINATE).nonzero()[0].tolist()
    return sum(int(ended.history.call[row]) in calls for row in rows if ended.history[row].detail == KILLED)


if __name__ == "__main__":
    main()
