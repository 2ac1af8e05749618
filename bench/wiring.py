"""The wire against no wire: requests a second, and how long until the next proof after a `kill -9`."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from measure import in_turn, ratios, spread
from oncebench.receivers.loader import load
from oncebench.stores.sqlite import Settings
from oncebench.wire import loopback
from oncebench.wire.campaign import Campaign, Setting, campaign
from oncebench.wire.plan import Plan, draw
from oncebench.wire.process import Processes

NOTHING = "def receive(db, id, qty): return True\n"
_numbers = count()


def in_process(messages: int, settings: Settings) -> float:
    """Deliveries a second of a plain loop over one connection."""
    receiver = load("immediate")
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store.db"
        receiver.setup(store, settings, watched=True)
        db = receiver.connect(store, settings)
        start = time.perf_counter()
        for n in range(messages):
            receiver.receive(db, f"order-{n}", 7)
        rate = messages / (time.perf_counter() - start)
        db.close()
    return rate


@contextmanager
def served(target: str, folder: Path, settings: Settings, servers: int) -> Iterator[str]:
    """Server processes with two connections each; the address of their port."""
    receiver, store = load(target), folder / f"store-{next(_numbers)}.db"
    receiver.setup(store, settings, watched=True)
    with loopback.listen() as door, Processes(folder) as processes:
        started = []
        for n in range(servers):
            job: dict[str, Any] = {
                "target": target,
                "store": str(store),
                "settings": asdict(settings),
                "log": None,
            }
            job |= {"connections": 2, "first_worker": 1 + 2 * n, "pause": 0.0, "kill": None}
            job |= {"name": f"server {n}", "door": door.fileno()}
            started.append(processes.start("server", f"server {n}", job, door.fileno()))
        while not all(server.ready for server in started):
            processes.hear(0.1)
        yield f"http://127.0.0.1:{door.getsockname()[1]}{loopback.PATH}"


def over_http(url: str, messages: int, clients: int) -> float:
    """Proven requests a second; each client has one connection and sends in order."""
    first = next(_numbers)

    def send(client: int) -> None:
        with httpx.Client(trust_env=False, timeout=60) as line:
            for n in range(messages // clients):
                answer = line.post(url, json={"id": f"{first}-{client}-{n}", "qty": 7})
                assert answer.json()["accepted"] is True

    start = time.perf_counter()
    with ThreadPoolExecutor(clients) as threads:
        list(threads.map(send, range(clients)))
    return messages / (time.perf_counter() - start)


def rates(messages: int, repeats: int, folder: Path) -> None:
    """Print a line for each way."""
    (folder / "nothing.py").write_text(NOTHING)
    settings = Settings(busy_timeout=60)
    nothing = f"{folder / 'nothing.py'}:receive"
    with (
        served("immediate", folder, settings, 1) as one,
        served("immediate", folder, settings, 2) as two,
        served(nothing, folder, settings, 1) as empty,
    ):
        base, bare, single, four, spread_out = in_turn(
            repeats,
            lambda: in_process(messages, settings),
            lambda: over_http(empty, messages, 1),
            lambda: over_http(one, messages, 1),
            lambda: over_http(one, messages, 4),
            lambda: over_http(two, messages, 4),
        )
    print(f"in process, one connection                  {spread(base, 0)} deliveries/s")
    for label, figures in (
        ("HTTP, a receiver that does nothing", bare),
        ("HTTP, one client", single),
        ("HTTP, four clients", four),
        ("HTTP, four clients, two server processes", spread_out),
    ):
        print(f"{label:43} {spread(figures, 0)} requests/s   ratio {spread(ratios(figures, base))}")


def recoveries(kills: int) -> None:
    """Print times from a death that was noticed to the next proof, beside the same plan without deaths."""
    setting = Setting(pause=0.0)
    plan = draw(11, messages=4 * kills, faults=0, kills=kills)
    calm = campaign(load("immediate"), Plan(plan.seed, plan.rows), setting)
    ran = campaign(load("immediate"), plan, setting)
    figures = f"{ran.seconds:.1f} s, without kills {calm.seconds:.1f} s"
    print(f"{len(ran.deaths)} kills in {len(plan.rows)} messages: {figures}")
    for role in ("publisher", "server"):
        times = _times(ran, role)
        if times:
            figures = f"{statistics.median(times):,.0f} ms  [{min(times):,.0f} to {max(times):,.0f}]"
            print(f"from the death of a {role} to the next proof: {figures}, {len(times)} deaths")


def _times(ran: Campaign, role: str) -> list[float]:
    return [
        dead.recovery / 1e6 for dead in ran.deaths if dead.who.startswith(role) and dead.recovery is not None
    ]


def main() -> None:
    """Print rates, then recoveries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--kills", type=int, default=40)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rates(chosen.messages, chosen.repeats, Path(folder))
    recoveries(chosen.kills)


if __name__ == "__main__":
    main()
