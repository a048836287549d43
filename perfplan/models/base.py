"""The common ground of all models: frozen, and strict about unknown keys."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, StrictBool, StrictFloat, StrictInt, StrictStr

Scalar = StrictBool | StrictInt | StrictFloat | StrictStr
Point = dict[str, Scalar]  # an operating point: axis -> value
Config = dict[str, Scalar]  # a kernel configuration: knob -> value


class Model(BaseModel):
    """A typed value. Unknown keys are errors; values do not change after construction."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
