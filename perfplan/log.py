"""The decision log of a repository, read from its files: campaigns, specs, runs, decisions, and what could not be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from perfplan.campaigns import find_campaigns, read_campaign
from perfplan.decisions import find_decisions, read_decision
from perfplan.errors import BadInput, Location, PerfplanError, Problem
from perfplan.layout import Layout
from perfplan.models.campaign import Campaign
from perfplan.models.decision import Decision
from perfplan.models.record import Run
from perfplan.records import find_records, read_run
from perfplan.spec import SpecFile, find_specs, read_spec


@dataclass
class Log:
    """Everything in the repository's files. Runs and decisions are sorted by id, which is by time.

    `problems` names each file that was skipped because it could not be read; the rest of the log works without it.
    """

    layout: Layout
    campaigns: dict[str, Campaign] = field(default_factory=dict)
    specs: dict[str, SpecFile] = field(default_factory=dict)  # by experiment
    runs: list[Run] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    paths: dict[str, str] = field(default_factory=dict)  # id of a run or decision -> its file, from the root
    problems: list[Problem] = field(default_factory=list)

    def premises(self, campaign: str) -> list[str]:
        """Names of the campaign's premises, fallen ones included."""
        return sorted({each.name for each in self.decisions if each.kind == "premise" and each.campaign == campaign})

    def run(self, run_id: str) -> Run | None:
        """The run with this very id."""
        return next((run for run in self.runs if run.id == run_id), None)


def load_log(layout: Layout) -> Log:
    """Read all files. A broken one is named in `problems` and skipped, never an exception."""
    log = Log(layout)
    for path in find_campaigns(layout):
        with _skipping(log):
            campaign = read_campaign(path, layout)
            log.campaigns[campaign.id] = campaign
    for path in find_specs(layout):
        with _skipping(log):
            spec_file = read_spec(path, layout)
            log.specs[spec_file.experiment] = spec_file
    for path in find_records(layout):
        shown = layout.relative(path)
        with _skipping(log):
            run = read_run(path, shown)
            _expect(path.parent.name == run.experiment, shown, f"is a run of {run.experiment}, in the wrong folder")
            _expect(run.id == path.stem, shown, f"holds run {run.id}, not the one that its name says")
            log.runs.append(run)
            log.paths[run.id] = shown
    for path in find_decisions(layout):
        shown = layout.relative(path)
        with _skipping(log):
            decision = read_decision(path, shown)
            _expect(
                path.name.startswith(decision.id), shown, f"holds entry {decision.id}, not the one that its name says"
            )
            _expect(path.parent.parent.name == decision.campaign, shown, f"is an entry of campaign {decision.campaign}")
            log.decisions.append(decision)
            log.paths[decision.id] = shown
    return log


@contextmanager
def _skipping(log: Log) -> Iterator[None]:
    try:
        yield
    except BadInput as error:
        log.problems.extend(error.problems)
    except PerfplanError as error:
        log.problems.append(Problem(error.location or Location(""), error.message, error.hint))


def _expect(condition: bool, path: str, message: str) -> None:
    if not condition:
        raise BadInput([Problem(Location(path), message, "give it back the name that perfplan wrote")])
