"""A store, and workers that can be moved on it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from oncebench.explore.clock import Clock
from oncebench.explore.crew import Crew
from oncebench.explore.gate import GO
from oncebench.explore.plan import Plan
from oncebench.explore.run import Unexplorable
from oncebench.explore.site import Site
from oncebench.receivers.loader import Receiver
from oncebench.stores.sqlite import Settings
from oncebench.testing.exploration import Crewed, Setting

BUSY_TIMEOUT = 5.0
"""Seconds: that of the bench's own connections; only whether there is one matters here."""


@contextlib.contextmanager
def stage(
    code: Receiver, plan: Plan, setting: Setting, folder: Path | None = None
) -> Iterator[tuple[Site, Crew]]:
    """A store, and workers that can be moved on it; both are gone afterwards.

    Args:
        code: The receiver.
        plan: Says how many workers.
        setting: With what.
        folder: Where to make the store; None for memory, if it can be had.
    """
    with contextlib.ExitStack() as stack:
        site = Site(code.anew(), Settings(setting.journal, "off", BUSY_TIMEOUT), folder)
        stack.callback(site.close)
        waits, on = setting.locks == "wait", here(code, setting.on)
        clock = Clock() if plan.clocked else None
        crew: Crew
        if on == "greenlets":
            from oncebench.explore.greenlets import Greenlets

            crew = stack.enter_context(Greenlets(site, plan.workers, waits, setting.patience, clock))
        elif on == "threads":
            from oncebench.explore.threads import Threads

            crew = stack.enter_context(Threads(site, plan.workers, waits, setting.patience, clock))
        else:
            from oncebench.explore.processes import Processes

            crew = stack.enter_context(Processes(site, plan.workers, waits, setting.patience))
        if code.own_connect is not None and code.own_setup is None:
            _warm_up(crew, site, plan.workers)
        yield site, crew


def _warm_up(crew: Crew, site: Site, workers: int) -> None:
    """Have each worker make a call that is no step: what is opened at first use, such as a pool's, stays.

    Whatever else than an answer comes back will come again.
    """
    site.renew(crew.disconnect)
    for worker in range(workers):
        crew.begin(worker, [(f"m0{site.token}", 1, -1)], live=False)
        event = crew.resume(worker, GO)
        if event.kind == "overdue":
            raise Unexplorable(f"a first call, alone, did not come back in time: it is at {event.what}", "")
        crew.settle()


def here(code: Receiver, on: Crewed) -> Crewed:
    """Greenlets have no event loop each; off the main thread nothing brings one back that waits."""
    main = threading.current_thread() is threading.main_thread()
    return "threads" if on == "greenlets" and (code.asynchronous or not main) else on
