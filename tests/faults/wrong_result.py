"""One per cent off, everywhere."""

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def prepare(self, point, config, inputs, outputs):
        call = super().prepare(point, config, inputs, outputs)
        return lambda: (call(), outputs["y"].mul_(1.01))
