"""A view of a campaign into the text of its plan, by the template of the package or the campaign's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfplan.errors import BadInput, Location, Problem
from perfplan.plan.regions import block

if TYPE_CHECKING:
    from perfplan.plan.view import View

_PACKAGED = Path(__file__).parent / "templates" / "plan.md.j2"


def render(view: View, regions: Mapping[str, str], template: Path | None, shown: str = "") -> str:
    """The document. `regions` are the hand-written ones to carry over; those without a place are appended.

    `template` is a campaign's own (in a sandbox), `shown` its name in errors. Raises BadInput with the line of a broken
    template.
    """
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    placed: list[str] = []

    def region(name: str) -> str:
        if name in placed:
            raise jinja2.TemplateRuntimeError(f"region {name!r} is placed twice")
        placed.append(name)
        return block(name, regions.get(name, ""))

    path = template or _PACKAGED
    environment = ImmutableSandboxedEnvironment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    try:
        source = path.read_text(encoding="utf-8")
        code = environment.compile(source, filename=str(path))
        compiled = jinja2.Template.from_code(environment, code, environment.make_globals({"region": region}))
        body = compiled.render(plan=view)
    except OSError as error:
        raise _broken(shown, 0, f"the campaign's template cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise _broken(shown, 0, f"the template is not UTF-8 text: {error.reason}") from None
    except jinja2.TemplateSyntaxError as error:
        raise _broken(shown, error.lineno, f"the template is broken: {error.message}") from None
    except Exception as error:  # a template runs arbitrary expressions, so it may raise anything
        if template is None:
            raise
        raise _broken(shown, _line(error, path), f"the template failed: {error}") from None
    return _with_unplaced(body, regions, placed)


def _with_unplaced(body: str, regions: Mapping[str, str], placed: list[str]) -> str:
    text = body.rstrip("\n") + "\n"
    unplaced = [name for name in sorted(regions) if name not in placed and regions[name].strip()]
    if unplaced:
        text += "\n## Unplaced notes\n\nHand-written regions that the template has no place for.\n"
        text += "".join(f"\n{block(name, regions[name])}\n" for name in unplaced)
    return text


def _line(error: BaseException, path: Path) -> int:
    """The deepest line of the template in the traceback, which Jinja2 has mapped to the source."""
    line, frame = 0, error.__traceback__
    while frame is not None:
        code: Any = frame.tb_frame.f_code
        if code.co_filename == str(path):
            line = frame.tb_lineno
        frame = frame.tb_next
    return line


def _broken(shown: str, line: int, message: str) -> BadInput:
    return BadInput(
        [
            Problem(
                Location(shown, line), message, "mend it, or remove `template:` from the campaign to use perfplan's own"
            )
        ]
    )
