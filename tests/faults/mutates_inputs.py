"""Doubles the input in place, then copies it: right once, wrong ever after."""

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def prepare(self, point, config, inputs, outputs):
        return lambda: outputs["y"].copy_(inputs["x"].mul_(2))
