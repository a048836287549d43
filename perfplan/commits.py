"""What is committed and how: one commit a run or decision, with the plan that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from perfplan.blobs import file_blob
from perfplan.decisions import decision_path, find_decisions
from perfplan.errors import NotFound
from perfplan.git import Repository, open_repository
from perfplan.layout import Layout
from perfplan.locks import filing_lock
from perfplan.log import Log, load_log
from perfplan.messages import decision_message, run_message
from perfplan.models.campaign import Campaign
from perfplan.models.decision import Decision
from perfplan.models.record import Run
from perfplan.records import find_records


@dataclass(frozen=True)
class Commit:
    """A commit that was made. `left_out` are files that belong to it but were edited since: they stay uncommitted."""

    sha: str
    paths: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()  # committed files of the log that cannot be read; the plan was left as it is then


def regenerate(layout: Layout) -> list[Path]:
    """Rewrite plans and charts from the files as they are now; returns what it wrote. Call it under the filing lock."""
    from perfplan.plan import write_documents

    return list(write_documents(layout, load_log(layout)))


def commit_run(layout: Layout, run: Run) -> Commit:
    """Commit a run whose record is on disk, its spec if that is not committed yet, and the plan.

    Raises GitRefused or Locked; record and plan are on disk then, ready for `perfplan commit`.
    """
    with filing_lock(layout):
        return _commit_run(layout, open_repository(layout.root), run)


def commit_decisions(layout: Layout, decisions: Sequence[Decision]) -> Commit:
    """Commit decision entries that are on disk, one commit each, with the plan.

    The result has the last commit and the paths of all. Raises as `commit_run` does.
    """
    with filing_lock(layout):
        repository = open_repository(layout.root)
        made = [_commit_decision(layout, repository, decision) for decision in decisions]
    if not made:
        raise NotFound("there is no decision to commit")
    return Commit(made[-1].sha, tuple(dict.fromkeys(path for commit in made for path in commit.paths)))


def commit_pending(layout: Layout, ids: Sequence[str]) -> list[tuple[str, Commit]]:
    """Commit the pending entries with these ids, one commit each, oldest first; others are skipped."""
    made = []
    with filing_lock(layout):
        repository = open_repository(layout.root)
        waiting = {entry.id for entry in pending(layout)}
        log = load_log(layout)
        both: list[Run | Decision] = [*log.runs, *log.decisions]
        entries = sorted(both, key=lambda each: each.id)
        for entry in entries:
            if entry.id not in ids or entry.id not in waiting:
                continue
            if isinstance(entry, Run):
                made.append((entry.id, _commit_run(layout, repository, entry)))
            else:
                made.append((entry.id, _commit_decision(layout, repository, entry)))
    return made


@dataclass(frozen=True)
class Pending:
    """A record or decision on disk that is not in HEAD."""

    id: str
    path: str


def pending(layout: Layout) -> list[Pending]:
    """Records and decisions on disk that are not in HEAD, oldest first. Files that cannot be read are left out."""
    paths = [layout.relative(path) for path in [*find_records(layout), *find_decisions(layout)]]
    missing = set(paths) - open_repository(layout.root).committed(["experiments", "plans"])
    if not missing:
        return []
    known = {path: entry for entry, path in load_log(layout).paths.items()}
    return sorted((Pending(known[path], path) for path in missing if path in known), key=lambda each: each.id)


def _commit_run(layout: Layout, repository: Repository, run: Run) -> Commit:
    repository.refuse_if_unready()
    record = layout.relative(layout.record(run.experiment, run.id))
    paths, left_out = [record], list[str]()
    spec = run.source.spec
    if repository.uncommitted([spec.path]):
        on_disk = layout.root / spec.path
        unedited = on_disk.is_file() and file_blob(on_disk) == spec.blob
        (paths if unedited else left_out).append(spec.path)
    plans, log, damaged = _plan(layout, repository)
    message = run_message(run, _campaign(log, run.campaign))
    return replace(_commit(repository, [*paths, *plans], message, left_out), damaged=damaged)


def _commit_decision(layout: Layout, repository: Repository, decision: Decision) -> Commit:
    repository.refuse_if_unready()
    plans, log, damaged = _plan(layout, repository)
    own = log.paths.get(decision.id) or layout.relative(decision_path(layout, decision))
    message = decision_message(decision, _campaign(log, decision.campaign))
    return replace(_commit(repository, [own, *plans], message, []), damaged=damaged)


def _commit(repository: Repository, paths: Sequence[str], message: str, left_out: Sequence[str]) -> Commit:
    unique = tuple(dict.fromkeys(paths))
    return Commit(repository.commit_paths([Path(path) for path in unique], message), unique, tuple(left_out))


def _plan(layout: Layout, repository: Repository) -> tuple[list[str], Log, tuple[str, ...]]:
    """Regenerate; then the generated files that differ from HEAD, removed charts too.

    While a committed record or decision cannot be read, the plan stays as it is: rewritten, it would lack that entry.
    """
    log = load_log(layout)
    paths = [problem.location.path for problem in log.problems]
    unreadable = {path for path in paths if path.endswith(".json") or "/decisions/" in path}
    damaged = unreadable & repository.committed(["experiments", "plans"])
    if damaged:
        return [], log, tuple(sorted(damaged))
    written = {layout.relative(path) for path in regenerate(layout)}
    log = load_log(layout)
    documents = {campaign.plan_name for campaign in log.campaigns.values()}

    def generated(path: str) -> bool:
        parts = PurePosixPath(path).parts
        chart = len(parts) == 3 and parts[1] in log.campaigns and path.endswith(".svg")
        return path in written or chart or (len(parts) == 2 and parts[1] in documents)

    return [path for path in repository.uncommitted(["plans"]) if generated(path)], log, ()


def _campaign(log: Log, name: str) -> Campaign:
    if name not in log.campaigns:
        raise NotFound(
            f"campaign {name!r} has no readable file plans/{name}.yaml", hint="restore it, then `perfplan commit`"
        )
    return log.campaigns[name]
