"""Does every rule of the audit, and every kill point, have a receiver that needs it?

The histories and states of races, of races with kills, of schedules and of kills at each point are recorded
once, for all variants and some receivers of the tests. Then each place of `audit/rules.py` that makes a
violation is removed, and turned into its contrary where it rests on a condition; the mutant judges all that
was recorded. It is caught if the verdict on at least one receiver in one mode changes. The places are found
in the source, so that a new rule cannot be forgotten. In the same way each kind of kill point is left out.

Exit code 1 if a mutant survives, or if one of `IMPLIED`, which say why they must, is caught after all.
"""

from __future__ import annotations

import argparse
import ast
import functools
import itertools
import json
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console
from rich.table import Table

from oncebench.audit import Findings, rules
from oncebench.crash.campaign import crash
from oncebench.race import Policy, race
from oncebench.receivers.loader import load
from oncebench.receivers.registry import VARIANTS
from oncebench.results import crashed, summary
from oncebench.stores.sqlite import Settings
from oncebench.testing import exploring
from oncebench.workload import Workload

TESTS = Path(__file__).parents[1] / "tests"
SAVED = Path(__file__).parents[1] / "results" / "mutation.json"
MODES = ("sequential", "race", "kills", "explore", "crash")
INPUTS: dict[str, dict[str, Sequence[str]]] = {
    "one_rule.py": {
        "Book": MODES,
        "takes_any_quantity": ("explore",),
        "calls_duplicates_conflicts": ("explore",),
        "knows_everything": ("explore",),
        "refuses_everything": ("explore",),
        "says_applied_each_time": ("explore",),
        "forgets_what_was_there": ("race",),
        "rewrites_on_conflict": ("explore",),
        "records_last": ("race",),
        "hangs_once": ("race",),
        "WritesTwice": ("explore",),
        "GivesOneMore": ("explore",),
        "AddsAgain": ("explore",),
        "AnswersFirst": ("sequential",),
    },
    "misbehaving.py": {
        "leaves_open_on_conflict": ("explore",),
        "raises_after_the_commit": MODES,
    },
    "their_own.py": {"claims_and_insists": ("race",)},
    "crash/dying.py": dict.fromkeys(
        (
            *("Claims", "ClaimsApart", "commits_whatever_happens", "answers_whatever_happens", "Polite"),
            *("gives_back_what_it_had_claimed", "Impolite", "refreshes", "Rows", "ClaimsRows"),
            *(
                "WritesBehind",
                "GroupApart",
                "GroupRefreshes",
                "GroupFinally",
                "GroupLeases",
                "Leases",
                "Notebook",
                "LosesNotes",
            ),
        ),
        ("crash",),
    ),
}
"""Receivers of the tests that are recorded beside the variants, and in which modes."""
IMPLIED = {
    "answered applied with another quantity than the first: a conflict": "then two answered applied, which "
    "_applied_twice says as well; this one names the fault in the answer",
    "answered as known, and no call can have applied it": "then the row is in the inbox without a delivery, "
    "which _records says as well",
    "redelivered until answered, and not in the inbox": "_records says so of any answer but conflict, and "
    "_answers of a conflict with nothing; this one says that no redelivery will mend it",
    "redelivered until answered, and it never had an effect": "then its effects differ from its row, which "
    "_effects says as well",
    "answered with a failure, but part of its work is there": "said only where something else is wrong with "
    "the id; alone it is a remark",
    "SIGKILL before call, first, worker": "such a process leaves what an open connection leaves, and every "
    "other death leaves that too",
    "SIGKILL before ACK, first, worker": "a receiver cannot know of its ACK: the same state is killed after "
    "the ACK as well, where more is owed",
}
"""Mutants that no verdict can need, by what they say or where they kill; and why."""
QUICK = Settings(synchronous="off", busy_timeout=0.5)
DEADLINE = 10.0
LONGEST = 900.0
"""Seconds for one receiver."""


@dataclass
class Heard:
    """One call of the audit.

    Attributes:
        mode: In which it was made.
        points: The kinds of kill point that it is about.
        arguments: Of the call.
    """

    mode: str
    points: frozenset[str]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Mutant:
    """The audit with one rule changed, or the crash mode without one kind of point.

    Attributes:
        rule: Where it is: the method, and what it says.
        line: Of the source.
        change: "removed", or "inverted".
        says: The message, as far as it is constant; or the kind of kill point.
        source: What is changed; empty for a kind of kill point.
        edit: Changes a fresh tree of it.
    """

    rule: str
    line: int
    change: str
    says: str
    source: str = ""
    edit: Callable[[ast.Module], None] = lambda tree: None


