"""Does nothing after its first three calls."""

import torch

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def prepare(self, point, config, inputs, outputs):
        calls = []

        def call():
            if len(calls) < 3:
                calls.append(1)
                torch.mul(inputs["x"], 2, out=outputs["y"])

        return call
