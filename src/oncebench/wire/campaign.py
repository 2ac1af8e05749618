"""A campaign: publisher, proxy and warehouse as processes, killed and started again, until all is proven.

What comes out is a history and two states, as from every other way of running, so the one audit judges it.
The history has a row for each call of the receiver, and one for each message of the outbox: what its
publisher believes. `done` is an answer `duplicate` or better, that is the claim that it is in the inbox.
"""

from __future__ import annotations

import signal
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from oncebench.messages import BadInput, History, State
from oncebench.receivers.loader import Receiver
from oncebench.stores import sqlite
from oncebench.wire import log, loopback
from oncebench.wire.outbox import Outbox, Row
from oncebench.wire.plan import Plan
from oncebench.wire.process import Child, Kill, Processes, end
from oncebench.wire.publisher import Patience
from oncebench.wire.reading import calls, conclusions

_TICK = 0.1
_FINISH = 10.0  # seconds for the proxy to bring through what it has
_MOST_RESTARTS = 2_000


@dataclass(frozen=True, slots=True)
class Setting:
    """With what a campaign runs.

    Attributes:
        settings: How connections to the store are opened.
        servers: Server processes on one port.
        connections: Connections of each, so deliveries that it works on at once.
        pause: Seconds before each statement, to widen what lies between two.
        patience: How the publisher waits.
        deadline: Seconds for the whole campaign.
        port: Of the servers; 0 for a free one.
    """

    settings: sqlite.Settings = field(default_factory=lambda: sqlite.Settings(busy_timeout=0.05))
    servers: int = 2
    connections: int = 2
    pause: float = 0.002
    patience: Patience = field(default_factory=lambda: Patience(0.25, 0.005, 0.05, 15.0))
    deadline: float = 120.0
    port: int = 0

    def __post_init__(self) -> None:
        for name, least, most in (("servers", 1, 64), ("connections", 1, 64)):
            if not least <= getattr(self, name) <= most:
                raise BadInput(f"{name} must be {least} to {most}, not {getattr(self, name)}")
        if not 0 < self.deadline <= 86_400:
            raise BadInput(f"the deadline must be more than 0 s and at most a day, not {self.deadline:g} s")


@dataclass(frozen=True, slots=True)
class Dead:
    """One process that died.

    Attributes:
        who: Its name.
        point: Where it was killed, and which occurrence of it; None if nobody planned it.
        at: Monotonic nanoseconds when it was noticed.
        recovery: Nanoseconds until the next proof came in; None if none did.
    """

    who: str
    point: Kill | None
    at: int
    recovery: int | None = None


@dataclass
class Campaign:
    """What one left behind.

    Attributes:
        history: A row for each call of the receiver, then one for each row of the outbox.
        calls: Of them, how many are calls of the receiver.
        stuck: Rows of the history whose message was never proven.
        before: The store before the first request.
        after: The store after the last.
        outbox: Its rows at the end.
        requests: Per id, how often its publisher sent it.
        met: How many requests met each fault.
        deaths: In order.
        seconds: From the first request to the last proof or the end.
        notes: What a reader must know.
        interrupted: Whether Ctrl-C ended it.
        timed_out: Whether its deadline ended it.
        foreign_lock: Whether another program held the store locked at the end.
    """

    receiver: str
    plan: Plan
    setting: Setting
    history: History = field(default_factory=lambda: History.of([]))
    calls: int = 0
    stuck: list[int] = field(default_factory=list)
    before: State | None = None
    after: State | None = None
    outbox: list[Row] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)
    met: Counter[str] = field(default_factory=Counter)
    deaths: list[Dead] = field(default_factory=list)
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    timed_out: bool = False
    foreign_lock: bool = False

    @property
    def complete(self) -> bool:
        """Whether nothing is missing that a verdict needs."""
        return self.after is not None and not self.interrupted and not self.foreign_lock


