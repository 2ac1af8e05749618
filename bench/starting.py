"""CPU seconds of `oncebench --help`, against an interpreter that does nothing."""

from __future__ import annotations

import os
import subprocess
import sys

from measure import in_turn, ratios, spread


def cpu(*command: str) -> float:
    """User and system seconds of one finished process."""
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    """Print seconds and ratios."""
    nothing, version, help_, listed = in_turn(
        15,
        lambda: cpu(sys.executable, "-c", "pass"),
        lambda: cpu(sys.executable, "-c", "import oncebench"),
        lambda: cpu(sys.executable, "-m", "oncebench", "--help"),
        lambda: cpu(sys.executable, "-m", "oncebench", "variants"),
    )
    for label, figures in (
        ("python -c pass", nothing),
        ("import oncebench", version),
        ("oncebench --help", help_),
        ("oncebench variants", listed),
    ):
        print(f"{label:20} {spread(figures)} s   ratio {spread(ratios(figures, nothing), 1)}")


if __name__ == "__main__":
    main()
