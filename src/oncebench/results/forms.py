"""The kinds of run there are, and reading whichever a file holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from oncebench.messages import BadInput
from oncebench.results.checked import CheckRun
from oncebench.results.explored import ExploreRun
from oncebench.results.files import load_by
from oncebench.results.schema import SCHEMA, RunResult
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
    return load_by(path, lambda kind: _form(path, kind))


def json_schema() -> dict[str, Any]:
    """The JSON Schema of `run.json`: one of the forms, by its kind.

    A field that has a default is not required, so that files of older versions stay valid.
    """
    forms = tuple(dict.fromkeys(FORMS.values()))
    references, definitions = msgspec.json.schema_components(forms, ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "run.json of oncebench",
        "description": f"What oncebench saves, schema version {SCHEMA}.",
        "type": "object",
        "required": ["schema", "kind"],
        "properties": {"schema": {"const": SCHEMA}, "kind": {"enum": list(FORMS)}},
        "anyOf": list(references),
        "$defs": definitions,
    }


def _form(path: Path, kind: str) -> type[AnyRun]:
    if kind not in FORMS:
        raise BadInput(f"{path} is a run of kind {kind!r}; this oncebench knows {', '.join(FORMS)}")
    return FORMS[kind]


if __name__ == "__main__":  # .venv/bin/python -m oncebench.results.forms > docs/run.schema.json
    print(json.dumps(json_schema(), indent=1))
