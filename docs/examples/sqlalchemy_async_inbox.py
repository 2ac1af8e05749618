"""An inbox through SQLAlchemy's asyncio session, whose transactions begin with BEGIN IMMEDIATE."""

from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from oncebench import Conflict


class Receiver:
    async def connect(self, path):
        engine = create_async_engine(f"sqlite+aiosqlite:///{path}")
        event.listen(engine.sync_engine, "connect", lambda db, _: setattr(db, "isolation_level", None))
        event.listen(engine.sync_engine, "begin", lambda db: db.exec_driver_sql("BEGIN IMMEDIATE"))
        return engine

    async def receive(self, engine, id, qty):
        message = {"id": id, "qty": qty}
        async with AsyncSession(engine) as session, session.begin():
            known = await session.scalar(text("SELECT qty FROM inbox WHERE id = :id"), message)
            if known is not None and known != qty:
                raise Conflict(id)
            if known is None:
                await session.execute(text("INSERT INTO inbox VALUES (:id, :qty)"), message)
                await session.execute(text("UPDATE stock SET total = total + :qty"), message)
            return known is None
