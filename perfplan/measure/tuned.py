"""What Triton's autotuners have chosen so far: frozen while a kernel is timed, and written into the record."""

from __future__ import annotations

import gc
import sys


def choices() -> dict[str, str]:
    """Autotuned function and key -> chosen configuration, of every autotuner in this process. Empty without Triton."""
    module = sys.modules.get("triton.runtime.autotuner")
    if module is None:
        return {}
    found = {}
    for each in gc.get_objects():
        if type(each) is module.Autotuner:
            name = getattr(each.fn, "__name__", None) or getattr(getattr(each.fn, "fn", None), "__name__", "kernel")
            for key, config in each.cache.items():
                found[f"{name}{list(key)}"] = str(config)
    return dict(sorted(found.items()))
