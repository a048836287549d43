"""What `perfplan run` does with one spec, from the first look at git to the commit."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from perfplan import run as stages
from perfplan.commits import commit_run, regenerate
from perfplan.errors import BadRecord, EnvironmentProblem, PerfplanError
from perfplan.git import Repository, open_repository
from perfplan.layout import Layout
from perfplan.locks import filing_lock
from perfplan.log import load_log
from perfplan.measure.supervisor import Worker
from perfplan.models.record import Run, SourceFile


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    device: str = "auto"
    retread: str | None = None
    commit: bool = True
    detached: Path | None = None


@dataclass(frozen=True)
class Result:
    """A run that has its record on disk. `refused` says why it is not committed, where git would not."""

    run: Run
    path: str
    commit: str | None = None
    plan_paths: tuple[str, ...] = ()
    refused: PerfplanError | None = None


def run_spec(spec_path: Path, layout: Layout, request: Request, listener: stages.Listener) -> Result:
    """Run one spec. Git is asked before any time is spent on the device, so that nothing is measured in vain.

    Raises PerfplanError for what stops a run before it has a record; a commit that git refuses is in the result.
    """
    listener.phase(f"reading {spec_path.name}")
    repository = None if request.detached else open_repository(layout.root)
    if repository is not None and request.commit:
        repository.refuse_if_unready()
    log = load_log(layout)
    for problem in log.problems:
        listener.note(f"skipped: {problem}")
    spec_file, campaign = stages.read(spec_path, layout, log)
    choice = stages.Choice(request.device, request.retread, detached=request.detached is not None)
    with Worker(layout.root) as worker:
        prepared = stages.prepare(spec_file, campaign, worker, log, choice, listener)
        run = stages.execute(prepared, worker, layout, choice, listener)
    if repository is not None:
        run = with_git_state(run, repository)
    path = _safely_written(run, layout, request.detached)
    shown = layout.relative(path) if request.detached is None else str(path)
    if request.detached is not None:
        return Result(run, shown)
    return _file(run, shown, layout, request, listener)


def _safely_written(run: Run, layout: Layout, detached: Path | None) -> Path:
    """Write the record; where it cannot be written, somewhere else, so that the measurement is not lost."""
    try:
        return stages.write_record(run, layout, detached)
    except PerfplanError as error:
        refuge = Path(tempfile.mkdtemp(prefix="perfplan-"))
        path = stages.write_record(run, layout, refuge)
        error.hint = f"the record is safe in {path}; mend it, then copy it to experiments/{run.experiment}/ and `perfplan commit`"
        raise


def with_git_state(run: Run, repository: Repository) -> Run:
    """The run with what git knows of its sources: the commit, which files differ from it, and how."""
    sources = [run.source.spec, *run.source.files]
    state = repository.source_state([each.path for each in sources])
    dirty = set(state.dirty)

    def marked(each: SourceFile) -> SourceFile:
        return each.model_copy(update={"dirty": each.path in dirty})

    kernel_dirty = any(each.path in dirty for each in run.source.files)
    source = run.source.model_copy(
        update={
            "spec": marked(run.source.spec),
            "files": [marked(each) for each in run.source.files],
            "commit": repository.head(),
            "dirty": kernel_dirty,
            "diff": state.diff if kernel_dirty else None,
        }
    )
    return run.model_copy(update={"source": source})


def _file(run: Run, shown: str, layout: Layout, request: Request, listener: stages.Listener) -> Result:
    """Rewrite the plan and commit; the record is safe on disk whatever happens here."""
    result = Result(run, shown)
    if not request.commit:
        listener.phase("rewriting the plan")
        with filing_lock(layout):
            paths = regenerate(layout)
        return replace(result, plan_paths=tuple(layout.relative(path) for path in paths))
    listener.phase("rewriting the plan and committing")
    try:
        commit = commit_run(layout, run)
    except PerfplanError as refused:
        return replace(result, refused=refused)
    except OSError as error:
        return replace(result, refused=EnvironmentProblem(f"{error.filename or layout.root}: {error.strerror}"))
    damaged = _damage(commit.damaged) if commit.damaged else None
    return replace(result, commit=commit.sha, refused=damaged)


def _damage(paths: tuple[str, ...]) -> BadRecord:
    return BadRecord(
        f"the plan is not rewritten while files of the log are damaged: {', '.join(paths[:5])}",
        hint="`git checkout -- FILE` brings a committed one back; then `perfplan plan`, and commit it",
    )
