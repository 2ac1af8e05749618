"""The command line: one file per command, each a thin call into a room above."""

from __future__ import annotations

import signal
import sys

import typer

from oncebench.cli.check import check
from oncebench.cli.compare import compare
from oncebench.cli.crash import crash
from oncebench.cli.explore import explore
from oncebench.cli.plot import plot
from oncebench.cli.replay import replay
from oncebench.cli.report import report
from oncebench.cli.run import run
from oncebench.cli.show import show
from oncebench.cli.sweep import sweep
from oncebench.cli.telling import INTERRUPTED
from oncebench.cli.variants import variants
from oncebench.cli.wire import wire
from oncebench.messages import BadInput

app = typer.Typer(
    name="oncebench",
    help="Does a message that arrives twice, at the same moment, land exactly once?",
    epilog="A receiver is a variant's name, package.module:function or path/to/file.py:function. "
    "Exit codes: 0 every verdict is the declared one, 1 not so, 2 bad input, 3 unknown.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for _command in (check, run, explore, replay, crash, wire, sweep, compare, show, report, plot, variants):
    app.command()(_command)

# The class that all errors of usage have in common, wherever this version of typer keeps it.
_Misuse = next(cls for cls in typer.BadParameter.__mro__ if cls.__name__ == "ClickException")


_terminated: list[int] = []


def main() -> None:
    """Run a command; bad input ends in one sentence and exit code 2, a signal in 128 and its number."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        code = app(standalone_mode=False)
    except typer.Exit as stop:
        code = stop.exit_code
    except BadInput as error:
        code = _refuse(str(error))
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except BrokenPipeError:  # a reader such as `head` left
        sys.stderr.close()
        code = 1
    except Exception as error:
        if not isinstance(error, _Misuse):
            raise
        code = _refuse(error.format_message())  # type: ignore[attr-defined]
    if code == INTERRUPTED and _terminated:
        code = 128 + signal.SIGTERM
    sys.exit(code if isinstance(code, int) else 0)


def _terminate(number: int, frame: object) -> None:
    """A polite kill is taken as Ctrl-C: what was measured is kept, and no worker stays behind."""
    _terminated.append(number)
    raise KeyboardInterrupt


def _refuse(sentence: str) -> int:
    from oncebench.report.texts import printable

    told = "\n".join(map(printable, sentence.split("\n")))
    print(f"oncebench: {told}", file=sys.stderr)
    return 2
