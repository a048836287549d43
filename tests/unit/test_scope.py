"""Scopes: yes, no or unknown, and which dimension decided."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfplan.errors import Location, PerfplanError
from perfplan.scope import as_scope, check, covers, evaluate, holds, scope_words

H200 = {"device.kind": "cuda", "device.arch": "sm90", "device.name": "NVIDIA H200", "device.sm_count": 132}
SM120 = {"device.arch": "sm120", "interconnect": "pcie", "nodes": 1}


@pytest.mark.parametrize(
    ("condition", "value", "expected"),
    [
        ("sm120", "sm120", True),
        ("SM120", "sm120", True),
        ("sm120", "sm90", False),
        (132, 132, True),
        (["a", "b"], "B", True),
        (["a", "b"], "c", False),
        ([64, 80], 80, True),
        (">=64", 64, True),
        (">=64", 63, False),
        (">=60,<=96", 80, True),
        (">=60,<=96", 97, False),
        ("!=32", 64, True),
        ("<2.11", "2.10.1", True),
        ("<2.11", "2.11.0+cu130", False),
        ("~=3.6.0", "3.6.2", True),
        ("~=3.6.0", "3.7.0", False),
        ("==2.11.0", "2.11.0+cu130", True),
        ("<2.11", "2.11.0rc1", False),
        (">=580,<581", "580.159.03", True),
        (">=580,<581", "595.12", False),
        (">=580.159", "580.65.06.01", False),
        ("!=nccl-tree", "ring", True),
        (">=x", 3, False),
        ("!=sm120", "gfx120", True),
        ("==h200", "RTX 200", False),
        ("~=2.13.0", "2.13.0a0+hash.nv25", True),
        ("~=2.13.0", "2.13.0.dev20260101+cu130", True),
    ],
)
def test_conditions(condition: object, value: str | int, expected: bool) -> None:
    assert holds(condition, value) is expected


@given(st.integers(-1000, 1000), st.integers(-1000, 1000))
def test_comparisons_of_numbers_are_those_of_arithmetic(bound: int, value: int) -> None:
    expected = {
        "<": value < bound,
        "<=": value <= bound,
        ">": value > bound,
        ">=": value >= bound,
        "==": value == bound,
        "!=": value != bound,
    }
    assert {sign: holds(f"{sign}{bound}", value) for sign in expected} == expected


@given(st.tuples(*[st.integers(0, 30)] * 3), st.tuples(*[st.integers(0, 30)] * 3))
def test_comparisons_of_versions_are_those_of_their_numbers(bound: tuple[int, ...], value: tuple[int, ...]) -> None:
    written, given_ = (".".join(map(str, each)) for each in (bound, value))
    assert holds(f">={written}", given_) is (value >= bound)
    assert holds(f"<{written}", given_ + "+cu130") is (value < bound)


def test_all_known_and_met_is_yes() -> None:
    assert evaluate(SM120, {**SM120, "batch": 64}).value == "yes"


def test_one_dimension_that_differs_is_no_and_is_named_even_beside_an_unknown_one() -> None:
    answer = evaluate(SM120, {"device.arch": "sm90"})
    assert (answer.value, answer.because) == ("no", ("holds for arch sm120, here sm90",))


def test_a_fact_that_nobody_knows_is_unknown_and_is_named() -> None:
    answer = evaluate(SM120, {"device.arch": "sm120", "nodes": 1})
    assert answer.value == "unknown" and "interconnect" in answer.because[0]


def test_an_empty_scope_is_unknown_and_never_everywhere() -> None:
    assert evaluate({}, H200).value == "unknown"


def test_points_are_answered_one_by_one_and_those_covered_are_named() -> None:
    points = [{"batch": batch} for batch in (32, 64, 80)]
    answer = covers({"device.arch": "sm90", "batch": ">=64"}, H200, points)
    assert (answer.value, answer.points) == ("yes", "batch=64,80")
    assert covers({"device.arch": "sm90", "batch": ">=100"}, H200, points).value == "no"
    assert covers({"device.arch": "sm90", "interconnect": "pcie", "batch": ">=64"}, H200, points).value == "unknown"


@pytest.mark.parametrize(
    ("scope", "says"),
    [
        ({"device.arhc": "sm120"}, "did you mean 'device.arch'?"),
        ({"interconect": "pcie"}, "did you mean 'interconnect'?"),
        ({"versions.": "1"}, "is not a fact"),
        ({"batch": ">=,3"}, "is not a comparison"),
        ({"batch": {"min": 3}}, "expected a value"),
        ({"kernel": "changed"}, "reopening"),
        ({"arch": "sm120"}, "did you mean 'device.arch'?"),
        ({"torch": "2.11"}, "did you mean 'versions.torch'?"),
        ({"versions.torch": 2.1}, "a version is text"),
    ],
)
def test_a_scope_that_cannot_be_understood_is_named(scope: dict[str, object], says: str) -> None:
    with pytest.raises(PerfplanError) as caught:
        check(scope, Location("file.yaml", 3, "scope"))
    assert says in f"{caught.value} {caught.value.hint}"


def test_words_of_the_command_line_become_a_scope() -> None:
    words = ["device.arch=sm120", "batch>=64", "versions.triton=~=3.6", "heads=16,64", "graph=true", "scale=0.5"]
    scope = as_scope(words)
    assert scope == {
        "device.arch": "sm120", "batch": ">=64", "versions.triton": "~=3.6", "heads": [16, 64], "graph": True, "scale": 0.5,
    }  # fmt: skip
    check(scope, Location("here"))
    assert scope_words(scope) == "sm120, batch >=64, triton ~=3.6, heads 16 or 64, graph True, scale 0.5"
    with pytest.raises(PerfplanError, match="is not a condition"):
        as_scope(["batch"])


@pytest.mark.parametrize("here", ["2.10", "2.10.0+cu130"])
def test_a_plain_version_is_text_and_its_local_part_does_not_count(here: str) -> None:
    scope = as_scope(["versions.torch=2.10"])
    assert scope == {"versions.torch": "2.10"}
    assert evaluate(scope, {"versions.torch": here}).value == "yes"
    assert evaluate(scope, {"versions.torch": "2.1.0"}).value == "no"
