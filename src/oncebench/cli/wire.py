"""`oncebench wire`: deliveries over HTTP, with answers that get lost and processes that die."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oncebench.cli.keeping import Kept
from oncebench.messages import BadInput

if TYPE_CHECKING:
    from oncebench.receivers.loader import Receiver
    from oncebench.results.wired import WireRun
    from oncebench.wire.campaign import Setting

INTERRUPTED = 130
SEED = 7
MESSAGES = 24
FAULTS = 36
KILLS = 12
SERVERS = 2
CONNECTIONS = 2
WAREHOUSE = Path("warehouse.db")
JOURNALS = ("wal", "delete")
SYNCHRONOUS = ("full", "normal", "off")


def wire(
    variants: Annotated[
        list[str] | None, typer.Argument(help="Receivers; naive and immediate if none is given.")
    ] = None,
    messages: Annotated[int, typer.Option(help="Ids; some are owed twice, some with two quantities.")] = 24,
    faults: Annotated[int, typer.Option(help="Requests that meet a fault of the proxy.")] = FAULTS,
    kills: Annotated[int, typer.Option(help="Processes that are killed, publishers and servers.")] = KILLS,
    servers: Annotated[int, typer.Option(help="Server processes on one port and one store.")] = SERVERS,
    connections: Annotated[int, typer.Option(help="Connections of each server.")] = CONNECTIONS,
    journal: Annotated[str, typer.Option(help="wal or delete.")] = "wal",
    synchronous: Annotated[str, typer.Option(help="full, normal or off.")] = "full",
    busy_timeout: Annotated[str, typer.Option(help="How long SQLite waits for a lock.")] = "50ms",
    pause: Annotated[str, typer.Option(help="Before each statement, to widen what lies between.")] = "2ms",
    timeout: Annotated[str, typer.Option(help="How long the publisher waits for an answer.")] = "250ms",
    give_up: Annotated[str, typer.Option(help="Without any proof, the publisher ends after this.")] = "15s",
    deadline: Annotated[str, typer.Option(help="For each receiver's whole campaign.")] = "2min",
    retain: Annotated[
        int | None,
        typer.Option(help="Instead: stores that remember so many messages; pruned and low_water by default."),
    ] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Instead: be the warehouse until Ctrl-C.")] = False,
    publish_to: Annotated[
        str | None, typer.Option(metavar="URL", help="Instead: send --outbox to a warehouse here.")
    ] = None,
    outbox: Annotated[Path | None, typer.Option(help="The publisher's database, with --publish-to.")] = None,
    put: Annotated[
        list[str] | None, typer.Option(metavar="ID:QTY", help="Add this to the outbox, with --publish-to.")
    ] = None,
    host: Annotated[str, typer.Option(help="Where to listen; nothing outside this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Of the warehouse; 0 is a free one.")] = 0,
    db: Annotated[
        Path | None, typer.Option(help="Keep the store at this path; --serve: warehouse.db if not given.")
    ] = None,
    log: Annotated[
        Path | None, typer.Option(help="Keep a log: ids, quantities, outcomes; one JSON object a line.")
    ] = None,
    seed: Annotated[int, typer.Option(help="From which messages, faults and kills follow.")] = SEED,
    out: Annotated[Path, typer.Option(help="Folder for results.")] = Path("results"),
    json: Annotated[bool, typer.Option("--json", help="Print the saved form instead of tables.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress, only the verdicts.")] = False,
) -> None:
    """Deliver over HTTP on this machine while answers get lost and processes die, until all is proven.

    For teaching: no accounts, no encryption, no address outside this machine.
    """
    from oncebench.cli.values import one_of, seconds
    from oncebench.receivers.loader import load
    from oncebench.stores.sqlite import Settings
    from oncebench.wire.campaign import Setting
    from oncebench.wire.loopback import check_loopback
    from oncebench.wire.publisher import Patience

    check_loopback(host)
    one_of([journal], JOURNALS, "--journal")
    one_of([synchronous], SYNCHRONOUS, "--synchronous")
    modes = {"--serve": serve, "--publish-to": publish_to is not None, "--retain": retain is not None}
    if sum(modes.values()) > 1:
        raise BadInput(f"{' and '.join(m for m, given in modes.items() if given)}: give one of them")
    if publish_to is None and (outbox or put):
        raise BadInput("--outbox and --put go with --publish-to: give the address of a warehouse")
    patience = Patience(seconds(timeout, "--timeout"), 0.005, 0.05, seconds(give_up, "--give-up"))
    settings = Settings(journal, synchronous, seconds(busy_timeout, "--busy-timeout"))  # type: ignore[arg-type]
    if publish_to is not None:
        raise typer.Exit(_publish(publish_to, outbox, put or [], patience, seed, log, json))
    usual = ["pruned", "low_water"] if retain is not None else ["naive", "immediate"]
    names = variants or (["immediate"] if serve else usual)
    receivers = [load(target) for target in dict.fromkeys(names)]
    for receiver in receivers:
        if receiver.mixed or receiver.consumers:
            several = "two versions" if receiver.mixed else "several consumers"
            raise BadInput(f"{receiver.name} has {several}, and a warehouse one: try it with oncebench check")
    if serve:
        _serve(receivers, settings, host, port, db, log)
        return
    setting = Setting(
        settings,
        servers,
        connections,
        seconds(pause, "--pause"),
        patience,
        seconds(deadline, "--deadline"),
        port,
    )
    figures = (messages, faults, kills)
    raise typer.Exit(_run(receivers, setting, figures, seed, retain, db, log, out, json, quiet))


def _publish(
    url: str, outbox: Path | None, put: list[str], patience: object, seed: int, log: Path | None, json: bool
) -> int:
    from collections import Counter

    import msgspec

    from oncebench.wire.by_hand import publish
    from oncebench.wire.publisher import Patience

    assert isinstance(patience, Patience)
    if outbox is None:
        raise BadInput("--publish-to needs the publisher's database: name it with --outbox")
    rows, why = publish(outbox, url, [_message(text) for text in put], patience, seed=seed, keep_log=log)
    states = Counter(row.state for row in rows)
    if json:
        listed = [{"seq": row.seq, "id": row.id, "qty": row.qty, "state": row.state} for row in rows]
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(listed), indent=1) + b"\n")
    else:
        print(", ".join(f"{states[state]} {state}" for state in ("done", "conflict", "pending")))
    if why:
        print(f"oncebench: {why}; start again to go on", file=sys.stderr)
    return 3 if why else 0


def _message(text: str) -> tuple[str, int]:
    id, colon, qty = text.rpartition(":")
    if not colon or not (qty.isascii() and qty.isdecimal()) or len(qty) > 20:
        raise BadInput(f"--put takes ID:QTY such as snack-7:7, not {text!r}")
    return id, int(qty)


def _serve(
    receivers: Sequence[Receiver], settings: object, host: str, port: int, db: Path | None, log: Path | None
) -> None:
    from oncebench.stores.sqlite import Settings
    from oncebench.wire.by_hand import serve

    assert isinstance(settings, Settings)
    if len(receivers) != 1:
        raise BadInput("--serve takes one receiver")

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    serve(receivers[0], settings, host=host, port=port, store=db or WAREHOUSE, keep_log=log, say=say)


def _run(
    receivers: Sequence[Receiver],
    setting: Setting,
    figures: tuple[int, int, int],
    seed: int,
    retain: int | None,
    db: Path | None,
    log: Path | None,
    out: Path,
    json: bool,
    quiet: bool,
) -> int:
    from oncebench.report.progress import Progress
    from oncebench.results import wired
    from oncebench.wire.campaign import campaign
    from oncebench.wire.plan import draw
    from oncebench.wire.retention import in_process, over_http

    messages, faults, kills = figures
    plan = draw(seed, messages=messages, faults=faults, kills=kills)
    result = _empty(receivers, setting, figures, seed, retain, db)
    progress = Progress(not quiet)
    with Kept(out, [receiver.name for receiver in receivers]) as kept:
        for receiver in receivers:
            if retain is not None:
                ran, rate, late = over_http(receiver, retain, setting)
                late += in_process(receiver, retain, setting)
                found = wired.of_retention(ran, receiver.expected, retain, rate, late)
            else:
                with progress.of(receiver.name) as report:
                    ran = campaign(receiver, plan, setting, store=db, keep_log=log, progress=report)
                found = wired.of_campaign(ran, receiver.expected)
            result.variants.append(found)
            result.complete = receiver is receivers[-1] and not ran.interrupted
            kept.save(result)
            if ran.interrupted:
                break
    _print(result, kept.place, json, quiet)
    kept.complain()
    return _exit_code(result)


def _empty(
    receivers: Sequence[Receiver],
    setting: Setting,
    figures: tuple[int, int, int],
    seed: int,
    retain: int | None,
    db: Path | None,
) -> WireRun:
    import tempfile
    from datetime import UTC, datetime

    from oncebench.results import wired
    from oncebench.results.environment import environment
    from oncebench.results.schema import SCHEMA

    messages, faults, kills = figures
    settings, patience = setting.settings, setting.patience
    return wired.WireRun(
        schema=SCHEMA,
        kind="wire",
        seed=seed,
        command=shlex.join(["oncebench", "wire", *_again(receivers, setting, figures, seed, retain)]),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        complete=False,
        settings=wired.WireSettings(
            messages,
            faults,
            kills,
            setting.servers,
            setting.connections,
            settings.journal,
            settings.synchronous,
            settings.busy_timeout,
            setting.pause,
            patience.timeout,
            patience.give_up,
            setting.deadline,
            retain,
        ),
        environment=environment(db.parent if db is not None else Path(tempfile.gettempdir())),
    )


def _again(
    receivers: Sequence[Receiver],
    setting: Setting,
    figures: tuple[int, int, int],
    seed: int,
    retain: int | None,
) -> list[str]:
    """All that is not the default's."""
    messages, faults, kills = figures
    settings, patience = setting.settings, setting.patience
    options: dict[str, tuple[int | float | str | None, int | float | str | None]] = {
        "--seed": (seed, None),
        "--messages": (messages, MESSAGES),
        "--faults": (faults, FAULTS),
        "--kills": (kills, KILLS),
        "--servers": (setting.servers, SERVERS),
        "--connections": (setting.connections, CONNECTIONS),
        "--journal": (settings.journal, "wal"),
        "--synchronous": (settings.synchronous, "full"),
        "--busy-timeout": (settings.busy_timeout, 0.05),
        "--pause": (setting.pause, 0.002),
        "--timeout": (patience.timeout, 0.25),
        "--give-up": (patience.give_up, 15.0),
        "--deadline": (setting.deadline, 120.0),
        "--retain": (retain, None),
    }
    from oncebench.cli.values import written

    words = [receiver.name for receiver in receivers]
    for option, (value, usual) in options.items():
        if value != usual:
            words += [option, written(value)]
    return words


def _print(result: WireRun, folder: Path | None, json: bool, quiet: bool) -> None:
    from oncebench.cli.telling import tell
    from oncebench.report.wired import render, surprises, verdicts

    tell(result, lambda: render(result), lambda: (surprises(result), verdicts(result)), folder, json, quiet)


def _exit_code(result: WireRun) -> int:
    if any(variant.interrupted for variant in result.variants):
        return INTERRUPTED
    if any(v.verdict not in (v.expected_verdict, "unknown") and v.must_show for v in result.variants):
        return 1
    return 3 if any(variant.verdict == "unknown" for variant in result.variants) else 0
