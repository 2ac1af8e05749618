"""How long to remember: messages in order, then late redeliveries of older and older ones.

A store that forgets a message takes its redelivery for new work. How late one can come, the publisher's
patience says; how many messages come in that time, the rate.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx

from oncebench.messages import BadInput, State
from oncebench.receivers.loader import Receiver
from oncebench.receivers.retention import set_window
from oncebench.wire import log, loopback
from oncebench.wire.campaign import Campaign, Setting, read_log
from oncebench.wire.plan import Plan
from oncebench.wire.process import Processes

QTY = 1


@dataclass(frozen=True, slots=True)
class Late:
    """One late redelivery.

    Attributes:
        lag: Messages that came after the first delivery.
        way: "http" or "in process".
        answer: The status, or what the receiver answered.
        effects: Of this id at the end; None where the campaign's witness says it.
    """

    id: str
    lag: int
    way: str
    answer: str
    effects: int | None


def lags(keep: int) -> list[int]:
    """Within the window, at its edge, and beyond; `keep` newer messages push one out."""
    return sorted({0, keep // 2, keep - 1, keep, keep + 1, 2 * keep})


def over_http(receiver: Receiver, keep: int, setting: Setting) -> tuple[Campaign, float, list[Late]]:
    """Measure with a real server.

    Args:
        receiver: The code under test.
        keep: Messages that a store which prunes is to remember.
        setting: With what.

    Returns:
        What a campaign leaves, messages a second, and the late redeliveries.

    Raises:
        BadInput: The window is out of bounds, or the server cannot begin.
    """
    _check(keep)
    ran = Campaign(receiver.name, Plan(), setting)
    with tempfile.TemporaryDirectory(prefix="oncebench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        store, events = folder / "store.db", folder / "events.jsonl"
        _make(receiver, store, keep, setting)
        ran.before = receiver.observe(store)
        with loopback.listen(port=setting.port) as door, Processes(folder) as processes:
            job = {
                "target": receiver.name, "store": str(store), "settings": asdict(setting.settings),
                "connections": 1, "first_worker": 1, "pause": 0.0, "log": str(events), "name": "server 1",
                "door": door.fileno(), "kill": None,
            }  # fmt: skip
            server = processes.start("server", "server 1", job, door.fileno())
            while not server.ready:
                processes.hear(0.1)
            url = f"http://127.0.0.1:{door.getsockname()[1]}{loopback.PATH}"
            requests: Counter[str] = Counter()
            with httpx.Client(trust_env=False, timeout=setting.patience.timeout + 30) as client:

                def send(id: str) -> str:
                    requests[id] += 1
                    return str(client.post(url, json={"id": id, "qty": QTY}).status_code)

                began = time.monotonic()
                rate, late = _send_all(send, keep, "http")
                ran.seconds = time.monotonic() - began
        read_log(ran, list(log.read(events)))
        ran.requests = requests
        ran.after = receiver.observe(store)
    return ran, rate, late


def in_process(receiver: Receiver, keep: int, setting: Setting) -> list[Late]:
    """The same deliveries without a wire.

    Raises:
        BadInput: The window is out of bounds.
    """
    _check(keep)
    with tempfile.TemporaryDirectory(prefix="oncebench-") as name:
        store = Path(name) / "store.db"
        _make(receiver, store, keep, setting)
        db = receiver.connect(store, setting.settings)

        def receive(id: str) -> str:
            try:
                return str(receiver.receive(db, id, QTY))
            except Exception as error:
                return type(error).__name__

        _, late = _send_all(receive, keep, "in process")
        receiver.close(db)
        rows = Counter(_ids(receiver.observe(store)))
    return [Late(one.id, one.lag, one.way, one.answer, rows[one.id]) for one in late]


def _ids(state: State) -> list[str]:
    return [id for id, _ in state.inbox]


def _send_all(send: Callable[[str], str], keep: int, way: str) -> tuple[float, list[Late]]:
    count = 2 * keep + 1
    began = time.monotonic()
    for n in range(count):
        send(f"order-{n}")
    rate = count / (time.monotonic() - began)
    late = []
    for lag in lags(keep):
        id = f"order-{count - 1 - lag}"
        late.append(Late(id, lag, way, send(id), None))
    return rate, late


def _make(receiver: Receiver, store: Path, keep: int, setting: Setting) -> None:
    receiver.setup(store, setting.settings, watched=True)
    if receiver.own_setup is None:  # a store of their own has a window of their own
        set_window(store, keep)


def _check(keep: int) -> None:
    if not 1 <= keep <= 100_000:
        raise BadInput(f"retain must be 1 to 100000, not {keep}")
