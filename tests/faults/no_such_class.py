"""Has a class, under another name."""

from faults.sound import Kernel as Sound


class Kernle(Sound):
    pass
