"""One experiment from spec to record: preflight, measure, judge, record. The commit is the caller's next step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfplan import deadends, ids, judge, preflight, records
from perfplan.errors import BadInput, Exit, PerfplanError, Problem
from perfplan.layout import Layout
from perfplan.locks import device_lock
from perfplan.log import Log
from perfplan.measure.job import Described, Job, Measured, Progress
from perfplan.measure.supervisor import Worker
from perfplan.models.base import Point
from perfplan.models.campaign import Campaign
from perfplan.models.record import Retread, Run, Source, SourceFile
from perfplan.spec import SpecFile, read_spec
from perfplan.units import points as point_words

DEVICE_LOCK_SECONDS = 3600.0


class StoppedByDeadEnd(PerfplanError):
    """The log knows this as a dead end, on this device and at these points."""

    exit_code = Exit.DEAD_END

    def __init__(self, matches: Sequence[deadends.Match]) -> None:
        self.matches = tuple(matches)
        entries = "\n".join(line for match in matches for line in deadends.describe(match))
        super().__init__(
            f"this is a known dead end\n{entries}", hint="to run it all the same: --retread 'why it may work now'"
        )


@dataclass(frozen=True)
class Listener:
    """Who is told what happens: a phase, a note to the user, the progress of a measurement."""

    phase: Callable[[str], None]
    note: Callable[[str], None]
    progress: Callable[[str, Progress], None]  # the point in few words, and how far it is


@dataclass(frozen=True)
class Choice:
    """What was asked for on the command line."""

    device: str = "auto"  # auto, cpu, cuda, cuda:N
    retread: str | None = None  # why a known dead end is run all the same
    detached: bool = False  # no repository here; the record is filed later


@dataclass(frozen=True)
class Prepared:
    """A spec that is ready to be measured: read, checked against its kernel and the log."""

    spec_file: SpecFile
    campaign: Campaign
    described: Described
    points: list[Point]
    known: tuple[deadends.Match, ...]  # dead ends that cover it and are overridden by `retread`
    cost: preflight.Cost


def read(path: Path, layout: Layout, log: Log) -> tuple[SpecFile, Campaign]:
    """Read a spec and its campaign. Raises BadInput with everything that is wrong with it."""
    spec_file = read_spec(path, layout)
    premises = log.premises(spec_file.spec.campaign)
    problems = [
        *preflight.check_campaign(spec_file, log.campaigns),
        *preflight.check_premises(spec_file, premises),
    ]
    if problems:
        raise BadInput(problems)
    return spec_file, log.campaigns[spec_file.spec.campaign]


def prepare(
    spec_file: SpecFile, campaign: Campaign, worker: Worker, log: Log, choice: Choice, listener: Listener
) -> Prepared:
    """Ask the kernel and the log before any GPU time is spent.

    Raises BadInput for a spec that its kernel does not understand and StoppedByDeadEnd for a known dead end without a
    reason to try again.
    """
    spec = spec_file.spec
    listener.phase(f"asking {spec.kernel.entry if spec.kernel else 'the machine'}")
    described = worker.describe(spec.kernel.entry if spec.kernel else None, choice.device)
    problems = preflight.check_kernel(spec_file, described.kernel) if described.kernel else []
    if problems:
        raise BadInput(problems)
    points = preflight.full_points(described.kernel, spec) if described.kernel else spec.cells()
    matches = deadends.matches(log, spec, spec_file.experiment, described.device, described.software, points)
    blocking = tuple(match for match in matches if match.answer.value == "yes")
    for match in matches:
        if match not in blocking:
            listener.note("\n".join(deadends.describe(match)))
    if blocking and choice.retread is None:
        raise StoppedByDeadEnd(blocking)
    if blocking:
        listener.note(f"known dead end, run all the same: {choice.retread}")
    cost = preflight.cost(spec, points)
    return Prepared(spec_file, campaign, described, points, blocking, cost)


def execute(prepared: Prepared, worker: Worker, layout: Layout, choice: Choice, listener: Listener) -> Run:
    """Measure and judge. Whatever happens to the measured program, a record comes out."""
    spec, described = prepared.spec_file.spec, prepared.described
    started = ids.timestamp()
    with device_lock(described.device.uuid or described.device.kind, DEVICE_LOCK_SECONDS, listener.note):
        listener.phase(f"measuring on {described.device.name}: {prepared.cost.text}")

        def tell(progress: Progress) -> None:
            listener.progress(point_words([progress.point], prepared.points) or "the only point", progress)

        measured = worker.measure(_job(prepared, layout), tell)
    judged = judge.judge(spec, measured.cells, described.device.kind)
    return _record(prepared, measured, judged, started, choice)


def write_record(run: Run, layout: Layout, detached: Path | None) -> Path:
    """Write the record where it belongs, or under `detached` for a run without a repository."""
    path = layout.record(run.experiment, run.id) if detached is None else detached / run.experiment / f"{run.id}.json"
    records.write_run(path, run)
    return path


def exit_code(run: Run, by_verdict: bool) -> Exit:
    """Exit code of a run (DESIGN section 7): its validity first, then, if asked for, its verdict."""
    if run.verdict.outcome == "invalid":
        return {
            "numerics": Exit.NUMERICS,
            "crashed": Exit.CRASHED,
            "timed-out": Exit.CRASHED,
        }.get(run.verdict.reason, Exit.FOUND)
    if not by_verdict:
        return Exit.DONE
    codes = {"refuted": Exit.REFUTED, "mixed": Exit.MIXED, "inconclusive": Exit.INCONCLUSIVE}
    return codes.get(run.verdict.outcome, Exit.DONE)


def _job(prepared: Prepared, layout: Layout) -> Job:
    spec, kernel = prepared.spec_file.spec, prepared.described.kernel
    bands = [judge.band_for(spec, point)[1] for point in prepared.points]
    job = Job(
        root=str(layout.root),
        device=prepared.described.device_name,
        points=prepared.points,
        half_widths=[judge.target_half_width(band, spec.measure.half_width) for band in bands],
        measure=spec.measure,
        command=spec.command,
        metric=spec.hypothesis.predicts[0].metric,
    )
    if kernel is None or spec.kernel is None:
        return job
    baseline = preflight.full_config(kernel, spec.kernel.baseline)
    update = {
        "entry": spec.kernel.entry,
        "baseline": baseline,
        "candidate": {**baseline, **spec.kernel.candidate},
        "max_rel_error": _tolerance(prepared),
        "numerics": spec.numerics,
    }
    return job.model_copy(update=update)


def _tolerance(prepared: Prepared) -> float:
    """The spec's tolerance, else the kernel's, else the campaign's."""
    spec, kernel = prepared.spec_file.spec, prepared.described.kernel
    candidates = (spec.numerics.max_rel_error, kernel.tolerance if kernel else None, prepared.campaign.max_rel_error)
    found = next((each for each in candidates if each is not None), None)
    if found is None:
        where = prepared.spec_file.locate("numerics", "max_rel_error")
        raise BadInput(
            [
                Problem(
                    where,
                    "no numerics tolerance is set",
                    "give numerics.max_rel_error here, or `tolerance` in the kernel",
                )
            ]
        )
    return found


