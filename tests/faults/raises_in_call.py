"""Fails when it runs."""

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def prepare(self, point, config, inputs, outputs):
        def call():
            raise RuntimeError("no kernel image is available")

        return call
