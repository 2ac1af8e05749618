"""Coroutines called by code that is none: each thread that calls has an event loop, which stays.

A worker is a thread. Its connection, its locks and its tasks belong to one loop, from `connect` to `close`.
After `share` the process has one loop instead: what its threads call runs there at once, as the tasks of a
service do.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:  # asyncio is imported where a coroutine comes: most receivers have none
    import asyncio

_Function = TypeVar("_Function", bound=Callable[..., Any] | None)
_FAREWELL = 1.0
"""Seconds for tasks that were cancelled to come to their end."""

_loops: dict[int, asyncio.AbstractEventLoop] = {}  # by thread
_shared: asyncio.AbstractEventLoop | None = None


def is_async(function: Any) -> bool:
    """Whether a call of it makes a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004
    )


def plain(function: _Function) -> _Function:
    """The function for callers who cannot wait: an async one is run to its end on their thread's loop."""
    if function is None or not is_async(function):
        return function

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return finished(function(*arguments))

    return call  # type: ignore[return-value]


def alone(function: _Function) -> _Function:
    """The same on a loop of its own, and off the caller's: for what the bench calls between the workers."""
    if function is None or not is_async(function):
        return function

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        import asyncio
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as thread:  # the caller may be in a loop that runs
            return thread.submit(lambda: asyncio.run(function(*arguments))).result()

    return call  # type: ignore[return-value]


def finished(result: Any) -> Any:
    """What an awaitable comes to; anything else as it is."""
    if not inspect.isawaitable(result):
        return result
    import asyncio

    async def wait() -> Any:
        return await result

    if _shared is not None:
        return asyncio.run_coroutine_threadsafe(wait(), _shared).result()
    loop = _loops.get(threading.get_ident())
    if loop is None:
        loop = _loops[threading.get_ident()] = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(loop.create_task(wait()))
    except Exception:
        raise
    except BaseException:  # a worker that is killed or told to exit, and not a failure: nothing goes on
        _cancel_all(loop)
        raise


def interrupt(thread: int) -> None:
    """Cancel what runs on another thread's loop."""
    loop = _loops.get(thread)
    if loop is not None:
        import asyncio

        with contextlib.suppress(RuntimeError):  # it is closed since
            loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(loop)])


def end() -> None:
    """Close this thread's loop, if it has one."""
    loop = _loops.pop(threading.get_ident(), None)
    if loop is not None:
        _cancel_all(loop)
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def share() -> None:
    """From now on all threads' coroutines run on one loop, in a thread of its own."""
    global _shared
    import asyncio

    _shared = asyncio.new_event_loop()
    threading.Thread(target=_run_for_ever, args=(_shared,), name="oncebench loop", daemon=True).start()


def _run_for_ever(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        with contextlib.suppress(SystemExit, KeyboardInterrupt):  # a task's: whoever called it is told
            loop.run_forever()


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    import asyncio

    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=_FAREWELL))
