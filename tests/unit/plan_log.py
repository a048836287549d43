"""Records, decisions, specs and campaigns written to a folder as perfplan writes them, for tests of the plan."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from perfplan.blobs import blob_id
from perfplan.decisions import write_decision
from perfplan.layout import Layout
from perfplan.models.band import Band
from perfplan.models.decision import Decision
from perfplan.models.record import (
    Arm,
    Cell,
    CellVerdict,
    Device,
    Interval,
    Retread,
    Run,
    Source,
    SourceFile,
    Validity,
    Verdict,
)
from perfplan.models.spec import Hypothesis
from perfplan.records import write_run

H200 = Device(kind="cuda", name="NVIDIA H200", arch="sm90", uuid="GPU-1", sm_count=132)
CPU = Device(kind="cpu", name="Some Xeon", arch="x86_64")
CAMPAIGN = """\
title: Decode of a test model
target: {model: TestModel, hardware: one H200, objective: throughput at batch 64 to 96}
about: What limits decode, and what we did about it.
operating_range: {batch: [32, 96], kv_len: [2048, 2048]}
facts: {interconnect: pcie}
"""
KERNEL = "def kernel(): ...\n"


def spec_text(campaign: str = "test", lever: str = "nsplit", title: str = "Split by waves") -> str:
    """A spec that reads."""
    return f"""\
campaign: {campaign}
title: {title}
lever: {lever}
hypothesis:
  claim: fewer idle slots make it faster
  because: the last wave is mostly empty
  predicts: {{change: [-25%, -15%], at: {{batch: [64, 80]}}}}
kernel:
  entry: kernels/k.py:K
  baseline: {{nsplit: 2}}
  candidate: {{nsplit: 4}}
points: {{batch: [32, 64, 80], kv_len: 2048}}
guards: [{{change: "<= +1%", at: {{batch: 32}}}}]
"""


def make_repository(root: Path, campaign: str = CAMPAIGN) -> Layout:
    """Campaign `test` with a kernel and the spec `waves`."""
    write(root / "plans/test.yaml", campaign)
    write(root / "kernels/k.py", KERNEL)
    write(root / "experiments/waves.yaml", spec_text())
    return Layout(root)


def write(path: Path, text: str) -> None:
    """Write a file, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def entry_id(day: int, tail: int) -> str:
    """An id of the `day`-th of December 2026."""
    return f"202612{day:02d}-120000-{tail:08x}"


def decision(day: int, tail: int, kind: str, action: str, name: str, **fields: Any) -> Decision:
    """An entry with what its kind requires."""
    needed: dict[str, dict[str, Any]] = {
        "premise": {"claim": f"{name} holds"},
        "lever": {"claim": f"{name} helps", "because": "of its mechanism"},
        "dead-end": {"technique": f"technique {name}", "reason": f"{name} does not work"},
    }
    opening = needed[kind] if action in ("propose", "revise") else {"note": f"why {name} was {action}"}
    data = {"id": entry_id(day, tail), "campaign": "test", "kind": kind, "action": action, "name": name}
    return Decision.model_validate({**data, "date": f"2026-12-{day:02d}T12:00:00Z", **opening, **fields})


def cell(batch: int, change: float | None, band: str | None = "[-25%, -15%]", **fields: Any) -> Cell:
    """A cell at `batch` with the effect `change`; None is a cell that could not be measured."""
    role = fields.pop("role", "predicted")
    base = 100e-6 * batch / 64
    shown = Band.model_validate(band) if band else None
    if change is None:
        invalid = Validity(valid=False, reason="out-of-resources", detail="needs 300 KiB, has 228 KiB")
        return Cell(
            point={"batch": batch, "kv_len": 2048},
            role=role,
            band=shown,
            validity=invalid,
            verdict=CellVerdict(outcome="invalid"),
        )
    effect = Interval(estimate=change, low=change - 0.01, high=change + 0.01, pairs=20)
    outcome: Any = None
    if shown is not None:
        inside, apart = shown.contains(effect.low, effect.high), shown.disjoint(effect.low, effect.high)
        outcome = "confirmed" if inside else "refuted" if apart else "inconclusive"
    return Cell(
        point={"batch": batch, "kv_len": 2048},
        role=role,
        band=shown,
        baseline=Arm(config={"nsplit": 2}, median=base),
        candidate=Arm(config={"nsplit": 4}, median=base * (1 + change)),
        effect=effect,
        verdict=CellVerdict(outcome=outcome, subcode="smaller-than-predicted" if outcome == "refuted" else ""),
        merit="better" if effect.high < 0 else "worse" if effect.low > 0 else "within-noise",
        **fields,
    )