def _record(prepared: Prepared, measured: Measured, judged: judge.Judged, started: str, choice: Choice) -> Run:
    spec_file, described = prepared.spec_file, prepared.described
    spec, kernel = spec_file.spec, described.kernel
    arms = {"baseline": {}, "candidate": {}, "changed": spec.changed_knobs()}
    if spec.kernel is not None and kernel is not None:
        arms["baseline"] = preflight.full_config(kernel, spec.kernel.baseline)
        arms["candidate"] = {**arms["baseline"], **spec.kernel.candidate}
    elif spec.command is not None:
        arms["baseline"] = spec.command.baseline.model_dump(exclude_defaults=True)
        arms["candidate"] = spec.command.candidate.model_dump(exclude_defaults=True)
    known = [match.dead_end.id for match in prepared.known]
    return Run(
        id=ids.new_id(),
        experiment=spec_file.experiment,
        campaign=prepared.campaign.id,
        title=spec.title,
        lever=spec.lever,
        techniques=spec.techniques,
        started=started,
        finished=ids.timestamp(),
        hypothesis=spec.hypothesis,
        rests_on=spec.rests_on,
        entry=spec.kernel.entry if spec.kernel else None,
        **arms,
        device=described.device,
        software=described.software,
        environment=described.environment,
        facts=prepared.campaign.facts,
        source=Source(
            spec=SourceFile(path=spec_file.path, blob=spec_file.blob), files=measured.files, detached=choice.detached
        ),
        design=spec.measure.design,
        max_rel_error=_tolerance(prepared) if spec.kernel else None,
        norm=spec.numerics.norm,
        cells=judged.cells,
        verdict=judged.verdict,
        dead_end_reason=spec.if_refuted.reason,
        reopen_when=spec.if_refuted.reopen_when,
        retread=Retread(why=choice.retread, entries=known) if known and choice.retread else None,
        log_tail=measured.log_tail,
    )
