"""From what a person names to something that can be called."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from oncebench.messages import MAX_QTY, BadInput, Conflict, State
from oncebench.receivers import awaiting
from oncebench.receivers.registry import VARIANTS, Judged, Mode
from oncebench.stores import sqlite
from oncebench.stores.witness import Witnessed

FORMS = "a variant's name, package.module:function or path/to/file.py:function"
MIXED = "+"
"""Between the targets of two versions that share a store, as in a rolling deploy."""


@dataclass(frozen=True, slots=True)
class Receiver:
    """The code under test, with what it brings of its own.

    Attributes:
        name: What the person called it.
        receive: `(connection, id, qty) -> bool`.
        conflict: The exception that means "this id is known with another quantity".
        expected: The verdict it must get.
        own_setup: Makes its own schema at a path; None for the bench's.
        own_connect: Opens its own connection to a path; None for the bench's.
        own_observe: Reads its effects; None for the bench's way.
        own_close: Closes what its `own_connect` opened; None for the connection's own `close` or `dispose`.
        serve: Runs beside the workers in a process of its own, given a connection and the path.
        receive_payload: `(connection, id, qty, schema, payload) -> bool` for messages that carry a JSON
            object and the version of its form; None if it takes none.
        consumers: Who each get every message; `receive` is then given ids such as `m1@stock`, and the
            inbox that is observed has them. Empty where there is one consumer, without a name.
        mixed: The targets of an old and a new version that share the store; what is not `receive` is the
            old one's. Empty for a receiver of one version.
        maker: The class that the code is an object of, if the target is that class.
        asynchronous: Whether it is a coroutine function. `receive` is plain all the same, as are all others:
            it runs the coroutine to its end on the event loop of the calling thread.
    """

    name: str
    receive: Callable[[Any, str, int], object]
    conflict: type[BaseException] = Conflict
    expected: Judged = "sound"
    own_setup: Callable[[Path], object] | None = None
    own_connect: Callable[[Path], Any] | None = None
    own_observe: Callable[[Path], State] | None = None
    own_close: Callable[[Any], object] | None = None
    serve: Callable[[sqlite3.Connection, Path], None] | None = None
    receive_payload: Callable[[Any, str, int, int, dict[str, Any]], object] | None = None
    consumers: tuple[str, ...] = ()
    mixed: tuple[str, ...] = ()
    maker: type | None = None
    asynchronous: bool = False

    def anew(self) -> Receiver:
        """The same with an object that has seen nothing yet; itself if it is no class's."""
        return self if self.maker is None else receiver(self.maker, self.name, self.expected)

    def expected_in(self, mode: Mode) -> Judged:
        """The verdict it must get in one mode: a variant declares its own, all others are to be sound."""
        variant = VARIANTS.get(self.name)
        return self.expected if variant is None else variant.expected_in(mode)

    def version(self, n: int) -> str:
        """The target of the version that comes nth, from 0, where versions take turns."""
        return self.mixed[n % len(self.mixed)] if self.mixed else self.name

    def addressed(self, id: str) -> str:
        """An id as it comes to this receiver's first consumer."""
        return f"{id}@{self.consumers[0]}" if self.consumers else id

    def setup(self, path: Path, settings: sqlite.Settings, *, watched: bool) -> None:
        """Make its store.

        Raises:
            BadInput: It cannot be made.
        """
        if self.own_setup is None:
            sqlite.setup(path, settings, watched=watched)
            return
        try:
            self.own_setup(path)
        except Exception as error:
            raise BadInput(
                f"setup({str(path)!r}) of {self.name} failed: {_said(error)}: it must make the store there"
            ) from error

    def connect(self, path: Path, settings: sqlite.Settings) -> Any:
        """Open its connection; the bench's own can attribute changes to calls."""
        if self.own_connect is not None:
            return self.own_connect(path)
        return sqlite.connect(path, settings, Witnessed)

    def close(self, db: Any) -> None:
        """Close its connection, an engine with all that it has pooled included."""
        if self.own_close is not None:
            self.own_close(db)
            return
        for name in ("close", "dispose"):
            close = getattr(db, name, None)
            if callable(close):
                awaiting.finished(close())
                return

    def observe(self, path: Path, after: int = 0) -> State:
        """Read its effects over a connection of its own.

        Raises:
            oncebench.stores.sqlite.Unreadable: They cannot be read.
        """
        if self.own_observe is None:
            return sqlite.read_state(path, after)
        try:
            state = self.own_observe(path)
        except Exception as error:
            raise sqlite.Unreadable(f"observe() of {self.name} failed: {_said(error)}") from error
        if not isinstance(state, State):
            raise sqlite.Unreadable(f"observe() of {self.name} returned {type(state).__name__}, not a State")
        for row in state.inbox:
            match row:
                case (str(), int() as qty) if abs(qty) <= MAX_QTY:
                    continue
            raise sqlite.Unreadable(f"observe() of {self.name} has the inbox row {row!r}, not (id, qty)")
        if not isinstance(state.total, int):
            raise sqlite.Unreadable(f"observe() of {self.name} has the total {state.total!r}, not an integer")
        return state


