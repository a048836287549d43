"""Asks for more memory than any machine has."""

import torch

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def inputs(self, point, seed, device):
        return {"x": torch.empty(1 << 60, device=device)}
