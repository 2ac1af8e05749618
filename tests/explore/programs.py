"""Small programs of SQL that hypothesis makes up: what a receiver does is drawn, not written."""

import sqlite3
from dataclasses import dataclass

from hypothesis import strategies as st

from oncebench.explore.plan import Plan
from oncebench.messages import Delivery

STATEMENTS = {
    "begin": "BEGIN",
    "immediate": "BEGIN IMMEDIATE",
    "exclusive": "BEGIN EXCLUSIVE",
    "look": "SELECT total FROM stock",
    "find": "SELECT qty FROM inbox WHERE id = 'x'",
    "add": "UPDATE stock SET total = total + 1",
    "write back": "UPDATE stock SET total = {seen} + 2",
    "same": "UPDATE stock SET total = total",
    "put": "INSERT OR IGNORE INTO inbox VALUES ('x', {seen} + 1)",
    "take": "DELETE FROM inbox WHERE id = 'x'",
    "commit": "COMMIT",
    "rollback": "ROLLBACK",
}


@dataclass(frozen=True)
class Program:
    """What a worker runs for its message; `stubborn` ones go on after an error."""

    statements: tuple[str, ...]
    stubborn: bool
    keeps_cursor: bool

    def __call__(self, db: sqlite3.Connection) -> bool:
        seen = 0
        kept = []
        for name in self.statements:
            try:
                cursor = db.execute(STATEMENTS[name].format(seen=seen))
                row = cursor.fetchone()
                if row is not None:
                    seen = row[0]
                if self.keeps_cursor:
                    kept.append(cursor)
            except sqlite3.Error:
                if not self.stubborn:
                    raise
        return seen == 0


@dataclass(frozen=True)
class Programs:
    """A receiver: message m1 runs the first program, m2 the second, ..."""

    programs: tuple[Program, ...]

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        return self.programs[qty - 1](db)

    @property
    def plan(self) -> Plan:
        return Plan(tuple((Delivery(f"m{n}", n),) for n in range(1, len(self.programs) + 1)))


def programs(workers: int, longest: int) -> st.SearchStrategy[Programs]:
    """Receivers with a program for each worker; many of them make transactions of some kind."""
    loose = st.lists(st.sampled_from(sorted(STATEMENTS)), min_size=1, max_size=longest)
    inside = st.lists(
        st.sampled_from(["look", "find", "add", "write back", "put", "same"]),
        min_size=1,
        max_size=longest - 2,
    )
    transaction = st.builds(
        lambda begin, body, end: [begin, *body, end],
        st.sampled_from(["begin", "immediate", "exclusive"]),
        inside,
        st.sampled_from(["commit", "commit", "rollback"]),
    )
    one = st.builds(Program, st.one_of(transaction, loose).map(tuple), st.booleans(), st.booleans())
    return st.tuples(*[one] * workers).map(Programs)