def load(target: str) -> Receiver:
    """Find a receiver.

    Args:
        target: A variant's name, `package.module:function` or `path/to/file.py:function`; or two of them
            with a + between, the old version and the new one.

    Raises:
        BadInput: There is none of that name, it does not import, or it cannot be called so.
    """
    versions = _versions(target)
    if versions is not None:
        return _mix(target, *map(load, versions))
    variant = VARIANTS.get(target)
    if variant is not None:
        module = importlib.import_module(variant.module)
        return receiver(getattr(module, "receiver", module), target, variant.expected)
    place, colon, attribute = target.rpartition(":")
    if not colon or not place or not attribute:
        near = difflib.get_close_matches(target, VARIANTS, n=1)
        guess = f"did you mean {near[0]}?" if near else f"give {FORMS}; `oncebench variants` lists the names"
        raise BadInput(f"there is no variant {target!r}: {guess}")
    found: Any = _import(place)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise BadInput(
                f"{place} has no {part!r} (asked for as {target!r}): name a function or object in it"
            )
        found = getattr(found, part)
    return receiver(found, target)


def _versions(target: str) -> tuple[str, str] | None:
    """Old and new; None if it is one target, whose path may have a + in it."""
    for at in (at for at, sign in enumerate(target) if sign == MIXED):
        old, new = target[:at], target[at + 1 :]
        if (old in VARIANTS or ":" in old) and (new in VARIANTS or ":" in new or _versions(new)):
            return old, new
    return None


def _mix(name: str, old: Receiver, new: Receiver) -> Receiver:
    """Two versions as one receiver.

    Raises:
        BadInput: They cannot share a store.
    """
    if new.mixed:
        raise BadInput(f"{name} has more than two versions: give the old one and the new one")
    if (old.own_setup is None) != (new.own_setup is None):
        raise BadInput(f"{name}: only one of them brings a schema of its own, so they cannot share a store")
    if old.consumers != new.consumers:
        raise BadInput(f"{name}: they name different consumers: give both the same")
    if old.serve or new.serve:
        raise BadInput(f"{name}: one of them has a process beside its workers, which cannot be mixed")
    expected: Judged = "broken" if "broken" in (old.expected, new.expected) else "sound"
    if name in VARIANTS:
        expected = VARIANTS[name].expected
    return replace(old, name=name, expected=expected, mixed=(old.name, new.name))


