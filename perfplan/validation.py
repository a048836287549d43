"""Hand-written YAML as typed models: every problem at once, in plain words, each with its line and a suggestion."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from perfplan.errors import BadInput, Location, Problem
from perfplan.yamlfile import Document, KeyPath, read_document

ModelT = TypeVar("ModelT", bound=BaseModel)


def read_model(path: Path, model: type[ModelT], *, shown: str, extra: Mapping[str, Any] | None = None) -> ModelT:
    """Read a YAML file as `model`; `extra` are fields that the file does not hold. Raises BadInput with every problem."""
    return validate(read_document(path, shown), model, extra=extra)


def validate(document: Document, model: type[ModelT], *, extra: Mapping[str, Any] | None = None) -> ModelT:
    """The document as `model`. Raises BadInput with every problem, each with its line."""
    given = [key for key in extra or {} if key in document.data]
    if given:
        raise BadInput([Problem(document.locate(given[0]), "is set by perfplan, not by hand", "remove the line")])
    try:
        return model.model_validate({**document.data, **(extra or {})})
    except ValidationError as error:
        raise BadInput(_problems(error, document, model)) from None


def _problems(error: ValidationError, document: Document, model: type[BaseModel]) -> list[Problem]:
    """Pydantic's errors in plain words, one for each place (a union reports one for each member)."""
    found: dict[KeyPath, Problem] = {}
    for each in error.errors():
        path = _known_path(each["loc"], document)
        location = document.locate(*path)
        if each["type"] == "extra_forbidden":
            key = str(each["loc"][-1])
            location = document.locate(*path[:-1], key) if path and path[-1] == key else document.locate(*path, key)
            found.setdefault(
                (*path, key), Problem(location, "unknown key", _suggest(key, _fields_at(model, path[:-1])))
            )
        elif each["type"] == "missing":
            key = str(each["loc"][-1])
            place = Location(document.path, location.line, ".".join(map(str, (*path, key))))
            found.setdefault((*path, key), Problem(place, "is missing", _described(model, path, key)))
        else:
            found.setdefault(path, Problem(location, _plain_message(each)))
    return sorted(found.values(), key=lambda problem: problem.location)


def _known_path(loc: tuple[int | str, ...], document: Document) -> KeyPath:
    """The part of pydantic's location that is in the file: members of unions and wrapped scalars have steps of their own."""
    path: KeyPath = ()
    for step in loc:
        if (*path, step) in document.lines:
            path = (*path, step)
    return path


def _fields_at(model: type[BaseModel], path: KeyPath) -> dict[str, str]:
    """Known keys (and what they are for) of the mapping at `path`."""
    current: Any = model
    for step in path:
        if (
            isinstance(step, str)
            and isinstance(current, type)
            and issubclass(current, BaseModel)
            and step in current.model_fields
        ):
            current = _model_in(current.model_fields[step].annotation)
    if isinstance(current, type) and issubclass(current, BaseModel):
        return {name: info.description or "" for name, info in current.model_fields.items()}
    return {}


def _model_in(annotation: Any) -> Any:
    """The model inside of an annotation such as `list[Prediction]` or `KernelArms | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for each in getattr(annotation, "__args__", ()) if (found := _model_in(each)) is not None), None)


def _suggest(key: str, known: Mapping[str, str]) -> str:
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known here: {', '.join(known)}" if known else "remove it"


def _described(model: type[BaseModel], path: KeyPath, key: str) -> str:
    return _fields_at(model, path).get(key, "")


_WORDS = {
    "dict_type": "expected `key: value` pairs",
    "model_type": "expected `key: value` pairs",
    "list_type": "expected a list",
    "string_type": "expected text",
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "float_parsing": "expected a number",
    "bool_type": "expected true or false",
    "too_short": "expected at least one",
}
_SCALAR_TYPES = ("bool_type", "int_type", "float_type", "string_type")


def _plain_message(error: Any) -> str:
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    if error["type"] in _SCALAR_TYPES and any(str(step) in ("bool", "int", "float", "str") for step in error["loc"]):
        return "expected a plain value: a number, text, true or false"
    if error["type"] == "string_pattern_mismatch":
        return f"{error['input']!r} does not fit the pattern {error['ctx']['pattern']}"
    if error["type"] in _WORDS:
        got = error.get("input")
        return _WORDS[error["type"]] + (f", got {got!r}" if isinstance(got, (str, int, float)) else "")
    message = str(error["msg"]).replace("Input should be", "expected").replace("String should", "the text should")
    return message[:1].lower() + message[1:]
