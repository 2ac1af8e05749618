"""What is imported by whom: the price is paid only by the command that needs it."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "dear"),
    [
        ("oncebench.testing.plugin", {"numpy", "greenlet", "rich", "hypothesis"}),
        ("oncebench.cli.explore", {"numpy", "greenlet", "rich", "hypothesis"}),
        ("oncebench.cli.replay", {"numpy", "greenlet", "rich", "hypothesis"}),
        ("oncebench.explore.processes", {"numpy", "greenlet", "rich", "hypothesis", "typer"}),
        ("oncebench.testing.asserting", {"hypothesis", "typer", "rich"}),
    ],
)
def test_importing_does_not_cost(module: str, dear: set[str]) -> None:
    code = f"import sys; import {module}; print(*sorted({dear!r} & sys.modules.keys()))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.split() == []


def test_the_public_names_are_there() -> None:
    import oncebench.testing

    for name in oncebench.testing.__all__:
        assert callable(getattr(oncebench.testing, name))
    with pytest.raises(AttributeError, match="no attribute 'assert_twice'"):
        oncebench.testing.assert_twice  # noqa: B018
