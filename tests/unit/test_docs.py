"""The examples in the documentation are what the tool really accepts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perfplan.layout import Layout
from perfplan.measure.job import Job
from perfplan.measure.supervisor import Worker
from perfplan.models.spec import Measure
from perfplan.spec import read_spec

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def test_the_example_of_the_protocol_is_forty_lines_and_runs(tmp_path: Path) -> None:
    (text,) = blocks("kernel-protocol.md", "python")
    assert len([line for line in text.splitlines() if line.strip()]) <= 40
    (tmp_path / "scale.py").write_text(text)
    points = [{"rows": 256, "cols": 1024}, {"rows": 4, "cols": 1024}]
    with Worker(tmp_path) as worker:
        described = worker.describe("scale.py:Scale", "cpu")
        assert described.kernel is not None and described.kernel.tolerance == 1e-6
        job = Job(
            root=str(tmp_path), device="cpu", points=points, half_widths=[0.5] * 2, entry="scale.py:Scale",
            measure=Measure(min_pairs=8, max_pairs=8, seconds=5, cache="warm"), max_rel_error=1e-6,
            baseline={"chunks": "per-row"}, candidate={"chunks": 8},
        )  # fmt: skip
        many, few = worker.measure(job, lambda progress: None).cells
    assert many.validity.valid and many.baseline.config == {"chunks": 256}
    assert many.effect is not None and many.effect.high < 0
    assert "8 chunks of 4 rows" in few.validity.detail


@pytest.mark.parametrize("index", [0, 1])
def test_the_specs_in_the_documentation_read(tmp_path: Path, index: int) -> None:
    whole, command = blocks("spec.md", "yaml")
    text = whole
    if index == 1:
        head = whole[: whole.index("kernel:")].replace(
            "{metric: time, change: [-25%, -15%], at: {batch: [64, 80]}}", "{metric: throughput, change: '>= +3%'}"
        )
        text = head + command
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments/example.yaml").write_text(text)
    assert read_spec(tmp_path / "experiments/example.yaml", Layout(tmp_path)).spec.campaign == "dsv4-decode"


def test_links_between_the_documents_lead_somewhere() -> None:
    root = DOCS.parent
    for page in [root / "README.md", root / "CONTRIBUTING.md", *DOCS.glob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
