"""`wait` mode against real processes with a real busy timeout: who waits, who is refused, and what then.

Each case is a history of two connections, then what B asks, then how A lets go. Real: two processes, B with
a busy timeout of an hour. A refusal comes back whatever happens; whoever has not answered yet is waiting.
"""

import contextlib
import itertools
import multiprocessing
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from oncebench.explore.greenlets import Greenlets
from oncebench.explore.plan import Plan
from oncebench.explore.play import Play
from oncebench.explore.site import Site
from oncebench.explore.views import Views
from oncebench.messages import Delivery
from oncebench.receivers import loader
from oncebench.stores.sqlite import Journal, Settings

HOUR = 3600.0
LONG_ENOUGH = 0.4  # seconds for a refusal to come back
STALLED = 10.0  # seconds for one that a busy machine may have kept back
LOOK = "SELECT total FROM stock"
WRITE = "UPDATE stock SET total = total + 1"


@dataclass(frozen=True)
class Case:
    """What A and B did before, what B asks, how A lets go."""

    before: tuple[tuple[str, str], ...]
    ask: str
    release: str

    def __str__(self) -> str:
        return " / ".join([*(f"{who} {sql}" for who, sql in self.before), f"B asks {self.ask}", self.release])


HOLDS = {
    "nothing": ([], "SELECT 1"),
    "a read lock": (["BEGIN", LOOK], "ROLLBACK"),
    "a write lock": (["BEGIN IMMEDIATE"], "ROLLBACK"),
    "a write, then undone": (["BEGIN", WRITE], "ROLLBACK"),
    "a write, then committed": (["BEGIN IMMEDIATE", WRITE], "COMMIT"),
    "an exclusive lock": (["BEGIN EXCLUSIVE", WRITE], "COMMIT"),
}
ASKS = {
    "a read": ([], LOOK),
    "a write by itself": ([], WRITE),
    "the write lock": ([], "BEGIN IMMEDIATE"),
    "an exclusive lock": ([], "BEGIN EXCLUSIVE"),
    "a write first in a transaction": (["BEGIN"], WRITE),
    "a read first in a transaction": (["BEGIN"], LOOK),
}
READS_FIRST = ["BEGIN", LOOK]


def cases(journal: str) -> Iterator[Case]:
    """Every pair of what A holds and what B asks, and those where B has read before."""
    for (holds, release), (prefix, ask) in itertools.product(HOLDS.values(), ASKS.values()):
        yield Case((*(("A", sql) for sql in holds), *(("B", sql) for sql in prefix)), ask, release)
    early = tuple(("B", sql) for sql in READS_FIRST)
    for holds, release in HOLDS.values():
        if holds[:1] != ["BEGIN EXCLUSIVE"]:  # cannot begin beside a reader in rollback mode
            yield Case((*early, *(("A", sql) for sql in holds)), WRITE, release)
    if journal == "wal":  # A has committed since B read; with a rollback journal A would have to wait for B
        yield Case((*early, ("A", WRITE)), WRITE, "SELECT 1")
    # B's COMMIT meets a reader; afterwards its transaction is open still, or committed.
    yield Case((("B", "BEGIN IMMEDIATE"), ("B", WRITE), ("A", "BEGIN"), ("A", LOOK)), "COMMIT", "ROLLBACK")


class Script:
    """A receiver that runs the statements of its worker: message A's or B's."""

    def __init__(self, scripts: dict[str, list[str]]) -> None:
        self.scripts = scripts

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        for sql in self.scripts[id[0]]:
            with contextlib.suppress(sqlite3.OperationalError):
                db.execute(sql).fetchall()
        return True


def modelled(case: Case, journal: Journal) -> list[str]:
    """What B's question comes to in `wait` mode: answers, or "waits" and then an answer."""
    mine = [sql for who, sql in case.before if who == "A"]
    yours = [sql for who, sql in case.before if who == "B"]
    script = Script({"A": [*mine, case.release], "B": [*yours, case.ask, "SELECT 1"]})
    plan = Plan(((Delivery("A", 1),), (Delivery("B", 1),)))
    site = Site(loader.receiver(script, "script"), Settings(journal, "off", HOUR))
    try:
        with Greenlets(site, 2, waits=True) as crew:
            play = Play(crew, site, plan, Views(), recording=True)
            for who, _ in case.before:
                assert play.move(who)
            assert play.move("B")
            found = [_outcome(play)]
            if found == ["waits"]:
                assert play.move("A")
                assert play.move("B")
                found.append(_outcome(play))
            crew.settle()
            return found
    finally:
        site.close()


def _outcome(play: Play) -> str:
    step = play.steps[-1]
    if step.status == "waits":
        return "waits"
    return (
        f"{step.seen[0].strip(chr(39))} open={bool(step.lock)}"
        if step.status == "refused"
        else (f"ok open={bool(step.lock)}")
    )


def serve(line: Connection) -> None:
    """A real process: `(path)` opens the store, `(sql)` runs a statement and answers with what came of it."""
    db: sqlite3.Connection | None = None
    while True:
        order, text = line.recv()
        if order == "quit":
            break
        if order == "open":
            if db is not None:
                db.close()
            db = sqlite3.connect(text, isolation_level=None, timeout=HOUR)
            db.execute(LOOK).fetchall()
            line.send("opened")
            continue
        assert db is not None
        try:
            db.execute(text).fetchall()
            line.send(f"ok open={db.in_transaction}")
        except sqlite3.OperationalError as error:
            line.send(f"{error.sqlite_errorname} open={db.in_transaction}")


