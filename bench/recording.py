"""What writing down an operation costs: the worker's loop against a bare one, and a transaction."""

from __future__ import annotations

import json
import socket
import sys
import tempfile
import time
from pathlib import Path

from measure import in_turn, spread
from oncebench.race.line import Job, Line
from oncebench.race.worker import Worker
from oncebench.receivers import immediate
from oncebench.receivers.loader import load, receiver
from oncebench.stores import sqlite

CALLS = 200_000
TRANSACTIONS = 2_000


def answers_at_once(db: object, id: str, qty: int) -> bool:
    """A receiver that costs nothing, so that all the rest shows."""
    return True


def recorded(folder: Path) -> float:
    """Nanoseconds for one call through the worker's loop."""
    mine, theirs = socket.socketpair()
    with mine, theirs:
        store = folder / "store.db"
        if not store.exists():
            sqlite.setup(store, sqlite.Settings(), watched=False)
        job = Job("immediate", [], str(folder), str(store), {}, worker=0)
        worker = Worker(job, receiver(answers_at_once, "nothing"), Line(theirs.detach()))
        deliveries = [("some-id", 7)] * CALLS
        start = time.perf_counter_ns()
        worker._deliver(deliveries, gated=False)
        return (time.perf_counter_ns() - start) / CALLS


def bare() -> float:
    """Nanoseconds for one call from a loop that does nothing else."""
    deliveries = [("some-id", 7)] * CALLS
    start = time.perf_counter_ns()
    for id, qty in deliveries:
        answers_at_once(None, id, qty)
    return (time.perf_counter_ns() - start) / CALLS


def transaction(folder: Path, journal: sqlite.Journal) -> float:
    """Nanoseconds for one new message through `immediate`."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / "store.db"
        settings = sqlite.Settings(journal=journal)
        sqlite.setup(path, settings, watched=False)
        db = sqlite.connect(path, settings)
        start = time.perf_counter_ns()
        for n in range(TRANSACTIONS):
            immediate.receive(db, f"message-{n}", 7)
        taken = (time.perf_counter_ns() - start) / TRANSACTIONS
        db.close()
        return taken


def main() -> None:
    """Print nanoseconds and percentages."""
    load("immediate")
    places = {"disk": Path(tempfile.gettempdir())}
    if Path("/dev/shm").is_dir():
        places["memory (/dev/shm)"] = Path("/dev/shm")
    with tempfile.TemporaryDirectory() as folder:
        with_it, without = in_turn(7, lambda: recorded(Path(folder)), bare)
    cost = [a - b for a, b in zip(with_it, without, strict=True)]
    print(f"one call, bare loop           {spread(without, 0)} ns")
    print(f"one call, worker's loop       {spread(with_it, 0)} ns")
    print(f"recording                     {spread(cost, 0)} ns")
    result = {"recording_ns": cost}
    for place, folder_ in places.items():
        for journal in ("wal", "delete"):
            [took] = in_turn(5, lambda f=folder_, j=journal: transaction(f, j))  # type: ignore[misc]
            share = [100 * c / t for c, t in zip(sorted(cost)[1:6], sorted(took), strict=True)]
            print(f"of a transaction, {journal:6} {place:18} {spread(took, 0)} ns: {spread(share, 2)} %")
    if "--json" in sys.argv:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
