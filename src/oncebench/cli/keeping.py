"""Where a command keeps what it measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from oncebench.messages import BadInput

if TYPE_CHECKING:
    import msgspec


class Kept:
    """A new folder for a run, gone again when a `with` ends and nothing was kept.

    What cannot be saved is told all the same: what was measured is not lost with the disk.

    Attributes:
        folder: Where it is.
        unsaved: Why something could not be saved; None if all could.
    """

    def __init__(self, out: Path, names: Sequence[str]) -> None:
        """Make it.

        Args:
            out: In which folder of runs.
            names: What ran, for its name.

        Raises:
            BadInput: It cannot be made there.
        """
        from oncebench.results.files import folder_for

        self._out, self._out_is_new = out, not out.exists()
        self.folder = folder_for(out, names)
        self.unsaved: BadInput | None = None

    def __enter__(self) -> Kept:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not any(self.folder.iterdir()):
            self.folder.rmdir()
            if self._out_is_new:
                self._out.rmdir()

    def save(self, run: msgspec.Struct) -> None:
        """Save it, replacing what was saved before."""
        from oncebench.results.files import save

        try:
            save(run, self.folder)
        except BadInput as error:
            self.unsaved = error

    @property
    def place(self) -> Path | None:
        """The folder; None if something could not be saved in it."""
        return self.folder if self.unsaved is None else None

    def complain(self) -> None:
        """When all is told: say what could not be saved.

        Raises:
            BadInput: Something could not.
        """
        if self.unsaved is not None:
            raise self.unsaved
