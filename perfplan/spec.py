"""Reading specs: `experiments/<experiment>.yaml`, and every check that needs nothing but the spec itself."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

from perfplan import scope
from perfplan.blobs import blob_id
from perfplan.errors import BadInput, Location, PerfplanError, Problem
from perfplan.layout import Layout
from perfplan.models.spec import Prediction, Spec
from perfplan.validation import validate
from perfplan.yamlfile import Document, read_document

MAX_CELLS = 10_000
_SLUG = re.compile(r"^[a-z0-9][a-z0-9._-]*$")


@dataclass(frozen=True)
class SpecFile:
    """A spec with where it came from. `blob` is git's id of the very bytes that were parsed: the frozen hypothesis."""

    path: str  # from the root
    experiment: str
    blob: str
    spec: Spec
    document: Document = field(repr=False)

    def locate(self, *keys: str | int) -> Location:
        """The place of a key path in the file."""
        return self.document.locate(*keys)


def find_specs(layout: Layout) -> list[Path]:
    """Every spec of the repository, sorted by name."""
    return sorted(layout.experiments.glob("*.yaml"))


def read_spec(path: Path, layout: Layout) -> SpecFile:
    """Read and check a spec. Raises BadInput with every problem in it."""
    shown = layout.relative(path)
    _check_place(path, shown, layout)
    document = read_document(path, shown)
    spec = validate(document, Spec)
    problems = list(_semantic_problems(spec, document))
    if problems:
        raise BadInput(problems)
    return SpecFile(shown, path.stem, blob_id(document.content), spec, document)


def read_spec_text(layout: Layout, experiment: str) -> str:
    """The text of a spec as it is on disk. Raises BadInput where there is none, or where it has problems."""
    path = layout.spec(experiment.removesuffix(".yaml").removeprefix("experiments/"))
    read_spec(path, layout)
    return path.read_text(encoding="utf-8")


def _check_place(path: Path, shown: str, layout: Layout) -> None:
    def refuse(message: str, hint: str) -> BadInput:
        return BadInput([Problem(Location(shown), message, hint)])

    if not path.exists() and not path.is_symlink():
        near = difflib.get_close_matches(path.name, [each.name for each in find_specs(layout)], n=1)
        raise refuse("there is no such file", f"did you mean experiments/{near[0]}?" if near else "check the path")
    if path.is_dir():
        raise refuse("is a folder, not a spec", f"name its files: {shown}/*.yaml")
    if path.suffix == ".yml":
        raise refuse("a spec ends in .yaml", f"rename it to {path.stem}.yaml")
    if path.resolve().parent != layout.experiments.resolve():
        raise refuse("a spec lies in experiments/", f"move it to experiments/{path.name}")
    if not _SLUG.match(path.stem):
        slug = re.sub(r"[^a-z0-9._-]+", "-", path.stem.lower()).strip("-._") or "experiment"
        raise refuse("the name of a spec has small letters, digits, '.', '_' and '-' only", f"rename it to {slug}.yaml")


def _semantic_problems(spec: Spec, document: Document) -> Iterable[Problem]:
    if prod(len(values) for values in spec.points.values()) > MAX_CELLS:
        yield Problem(document.locate("points"), f"gives more than {MAX_CELLS:,} operating points", "measure fewer")
        return
    for axis, values in spec.points.items():
        if not values:
            yield Problem(document.locate("points", axis), "has no values", "give at least one")
        if len(set(map(repr, values))) < len(values):
            yield Problem(document.locate("points", axis), "names a value twice", "remove one")
    single = "predicts" in document.data.get("hypothesis", {}) and isinstance(
        document.data["hypothesis"]["predicts"], dict
    )
    for index, prediction in enumerate(spec.hypothesis.predicts):
        where = ("hypothesis", "predicts") if single else ("hypothesis", "predicts", index)
        yield from _prediction_problems(spec, prediction, document, where)
    for index, guard in enumerate(spec.guards):
        yield from _prediction_problems(spec, guard, document, ("guards", index))
    yield from _overlaps(spec, document)
    yield from _arm_problems(spec, document)
    yield from _condition_problems(spec, document)


def _prediction_problems(
    spec: Spec, prediction: Prediction, document: Document, where: tuple[str | int, ...]
) -> Iterable[Problem]:
    metrics = ["time", *(spec.command.metrics if spec.command else ())]
    if prediction.metric not in metrics:
        yield Problem(
            document.locate(*where, "metric"),
            f"{prediction.metric!r} is not measured",
            f"possible here: {', '.join(metrics)}",
        )
    for axis, values in prediction.at.items():
        if axis not in spec.points:
            yield Problem(
                document.locate(*where, "at", axis),
                "is not an axis of `points`",
                f"axes: {', '.join(spec.points) or 'none'}",
            )
            continue
        if not values:
            yield Problem(document.locate(*where, "at", axis), "has no values", "leave the axis out for all of them")
        for value in values:
            if value not in spec.points[axis]:
                measured = ", ".join(map(repr, spec.points[axis]))
                yield Problem(
                    document.locate(*where, "at", axis),
                    f"{axis}={value!r} is not measured",
                    f"`points` has {axis}: {measured}",
                )


def _overlaps(spec: Spec, document: Document) -> Iterable[Problem]:
    """A point has one band: two predictions, or a prediction and a guard, must not both be about it."""
    owners = [*spec.hypothesis.predicts, *spec.guards]
    for point in spec.cells():
        about = [owner for owner in owners if owner.applies(point)]
        if len(about) > 1:
            shown = ", ".join(f"{axis}={value}" for axis, value in point.items())
            key: tuple[str, ...] = (
                ("guards",) if any(owner in spec.guards for owner in about) else ("hypothesis", "predicts")
            )
            yield Problem(
                document.locate(*key), f"{shown} falls under two bands", "narrow `at` so that each point has one"
            )
            return


def _condition_problems(spec: Spec, document: Document) -> Iterable[Problem]:
    for index, condition in enumerate(spec.if_refuted.reopen_when):
        for fact in condition:
            try:
                where = document.locate("if_refuted", "reopen_when", index, fact)
                scope.check(
                    {fact: condition[fact]}, Location(where.path, where.line, "if_refuted.reopen_when"), reopening=True
                )
            except PerfplanError as error:
                yield Problem(error.location or where, error.message, error.hint)


def _arm_problems(spec: Spec, document: Document) -> Iterable[Problem]:
    if spec.kernel is not None and not spec.changed_knobs():
        yield Problem(document.locate("kernel", "candidate"), "is the same as the baseline", "change at least one knob")
    if spec.command is not None and spec.command.baseline == spec.command.candidate:
        yield Problem(document.locate("command", "candidate"), "is the same as the baseline", "change argv or env")
