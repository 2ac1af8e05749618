"""Warehouse and publisher each by itself, for a person with two terminals and `kill -9`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from oncebench.messages import BadInput
from oncebench.receivers.loader import Receiver
from oncebench.stores import sqlite
from oncebench.wire.log import Log
from oncebench.wire.loopback import PATH, listen
from oncebench.wire.outbox import Outbox, Row
from oncebench.wire.publisher import GaveUp, Patience, Publisher


def serve(
    receiver: Receiver,
    settings: sqlite.Settings,
    *,
    host: str,
    port: int,
    store: Path,
    keep_log: Path | None,
    say: Callable[[str], None],
) -> None:
    """Be the warehouse until a signal comes; a store that is there already is used as it is.

    Args:
        receiver: The code under test.
        settings: How connections are opened.
        host: An address of this machine.
        port: 0 for a free one.
        store: Path of the store. It stays: it is what a warehouse comes back to after `kill -9`.
        keep_log: Where deliveries are written down; nowhere if not given.
        say: Told the address, once it is taken.

    Raises:
        BadInput: The address is outside this machine or taken, or the store cannot be used.
    """
    from oncebench.wire import server
    from oncebench.wire.warehouse import Warehouse

    if receiver.serve is not None:
        raise BadInput(
            f"{receiver.name} has a process of its own beside its workers, which wire does not start"
        )
    with contextlib.ExitStack() as stack:
        door = stack.enter_context(listen(host, port))
        if receiver.own_setup is None:
            sqlite.refuse_foreign(store)
        if not store.exists():
            receiver.setup(store, settings, watched=True)
        events = Log(keep_log, "server")
        stack.callback(events.close)
        warehouse = Warehouse(receiver, store, settings, log=events)
        stack.callback(warehouse.close)
        address = f"[{host}]" if ":" in host else host
        say(
            f"http://{address}:{door.getsockname()[1]}{PATH} takes messages for {receiver.name} "
            "(for teaching: no accounts, no encryption, this machine only); Ctrl-C ends it"
        )
        app = server.application(warehouse.receive, payloads=receiver.receive_payload is not None)
        server.serve(app, door)


def publish(
    outbox: Path,
    url: str,
    messages: Sequence[tuple[str, int]],
    patience: Patience,
    *,
    seed: int,
    keep_log: Path | None,
) -> tuple[list[Row], str]:
    """Add messages to an outbox and send all that is pending in it.

    Args:
        outbox: Path of its database, made if there is none.
        url: Of a warehouse on this machine.
        messages: Ids and quantities to add first.
        patience: How to wait.
        seed: For the length of waits.
        keep_log: Where requests are written down; nowhere if not given.

    Returns:
        All rows, and why the publisher gave up; empty if it did not.

    Raises:
        BadInput: The outbox cannot be used, a message is none, or the address is outside this machine.
    """
    box = Outbox(outbox)
    events = Log(keep_log, "publisher")
    try:
        publisher = Publisher(box, url, patience, seed=seed, log=events)
        for id, qty in messages:
            box.put(id, qty)
        why = ""
        try:
            publisher.run()
        except GaveUp as gave_up:
            why = str(gave_up)
        return box.rows(), why
    finally:
        box.close()
        events.close()