def campaign(
    receiver: Receiver,
    plan: Plan,
    setting: Setting,
    *,
    store: Path | None = None,
    keep_log: Path | None = None,
    progress: Callable[[int, int], None] = lambda done, planned: None,
) -> Campaign:
    """Run one.

    Args:
        receiver: The code under test; its servers load it by name.
        plan: What is sent, and what goes wrong.
        setting: With what.
        store: Where the store goes, and stays; in a temporary folder if not given.
        keep_log: Where the log goes, and stays; behind what is there already.
        progress: Called a few times a second with rows that are settled, and all.

    Raises:
        BadInput: The store or the log cannot be made, the port is taken, or a process cannot begin.
    """
    if receiver.serve is not None:
        raise BadInput(
            f"{receiver.name} has a process of its own beside its workers, which wire does not start: "
            f"race it with `oncebench run {receiver.name}`"
        )
    if store is not None:
        sqlite.refuse_foreign(store)
        sqlite.remove(store)
    with tempfile.TemporaryDirectory(prefix="oncebench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        events = keep_log or folder / "events.jsonl"
        try:
            events.open("ab").close()
        except OSError as error:
            raise BadInput(
                f"cannot write the log {events}: {error.strerror}: name another with --log"
            ) from error
        ran = _Run(receiver, plan, setting, folder, store or folder / "store.db", events, progress)
        return ran.run()


class _Run:
    def __init__(
        self,
        receiver: Receiver,
        plan: Plan,
        setting: Setting,
        folder: Path,
        store: Path,
        events: Path,
        progress: Callable[[int, int], None],
    ) -> None:
        self._receiver = receiver
        self._plan = plan
        self._setting = setting
        self._folder = folder
        self._store = store
        self._events = events
        self._progress = progress
        self._campaign = Campaign(receiver.name, plan, setting)
        self._kills = {"publisher": list(plan.publisher_kills), "server": list(plan.server_kills)}
        self._doomed: dict[str, Kill | None] = {}
        self._servers: list[Child] = []
        self._started = Counter[str]()
        self._outbox_path = folder / "outbox.db"
        self._first_event = events.stat().st_size

    def run(self) -> Campaign:
        campaign = self._campaign
        self._receiver.setup(self._store, self._setting.settings, watched=True)
        outbox = Outbox(self._outbox_path)
        try:
            for row in self._plan.rows:
                outbox.put(row.id, row.qty)
            campaign.before = self._receiver.observe(self._store)
            try:
                self._run_processes(outbox)
            except KeyboardInterrupt:
                campaign.interrupted = True
                campaign.notes.append("interrupted: what had been measured until then is kept")
            campaign.outbox = outbox.rows()
        except sqlite.Unreadable as error:
            campaign.notes.append(f"no verdict can rest on this: {error}")
        finally:
            outbox.close()
        read_log(campaign, list(log.read(self._events, self._first_event)))
        self._observe()
        return campaign

    def _run_processes(self, outbox: Outbox) -> None:
        with (
            loopback.listen(port=self._setting.port) as warehouse,
            loopback.listen() as entrance,
            Processes(self._folder) as processes,
        ):
            self._warehouse, self._entrance, self._processes = warehouse, entrance, processes
            self._servers = [self._start_server() for _ in range(self._setting.servers)]
            proxy = self._start_proxy()
            self._await([*self._servers, proxy])
            publisher = self._start_publisher()
            began = time.monotonic()
            self._until_done(publisher, outbox, began + self._setting.deadline)
            self._campaign.seconds = time.monotonic() - began
            self._finish(proxy)

    def _until_done(self, publisher: Child, outbox: Outbox, limit: float) -> None:
        """Start again whoever dies, until the publisher says that it is done."""
        rows = len(self._plan.rows)
        while True:
            for child, message in self._processes.hear(_TICK):
                if message["said"] == "done":
                    if message["why"]:
                        self._campaign.notes.append(message["why"])
                    return
                if message["said"] != "gone":
                    continue
                self._died(child)
                if child is publisher:
                    publisher = self._start_publisher()
                elif child in self._servers:
                    self._servers[self._servers.index(child)] = self._start_server()
                else:
                    raise RuntimeError(f"the {child.name} ended: {child.errors.read_text()}")
            self._progress(rows - len(outbox.pending(rows)), rows)
            if time.monotonic() > limit or self._started.total() > _MOST_RESTARTS:
                self._campaign.timed_out = True
                self._campaign.notes.append(f"ended after {self._setting.deadline:g} s, its deadline")
                return

    def _died(self, child: Child) -> None:
        planned = self._doomed[child.name]
        if child.process.returncode != -signal.SIGKILL:
            said = child.errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            self._campaign.notes.append(
                f"the {child.name} ended by itself{f': {said[-1]}' if said else ''}, and was started again"
            )
            planned = None
        self._campaign.deaths.append(Dead(child.name, planned, time.perf_counter_ns()))

    def _await(self, children: list[Child]) -> None:
        while not all(child.ready for child in children):
            self._processes.hear(_TICK)

    def _finish(self, proxy: Child) -> None:
        """Let every request that is still on its way arrive; then end all."""
        proxy.say(finish=True)
        limit = time.monotonic() + _FINISH
        while not proxy.ended and time.monotonic() < limit:
            for child, message in self._processes.hear(_TICK):
                if message["said"] == "gone" and child in self._servers:  # a planned death of no consequence
                    self._died(child)
                    self._servers[self._servers.index(child)] = self._start_server()
        if not proxy.ended:
            self._campaign.notes.append(f"some requests had no answer {_FINISH:g} s after the last was sent")
        for server in self._servers:
            end(server)

    def _next_kill(self, role: str, name: str) -> Kill | None:
        kill = self._kills[role].pop(0) if self._kills[role] else None
        self._doomed[name] = kill
        return kill

    def _next_name(self, role: str) -> tuple[int, str]:
        self._started[role] += 1
        return self._started[role], f"{role} {self._started[role]}"

    def _start_server(self) -> Child:
        number, name = self._next_name("server")
        setting = self._setting
        job = {
            "target": self._receiver.name,
            "store": str(self._store),
            "settings": asdict(setting.settings),
            "connections": setting.connections,
            "first_worker": 1 + (number - 1) * setting.connections,
            "pause": setting.pause,
            "log": str(self._events),
            "name": name,
            "door": self._warehouse.fileno(),
            "kill": self._next_kill("server", name),
        }
        return self._processes.start("server", name, job, self._warehouse.fileno())

    def _start_proxy(self) -> Child:
        job = {
            "door": self._entrance.fileno(),
            "server": self._warehouse.getsockname()[:2],
            "faults": self._plan.faults,
            "late": 1.5 * self._setting.patience.timeout,
            "log": str(self._events),
        }
        self._doomed["proxy"] = None
        return self._processes.start("proxy", "proxy", job, self._entrance.fileno())

    def _start_publisher(self) -> Child:
        number, name = self._next_name("publisher")
        job = {
            "outbox": str(self._outbox_path),
            "url": f"http://127.0.0.1:{self._entrance.getsockname()[1]}{loopback.PATH}",
            "patience": asdict(self._setting.patience),
            "seed": self._plan.seed + number,
            "log": str(self._events),
            "kill": self._next_kill("publisher", name),
        }
        return self._processes.start("publisher", name, job)

    def _observe(self) -> None:
        """Read what is there, unless another program holds the store."""
        campaign = self._campaign
        if self._receiver.own_setup is None and _is_locked(self._store):
            campaign.foreign_lock = True
            campaign.notes.append(
                f"{self._store.name} is locked by another program: no verdict can rest on this; "
                "end that program and start again"
            )
            return
        try:
            campaign.after = self._receiver.observe(self._store)
        except sqlite.Unreadable as error:
            campaign.notes.append(f"no verdict can rest on this: {error}")


def _is_locked(store: Path) -> bool:
    """Whether a write lock can be had no more, though all servers are gone."""
    db = sqlite3.connect(store, isolation_level=None, timeout=1.0)
    try:
        db.execute("BEGIN IMMEDIATE")
        db.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
    finally:
        db.close()
    return False


def read_log(campaign: Campaign, lines: list[dict[str, Any]]) -> None:
    """Fill in calls and conclusions from what every process wrote down."""
    operations = calls(lines)
    campaign.calls = len(operations)
    campaign.stuck = [len(operations) + n for n, row in enumerate(campaign.outbox) if row.state == "pending"]
    operations += conclusions(campaign.outbox, lines)
    campaign.history = History.of(operations)
    campaign.requests = Counter(line["id"] for line in lines if line["event"] == "sent")
    campaign.met = Counter(
        line["fault"] for line in lines if line["event"] == "request" and line["fault"] != "well"
    )
    proofs = sorted(line["at"] for line in lines if line["event"] == "proved")
    campaign.deaths = [
        Dead(dead.who, dead.point, dead.at, next((at - dead.at for at in proofs if at > dead.at), None))
        for dead in campaign.deaths
    ]
