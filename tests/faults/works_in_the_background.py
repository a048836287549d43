"""Leaves the work to a thread and returns at once."""

import threading
import time

import torch

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def prepare(self, point, config, inputs, outputs):
        def later():
            time.sleep(0.02)
            torch.mul(inputs["x"], 2, out=outputs["y"])

        return lambda: threading.Thread(target=later, daemon=True).start()
