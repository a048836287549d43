"""Infinity where the reference is finite."""

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def prepare(self, point, config, inputs, outputs):
        call = super().prepare(point, config, inputs, outputs)
        return lambda: (call(), outputs["y"][0, 0].fill_(float("inf")))
