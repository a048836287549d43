"""Decision entries on disk: one small YAML file an entry, append-only."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from perfplan import atomic
from perfplan.layout import Layout
from perfplan.models.decision import Decision
from perfplan.validation import read_model


def decision_path(layout: Layout, decision: Decision) -> Path:
    """Where an entry lies: id first, so that a listing is in order of time, then what it is about."""
    return layout.decisions(decision.campaign) / f"{decision.id}-{decision.kind}-{decision.name}.yaml"


def write_decision(layout: Layout, decision: Decision) -> Path:
    """Write a new entry and return its path; an existing file is never overwritten (FileExistsError)."""
    path = decision_path(layout, decision)
    atomic.write_text(path, dump_decision(decision), exclusive=True)
    return path


def dump_decision(decision: Decision) -> str:
    """The entry as YAML, in the model's key order, without what was left at its default."""
    data = {"schema_version": 1, **decision.model_dump(mode="json", exclude_defaults=True)}
    data["evidence"] = {"kind": decision.evidence.kind, **data.get("evidence", {})}  # the class is always said
    if decision.expected is not None:
        band = decision.expected.change
        data["expected"]["change"] = band.text
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def read_decision(path: Path, shown: str) -> Decision:
    """Read an entry. Raises BadInput with every problem in it."""
    return read_model(path, Decision, shown=shown)


def find_decisions(layout: Layout) -> list[Path]:
    """Every decision file of every campaign, sorted by id."""
    return sorted(layout.plans.glob("*/decisions/*.yaml"), key=lambda path: (path.name, path.parent.parent.name))


class _Dumper(yaml.SafeDumper):
    """Block style outside, flow style for leaves; strings that another reader could take for a number are quoted."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _string(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    looks_numeric = re.fullmatch(r"[-+.\d_eE:]+", value) is not None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="'" if looks_numeric else None)


_Dumper.add_representer(str, _string)
