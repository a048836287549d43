"""Changes its input, but not in its first five calls."""

import torch

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def prepare(self, point, config, inputs, outputs):
        calls = []

        def call():
            calls.append(1)
            torch.mul(inputs["x"], 2, out=outputs["y"])
            if len(calls) > 5:
                inputs["x"][0, 0] += 1

        return call
