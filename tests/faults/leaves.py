"""Ends the process with an exit code of its own at one operating point."""

import os

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def prepare(self, point, config, inputs, outputs):
        if point["rows"] == 64:
            print("goodbye", flush=True)
            os._exit(3)
        return super().prepare(point, config, inputs, outputs)