def receiver(code: Any, name: str, expected: Judged = "sound") -> Receiver:
    """Take a function, or an object with `receive` and perhaps more of what a `Receiver` has.

    An object may have `setup`, `connect`, `close`, `observe`, `serve` and `receive_payload`, and each of them
    may be async; either may name the exception that means a conflict in an attribute `conflict`, and in
    `consumers` those who each get every message: its fourth parameter then says which of them this delivery
    is for.

    Raises:
        BadInput: It cannot be called as a receiver.
    """
    maker = code if inspect.isclass(code) else None
    if maker is not None:
        try:
            code = maker()
        except Exception as error:
            raise BadInput(f"{name} is a class and {name}() failed: {_said(error)}") from error
    receive = getattr(code, "receive", code)
    if not callable(receive):
        raise BadInput(
            f"{name} is a {type(code).__name__}: a receiver is a function, or an object with receive()"
        )
    consumers = _consumers(code, name)
    try:
        inspect.signature(receive).bind(None, "id", 1, *consumers[:1])
    except TypeError as error:
        form, count = (
            ("receive(db, id, qty, consumer)", "four") if consumers else ("receive(db, id, qty)", "three")
        )
        raise BadInput(
            f"{name} cannot be called as {form}: {error}: give it these {count} parameters"
        ) from error
    except ValueError:  # a builtin without a signature: the first call will tell
        pass
    conflict = getattr(code, "conflict", Conflict)
    if not (inspect.isclass(conflict) and issubclass(conflict, BaseException)):
        raise BadInput(f"{name}.conflict must be an exception class, not {conflict!r}")
    called = awaiting.plain(receive)
    return Receiver(
        name,
        _to_consumer(called, consumers) if consumers else called,
        conflict,
        expected,
        own_setup=awaiting.alone(getattr(code, "setup", None)),
        own_connect=awaiting.plain(getattr(code, "connect", None)),
        own_observe=awaiting.alone(getattr(code, "observe", None)),
        own_close=awaiting.plain(_close(code)),
        serve=awaiting.plain(getattr(code, "serve", None)),
        receive_payload=awaiting.plain(getattr(code, "receive_payload", None)),
        consumers=consumers,
        maker=maker,
        asynchronous=awaiting.is_async(receive),
    )


def _close(code: Any) -> Callable[[Any], object] | None:
    """Its `close(db)`; an object may have another `close` that is nobody's business."""
    close: Any = getattr(code, "close", None)
    try:
        inspect.signature(close).bind(None)
    except (TypeError, ValueError):
        return None
    return close  # type: ignore[no-any-return]


def _consumers(code: Any, name: str) -> tuple[str, ...]:
    """Those that a receiver names.

    Raises:
        BadInput: They are not names.
    """
    named = getattr(code, "consumers", ())
    each = tuple(named) if isinstance(named, tuple | list) else (None,)
    if not all(isinstance(one, str) and one and "@" not in one for one in each) or len(set(each)) < len(each):
        raise BadInput(f"{name}.consumers must be different names without @, not {named!r}")
    return tuple(str(one) for one in each)


def _to_consumer(
    receive: Callable[..., object], consumers: tuple[str, ...]
) -> Callable[[Any, str, int], object]:
    """Takes the consumer from the id."""

    def receive_addressed(db: Any, id: str, qty: int) -> object:
        plain, _, consumer = id.rpartition("@")
        if consumer not in consumers:  # a mark that makes an exploration's ids new comes after it
            mark = consumer
            plain, _, consumer = plain.rpartition("@")
            plain += f"@{mark}"
        return receive(db, plain, qty, consumer)

    return receive_addressed


def _import(place: str) -> Any:
    """A module by its dotted name (the working folder counts, as with `python -m`) or its file."""
    path = Path(place)
    by_file = place.endswith(".py")
    if by_file and not path.is_file():
        raise BadInput(f"there is no file {place}: give {FORMS}")
    folder = str(path.resolve().parent if by_file else Path.cwd())
    added = folder not in sys.path
    if added:
        sys.path.insert(0, folder)
    try:
        return _import_file(path.resolve()) if by_file else importlib.import_module(place)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # anything may happen in somebody's module, SystemExit included
        if added:
            sys.path.remove(folder)
        raise BadInput(f"{place} does not import: {_said(error)}: mend it and try again") from error


def _import_file(path: Path) -> Any:
    name = path.stem
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known
    if known is not None or name in sys.stdlib_module_names:  # leave a json.py of theirs to them
        name = f"oncebench_target_{name}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles in it look themselves up by name
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
