"""Git's object id of a file's content, computed without git."""

from __future__ import annotations

import hashlib
from pathlib import Path


def blob_id(content: bytes) -> str:
    """SHA-1 object id of a blob, as `git hash-object` prints it: sha1("blob <length>\\0" + content)."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def file_blob(path: Path) -> str:
    """Blob id of a file as it is on disk. Filters (CRLF conversion, LFS) are not applied."""
    return blob_id(path.read_bytes())
