"""Text of users shows as it is, wherever it stands in the plan."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from perfplan.plan.markdown import html_text, link, source, text

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
NASTY = st.text(alphabet=st.sampled_from(list("ab1 |`*_[]()<>&#$!~\\\"'-+=.:\n\r\t\u2028\u202e/é")), max_size=30)


def shown(value: str) -> str:
    return " ".join(value.replace("\u202e", "").split())


def seen(rendered: str) -> str:
    return html.unescape(rendered)


@given(NASTY)
def test_text_in_a_paragraph_has_no_markup(value: str) -> None:
    rendered = READER.render(f"x {text(value)} y")
    assert seen(rendered) == f"<p>x {shown(value)} y</p>\n"


@given(NASTY)
def test_text_at_the_start_of_a_line_is_a_paragraph(value: str) -> None:
    if shown(value):
        assert seen(READER.render(text(value))) == f"<p>{shown(value)}</p>\n"


@given(NASTY)
def test_text_in_a_table_cell_stays_in_its_cell(value: str) -> None:
    rendered = READER.render(f"| a | b |\n| --- | --- |\n| x{text(value)}x | second |\n")
    cells = re.findall(r"<td>(.*?)</td>", rendered, re.DOTALL)
    assert [seen(each) for each in cells] == [f"x{shown(value)}x", "second"]


@given(NASTY)
def test_no_marker_of_a_region_can_be_made(value: str) -> None:
    assert "<" not in text(f"<!-- perfplan:end notes -->{value}")
    assert "<" not in html_text(f"</summary><script>{value}")


@given(NASTY, st.text(alphabet=st.sampled_from(list("ab ()[]<>\"'|\\`%")), min_size=1, max_size=15))
def test_a_link_is_one_link_with_its_label(label: str, target: str) -> None:
    rendered = READER.render(f"see {link(label + 'x', 'folder/' + target)} there")
    found = re.fullmatch(r'<p>see <a href="([^"]*)">(.*)</a> there</p>\n', rendered)
    assert found is not None
    assert seen(found[2]) == shown(label + "x")


@pytest.mark.parametrize(
    "value", ["https://example.org/a|b", "https://example.org/a(b)", "https://[broken", "javascript:alert(1)", "note"]
)
def test_a_source_never_breaks_a_table(value: str) -> None:
    rendered = READER.render(f"| a | b |\n| --- | --- |\n| {source(value)} | second |\n")
    assert rendered.count("<td>") == 2
    assert 'href="javascript' not in rendered


def test_identifiers_stay_readable() -> None:
    assert text("kv_len=2048, num_warps=4") == "kv_len=2048, num_warps=4"
    assert text("-25.1%") == "-25.1%"
