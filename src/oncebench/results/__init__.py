"""The saved form of a run: what it is made of, how it is made from a race, how it is kept."""

from oncebench.results.files import load, save
from oncebench.results.schema import RaceResult, RunResult, VariantResult

__all__ = ["RaceResult", "RunResult", "VariantResult", "load", "save"]
