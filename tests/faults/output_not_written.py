"""The last row is never written. Fresh memory often holds the right answer of the call before."""

import torch

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def prepare(self, point, config, inputs, outputs):
        return lambda: torch.mul(inputs["x"][:-1], 2, out=outputs["y"][:-1])
