"""How long an inbox remembers: the window that the pruning variants share, and how their effects are read."""

import sqlite3
from pathlib import Path

from oncebench.messages import Event, State
from oncebench.stores import sqlite

_TABLE = "CREATE TABLE IF NOT EXISTS retention(keep INTEGER NOT NULL)"


def window(db: sqlite3.Connection, usual: int) -> int:
    """How many messages to remember, which the store may say; inside the caller's transaction."""
    db.execute(_TABLE)
    row = db.execute("SELECT keep FROM retention").fetchone()
    return usual if row is None else int(row[0])


def set_window(path: Path, keep: int) -> None:
    """Write the window into a store."""
    with sqlite3.connect(path, isolation_level=None) as db:
        db.execute(_TABLE)
        db.execute("DELETE FROM retention")
        db.execute("INSERT INTO retention VALUES (?)", (keep,))
    db.close()


def observe(path: Path) -> State:
    """The store with what was pruned still in the inbox, as the witness saw it.

    Forgetting a message is what these receivers are meant to do; what counts is whether it was applied again.
    """
    state = sqlite.read_state(path)
    seen = state.witness
    if seen is None:
        return state
    rows = zip(seen.event.tolist(), seen.id, seen.amount.tolist(), strict=True)
    pruned = [(id, qty) for event, id, qty in rows if event == Event.ERASED and id is not None]
    return State(state.total, [*pruned, *state.inbox])
