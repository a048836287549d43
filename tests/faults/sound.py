"""The kernel that the faults are variations of: y = 2 x, in `passes` passes. It has no fault."""

import torch


class Kernel:
    """Twice the input, `passes` times."""

    axes = {"rows": int, "cols": 512}
    knobs = {"passes": 1}
    tolerance = 1e-6

    def inputs(self, point, seed, device):
        generator = torch.Generator(device).manual_seed(seed)
        return {"x": torch.randn(point["rows"], point["cols"], generator=generator, device=device)}

    def outputs(self, point):
        return {"y": ((point["rows"], point["cols"]), torch.float32)}

    def reference(self, point, inputs):
        return {"y": inputs["x"].double() * 2}

    def prepare(self, point, config, inputs, outputs):
        def call():
            for _ in range(config["passes"]):
                torch.mul(inputs["x"], 2, out=outputs["y"])

        return call
