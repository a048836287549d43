"""Writing a file so that nobody ever sees half of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from perfplan.errors import EnvironmentProblem, Location


def write_text(path: Path, text: str, *, exclusive: bool = False) -> None:
    """Write UTF-8 text to a temporary file beside `path` and move it into place.

    With `exclusive`, an existing file is left as it is and FileExistsError is raised.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:40]}.", suffix=".tmp", dir=path.parent)
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o666 & ~_umask())
        if exclusive:
            os.link(temporary, path)  # fails where the name is taken, unlike a rename
            Path(temporary).unlink()
        else:
            Path(temporary).replace(path)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError) and not isinstance(error, FileExistsError):
            raise _unwritable(path, error) from None
        raise


def _unwritable(path: Path, error: OSError) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"cannot be written: {error.strerror}", hint="make room or mend the folder", location=Location(str(path))
    )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
