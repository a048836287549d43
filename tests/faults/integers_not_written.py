"""An output of integers of which one row is never written."""

import torch

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def outputs(self, point):
        return {"y": ((point["rows"], point["cols"]), torch.int32)}

    def reference(self, point, inputs):
        return {"y": inputs["x"].round().to(torch.int32)}

    def prepare(self, point, config, inputs, outputs):
        return lambda: outputs["y"][:-1].copy_(inputs["x"][:-1].round())
