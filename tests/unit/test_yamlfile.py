"""The strict YAML reader: plain data comes back as it was, everything else is named with its line."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfplan.errors import PerfplanError
from perfplan.models.spec import Spec
from perfplan.validation import validate
from perfplan.yamlfile import Document, read_document
from repository import SPEC

printable = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"])
words = st.text(string.ascii_letters + "_-", min_size=1, max_size=8)
scalars = st.one_of(
    st.integers(-(10**12), 10**12),
    st.booleans(),
    st.none(),
    st.text(printable, max_size=20),
    st.floats(allow_nan=False, allow_infinity=False),
)
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4), max_leaves=20
)


def read(tmp_path: Path, text: str | bytes) -> Document:
    path = tmp_path / "file.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_document(path, "file.yaml")


def complaint(tmp_path: Path, text: str | bytes) -> str:
    with pytest.raises(PerfplanError) as caught:
        read(tmp_path, text)
    return str(caught.value)


@given(data=st.dictionaries(words, trees, min_size=1, max_size=5))
@settings(max_examples=150, deadline=None)
def test_plain_data_comes_back_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any]
) -> None:
    text = json.dumps(data, ensure_ascii=False, indent=1)  # YAML 1.2 reads JSON, and JSON quotes every string
    assert read(tmp_path_factory.mktemp("y"), text).data == data


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("1:30", "1:30"),
        ("2026-12-01", "2026-12-01"),
        ("1e-3", 1e-3),
        ("6.7e-3", 6.7e-3),
        ("0x1f", 31),
        ("true", True),
        ("~", None),
        ("'3'", "3"),
        ("007", 7),
        ("1_000", "1_000"),
        (".5", 0.5),
        ("-4", -4),
        ("<= -5%", "<= -5%"),
    ],
)
def test_scalars_follow_the_core_schema(tmp_path: Path, text: str, value: object) -> None:
    got = read(tmp_path, f"key: {text}\n").data["key"]
    assert got == value and type(got) is type(value)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("a: 1\n<<<<<<< HEAD\nb: 2\n", 2, "merge conflict"),
        ("a:\n\tb: 1\n", 2, "tab"),
        ("a: 1\nb: !!python/object:os.system {}\n", 2, "tag"),
        ("a: !mine 1\n", 1, "tag"),
        ("a: 1\nb: 2\na: 3\n", 3, "first on line 1"),
        ("a: &x 1\nb: *x\n", 2, "alias"),
        ("a: 1\n---\nb: 2\n", 3, "second document"),
        ("- a\n- b\n", 1, "top level"),
        ("? [a, b]\n: 1\n", 1, "key must be"),
        ("a: [1, 2\nb: 3\n", 2, "not YAML"),
        ("a: 1\nb: x\x07y\n", 2, "control character"),
        (b"a: 1\nb: \xff\xfe\n", 2, "UTF-8"),
    ],
)
def test_what_is_not_plain_data_is_named_with_its_line(tmp_path: Path, text: str | bytes, line: int, says: str) -> None:
    message = complaint(tmp_path, text)
    assert message.startswith(f"file.yaml:{line}: ") and says in message


def test_files_that_are_no_text_are_refused(tmp_path: Path) -> None:
    assert "is empty" in complaint(tmp_path, "")
    assert "is empty" in complaint(tmp_path, "# only a comment\n")
    assert "larger than" in complaint(tmp_path, "a: " + "x" * (1 << 20))
    assert "nested" in complaint(tmp_path, "a: " + "[" * 100 + "]" * 100)
    with pytest.raises(PerfplanError, match="no such file"):
        read_document(tmp_path / "gone.yaml", "gone.yaml")
    with pytest.raises(PerfplanError, match="folder"):
        read_document(tmp_path, "folder")


def test_a_bomb_of_aliases_is_refused_at_once(tmp_path: Path) -> None:
    lines = ["a: &a [x, x]"] + [f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)}, *{chr(97 + i)}]" for i in range(20)]
    assert "alias" in complaint(tmp_path, "\n".join(lines))


@given(position=st.integers(0, len(SPEC) - 1), replacement=st.text(max_size=3), cut=st.integers(0, 5))
@settings(max_examples=200, deadline=None)
def test_no_mutation_of_a_spec_gives_anything_but_a_value_or_a_clear_error(
    tmp_path_factory: pytest.TempPathFactory, position: int, replacement: str, cut: int
) -> None:
    text = SPEC[:position] + replacement + SPEC[position + cut :]
    try:
        validate(read(tmp_path_factory.mktemp("m"), text.encode("utf-8", "surrogatepass")), Spec)
    except PerfplanError as error:
        assert str(error).startswith("file.yaml")


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None)
def test_no_bytes_give_a_traceback(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    try:
        read(tmp_path_factory.mktemp("b"), content)
    except PerfplanError as error:
        assert str(error).startswith("file.yaml")


def test_lines_are_those_of_keys_and_list_items(tmp_path: Path) -> None:
    document = read(tmp_path, "a: 1\nb:\n  c:\n    - x\n    - {d: 4}\n")
    lines = {("a",): 1, ("b",): 2, ("b", "c"): 3, ("b", "c", 0): 4, ("b", "c", 1): 5, ("b", "c", 1, "d"): 5}
    assert {path: document.lines[path] for path in lines} == lines
    assert document.locate("b", "c", "gone").line == 3


def test_every_problem_of_a_model_is_reported_with_place_and_suggestion(tmp_path: Path) -> None:
    text = SPEC.replace("lever:", "levre:").replace("min_pairs: 8", "min_pairs: eight").replace("claim:", "calim:")
    with pytest.raises(PerfplanError) as caught:
        validate(read(tmp_path, text), Spec)
    message = str(caught.value)
    assert "file.yaml:3: levre: unknown key (did you mean 'lever'?)" in message
    assert "file.yaml:5: hypothesis.calim: unknown key (did you mean 'claim'?)" in message
    assert "hypothesis.claim: is missing" in message
    assert "measure.min_pairs: expected a whole number, got 'eight'" in message
