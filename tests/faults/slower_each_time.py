"""Every second preparation of a configuration is slower than the one before: the baseline is not even like itself."""

import time
from collections import Counter

from faults.sound import Kernel as Sound

_PREPARED = Counter()


class Kernel(Sound):
    def prepare(self, point, config, inputs, outputs):
        _PREPARED[config["passes"]] += 1
        seconds, work = 1e-3 * (1 + _PREPARED[config["passes"]] % 2), super().prepare(point, config, inputs, outputs)

        def call():
            time.sleep(seconds)
            work()

        return call
