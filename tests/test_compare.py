"""Comparisons on columns that are drawn, not timed: the same is not called different, twice is found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from figures import latencies, raced, run_of
from oncebench.cli import app
from oncebench.messages import BadInput
from oncebench.results import RaceResult, RunResult, bootstrap, save
from oncebench.results.compared import Comparison, Condition, Figure, compare


def repeats(seed: int, scale: float = 1.0, count: int = 8, verdict: str = "sound") -> list[RaceResult]:
    """Races whose speed differs by some percent, as that of a machine does."""
    rng = np.random.default_rng(seed)
    drift = rng.normal(1, 0.05, count)
    return [raced(latencies(rng, 1000, scale * factor), verdict=verdict) for factor in drift]


def figures(comparison: Comparison) -> dict[str, Figure]:
    [pair] = comparison.pairs
    return {figure.name: figure for figure in pair.figures}


def against(a: RunResult, b: RunResult, *conditions: str) -> Comparison:
    return compare([("a", a), ("b", b)], [Condition.of(text) for text in conditions])


def test_same_calls_shuffled_over_two_runs_are_not_significant() -> None:
    """A/A, from the histograms: a sample cut in two by chance, ten times; one in twenty may miss."""
    rng = np.random.default_rng(5)
    missed = 0
    for _ in range(10):
        sample = rng.permutation(latencies(rng, 4000))
        a, b = (run_of({"mine": [raced(half)]}) for half in (sample[:2000], sample[2000:]))
        comparison = against(a, b)
        found = figures(comparison)
        assert comparison.pairs[0].resampled == "histograms"
        assert (found["max"].finding, found["max"].low) == ("unknown", None)
        missed += sum(
            found[name].finding != "not significant" for name in ("throughput", "p50", "p90", "p99")
        )
    assert missed <= 5


def test_same_repeats_shuffled_over_two_runs_are_not_significant() -> None:
    """A/A, from repeats, the maximum included."""
    races = repeats(6, count=16)
    order = np.random.default_rng(7).permutation(16)
    a, b = (run_of({"mine": [races[n] for n in half]}) for half in (order[:8], order[8:]))
    comparison = against(a, b)
    assert {figure.finding for figure in figures(comparison).values()} == {"not significant"}
    assert (comparison.pairs[0].resampled, comparison.pairs[0].samples) == ("repeats", 8)


def test_few_of_many_identical_pairs_are_called_different() -> None:
    """The interval covers what it says: of 200 comparisons of the same, about one in twenty misses."""
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(200):
        one, other = np.exp(rng.normal(0, 0.2, (2, 10)))
        ratio = bootstrap.of_repeats(one, other, True, rng)
        missed += not ratio.low <= 1 <= ratio.high
    assert missed <= 20


@pytest.mark.parametrize("count", [1, 8])
def test_known_ratio_is_found(count: int) -> None:
    """A/B: all calls take 1.5 times as long; the interval holds that, and not 1."""
    a, b = (run_of({"mine": repeats(seed, scale, count)}) for seed, scale in ((1, 1.0), (2, 1.5)))
    for name, figure in figures(against(a, b)).items():
        if name == "max":
            continue
        assert figure.finding == "slower"
        assert figure.low is not None
        assert figure.high is not None
        # A single race may be a few percent off by what its machine did: that is not in its interval.
        factor = 1 / 1.5 if name == "throughput" else 1.5
        assert figure.low * 0.85 < factor < figure.high * 1.15
    for name, figure in figures(against(b, a)).items():
        assert name == "max" or figure.finding == "faster"


def test_pairs_that_took_turns_cancel_what_slowed_both() -> None:
    """Of one run: a machine three times slower by the end hides 10 % between runs, not between pairs."""
    rng = np.random.default_rng(3)
    sample, drift = latencies(rng), np.linspace(1, 3, 8)
    a = [raced((sample * factor).astype(np.int64)) for factor in drift]
    b = [raced((sample * factor * 1.1).astype(np.int64)) for factor in drift]
    in_turns = compare([("run", run_of({"one": a, "other": b}))])
    assert in_turns.pairs[0].resampled == "pairs of repeats"
    assert figures(in_turns)["p50"].finding == "slower"
    assert figures(against(run_of({"mine": a}), run_of({"mine": b})))["p50"].finding == "not significant"


def test_share_of_refused_calls_is_beside_the_latencies_that_leave_them_out() -> None:
    """Who refuses instead of waiting looks fast."""
    races = repeats(1, 1, 1)
    races[0].tallies.locked = {"SQLITE_BUSY": 250}
    races[0].tallies.retries = 250
    pair = against(run_of({"mine": races}), run_of({"mine": repeats(2, 1, 1)})).pairs[0]
    assert (pair.baseline.refused, pair.candidate.refused) == (0.2, 0.0)


def test_too_few_repeats_are_unknown() -> None:
    """However far apart: all of four on one side happens by chance."""
    comparison = against(run_of({"mine": repeats(1, 1, 4)}), run_of({"mine": repeats(2, 9, 4)}), "p50>2x")
    assert figures(comparison)["p50"].because == "fewer than 5 repeats"
    assert comparison.failed == []
    assert "but fewer than 5 repeats" in comparison.untold[0]


def test_nothing_completed_has_no_ratio() -> None:
    """Neither in one race nor in a repeat."""
    empty = raced(np.empty(0, dtype=np.int64))
    for count in (1, 5):
        comparison = against(
            run_of({"mine": repeats(1, 1, count)}), run_of({"mine": [empty] * count}), "p99>2x"
        )
        assert {figure.ratio for figure in figures(comparison).values()} == {None}
        assert len(comparison.untold) == 1


def test_broken_is_beside_faster() -> None:
    """Whichever of the two it is."""
    good, bad = repeats(1, 2.0), repeats(2, 1.0, verdict="broken")
    found = figures(compare([("run", run_of({"good": good, "bad": bad}))]))
    assert found["p50"].finding == "faster, but broken"
    found = figures(compare([("run", run_of({"bad": bad, "good": good}))]))
    assert found["p50"].finding == "slower than a broken one"


@pytest.mark.parametrize(
    ("condition", "scale", "fails"),
    [
        ("p99>1.2x", 1.5, True),
        ("p99 > 2", 1.5, False),
        ("throughput<0.9x", 1.5, True),
        ("throughput<0.5x", 1.5, False),
        ("p50>1x", 1.0, False),
        ("p50>0.8x", 1.0, True),
        ("verdict", 1.5, False),
    ],
)
def test_condition(condition: str, scale: float, fails: bool) -> None:
    """Beyond the bound and significant, or short of what was asked for."""
    comparison = against(run_of({"mine": repeats(1)}), run_of({"mine": repeats(2, scale)}), condition)
    assert (len(comparison.failed), comparison.untold) == (int(fails), [])


def test_worse_verdict_fails_and_a_better_one_does_not() -> None:
    """Unknown is worse than sound, broken than both."""
    order = ("sound", "unknown", "broken")
    for mine in order:
        for theirs in order:
            few = np.array([1000, 2000, 3000])
            a, b = (run_of({"mine": [raced(few, verdict=verdict)]}) for verdict in (mine, theirs))
            failed = against(a, b, "verdict").failed
            assert bool(failed) == (order.index(theirs) > order.index(mine))


@pytest.mark.parametrize(
    "text",
    ["", "p99", "p99>", "p99>=1", "p98>1.2x", "p99>-1x", "p99>1.2xx", "p99>nan", "verdict>1", "p99>1e5"],
)
def test_bad_condition_gets_a_sentence(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(BadInput, match="--fail-if takes 'verdict', or one of throughput, p50"):
        Condition.of(text)


@pytest.mark.parametrize(
    ("changes", "what"),
    [({"seed": 8}, "seed is 7 in the one and 8"), ({"ids": 11}, "ids"), ({"rate": 5.0}, "rate")],
)
def test_another_workload_is_refused(changes: dict[str, object], what: str) -> None:
    """One sentence that names what differs."""
    races = [raced(latencies(np.random.default_rng(1)))]
    with pytest.raises(BadInput, match=f"a and b are not of the same workload: {what}"):
        against(run_of({"mine": races}), run_of({"mine": races}, **changes))


def test_another_environment_is_named() -> None:
    """So are other settings, and a run that was cut short."""
    races = [raced(latencies(np.random.default_rng(1)))]
    changes = {"environment": {"sqlite": "3.45.0", "cores": 2, "options": ["X"]}, "synchronous": "off"}
    other = run_of({"mine": races}, **changes, complete=False)
    mine = run_of({"mine": races}, environment={"sqlite": "3.40.1", "cores": 2, "options": ["Y"]})
    assert against(mine, other).differences == [
        "b: synchronous is off, not full",
        "b: sqlite is 3.45.0, not 3.40.1",
        "b: options: without Y, with X",
        "b: it was cut short",
    ]


def test_what_has_nothing_in_common_is_refused() -> None:
    """Receivers, journal modes, a run with one receiver, one with none."""
    races: Sequence[RaceResult] = [raced(latencies(np.random.default_rng(1)))]
    one, two = run_of({"x": races}), run_of({"y": races, "z": races})
    with pytest.raises(BadInput, match="no receiver in common"):
        against(one, two)
    with pytest.raises(BadInput, match="no journal mode in common"):
        against(one, run_of({"x": [raced(latencies(np.random.default_rng(1)), "delete")]}))
    with pytest.raises(BadInput, match="one receiver only"):
        compare([("a", one)])
    with pytest.raises(BadInput, match="cut short before anything"):
        against(one, run_of({}))
    with pytest.raises(BadInput, match="made by oncebench crash"):
        against(one, run_of({"x": races}, kind="crash"))
    assert len(against(one, run_of({"y": races})).pairs) == 1


def test_command_ends_as_its_conditions_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """0, 1 and 3; its table fits 80 columns; JSON says the same, and the same again."""
    monkeypatch.setenv("COLUMNS", "80")
    slower = {"mine": repeats(2, 1.5, verdict="broken")}
    for name, run in (("a", run_of({"mine": repeats(1)})), ("b", run_of(slower, seed=7)), ("c", run_of({}))):
        (tmp_path / name).mkdir()
        save(run, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    invoke = CliRunner().invoke
    told = invoke(app, ["compare", "a", "b"])
    assert told.exit_code == 0
    for text in ("A  a", "mine against mine, wal: B against A", "slower", "broken", "8 repeats of each"):
        assert text in told.stdout
    assert max(map(len, told.stdout.splitlines())) <= 80
    failed = invoke(app, ["compare", "a", "b", "-q", "--fail-if", "p99>1.2x", "--fail-if", "verdict"])
    assert failed.exit_code == 1
    assert [line.split(":")[0] for line in failed.stdout.splitlines()] == ["fails", "fails"]
    printed = [invoke(app, ["compare", "a", "b", "--json"]).stdout for _ in range(2)]
    assert printed[0] == printed[1]
    assert json.loads(printed[0])["pairs"][0]["candidate"]["verdict"] == "broken"
