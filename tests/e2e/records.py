"""Records to file in tests: whole and valid, as the runner writes them."""

from __future__ import annotations

from perfplan.blobs import file_blob
from perfplan.layout import Layout
from perfplan.models.record import Run
from perfplan.records import write_run
from repository import Repo


def a_run(repo: Repo, number: int = 1, detached: bool = False) -> Run:
    """A confirmed run of the repository's spec, with the blobs as they are on disk."""
    paths = ["experiments/sum-once.yaml", "kernels/row_sum.py"]
    spec, kernel = ({"path": path, "blob": file_blob(repo.root / path)} for path in paths)
    arms = {"baseline": {"median": 4e-5}, "candidate": {"median": 1e-5}}
    effect = {"estimate": -0.75, "low": -0.76, "high": -0.74, "pairs": 16}
    cell = {"role": "predicted", "band": {"high": -0.3}, "effect": effect, "verdict": {"outcome": "confirmed"}, **arms}
    return Run.model_validate(
        {
            "id": f"20261201-14223{number}-7f3a9c2{number}",
            "experiment": "sum-once",
            "campaign": "test",
            "title": "Sum once",
            "lever": "fewer-passes",
            "started": "2026-12-01T14:22:30Z",
            "finished": "2026-12-01T14:22:33Z",
            "hypothesis": {"claim": "c", "because": "b", "predicts": {"change": "<= -30%"}},
            "entry": "kernels/row_sum.py:RowSum",
            "baseline": {"passes": 4},
            "candidate": {"passes": 1},
            "changed": {"passes": 1},
            "device": {"kind": "cpu", "name": "A CPU", "arch": "x86_64"},
            "source": {"spec": spec, "files": [kernel], "detached": detached},
            "cells": [{"point": {"rows": rows, "cols": 4096}, **cell} for rows in (64, 256)],
            "verdict": {"outcome": "confirmed"},
        }
    )


def file_run(repo: Repo, run: Run) -> Run:
    """Write the record where it belongs."""
    write_run(Layout(repo.root).record(run.experiment, run.id), run)
    return run
