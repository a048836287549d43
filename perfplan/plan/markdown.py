"""Text of users in a Markdown document: escaped, on one line, and links."""

from __future__ import annotations

import html
import re
import unicodedata
from functools import lru_cache
from urllib.parse import quote

_SPECIAL = re.compile(r"([\\`*\[\]~|!])")
_EDGE_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_BLOCK = re.compile(r"^(\d{1,9})([.)])(?=\s|$)|^([#=:]|[-+](?=\s|$))")
_ADDRESS = re.compile(r"^https?://([^\s/?#\[\]]+(?:/[^\s?#]*)?)(?:[?#]\S*)?$")
_UNSEEN = ("Cc", "Cf", "Cs")  # control, format and surrogate characters
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"}  # GitHub reads $...$ as a formula


def text(value: object) -> str:
    """`value` so that it shows as it is anywhere in a line or a table cell: no markup, no HTML, no line break.

    Characters that do not show, or that turn the direction of writing, are dropped.
    """
    return _escaped(_one_line(value))


@lru_cache(maxsize=1 << 14)
def _escaped(plain: str) -> str:
    plain = _SPECIAL.sub(r"\\\1", plain)
    plain = "".join(_ENTITIES.get(each, each) for each in plain)
    plain = _EDGE_UNDERSCORE.sub(r"\\_", plain)
    return _BLOCK.sub(lambda match: f"{match[1]}\\{match[2]}" if match[1] else f"\\{match[3]}", plain)


def figures(value: str) -> str:
    """Numbers, intervals and bands that perfplan wrote itself: brackets stay, so that the source reads well too."""
    return value.replace("<", "&lt;").replace(">", "&gt;")


def html_text(value: object) -> str:
    """`value` for a place where Markdown is not read, such as a <summary>."""
    return html.escape(_one_line(value))


def sentence(value: object) -> str:
    """`value` escaped, with a full stop unless it ends in a mark of its own."""
    shown = text(value)
    return shown if shown.endswith((".", "!", "?")) else f"{shown}."


def _one_line(value: object) -> str:
    plain = str(value)
    if not plain.isprintable():
        plain = "".join(each for each in plain if each.isspace() or unicodedata.category(each) not in _UNSEEN)
    return " ".join(plain.split())


def link(label: object, target: str) -> str:
    """A link to a path or an address; the label is escaped, and so is the target."""
    return f"[{text(label)}]({quote(target, safe='/._-~:?=&%+,@#')})"


def source(value: str) -> str:
    """What an entry names as its source: a web address becomes a link, anything else stays text."""
    address = _ADDRESS.match(value)
    return link(address[1].rstrip("/"), value) if address else text(value)


def struck(value: str) -> str:
    """Already escaped text, struck through."""
    return f"~~{value}~~"
