import asyncio
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from oncebench.messages import BadInput, Conflict, State
from oncebench.receivers import awaiting, loader
from oncebench.receivers.registry import VARIANTS
from oncebench.stores.sqlite import Settings, Unreadable, effective
from oncebench.stores.witness import Witnessed

CODE = """
class Mine(Exception): pass
def receive(db, id, qty): return True
def picky(db, id, qty): raise Mine
picky.conflict = Mine
class Shop:
    conflict = Mine
    def setup(self, path): path.write_text("made")
    def connect(self, path): return path.read_text()
    def receive(self, db, id, qty): return False
    def observe(self, path): return path
    def serve(self, db, path): pass
shop = Shop()
class Needs:
    def __init__(self, what): pass
class Rooms:
    class inner:
        shop = shop
async def later(db, id, qty): return True
async def less(db, id): return True
def two(db, id): return True
def four(db, id, qty, more): return True
def optional(db, id, qty, more=None): return True
def odd(db, id, qty): return True
odd.conflict = "Mine"
number = 7
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder with a module `shop`; what it imports is forgotten again."""
    (tmp_path / "shop.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def refused(target: str) -> str:
    """The one sentence that a person reads."""
    before = set(sys.modules)
    with pytest.raises(BadInput) as caught:
        loader.load(target)
    assert "\n" not in str(caught.value)
    assert {name for name in set(sys.modules) - before if not name.startswith("shop")} == set()
    return str(caught.value)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_by_its_name(name: str) -> None:
    """Each that ships can be called, and declares its verdict."""
    receiver = loader.load(name)
    assert (receiver.name, receiver.expected) == (name, VARIANTS[name].expected)
    assert receiver.conflict is Conflict
    assert (receiver.serve is not None) is (name == "group")


@pytest.mark.parametrize("place", ["shop", "shop.py", "./shop.py"])
def test_a_function_by_module_or_file(place: str) -> None:
    """It is expected to be sound and gets the defaults for all it does not bring."""
    receiver = loader.load(f"{place}:receive")
    assert receiver.receive(None, "a", 7) is True
    assert (receiver.expected, receiver.conflict) == ("sound", Conflict)
    brought = (receiver.own_setup, receiver.own_connect, receiver.own_observe, receiver.serve)
    assert brought == (None, None, None, None)


@pytest.mark.parametrize("watched", [True, False])
def test_a_function_gets_the_store_of_the_bench(watched: bool, folder: Path) -> None:
    """Made, connected to and read with the settings of the race; of the witness what came after a row."""
    receiver, settings = loader.load("shop:receive"), Settings("delete", "off", 0.5)
    receiver.setup(folder / "s.db", settings, watched=watched)
    db = receiver.connect(folder / "s.db", settings)
    assert isinstance(db, Witnessed)
    assert effective(db) == settings
    db.execute("INSERT INTO inbox VALUES ('a', 7), ('b', 7)")
    state = receiver.observe(folder / "s.db", after=1)
    assert [id for id, _ in state.inbox] == ["a", "b"]
    assert (list(state.witness.id) if state.witness else None) == (["b"] if watched else None)


def test_a_function_in_a_package(folder: Path) -> None:
    """`package.module:function`, with an import of its own neighbour."""
    (folder / "depot").mkdir()
    (folder / "depot" / "__init__.py").write_text("")
    (folder / "depot" / "door.py").write_text("from depot.lock import receive")
    (folder / "depot" / "lock.py").write_text("def receive(db, id, qty): return False")
    assert loader.load("depot.door:receive").receive(None, "a", 7) is False


def test_a_file_elsewhere_and_its_neighbour(folder: Path) -> None:
    """The file's own folder counts, as for a script."""
    (folder / "far").mkdir()
    (folder / "far" / "side.py").write_text("answer = False")
    (folder / "far" / "main_.py").write_text(
        "from dataclasses import dataclass\nfrom side import answer\n"
        "@dataclass\nclass Box:\n    id: 'str'\ndef receive(db, id, qty): return answer\n"
    )
    target = f"{folder / 'far' / 'main_.py'}:receive"
    first, second = loader.load(target), loader.load(target)
    assert first.receive(None, "a", 7) is False
    assert first.receive is second.receive  # not imported twice


@pytest.mark.parametrize("attribute", ["shop", "Shop", "Rooms.inner.shop"])
def test_an_object_or_class_brings_its_own(attribute: str, folder: Path) -> None:
    """Its receive, setup, connect, observe, serve and conflict are used."""
    receiver = loader.load(f"shop:{attribute}")
    path = folder / "store"
    receiver.setup(path, Settings(), watched=True)
    assert receiver.connect(path, Settings()) == "made"
    assert receiver.receive(None, "a", 7) is False
    assert receiver.conflict.__name__ == "Mine"
    assert receiver.serve is not None
    with pytest.raises(Unreadable, match=r"observe\(\) of .* returned .*Path, not a State"):
        receiver.observe(path)


def test_async_receivers_are_called_like_any_other(tmp_path: Path) -> None:
    """Each thread's on one loop, so that a task may go on from one call to the next; inside a loop too."""

    class Mine:
        async def setup(self, path: Path) -> None:
            path.write_text("made")

        async def connect(self, path: Path) -> "asyncio.Task[str]":
            return asyncio.create_task(asyncio.to_thread(path.read_text))

        async def receive(self, db: "asyncio.Task[str]", id: str, qty: int) -> bool:
            return await db == "made"

        async def close(self, db: "asyncio.Task[str]") -> None:
            (await asyncio.wait_for(asyncio.to_thread(tmp_path.joinpath), 60)).joinpath("store").unlink()

        async def observe(self, path: Path) -> State:
            await asyncio.sleep(0)
            return State(7)

    receiver = loader.receiver(Mine(), "mine")
    assert receiver.asynchronous
    assert not loader.load("shop:receive").asynchronous
    assert loader.load("shop:later").receive(None, "a", 7) is True

    async def inside() -> State:
        receiver.setup(tmp_path / "store", Settings(), watched=False)
        return receiver.observe(tmp_path / "store")

    assert asyncio.run(inside()) == State(7)
    db = receiver.connect(tmp_path / "store", Settings())
    assert receiver.receive(db, "a", 7) is True
    receiver.close(db)
    assert not (tmp_path / "store").exists()
    awaiting.end()


def test_a_task_that_is_left_ends_with_its_loop() -> None:
    """Cancelled, as at the end of any program; and so does whatever a call that was killed had begun."""
    ended: list[str] = []

    class Killed(BaseException):
        pass

    async def waits(name: str) -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            ended.append(name)

    async def receive(db: object, id: str, qty: int) -> bool:
        tasks.append(asyncio.create_task(waits(id)))
        await asyncio.sleep(0)
        if qty == 1:
            raise Killed
        return True

    tasks: list[asyncio.Task[None]] = []
    receiver = loader.receiver(receive, "mine")
    with pytest.raises(Killed):
        receiver.receive(None, "a", 1)
    assert ended == ["a"]
    receiver.receive(None, "b", 2)
    assert ended == ["a"]
    awaiting.end()
    assert ended == ["a", "b"]


def test_a_function_may_name_its_conflict() -> None:
    """In an attribute; any exception class will do."""
    assert loader.load("shop:picky").conflict.__name__ == "Mine"
    assert loader.load("shop:optional").conflict is Conflict


def test_what_a_receiver_brings_may_fail(tmp_path: Path) -> None:
    """setup() is bad input, observe() an unreadable store; both say what happened. One that works is used."""

    def fails(path: Path) -> object:
        raise RuntimeError("no room\nat all")

    def works(path: Path) -> object:
        return State(7)

    def brings(setup: Callable[[Path], object]) -> loader.Receiver:
        own = SimpleNamespace(receive=lambda *message: True, setup=setup, observe=setup)
        return loader.receiver(own, "own")

    with pytest.raises(BadInput, match=r"^setup\(.*\) of own failed: RuntimeError: no room: "):
        brings(fails).setup(tmp_path, Settings(), watched=False)
    with pytest.raises(Unreadable, match=r"^observe\(\) of own failed: RuntimeError: no room$"):
        brings(fails).observe(tmp_path)
    brings(works).setup(tmp_path, Settings(), watched=False)
    assert brings(works).observe(tmp_path) == State(7)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("imediate", "there is no variant 'imediate': did you mean immediate?"),
        ("xyz", "there is no variant 'xyz': give a variant's name, package.module:function or"),
        ("", "there is no variant ''"),
        (":receive", "there is no variant ':receive'"),
        ("shop:", "there is no variant 'shop:'"),
        ("nowhere.py:receive", "there is no file nowhere.py: give"),
        (
            "nowhere:receive",
            "nowhere does not import: ModuleNotFoundError: No module named 'nowhere': mend it",
        ),
        ("shop:nothing", "shop has no 'nothing' (asked for as 'shop:nothing'): name a function"),
        ("shop:Rooms.outer.shop", "shop has no 'outer'"),
        ("shop.py:nothing", "shop.py has no 'nothing'"),
        ("shop:number", "shop:number is a int: a receiver is a function, or an object with receive()"),
        ("shop:two", "shop:two cannot be called as receive(db, id, qty): too many positional arguments"),
        ("shop:four", "cannot be called as receive(db, id, qty): missing a required argument: 'more'"),
        ("shop:less", "shop:less cannot be called as receive(db, id, qty): too many positional arguments"),
        ("shop:odd", "shop:odd.conflict must be an exception class, not 'Mine'"),
        ("shop:Needs", "shop:Needs is a class and shop:Needs() failed: TypeError: "),
    ],
)
def test_bad_targets_are_refused_in_one_sentence(target: str, said: str) -> None:
    """What is wrong, and what to do."""
    assert said in refused(target)


