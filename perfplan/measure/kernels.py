"""Loading a kernel from the user's repository and asking it to describe itself. Runs in the worker only."""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from perfplan.models.kernel import KernelInfo
from perfplan.protocol import OPTIONAL_METHODS, REQUIRED_METHODS, read_axes, read_knobs


class BadKernel(Exception):
    """The kernel's file cannot be used. Has the place, what is wrong and what to do."""

    def __init__(self, message: str, hint: str = "", path: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.hint, self.path, self.line = hint, path, line


def load(root: Path, entry: str) -> Any:
    """An instance of the class that `entry` (path/file.py:Class, from the root) names. Raises BadKernel."""
    relative, _, name = entry.partition(":")
    path = (root / relative).resolve()
    if not path.is_relative_to(root.resolve()):
        raise BadKernel("lies outside of the repository", "an entry is a path from the root", relative)
    if not path.is_file():
        near = difflib.get_close_matches(
            relative,
            [each.relative_to(root).as_posix() for each in path.parent.glob("*.py")] if path.parent.is_dir() else [],
            n=1,
        )
        raise BadKernel(
            "there is no such file", f"did you mean {near[0]}?" if near else "check kernel.entry in the spec", relative
        )
    module = _import(root, path, relative)
    kernel_class = getattr(module, name, None)
    if not inspect.isclass(kernel_class):
        classes = [
            each
            for each, value in vars(module).items()
            if inspect.isclass(value) and value.__module__ == module.__name__
        ]
        near = difflib.get_close_matches(name, classes, n=1)
        hint = f"did you mean {near[0]}?" if near else f"classes there: {', '.join(classes) or 'none'}"
        raise BadKernel(f"has no class {name}", hint, relative)
    try:
        return kernel_class()
    except Exception as error:
        raise BadKernel(
            f"{name}() raised {describe_error(error, root)}", "a kernel is made without arguments", relative
        ) from error


def describe(kernel: Any, entry: str) -> KernelInfo:
    """What the kernel declares. Raises BadKernel where it does not speak the protocol."""
    path = entry.partition(":")[0]
    missing = [name for name in REQUIRED_METHODS if not callable(getattr(kernel, name, None))]
    missing += [name for name in ("axes", "knobs") if not hasattr(kernel, name)]
    if missing:
        raise BadKernel(
            f"{type(kernel).__name__} lacks {', '.join(missing)}",
            "docs/kernel-protocol.md shows what a kernel needs",
            path,
        )
    try:
        return KernelInfo(
            entry=entry,
            summary=(inspect.getdoc(type(kernel)) or "").partition("\n")[0],
            axes=read_axes(kernel.axes),
            knobs=read_knobs(kernel.knobs),
            tolerance=getattr(kernel, "tolerance", None),
            optional=tuple(name for name in OPTIONAL_METHODS if callable(getattr(kernel, name, None))),
        )
    except (ValueError, AttributeError, TypeError) as error:
        raise BadKernel(
            f"declares its axes, knobs or tolerance wrongly: {_in_words(error)}",
            "docs/kernel-protocol.md shows the forms",
            path,
        ) from error


def _in_words(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return first_line(error)


def describe_error(error: BaseException, root: Path) -> str:
    """Type, message and, if the error came through a file of the repository, the innermost line there."""
    message = first_line(error)
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    place = _innermost(error, root)
    return f"{text} ({place[0]}:{place[1]})" if place else text


def first_line(error: BaseException) -> str:
    """The first line of an exception's message, cut at 300 characters; empty where it has none or cannot say it."""
    try:
        return (str(error).splitlines() or [""])[0][:300]
    except Exception:  # an exception whose own __str__ fails
        return ""


def _innermost(error: BaseException, root: Path) -> tuple[str, int] | None:
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if (
            path.is_absolute()
            and path.is_relative_to(root)
            and "site-packages" not in path.parts
            and "perfplan" not in path.parts[-3:]
        ):
            return path.relative_to(root).as_posix(), frame.lineno or 0
    return None


def _import(root: Path, path: Path, relative: str) -> ModuleType:
    """Import a file by path, with the root and its own folder importable, as if it were run from the repository."""
    for folder in (str(path.parent), str(root)):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    name = relative.removesuffix(".py").replace("/", ".")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise BadKernel(f"is not valid Python: {error.msg}", "", relative, error.lineno or 0) from error
    except ModuleNotFoundError as error:
        place = _innermost(error, root)
        raise BadKernel(
            f"cannot be imported: {error}", f"pip install {error.name}" if error.name else "", *(place or (relative, 0))
        ) from error
    except BaseException as error:
        place = _innermost(error, root)
        raise BadKernel(f"raised on import: {type(error).__name__}: {error}", "", *(place or (relative, 0))) from error
    return module
