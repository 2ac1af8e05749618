"""The saved form: whole or not at all, and nothing that is not ours is believed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oncebench.messages import BadInput
from oncebench.results import RunResult, load, save
from oncebench.results.checked import CheckRun
from oncebench.results.files import folder_for
from oncebench.results.forms import load_any
from oncebench.results.schema import SCHEMA, Settings, encode

HERE = Path(__file__).parent


def run(**changes: object) -> RunResult:
    settings = Settings(4, 10, 3, 0.1, 99, ["same"], ["wal"], "full", 5.0, 1, 30.0, True)
    values = {
        "schema": SCHEMA, "kind": "race", "seed": 7, "command": "oncebench run",
        "created": "2026-01-01T00:00:00+00:00",
        "complete": True, "settings": settings, "environment": {"sqlite": "3.40.1"}, "variants": [],
    }  # fmt: skip
    return RunResult(**{**values, **changes})  # type: ignore[arg-type]


def test_saved_and_loaded_is_the_same(tmp_path: Path) -> None:
    """From the folder or the file itself."""
    path = save(run(), tmp_path)
    assert load(path) == load(tmp_path) == run()
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


def test_saving_again_replaces_at_once_and_failing_keeps_the_old(tmp_path: Path) -> None:
    """A result that cannot be encoded or written leaves the earlier one."""
    save(run(), tmp_path)
    save(run(seed=8), tmp_path)
    assert load(tmp_path).seed == 8
    with pytest.raises(BadInput, match="cannot write"):
        save(run(seed=9), tmp_path / "gone")
    with pytest.raises(TypeError):
        save(run(environment={"x": object()}), tmp_path)
    assert load(tmp_path).seed == 8
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "not a run that oncebench saved"),
        (encode(run())[:-20], "not a run that oncebench saved"),
        (b"[" * 100_000, "not a run that oncebench saved"),
        (b'{"schema": NaN}', "not a run that oncebench saved"),
        (b'{"schema": "1"}', "not a run that oncebench saved"),
        (b'{"schema": 2}', "schema version 2; this oncebench reads version 1 only"),
        (b'{"schema": 1}', "not a run that oncebench saved"),
        (encode(run()).replace(b'"seed": 7', b'"seed": "7"'), "not a run that oncebench saved"),
        (b"\xff\xfe\x00", "not a run that oncebench saved"),
    ],
)
def test_damaged_or_strange_file_gets_a_sentence(content: bytes, sentence: str, tmp_path: Path) -> None:
    """Empty, cut, deep, of another version, of other types."""
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(BadInput, match=sentence) as error:
        load(tmp_path)
    assert str(tmp_path) in str(error.value)


def test_folder_is_named_for_its_variants_and_never_taken_twice(tmp_path: Path) -> None:
    """Targets with slashes and colons make a harmless name."""
    first = folder_for(tmp_path, ["naive", "../my dir/mine.py:receive"])
    second = folder_for(tmp_path, ["naive", "../my dir/mine.py:receive"])
    assert first != second
    assert first.parent == second.parent == tmp_path
    assert "naive-my_dir_mine_py_receive" in first.name


def test_a_folder_of_runs_is_its_newest(tmp_path: Path) -> None:
    """So that what was given to --out can be given to show, report and compare."""
    with pytest.raises(BadInput, match=r"cannot read .*run\.json"):
        load(tmp_path)
    for seed, name in ((1, "20260101T000000Z-a-1"), (3, "20260301T000000Z-a-1"), (2, "20260201T000000Z-a-1")):
        (tmp_path / name).mkdir()
        save(run(seed=seed), tmp_path / name)
    assert load(tmp_path).seed == 3


def test_committed_reference_results_load() -> None:
    """They are of the current version and say what they should."""
    paths = sorted((HERE.parent / "results").glob("reference-*"))
    runs = [load_any(path) for path in paths]
    assert runs, "results/ holds no reference"
    for reference in runs:
        assert not isinstance(reference, CheckRun)
        for variant in reference.variants:
            assert variant.verdict == variant.expected_verdict
            assert json.loads(encode(reference))["schema"] == SCHEMA
