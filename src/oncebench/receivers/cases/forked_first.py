"""Right: the child is forked first, and opens a connection of its own.

What is handed from process to process is the path, never a connection.
"""

import os
import sqlite3
from pathlib import Path

from oncebench.receivers.cases.forked import answer, apply


def connect(path: Path) -> Path:
    """Open nothing yet."""
    return path


def receive(path: Path, id: str, qty: int) -> bool:
    """Apply `(id, qty)` once, in a child."""
    child = os.fork()
    if not child:
        os._exit(apply(sqlite3.connect(path, isolation_level=None), id, qty))
    return answer(child)
