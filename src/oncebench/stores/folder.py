"""A temporary folder that outlives nobody."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType

# Waits until the process that holds the other end of its input is gone, however it went, and removes: this
# shell is there even while that process has no other.
_REMOVE = 'read -r _; while [ -e "$1" ]; do rm -rf -- "$1"; [ -e "$1" ] && sleep 0.1; done'


class Folder:
    """Made at once, gone on `close` or when a `with` ends, and gone too if the process is killed.

    Attributes:
        path: Where it is.
    """

    def __init__(self, prefix: str = "oncebench-", place: Path | None = None) -> None:
        """Make it.

        Args:
            prefix: What its name begins with.
            place: Where; the usual temporary folder if not given.
        """
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
        self._remover = subprocess.Popen(
            ["/bin/sh", "-c", _REMOVE, "oncebench-keeper", str(self.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath},
            start_new_session=True,  # Ctrl-C is not for it
        )

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._remover.communicate()
