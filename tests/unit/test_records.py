"""Records, decisions, blobs and ids: what is written is what is read, and what was touched is found out."""

from __future__ import annotations

import datetime
import json
import random
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plan_log
from perfplan import atomic
from perfplan.blobs import blob_id
from perfplan.decisions import decision_path, dump_decision, read_decision, write_decision
from perfplan.errors import BadRecord, NotFound, PerfplanError
from perfplan.ids import PATTERN, new_id, resolve, short, timestamp
from perfplan.layout import Layout
from perfplan.log import load_log
from perfplan.models.band import Band
from perfplan.records import dump_run, read_run, write_run
from perfplan.validation import read_model


@given(st.binary(max_size=2000))
@settings(max_examples=30, deadline=None)
def test_blob_ids_are_gits(content: bytes) -> None:
    hashed = subprocess.run(["git", "hash-object", "--stdin"], input=content, capture_output=True, check=True)
    assert blob_id(content) == hashed.stdout.decode().strip()


@pytest.mark.parametrize(
    "run", [entry for entry in plan_log.campaign_story() if hasattr(entry, "verdict")], ids=lambda run: run.id
)
def test_a_record_reads_back_as_it_was(tmp_path: Path, run: plan_log.Run) -> None:
    path = tmp_path / f"{run.id}.json"
    write_run(path, run)
    assert read_run(path) == run
    with pytest.raises(FileExistsError):
        write_run(path, run)


def test_samples_stand_on_one_line(tmp_path: Path) -> None:
    cell = plan_log.cell(64, -0.2)
    cell = cell.model_copy(update={"baseline": cell.baseline.model_copy(update={"samples": [1.5e-05, 2e-05, 3.0]})})
    assert '"samples": [1.5e-05, 2e-05, 3.0]' in dump_run(plan_log.run(1, 1, cells=[cell]))


@pytest.mark.parametrize("seed", range(60))
def test_no_damage_to_a_record_goes_unnoticed(tmp_path: Path, seed: int) -> None:
    """One changed, removed or added byte, or a cut: named and refused, or it reads as the very same record."""
    run, rng = plan_log.run(1, 1), random.Random(seed)
    text = bytearray(dump_run(run).encode())
    position = rng.randrange(len(text))
    damage = rng.choice(["change", "remove", "add", "cut"])
    if damage == "change":
        text[position] = rng.randrange(256)
    elif damage == "remove":
        del text[position]
    elif damage == "add":
        text.insert(position, rng.randrange(256))
    else:
        del text[position:]
    path = tmp_path / "record.json"
    path.write_bytes(bytes(text))
    try:
        assert read_run(path) == run
    except BadRecord as error:
        assert str(path) in str(error)


@pytest.mark.parametrize(
    ("content", "says"),
    [("[]", "expected a JSON object"), ('{"schema_version": 2}', "schema version 2"), ("{", "whole JSON")],
)
def test_what_is_no_record_is_named(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "record.json"
    path.write_text(content)
    with pytest.raises(BadRecord, match=says):
        read_run(path, "record.json")


def test_a_record_of_the_right_sum_but_the_wrong_shape_is_named(tmp_path: Path) -> None:
    from perfplan.records import checksum

    data = json.loads(dump_run(plan_log.run(1, 1)))
    del data["checksum"], data["verdict"]
    path = tmp_path / "record.json"
    path.write_text(json.dumps({**data, "checksum": checksum(data)}))
    with pytest.raises(BadRecord, match="verdict"):
        read_run(path)


@pytest.mark.parametrize(
    "entry", [entry for entry in plan_log.campaign_story() if hasattr(entry, "action")], ids=lambda entry: entry.id
)
def test_a_decision_reads_back_as_it_was(tmp_path: Path, entry: plan_log.Decision) -> None:
    layout = Layout(tmp_path)
    path = write_decision(layout, entry)
    assert path == decision_path(layout, entry)
    assert read_decision(path, path.name) == entry
    with pytest.raises(FileExistsError):
        write_decision(layout, entry)


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=100).filter(str.strip),
    st.floats(-0.9, 2).map(lambda x: round(x, 4)),
)
@settings(max_examples=60, deadline=None)
def test_any_words_and_bands_survive_yaml(tmp_path_factory: pytest.TempPathFactory, words: str, low: float) -> None:
    expected = {"change": [f"{low * 100:.2f}%", f"{low * 100 + 5:.2f}%"]}
    entry = plan_log.decision(1, 1, "lever", "propose", "x", claim=words, expected=expected)
    path = tmp_path_factory.mktemp("d") / "entry.yaml"
    path.write_text(dump_decision(entry), encoding="utf-8")
    assert read_model(path, plan_log.Decision, shown="entry.yaml") == entry


@given(st.one_of(st.none(), st.floats(-0.99, 3)), st.one_of(st.none(), st.floats(-0.99, 3)))
def test_a_band_reads_its_own_text(low: float | None, high: float | None) -> None:
    if (low is None and high is None) or (low is not None and high is not None and low > high):
        return
    rounded = [None if each is None else round(each, 6) for each in (low, high)]
    band = Band(low=rounded[0], high=rounded[1])
    again = Band.model_validate(band.text)
    for ours, theirs in ((band.low, again.low), (band.high, again.high)):
        assert (ours is None) == (theirs is None)
        assert ours is None or theirs is None or abs(ours - theirs) < 1e-9


def test_ids_sort_by_time_and_any_unique_prefix_finds_them() -> None:
    times = [
        datetime.datetime(2026, 12, 1, 0, 0, 0, millisecond * 1000, datetime.UTC) for millisecond in (0, 1, 9, 10, 999)
    ]
    ids = [new_id(time) for time in times]
    assert ids == sorted(ids) and all(PATTERN.match(each) for each in ids)
    assert resolve(ids[2][:19], ids) == ids[2]
    assert resolve(short(ids[3]), ids) == ids[3]
    assert timestamp(times[1]) == "2026-12-01T00:00:00Z"
    with pytest.raises(PerfplanError, match="ambiguous"):
        resolve("20261201", ids)
    with pytest.raises(NotFound):
        resolve("1999", ids)


def test_a_broken_file_costs_only_itself(tmp_path: Path) -> None:
    layout = plan_log.make_repository(tmp_path)
    plan_log.file_all(layout, plan_log.campaign_story())
    whole = load_log(layout)
    assert whole.problems == []
    record = layout.root / whole.paths[whole.runs[0].id]
    record.write_text(record.read_text()[:100])
    decision = layout.root / whole.paths[whole.decisions[0].id]
    decision.write_text("kind: nonsense\n")
    other = layout.root / whole.paths[whole.runs[1].id]
    other.rename(other.with_name("20260101-000000-00000000.json"))
    damaged = load_log(layout)
    assert {problem.location.path for problem in damaged.problems} == {
        layout.relative(path) for path in (record, decision, other.with_name("20260101-000000-00000000.json"))
    }
    assert len(damaged.runs) == len(whole.runs) - 2 and len(damaged.decisions) == len(whole.decisions) - 1


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    (tmp_path / "plan.md").write_text("before")
    with pytest.raises(KeyboardInterrupt):
        atomic.write_text(tmp_path / "plan.md", "after")
    assert [path.name for path in tmp_path.iterdir()] == ["plan.md"]
    assert (tmp_path / "plan.md").read_text() == "before"
