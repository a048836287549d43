"""Gives the same inputs for every seed, so that a rotation over input sets rotates nothing."""

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def inputs(self, point, seed, device):
        return super().inputs(point, 0, device)
