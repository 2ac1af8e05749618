"""Whole histories as columns: `history.npz`, which numpy reads, without anything that could run."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from oncebench.messages import COLUMNS, BadInput, History, State, Witness
from oncebench.results.files import write

if TYPE_CHECKING:
    import numpy.typing as npt

_WITNESS = ("event", "amount", "call", "at")


def save_history(path: Path, history: History, before: State, after: State) -> None:
    """Write a history and what was read before and after it.

    Columns are named as in `History`; a text column is its UTF-8 bytes and where each text ends
    (`ids`, `ids.ends`). `before.total`, `before.inbox`, `before.inbox.qty` and the same of `after` are the
    states; `witness.event` and the others what the triggers saw, if they were there.

    Raises:
        BadInput: It cannot be written.
    """
    columns: dict[str, Any] = {name: getattr(history, name) for name in COLUMNS}
    columns |= _texts("ids", history.ids) | _texts("details", history.details)
    for name, state in (("before", before), ("after", after)):
        columns[f"{name}.total"] = np.array(state.total)
        columns |= _texts(f"{name}.inbox", [id for id, _ in state.inbox])
        columns[f"{name}.inbox.qty"] = np.fromiter((qty for _, qty in state.inbox), dtype=np.int64)
    if after.witness is not None:
        columns |= {f"witness.{name}": getattr(after.witness, name) for name in _WITNESS}
        columns["witness.named"] = np.fromiter((id is not None for id in after.witness.id), dtype=np.bool_)
        columns |= _texts("witness.id", [id or "" for id in after.witness.id])
    written = io.BytesIO()
    np.savez(written, **columns)
    write(path, written.getbuffer())


def load_history(path: Path) -> tuple[History, State, State]:
    """Read what `save_history` wrote: the history, the state before, the state after.

    Raises:
        BadInput: It cannot be read, or is none.
    """
    try:
        with np.load(path, allow_pickle=False) as columns:
            known = {name: columns[name] for name in columns.files}
        history = History(
            _read(known, "ids"), _read(known, "details"), **{name: known[name] for name in COLUMNS}
        )
        if len({len(known[name]) for name in COLUMNS}) > 1:
            raise ValueError("columns of unequal lengths")
        return history, _state(known, "before"), _state(known, "after")
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror or error}") from error
    except (KeyError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise BadInput(f"{path} is not a history that oncebench saved: {error}") from error


def _texts(name: str, texts: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """One array of bytes, not of texts as wide as the widest."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64), dtype=np.int64)
    return {name: np.frombuffer(b"".join(encoded), dtype=np.uint8), f"{name}.ends": ends}


def _read(columns: dict[str, npt.NDArray[Any]], name: str) -> list[str]:
    data, ends = columns[name].tobytes(), columns[f"{name}.ends"].tolist()
    starts = [0, *ends[:-1]]
    return [
        data[start:end].decode("utf-8", "surrogatepass") for start, end in zip(starts, ends, strict=False)
    ]


def _state(columns: dict[str, npt.NDArray[Any]], name: str) -> State:
    inbox = list(zip(_read(columns, f"{name}.inbox"), columns[f"{name}.inbox.qty"].tolist(), strict=True))
    witness = None
    if name == "after" and "witness.event" in columns:
        named = columns["witness.named"].tolist()
        ids = [id if is_id else None for id, is_id in zip(_read(columns, "witness.id"), named, strict=True)]
        witness = Witness(**{part: columns[f"witness.{part}"] for part in _WITNESS}, id=ids)
    return State(int(columns[f"{name}.total"]), inbox, witness)
