"""A segmentation fault at one operating point."""

import os
import signal

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def prepare(self, point, config, inputs, outputs):
        if point["rows"] == 64:
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().prepare(point, config, inputs, outputs)
