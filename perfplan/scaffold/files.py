"""The files that `init` and `new` write."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from perfplan import atomic
from perfplan.errors import PerfplanError
from perfplan.layout import Layout
from perfplan.models.kernel import KernelInfo

IGNORED = ".perfplan/"
_SLUG = re.compile(r"^[a-z0-9][a-z0-9._-]*$")


def init_repository(layout: Layout, campaign: str) -> list[Path]:
    """Write a campaign, an example kernel and experiment, and the line in .gitignore. Returns what was written.

    Raises PerfplanError, and writes nothing, where one of the files exists.
    """
    check_slug(campaign)
    files = {
        layout.campaign(campaign): _template("campaign.yaml"),
        layout.root / "kernels" / "example.py": _template("example_kernel.py.txt"),
        layout.spec("example"): _template("example_spec.yaml").format(campaign=campaign),
    }
    present = [layout.relative(path) for path in files if path.exists()]
    if present:
        raise PerfplanError(
            f"nothing written: {', '.join(present)} {'exists' if len(present) == 1 else 'exist'} already",
            hint="`perfplan new NAME` adds an experiment; `perfplan init --campaign NAME` needs a repository without the examples",
        )
    for path, text in files.items():
        atomic.write_text(path, text, exclusive=True)
    return [*files, *_ignore_scratch(layout)]


def new_spec(
    layout: Layout,
    name: str,
    campaign: str,
    lever: str,
    entry: str | None = None,
    kernel: KernelInfo | None = None,
    source: str | None = None,
) -> Path:
    """Write experiments/NAME.yaml from the template, or as a copy of the text `source`. Raises PerfplanError if it exists."""
    check_slug(name)
    check_slug(lever)
    path = layout.spec(name)
    text = source if source is not None else _spec_text(name, campaign, lever, entry or "kernels/FILE.py:CLASS", kernel)
    try:
        atomic.write_text(path, text, exclusive=True)
    except FileExistsError:
        raise PerfplanError(
            f"{layout.relative(path)} exists already", hint="choose another name, or edit that file"
        ) from None
    return path


def check_slug(name: str) -> None:
    """Raises PerfplanError, with a name that would do, for one that does not."""
    if len(name) > 80:
        raise PerfplanError(f"the name {name[:20]!r}... has {len(name)} characters", hint="80 are the most")
    if not _SLUG.match(name):
        slug = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._") or "experiment"
        raise PerfplanError(
            f"{name!r}: names have small letters, digits, '.', '_' and '-' only", hint=f"for instance {slug}"
        )


def _spec_text(name: str, campaign: str, lever: str, entry: str, kernel: KernelInfo | None) -> str:
    title = name.replace("-", " ").capitalize()
    lines = [
        "  baseline: {} # knob -> value; the kernel's defaults fill the rest",
        "  candidate: {KNOB: VALUE} # the rest is the baseline's",
    ]
    points = "{AXIS: [VALUE]}"
    if kernel is not None:
        lines = [
            f"  # {knob.name}: {knob.default!r} by default{_choices(knob.choices + knob.words)}"
            for knob in kernel.knobs.values()
        ] + lines
        required = {axis.name: "[VALUE]" for axis in kernel.axes.values() if axis.default is None}
        points = "{" + ", ".join(f"{axis}: {value}" for axis, value in required.items()) + "}"
    return _template("spec.yaml").format(
        campaign=campaign, title=title, lever=lever, entry=entry, knobs="\n".join(lines) + "\n", points=points
    )


def _choices(choices: tuple[object, ...]) -> str:
    return f"; or {', '.join(map(str, choices))}" if choices else ""


def _ignore_scratch(layout: Layout) -> list[Path]:
    """Add the scratch folder to .gitignore, unless it is there."""
    path = layout.root / ".gitignore"
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    if IGNORED in before.splitlines():
        return []
    atomic.write_text(path, before + ("\n" if before and not before.endswith("\n") else "") + IGNORED + "\n")
    return [path]


def _template(name: str) -> str:
    return (resources.files("perfplan.scaffold") / name).read_text(encoding="utf-8")
