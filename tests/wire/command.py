"""`python command.py wire ...`: the command line with `wire` in it, whoever registers it."""

from oncebench.cli import app, main
from oncebench.cli.wire import wire

if all(command.callback is not wire for command in app.registered_commands):
    app.command()(wire)

if __name__ == "__main__":
    main()
