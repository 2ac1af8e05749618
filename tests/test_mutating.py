"""The mutation check of the audit: no rule escapes it, and it knows which are needed."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from oncebench.audit import rules

HERE = Path(__file__).parent
SOURCE = Path(rules.__file__).read_text(encoding="utf-8")


def script(name: str) -> Any:
    """A script of `bench/`, which is no package."""
    spec = importlib.util.spec_from_file_location(name, HERE.parent / "bench" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # its dataclasses look for it
    spec.loader.exec_module(module)
    return module


mutating = script("mutating")


def test_every_place_that_makes_a_violation_is_changed() -> None:
    """As many as a plain search for them finds, and each change is one that Python can run."""
    mutants = mutating.mutants(SOURCE)
    lines = [n for n, line in enumerate(SOURCE.splitlines(), 1) if "self._say" in line]
    inside = [n for n in lines if "def " not in SOURCE.splitlines()[n - 1]]
    helpers = range(_line("def _say_rows"), _line("def _written_out"))
    words = [n for n, line in enumerate(SOURCE.splitlines(), 1) if "self._came_first(" in line]
    assert {m.line for m in mutants} == {*words, *(n for n in inside if n not in helpers)}
    assert len(mutants) > 30
    for mutant in mutants:
        mutating.built(mutant)


def test_a_new_rule_is_not_forgotten() -> None:
    """One more line in the source, one more rule to remove and to invert."""
    [old] = [line for line in SOURCE.splitlines(keepends=True) if "_say_rows(Kind.LEFT_OPEN" in line]
    more = SOURCE.replace(old, old + old.replace("came back", "came home"))
    fresh = [m for m in mutating.mutants(more) if "came home" in m.rule]
    assert [m.change for m in fresh] == ["removed", "inverted"]


def recorded(*targets: str) -> Any:
    """What exploring them led the audit to judge."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (mutating.summary, mutating.crashed, mutating.exploring):
            patch.setattr(module, "audit", rules.audit)  # so that it is put back
        return {target: mutating.record(target, ("explore",)) for target in targets}


def test_who_needs_a_rule_catches_its_removal_and_the_right_one_its_inversion() -> None:
    """With the one receiver it is caught, without it it survives; an implied one may change kinds only."""
    target = f"{HERE / 'one_rule.py'}:takes_any_quantity"
    heard = recorded("immediate", target)
    with_it, without_it = mutating.Bench(heard), mutating.Bench({"immediate": heard["immediate"]})
    removed, inverted = (
        m for m in mutating.mutants(SOURCE) if "answered duplicate, but the quantity" in m.rule
    )
    assert with_it.judge(removed).caught_by == [f"{target} explore: broken to sound"]
    assert without_it.judge(removed).ended == "survived"
    assert without_it.judge(inverted).caught_by == ["immediate explore: sound to broken"]
    [implied] = [m for m in mutating.mutants(SOURCE) if "another quantity than the first" in m.rule][:1]
    assert without_it.judge(implied).ended == "implied"
    unchanged = mutating.Mutant("nothing", 0, "unchanged", "nothing", SOURCE)
    assert with_it.judge(unchanged).ended == "survived"


def test_a_kind_of_kill_point_is_needed_by_whom_it_alone_breaks() -> None:
    """Without its points the receiver passes; without others it does not."""
    good, bad = frozenset[str](), frozenset(["lost"])
    bench = mutating.Bench({})
    heard = [mutating.Heard("crash", frozenset([point]), ()) for point in ("here", "there")]
    bench.cases = {("receiver", "crash"): [(heard[0], bad), (heard[1], good)]}
    here, there = bench.points()
    assert bench.judge(here).caught_by == ["receiver crash: broken to sound"]
    assert bench.judge(there).ended == "survived"


def _line(text: str) -> int:
    return next(n for n, line in enumerate(SOURCE.splitlines(), 1) if text in line)
