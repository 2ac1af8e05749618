"""Wrong: the work is done in a forked child, over the connection that the parent has opened.

SQLite's locks and caches do not come with a fork, and the file may be corrupt afterwards.
Repair: fork first and connect in the child, as in `forked_first`.
"""

import os
import sqlite3

from oncebench.messages import Conflict
from oncebench.receivers import immediate

CONFLICT, FAILED = 2, 3


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, or ruin the store."""
    child = os.fork()
    if not child:
        os._exit(apply(db, id, qty))
    return answer(child)


def apply(db: sqlite3.Connection, id: str, qty: int) -> int:
    """In the child: do it, and put the answer into a code."""
    try:
        return immediate.receive(db, id, qty)
    except Conflict:
        return CONFLICT
    except BaseException:
        return FAILED


def answer(child: int) -> bool:
    """In the parent: what the child's code says."""
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == CONFLICT:
        raise Conflict
    if code not in (True, False):
        raise RuntimeError(f"the child ended with {code}")
    return bool(code)
