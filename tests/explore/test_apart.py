"""Exploring in a process of its own: what a receiver does there harms nobody else."""

from pathlib import Path

import pytest

from oncebench.testing.apart import Explored, explore_apart

RECEIVERS = """
import os, threading
from oncebench.receivers import immediate

def prints(db, id, qty):
    print("x" * 100_000)
    os.write(1, b"x" * 100_000)
    return immediate.receive(db, id, qty)

def interrupts(db, id, qty):
    raise KeyboardInterrupt

def ends(db, id, qty):
    os._exit(3)

def is_killed(db, id, qty):
    os.kill(os.getpid(), 9)

def waits(db, id, qty):
    threading.Event().wait()
"""


def explored(target: str, limit: float = 30.0) -> tuple[Explored, list[tuple[int, int]]]:
    told: list[tuple[int, int]] = []
    return explore_apart(target, 7, 2000, limit, lambda done, planned: told.append((done, planned))), told


@pytest.fixture
def mine(tmp_path: Path) -> str:
    (tmp_path / "receivers_apart.py").write_text(RECEIVERS)
    return f"{tmp_path / 'receivers_apart.py'}:"


@pytest.mark.parametrize(
    ("name", "verdict"), [("immediate", "sound"), ("naive", "broken"), ("group", "unknown")]
)
def test_it_comes_to_the_same_as_in_this_process(name: str, verdict: str) -> None:
    """Verdict, reasons and data; and it says how far it is."""
    found, _ = explored(name)
    assert found.verdict == verdict
    assert bool(found.because) == (verdict == "unknown")
    assert found.variant is not None
    assert found.variant.verdict == verdict
    assert bool(found.variant.violations) == (verdict == "broken")
    assert all(violation.steps for violation in found.variant.violations)


def test_what_it_prints_is_not_heard(mine: str, capfd: pytest.CaptureFixture[str]) -> None:
    """And does not disturb what the child says."""
    assert explored(mine + "prints")[0].verdict == "sound"
    assert capfd.readouterr() == ("", "")


def test_one_that_ends_the_process_is_told_of_it(mine: str) -> None:
    """Unknown, with the reason."""
    found, _ = explored(mine + "ends")
    assert found.verdict == "unknown"
    assert "it ends its process with os._exit(3)" in found.because[0]


def test_one_that_goes_down_with_its_process_leaves_a_reason(mine: str) -> None:
    """What is found until then is kept."""
    found, _ = explored(mine + "is_killed")
    assert found.verdict == "unknown"
    assert "ended before its first part was done" in found.because[0]


def test_one_that_raises_keyboard_interrupt_is_broken(mine: str) -> None:
    """It is an answer of the receiver's like any other exception, and never the right one."""
    assert explored(mine + "interrupts")[0].verdict == "broken"


def test_one_that_does_not_come_back_is_given_up(mine: str) -> None:
    """After the limit at the latest."""
    found, _ = explored(mine + "waits", limit=1.0)
    assert found.verdict == "unknown"
    assert found.because
