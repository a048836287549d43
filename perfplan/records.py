"""Run records on disk: one immutable JSON file a run, with a checksum over its content."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from perfplan import atomic
from perfplan.errors import BadRecord, Location
from perfplan.layout import Layout
from perfplan.models.record import Run

_NUMBERS = re.compile(r"\[\s+((?:-?[\d.]+(?:[eE][+-]?\d+)?|null)(?:,\s+(?:-?[\d.]+(?:[eE][+-]?\d+)?|null))*)\s+\]")


def write_run(path: Path, run: Run) -> None:
    """Write a record; an existing file is never overwritten (FileExistsError)."""
    atomic.write_text(path, dump_run(run), exclusive=True)


def dump_run(run: Run) -> str:
    """The record as text: JSON in the model's key order, lists of numbers on one line, the checksum last."""
    data = run.model_dump(mode="json")
    return _dump({**data, "checksum": checksum(data)})


def read_run(path: Path, shown: str | None = None) -> Run:
    """Read a record. Raises BadRecord naming the file (as `shown`) and what is wrong with it."""
    where = Location(shown or str(path))
    if path.exists() and not path.is_file():
        raise BadRecord("is not a file", location=where, hint="remove it")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadRecord(f"cannot be read: {error.strerror}", location=where) from None
    except UnicodeDecodeError as error:
        raise BadRecord(
            f"is not UTF-8 text: {error.reason} at byte {error.start}", location=where, hint=_RESTORE
        ) from None
    except json.JSONDecodeError as error:
        at = Location(where.path, error.lineno)
        raise BadRecord(f"is not whole JSON ({error.msg}); was it cut short?", location=at, hint=_RESTORE) from None
    except ValueError as error:
        raise BadRecord(f"is not a run record: {error}", location=where, hint=_RESTORE) from None
    except RecursionError:
        raise BadRecord("is nested too deeply for a record", location=where, hint=_RESTORE) from None
    return _read(data, where)


_RESTORE = "restore it with `git checkout -- FILE`, or remove it if it was never committed"


def _read(data: Any, where: Location) -> Run:
    if not isinstance(data, dict):
        raise BadRecord("is not a run record: expected a JSON object", location=where, hint=_RESTORE)
    if data.get("schema_version") != 1:
        raise BadRecord(
            f"has schema version {data.get('schema_version')!r}; this perfplan reads version 1",
            location=where,
            hint="upgrade perfplan",
        )
    stated = data.pop("checksum", None)
    if stated != checksum(data):
        raise BadRecord(
            "does not match its own checksum: it was changed after it was written", location=where, hint=_RESTORE
        )
    try:
        return Run.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise BadRecord(f"is not a run record: {key}: {first['msg']}", location=where, hint=_RESTORE) from None


def checksum(data: dict[str, Any]) -> str:
    """SHA-256 over the canonical JSON (sorted keys, no white space) of a record without its checksum."""
    canonical = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def _dump(data: dict[str, Any]) -> str:
    text = json.dumps(data, indent=1, ensure_ascii=False)
    return _NUMBERS.sub(lambda match: "[" + re.sub(r"\s+", " ", match[1]) + "]", text) + "\n"


def find_records(layout: Layout) -> list[Path]:
    """Every file that should be a record, sorted by id. Temporary files of a writer at work are not among them."""
    paths = layout.experiments.glob("*/*.json")
    return sorted(
        (path for path in paths if not path.name.startswith(".")), key=lambda path: (path.stem, path.parent.name)
    )
