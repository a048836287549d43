"""Gives a new tensor back and leaves the output alone."""

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def prepare(self, point, config, inputs, outputs):
        return lambda: inputs["x"] * 2
