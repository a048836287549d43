"""What a command imports is what people wait for: the light commands load nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "triton", "numpy", "scipy", "matplotlib", "git", "jinja2")


@pytest.mark.parametrize(
    "module",
    [
        "perfplan.cli",
        "perfplan.cli.query",
        "perfplan.cli.show",
        "perfplan.cli.decide",
        "perfplan.cli.plan",
        "perfplan.ask",
        "perfplan.log",
    ],
)
def test_importing_it_loads_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_loads_neither_pydantic_nor_rich() -> None:
    code = (
        "import sys; from perfplan.cli.entry import run; run(['--help']); "
        "print([name for name in ('pydantic', 'rich', 'yaml', 'packaging') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_command_has_the_help_that_the_list_promises() -> None:
    from click.testing import CliRunner

    from perfplan.cli import COMMANDS, main

    for name in COMMANDS:
        result = CliRunner().invoke(main, [name, "--help"])
        assert result.exit_code == 0, (name, result.output)
