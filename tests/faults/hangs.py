"""Never returns at one operating point."""

import time

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def prepare(self, point, config, inputs, outputs):
        if point["rows"] == 64:
            time.sleep(3600)
        return super().prepare(point, config, inputs, outputs)
