"""One element in thirty thousand is wrong, which the L2 norm of the whole does not show."""

import torch

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def prepare(self, point, config, inputs, outputs):
        def call():
            torch.mul(inputs["x"], 2, out=outputs["y"])
            outputs["y"][3, 5] += 7.5

        return call
