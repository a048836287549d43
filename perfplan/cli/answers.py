"""How answers of the log are shown: as text for people, as data for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from perfplan.ask import Found
from perfplan.ids import short

_COLOURS = {"dead-end": "red", "run": "blue", "lever": "green", "premise": "magenta"}


def print_answers(answers: Sequence[Found], matches: int) -> None:
    """A few lines an answer: what, state, reason, scope, whether it holds here, evidence."""
    if not answers:
        click.echo("no match", err=True)
        return
    for each in answers:
        head = click.style(f"{each.kind} {each.name}", fg=_COLOURS[each.kind], bold=True)
        click.echo(f"{head}  [{each.state}]  {each.campaign}  {short(each.id)}  {each.date[:10]}")
        for label, text in _lines(each):
            click.echo(f"  {label:<9} {text}")
    if matches > len(answers):
        click.echo(f"... {matches - len(answers)} more; --limit shows them", err=True)


def _lines(found: Found) -> list[tuple[str, str]]:
    lines = (
        [("title", found.title)]
        if found.title.casefold() not in (found.name.casefold(), found.reason.casefold())
        else []
    )
    lines.append(("why" if found.kind == "dead-end" else "says", found.reason))
    if found.scope_words:
        lines.append(("scope", found.scope_words))
    if found.here is not None:
        because = f" ({'; '.join(found.here.because)})" if found.here.because else ""
        lines.append(("here", found.here.value + because))
    return [*lines, ("evidence", f"{found.evidence}  {found.path}")]


def as_data(found: Found) -> dict[str, Any]:
    """An answer as JSON data."""
    here = {"value": found.here.value, "because": list(found.here.because)} if found.here else None
    return {
        "kind": found.kind, "id": found.id, "campaign": found.campaign, "name": found.name, "title": found.title,
        "state": found.state, "reason": found.reason, "scope": dict(found.scope), "applies_here": here,
        "evidence": found.evidence, "path": found.path, "date": found.date, "kernel": found.kernel or None,
    }  # fmt: skip
