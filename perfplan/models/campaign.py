"""The campaign: one optimisation effort with its target, operating range, tolerance and one plan document. Hand-written YAML."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from perfplan.models.base import Model, Scalar
from perfplan.models.spec import Line, Text

FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\.md$", max_length=120)]
CommitWord = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=30)]


class Target(Model):
    """What is to become faster, where, and what counts."""

    model: Line
    hardware: Line
    objective: Text


class CommitStyle(Model):
    """`<type>(<scope>): ...` of the commits."""

    type: CommitWord = "perf"
    scope: CommitWord | None = Field(None, description="the campaign's id by default")


class Campaign(Model):
    """One optimisation effort. `id` is the file's name without .yaml, set by the reader."""

    id: str
    title: Line
    target: Target
    about: Text | None = Field(None, description="a paragraph for the plan's opening")
    facts: dict[str, Scalar] = Field(
        default_factory=dict, description="facts that a machine can't tell, for scopes: {interconnect: pcie, nodes: 1}"
    )
    operating_range: dict[str, list[Scalar]] = Field(
        default_factory=dict, description="axis -> [from, to], the range that the campaign is about"
    )
    max_rel_error: float | None = Field(
        None, gt=0, description="numerics tolerance where neither spec nor kernel has one"
    )
    commit: CommitStyle = Field(default_factory=CommitStyle)
    plan: FileName | None = Field(None, description="file name of the plan; <ID>_PERF_PLAN.md by default")
    template: str | None = Field(None, description="a Jinja2 template of your own, relative to the root")

    @property
    def plan_name(self) -> str:
        """File name of the plan document."""
        return self.plan or f"{self.id.upper().replace('-', '_').replace('.', '_')}_PERF_PLAN.md"