@dataclass
class Row:
    """What became of a mutant.

    Attributes:
        caught_by: Receivers and modes whose verdict changed, and how.
        kinds: The same for those of which only the kinds of violation changed.
        why: Why it may survive.
    """

    mutant: Mutant
    caught_by: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    why: str = ""

    @property
    def ended(self) -> str:
        """Caught, implied, or survived."""
        if self.caught_by:
            return "caught" if not self.why else "caught, though said to be implied"
        return "implied" if self.why else "survived"


# ------------------------------------------------------------------------------------------------ recording


def record(target: str, modes: Sequence[str]) -> list[Heard]:
    """All calls of the audit that a receiver's runs in these modes lead to."""
    heard: list[Heard] = []
    mode, points = "", frozenset[str]()

    def listening(*arguments: Any) -> Findings:
        heard.append(Heard(mode, points, arguments))
        return rules.audit(*arguments)

    for module in (summary, crashed, exploring):
        setattr(module, "audit", listening)  # noqa: B010 as each of them has it
    receiver = load(target)
    works = {
        "sequential": (Workload(workers=1, ids=8, phases=("sequence", "neighbours")), 0),
        "race": (Workload(ids=12), 0),
        "kills": (Workload(ids=12, phases=("distinct", "spread", "paused")), 6),
    }
    for mode in modes:
        if mode in works:
            work, kills = works[mode]
            for journal in ("wal", "delete"):
                settings = Settings(journal, "off", QUICK.busy_timeout)
                summary.of_race(race(receiver, work, settings, Policy(deadline=DEADLINE, kills=kills)))
        elif mode == "explore":
            exploring.explore(receiver, most=500)
        else:
            for case in crash(receiver, QUICK, deadline=DEADLINE).killed:
                points = frozenset([_label(case.point), *case.names])
                crashed._findings(case)
            points = frozenset()
    return heard


def _label(point: Any) -> str:
    return f"{point.signal.name} {point.place}, {point.delivery}, {point.process}"


def record_all(
    targets: Sequence[tuple[str, Sequence[str]]], folder: Path, at_once: int
) -> dict[str, list[Heard]]:
    """Each in a process of its own: what a receiver does there stays there."""

    def one(nth: int) -> list[Heard]:
        (target, modes), file = targets[nth], folder / f"{nth}.pickle"
        command = [sys.executable, __file__, "--record", target, ",".join(modes), str(file)]
        try:
            subprocess.run(command, capture_output=True, text=True, check=True, timeout=LONGEST)
        except subprocess.SubprocessError as error:
            said = str(getattr(error, "stderr", "") or error).strip().splitlines()
            print(f"{target} could not be recorded: {said[-1]}")
            return []
        print(f"recorded {_short(target)}", file=sys.stderr, flush=True)
        heard: list[Heard] = pickle.loads(file.read_bytes())
        return heard

    with ThreadPoolExecutor(at_once) as pool:
        names = [_short(target) for target, _ in targets]
        return dict(zip(names, pool.map(one, range(len(targets))), strict=True))


def _short(target: str) -> str:
    return target.rsplit("/", 1)[-1]


# ----------------------------------------------------------------------------------------------- the mutants


def mutants(source: str) -> list[Mutant]:
    """Each place that makes a violation: removed, and inverted where it rests on a condition."""
    places = enumerate(_places(ast.parse(source)))
    return [mutant for nth, place in places for mutant in _mutated(source, nth, place)]


@dataclass(frozen=True)
class _Place:
    """A statement that makes violations.

    Attributes:
        method: In which it is.
        says: What it says.
        statement: The statement.
        around: Those that it is in, the outermost first.
    """

    method: ast.FunctionDef
    says: str
    statement: ast.stmt
    around: tuple[ast.stmt, ...]


def _places(tree: ast.Module) -> Iterator[_Place]:
    [judge] = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "_Audit"]
    methods = {node.name: node for node in judge.body if isinstance(node, ast.FunctionDef)}
    speakers = {name for name in methods if name.startswith("_say")}
    # A method that others call with words of their own is a rule in each of these calls.
    called = [node.func.attr for node in ast.walk(judge) if _is_own_call(node)]  # type: ignore[attr-defined]
    speakers |= {name for name in methods if called.count(name) > 1 and _speaks(methods[name], speakers)}
    for name, method in methods.items():
        if name.startswith("_say"):
            continue
        for statement, around in _statements(method):
            if not isinstance(statement, ast.Expr) or not _is_own_call(statement.value):
                continue
            call = statement.value
            assert isinstance(call, ast.Call)
            assert isinstance(call.func, ast.Attribute)
            if call.func.attr in speakers:
                yield _Place(method, _words(call), statement, around)


