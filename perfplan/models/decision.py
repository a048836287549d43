"""One entry of the decision log: a premise, lever or dead end proposed, revised, adopted, retired, reopened.

Append-only: an entry is never changed. A later entry of the same kind and name takes its place, and the history shows.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from perfplan.models.base import Config, Model
from perfplan.models.spec import Condition, Line, Prediction, Slug, Text

Kind = Literal["premise", "lever", "dead-end"]
Action = Literal["propose", "revise", "adopt", "refute", "retire", "reopen"]
EvidenceClass = Literal["measured", "imported", "derived", "reported"]

ACTIONS: dict[str, tuple[str, ...]] = {
    "premise": ("propose", "revise", "refute", "retire"),
    "lever": ("propose", "revise", "adopt", "retire", "reopen"),
    "dead-end": ("propose", "revise", "retire", "reopen"),
}


class Evidence(Model):
    """What an entry rests on. Without a run or an artefact it is somebody's word: `reported`."""

    kind: EvidenceClass = "reported"
    runs: list[str] = Field(default_factory=list, description="ids of run records")
    source: Line | None = Field(None, description="who said so, or which file or link")


class Decision(Model):
    """One entry.

    The fields after `note` belong to one kind or another: `claim`, `because` to a premise and a lever; `expected`,
    `risk`, `rests_on` to a lever; `technique`, `aliases`, `reason`, `scope`, `reopen_when`, `tried`, `kernel`, `knobs`
    to a dead end.
    """

    schema_version: Literal[1] = 1
    id: str
    campaign: Slug
    kind: Kind
    action: Action
    name: Slug = Field(
        description="what the entry is about; later entries of the same kind and name continue its history"
    )
    date: str = Field(description="UTC, ISO 8601", pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
    evidence: Evidence = Field(default_factory=Evidence)
    supersedes: str | None = Field(None, description="id of the entry that this one takes the place of")
    note: Text | None = Field(None, description="why this entry was made")

    claim: Text | None = None
    because: Text | None = None
    expected: Prediction | None = None
    risk: Line | None = None
    rests_on: list[Slug] = Field(default_factory=list)

    technique: Line | None = None
    aliases: list[Slug] = Field(default_factory=list)
    reason: Text | None = None
    scope: Condition = Field(default_factory=dict)
    reopen_when: list[Condition] = Field(default_factory=list)
    tried: int | None = Field(None, ge=0, description="how many implementations were tried")
    kernel: str | None = Field(None, description="entry of the kernel, path/file.py:Class")
    knobs: Config = Field(default_factory=dict, description="the knobs whose change is dead")

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Decision:
        if self.action not in ACTIONS[self.kind]:
            raise ValueError(
                f"a {self.kind} cannot be '{self.action}'; expected one of {', '.join(ACTIONS[self.kind])}"
            )
        opening = self.action in ("propose", "revise")
        if opening and self.kind in ("premise", "lever") and not self.claim:
            raise ValueError(f"a {self.kind} needs a claim")
        if opening and self.kind == "dead-end" and not (self.technique and self.reason):
            raise ValueError("a dead end needs a technique and a reason")
        if not opening and not self.note:
            raise ValueError(f"'{self.action}' needs a note that says why")
        return self
