"""The plan is a pure function of the files: golden text, the same bytes everywhere, and it says what it has to say."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfplan.blobs import blob_id
from perfplan.errors import BadInput, NotFound
from perfplan.layout import Layout
from perfplan.log import Log, load_log
from perfplan.plan import build_documents, check_documents, resolve_documents, write_documents
from perfplan.plan.regions import PlanProblem
from plan_log import (
    CAMPAIGN,
    CPU,
    campaign_story,
    cell,
    decision,
    entry_id,
    file_all,
    make_repository,
    run,
    spec_text,
    write,
)

GOLDEN = Path(__file__).parents[1] / "golden"
UPDATE = (
    os.environ.get("PERFPLAN_UPDATE_GOLDEN") == "1"
)  # PERFPLAN_UPDATE_GOLDEN=1 pytest tests/unit/test_plan_document.py


def text_of(layout: Layout) -> str:
    (document,) = build_documents(layout, load_log(layout))
    return document.text


def lines_of(layout: Layout, needle: str) -> list[str]:
    return [line for line in text_of(layout).splitlines() if needle in line]


@pytest.mark.parametrize("name", ["story", "empty"])
def test_golden_documents(name: str, tmp_path: Path) -> None:
    layout = make_repository(tmp_path)
    file_all(layout, campaign_story() if name == "story" else [])
    golden = GOLDEN / f"plan_{name}.md"
    if UPDATE:
        golden.write_text(text_of(layout), encoding="utf-8")
    assert text_of(layout) == golden.read_text(encoding="utf-8")


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), keep=st.sets(st.integers(0, 13), min_size=1))
def test_neither_the_order_of_files_nor_of_the_log_shows(seed: int, keep: set[int]) -> None:
    story = [entry for index, entry in enumerate(campaign_story()) if index in keep]
    shuffled = random.Random(seed).sample(story, len(story))
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        first, second = make_repository(Path(one)), make_repository(Path(other))
        file_all(first, story)
        file_all(second, shuffled)
        log = load_log(second)
        random.Random(seed).shuffle(log.runs)
        random.Random(seed).shuffle(log.decisions)
        assert text_of(first) == build_documents(second, log)[0].text


def test_neither_locale_nor_time_zone_nor_hash_seed_shows(tmp_path: Path) -> None:
    layout = make_repository(tmp_path)
    file_all(layout, campaign_story())
    expected = text_of(layout).encode()
    for environment in (
        {"LC_ALL": "C", "TZ": "Pacific/Auckland", "PYTHONHASHSEED": "1"},
        {"LC_ALL": "de_DE.UTF-8", "TZ": "America/Los_Angeles", "PYTHONHASHSEED": "2", "COLUMNS": "20"},
    ):
        done = subprocess.run(
            [sys.executable, "-m", "perfplan", "plan", "--stdout"],
            cwd=tmp_path,
            env={**os.environ, **environment},
            capture_output=True,
        )
        assert done.stdout == expected, done.stderr.decode()


def test_a_second_writing_touches_nothing(tmp_path: Path) -> None:
    layout = make_repository(tmp_path)
    file_all(layout, campaign_story())
    paths = write_documents(layout, load_log(layout))
    before = {path: path.stat().st_mtime_ns for path in paths}
    assert [path.name for path in paths] == ["TEST_PERF_PLAN.md", "warps.svg", "waves.svg"]
    assert write_documents(layout, load_log(layout)) == paths
    assert {path: path.stat().st_mtime_ns for path in paths} == before
    assert check_documents(layout, load_log(layout)) == []


def test_a_check_finds_every_way_to_be_stale(tmp_path: Path) -> None:
    layout = make_repository(tmp_path)
    file_all(layout, campaign_story())
    assert len(check_documents(layout, load_log(layout))) == 3  # nothing is written yet
    plan, warps, waves = write_documents(layout, load_log(layout))
    plan.write_text(plan.read_text(encoding="utf-8").replace("confirmed", "refuted", 1), encoding="utf-8")
    warps.unlink()
    waves.write_text(waves.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    old = layout.charts("test") / "old.svg"
    write(old, f"<!-- perfplan-data: {'0' * 64} -->\n<svg></svg>\n")
    stale = {each.path.name: each.diff for each in check_documents(layout, load_log(layout))}
    assert list(stale) == ["TEST_PERF_PLAN.md", "warps.svg", "waves.svg", "old.svg"]
    assert "\n-" in stale["TEST_PERF_PLAN.md"] and "\n+" in stale["TEST_PERF_PLAN.md"]
    assert "missing" in stale["warps.svg"] and "whole" in stale["waves.svg"]
    assert old in write_documents(layout, load_log(layout)) and not old.exists()
    assert check_documents(layout, load_log(layout)) == []


def test_a_chart_of_another_matplotlib_and_a_picture_by_hand_are_left_alone(tmp_path: Path) -> None:
    layout = make_repository(tmp_path)
    file_all(layout, [run(1, 1)])
    _, chart = write_documents(layout, load_log(layout))
    chart.write_text(
        chart.read_text(encoding="utf-8").replace("<defs>", "<defs> <!-- drawn elsewhere -->", 1), encoding="utf-8"
    )
    photo = layout.charts("test") / "photo.svg"
    write(photo, "<svg></svg>\n")
    assert check_documents(layout, load_log(layout)) == []
    assert photo not in write_documents(layout, load_log(layout)) and photo.exists()
    assert "drawn elsewhere" in chart.read_text(encoding="utf-8")


def test_regions_survive_and_unplaced_ones_are_appended(tmp_path: Path) -> None:
    layout = make_repository(tmp_path)
    file_all(layout, [run(1, 1, cells=[cell(64, -0.2)])])
    (plan,) = write_documents(layout, load_log(layout))
    text = plan.read_text(encoding="utf-8")
    text = text.replace("<!-- perfplan:begin notes -->\n", "<!-- perfplan:begin notes -->\nMine | <b>own</b>\n\n")
    text += "<!-- perfplan:begin elsewhere -->\nlost?\n<!-- perfplan:end elsewhere -->\n"
    plan.write_text(text, encoding="utf-8")
    file_all(layout, [run(2, 2, cells=[cell(64, -0.2)])])
    write_documents(layout, load_log(layout))
    text = plan.read_text(encoding="utf-8")
    assert "<!-- perfplan:begin notes -->\nMine | <b>own</b>\n\n<!-- perfplan:end notes -->" in text
    assert "## Unplaced notes" in text and "-->\nlost?\n<!--" in text
    assert check_documents(layout, load_log(layout)) == []


def test_an_unfinished_merge_is_refused_with_its_line(tmp_path: Path) -> None:
    layout = make_repository(tmp_path)
    (plan,) = write_documents(layout, load_log(layout))
    plan.write_text("<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n", encoding="utf-8")
    with pytest.raises(PlanProblem, match=r"TEST_PERF_PLAN.md:1: .*unfinished merge"):
        write_documents(layout, load_log(layout))
    resolve_documents(layout, load_log(layout))
    assert check_documents(layout, load_log(layout)) == []


def test_no_count_of_records_is_in_the_text(tmp_path: Path) -> None:
    layout = make_repository(tmp_path)
    file_all(layout, [run(1, tail, cells=[cell(64, -0.2)]) for tail in range(0xB0, 0xB0 + 37)])
    assert "37" not in text_of(layout)


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    layout = make_repository(tmp_path, CAMPAIGN.replace("Decode of a test model", "'# T | <script>alert(1)</script>'"))
    nasty = "x | y `z` <script>\n\n# head\n<!-- perfplan:end notes --> [a](b) ~~c~~"
    entries = [
        decision(1, 1, "premise", "propose", "p", claim=nasty),
        decision(1, 2, "lever", "propose", "l", claim=nasty, risk="a|b"),
        decision(1, 3, "dead-end", "propose", "d", reason=nasty, scope={"a|<b>": "<script>"}),
        run(2, 4, cells=[cell(64, None), cell(80, None)], device=CPU.model_copy(update={"name": "<script>|"})),
    ]
    file_all(layout, entries)
    text = text_of(layout)
    assert "<script" not in text and "\n# head" not in text
    for line in text.splitlines():
        if line.startswith("| ") and "script" in line:
            assert line.replace("\\|", "").count("|") in (6, 7, 9)  # as many cells as the table has columns
    write_documents(layout, load_log(layout))
    assert check_documents(layout, load_log(layout)) == []


def test_marks_of_a_run(tmp_path: Path) -> None:
    layout = make_repository(tmp_path)
    file_all(layout, campaign_story())
    rows = [line for line in text_of(layout).splitlines() if line.count(" | ") == 7]
    assert any("dirty source" in row and "000000a2" in row for row in rows)
    assert any("spec edited since" in row and "000000a3" in row for row in rows)
    assert any(
        "retread of [0000003b]" in row and "unknown source: kernels/k.py" in row and "spec gone" in row for row in rows
    )


def test_the_fall_of_a_premise_shows_at_the_lever(tmp_path: Path) -> None:
    layout = make_repository(tmp_path)
    file_all(layout, campaign_story())
    assert any("fallen: premise ~~moe-is-the-slope~~ refuted" in line for line in lines_of(layout, "moe-occupancy"))


def test_stale_evidence(tmp_path: Path) -> None:
    layout = make_repository(tmp_path)
    on_old = run(1, 1, software={"torch": "2.12.0", "perfplan": "0.1"}, cells=[cell(64, -0.2), cell(128, -0.2)])
    file_all(
        layout,
        [on_old, run(2, 2, "refuted", "other", software={"torch": "2.13.0", "perfplan": "0.2"}, cells=[cell(64, 0.0)])],
    )
    stale = text_of(layout).split("## Stale evidence")[1].split("## Log")[0]
    assert (
        "outside of the operating range at batch=128" in stale
        and "torch 2.12.0; the newest run on this device has 2.13.0" in stale
    )
    assert "0000002" not in stale and "changed since" not in stale and "perfplan 0.1" not in stale
    write(layout.root / "kernels/k.py", "def kernel(): return 1\n")
    assert text_of(layout).count("kernels/k.py changed since") == 2
    (layout.root / "kernels/k.py").unlink()
    assert text_of(layout).count("kernels/k.py is gone") == 2


def test_an_older_run_is_history_unless_something_cites_it(tmp_path: Path) -> None:
    layout = make_repository(tmp_path)
    file_all(layout, [run(1, 0xC1, kernel_blob="2" * 40, cells=[cell(64, -0.2)]), run(2, 0xC2, cells=[cell(64, -0.2)])])
    assert "changed since" not in text_of(layout)
    evidence = {"kind": "measured", "runs": [entry_id(1, 0xC1)]}
    file_all(layout, [decision(3, 3, "premise", "propose", "rests", evidence=evidence)])
    assert "kernels/k.py changed since" in text_of(layout)


def test_a_broken_record_is_skipped(tmp_path: Path) -> None:
    layout = make_repository(tmp_path)
    file_all(layout, [run(1, 1, cells=[cell(64, -0.2)])])
    write(layout.record("waves", entry_id(1, 2)), '{"schema_version": 1, "id"')
    log = load_log(layout)
    assert len(log.problems) == 1
    assert "00000001" in build_documents(layout, log)[0].text


def test_campaigns_have_a_document_each(tmp_path: Path) -> None:
    layout = make_repository(tmp_path)
    write(layout.campaign("other.two"), CAMPAIGN)
    file_all(layout, [run(1, 1, cells=[cell(64, -0.2)]), run(1, 2, "confirmed", "alone", campaign="other.two")])
    paths = [path.relative_to(layout.plans).as_posix() for path in write_documents(layout, load_log(layout))]
    assert paths == ["OTHER_TWO_PERF_PLAN.md", "other.two/alone.svg", "TEST_PERF_PLAN.md"]
    assert len(build_documents(layout, load_log(layout), ["test"])) == 1
    with pytest.raises(NotFound, match="nope"):
        build_documents(layout, load_log(layout), ["nope"])
    write(layout.campaign("other.two"), CAMPAIGN + "plan: TEST_PERF_PLAN.md\n")
    with pytest.raises(BadInput, match="same plan file"):
        build_documents(layout, load_log(layout))


def own_template(layout: Layout, template: str) -> Log:
    write(layout.campaign("test"), CAMPAIGN + "template: plans/own.j2\n")
    write(layout.plans / "own.j2", template)
    return load_log(layout)


def test_a_template_of_ones_own(tmp_path: Path) -> None:
    layout = make_repository(tmp_path)
    log = own_template(layout, "# {{ plan.title }}\n{{ region('mine') }}\n")
    text = build_documents(layout, log)[0].text
    assert text == "# Decode of a test model\n<!-- perfplan:begin mine -->\n<!-- perfplan:end mine -->\n"


@pytest.mark.parametrize(
    ("template", "line", "message"),
    [
        ("a\n{% for x in %}\n", 2, "broken"),
        ("a\nb\n{{ plan.nonsense }}\n", 3, "nonsense"),
        ("a\n{{ plan.__class__.__mro__ }}\n", 2, "unsafe"),
        ("{{ region('a') }}\n{{ region('a') }}\n", 2, "placed twice"),
        ("{{ 1 / 0 }}\n", 1, "division"),
    ],
)
def test_a_broken_template_is_named_with_its_line(template: str, line: int, message: str, tmp_path: Path) -> None:
    layout = make_repository(tmp_path)
    log = own_template(layout, template)
    with pytest.raises(BadInput, match=message) as caught:
        build_documents(layout, log)
    (problem,) = caught.value.problems
    assert (problem.location.path, problem.location.line) == ("plans/own.j2", line)


def test_a_missing_template_is_named(tmp_path: Path) -> None:
    layout = make_repository(tmp_path, CAMPAIGN + "template: plans/none.j2\n")
    with pytest.raises(BadInput, match=r"none\.j2"):
        build_documents(layout, load_log(layout))


def test_the_spec_blob_of_the_fixture_is_that_of_the_file(tmp_path: Path) -> None:
    layout = make_repository(tmp_path)
    assert load_log(layout).specs["waves"].blob == blob_id(spec_text().encode())
