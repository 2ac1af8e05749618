"""What a check holds: the results of its modes, one verdict over all of them, and the smallest proofs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct, field

from oncebench.audit import Verdict
from oncebench.results.explored import Counterexample, ExploreVariant
from oncebench.results.schema import Proof, RunResult, VerdictWord
from oncebench.workload import NEIGHBOURS, PHASES

MODES = ("sequential", "extremes", "race", "explore", "crash")
"""In the order in which they run; `threads` comes after `race` where connections are made for threads."""
_BEST_PROOF = (
    "sequential",
    "extremes",
    "explore",
    "crash",
    "race",
    "threads",
)  # the one first that needs the least luck

_MAY_BE_UNKNOWN = {"explore": "not every interleaving", "extremes": "quantities near 2^63-1"}
"""What was not tried if one of these ends unknown: how the receiver is made may not allow it."""


class Mode(Struct):
    """One way in which the receiver was tried.

    Attributes:
        name: One of `MODES`, or "threads".
        verdict: "sound", "broken" or "unknown".
        tried: What was tried, in figures.
        seconds: How long that took.
        because: Why the verdict is unknown; empty if it is not.
    """

    name: str
    verdict: VerdictWord
    tried: str
    seconds: float
    because: list[str] = field(default_factory=list)


class Found(Struct):
    """One kind of violation.

    Attributes:
        kind: What is wrong.
        modes: Who found it.
        proof: The smallest over all of them.
        replay: The command that shows it again.
    """

    kind: str
    modes: list[str]
    proof: Proof
    replay: str


class CheckRun(Struct):
    """One receiver in every mode.

    Attributes:
        schema: `oncebench.results.schema.SCHEMA`.
        kind: "check".
        seed: From which all random choices follow.
        command: The line that runs it again.
        created: UTC, ISO 8601.
        complete: False if it was cut short.
        target: The receiver.
        because: Why the verdict is unknown; empty if it is not.
        untried: What a reader of "sound" must know was not tried.
        modes: In the order in which they ran.
        found: Each kind of violation once.
        sequential: One worker, one delivery after the other: a result of kind "race".
        extremes: As `sequential`, with quantities that fill the total, and some that it has no room for.
        race: Many workers at once.
        threads: The same as threads of one process; None if the receiver is not made for them.
        explore: As `oncebench explore` has it for this receiver.
        crash: Killed at every point of a call.
    """

    schema: int
    kind: Literal["check"]
    seed: int
    command: str
    created: str
    complete: bool
    target: str
    verdict: VerdictWord
    expected_verdict: VerdictWord
    because: list[str]
    untried: list[str]
    modes: list[Mode]
    found: list[Found]
    environment: dict[str, str | int | list[str]]
    sequential: RunResult | None = None
    extremes: RunResult | None = None
    race: RunResult | None = None
    threads: RunResult | None = None
    explore: ExploreVariant | None = None
    crash: RunResult | None = None

    def results(self) -> Iterator[tuple[str, RunResult]]:
        """What processes did, by the mode's name, as far as it was tried: all but exploring."""
        for mode in ("sequential", "extremes", "race", "threads", "crash"):
            result: RunResult | None = getattr(self, mode)
            if result is not None:
                yield mode, result


def conclude(run: CheckRun) -> None:
    """Draw the verdict, its reasons and the smallest proofs from what the modes have come to.

    A receiver that cannot be explored to the end, because of how it is made, is not unknown for that alone:
    it raced and it was killed. What was not explored is said.
    """
    run.untried, reasons = [], []
    verdicts = []
    for mode in run.modes:
        if mode.name in _MAY_BE_UNKNOWN and mode.verdict == Verdict.UNKNOWN:
            run.untried += [f"{_MAY_BE_UNKNOWN[mode.name]}: {reason}" for reason in mode.because]
            continue
        verdicts.append(Verdict(mode.verdict))
        reasons += [f"{mode.name}: {reason}" for reason in mode.because]
    if run.explore is not None:
        run.untried += [f"explore: {what}" for what in run.explore.unexplored]
    missing = [name for name in MODES if name not in {mode.name for mode in run.modes}]
    if not run.complete:
        reasons += [f"{name} was not begun" for name in missing]
        verdicts.append(Verdict.UNKNOWN)
    elif missing:
        run.untried.append(f"{', '.join(missing)}: a call does not come back even alone")
    verdict = Verdict.worst(verdicts)
    run.verdict = verdict
    run.because = reasons if verdict is Verdict.UNKNOWN else []
    run.found = list(_found(run))


def _found(run: CheckRun) -> Iterator[Found]:
    """Each kind with its smallest proof, those with the smallest proofs first."""
    kinds: dict[str, list[tuple[str, Proof, str]]] = {}
    for name in _BEST_PROOF:
        for proof, replay in sorted(_proofs(run, name), key=lambda pair: len(pair[0].operations) or 99):
            kinds.setdefault(proof.kind, []).append((name, proof, replay))
    for kind, proofs in sorted(kinds.items(), key=lambda item: _BEST_PROOF.index(item[1][0][0])):
        _, proof, replay = proofs[0]
        yield Found(kind, list(dict.fromkeys(name for name, _, _ in proofs)), proof, replay)


def _proofs(run: CheckRun, mode: str) -> Iterator[tuple[Proof, str]]:
    if mode == "explore":
        for violation in run.explore.violations if run.explore is not None else ():
            yield _as_proof(violation), violation.replay
        return
    result: RunResult | None = getattr(run, mode)
    if result is None:
        return
    for variant in result.variants:
        for proof in variant.violations:
            yield proof, shlex.join(_again(run, mode, result, proof))


def _again(run: CheckRun, mode: str, result: RunResult, proof: Proof) -> Sequence[str]:
    """The command that runs the part again in which a proof was seen."""
    if mode == "crash":
        signal = proof.point.split()[0].removeprefix("SIG").lower()
        return ["oncebench", "crash", run.target, "--journal", proof.journal, "--signal", signal]
    part = proof.id.rpartition("-")[0]
    part = "neighbours" if proof.id in NEIGHBOURS else part
    words = ["oncebench", "run", run.target, "--seed", str(run.seed), "--journal", proof.journal]
    if mode in ("sequential", "extremes", "threads"):
        words += ["--workers", "1"] if mode != "threads" else ["--threads", str(result.settings.threads)]
    return [*words, "--workload", part] if part in PHASES else words


def _as_proof(violation: Counterexample) -> Proof:
    return Proof(**{name: getattr(violation, name) for name in Proof.__struct_fields__})
