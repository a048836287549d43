"""What lies where in a user's repository (DESIGN section 2). Paths only: nothing is read or written here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfplan.errors import PerfplanError


@dataclass(frozen=True)
class Layout:
    """The folders of the repository at `root`."""

    root: Path

    @property
    def plans(self) -> Path:
        return self.root / "plans"

    @property
    def experiments(self) -> Path:
        return self.root / "experiments"

    @property
    def scratch(self) -> Path:
        """Ignored by git; deleting it loses nothing."""
        return self.root / ".perfplan"

    def campaign(self, campaign: str) -> Path:
        return self.plans / f"{campaign}.yaml"

    def decisions(self, campaign: str) -> Path:
        return self.plans / campaign / "decisions"

    def charts(self, campaign: str) -> Path:
        return self.plans / campaign

    def spec(self, experiment: str) -> Path:
        return self.experiments / f"{experiment}.yaml"

    def record(self, experiment: str, run_id: str) -> Path:
        return self.experiments / experiment / f"{run_id}.json"

    def relative(self, path: Path) -> str:
        """`path` from the root with forward slashes, as it stands in records and documents."""
        absolute = path if path.is_absolute() else Path.cwd() / path
        try:
            return absolute.resolve().relative_to(self.root.resolve()).as_posix()
        except (RuntimeError, OSError):
            raise PerfplanError(f"{path} is a link that leads nowhere") from None
        except ValueError:
            raise PerfplanError(f"{path} is outside of the repository {self.root}") from None


def find_layout(start: Path | None = None) -> Layout:
    """The layout of the repository that holds `start` (the current folder by default).

    The root is the nearest parent with `.git`, else the nearest with `plans/` and `experiments/` (a copy of the files
    without a repository). Raises PerfplanError where there is neither.
    """
    here = (start or Path.cwd()).resolve()
    parents = [here, *here.parents]
    for parent in parents:
        if (parent / ".git").exists():
            return Layout(parent)
    for parent in parents:
        if (parent / "plans").is_dir() and (parent / "experiments").is_dir():
            return Layout(parent)
    raise PerfplanError(
        f"no perfplan repository at {here} or above", hint="run `git init` and `perfplan init` where your kernels are"
    )
