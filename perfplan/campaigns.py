"""Reading campaign files: `plans/<id>.yaml`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

from perfplan.errors import PerfplanError
from perfplan.layout import Layout
from perfplan.models.campaign import Campaign
from perfplan.validation import read_model


def find_campaigns(layout: Layout) -> list[Path]:
    """Every campaign file, sorted by name."""
    return sorted(layout.plans.glob("*.yaml"))


def read_campaign(path: Path, layout: Layout) -> Campaign:
    """Read a campaign; its id is the file's name. Raises BadInput with every problem in it."""
    return read_model(path, Campaign, shown=layout.relative(path), extra={"id": path.stem})


def choose_campaign(campaigns: Mapping[str, Campaign], wanted: str | None) -> str:
    """The campaign that is meant: the one named, or the only one there is. Raises PerfplanError where that is not clear."""
    names = ", ".join(sorted(campaigns))
    if wanted is None and len(campaigns) == 1:
        return next(iter(campaigns))
    if not campaigns:
        raise PerfplanError("there is no campaign here", hint="`perfplan init` writes a first one")
    if wanted is None:
        raise PerfplanError(f"which campaign? There are {names}", hint="--campaign NAME")
    if wanted not in campaigns:
        close = difflib.get_close_matches(wanted, campaigns, n=1)
        raise PerfplanError(
            f"there is no campaign {wanted!r}", hint=f"did you mean {close[0]!r}?" if close else f"there are {names}"
        )
    return wanted
