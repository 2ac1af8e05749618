"""An inbox through an SQLAlchemy session, whose transactions begin with BEGIN IMMEDIATE."""

from sqlalchemy import create_engine, event, text
from sqlalchemy.orm import Session

from oncebench import Conflict


class Receiver:
    def connect(self, path):
        engine = create_engine(f"sqlite:///{path}")
        event.listen(engine, "connect", lambda db, _: setattr(db, "isolation_level", None))
        event.listen(engine, "begin", lambda db: db.exec_driver_sql("BEGIN IMMEDIATE"))
        return engine

    def receive(self, engine, id, qty):
        message = {"id": id, "qty": qty}
        with Session(engine) as session, session.begin():
            known = session.scalar(text("SELECT qty FROM inbox WHERE id = :id"), message)
            if known is not None and known != qty:
                raise Conflict(id)
            if known is None:
                session.execute(text("INSERT INTO inbox VALUES (:id, :qty)"), message)
                session.execute(text("UPDATE stock SET total = total + :qty"), message)
            return known is None
