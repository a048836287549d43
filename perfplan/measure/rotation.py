"""How many input sets a cold measurement needs. Pure arithmetic."""

from __future__ import annotations

import math
from typing import Literal

from perfplan.models.record import Cache

MOST_SETS = 64
COLD_FACTOR = 2  # between two uses of a set, this many times the last-level cache must have been touched


def sets_needed(touched_by_one: int, stored_by_one: int, llc_bytes: int | None, budget_bytes: int, mode: str) -> int:
    """Number of input sets: enough that all together touch COLD_FACTOR times the cache, as far as memory allows.

    touched_by_one: bytes that one call really reads and writes; stored_by_one: bytes that one set takes in memory.
    """
    if mode == "warm" or touched_by_one <= 0:
        return 1
    wanted = 2 if llc_bytes is None else max(2, math.ceil(COLD_FACTOR * llc_bytes / touched_by_one))
    affordable = max(1, budget_bytes // max(1, stored_by_one))
    return max(1, min(wanted, affordable, MOST_SETS))


def cache_state(sets: int, touched_by_one: int, llc_bytes: int | None, mode: str) -> Cache:
    """What the record says of the cache: cold only where the bytes prove it."""
    total = sets * touched_by_one
    state: Literal["cold", "warm", "rotating"] = "rotating"
    if mode == "warm" or (sets == 1 and (llc_bytes is None or total < COLD_FACTOR * llc_bytes)):
        state = "warm"
    elif llc_bytes is not None and total >= COLD_FACTOR * llc_bytes:
        state = "cold"
    return Cache(mode=state, sets=sets, bytes_touched=total, llc_bytes=llc_bytes)
