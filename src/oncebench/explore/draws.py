"""Random texts that a worker draws, such as the token of a claim: each has a name in what is compared.

Else no two schedules would come to the same state, and none could be skipped. The text itself stays random:
a receiver whose steps depend on it is found out as before.
"""

from __future__ import annotations

import functools
import secrets
import uuid
from types import ModuleType
from typing import Any

from oncebench.explore.gate import gate_of_caller

DREW = "drew "
"""What a drawn text begins with, among the things that a worker has seen."""
_SHORTEST = 16  # characters: a shorter text may be part of another by chance

MODULES: tuple[ModuleType, ...] = (secrets, uuid)


def _noted(real: Any) -> Any:
    @functools.wraps(real)
    def draw(*given: Any, **named: Any) -> Any:
        drawn = real(*given, **named)
        gate = gate_of_caller.get()
        if gate is not None:
            for text in (str(drawn), drawn.hex) if isinstance(drawn, uuid.UUID) else (drawn,):
                if len(text) >= _SHORTEST:
                    gate.saw(DREW + text)
        return drawn

    return draw


DRAWS: dict[Any, Any] = {
    real: _noted(real) for real in (uuid.uuid4, secrets.token_hex, secrets.token_urlsafe)
}
"""What stands for each way to draw a text."""


def drawn(seen: tuple[str, ...]) -> list[str]:
    """The texts that were drawn, among what a worker has seen."""
    return [text[len(DREW) + 1 : -1] for text in seen if text.startswith(f"'{DREW}")]
