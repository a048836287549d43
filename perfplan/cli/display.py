"""What a run shows: a live progress line on a terminal, plain lines elsewhere, and a table of the result."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, TextIO

from perfplan.cells import cell_rows, label, shared_axes
from perfplan.measure.job import Progress
from perfplan.models.record import Run
from perfplan.pipeline import Result
from perfplan.run import Listener
from perfplan.units import percent

PLAIN_EVERY = 2.0  # seconds between progress lines where there is no terminal


class Display:
    """Shows phases, progress and the result of one run on `stream`. Use as a context manager."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console

        # a file or a pipe gets lines as long as they are; nobody scrolls sideways on a terminal
        width = None if stream.isatty() else 200
        self._console = Console(file=stream, highlight=False, width=width, soft_wrap=not stream.isatty())
        self._status: Any = None  # a spinner for a phase, or the bar of a measurement
        self._bar: Any = None
        self._last_plain = 0.0
        self.listener = Listener(phase=self._phase, note=self._note, progress=self._progress)

    def __enter__(self) -> Display:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_status()

    def _phase(self, text: str) -> None:
        """A phase is said at once, so that nobody looks at an empty screen."""
        self._stop_status()
        if self._console.is_terminal:
            self._status = self._console.status(_escape(text))
            self._status.start()
        else:
            self._line(text)

    def _note(self, text: str) -> None:
        self._line(text)

    def _progress(self, where: str, progress: Progress) -> None:
        text = describe(where, progress)
        if self._console.is_terminal:
            self._draw_bar(text, progress)
        elif time.monotonic() - self._last_plain >= PLAIN_EVERY:
            self._last_plain = time.monotonic()
            self._line(text)

    def _draw_bar(self, text: str, progress: Progress) -> None:
        """Pairs so far of the most that there can be; it ends earlier where the precision is enough."""
        from rich.progress import BarColumn, SpinnerColumn, TextColumn
        from rich.progress import Progress as Bar

        if self._bar is None:
            self._stop_status()
            columns = (SpinnerColumn(), BarColumn(bar_width=20), TextColumn("{task.description}", markup=False))
            self._status = Bar(*columns, console=self._console, transient=True)
            self._bar = self._status.add_task("", total=None)
            self._status.start()
        total = progress.most_pairs or None
        self._status.update(self._bar, description=text, completed=progress.pairs, total=total)

    def _line(self, text: str) -> None:
        self._console.print(text, markup=False)

    def _stop_status(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = self._bar = None

    def result(self, result: Result) -> None:
        """The table of cells, the verdict, where the record lies, and the commit."""
        self._stop_status()
        run = result.run
        self._console.print()
        if shared_axes(run):
            self._line(f"all at {shared_axes(run)}")
        self._console.print(_table(run))
        for cell in run.cells:
            if not cell.validity.valid:
                self._line(f"  {label(cell, run)}: {cell.validity.reason.replace('-', ' ')}: {cell.validity.detail}")
        for line in sorted({f"  {label(cell, run)}: {note}" for cell in run.cells for note in cell.notes}):
            self._line(line)
        style = _STYLE[run.verdict.outcome]
        how = f" ({run.verdict.subcode or run.verdict.reason})" if run.verdict.subcode or run.verdict.reason else ""
        self._console.print(f"[bold {style}]{run.verdict.outcome}[/]{_escape(how)}  {_escape(run.verdict.summary)}")
        self._line(f"record  {result.path}")
        if result.commit:
            self._line(f"commit  {result.commit[:12]}")
        elif result.refused:
            self._line("commit  none; the record is safe on disk, `perfplan commit` takes it from there")
        elif run.source.detached:
            self._line("commit  none (detached); file it with `perfplan record` in the checkout")
        else:
            self._line("commit  none (--no-commit); `perfplan commit` commits it")


_STYLE = {"confirmed": "green", "refuted": "yellow", "mixed": "magenta", "inconclusive": "cyan", "invalid": "red"}


def describe(where: str, progress: Progress) -> str:
    """One line of progress: the point, how many pairs, the estimate so far with its interval."""
    if progress.estimate is None or progress.low is None or progress.high is None:
        return f"{where}: {progress.stage}"
    estimate = f"{percent(progress.estimate)} [{percent(progress.low)}, {percent(progress.high)}]"
    return f"{where}: {progress.stage}, {progress.pairs} pairs, {estimate}"


def _table(run: Run) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=None)
    for title, right in (
        ("point", False),
        ("baseline", True),
        ("candidate", True),
        ("effect", True),
        ("predicted", False),
        ("verdict", False),
    ):
        table.add_column(title, justify="right" if right else "left", overflow="fold")
    for row in cell_rows(run):
        table.add_row(*map(_escape, row))
    return table


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)
