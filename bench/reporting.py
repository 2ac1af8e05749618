"""A million operations saved, loaded, audited and reported, against numpy that writes and reads columns."""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from auditing import OPERATIONS, made
from measure import in_turn, ratios, spread
from oncebench.messages import COLUMNS, Delivery, State
from oncebench.race import Policy, Race
from oncebench.report import page
from oncebench.results.files import load, save
from oncebench.results.histories import load_history, save_history
from oncebench.results.schema import SCHEMA, RunResult, Settings
from oncebench.results.summary import of_race, of_variant
from oncebench.stores import sqlite
from oncebench.workload import Phase, Workload


def timed(work: Callable[[], object]) -> float:
    """Seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Print seconds, ratios and memory."""
    history, state = made()
    with tempfile.TemporaryDirectory() as place:
        plain, ours = Path(place) / "plain.npz", Path(place) / "history.npz"

        def read_plain() -> None:
            with np.load(plain) as columns:
                for name in columns.files:
                    columns[name]

        figures = in_turn(
            3,
            lambda: timed(lambda: np.savez(plain, **{name: getattr(history, name) for name in COLUMNS})),
            lambda: timed(lambda: save_history(ours, history, State(0), state)),
            lambda: timed(read_plain),
            lambda: timed(lambda: load_history(ours)),
            lambda: timed(lambda: _judge_and_report(ours, Path(place))),
        )
        size = ours.stat().st_size
        began = time.process_time()
        save_history(ours, history, State(0), state)
        _judge_and_report(ours, Path(place))
        cpu = time.process_time() - began
    labels = (
        "numpy writes its columns",
        "save_history",
        "numpy reads them",
        "load_history",
        "load, audit, report",
    )
    print(f"{len(history):,} operations, {size / 1e6:,.0f} MB; seconds")
    for n, (label, column) in enumerate(zip(labels, figures, strict=True)):
        base = figures[0] if n < 2 else figures[2]
        print(f"{label:26} {spread(column, 2)}   ratio {spread(ratios(column, base), 1)}")
    whole = [saved + rest for saved, rest in zip(figures[1], figures[4], strict=True)]
    print(f"{'saved, loaded, audited and reported':36} {spread(whole, 2)}")
    print(f"{'processor time of such a round':36} {cpu:.2f}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(f"most memory, what made the history included: {memory / 2**30:.2f} GiB")


def _judge_and_report(path: Path, place: Path) -> None:
    """From the file to the page, by way of a saved run."""
    history, before, after = load_history(path)
    race = Race("made", Workload(workers=4, phases=("spread",)), sqlite.Settings(), Policy())
    share = [Delivery("some-id", 1)] * (OPERATIONS + 1)  # delivery numbers are those of rows here
    race.phases = [Phase("warm-up", [[]] * 4), Phase("spread", [share] * 4)]
    race.history = race.drained = history
    race.before, race.between, race.after, race.seconds = before, after, after, 1.0
    result = of_race(race)
    assert result.verdict == "sound", result.because
    settings = Settings(4, OPERATIONS, 3, 0.1, 99, ["spread"], ["wal"], "full", 5.0, 1, 30.0, True)
    run = RunResult(
        SCHEMA,
        "race",
        7,
        "made",
        "",
        True,
        settings,
        {"sqlite": "none"},
        [of_variant("made", "sound", [result])],
    )
    save(run, place)
    (place / "report.html").write_bytes(page.html([load(place)]))


if __name__ == "__main__":
    main()
