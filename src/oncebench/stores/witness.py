"""The witness: each effect and each inbox change, written by triggers in the transaction that made it.

What a receiver answers is a claim; what it rolled back never was. A row that a trigger wrote in the
receiver's own transaction is there exactly if the effect is.

The triggers that see are part of the schema, so changes over any connection are seen. Who made them
is known only on the bench's own connections: a TEMP trigger fills in the number of the call. (Functions
of the application in a schema's own triggers would break every connection that lacks them.)

SQLite leaves changes by triggers out of `changes()`, `Cursor.rowcount` and `lastrowid`, but not out of
`total_changes` (https://sqlite.org/c3ref/total_changes.html), so `Witnessed` takes them out again.

REPLACE deletes rows without their triggers (https://sqlite.org/lang_conflict.html), so what an insert does
to the total is the sum after it less the sum before it.
"""

from __future__ import annotations

import re
import sqlite3
import time

from oncebench.messages import Event, Witness

SCHEMA = f"""
CREATE TABLE oncebench_witness(
    seq INTEGER PRIMARY KEY, event INTEGER NOT NULL, id TEXT, amount INTEGER, call INTEGER, at INTEGER
);
CREATE TRIGGER oncebench_effect AFTER UPDATE ON stock WHEN new.total IS NOT old.total BEGIN
    INSERT INTO oncebench_witness(event, amount) VALUES ({Event.EFFECT}, new.total - old.total); END;
CREATE TRIGGER oncebench_restocking BEFORE INSERT ON stock
WHEN EXISTS (SELECT 1 FROM stock WHERE total != 0) BEGIN
    INSERT INTO oncebench_witness(event, amount) SELECT {Event.EFFECT}, -sum(total) FROM stock; END;
CREATE TRIGGER oncebench_restocked AFTER INSERT ON stock BEGIN
    INSERT INTO oncebench_witness(event, amount) SELECT {Event.EFFECT}, sum(total) FROM stock; END;
CREATE TRIGGER oncebench_unstocked AFTER DELETE ON stock BEGIN
    INSERT INTO oncebench_witness(event, amount) VALUES ({Event.EFFECT}, -old.total); END;
CREATE TRIGGER oncebench_recorded AFTER INSERT ON inbox BEGIN
    INSERT INTO oncebench_witness(event, id, amount) VALUES ({Event.RECORDED}, new.id, new.qty); END;
CREATE TRIGGER oncebench_erased AFTER DELETE ON inbox BEGIN
    INSERT INTO oncebench_witness(event, id, amount) VALUES ({Event.ERASED}, old.id, old.qty); END;
CREATE TRIGGER oncebench_rewritten AFTER UPDATE ON inbox
WHEN new.id IS NOT old.id OR new.qty IS NOT old.qty BEGIN
    INSERT INTO oncebench_witness(event, id, amount) VALUES ({Event.ERASED}, old.id, old.qty);
    INSERT INTO oncebench_witness(event, id, amount) VALUES ({Event.RECORDED}, new.id, new.qty); END;
"""

_TRIGGERS = frozenset(re.findall(r"CREATE TRIGGER (\w+) \w+ \w+ ON (\w+)", SCHEMA))
"""Each with its table."""
_CHANGES_PER_ROW = 2  # the row itself, and the call filled in


class Witnessed(sqlite3.Connection):
    """A connection whose changes the witness can attribute to calls."""

    call = -1
    """Number of the call under way; its worker sets it before each."""
    _rows = 0

    def attribute_changes(self) -> None:
        """From now on, fill in the call that each change belongs to."""

        def call() -> int:
            self._rows += 1
            return self.call

        self.create_function("oncebench_call", 0, call)
        self.create_function("oncebench_now", 0, time.perf_counter_ns)
        self.create_function("total_changes", 0, lambda: self.total_changes)
        self.execute(
            "CREATE TEMP TRIGGER oncebench_attributed AFTER INSERT ON main.oncebench_witness BEGIN "
            "UPDATE oncebench_witness SET call = oncebench_call(), at = oncebench_now() "
            "WHERE seq = new.seq; END"
        )

    @property
    def total_changes(self) -> int:
        """Changes over this connection, without the witness's own."""
        changes: int = super().total_changes
        return changes - _CHANGES_PER_ROW * self._rows


def setup(db: sqlite3.Connection) -> None:
    """Put the triggers into a store that has the bench's own tables."""
    db.executescript(SCHEMA)


def is_present(db: sqlite3.Connection) -> bool:
    """Whether the store has a witness."""
    found = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'oncebench_witness'").fetchone()
    return bool(found[0])


def is_whole(db: sqlite3.Connection) -> bool:
    """Whether all its triggers are where they were put: else it has not seen everything."""
    found = db.execute("SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'").fetchall()
    return set(found) >= _TRIGGERS


def read(db: sqlite3.Connection, after: int = 0) -> Witness | None:
    """All rows after a number, as columns; None where the store has no witness, or no whole one any more."""
    import numpy as np

    if not is_whole(db):
        return None
    rows = db.execute(
        "SELECT event, amount, coalesce(call, -1), coalesce(at, 0), id FROM oncebench_witness "
        "WHERE seq > ? ORDER BY seq",
        (after,),
    ).fetchall()
    events, amounts, calls, times, ids = zip(*rows, strict=True) if rows else ((), (), (), (), ())

    def column(values: tuple[object, ...]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array([v if isinstance(v, int) else 0 for v in values], dtype=np.int64)

    return Witness(column(events), column(amounts), column(calls), column(times), ids)