@pytest.mark.parametrize("place", ["bad", "bad.py"])
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise RuntimeError('no\\nway')", "RuntimeError: no"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("def receive(", "SyntaxError: "),
        ("import that_is_not_there", "ModuleNotFoundError: No module named 'that_is_not_there'"),
        ("raise GeneratorExit", "GeneratorExit: "),
    ],
)
def test_a_module_that_fails_is_refused_and_forgotten(place: str, code: str, said: str, folder: Path) -> None:
    """Whatever it raises; mended, it loads."""
    (folder / "bad.py").write_text(code)
    assert refused(f"{place}:receive").startswith(f"{place} does not import: {said}")
    assert "bad" not in sys.modules
    (folder / "bad.py").write_text("def receive(db, id, qty): return True  # mended")
    assert loader.load(f"{place}:receive").receive(None, "a", 7) is True


def test_a_failed_import_leaves_a_module_of_that_name_as_it_was(folder: Path) -> None:
    """A file of the name of one that is loaded already."""
    import json

    (folder / "json.py").write_text("raise RuntimeError")
    refused("json.py:receive")
    assert sys.modules["json"] is json


def test_ctrl_c_during_an_import_is_not_swallowed(folder: Path) -> None:
    """It is the person, not the module."""
    (folder / "slow.py").write_text("raise KeyboardInterrupt")
    for place in ("slow", "slow.py"):
        with pytest.raises(KeyboardInterrupt):
            loader.load(f"{place}:receive")


