"""Wrong twins of the documented examples."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiosqlite
from peewee import BigIntegerField, Model, SqliteDatabase, TextField
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from oncebench import Conflict

KNOWN = text("SELECT qty FROM inbox WHERE id = :id")
TOTAL = text("SELECT total FROM stock")
RECORD = text("INSERT INTO inbox VALUES (:id, :qty)")
SET = text("UPDATE stock SET total = :total")


class OnAiosqlite:
    """The driver begins a transaction before the first write: the look is outside of it."""

    async def connect(self, path: Path) -> aiosqlite.Connection:
        return await aiosqlite.connect(path)

    async def receive(self, db: aiosqlite.Connection, id: str, qty: int) -> bool:
        rows = await db.execute_fetchall("SELECT qty FROM inbox WHERE id = ?", (id,))
        for (known,) in rows:
            if known != qty:
                raise Conflict(id)
            return False
        await db.execute("UPDATE stock SET total = total + ?", (qty,))
        await db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, qty))
        await db.commit()
        return True


class OnSession:
    """The session's transaction begins, for SQLite, with its first write: the total was read before."""

    def connect(self, path: Path) -> Engine:
        return create_engine(f"sqlite:///{path}")

    def receive(self, engine: Engine, id: str, qty: int) -> bool:
        message: Mapping[str, Any] = {"id": id, "qty": qty}
        with Session(engine) as session, session.begin():
            known = session.scalar(KNOWN, message)
            if known is not None and known != qty:
                raise Conflict(id)
            if known is None:
                total = session.scalar(TOTAL)
                session.execute(RECORD, message)
                session.execute(SET, {"total": total + qty})
            return known is None


class OnAsyncSession:
    """The same with asyncio."""

    async def connect(self, path: Path) -> AsyncEngine:
        return create_async_engine(f"sqlite+aiosqlite:///{path}")

    async def receive(self, engine: AsyncEngine, id: str, qty: int) -> bool:
        message: Mapping[str, Any] = {"id": id, "qty": qty}
        async with AsyncSession(engine) as session, session.begin():
            known = await session.scalar(KNOWN, message)
            if known is not None and known != qty:
                raise Conflict(id)
            if known is None:
                total = await session.scalar(TOTAL)
                await session.execute(RECORD, message)
                await session.execute(SET, {"total": total + qty})
            return known is None


class Inbox(Model):
    id = TextField(primary_key=True)
    qty = BigIntegerField()


class Stock(Model):
    total = BigIntegerField(primary_key=True)


class OnPeewee:
    """Without `atomic()` each statement is a transaction by itself."""

    def connect(self, path: Path) -> SqliteDatabase:
        db = SqliteDatabase(str(path))
        db.bind([Inbox, Stock])
        return db

    def receive(self, db: SqliteDatabase, id: str, qty: int) -> bool:
        known = Inbox.get_or_none(Inbox.id == id)
        if known and known.qty != qty:
            raise Conflict(id)
        if not known:
            Stock.update(total=Stock.total + qty).execute()
            Inbox.create(id=id, qty=qty)
        return not known
