"""What can be told of a statement by its text."""

from __future__ import annotations

import functools
import re
import sqlite3
from collections.abc import Iterator

_FIRST_WORD = re.compile(r"(?:\s|;|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*(\w*)", re.DOTALL)


@functools.cache
def first_word(sql: str) -> str:
    """The keyword a statement begins with, in capitals; empty for a comment."""
    match = _FIRST_WORD.match(sql)
    return match[1].upper() if match else ""


def statements(script: str) -> Iterator[str]:
    """The statements of a script, as SQLite takes them one after another."""
    start = 0
    for end, letter in enumerate(script, 1):
        if letter == ";" and sqlite3.complete_statement(script[start:end]):
            if first_word(script[start:end]):
                yield script[start:end].strip()
            start = end
    if first_word(script[start:]):
        yield script[start:].strip()
