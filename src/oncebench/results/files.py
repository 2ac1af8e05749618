"""Keeping runs: `results/<utc>-<variants>-<short id>/run.json`, written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from oncebench.messages import BadInput
from oncebench.results.schema import SCHEMA, RunResult, encode

FILE = "run.json"


class _Version(msgspec.Struct):
    schema: int


def folder_for(out: Path, variants: list[str]) -> Path:
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
    temporary = folder / f".{FILE}.{os.getpid()}"
    try:
        with temporary.open("wb") as file:
            file.write(encode(result))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise BadInput(
            f"cannot write {path}: {error.strerror}: make room, or name another folder with --out"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    return path


def load(path: Path) -> RunResult:
    """Read a run from its folder or file.

    Raises:
        BadInput: There is none, it is damaged, or of a version that this oncebench does not know.
    """
    file = path / FILE if path.is_dir() else path
    try:
        data = file.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read {file}: {error.strerror}: name a run's folder or its {FILE}") from error
    try:
        found = msgspec.json.decode(data, type=_Version).schema
        if found != SCHEMA:
            raise BadInput(f"{file} has schema version {found}; this oncebench reads version {SCHEMA} only")
        return msgspec.json.decode(data, type=RunResult)
    except (msgspec.DecodeError, RecursionError) as error:  # ValidationError is one of them
        raise BadInput(f"{file} is not a run that oncebench saved: {error}") from error
