import shutil
import sqlite3
from pathlib import Path
from typing import get_args

import pytest

from oncebench.messages import MAX_QTY, BadInput, Witness
from oncebench.stores import sqlite, witness
from oncebench.stores.sqlite import Journal, Settings, Synchronous, Unreadable

both_journals = pytest.mark.parametrize("journal", get_args(Journal))


def new_store(path: Path, *, journal: Journal = "wal", watched: bool = True) -> sqlite3.Connection:
    settings = Settings(journal, "off")
    sqlite.setup(path, settings, watched=watched)
    db: sqlite3.Connection = sqlite.connect(path, settings)
    return db


def copy(path: Path, folder: Path, *suffixes: str) -> Path:
    """The files as a crash at this moment would leave them."""
    folder.mkdir()
    for suffix in ("", *suffixes):
        shutil.copy(f"{path}{suffix}", folder)
    return folder / path.name


@both_journals
@pytest.mark.parametrize("synchronous", get_args(Synchronous))
@pytest.mark.parametrize("busy_timeout", [0, 0.25, 5.0])
def test_settings_are_those_that_were_asked_for(
    journal: Journal, synchronous: Synchronous, busy_timeout: float, tmp_path: Path
) -> None:
    """Read back from the connection; a changed timeout as well."""
    settings = Settings(journal, synchronous, busy_timeout)
    sqlite.setup(tmp_path / "s.db", settings)
    db: sqlite3.Connection = sqlite.connect(tmp_path / "s.db", settings)
    assert sqlite.effective(db) == settings
    assert db.isolation_level is None
    sqlite.set_busy_timeout(db, 1.5)
    assert sqlite.effective(db) == Settings(journal, synchronous, 1.5)


@pytest.mark.parametrize("watched", [True, False])
def test_a_new_store_is_empty_and_read_back(watched: bool, tmp_path: Path) -> None:
    """Total, inbox, and the witness only where there is one."""
    db = new_store(tmp_path / "s.db", watched=watched)
    state = sqlite.read_state(tmp_path / "s.db")
    assert (state.total, list(state.inbox)) == (0, [])
    assert (state.witness is not None) is watched
    db.execute("INSERT INTO inbox VALUES ('a', 7)")
    db.execute("UPDATE stock SET total = 7")
    state = sqlite.read_state(tmp_path / "s.db")
    assert (state.total, list(state.inbox)) == (7, [("a", 7)])


def test_rows_that_are_not_what_they_should_be_are_read_all_the_same(tmp_path: Path) -> None:
    """The audit judges them: an id that is no text, a quantity that is no integer, two rows of stock."""
    db = new_store(tmp_path / "s.db")
    db.execute("INSERT INTO inbox VALUES (x'00ff', 'seven')")
    db.execute("INSERT INTO stock VALUES (5)")
    db.execute("INSERT INTO stock VALUES (6)")
    state = sqlite.read_state(tmp_path / "s.db")
    assert (state.total, list(state.inbox)) == (11, [(repr(b"\x00\xff"), 0)])


def test_a_total_past_64_bits_is_refused(tmp_path: Path) -> None:
    """SQLite would make it a float; the largest one is still taken."""
    db = new_store(tmp_path / "s.db")
    db.execute("UPDATE stock SET total = total + ?", (MAX_QTY,))
    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        db.execute("UPDATE stock SET total = total + 1")
    assert sqlite.read_state(tmp_path / "s.db").total == MAX_QTY


# Foreign files


def test_a_free_path_or_a_store_of_ours_is_not_refused(tmp_path: Path) -> None:
    """Neither is touched by the question."""
    path = tmp_path / "s #1?.db"  # characters that mean something in a URI
    sqlite.refuse_foreign(path)
    assert not path.exists()
    new_store(path).close()
    before = path.read_bytes()
    sqlite.refuse_foreign(path)
    assert path.read_bytes() == before
    sqlite.remove(path)
    assert list(tmp_path.iterdir()) == []


