"""The kinds of run there are, and reading whichever a file holds."""

from __future__ import annotations

from pathlib import Path

from oncebench.messages import BadInput
from oncebench.results.checked import CheckRun
from oncebench.results.explored import ExploreRun
from oncebench.results.files import kind_of, load_as
from oncebench.results.schema import RunResult
from oncebench.results.swept import SweepRun
from oncebench.results.wired import WireRun

AnyRun = RunResult | CheckRun | ExploreRun | WireRun | SweepRun
FORMS: dict[str, type[AnyRun]] = {
    "race": RunResult,
    "crash": RunResult,
    "explore": ExploreRun,
    "wire": WireRun,
    "check": CheckRun,
    "sweep": SweepRun,
}
"""The form of each kind, as `run.json` names it."""


def load_any(path: Path) -> AnyRun:
    """Read a run of any kind, from its folder or file.

    Raises:
        BadInput: There is none, it is damaged, or of a version or kind that this oncebench does not know.
    """
    kind = kind_of(path)
    form = FORMS.get(kind)
    if form is None:
        load_as(path, RunResult)  # says what is wrong with it, if it is more than the kind
        raise BadInput(f"{path} is a run of kind {kind!r}; this oncebench knows {', '.join(FORMS)}")
    return load_as(path, form)
