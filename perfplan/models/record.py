"""The record of one run: what was measured, on what, from which sources, and what was judged. Immutable once written.

Validity (was the measurement sound), correctness (the numerics), merit (better or worse) and verdict (the hypothesis) are
separate fields on purpose: a crash is not a slow kernel, and a missing measurement is not a refutation.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from perfplan.models.band import Band
from perfplan.models.base import Config, Model, Point
from perfplan.models.decision import EvidenceClass
from perfplan.models.spec import Condition, Hypothesis

Outcome = Literal["confirmed", "refuted", "mixed", "inconclusive", "invalid"]
Subcode = Literal[
    "",
    "wrong-sign",
    "no-effect",
    "smaller-than-predicted",
    "larger-than-predicted",
    "guard-broken",
    "clock-explained",  # inconclusive: the time is in the band, the cycles are not
]
Reason = Literal[
    "",
    "noisy",  # the A/A arm shows an effect
    "numerics",  # candidate or baseline gives a wrong result
    "gate-too-weak",  # a result that is plainly wrong would have passed the numerics gate
    "no-op-change",  # both arms come to the same configuration, or launch the same code, at every point
    "impossible-time",  # faster than the device can move the bytes or do the arithmetic
    "other-stream",  # work went on after the timed stream was done
    "caches-results",  # a call takes far longer after its inputs changed
    "tuned-while-timed",  # an autotuner chose anew inside the timed section
    "throttled",  # heat or a power brake disturbed more than a fifth of the pairs
    "out-of-resources",  # the configuration needs more than the device has
    "out-of-memory",
    "bad-kernel",  # the kernel raised, or broke the protocol
    "crashed",  # the process died: illegal memory access, signal
    "timed-out",
    "interrupted",
    "not-measured",  # the run ended before this point
    "no-performance",  # back end that checks numerics only (Triton's interpreter)
]
Role = Literal["predicted", "guard", "observed"]


class Interval(Model):
    """A relative effect: the metric of the candidate over that of the baseline, minus 1, with its interval."""

    estimate: float
    low: float
    high: float
    confidence: float = 0.95
    pairs: int

    @property
    def half_width(self) -> float:
        """Half of the interval's width, in relative change."""
        return (self.high - self.low) / 2


class Launch(Model):
    """One kernel launch of an arm, read from its CUDA graph."""

    name: str
    grid: list[int]
    block: list[int]
    shared: int = 0  # bytes a CTA, static and dynamic
    registers: int | None = None  # a thread
    local: int | None = None  # bytes a thread in local memory: spills and arrays
    code: str = ""  # of the machine code where it can be read, else of the name and the figures above
    scalars: str = ""  # hash of the arguments that are not device addresses


class Gate(Model):
    """What the numerics gate was at a point, and that it can fail."""

    seeds: int = 0
    adversarial: str = ""  # which distribution was added; or why none was
    controls: dict[str, float] = Field(default_factory=dict)  # wrong result -> its error, all above the tolerance
    rechecked: list[int] = Field(default_factory=list)  # input sets whose last timed output was checked


class Arm(Model):
    """What one arm measured at one point. `samples` are in the metric's unit (seconds for time), in order of measurement."""

    config: Config = Field(default_factory=dict)  # resolved: policies turned into numbers
    median: float | None = None
    samples: list[float] = Field(default_factory=list)
    error: float | None = (
        None  # relative L2 error against the float64 reference, the worst of the seeds; None: not checked
    )
    grid: int | None = None  # CTAs of the main kernel
    clocks: list[int] = Field(default_factory=list)  # MHz of the SMs, of each sample; empty where it could not be read
    launches: list[Launch] = Field(default_factory=list)  # GPU: what one call launches, in order
    code: str = ""  # hash over `launches`: compiled code, grids, scalar arguments; empty where it could not be read
    tuned: dict[str, str] = Field(default_factory=dict)  # autotuned function -> the configuration that was timed


class Validity(Model):
    """Whether the measurement of a point or a run is sound, and why not."""

    valid: bool = True
    reason: Reason = ""
    detail: str = ""


class CellVerdict(Model):
    """The verdict at one point."""

    outcome: Outcome | None = None  # None for a point that was only observed
    subcode: Subcode = ""
    p_value: float | None = None  # of the decision, before the correction for the number of cells
    detectable: float | None = None  # inconclusive: least relative effect that this precision could have settled
    pairs_needed: int | None = (
        None  # inconclusive: pairs that would settle it at the seen spread; None where more pairs won't
    )


class Cache(Model):
    """State of the last-level cache at each timed call."""

    mode: Literal["cold", "warm", "rotating"] = (
        "rotating"  # cold: touched >= 2x the cache; rotating: less; warm: one set
    )
    sets: int = 1
    bytes_touched: int = 0  # of all input sets together, between two uses of the same set
    llc_bytes: int | None = None


