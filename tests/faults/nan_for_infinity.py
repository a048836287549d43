"""The reference has infinity in one place, the kernel NaN: both are not finite, and only one is right."""

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def reference(self, point, inputs):
        expected = super().reference(point, inputs)["y"]
        expected[0, 0] = float("inf")
        return {"y": expected}

    def prepare(self, point, config, inputs, outputs):
        call = super().prepare(point, config, inputs, outputs)
        return lambda: (call(), outputs["y"][0, 0].fill_(float("nan")))
