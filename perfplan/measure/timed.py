"""Both arms of a point, prepared over rotating input sets and ready to be timed; and what must hold after the timing."""

from __future__ import annotations

import random
import secrets
import statistics
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from perfplan.measure import buffers, clock, rotation, rounds
from perfplan.measure.gate import Subject, expect_callable, expect_in_place, reference, synchronize
from perfplan.measure.job import PointFailed
from perfplan.models.base import Config
from perfplan.models.record import Cache
from perfplan.models.spec import Measure

CACHED_FACTOR = 2.0  # a call that takes this many times as long whenever its inputs changed keeps its results
COLD_SECONDS = 20e-6  # what a call may take longer for reasons of its own after a pause
DECOY_BYTES = 64 << 20
LAUNCH_BOUND = 5.0  # a call shorter than this many no-ops is mostly overhead
ARMS = ("baseline", "candidate", "the baseline again")
BASELINE, CANDIDATE, AGAIN = range(3)
PLACEMENTS = {"cuda": 4, "cpu": 2}  # of each arm's scratch memory


class NoRoom(Exception):
    """The input sets do not fit beside those of the points that are already prepared."""


class Placed:
    """One arm in several placements of its scratch memory, which take turns in random order.

    The same code on other addresses differs by up to 0.3 % on an H200 (docs/false-alarms.md): with one placement an arm,
    that difference looks like an effect, and no number of samples averages it out.
    """

    def __init__(self, passes: Sequence[clock.Pass], seed: int) -> None:
        self.passes = passes
        self.timer, self.note = passes[0].timer, passes[0].note
        self._order, self._turn = random.Random(seed), list[clock.Pass]()

    def sample(self) -> clock.Reading:
        """A sample of the placement whose turn it is."""
        if not self._turn:
            self._turn = self._order.sample(self.passes, len(self.passes))
        return self._turn.pop().sample()

    def once(self) -> float:
        """Seconds a call of the first placement, going over the sets once."""
        return self.passes[0].once()


