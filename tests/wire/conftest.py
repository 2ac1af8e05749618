"""A warehouse as a real process, spoken to over real sockets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from oncebench.messages import State
from oncebench.receivers.loader import load
from oncebench.stores.sqlite import Settings
from oncebench.wire import loopback
from oncebench.wire.process import Processes


class Warehouse:
    """One receiver, one store, one or several server processes on one port."""

    def __init__(self, folder: Path, processes: Processes, target: str, settings: Settings) -> None:
        self.store = folder / "warehouse.db"
        self.log = folder / "events.jsonl"
        self.receiver = load(target)
        self.receiver.setup(self.store, settings, watched=True)
        self.door = loopback.listen()
        self.port = self.door.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}{loopback.PATH}"
        self._processes = processes
        self._target = target
        self._settings = settings
        self._started = 0

    def start(self, **job: Any) -> None:
        """Add a server process and wait until it is ready."""
        self._started += 1
        name = f"server {self._started}"
        usual: dict[str, Any] = {
            "connections": 2,
            "first_worker": 64 * self._started,
            "pause": 0.0,
            "kill": None,
        }
        usual |= {"target": self._target, "store": str(self.store), "settings": asdict(self._settings)}
        usual |= {"log": str(self.log), "name": name, "door": self.door.fileno()}
        child = self._processes.start("server", name, usual | job, self.door.fileno())
        while not child.ready:
            self._processes.hear(0.1)

    @property
    def state(self) -> State:
        """What an independent connection reads."""
        return self.receiver.observe(self.store)


Make = Callable[..., Warehouse]


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Make]:
    """Makes a warehouse; all its processes end with the test."""
    made: list[Warehouse] = []
    with Processes(tmp_path) as processes:

        def make(
            target: str = "immediate", *, servers: int = 1, busy_timeout: float = 5.0, **job: Any
        ) -> Warehouse:
            made.append(Warehouse(tmp_path, processes, target, Settings(busy_timeout=busy_timeout)))
            for _ in range(servers):
                made[-1].start(**job)
            return made[-1]

        yield make
    for one in made:
        one.door.close()
