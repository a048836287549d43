"""Draws its inputs without the seed."""

import torch

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def inputs(self, point, seed, device):
        return {"x": torch.randn(point["rows"], point["cols"], device=device)}
