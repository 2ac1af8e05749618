"""Many processes at once on one store: a coordinator, its workers, and what they recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oncebench.race.coordinator import Policy, Race, race

__all__ = ["Policy", "Race", "race"]


def __getattr__(name: str) -> object:
    """The names above, when somebody asks: each worker process comes past here and needs none of them."""
    if name in __all__:
        from oncebench.race import coordinator

        return getattr(coordinator, name)
    raise AttributeError(f"module {__name__} has no attribute {name!r}")