class Pair:
    """Two real processes."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.lines: dict[str, Connection] = {}
        self.processes = []
        for who in "AB":
            self.lines[who], theirs = context.Pipe()
            process = context.Process(target=serve, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            self.processes.append(process)

    def ask(self, who: str, order: str, text: str) -> str:
        self.lines[who].send((order, text))
        return str(self.lines[who].recv())

    def real(self, case: Case, journal: Journal, path: Path, patience: float = LONG_ENOUGH) -> list[str]:
        site = Site(loader.load("immediate"), Settings(journal, "off", HOUR), path)
        try:
            for who in "AB":
                self.ask(who, "open", str(site.path))
            for who, sql in case.before:
                assert self.ask(who, "run", sql).startswith("ok")
            self.lines["B"].send(("run", case.ask))
            if self.lines["B"].poll(patience):
                return [str(self.lines["B"].recv())]
            self.ask("A", "run", case.release)
            return ["waits", str(self.lines["B"].recv())]
        finally:
            for who in "AB":
                self.ask(who, "run", "ROLLBACK")
            site.close()

    def close(self) -> None:
        for line, process in zip(self.lines.values(), self.processes, strict=True):
            line.send(("quit", ""))
            process.join()
            line.close()


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, Case], list[str]]]:
    """What real processes do in each case; several cases at once, since most of the time is waiting."""
    work = [(journal, case) for journal in ("wal", "delete") for case in cases(journal)]
    pairs = [Pair() for _ in range(6)]
    try:

        def share(nth: int) -> list[tuple[tuple[str, Case], list[str]]]:
            mine = work[nth :: len(pairs)]
            folder = tmp_path_factory.mktemp(f"pair{nth}")
            return [((journal, case), pairs[nth].real(case, journal, folder)) for journal, case in mine]  # type: ignore[arg-type]

        with ThreadPoolExecutor(len(pairs)) as pool:
            yield dict(itertools.chain.from_iterable(pool.map(share, range(len(pairs)))))
    finally:
        for pair in pairs:
            pair.close()


def again(case: Case, journal: Journal, path: Path) -> list[str]:
    """What one pair does, by itself and with more time to answer."""
    pair = Pair()
    try:
        return pair.real(case, journal, path, STALLED)
    finally:
        pair.close()


def test_wait_mode_does_what_real_processes_do(
    real: dict[tuple[str, Case], list[str]], tmp_path: Path
) -> None:
    """For every pair, in both journal modes: the same refusals at once, the same waits, the same ends."""
    different: list[Any] = []
    for (journal, case), happened in real.items():
        expected = modelled(case, journal)  # type: ignore[arg-type]
        if happened[0] == "waits" != expected[0]:  # or it was only late
            happened = again(case, journal, tmp_path)  # type: ignore[arg-type]
        if expected != happened:
            different.append(f"{journal}: {case}: really {happened}, in wait mode {expected}")
    assert not different, "\n".join(different)
    # The comparison is about something: both kinds of answer occur, and both codes of a refusal.
    answers = {" ".join(happened) for happened in real.values()}
    for beginning in ("ok", "waits ok", "SQLITE_BUSY ", "SQLITE_BUSY_SNAPSHOT"):
        assert any(answer.startswith(beginning) for answer in answers)


def test_a_refused_commit_leaves_the_transaction_open() -> None:
    """Rollback mode, `error`: the reader makes COMMIT fail, and the writer still holds its locks."""
    plan = Plan(((Delivery("A", 1),), (Delivery("B", 1),)))
    script = Script({"A": ["BEGIN", LOOK, "ROLLBACK"], "B": ["BEGIN IMMEDIATE", WRITE, "COMMIT", "COMMIT"]})
    site = Site(loader.receiver(script, "script"), Settings("delete", "off", HOUR))
    try:
        with Greenlets(site, 2, waits=False) as crew:
            play = Play(crew, site, plan, Views(), recording=True)
            for move in "AABBB":
                assert play.move(move)
            assert _outcome(play) == "SQLITE_BUSY open=True"
            assert play.move("A")
            assert play.move("B")
            assert play.steps[-1].status == "ok"
    finally:
        site.close()


def test_when_everybody_waits_it_is_a_deadlock_and_it_ends() -> None:
    """A worker that waits for a lock of its own second connection waits for ever: seen, told, timed out."""

    class Twice:
        def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
            path = db.execute("PRAGMA database_list").fetchone()[2]
            other = sqlite3.connect(path, isolation_level=None)
            try:
                db.execute("BEGIN IMMEDIATE")
                other.execute("BEGIN IMMEDIATE")
            finally:
                other.close()
                db.execute("ROLLBACK")
            return True

    from oncebench.testing import explore

    (part,) = explore(Twice(), plans=["same"], journals=["wal"], locks=["wait"]).parts
    assert part.complete
    assert part.deadlocks == part.total
    assert part.locked.keys() == {"SQLITE_BUSY"}
    (part,) = explore("immediate", plans=["same"], journals=["wal"], locks=["wait"]).parts
    assert part.deadlocks == 0