class Timed:
    """One point's arms over the same input sets and outputs. Raises NoRoom where `budget` bytes are too few, not `alone`."""

    def __init__(self, subject: Subject, measure: Measure, llc_bytes: int | None, budget: int, *, alone: bool) -> None:
        self._subject = subject
        self._on_gpu = subject.device != "cpu"
        first = subject.inputs(0)
        declared = buffers.storage_bytes([buffers.tensors(self._allocate())])
        stored = buffers.storage_bytes([first]) + declared
        work = self._work()
        touched = min(stored, work["bytes"]) if work.get("bytes") else stored
        wanted = rotation.sets_needed(touched, stored, llc_bytes, sys.maxsize, measure.cache)
        count = rotation.sets_needed(touched, stored, llc_bytes, budget, measure.cache)
        if count < wanted and not alone:
            raise NoRoom
        self.sets = [first, *(subject.inputs(seed) for seed in range(1, count))]
        self.stored = count * stored
        unique = buffers.storage_bytes(self.sets) + count * declared
        self.cache: Cache = rotation.cache_state(count, min(touched, unique // count), llc_bytes, measure.cache)
        self.outputs = [self._allocate() for _ in self.sets]
        self._prepare()
        self._after: dict[str, dict[int, list[float]]] = {
            key: {BASELINE: [], CANDIDATE: []} for key in ("inputs", "decoy")
        }
        small = stored < DECOY_BYTES and self.timer != "cuda-graph"
        self._decoy = {name: each.clone() for name, each in first.items() if small and hasattr(each, "clone")}

    def _work(self) -> Mapping[str, int]:
        method = getattr(self._subject.kernel, "work", None)
        found: Mapping[str, int] = method(self._subject.point, self._subject.arms[0]) or {} if callable(method) else {}
        return found

    def _allocate(self) -> dict[str, buffers.Output]:
        subject = self._subject
        return buffers.allocate(subject.kernel, subject.point, subject.device)

    def _prepare(self) -> None:
        subject, on_gpu = self._subject, self._on_gpu
        configs = (subject.arms[0], subject.arms[1], subject.arms[0])
        placed = self._placements(configs)
        self.calls = placed[0]
        seconds = max(clock.rough_seconds(each, on_gpu) for each in self.calls[:2])
        repeats = clock.repeats_for(seconds, len(self.sets), on_gpu)
        idle_calls = [clock.no_op(on_gpu)] * len(self.sets)
        *passes, idle = clock.make_passes([*(each for arms in placed for each in arms), idle_calls], repeats, on_gpu)
        for each, name in zip(passes, ARMS, strict=False):
            stray = clock.stray_work(each)
            if stray:
                raise PointFailed("other-stream", f"{name}: {stray}")
        self.passes = [Placed(passes[arm :: len(ARMS)], seed=arm) for arm in range(len(ARMS))]
        clock.warm_up(self.passes, on_gpu)
        self.timer = passes[0].timer
        self.timer_floor = min(idle.sample().value for _ in range(5))
        self.notes = sorted({each.note for each in passes if each.note})
        if seconds < LAUNCH_BOUND * self.timer_floor:
            times = f"{seconds * 1e6:.3g} us against {self.timer_floor * 1e6:.3g} us for a no-op"
            self.notes.append(f"launch-bound: a call is less than five times the timer's floor ({times})")

    def _placements(self, configs: Sequence[Config]) -> list[list[list[clock.Call]]]:
        """The calls of each placement, of each arm, of each set. Fewer placements where the memory is too small for all."""
        placed: list[list[list[clock.Call]]] = []
        for _ in range(PLACEMENTS["cuda" if self._on_gpu else "cpu"]):
            try:
                placed.append([self._prepared(config) for config in configs])
            except Exception as error:
                if placed and type(error).__name__ == "OutOfMemoryError":
                    break
                raise
        return placed

    def _prepared(self, config: Config) -> list[clock.Call]:
        calls = []
        for inputs, outputs in zip(self.sets, self.outputs, strict=True):
            call = self._subject.kernel.prepare(self._subject.point, config, inputs, buffers.tensors(outputs))
            expect_callable(call)
            calls.append(call)
        return calls

    def arms(self) -> rounds.Arms:
        """How to sample the arms."""
        return rounds.Arms(*(each.sample for each in self.passes))

    def renew(self) -> None:
        """Other content in every input set, in place; then one call a set of both arms, timed apart from the samples."""
        changed = self._change_inputs()
        if not changed or self.timer == "cuda-graph":  # a graph replays; it cannot look up what it has seen
            return
        self._time_once("inputs")
        buffers.renew(self._decoy, (), secrets.randbits(16))  # the same disturbance, of memory that no arm has seen
        synchronize(self._subject.device)
        self._time_once("decoy")

    def _time_once(self, after: str) -> None:
        for arm, times in self._after[after].items():
            times.append(self.passes[arm].once())

    def _change_inputs(self) -> bool:
        shift = secrets.randbits(16)
        constants = getattr(self._subject.kernel, "constants", ())
        changed = [buffers.renew(each, constants, shift) for each in self.sets]
        synchronize(self._subject.device)
        return all(changed)

    def expect_sound(self) -> list[int]:
        """What must hold after the timing; returns the sets whose outputs were checked. Raises PointFailed.

        The inputs change once more; then each arm is sampled a last time in each placement, on poisoned outputs: what
        those timed calls leave behind must be right.
        """
        self._expect_no_caching()
        self._change_inputs()
        last = len(self.sets) - 1
        checked = sorted({last, secrets.randbelow(last + 1)})
        before = {index: buffers.checksums(self.sets[index]) for index in checked}
        expected = {index: self._reference(index) for index in checked}
        for name, arm in zip(ARMS, self.passes, strict=True):
            for each in arm.passes:
                for outputs in self.outputs:
                    buffers.fill(outputs, buffers.FILLINGS - 1)
                each.sample()
                for index in checked:
                    self._recheck(name, index, before[index], expected[index])
        return checked

    def _reference(self, index: int) -> Mapping[str, Any]:
        return reference(self._subject.kernel, self._subject.point, self.sets[index])

    def _expect_no_caching(self) -> None:
        for arm, times in self._after["inputs"].items():
            if len(times) < 3:
                continue
            usual = statistics.median(self._after["decoy"][arm])
            if min(times) > max(CACHED_FACTOR * usual, usual + COLD_SECONDS):
                many = min(times) / usual
                detail = f"{ARMS[arm]}: a call takes {many:.1f} times as long after its inputs changed"
                raise PointFailed("caches-results", detail)

    def _recheck(self, name: str, index: int, before: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
        inputs = self.sets[index]
        altered = buffers.changed(inputs, before)
        if altered:
            raise PointFailed("numerics", f"{name}: the kernel changed its input {altered!r} while it was timed")
        for output in self.outputs[index].values():
            try:
                expect_in_place(output, inputs)
                self._subject.error(output.name, output.tensor, expected[output.name])
            except PointFailed as failure:
                detail = f"{name}: the last timed output is wrong: {failure.detail}"
                raise PointFailed(failure.reason, detail) from None
