"""Receivers that do what no receiver should: each ends in a clear finding, and leaves nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

RUN = ["run", "--ids", "2", "--workload", "same,spread", "--redeliveries", "1", "--journal", "wal"]
RUN += ["--time-limit", "5s", "--busy-timeout", "100ms", "--deadline", "5s"]
EXPLORE = [
    "explore",
    "--journal",
    "wal",
    "--locks",
    "error",
    "--scenario",
    "same",
    "--preemptions",
    "1",
    "--patience",
    "20s",
]
MODES = {"run": RUN, "explore": EXPLORE}
SOUND = "sound as declared"
NOT_BROKEN = "sound as declared|unknown, because it raced nothing"  # as may be on a busy machine
FINDINGS = {
    "stays_right": (NOT_BROKEN, SOUND),
    "changes_the_journal_mode": (NOT_BROKEN, SOUND),
    "keeps_the_store_to_itself": ("unknown.*PRAGMA locking_mode = EXCLUSIVE",) * 2,
    "damages_the_file": ("unknown.*(corrupt|damaged|malformed)", "broken|unknown.*damaged"),
    "removes_the_file": ("unknown.*is gone",) * 2,
    "drops_the_inbox": ("unknown.*no such table: inbox.*setup\\(\\)",) * 2,
    "renames_a_column": ("unknown.*no such column: total.*setup\\(\\)",) * 2,
    "drops_the_triggers": (NOT_BROKEN, SOUND),
    "drops_the_witness": ("unknown.*no such table: oncebench_witness",) * 2,
    "doubles_unwatched": ("found double_apply|found record_effect_mismatch", "broken"),
    "prints_megabytes": (NOT_BROKEN, SOUND),
    "leaves_by_sys_exit": ("stuck.*SystemExit", "broken"),
    "is_gone_at_once": ("stuck.*its worker died", "cannot be explored: it ends its process with os._exit"),
    "raises_keyboard_interrupt": ("stuck.*KeyboardInterrupt", "broken"),
    "answers_yes": ("stuck.*returned str", "broken"),
    "answers_none": ("stuck.*returned NoneType", "broken"),
}
"""Receiver of `misconduct.py`: what `run` and what `explore` say, as patterns."""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FINDINGS)
def test_it_ends_in_a_clear_finding(name: str, mode: str, tmp_path: Path) -> None:
    """No traceback, none of the receiver's output, no file but the result's."""
    target = f"{Path(__file__).with_name('misconduct.py')}:{name}"
    (temporary := tmp_path / "temporary").mkdir()
    ended = subprocess.run(
        [sys.executable, "-m", "oncebench", *MODES[mode], target, "-q", "--out", str(tmp_path / "results")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary)},
        timeout=300,
        check=False,
    )
    said = ended.stdout + ended.stderr
    assert "Traceback" not in said, said
    assert len(said) < 10_000
    assert re.search(FINDINGS[name][mode == "explore"], said, re.DOTALL), said
    assert ended.returncode == (
        0 if "sound as declared" in said else 3 if "unknown" in said else ended.returncode
    )
    assert list(temporary.iterdir()) == []
