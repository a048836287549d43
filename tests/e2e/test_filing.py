"""`perfplan record`: detached records are filed when, and only when, the history holds their sources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfplan.layout import Layout
from perfplan.models.record import Run
from perfplan.records import read_run, write_run
from records import a_run
from repository import KERNEL, Repo


@pytest.fixture
def box(tmp_path: Path) -> Path:
    return tmp_path / "box"


def put(box: Path, run: Run) -> Path:
    path = box / run.experiment / f"{run.id}.json"
    write_run(path, run)
    return path


def test_a_detached_record_is_filed_with_the_commit_of_its_sources_and_again_does_nothing(
    repo: Repo, box: Path
) -> None:
    start = repo.git("rev-parse", "HEAD").strip()
    run = a_run(repo, detached=True)
    put(box, run)
    repo.write("kernels/row_sum.py", KERNEL + "# later\n")
    repo.git("commit", "-qam", "later")
    done = repo.perfplan("record", str(box))
    assert done.returncode == 0, done.stderr
    filed = read_run(Layout(repo.root).record(run.experiment, run.id))
    assert filed.source.commit == start and filed.source.unknown == []
    assert len(repo.log()) == 3 and repo.git("status", "--porcelain") == ""
    again = repo.perfplan("record", str(box))
    assert again.returncode == 0 and "already filed" in again.stdout and len(repo.log()) == 3


def test_unknown_sources_are_refused_by_name_unless_allowed(repo: Repo, box: Path) -> None:
    repo.write("kernels/row_sum.py", KERNEL + "# only on the box\n")
    run = a_run(repo, detached=True)
    path = put(box, run)
    done = repo.perfplan("record", str(path))
    assert done.returncode == 7 and "kernels/row_sum.py" in done.stderr and "commit it first" in done.stderr
    assert "experiments/sum-once.yaml:" not in done.stderr and repo.records() == []
    repo.git("checkout", "-q", "--", ".")
    done = repo.perfplan("record", str(box))
    assert done.returncode == 7 and "differs from every committed version" in done.stderr
    done = repo.perfplan("record", "--allow-unknown-source", "--json", str(box))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["records"][0]["unknown"] == ["kernels/row_sum.py"]
    assert "Not in the history: kernels/row_sum.py" in repo.git("log", "-1", "--format=%B")


def test_a_record_cut_short_is_named_and_the_others_go_on(repo: Repo, box: Path) -> None:
    bad = put(box, a_run(repo, 1, detached=True))
    bad.write_text(bad.read_text()[:300])
    put(box, a_run(repo, 2, detached=True))
    done = repo.perfplan("record", "--no-commit", str(box))
    assert done.returncode == 1 and bad.name in done.stderr and "Traceback" not in done.stderr
    assert [path.stem for path in repo.records()] == [a_run(repo, 2).id]
    assert len(repo.log()) == 1 and "sum-once" in repo.plan()
    assert repo.perfplan("commit").returncode == 0 and repo.git("status", "--porcelain") == ""


def test_same_id_other_content_missing_spec_and_unknown_campaign(repo: Repo, box: Path) -> None:
    run = a_run(repo, detached=True)
    path = put(box, run)
    assert repo.perfplan("record", "--no-commit", str(box)).returncode == 0
    path.unlink()
    put(box, run.model_copy(update={"title": "Other"}))
    done = repo.perfplan("record", str(box))
    assert done.returncode == 1 and "already filed with other content" in done.stderr
    for field in ("experiment", "campaign"):
        other = a_run(repo, 2, detached=True).model_copy(update={field: "gone"})
        done = repo.perfplan("record", str(put(box, other)))
        assert done.returncode == 2 and "gone" in done.stderr and "Traceback" not in done.stderr
        (box / other.experiment / f"{other.id}.json").unlink()
    done = repo.perfplan("record", str(repo.root / "kernels"))
    assert done.returncode == 1 and "holds no records" in done.stderr
