"""Reading campaign files: `plans/<id>.yaml`."""

from __future__ import annotations

from pathlib import Path

from perfplan.layout import Layout
from perfplan.models.campaign import Campaign
from perfplan.yamlfile import read_model


def find_campaigns(layout: Layout) -> list[Path]:
    """Every campaign file, sorted by name."""
    return sorted(layout.plans.glob("*.yaml"))


def read_campaign(path: Path, layout: Layout) -> Campaign:
    """Read a campaign; its id is the file's name. Raises BadInput with every problem in it."""
    return read_model(path, Campaign, shown=layout.relative(path), extra={"id": path.stem})
