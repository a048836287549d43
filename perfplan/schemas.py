"""JSON Schema (draft 2020-12) of the hand-written files, as they are written, for editors."""

from __future__ import annotations

from typing import Any

from perfplan.models.campaign import Campaign
from perfplan.models.spec import Spec


def json_schema(what: str) -> dict[str, Any]:
    """The schema of a `spec` or a `campaign`."""
    schema = (Spec if what == "spec" else Campaign).model_json_schema(mode="validation")
    if what == "campaign":  # the id is the file's name
        schema["properties"].pop("id")
        schema["required"].remove("id")
    else:
        schema["oneOf"] = [{"required": ["kernel"]}, {"required": ["command"]}]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