def test_a_database_of_others_is_refused(tmp_path: Path) -> None:
    """With tables or with none, and it stays as it was."""
    path = tmp_path / "theirs.db"
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 3")
    with pytest.raises(BadInput, match="holds 0 tables or indexes that oncebench did not make: name a path"):
        sqlite.refuse_foreign(path)
    db.execute("CREATE TABLE inbox(id TEXT PRIMARY KEY)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(BadInput, match="holds 2 tables or indexes that oncebench did not make: name a path"):
        sqlite.refuse_foreign(path)
    assert path.read_bytes() == before


def test_other_files_and_folders_are_refused(tmp_path: Path) -> None:
    """Each in a sentence that says which path and what to do."""
    text = tmp_path / "notes.txt"
    text.write_text("not a database, and longer than the header of one" * 10)
    with pytest.raises(BadInput, match=r"notes\.txt exists and cannot be read as a database .*: name a path"):
        sqlite.refuse_foreign(text)
    with pytest.raises(BadInput, match=f"{tmp_path} is not a file: name a path"):
        sqlite.refuse_foreign(tmp_path)
    for path in (tmp_path / "no" / "s.db", text / "s.db"):
        with pytest.raises(BadInput, match=f"there is no folder {path.parent} for the store: make it"):
            sqlite.refuse_foreign(path)


def test_an_empty_file_of_others_is_refused(tmp_path: Path) -> None:
    """SQLite takes it for an empty database; we did not make it."""
    (tmp_path / "empty").touch()
    with pytest.raises(BadInput, match="that oncebench did not make"):
        sqlite.refuse_foreign(tmp_path / "empty")


@pytest.mark.parametrize("place", ["/proc/s.db", "{}/file/s.db", "{}/no/s.db", "{}"])
def test_a_place_that_cannot_be_written_is_bad_input(place: str, tmp_path: Path) -> None:
    """One sentence, and nothing is left there."""
    (tmp_path / "file").touch()
    path = Path(place.format(tmp_path))
    with pytest.raises(BadInput, match=f"cannot make a store at {path}: .*: name a place"):
        sqlite.setup(path, Settings())
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


# What cannot be read


@both_journals
def test_a_store_that_is_gone_or_no_store_is_unreadable(journal: Journal, tmp_path: Path) -> None:
    """No state is made up, and no file made."""
    path = tmp_path / "s.db"
    with pytest.raises(Unreadable, match=r"the store s\.db is gone"):
        sqlite.read_state(path)
    assert not path.exists()
    new_store(path, journal=journal).close()
    sqlite.read_state(path)
    sqlite.remove(path)
    with pytest.raises(Unreadable, match="gone"):
        sqlite.read_state(path)
    for content in (b"", b"garbage " * 1000):
        path.write_bytes(content)
        with pytest.raises(Unreadable, match="cannot be read"):
            sqlite.read_state(path)
    with pytest.raises(Unreadable, match="cannot be read"):
        sqlite.read_state(tmp_path)


@both_journals
def test_a_damaged_store_is_unreadable(journal: Journal, tmp_path: Path) -> None:
    """Wherever the damage is: each page in turn overwritten, or the file cut short."""
    path = tmp_path / "s.db"
    db = new_store(path, journal=journal, watched=False)
    db.executemany("INSERT INTO inbox VALUES (?, 7)", [(f"id-{n}",) for n in range(1000)])
    (size,) = db.execute("PRAGMA page_size").fetchone()
    db.close()
    sqlite.read_state(path)
    whole = path.read_bytes()
    damaged = [whole[:at] + b"\xa5" * size + whole[at + size :] for at in range(0, len(whole), size)] + [
        whole[: len(whole) // 2]
    ]
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(Unreadable):
            sqlite.read_state(path)


def test_a_hot_journal_is_rolled_back(tmp_path: Path) -> None:
    """A crash in mid-transaction, with half of it in the file already: what was committed is read."""
    path = tmp_path / "s.db"
    sqlite.setup(path, Settings("delete"))
    db: sqlite3.Connection = sqlite.connect(path, Settings("delete", "full"))
    db.execute("INSERT INTO inbox VALUES ('a', 7)")
    db.execute("PRAGMA cache_size = 1")
    db.execute("BEGIN")
    db.executemany("INSERT INTO inbox VALUES (?, 7)", [(f"id-{n}",) for n in range(1000)])
    crashed = copy(path, tmp_path / "crashed", "-journal")
    assert sqlite.read_state(crashed).inbox == [("a", 7)]
    with pytest.raises(Unreadable):  # so much was in the file: without its journal it is no store
        sqlite.read_state(copy(path, tmp_path / "bare"))


def test_a_log_that_was_not_yet_merged_is_read(tmp_path: Path) -> None:
    """A crash after a commit in WAL mode, and one after which the log is lost."""
    path = tmp_path / "s.db"
    db = new_store(path)
    db.execute("INSERT INTO inbox VALUES ('a', 7)")
    db.execute("BEGIN")
    db.execute("INSERT INTO inbox VALUES ('b', 7)")
    assert sqlite.read_state(copy(path, tmp_path / "crashed", "-wal")).inbox == [("a", 7)]
    assert sqlite.read_state(copy(path, tmp_path / "bare")).inbox == []


@both_journals
def test_reading_does_not_see_what_is_not_committed(journal: Journal, tmp_path: Path) -> None:
    """Another connection's open transaction."""
    db = new_store(tmp_path / "s.db", journal=journal)
    db.execute("BEGIN IMMEDIATE")
    db.execute("UPDATE stock SET total = 7")
    assert sqlite.read_state(tmp_path / "s.db").total == 0
    db.execute("COMMIT")
    assert sqlite.read_state(tmp_path / "s.db").total == 7


def test_all_parts_are_read_at_one_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is committed after the inbox was read is not in the witness either."""
    db = new_store(tmp_path / "s.db")
    read = witness.read

    def late(reader: sqlite3.Connection, after: int) -> Witness | None:
        db.execute("INSERT INTO inbox VALUES ('late', 7)")
        return read(reader, after)

    monkeypatch.setattr(witness, "read", late)
    state = sqlite.read_state(tmp_path / "s.db")
    monkeypatch.undo()
    assert state.witness is not None
    assert (list(state.inbox), list(state.witness.id)) == ([], [])
    assert sqlite.read_state(tmp_path / "s.db").inbox == [("late", 7)]