def run(day: int, tail: int, outcome: str = "confirmed", experiment: str = "waves", **fields: Any) -> Run:
    """A run of `experiment` with three cells unless told otherwise."""
    subcodes = {"refuted": "no-effect", "mixed": "guard-broken"}
    spec_blob = fields.pop("spec_blob", blob_id(spec_text().encode()))
    kernel_blob = fields.pop("kernel_blob", blob_id(KERNEL.encode()))
    source = fields.pop("source_fields", {})
    data: dict[str, Any] = {
        "id": entry_id(day, tail),
        "experiment": experiment,
        "campaign": "test",
        "title": "Split by waves",
        "lever": "nsplit",
        "started": f"2026-12-{day:02d}T12:00:00Z",
        "finished": f"2026-12-{day:02d}T12:01:00Z",
        "hypothesis": Hypothesis.model_validate(
            {
                "claim": "fewer idle slots",
                "because": "waves",
                "predicts": {"change": "[-25%, -15%]", "at": {"batch": [64, 80]}},
            }
        ),
        "device": H200,
        "software": {"torch": "2.13.0", "triton": "3.9.0", "perfplan": "0.1"},
        "source": Source(
            spec=SourceFile(path=f"experiments/{experiment}.yaml", blob=spec_blob),
            files=[SourceFile(path="kernels/k.py", blob=kernel_blob)],
            **{"commit": "0123456789abcdef0123456789abcdef01234567", **source},
        ),
        "cells": [cell(32, 0.001, "<= +1%", role="guard"), cell(64, -0.2), cell(80, -0.18)],
        "verdict": Verdict(outcome=outcome, subcode=subcodes.get(outcome, ""), summary=f"summary of {outcome}"),  # type: ignore[arg-type]
    }
    return Run(**{**data, **fields})


def file_all(layout: Layout, entries: list[Run | Decision]) -> None:
    """Write the entries where they belong, in the order given."""
    for entry in entries:
        if isinstance(entry, Run):
            write_run(layout.record(entry.experiment, entry.id), entry)
        else:
            write_decision(layout, entry)


def campaign_story() -> list[Run | Decision]:
    """A campaign in which most things happen that a plan has to show."""
    log2 = math.log(2)
    mixed = [cell(32, 0.05, "<= +1%", role="guard"), cell(64, -0.2), cell(80, -0.05)]
    on_cpu = [cell(32, log2 / 100, "<= +1%", role="guard"), cell(64, -0.17), cell(80, -0.22)]
    refuted: dict[str, Any] = {
        "lever": "warps",
        "title": "Eight warps",
        "cells": [cell(64, 0.002), cell(80, None), cell(128, 0.001)],
        "kernel_blob": "1" * 40,
        "retread": Retread(why="new driver", entries=[entry_id(2, 0x3B)]),
        "source_fields": {"commit": None, "unknown": ["kernels/k.py"]},
        "rests_on": ["moe-is-the-slope"],
    }
    return [
        *_premises(),
        *_levers(),
        *_dead_ends(),
        run(5, 0xA1),
        run(
            6,
            0xA2,
            "mixed",
            cells=mixed,
            software={"torch": "2.14.0", "triton": "3.9.0"},
            source_fields={"dirty": True},
        ),
        run(6, 0xA3, "inconclusive", device=CPU, cells=[cell(64, -0.15)], spec_blob="0" * 40),
        run(7, 0xA4, "refuted", "warps", **refuted),
        run(7, 0xA5, device=CPU, cells=on_cpu),
    ]


def _premises() -> list[Decision]:
    trace = {"kind": "imported", "source": "https://example.org/trace"}
    now = "Attention is the slope, MoE is a fixed floor"
    return [
        decision(1, 0x1A, "premise", "propose", "moe-is-the-slope", evidence=trace),
        decision(3, 0x1B, "premise", "refute", "moe-is-the-slope", note="the trace was taken at batch 32"),
        decision(3, 0x1C, "premise", "propose", "attention-is-the-slope", claim=now),
    ]


def _levers() -> list[Decision]:
    expected = {"change": "[-25%, -15%]", "at": {"batch": [64, 128]}}
    return [
        decision(
            2, 0x2A, "lever", "propose", "nsplit", rests_on=["attention-is-the-slope"], risk="low", expected=expected
        ),
        decision(2, 0x2B, "lever", "propose", "moe-occupancy", rests_on=["moe-is-the-slope"], risk="needs a rewrite"),
        decision(4, 0x2C, "lever", "retire", "moe-occupancy", note="it rests on a premise that fell"),
    ]


def _dead_ends() -> list[Decision]:
    mscclpp: dict[str, Any] = {
        "tried": 1,
        "scope": {"interconnect": "pcie", "concurrency": ">= 60"},
        "reopen_when": [{"nodes": "> 1"}, {"driver": "changed"}],
        "reason": "a <b>multi-node</b> library | no use here",
    }
    return [
        decision(2, 0x3A, "dead-end", "propose", "mscclpp", **mscclpp),
        decision(2, 0x3B, "dead-end", "propose", "torch-compile", scope={"device.arch": "sm120"}),
        decision(5, 0x3C, "dead-end", "reopen", "torch-compile", note="fixed upstream"),
    ]
