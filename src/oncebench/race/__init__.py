"""Many processes at once on one store: a coordinator, its workers, and what they recorded."""

from oncebench.race.coordinator import Policy, Race, race

__all__ = ["Policy", "Race", "race"]
