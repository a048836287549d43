"""Doubles its input in place and passes it off as the output."""

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def prepare(self, point, config, inputs, outputs):
        return lambda: outputs["y"].set_(inputs["x"].mul_(2))
