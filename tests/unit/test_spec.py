"""What a spec may say, and what is wrong with one before any kernel is asked."""

from __future__ import annotations

import subprocess
from pathlib import Path

import jsonschema
import pytest

from perfplan.campaigns import read_campaign
from perfplan.errors import PerfplanError
from perfplan.layout import Layout
from perfplan.models.kernel import KernelInfo
from perfplan.preflight import check_campaign, check_kernel, cost, full_config, full_points
from perfplan.protocol import read_axes, read_knobs
from perfplan.schemas import json_schema
from perfplan.spec import SpecFile, read_spec
from perfplan.yamlfile import read_document
from repository import CAMPAIGN, SPEC


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "plans").mkdir()
    return Layout(tmp_path)


def read(layout: Layout, text: str, name: str = "sum-once.yaml") -> SpecFile:
    path = layout.experiments / name
    path.write_text(text)
    return read_spec(path, layout)


def complaint(layout: Layout, text: str, name: str = "sum-once.yaml") -> str:
    with pytest.raises(PerfplanError) as caught:
        read(layout, text, name)
    return str(caught.value)


def test_the_blob_is_gits_own_of_the_file(layout: Layout) -> None:
    spec_file = read(layout, SPEC)
    hashed = subprocess.run(
        ["git", "hash-object", layout.experiments / "sum-once.yaml"], capture_output=True, text=True, check=True
    )
    assert spec_file.blob == hashed.stdout.strip()
    assert (spec_file.experiment, spec_file.path) == ("sum-once", "experiments/sum-once.yaml")


def test_points_are_every_combination_in_the_order_of_the_spec(layout: Layout) -> None:
    text = SPEC.replace("points: {rows: [64, 256]}", "points: {rows: [64, 256], cols: [1, 2]}")
    assert [tuple(point.values()) for point in read(layout, text).spec.cells()] == [
        (64, 1),
        (64, 2),
        (256, 1),
        (256, 2),
    ]


