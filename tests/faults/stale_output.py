"""Gives the answer to the inputs that it saw first."""

import torch

from faults.sound import Kernel as Sound

_FIRST = {}


class Kernel(Sound):
    def prepare(self, point, config, inputs, outputs):
        first = _FIRST.setdefault(point["rows"], inputs["x"].clone())
        return lambda: torch.mul(first, 2, out=outputs["y"])
