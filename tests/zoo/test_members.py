"""Every kind of fault that people have met is found, as what it is; its repair is accused in no mode.

Small budgets: a member must show itself in them, and a kind that it does not declare must not appear.
"""

from __future__ import annotations

from signal import SIGKILL

import pytest

from oncebench.crash.campaign import crash
from oncebench.race import Policy, race
from oncebench.receivers.loader import load
from oncebench.receivers.registry import LESSON, VARIANTS, Variant
from oncebench.results.crashed import of_crashes
from oncebench.results.schema import RaceResult
from oncebench.results.summary import of_race
from oncebench.stores.sqlite import Journal, Settings
from oncebench.testing import explore
from oncebench.workload import Workload

CASES = [variant for name, variant in VARIANTS.items() if name not in LESSON]
ONLY_IN_ROLLBACK_MODE = {"commit_refused"}
SLOW = {"statement_again", "forked", "forked_first", "lease", "lease_fenced"}
"""Explored elsewhere or not at all: they spin, fork, or go by the clock."""
LOCKS_THE_PROCESS = {"process_lock", "one_at_a_time"}
"""Explored on threads, which is slower by far: less of it."""
KILLED = {"script", "raise_open", "immediate+moved_inbox", "immediate+moved_and_asked", "lease_fenced"}
"""The others' deaths say what those of the lesson's variants do."""
FORKS = "C12"
"""Each delivery costs a process."""

each = pytest.mark.parametrize("variant", CASES, ids=lambda variant: variant.name)


def raced(name: str, journal: Journal = "wal", threads: int = 1, **workload: object) -> RaceResult:
    hangs = name == "statement_again"
    policy = Policy(deadline=1.5 if hangs else 20, threads=threads)
    settings = Settings(journal, "off", 0.2 if hangs else 5.0)
    return of_race(race(load(name), Workload(seed=3, **workload), settings, policy))  # type: ignore[arg-type]


def assert_known(result: RaceResult, expected: str, must: set[str], may: set[str] | None = None) -> None:
    found = set(result.violation_counts)
    if not any("raced nothing" in reason for reason in result.because):  # as may be on a busy machine
        assert result.verdict == expected, (result.violations, result.because, result.notes)
    assert found <= must | (may or set()), result.violations
    assert found & must or not must, result.violations  # which of them a race meets is luck


@each
def test_one_delivery_after_the_other(variant: Variant) -> None:
    """With a restart, and ids that are easily taken for each other: exactly what is declared."""
    result = raced(
        variant.name, workers=1, ids=3 if variant.case == FORKS else 16, phases=("sequence", "neighbours")
    )
    assert_known(result, variant.expected_in("sequential"), set(variant.alone))
    assert set(result.violation_counts) == set(variant.alone)  # no luck here


@each
def test_in_a_race_of_processes(variant: Variant) -> None:
    """What is declared is found, and nothing that is not."""
    journal: Journal = "delete" if variant.name in ONLY_IN_ROLLBACK_MODE else "wal"
    result = raced(variant.name, journal, ids=8 if variant.case == FORKS else 24)
    assert_known(result, variant.expected_in("race"), set(variant.kinds), set(variant.also))


@pytest.mark.parametrize("name", ["one_connection", "one_at_a_time", "process_lock"])
def test_in_a_race_of_threads(name: str) -> None:
    """What processes do not show, and what threads do not."""
    result = raced(name, threads=4, ids=40, phases=("same", "distinct", "spread", "conflicting", "paused"))
    assert result.verdict == VARIANTS[name].expected_in("threads"), (result.violations, result.because)


@pytest.mark.parametrize(
    "variant", [v for v in CASES if v.name not in SLOW], ids=lambda variant: variant.name
)
def test_in_every_interleaving(variant: Variant) -> None:
    """Exactly what is declared, with two preemptions at the most."""
    if variant.name in LOCKS_THE_PROCESS:
        result = explore(
            variant.name, plans=["same", "death"], journals=["wal"], locks=["error"], preemptions=1
        )
    else:
        result = explore(variant.name, journals=["wal"], preemptions=2, patience=1.0)
    assert str(result.verdict) == variant.expected_in("explore"), (result.failures, result.because)
    assert {str(kind) for kind in result.failures} == set(variant.explore_kinds)


@pytest.mark.parametrize("name", sorted(KILLED))
def test_killed_at_every_point(name: str) -> None:
    """Exactly what is declared."""
    settings = Settings("wal", "off", 0.5)
    result = of_crashes(name, "sound", [crash(load(name), settings, deadline=20, signals=[SIGKILL])])
    assert result.verdict == VARIANTS[name].expected_in("crash"), (result.violations, result.because)
    assert {violation.kind for violation in result.violations} == set(VARIANTS[name].crash_kinds)