class Cell(Model):
    """One operating point of a run."""

    point: Point
    role: Role
    metric: str = "time"
    band: Band | None = None  # the predicted band, or the guard's
    validity: Validity = Field(default_factory=Validity)
    baseline: Arm = Field(default_factory=Arm)
    candidate: Arm = Field(default_factory=Arm)
    effect: Interval | None = None
    floor: Interval | None = None  # A/A: the baseline against itself
    cycles: Interval | None = None  # the effect in SM cycles, where clocks were read
    looks: list[tuple[int, float]] = Field(default_factory=list)  # pairs and half-width at each look
    dropped: int = 0  # pairs left out because the GPU was throttled by heat or a power brake
    power_capped: float | None = None  # share of the sampled time under the power cap; None: could not be read
    timer_floor: float | None = None  # seconds a call of a no-op through the same timer
    gate: Gate = Field(default_factory=Gate)
    same_code: bool | None = None  # both arms launch the same code with the same arguments; None: could not be read
    verdict: CellVerdict = Field(default_factory=CellVerdict)
    merit: Literal["", "better", "worse", "within-noise"] = ""
    cache: Cache = Field(default_factory=Cache)
    timer: str = ""  # cuda-graph, cuda-events, perf-counter, process
    bytes: int | None = None
    flops: int | None = None
    notes: list[str] = Field(default_factory=list)


class Verdict(Model):
    """The verdict of the hypothesis over all its cells."""

    outcome: Outcome
    subcode: Subcode = ""
    reason: Reason = ""
    summary: str = ""  # one line in plain words


class SourceFile(Model):
    """A file of the repository that the run depended on. `blob` is git's object id of its content (SHA-1)."""

    path: str
    blob: str
    dirty: bool = False  # differs from the commit named in the record


class Source(Model):
    """Which sources were measured. Identity is content: blob ids; the commit is a convenience."""

    spec: SourceFile
    files: list[SourceFile] = Field(default_factory=list)  # the kernel's file and what it imported from the repository
    commit: str | None = None  # HEAD at the run, or for a detached run the commit that holds all the blobs
    dirty: bool = False
    diff: str | None = None  # of the dirty source files, against the commit; shortened above 64 KiB
    detached: bool = False  # ran without a repository, filed later
    unknown: list[str] = Field(
        default_factory=list
    )  # detached: paths whose blobs were not in the history when it was filed


class Device(Model):
    """What it ran on. Arch is `sm90` for CUDA; for a CPU the machine's architecture."""

    kind: Literal["cuda", "cpu"]
    name: str
    arch: str
    uuid: str = ""
    sm_count: int | None = None
    memory_bytes: int | None = None
    llc_bytes: int | None = None  # L2 on a GPU, last-level cache on a CPU
    shared_memory_per_cta: int | None = None  # bytes, opt-in limit
    facts: dict[str, Any] = Field(default_factory=dict)  # further readings: power limit, ECC, MIG, host CPU


class Retread(Model):
    """A dead end that was known when the run was started, and why it was run all the same."""

    why: str
    entries: list[str]


class Run(Model):
    """One execution of an experiment on one device."""

    schema_version: Literal[1] = 1
    id: str
    experiment: str
    campaign: str
    title: str
    lever: str
    techniques: list[str] = Field(default_factory=list)
    evidence: EvidenceClass = "measured"
    started: str
    finished: str
    hypothesis: Hypothesis
    rests_on: list[str] = Field(default_factory=list)
    entry: str | None = None  # the kernel's entry; None for a command
    baseline: dict[str, Any] = Field(default_factory=dict)  # as the spec has it
    candidate: dict[str, Any] = Field(default_factory=dict)
    changed: dict[str, Any] = Field(default_factory=dict)  # what the candidate sets otherwise
    device: Device
    software: dict[str, str] = Field(
        default_factory=dict
    )  # name -> version: python, perfplan, torch, triton, cuda, driver
    environment: dict[str, str] = Field(default_factory=dict)  # environment variables that can turn a verdict
    facts: dict[str, Any] = Field(default_factory=dict)  # the campaign's facts at the time: model, interconnect
    source: Source
    design: str = "abba"
    max_rel_error: float | None = None
    norm: str = "relative-l2"
    cells: list[Cell]
    verdict: Verdict
    dead_end_reason: str | None = None  # of the spec: why, if refuted
    reopen_when: list[Condition] = Field(default_factory=list)
    retread: Retread | None = None
    rerun_of: str | None = None  # id of the run that this one repeats
    log_tail: str = ""  # the last lines of the program's output, kept where something went wrong

    @property
    def predicted(self) -> list[Cell]:
        """The cells that the hypothesis is about."""
        return [cell for cell in self.cells if cell.role == "predicted"]
