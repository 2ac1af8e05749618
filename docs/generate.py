"""Write docs/reference/ from the command line and the docstrings; a test holds both against each other.

Run it with `.venv/bin/python docs/generate.py`.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path

from typer.models import ArgumentInfo, OptionInfo

from oncebench.cli import app

HERE = Path(__file__).parent / "reference"
MODULES = ("oncebench", "oncebench.testing", "oncebench.testing.strategies")
_MADE = "<!-- Made by docs/generate.py: change the code instead. -->"


def commands() -> str:
    """Every command, argument and option."""
    pages = [f"# Commands\n\n{_MADE}\n\n{app.info.help}\n\n{app.info.epilog}"]
    for command in app.registered_commands:
        assert command.callback is not None
        pages.append(_command(command.callback))
    return "\n\n".join(pages) + "\n"


def _command(code: Callable[..., object]) -> str:
    arguments, options = [], []
    for name, parameter in inspect.signature(code, eval_str=True).parameters.items():
        kind, info = typing.get_args(parameter.annotation)
        about = _sentence(info.help or "")
        if isinstance(info, ArgumentInfo):
            arguments.append((f"`{(info.metavar or name).upper()}`", about, ""))
        else:
            assert isinstance(info, OptionInfo)
            names = info.param_decls or (f"--{name.replace('_', '-')}",)
            takes = "" if kind is bool else f" {_takes(kind, info)}"
            shown = ", ".join(f"`{one}{takes}`" for one in names)
            options.append((shown, about, _default(parameter.default)))
    name = code.__name__.replace("_", "-")
    usage = " ".join(["oncebench", name, "[OPTIONS]", *(one[0].strip("`") for one in arguments)])
    text = inspect.cleandoc(code.__doc__ or "")
    rows = [f"| {what} | {about} | {default} |" for what, about, default in (*arguments, *options)]
    return "\n".join(
        [f"## {name}\n", f"    {usage}\n", f"{text}\n", "| | | default |", "| --- | --- | --- |", *rows]
    )


def _takes(kind: object, info: OptionInfo) -> str:
    if info.metavar:
        return info.metavar
    inner = [one for one in typing.get_args(kind) if one is not types.NoneType] or [kind]
    while typing.get_args(inner[0]):  # list[str] | None
        inner = list(typing.get_args(inner[0]))
    return {"int": "N", "float": "X", "Path": "PATH"}.get(getattr(inner[0], "__name__", ""), "TEXT")


def _default(value: object) -> str:
    nothing = value is None or value is False or value is inspect.Parameter.empty
    return "" if nothing else f"`{'on' if value is True else value}`"


def _sentence(text: str) -> str:
    return text.replace("|", "\\|")


def interface() -> str:
    """Every public name with its signature and docstring."""
    pages = [f"# Python\n\n{_MADE}"]
    for place in MODULES:
        module = importlib.import_module(place)
        pages.append(f"## {place}\n\n{_fenced(inspect.getdoc(module) or '')}")
        pages += [_documented(name, getattr(module, name)) for name in _public(module)]
    return "\n\n".join(pages) + "\n"


def _public(module: types.ModuleType) -> list[str]:
    listed = getattr(module, "__all__", None)
    own = (name for name, code in vars(module).items() if getattr(code, "__module__", "") == module.__name__)
    return sorted(listed if listed is not None else (name for name in own if not name.startswith("_")))


def _documented(name: str, thing: object) -> str:
    own = [f"{name}{_signature(thing)}", *_indented(inspect.getdoc(thing) or "")]
    if inspect.isclass(thing) and issubclass(thing, enum.Enum):
        own += ["", *(f"    {member.name}" for member in thing)]
    for member, code in inspect.getmembers(thing) if inspect.isclass(thing) else ():
        if not member.startswith("_") and member in vars(thing):
            code = code.fget if isinstance(code, property) else code
            if inspect.isroutine(code) and code.__doc__:
                own += ["", f"    {member}{_signature(code)}", *_indented(inspect.getdoc(code) or "", 8)]
    return f"### {name}\n\n" + _fenced("\n".join(own))


def _signature(thing: object) -> str:
    if inspect.isclass(thing) and issubclass(thing, (BaseException, enum.Enum)):
        return ""
    try:
        text = str(inspect.signature(typing.cast("Callable[..., object]", thing)))
    except (TypeError, ValueError):
        return ""
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)


def _indented(text: str, by: int = 4) -> Iterator[str]:
    for line in text.splitlines():
        yield f"{' ' * by}{line}".rstrip()


def _fenced(text: str) -> str:
    return f"```text\n{text}\n```"


PAGES = {"commands.md": commands, "python.md": interface}


def main() -> None:
    """Write all pages, or with --check exit with 1 if one is not as it would be written."""
    HERE.mkdir(exist_ok=True)
    stale = []
    for name, page in PAGES.items():
        path, text = HERE / name, page()
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
    if stale and "--check" in sys.argv:
        sys.exit(f"{', '.join(stale)}: not as the code says; run python docs/generate.py")


if __name__ == "__main__":
    main()
