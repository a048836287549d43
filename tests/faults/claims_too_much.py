"""Claims to move a petabyte."""

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def work(self, point, config):
        return {"bytes": 10**15, "flops": 10**18}
