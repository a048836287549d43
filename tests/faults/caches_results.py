"""Works only where its input has changed since the last call."""

import torch

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def prepare(self, point, config, inputs, outputs):
        seen = []

        def call():
            if seen != [inputs["x"]._version]:
                seen[:] = [inputs["x"]._version]
                for _ in range(20):
                    torch.mul(inputs["x"], 2, out=outputs["y"])

        return call
