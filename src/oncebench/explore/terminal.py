"""What workers print does not reach the terminal, and Ctrl-C is told from what they raise."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from oncebench.explore.gate import Interrupted, gate_of_caller


class _Unheard:
    """A stream to which nothing comes that a worker prints."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return len(text) if gate_of_caller.get() is not None else int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """Within, what workers print goes nowhere: for commands, whose output is their own."""
    out, err = sys.stdout, sys.stderr
    with contextlib.redirect_stdout(_Unheard(out)), contextlib.redirect_stderr(_Unheard(err)):
        yield


@contextlib.contextmanager
def interrupts_known() -> Iterator[None]:
    """Within, a KeyboardInterrupt that comes of Ctrl-C is an `Interrupted`; any other is the receiver's."""
    before = signal.getsignal(signal.SIGINT)

    def interrupt(number: int, frame: FrameType | None) -> None:
        try:
            if callable(before):
                before(number, frame)
        except KeyboardInterrupt:
            raise Interrupted from None

    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
