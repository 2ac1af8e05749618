"""Keeping runs: `results/<utc>-<variants>-<short id>/run.json`, written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from oncebench.messages import BadInput
from oncebench.results.schema import SCHEMA, RunResult, encode

FILE = "run.json"
MOST_BYTES = 64 * 2**20
"""Of a file that is read: a large sweep has a few million."""


_Run = TypeVar("_Run", bound=msgspec.Struct)


class _Header(msgspec.Struct):
    schema: int
    kind: str = ""


def folder_for(out: Path, variants: Sequence[str]) -> Path:
    """A new folder for a run.

    Raises:
        BadInput: It cannot be made there.
    """
    names = "-".join(re.sub(r"[^A-Za-z0-9_]+", "_", name)[-24:].strip("_") for name in variants[:3])
    when = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    folder = out / f"{when}-{names}-{secrets.token_hex(3)}"
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise BadInput(
            f"cannot write results to {out}: {error.strerror}: name a folder that can be written with --out"
        ) from error
    return folder


def save(result: msgspec.Struct, folder: Path) -> Path:
    """Write `run.json` into a folder, replacing an earlier one at once.

    Raises:
        BadInput: It cannot be written; the earlier one, if any, is untouched.
    """
    path = folder / FILE
    write(path, encode(result))
    return path


def write(path: Path, data: bytes | memoryview) -> None:
    """Write a file whole or not at all, replacing an earlier one at once.

    Raises:
        BadInput: It cannot be written; the earlier one, if any, is untouched.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.exists() and not path.is_file():  # a pipe or a device is written to, never replaced
            path.write_bytes(data)
            return
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise BadInput(
            f"cannot write {path}: {error.strerror}: make room, or name another place with --out"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def file_of(path: Path) -> Path:
    """The `run.json` that a path names: itself, in its folder, or the newest one in a folder of runs."""
    if not path.is_dir():
        return path
    own = path / FILE
    runs = [] if own.exists() else path.glob(f"*/{FILE}")
    # A folder's name begins with the second it was made in.
    return max(runs, key=lambda run: (run.parent.name[:16], run.stat().st_mtime_ns), default=own)


def load(path: Path) -> RunResult:
    """Read a race, or whatever has its form, from its file, its folder, or the newest in a folder of runs.

    Raises:
        BadInput: There is none, it is damaged, or of a version that this oncebench does not know.
    """
    return load_as(path, RunResult)


def load_as(path: Path, form: type[_Run]) -> _Run:
    """Read a run of another form; else as `load`."""
    return load_by(path, lambda kind: form)


def load_by(path: Path, form_of: Callable[[str], type[_Run]]) -> _Run:
    """Read a run whose form follows from the kind that it names; else as `load`."""
    file = file_of(path)
    data = _read(file)
    try:
        header = msgspec.json.decode(data, type=_Header)
        if header.schema != SCHEMA:
            raise BadInput(
                f"{file} has schema version {header.schema}; this oncebench reads version {SCHEMA} only"
            )
        return msgspec.json.decode(data, type=form_of(header.kind))
    except (msgspec.DecodeError, RecursionError) as error:  # ValidationError is one of them
        raise BadInput(f"{file} is not a run that oncebench saved: {error}") from error


def _read(file: Path) -> bytes:
    try:
        status = file.stat()
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, "Is a directory")
        if not stat.S_ISREG(status.st_mode):  # a pipe might never end
            raise BadInput(f"{file} is no regular file: name a run's folder or its {FILE}")
        if status.st_size > MOST_BYTES:
            raise BadInput(
                f"{file} has {status.st_size:,} bytes; oncebench reads runs of {MOST_BYTES:,} at most"
            )
        return file.read_bytes()
    except OSError as error:
        raise BadInput(
            f"cannot read {file}: {error.strerror}: name a run's folder, its {FILE}, or a folder of runs"
        ) from error