@pytest.mark.parametrize("row", [("a", None), ("a", 2**63), (7, 7), ("a", 1, 2), "ab"])
def test_observe_that_returns_nonsense_is_unreadable(row: object, tmp_path: Path) -> None:
    """Rows are (id, qty), ids text, quantities of 64 bits: else no verdict rests on it, and it is said."""

    class Mine:
        def observe(self, path: Path) -> State:
            return State(0, [row])  # type: ignore[list-item]

        def receive(self, db: object, id: str, qty: int) -> bool:
            return True

    with pytest.raises(Unreadable, match="has the inbox row"):
        loader.receiver(Mine(), "mine").observe(tmp_path)


def test_file_named_like_a_known_module_leaves_it_alone(tmp_path: Path) -> None:
    """json.py is theirs; the standard one stays where others look for it."""
    import json

    (tmp_path / "json.py").write_text("def receive(db, id, qty): return True\n")
    assert loader.load(f"{tmp_path / 'json.py'}:receive").receive(None, "a", 1) is True
    assert sys.modules["json"] is json


def test_failed_import_leaves_the_search_path_alone(tmp_path: Path) -> None:
    """Its folder is not searched any longer."""
    (tmp_path / "broken.py").write_text("raise ValueError\n")
    before = list(sys.path)
    with pytest.raises(BadInput):
        loader.load(f"{tmp_path / 'broken.py'}:receive")
    assert sys.path == before
