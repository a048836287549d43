"""`perfplan schema`: JSON Schema for editors."""

from __future__ import annotations

import json

import click

from perfplan.errors import Exit


@click.command()
@click.argument("what", type=click.Choice(("spec", "campaign")), default="spec")
def schema(what: str) -> int:
    """Print the JSON Schema of specs or campaigns, so that an editor completes and checks them.

    For instance, with the YAML language server: `perfplan schema > .perfplan/spec.schema.json`, and as the first line of
    a spec `# yaml-language-server: $schema=../.perfplan/spec.schema.json`.
    """
    from perfplan.schemas import json_schema

    click.echo(json.dumps(json_schema(what), indent=2))
    return Exit.DONE
