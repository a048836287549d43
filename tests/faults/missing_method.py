"""Has no `reference`."""

from faults.sound import Kernel as Sound


class Kernel(Sound):
    reference = None
