"""Receivers that claim a message for a time, in an inbox of their own."""

import datetime
import sqlite3
import time
from datetime import datetime as moment
from itertools import pairwise
from pathlib import Path
from time import time as seconds

from oncebench.messages import Conflict, State

LEASE = 30.0


class Lease:
    """Wrong: who has claimed a message works on it even when the claim has ended meanwhile."""

    fenced = False

    def setup(self, path: Path) -> None:
        db = sqlite3.connect(path)
        db.execute("PRAGMA journal_mode = wal")
        db.execute(
            "CREATE TABLE claim (id TEXT PRIMARY KEY, qty INTEGER, until REAL, done INTEGER DEFAULT 0)"
        )
        db.execute("CREATE TABLE stock (total INTEGER)")
        db.execute("INSERT INTO stock VALUES (0)")
        db.commit()
        db.close()

    def connect(self, path: Path) -> sqlite3.Connection:
        return sqlite3.connect(path, isolation_level=None)

    def observe(self, path: Path) -> State:
        db = sqlite3.connect(path)
        inbox = db.execute("SELECT id, qty FROM claim WHERE done ORDER BY id").fetchall()
        (total,) = db.execute("SELECT total FROM stock").fetchone()
        db.close()
        return State(total, inbox)

    def now(self, db: sqlite3.Connection) -> float:
        return time.time()

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        now = self.now(db)
        until = now + LEASE
        claimed = db.execute(
            "INSERT INTO claim (id, qty, until) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE"
            " SET until = excluded.until, qty = excluded.qty WHERE NOT done AND until <= ?",
            (id, qty, until, now),
        ).rowcount
        if not claimed:
            done, known = db.execute("SELECT done, qty FROM claim WHERE id = ?", (id,)).fetchone()
            if done and known != qty:
                raise Conflict(id)
            if not done:
                raise TimeoutError("somebody works on it")
            return False
        with db:
            db.execute("BEGIN IMMEDIATE")
            mine = db.execute(
                "SELECT 1 FROM claim WHERE id = ? AND until = ? AND NOT done", (id, until)
            ).fetchone()
            if self.fenced and not mine:
                raise TimeoutError("the claim has ended")
            db.execute("UPDATE claim SET done = 1 WHERE id = ?", (id,))
            db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True


class Fenced(Lease):
    """Right: looks in the transaction whether the claim is still its own."""

    fenced = True


class ByName(Lease):
    def now(self, db: sqlite3.Connection) -> float:
        return seconds()


class ByCalendar(Lease):
    def now(self, db: sqlite3.Connection) -> float:
        assert isinstance(moment.now(), datetime.datetime)
        return moment.now(datetime.UTC).timestamp()


class BySQLite(Lease):
    def now(self, db: sqlite3.Connection) -> float:
        (now,) = db.execute("SELECT (julianday('now') - 2440587.5) * 86400.0").fetchone()
        return float(now)


class ByKeyword(Lease):
    def now(self, db: sqlite3.Connection) -> float:
        return float(db.execute("SELECT strftime('%s', CURRENT_TIMESTAMP)").fetchone()[0])


class SomeOfEach(Lease):
    """Right: stops if a clock that it can see is behind another; the schema's default is one."""

    def setup(self, path: Path) -> None:
        super().setup(path)
        db = sqlite3.connect(path)
        db.execute("CREATE TABLE seen (at TEXT DEFAULT CURRENT_TIMESTAMP)")
        db.close()

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        db.execute("PRAGMA trusted_schema = off")
        with db:
            db.execute("BEGIN IMMEDIATE")
            row = db.execute("SELECT qty FROM claim WHERE id = ? AND done", (id,)).fetchone()
            if row:
                if row[0] != qty:
                    raise Conflict(id)
                return False
            db.execute("INSERT INTO seen DEFAULT VALUES")
            (text,) = db.execute("SELECT max(at) FROM seen").fetchone()
            clocks = [
                datetime.datetime.fromisoformat(f"{text}+00:00").timestamp(),
                float(db.execute("SELECT strftime('%s')").fetchone()[0]),
                time.time(),
                seconds(),
                moment.now().timestamp(),
                time.mktime(time.localtime()),
            ]
            assert all(later - earlier > -2 for earlier, later in pairwise(clocks)), clocks
            db.execute("INSERT INTO claim (id, qty, done) VALUES (?, ?, 1)", (id, qty))
            db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
