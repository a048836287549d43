"""Ids of runs and decisions: time-sortable, collision-free without any coordination, short to type.

``20261201-142233-1f4a9c2e``: UTC time to the second, then the millisecond (3 hex digits, so that entries made one after
the other sort in that order) and 20 random bits. Any unique prefix names an entry, as in git, and so does any unique prefix
of the last part, which is what the plan shows.
"""

from __future__ import annotations

import datetime
import re
import secrets
from collections.abc import Iterable

from perfplan.errors import NotFound, PerfplanError

PATTERN = re.compile(r"^\d{8}-\d{6}-[0-9a-f]{8}$")


def new_id(now: datetime.datetime | None = None) -> str:
    """A fresh id for `now` (UTC; the current time by default)."""
    time = now or datetime.datetime.now(datetime.UTC)
    return f"{time:%Y%m%d-%H%M%S}-{time.microsecond // 1000:03x}{secrets.randbits(20):05x}"


def short(entry_id: str) -> str:
    """The last part, for display."""
    return entry_id.rsplit("-", 1)[-1]


def timestamp(now: datetime.datetime | None = None) -> str:
    """UTC in ISO 8601 to the second, the only form of time in files."""
    return f"{now or datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"


def resolve(prefix: str, known: Iterable[str]) -> str:
    """The one id of `known` that `prefix` names. Raises NotFound for none and PerfplanError for several."""
    wanted = prefix.lower()
    matches = sorted({each for each in known if each.startswith(wanted) or (wanted and short(each).startswith(wanted))})
    if not matches:
        raise NotFound(
            f"no run or decision has an id that starts with {prefix!r}", hint="`perfplan query` lists what there is"
        )
    if len(matches) > 1:
        shown = ", ".join(matches[:5])
        raise PerfplanError(
            f"{prefix!r} is ambiguous: {shown}{' ...' if len(matches) > 5 else ''}", hint="give more characters"
        )
    return matches[0]
