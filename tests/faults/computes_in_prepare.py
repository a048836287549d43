"""Does the work before the clock starts; the timed call only copies."""

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def prepare(self, point, config, inputs, outputs):
        done = inputs["x"] * 2
        return lambda: outputs["y"].copy_(done)
