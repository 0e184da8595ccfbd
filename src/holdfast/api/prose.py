"""Markdown as HTML that runs and fetches nothing: no HTML of the text's own, links only to the web and to mail, pictures as links. Loaded
only where a conversation is exported as a page.
"""

import html
from collections.abc import MutableMapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from holdfast.core.texts import visible

SCHEMES = ("http", "https", "mailto")
# A longer text stands there as it was written: reading one that was made for it would take minutes.
MOST_CHARS = 50_000
_SIDES = {"text-align:left": "left", "text-align:center": "center", "text-align:right": "right"}


class _Drawing(RendererHTML):
    """The rules of this class are found by the names of the tokens."""

    def link_open(self, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]) -> str:
        tokens[index].attrSet("rel", "noopener noreferrer")
        return self.renderToken(tokens, index, options, env)

    def image(self, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]) -> str:
        """Nothing is fetched from elsewhere because an answer says so."""
        address = html.escape(str(tokens[index].attrs.get("src", "")))
        words = html.escape(tokens[index].content) or address
        return f'<a href="{address}" rel="noopener noreferrer">{words}</a>'


class _Reader(MarkdownIt):
    def validateLink(self, url: str) -> bool:
        try:
            return urlsplit(url).scheme.lower() in SCHEMES
        except ValueError:
            return False


_READER = _Reader("js-default", {"html": False, "linkify": False, "breaks": True}, renderer_cls=_Drawing)


def _plain(text: str) -> str:
    return f'<div class="text">{html.escape(text)}</div>'


def drawn(text: str) -> str:
    """The text as HTML without any style or script, its headings from the second order on; plain where it is too long to be read."""
    if len(text) > MOST_CHARS:
        return _plain(text)
    env: dict[str, Any] = {}
    tokens = _READER.parse(text, env)
    if any(token.level + 1 >= _READER.options.maxNesting for token in tokens):  # What stands deeper would be missing.
        return _plain(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 1)}"
        if side := _SIDES.get(str(token.attrs.pop("style", ""))):
            token.attrSet("class", side)
        for inner in (token, *(token.children or ())):
            if inner.type in ("fence", "code_block", "code_inline"):
                inner.content = visible(inner.content)
    return str(_READER.renderer.render(tokens, _READER.options, env))
