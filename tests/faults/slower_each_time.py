"""Each preparation is slower than the one before: the baseline is not even like itself."""

import time

from faults.sound import Kernel as Sound

_PREPARED = []


class Kernel(Sound):
    def prepare(self, point, config, inputs, outputs):
        _PREPARED.append(1)
        seconds, work = 1e-4 * 1.2 ** len(_PREPARED), super().prepare(point, config, inputs, outputs)

        def call():
            time.sleep(seconds)
            work()

        return call
