"""A conversation exported as a page: Markdown is drawn, pictures are in it, and nothing in it can run or fetch anything."""

import base64
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from holdfast.api import export, prose
from holdfast.core.content import BytesPart, bytes_part
from tests.gateway.web import World

# The texts that the page's own tests draw: they all want to be more than text.
VECTORS: list[str] = json.loads((Path(__file__).parents[2] / "page" / "tests" / "vectors.json").read_text())
TAGS = {
    *("p", "a", "em", "strong", "s", "code", "pre", "br", "hr", "ul", "ol", "li", "blockquote", "h2", "h3", "h4", "h5", "h6"),
    *("table", "thead", "tbody", "tr", "th", "td", "div"),
}
ATTRIBUTES = {"href", "title", "rel", "class", "start"}
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==")


class Elements(HTMLParser):
    """What is markup in a text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


MORE = [
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt&colon;alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "![x](data:image/svg+xml;base64,PHN2Zz4=)",
    "![\"onload=alert(1)](https://example.org/a.png)",
    '[x](https://example.org/"onclick="alert(1))',
    '[x](https://example.org "a" onclick="alert(1)")',
    "<https://example.org/><script>alert(1)</script>",
    "[x](//example.org/) and [y](/etc/passwd) and [z](file:///etc/passwd)",
    "```\"><script>alert(1)</script>\nx\n```",
    "| <b>a</b> |\n|:-:|\n| <script>1</script> |",
    "</div></article><script>alert(1)</script>",
    "[x]: javascript:alert(1)\n\n[x]",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
]  # fmt: skip


@pytest.mark.parametrize("text", [*VECTORS, *MORE])
def test_no_text_is_more_than_text(text: str) -> None:
    for tag, attributes in Elements(prose.drawn(text)).found:
        assert tag in TAGS, tag
        assert set(attributes) <= ATTRIBUTES, attributes
        assert re.match("(https?|mailto):", attributes.get("href") or "https:", re.IGNORECASE), attributes


def test_markdown_is_drawn() -> None:
    drawn = prose.drawn(
        "# Title\n\nSome *words*, `a\u202eb`,\nand ~~gone~~.\n\n- one\n\n| a |\n|--:|\n| 1 |\n\n![cat](https://example.org/c.png)"
    )
    assert "<h2>Title</h2>" in drawn and "<em>words</em>" in drawn and "<br" in drawn and "<li>one</li>" in drawn
    assert "<code>a⟨U+202E⟩b</code>" in drawn
    assert '<th class="right">a</th>' in drawn and "style=" not in drawn
    assert '<a href="https://example.org/c.png" rel="noopener noreferrer">cat</a>' in drawn and "<img" not in drawn


def test_what_is_too_long_or_too_deep_to_be_read_stands_there_as_it_was_written() -> None:
    long = "*a* " * prose.MOST_CHARS
    assert prose.drawn(long) == f'<div class="text">{long}</div>'
    for marks in (">" * 5000, "- " * 5000, ">" * 99, ">" * 120):
        assert prose.drawn(marks + " deep").count("deep") == 1


def picture(name: str, size: int, media_type: str = "image/png") -> BytesPart:
    return bytes_part(blob=name * 64, size=size, media_type=media_type, name=name)


def test_pictures_are_carried_up_to_a_limit_each_once() -> None:
    most, part = export.MOST_OF_ONE, picture
    pieces = [
        ("file", part("a", 10)), ("file", part("a", 10)), ("file", part("b", most + 1)), ("file", part("c", 10, "image/svg+xml")),
        *(("file", part(name, most)) for name in "defghi"),
    ]  # fmt: skip
    found = export.Whole("t", "s", 0, [export.Row("user", "You", 0, pieces)])
    assert [each.name for each in export.pictures(found)] == ["a", "d", "e", "f", "g"]


async def test_an_exported_page_carries_its_pictures_names_its_other_files_and_can_run_and_fetch_nothing(world: World) -> None:
    session_id = await world.new_session(title="Two files")
    attached = []
    for name, kind, data in (("dot.png", "image/png", PNG), ("a<b>.txt", "text/plain", b"words")):
        uploaded = await world.client.post("/api/uploads", params={"name": name}, content=data, headers={"content-type": kind})
        attached.append(uploaded.json()["attachment_id"])
    assert (await world.post(session_id, "Look at **these**.", attachments=attached)).status_code == 202
    await world.until_state(session_id, "idle")
    page = (await world.client.get(f"/api/sessions/{session_id}/export", params={"as": "html"})).text
    assert f'<img alt="dot.png" src="data:image/png;base64,{base64.b64encode(PNG).decode()}">' in page
    assert "[attached: a&lt;b&gt;.txt, text/plain, 5 bytes]" in page
    assert "<strong>these</strong>" in page
    policy = next(attributes["content"] for tag, attributes in Elements(page).found if "http-equiv" in attributes)
    assert policy is not None and policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in policy
    assert "img-src data:;" in policy and "script" not in policy


def test_of_a_very_long_conversation_the_end_stands_there_as_it_was_written() -> None:
    rows = [export.Row("assistant", "Holdfast", 0, [("text", f"**number {number}**")]) for number in range(3)]
    page = export.page(export.Whole("t", "s", 0, rows), {}, most_read=20).decode()
    assert "<strong>number 0</strong>" in page and '<div class="text">**number 1**</div>' in page and "**number 2**" in page
