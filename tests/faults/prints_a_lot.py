"""Writes to standard output all the time, protocol look-alikes included. It has no other fault."""

import sys

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def prepare(self, point, config, inputs, outputs):
        print('{"kind": "done", "files": []}' * 50, flush=True)
        print("noise " * 1000, file=sys.stderr, flush=True)
        return super().prepare(point, config, inputs, outputs)