def _is_own_call(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "self"
    )


def _speaks(method: ast.FunctionDef, speakers: set[str]) -> bool:
    return any(_is_own_call(node) and node.func.attr in speakers for node in ast.walk(method))  # type: ignore[attr-defined]


def _statements(
    parent: ast.stmt, around: tuple[ast.stmt, ...] = ()
) -> Iterator[tuple[ast.stmt, tuple[ast.stmt, ...]]]:
    for child in ast.iter_child_nodes(parent):
        if isinstance(child, ast.stmt):
            yield child, around
            yield from _statements(child, (*around, child))


def _words(call: ast.Call) -> str:
    """What it says, as far as that is constant; else its expression."""
    said = call.args[2] if len(call.args) > 2 else call.args[-1]
    parts = [node.value for node in ast.walk(said) if isinstance(node, ast.Constant)]
    texts = [part.strip(" (") for part in parts if isinstance(part, str) and part.strip(" :,()")]
    return " ... ".join(texts) or ast.unparse(said)


def _mutated(source: str, nth: int, place: _Place) -> Iterator[Mutant]:
    rule = f"{place.method.name}: {place.says}"

    def changed(change: str, edit: Callable[[_Place], None]) -> Mutant:
        def edit_tree(tree: ast.Module) -> None:
            edit(next(itertools.islice(_places(tree), nth, None)))

        return Mutant(rule, place.statement.lineno, change, place.says, source, edit_tree)

    parts = _list_of(place)
    if parts is not None:  # one rule for each of the lists that it goes through
        for at, part in enumerate(parts.elts):
            yield changed(f"removed for {ast.unparse(part)}", functools.partial(_remove_part, at=at))
        return
    yield changed("removed", _remove)
    if _condition(place) is not None:
        yield changed("inverted", _invert)


def _list_of(place: _Place) -> ast.List | None:
    loops = [each.iter for each in place.around if isinstance(each, ast.For)]
    return loops[-1] if loops and isinstance(loops[-1], ast.List) else None


def _remove_part(place: _Place, at: int) -> None:
    parts = _list_of(place)
    assert parts is not None
    del parts.elts[at]


def _remove(place: _Place) -> None:
    assert isinstance(place.statement, ast.Expr)
    place.statement.value = ast.Constant(None)


def _condition(place: _Place) -> tuple[ast.AST, str, int | None] | None:
    """Where the condition of a rule is: node, attribute, position in it."""
    assert isinstance(place.statement, ast.Expr)
    call = place.statement.value
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr == "_say_rows":
        return call, "args", 1
    for each in reversed(place.around):
        if isinstance(each, ast.If):
            return each, "test", None
        if isinstance(each, ast.For):
            for node in ast.walk(each.iter):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "np.flatnonzero":
                    return node, "args", 0
    return None


def _invert(place: _Place) -> None:
    found = _condition(place)
    assert found is not None
    node, name, position = found
    if position is None:
        setattr(node, name, ast.UnaryOp(ast.Not(), getattr(node, name)))
    else:
        values = getattr(node, name)
        values[position] = ast.UnaryOp(ast.Invert(), values[position])


def built(mutant: Mutant) -> Callable[..., Findings]:
    """The audit of a changed source."""
    tree = ast.parse(mutant.source)
    mutant.edit(tree)
    module = ModuleType(rules.__name__)
    exec(compile(ast.fix_missing_locations(tree), rules.__file__, "exec"), module.__dict__)
    audit: Callable[..., Findings] = module.audit
    return audit


# --------------------------------------------------------------------------------------------- the judgement


