"""kill -9 of an exploration leaves no folder behind."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from oncebench.explore.site import FOLDER

EXPLORES_FOR_EVER = """
from oncebench.testing import explore
while True:
    explore("deferred", workers=3)
"""


def test_killed_exploration_leaves_no_folder() -> None:
    """Its store goes although it had no time to remove it."""
    process = subprocess.Popen([sys.executable, "-c", EXPLORES_FOR_EVER])

    def left() -> list[Path]:
        places = Path("/dev/shm"), Path(tempfile.gettempdir())
        return [path for place in places for path in place.glob(f"{FOLDER}{process.pid}-*")]

    try:
        limit = time.monotonic() + 60
        while not left():
            assert time.monotonic() < limit, "it did not begin"
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    while left():
        assert time.monotonic() < limit, "its folder is still there"
        time.sleep(0.05)
