"""Which files of the repository the measured code came from, with the blob ids of what was loaded."""

from __future__ import annotations

import sys
from pathlib import Path

import perfplan
from perfplan.blobs import file_blob
from perfplan.models.record import SourceFile

_OURS = Path(perfplan.__file__).resolve().parent  # the harness: its version is in the record
_FOREIGN = {"site-packages", "dist-packages", ".venv", "venv", ".git", ".perfplan"}


class LoadedSources:
    """Watches sys.modules: what is loaded from the root after this was made belongs to the kernel."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._before = set(sys.modules)
        self._blobs: dict[str, str] = {}

    def look(self) -> None:
        """Note files that were loaded since the last look. Their ids are of the content now, so look soon after a load."""
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if name in self._before or not file:
                continue
            path = Path(file).resolve()
            if path.suffix != ".py" or not path.is_relative_to(self._root) or path.is_relative_to(_OURS):
                continue
            relative = path.relative_to(self._root)
            if not _FOREIGN & set(relative.parts) and relative.as_posix() not in self._blobs:
                self._blobs[relative.as_posix()] = file_blob(path)

    def files(self) -> list[SourceFile]:
        """All files seen, sorted by path."""
        self.look()
        return [SourceFile(path=path, blob=blob) for path, blob in sorted(self._blobs.items())]
