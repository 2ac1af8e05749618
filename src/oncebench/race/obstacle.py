"""Locks that a worker holds in the way of the others, over a connection beside the receiver's."""

from __future__ import annotations

import contextlib
import random
import sqlite3
import time

from oncebench.stores import sqlite

OBSTRUCTED = 0.25
"""Share of deliveries in an impatient phase before which a worker holds a lock that others need."""
LONGEST_OBSTRUCTION = 0.003
"""Seconds."""


def second_connection(store: str) -> sqlite3.Connection | None:
    """Another connection to the store, to stand in the way; None if that is not an SQLite file."""
    try:
        obstacle = sqlite.connect(store, sqlite.Settings(busy_timeout=0))
        obstacle.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        return None
    return obstacle


def obstruct(obstacle: sqlite3.Connection, rng: random.Random) -> None:
    """Now and then hold a lock for a moment.

    A writer's stops all who write; a reader's, in rollback mode, all who commit.
    """
    if rng.random() >= OBSTRUCTED:
        return
    writes = rng.random() < 0.5
    with contextlib.suppress(sqlite3.DatabaseError):  # somebody else is in the way already, or worse
        obstacle.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
        obstacle.execute("SELECT count(*) FROM sqlite_master").fetchone()
    time.sleep(rng.random() * LONGEST_OBSTRUCTION)
    obstacle.rollback()
