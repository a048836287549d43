"""Writes eight elements past the end of its output."""

import torch

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def prepare(self, point, config, inputs, outputs):
        y = outputs["y"]
        past = y.as_strided((8,), (1,), y.storage_offset() + y.numel())

        def call():
            torch.mul(inputs["x"], 2, out=y)
            past.zero_()

        return call
