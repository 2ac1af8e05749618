"""Receivers whose coroutines may share a connection."""

import asyncio
import sqlite3
from pathlib import Path

import aiosqlite

from oncebench.messages import Conflict
from oncebench.receivers import immediate


async def receive(db: aiosqlite.Connection, id: str, qty: int) -> bool:
    """Right wherever nobody else has the connection meanwhile."""
    try:
        await db.execute("BEGIN IMMEDIATE")
        rows = await db.execute_fetchall("SELECT qty FROM inbox WHERE id = ?", (id,))
        known = [qty for (qty,) in rows]
        if known and known != [qty]:
            raise Conflict(id)
        if not known:
            await db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
            await db.execute("UPDATE stock SET total = total + ?", (qty,))
        await db.commit()
        return not known
    except BaseException:
        await db.rollback()
        raise


class OneForAll:
    """Wrong: one connection for all coroutines, so that one's rollback undoes another's work."""

    def __init__(self) -> None:
        self.opened: asyncio.Task[aiosqlite.Connection] | None = None

    async def connect(self, path: Path) -> aiosqlite.Connection:
        if self.opened is None:

            async def opening() -> aiosqlite.Connection:
                return await aiosqlite.connect(path, isolation_level=None)

            self.opened = asyncio.create_task(opening())
        return await self.opened

    async def receive(self, db: aiosqlite.Connection, id: str, qty: int) -> bool:
        return await receive(db, id, qty)


class Taken(OneForAll):
    """Right: whoever has the connection has it alone until the transaction has ended."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = asyncio.Lock()

    async def receive(self, db: aiosqlite.Connection, id: str, qty: int) -> bool:
        async with self.turn:
            return await receive(db, id, qty)


class OneEach:
    """Right: each coroutine has its own."""

    async def connect(self, path: Path) -> aiosqlite.Connection:
        return await aiosqlite.connect(path, isolation_level=None)

    async def receive(self, db: aiosqlite.Connection, id: str, qty: int) -> bool:
        return await receive(db, id, qty)


class LockOfOneLoop:
    """Wrong: a lock of the loop instead of a transaction; coroutines are kept apart, processes are not."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()

    async def connect(self, path: Path) -> aiosqlite.Connection:
        return await aiosqlite.connect(path, isolation_level=None)

    async def receive(self, db: aiosqlite.Connection, id: str, qty: int) -> bool:
        async with self.turn:
            rows = await db.execute_fetchall("SELECT qty FROM inbox WHERE id = ?", (id,))
            known = [qty for (qty,) in rows]
            if known and known != [qty]:
                raise Conflict(id)
            if not known:
                await db.execute("UPDATE stock SET total = total + ?", (qty,))
                await db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
            return not known


class OnPlainConnections:
    """Right: it never waits between BEGIN and COMMIT, so that no other of its loop waits for its lock."""

    async def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        await asyncio.sleep(0)
        return immediate.receive(db, id, qty)
