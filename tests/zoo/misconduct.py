"""What no receiver should do, each alone; targets for `tests/zoo/misconduct.py:NAME`."""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path

from oncebench.receivers.immediate import receive as stays_right


def _file(db: sqlite3.Connection) -> Path:
    return Path(db.execute("PRAGMA database_list").fetchone()[2])


def changes_the_journal_mode(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """To leave WAL mode needs the whole file, so it is refused where anybody else has it open."""
    (mode,) = db.execute("PRAGMA journal_mode").fetchone()
    db.execute(f"PRAGMA journal_mode = {'delete' if mode == 'wal' else 'wal'}").fetchone()
    return stays_right(db, id, qty)


def keeps_the_store_to_itself(db: sqlite3.Connection, id: str, qty: int) -> bool:
    db.execute("PRAGMA locking_mode = EXCLUSIVE")
    return stays_right(db, id, qty)


def damages_the_file(db: sqlite3.Connection, id: str, qty: int) -> bool:
    done = stays_right(db, id, qty)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    with _file(db).open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 8192)
    return done


def removes_the_file(db: sqlite3.Connection, id: str, qty: int) -> bool:
    done = stays_right(db, id, qty)
    _file(db).unlink(missing_ok=True)
    return done


def drops_the_inbox(db: sqlite3.Connection, id: str, qty: int) -> bool:
    done = stays_right(db, id, qty)
    db.execute("DROP TABLE inbox")
    return done


def renames_a_column(db: sqlite3.Connection, id: str, qty: int) -> bool:
    done = stays_right(db, id, qty)
    db.execute("ALTER TABLE stock RENAME COLUMN total TO amount")
    return done


def _drop_the_triggers(db: sqlite3.Connection) -> None:
    for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        db.execute(f"DROP TRIGGER IF EXISTS {name}")


def drops_the_triggers(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """As whoever makes a table anew does; the work is right."""
    _drop_the_triggers(db)
    return stays_right(db, id, qty)


def doubles_unwatched(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """The same, and the work is wrong."""
    _drop_the_triggers(db)
    db.execute("UPDATE stock SET total = total + ?", (qty,))
    return stays_right(db, id, qty)


def drops_the_witness(db: sqlite3.Connection, id: str, qty: int) -> bool:
    db.execute("DROP TABLE IF EXISTS oncebench_witness")
    return stays_right(db, id, qty)


def prints_megabytes(db: sqlite3.Connection, id: str, qty: int) -> bool:
    print("x" * 1_000_000)
    print("x" * 1_000_000, file=sys.stderr)
    return stays_right(db, id, qty)


def leaves_by_sys_exit(db: sqlite3.Connection, id: str, qty: int) -> bool:
    sys.exit(3)


def is_gone_at_once(db: sqlite3.Connection, id: str, qty: int) -> bool:
    os._exit(3)


def raises_keyboard_interrupt(db: sqlite3.Connection, id: str, qty: int) -> bool:
    raise KeyboardInterrupt


def answers_yes(db: sqlite3.Connection, id: str, qty: int) -> str:
    return "yes" if stays_right(db, id, qty) else ""


def answers_none(db: sqlite3.Connection, id: str, qty: int) -> None:
    stays_right(db, id, qty)
