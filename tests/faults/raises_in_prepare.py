"""Refuses one operating point with a reason."""

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def prepare(self, point, config, inputs, outputs):
        if point["rows"] == 64:
            raise ValueError("64 rows do not fit a tile")
        return super().prepare(point, config, inputs, outputs)