WRONG = {
    "a value that is not measured": ("at: {rows: [64, 256]}", "at: {rows: [64, 128]}", ":7: hypothesis.predicts.at.rows: rows=128 is not measured"),
    "an axis that is not measured": ("at: {rows: [64, 256]}", "at: {batch: 1}", "batch: is not an axis of `points`"),
    "a metric that is not measured": ("{change:", "{metric: power, change:", "'power' is not measured"),
    "the same arm twice": ("candidate: {passes: 1}", "candidate: {passes: 4}", "candidate: is the same as the baseline"),
    "a value named twice": ("points: {rows: [64, 256]}", "points: {rows: [64, 256, 64]}", "names a value twice"),
    "an axis without values": ("points: {rows: [64, 256]}", "points: {rows: []}", "has no values"),
    "a reversed band": ('"<= -30%"', "[-10%, -20%]", "write the smaller first"),
    "a band without per cent": ('"<= -30%"', "[-0.3, -0.2]", "is not a percentage"),
    "an entry without class": ("row_sum.py:RowSum", "row_sum.py", "kernel.entry: "),
    "no kernel and no command": ("kernel:\n  entry: kernels/row_sum.py:RowSum\n  baseline: {passes: 4}\n  candidate: {passes: 1}\n", "", "either kernel: or command:"),
    "too many points": ("points: {rows: [64, 256]}", "points: {rows: [64, 256], a: [" + ",".join(map(str, range(101))) + "], b: [" + ",".join(map(str, range(101))) + "]}", "more than 10,000"),
    "a fact that does not exist": ("measure:", "if_refuted: {reopen_when: [{device.smcount: changed}]}\nmeasure:", ":13: if_refuted.reopen_when.device.smcount: is not a fact"),
    "too few pairs": ("min_pairs: 8", "min_pairs: 3", "measure.min_pairs"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_named(layout: Layout, name: str) -> None:
    before, after, says = WRONG[name]
    assert before in SPEC
    assert says in complaint(layout, SPEC.replace(before, after))


def test_a_point_under_two_bands_is_a_mistake(layout: Layout) -> None:
    assert "falls under two bands" in complaint(layout, SPEC + 'guards: [{change: "<= +1%", at: {rows: 64}}]\n')
    text = SPEC.replace("at: {rows: [64, 256]}", "at: {rows: 64}") + 'guards: [{change: "<= +1%", at: {rows: 256}}]\n'
    assert len(read(layout, text).spec.guards) == 1


def test_a_spec_lies_in_experiments_under_a_plain_name(layout: Layout) -> None:
    assert "rename it to my-test.yaml" in complaint(layout, SPEC, "My Test.yaml")
    assert "ends in .yaml" in complaint(layout, SPEC, "test.yml")
    stray = layout.root / "stray.yaml"
    stray.write_text(SPEC)
    with pytest.raises(PerfplanError, match="lies in experiments/"):
        read_spec(stray, layout)


def kernel() -> KernelInfo:
    axes = read_axes({"rows": int, "cols": 4096, "dtype": ["bf16", "fp16"]})
    knobs = read_knobs(
        {"passes": 4, "mode": ["fast", "slow"], "nsplit": {"default": 2, "min": 1, "words": ["wave-aware"]}}
    )
    return KernelInfo(entry="k.py:K", axes=axes, knobs=knobs)


UNFIT = {
    "an unknown axis": (
        "points: {rows: [64, 256]}",
        "points: {rows: [64, 256], cosl: 1}",
        "points.cosl",
        "did you mean 'cols'?",
    ),
    "a missing axis": ("rows", "cols", "points", "lacks the axis 'rows'"),
    "an axis of another type": ("[64, 256]", "[64, 256.5]", "points.rows", "256.5 is not of type int"),
    "an unknown choice": (
        "points: {rows: [64, 256]}",
        "points: {rows: [64, 256], dtype: fp8}",
        "points.dtype",
        "'bf16', 'fp16'",
    ),
    "an unknown knob": ("{passes: 1}", "{pases: 1}", "kernel.candidate.pases", "did you mean 'passes'?"),
    "a knob below its least": ("{passes: 1}", "{nsplit: 0}", "kernel.candidate.nsplit", "below the least value 1"),
    "a word that is no policy": ("{passes: 1}", "{nsplit: wave}", "kernel.candidate.nsplit", "nor one of 'wave-aware'"),
    "a bool for a number": ("{passes: 1}", "{passes: true}", "kernel.candidate.passes", "is not of type int"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_what_does_not_fit_the_kernel_is_named(layout: Layout, name: str) -> None:
    before, after, key, says = UNFIT[name]
    problems = check_kernel(read(layout, SPEC.replace(before, after)), kernel())
    assert any(problem.location.key == key and says in str(problem) for problem in problems), problems


def test_what_fits_is_filled_with_the_kernels_defaults(layout: Layout) -> None:
    spec_file = read(layout, SPEC.replace("{passes: 1}", "{passes: 1, nsplit: wave-aware}"))
    assert check_kernel(spec_file, kernel()) == []
    assert full_points(kernel(), spec_file.spec)[0] == {"rows": 64, "cols": 4096, "dtype": "bf16"}
    assert full_config(kernel(), {"passes": 1}) == {"passes": 1, "mode": "fast", "nsplit": 2}
    assert cost(spec_file.spec, spec_file.spec.cells(), 1 << 20).text == (
        "2 points x 2 arms x 8 to 16 pairs, at most 20 s of sampling, 1.0 MiB an input set"
    )


def test_an_unknown_campaign_is_named_with_the_known_ones(layout: Layout) -> None:
    layout.campaign("test").write_text(CAMPAIGN)
    campaigns = {"test": read_campaign(layout.campaign("test"), layout)}
    spec_file = read(layout, SPEC)
    assert check_campaign(spec_file, campaigns) == []
    (problem,) = check_campaign(read(layout, SPEC.replace("campaign: test", "campaign: tset")), campaigns)
    assert "did you mean 'test'?" in str(problem) and problem.location.line == 1


@pytest.mark.parametrize(
    "declared", [{"a": []}, {"a": [1, "x"]}, {"a": {"type": int}}, {"a": {"default": 1, "mni": 2}}, {"a": object()}]
)
def test_a_knob_that_is_declared_wrongly_is_named(declared: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="'a'"):
        read_knobs(declared)


def test_the_schema_accepts_what_we_accept_and_refuses_a_misspelt_key(layout: Layout) -> None:
    good, schema = read(layout, SPEC).document.data, json_schema("spec")
    jsonschema.validate(good, schema)
    jsonschema.validate({**good, "points": {"rows": 64}}, schema)
    for bad in (
        {**good, "levre": "x"},
        {key: value for key, value in good.items() if key != "lever"},
        {**good, "points": 3},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, schema)
    campaign = layout.campaign("test")
    campaign.write_text(CAMPAIGN)
    jsonschema.validate(read_document(campaign, "test.yaml").data, json_schema("campaign"))
