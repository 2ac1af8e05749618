"""Receivers that claim a message for a time, in an inbox of their own."""

import sqlite3
import time
from pathlib import Path

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

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        now = time.time()
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
