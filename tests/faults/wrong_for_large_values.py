"""Saturates at 12: right for normal inputs, wrong for large ones."""

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def prepare(self, point, config, inputs, outputs):
        return lambda: outputs["y"].copy_((inputs["x"] * 2).clamp(-12, 12))
