"""A knob whose choices are of several types."""

from faults.sound import Kernel as Sound


class Kernel(Sound):
    knobs = {"passes": [1, "two"]}
