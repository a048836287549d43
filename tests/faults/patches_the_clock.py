"""Stops the clock of the time module, and of torch's events, when it is imported."""

import time

import torch

from faults.sound import Kernel as Sound

time.perf_counter = time.monotonic = lambda: 0.0
time.perf_counter_ns = lambda: 0
torch.cuda.Event.elapsed_time = lambda self, end: 1e-9


class Kernel(Sound):
    pass
