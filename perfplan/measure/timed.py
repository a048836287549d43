"""Both arms of a point, prepared over rotating input sets and ready to be timed; and what must hold after the timing."""

from __future__ import annotations

import secrets
import statistics
import sys
from collections.abc import Mapping
from typing import Any

from perfplan.measure import buffers, clock, rotation, rounds
from perfplan.measure.gate import Subject, expect_callable, expect_in_place, reference, synchronize
from perfplan.measure.job import PointFailed
from perfplan.models.record import Cache
from perfplan.models.spec import Measure

CACHED_FACTOR = 2.0  # a call that takes this many times as long whenever its inputs changed keeps its results
DECOY_BYTES = 64 << 20
LAUNCH_BOUND = 5.0  # a call shorter than this many no-ops is mostly overhead
ARMS = ("baseline", "candidate", "the baseline again")
BASELINE, CANDIDATE, AGAIN = range(3)


class NoRoom(Exception):
    """The input sets do not fit beside those of the points that are already prepared."""


class Timed:
    """One point's arms over the same input sets. Raises NoRoom where `budget` bytes are too few and `alone` is not set."""

    def __init__(self, subject: Subject, measure: Measure, llc_bytes: int | None, budget: int, *, alone: bool) -> None:
        self._subject = subject
        first = subject.inputs(0)
        declared = buffers.storage_bytes(
            [buffers.tensors(buffers.allocate(subject.kernel, subject.point, subject.device))]
        )
        stored = buffers.storage_bytes([first]) + 3 * declared
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
        self.outputs = [[self._allocate() for _ in self.sets] for _ in ARMS]
        self._prepare()
        self._after: dict[str, dict[int, list[float]]] = {
            key: {BASELINE: [], CANDIDATE: []} for key in ("inputs", "decoy")
        }
        self._decoy = (
            {name: each.clone() for name, each in first.items() if hasattr(each, "clone")}
            if stored < DECOY_BYTES
            else {}
        )

    def _work(self) -> Mapping[str, int]:
        method = getattr(self._subject.kernel, "work", None)
        found: Mapping[str, int] = method(self._subject.point, self._subject.arms[0]) or {} if callable(method) else {}
        return found

    def _allocate(self) -> dict[str, buffers.Output]:
        subject = self._subject
        return buffers.allocate(subject.kernel, subject.point, subject.device)

    def _prepare(self) -> None:
        subject, on_gpu = self._subject, self._subject.device != "cpu"
        configs = (subject.arms[0], subject.arms[1], subject.arms[0])
        self.calls = [
            [self._prepared(config, each, outputs) for each, outputs in zip(self.sets, made, strict=True)]
            for config, made in zip(configs, self.outputs, strict=True)
        ]
        seconds = max(clock.rough_seconds(each, on_gpu) for each in self.calls[:2])
        repeats = clock.repeats_for(seconds, len(self.sets), on_gpu)
        *passes, idle = clock.make_passes([*self.calls, [clock.no_op(on_gpu)] * len(self.sets)], repeats, on_gpu)
        for each, name in zip(passes, ARMS, strict=True):
            stray = clock.stray_work(each)
            if stray:
                raise PointFailed("other-stream", f"{name}: {stray}")
        clock.warm_up(passes, on_gpu)
        self.passes = passes
        self.timer = passes[0].timer
        self.timer_floor = min(idle.sample().value for _ in range(5))
        self.notes = sorted({each.note for each in passes if each.note})
        if seconds < LAUNCH_BOUND * self.timer_floor:
            times = f"{seconds * 1e6:.3g} us against {self.timer_floor * 1e6:.3g} us for a no-op"
            self.notes.append(f"launch-bound: a call is less than five times the timer's floor ({times})")

    def _prepared(self, config: Any, inputs: Mapping[str, Any], outputs: Mapping[str, buffers.Output]) -> clock.Call:
        call = self._subject.kernel.prepare(self._subject.point, config, inputs, buffers.tensors(outputs))
        expect_callable(call)
        return call  # type: ignore[no-any-return]

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

        The inputs change once more, all outputs are poisoned, every arm is sampled a last time: what those timed calls
        left behind must be right.
        """
        self._expect_no_caching()
        self._change_inputs()
        last = len(self.sets) - 1
        checked = sorted({last, secrets.randbelow(last + 1)})
        before = {index: buffers.checksums(self.sets[index]) for index in checked}
        for made in self.outputs:
            for outputs in made:
                buffers.fill(outputs, buffers.FILLINGS - 1)
        for each in self.passes:
            each.sample()
        for index in checked:
            altered = buffers.changed(self.sets[index], before[index])
            if altered:
                raise PointFailed("numerics", f"the kernel changed its input {altered!r} while it was timed")
            self._recheck(index)
        return checked

    def _expect_no_caching(self) -> None:
        for arm, times in self._after["inputs"].items():
            if len(times) < 3:
                continue
            usual = statistics.median(self._after["decoy"][arm])
            if min(times) > CACHED_FACTOR * usual:
                many = min(times) / usual
                detail = f"{ARMS[arm]}: a call takes {many:.1f} times as long after its inputs changed"
                raise PointFailed("caches-results", detail)

    def _recheck(self, index: int) -> None:
        subject, inputs = self._subject, self.sets[index]
        expected = reference(subject.kernel, subject.point, inputs)
        for name, made in zip(ARMS, self.outputs, strict=True):
            for output in made[index].values():
                try:
                    expect_in_place(output, inputs)
                    subject.error(output.name, output.tensor, expected[output.name])
                except PointFailed as failure:
                    detail = f"{name}: the last timed output is wrong: {failure.detail}"
                    raise PointFailed(failure.reason, detail) from None
