"""A dead end as the log knows it now: from a decision entry, or from a refuted run, which enters the list by itself."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from perfplan.models.base import Config, Model
from perfplan.models.decision import Evidence


class DeadEnd(Model):
    """Something not to be tried again within its scope.

    `id` is that of the decision entry in force or, for a refuted run, of the run. `status` is `reopened` or `retired`
    after a decision of that kind, or where a later confirmed run of the same experiment on the same device contradicts it
    (`contradicted`).
    """

    id: str
    campaign: str
    name: str
    technique: str
    aliases: tuple[str, ...] = ()
    reason: str
    scope: dict[str, Any] = Field(default_factory=dict)
    reopen_when: tuple[dict[str, Any], ...] = ()
    evidence: Evidence
    kernel: str | None = None
    knobs: Config = Field(default_factory=dict)
    tried: int | None = None
    date: str
    status: Literal["active", "retired", "reopened", "contradicted"] = "active"
    history: tuple[str, ...] = ()  # ids of all entries about it, oldest first
    path: str  # of the file that holds it, from the root
