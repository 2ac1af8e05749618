"""An inbox on aiosqlite: one transaction for the look and the work, begun by hand."""

import aiosqlite

from oncebench import Conflict


class Receiver:
    async def connect(self, path):
        return await aiosqlite.connect(path, isolation_level=None)  # no BEGIN but ours

    async def receive(self, db, id, qty):
        await db.execute("BEGIN IMMEDIATE")
        try:
            cursor = await db.execute("SELECT qty FROM inbox WHERE id = ?", (id,))
            row = await cursor.fetchone()
            if row and row[0] != qty:
                raise Conflict(id)
            if not row:
                await db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
                await db.execute("UPDATE stock SET total = total + ?", (qty,))
            await db.commit()
            return not row
        except BaseException:
            await db.rollback()
            raise
