"""Hand-written regions survive, whatever happens around them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfplan.plan.regions import PlanProblem, block, merge_regions, read_regions

LINES = st.lists(st.text(alphabet="ab =-#", max_size=6), max_size=6)


def document(notes: str) -> str:
    return f"# title\n\n{block('notes', notes)}\nend\n"


@given(LINES)
def test_what_is_written_is_read(lines: list[str]) -> None:
    content = "".join(f"{line}\n" for line in lines)
    assert read_regions(document(content), "p.md") == {"notes": content}


def test_crlf_is_read_as_lf() -> None:
    assert read_regions(document("a\nb\n").replace("\n", "\r\n"), "p.md") == {"notes": "a\nb\n"}


@pytest.mark.parametrize(
    ("broken", "line", "message"),
    [
        ("<!-- perfplan:begin a -->\nx\n", 1, "never ends"),
        ("x\n<!-- perfplan:end a -->\n", 2, "no region is open"),
        ("<!-- perfplan:begin a -->\n<!-- perfplan:begin b -->\n<!-- perfplan:end b -->\n", 2, "begins inside"),
        ("<!-- perfplan:begin a -->\n<!-- perfplan:end b -->\n", 2, "ends here"),
        (f"{block('a', '')}\n{block('a', '')}\n", 3, "there twice"),
        ("<!-- perfplan:begin a\n", 1, "not a whole marker"),
        ("<!-- perfplan:begin A B -->\n", 1, "not a whole marker"),
        ("x\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> other\n", 2, "unfinished merge"),
    ],
)
def test_broken_markers_are_named_with_their_line(broken: str, line: int, message: str) -> None:
    with pytest.raises(PlanProblem, match=message) as caught:
        read_regions(broken, "plans/P.md")
    assert caught.value.location is not None
    assert (caught.value.location.path, caught.value.location.line) == ("plans/P.md", line)
    assert caught.value.hint


@given(LINES, LINES, st.booleans())
def test_a_merge_loses_no_line_of_either_side(ours: list[str], theirs: list[str], with_base: bool) -> None:
    mine = [f"o{line}" for line in ours]
    other = [f"t{line}" for line in theirs]
    base = "||||||| base\nold\n" if with_base else ""
    conflict = (
        "<<<<<<< HEAD\n"
        + "".join(f"{x}\n" for x in mine)
        + base
        + "=======\n"
        + "".join(f"{x}\n" for x in other)
        + ">>>>>>> b\n"
    )
    merged = merge_regions(document(f"before\n{conflict}after\n"), "p.md")
    lines = merged.regions["notes"].splitlines()
    assert [each for each in lines if each in {*mine, "before", "after"}] == ["before", *mine, "after"]
    assert [each for each in lines if each in other] == other
    assert "old" not in lines
    assert merged.both == (("notes",) if mine and other else ())
    assert read_regions(document(merged.regions["notes"]), "p.md")["notes"] == merged.regions["notes"]


def test_a_conflict_may_span_a_marker() -> None:
    begin = "<!-- perfplan:begin notes -->"
    ours, theirs = f"row a\n{begin}\nmine\n", f"row b\n{begin}\nyours\n"
    text = f"<<<<<<< HEAD\n{ours}=======\n{theirs}>>>>>>> b\nshared\n<!-- perfplan:end notes -->\n"
    merged = merge_regions(text, "p.md")
    assert {"mine", "yours", "shared"} <= set(merged.regions["notes"].splitlines())
    assert merged.both == ("notes",)


def test_a_region_that_one_side_removed_is_kept() -> None:
    text = f"<<<<<<< HEAD\nx\n=======\n{block('notes', 'words' + chr(10))}\n>>>>>>> b\n"
    assert merge_regions(text, "p.md").regions == {"notes": "words\n"}


def test_an_unended_conflict_is_named() -> None:
    with pytest.raises(PlanProblem, match="never ends"):
        merge_regions("a\n<<<<<<< HEAD\nb\n", "p.md")