class Bench:
    """What was recorded, and what the audit as it is says of it."""

    def __init__(self, recorded: dict[str, list[Heard]]) -> None:
        self.cases: dict[tuple[str, str], list[tuple[Heard, frozenset[str]]]] = {}
        for name, heard in recorded.items():
            for each in heard:
                case = self.cases.setdefault((name, each.mode), [])
                case.append((each, _kinds(rules.audit, each)))
        for case in self.cases.values():
            case.sort(key=lambda pair: -len(pair[1]))  # what is broken first: most mutants find it there

    def judge(self, mutant: Mutant) -> Row:
        """Let it judge everything, and tell what is different."""
        row = Row(mutant, why=IMPLIED.get(mutant.says, "") if mutant.change != "inverted" else "")
        if not mutant.source:
            self._leave_out(mutant.says, row)
            return row
        audit = built(mutant)
        for (name, mode), case in self.cases.items():
            was = bool(case[0][1])
            now = any(_kinds(audit, heard) for heard, _ in case)
            if was != now:
                row.caught_by.append(f"{name} {mode}: {_word(was)} to {_word(now)}")
        if not row.caught_by:
            row.kinds = list(self._other_kinds(audit))
        return row

    def _leave_out(self, point: str, row: Row) -> None:
        for (name, mode), case in self.cases.items():
            kept = [kinds for heard, kinds in case if point not in heard.points]
            if len(kept) < len(case) and case[0][1] and not any(kept):
                row.caught_by.append(f"{name} {mode}: broken to sound")
            elif frozenset().union(*kept) != frozenset().union(*(kinds for _, kinds in case)):
                row.kinds.append(f"{name} {mode}")

    def _other_kinds(self, audit: Callable[..., Findings]) -> Iterator[str]:
        for (name, mode), case in self.cases.items():
            was = frozenset[str]().union(*(kinds for _, kinds in case))
            now = frozenset[str]().union(*(_kinds(audit, heard) for heard, _ in case))
            if was != now:
                yield f"{name} {mode}: {'without' if was - now else 'with'} {' '.join(sorted(was ^ now))}"

    def points(self) -> list[Mutant]:
        """The kinds of kill point that were recorded."""
        kinds = sorted({point for case in self.cases.values() for heard, _ in case for point in heard.points})
        return [Mutant(f"kill point: {kind}", 0, "left out", kind) for kind in kinds]


def _kinds(audit: Callable[..., Findings], heard: Heard) -> frozenset[str]:
    return frozenset(str(kind) for kind in audit(*heard.arguments).counts)


def _word(broken: bool) -> str:
    return "broken" if broken else "sound"


def main() -> None:
    """Record, mutate, tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--at-once", type=int, default=2, help="receivers that are recorded at the same time")
    parser.add_argument("--recorded", type=Path, metavar="FILE", help="take what is there, or keep it there")
    parser.add_argument("--json", type=Path, metavar="FILE", default=SAVED)
    chosen = parser.parse_args()
    if chosen.record:
        target, modes, file = chosen.record
        Path(file).write_bytes(pickle.dumps(record(target, modes.split(","))))
        return
    if chosen.recorded is not None and chosen.recorded.exists():
        recorded = pickle.loads(chosen.recorded.read_bytes())
    else:
        targets: list[tuple[str, Sequence[str]]] = [(name, MODES) for name in VARIANTS]
        for file, inputs in INPUTS.items():
            targets += [(f"{TESTS / file}:{name}", modes) for name, modes in inputs.items()]
        with tempfile.TemporaryDirectory() as folder:
            recorded = record_all(targets, Path(folder), chosen.at_once)
        if chosen.recorded is not None:
            chosen.recorded.write_bytes(pickle.dumps(recorded))
    bench = Bench(recorded)
    source = Path(rules.__file__).read_text(encoding="utf-8")
    rows = [bench.judge(mutant) for mutant in [*mutants(source), *bench.points()]]
    show(rows)
    save(rows, bench, chosen.json)
    missing = [name for name, heard in recorded.items() if not heard]
    sys.exit(1 if missing or any(row.ended not in ("caught", "implied") for row in rows) else 0)


def show(rows: Iterable[Row]) -> None:
    """A table."""
    table = Table(box=None, header_style="bold")
    for heading in ("rule", "line", "mutation", "ended", "by"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        by = row.why or f"{row.caught_by[0]}{_more(row.caught_by)}" if row.caught_by or row.why else ""
        if not by and row.kinds:
            by = f"only kinds changed: {row.kinds[0]}{_more(row.kinds)}"
        style = "" if row.ended in ("caught", "implied") else "red"
        table.add_row(
            row.mutant.rule, str(row.mutant.line or ""), row.mutant.change, row.ended, by, style=style
        )
    Console(width=None if sys.stdout.isatty() else 150).print(table)


def _more(names: Sequence[str]) -> str:
    return f", and {len(names) - 1} more" if len(names) > 1 else ""


def save(rows: Sequence[Row], bench: Bench, file: Path) -> None:
    """The table as JSON."""
    ended = [row.ended for row in rows]
    saved = {
        "made_with": "bench/mutating.py",
        "receivers": len({name for name, _ in bench.cases}),
        "audits": sum(map(len, bench.cases.values())),
        "mutants": {each: ended.count(each) for each in sorted(set(ended))},
        "table": [
            {
                "rule": row.mutant.rule,
                "mutation": row.mutant.change,
                "ended": row.ended,
                "caught_by": row.caught_by[:5],
                "caught_times": len(row.caught_by),
                "only_kinds_changed": row.kinds[:5],
                "why": row.why,
            }
            for row in rows
        ],
    }
    file.write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
