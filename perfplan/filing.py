"""Filing the records of detached runs: are their sources in the history of this checkout?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfplan.blobs import file_blob
from perfplan.errors import BadRecord, GitRefused, Location, NotFound, PerfplanError
from perfplan.git import Repository
from perfplan.ids import PATTERN
from perfplan.layout import Layout
from perfplan.models.record import Run, SourceFile
from perfplan.records import read_run, write_run


@dataclass(frozen=True)
class Filed:
    """A record in its place. `new` is false where it had been filed before."""

    run: Run
    path: str
    new: bool


def detached_records(place: Path) -> list[Path]:
    """The records under a folder, or the one file, oldest first. Raises NotFound where there is none."""
    if place.is_file():
        return [place]
    found = [path for path in place.rglob("*.json") if not path.name.startswith(".")]
    if not found:
        raise NotFound(
            f"{place} holds no records", hint="expected DIR of `perfplan run --detached DIR`, or a record in it"
        )
    return sorted(found, key=lambda path: (path.stem, str(path)))


def file_record(path: Path, layout: Layout, repository: Repository, allow_unknown: bool) -> Filed:
    """Verify a detached record and write it to experiments/, with the commit that holds its sources.

    Raises BadRecord for a broken one, GitRefused where sources are not in the history (unless `allow_unknown`; then the
    record names them) and PerfplanError for an experiment or campaign that the checkout does not have.
    """
    run = read_run(path)
    _check_place(run, path, layout)
    target = layout.record(run.experiment, run.id)
    shown = layout.relative(target)
    if target.exists():
        return Filed(_same(run, target, shown), shown, new=False)
    sources = [run.source.spec, *run.source.files]
    known = repository.has_blobs({each.blob for each in sources})
    unknown = [each for each in sources if each.blob not in known]
    commit = None if unknown else repository.commit_with({each.path: each.blob for each in sources})
    if commit is None and not unknown:
        unknown = [each for each in sources if repository.commit_with({each.path: each.blob}) is None]
    if commit is None and not allow_unknown:
        raise _refusal(run, path, unknown, layout)
    source = run.source.model_copy(update={"commit": commit, "unknown": sorted(each.path for each in unknown)})
    filed = run.model_copy(update={"source": source})
    try:
        write_run(target, filed)
    except FileExistsError:  # another process was faster
        return Filed(_same(run, target, shown), shown, new=False)
    return Filed(filed, shown, new=True)


def _check_place(run: Run, path: Path, layout: Layout) -> None:
    where = Location(str(path))
    if not PATTERN.match(run.id) or Path(run.experiment).name != run.experiment or run.experiment in ("", ".", ".."):
        raise BadRecord(f"has an id or experiment that is not a name: {run.id!r}, {run.experiment!r}", location=where)
    if not run.source.detached:
        raise BadRecord(
            "is not the record of a detached run",
            location=where,
            hint="its own checkout files it: `perfplan commit` there",
        )
    if not layout.campaign(run.campaign).is_file():
        hint = f"add plans/{run.campaign}.yaml, or run this in the checkout that has it"
        raise PerfplanError(f"campaign {run.campaign!r} is not in this checkout", location=where, hint=hint)
    if not layout.spec(run.experiment).is_file():
        hint = f"add experiments/{run.experiment}.yaml as it was when the run was made, and commit it"
        raise PerfplanError(f"experiment {run.experiment!r} has no spec in this checkout", location=where, hint=hint)


def _same(run: Run, target: Path, shown: str) -> Run:
    """The record already filed, if it is of the same run; filing fills in only `commit` and `unknown`."""
    filed = read_run(target, shown)
    unfiled = filed.source.model_copy(update={"commit": run.source.commit, "unknown": run.source.unknown})
    if filed.model_copy(update={"source": unfiled}) != run:
        hint = "records are immutable: find out which of the two is the real one"
        raise BadRecord(f"run {run.id} is already filed with other content", location=Location(shown), hint=hint)
    return filed


def _refusal(run: Run, path: Path, unknown: list[SourceFile], layout: Layout) -> GitRefused:
    if not unknown:
        message = "each of its sources is in the history, but no commit has all of them together"
        return GitRefused(
            message,
            location=Location(str(path)),
            hint="commit the sources as they were measured, or --allow-unknown-source",
        )
    lines = "\n".join(f"  {each.path}: {_instead(each, layout)}" for each in unknown)
    hint = (
        "commit the sources as they were measured, then run this again; or --allow-unknown-source, which the plan shows"
    )
    return GitRefused(
        f"run {run.id} was measured with sources that are not in the history:\n{lines}",
        location=Location(str(path)),
        hint=hint,
    )


def _instead(each: SourceFile, layout: Layout) -> str:
    on_disk = layout.root / each.path
    if not on_disk.is_file():
        return f"the checkout has no such file (measured: {each.blob[:10]})"
    here = file_blob(on_disk)
    if here == each.blob:
        return "on disk as it was measured, but differs from every committed version: commit it first"
    return f"measured as {each.blob[:10]}, which differs from every committed version; the checkout has {here[:10]}"
