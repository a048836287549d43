"""Ten per cent too large, as with a forgotten factor."""

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def prepare(self, point, config, inputs, outputs):
        return lambda: outputs["y"].copy_(inputs["x"] * 2.2)
