"""An inbox through peewee: one atomic block for the look and the work, begun with BEGIN IMMEDIATE."""

from peewee import BigIntegerField, Model, SqliteDatabase, TextField

from oncebench import Conflict


class Inbox(Model):
    id = TextField(primary_key=True)
    qty = BigIntegerField()


class Stock(Model):
    total = BigIntegerField(primary_key=True)


db = SqliteDatabase(None)
db.bind([Inbox, Stock])


class Receiver:
    def connect(self, path):
        db.init(path)
        return db

    def receive(self, db, id, qty):
        with db.atomic("IMMEDIATE"):
            known = Inbox.get_or_none(Inbox.id == id)
            if known and known.qty != qty:
                raise Conflict(id)
            if not known:
                Inbox.create(id=id, qty=qty)
                Stock.update(total=Stock.total + qty).execute()
            return not known
