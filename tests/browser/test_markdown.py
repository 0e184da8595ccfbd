"""Markdown as it is drawn: the examples of the specification, whole and growing, against what the specification says they are.

The examples come from a package of this folder (`./run test tests/browser` installs it); the page gets them as the parts of one answer.
What we draw otherwise, on purpose or not, is listed here and judged in docs/markdown.md.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.browser.acting import WAIT_MS, answers
from tests.browser.conftest import tab
from tests.browser.feeding import Fed
from tests.e2e.serving import Serving

SPECIFICATION = Path(__file__).parent / "node_modules" / "commonmark-spec" / "spec.txt"
LEAST = 455
CUTS = 8


def table(heads: list[str], *rows: list[str], sides: tuple[str, ...] = ()) -> str:
    def cells(tag: str, words: list[str]) -> str:
        classes = [f' class="{side}"' for side in sides] or [""] * len(words)
        return "<tr>" + "".join(f"<{tag}{side}>{word}</{tag}>" for word, side in zip(words, classes, strict=True)) + "</tr>"

    body = "".join(cells("td", row) for row in rows)
    return f"<table><thead>{cells('th', heads)}</thead>" + (f"<tbody>{body}</tbody>" if rows else "") + "</table>"


def link(address: str, words: str | None = None) -> str:
    return f'<a href="{address}">{words or address}</a>'


OPEN, DONE = '<input type="checkbox">', '<input type="checkbox" checked>'
# What the specification leaves to GitHub: ours, with what is to be drawn.
EXTENSIONS = [
    ("| a | b |\n| --- | --- |\n| 1 | 2 |\n", table(["a", "b"], ["1", "2"])),
    ("| a |\n| - |\n", table(["a"])),
    ("| a | b |\n| :-: | --: |\n| 1 |\n| 1 | 2 | 3 |\n", table(["a", "b"], ["1", ""], ["1", "2"], sides=("center", "right"))),
    ("| a\\|b | `c\\|d` |\n| --- | --- |\n", table(["a|b", "<code>c|d</code>"])),
    ("| a | b |\n| - |\n| 1 |\n", "<p>| a | b |\n| - |\n| 1 |</p>"),
    ("| a |\n| - |\n| 1 |\n> 2\n", table(["a"], ["1"]) + "<blockquote><p>2</p></blockquote>"),
    ("~~gone~~ and ~gone~", "<p><del>gone</del> and <del>gone</del></p>"),
    ("~~not\n\nover~~", "<p>~~not</p><p>over~~</p>"),
    ("- [ ] open\n- [x] done\n", f"<ul><li>{OPEN} open</li><li>{DONE} done</li></ul>"),
    (
        "www.example.org and https://example.org/a?b=c.",
        f"<p>{link('http://www.example.org', 'www.example.org')} and {link('https://example.org/a?b=c')}.</p>",
    ),
    ("(see https://example.org/a_(b))", f"<p>(see {link('https://example.org/a_(b)')})</p>"),
    ("```\n```\nthe text", "<pre><code></code></pre><p>the text</p>"),
    ("mail me@example.org now", f"<p>mail {link('mailto:me@example.org', 'me@example.org')} now</p>"),
]

# Both trees in one form: ours has headings from the second on, a frame around code and tables, and breaks lines where the text does.
# Between blocks, and around line breaks, space means nothing.
FORM = r"""([html, ours]) => {
  const named = name => /^H[1-6]$/.test(name) ? 'H' + (ours ? name[1] : Math.min(4, Number(name[1]) + 1)) : name;
  const form = (node, pre) => {
    if (node.nodeType === 3) return pre ? node.data : node.data.replaceAll('\n', '<BR>');
    if (node.nodeType !== 1 || node.matches('.code-head')) return '';
    const name = named(node.nodeName);
    if (name === 'BR') return '<BR>';
    if (name === 'INPUT') return (ours ? node.ariaLabel === '☑' : node.checked) ? '[x]' : '[ ]';
    const inner = [...node.childNodes].map(child => form(child, pre || name === 'PRE')).join('');
    if (ours && (name === 'SPAN' || name === 'DIV')) return inner;
    let told = '';
    if (name === 'A') told = URL.canParse(node.getAttribute('href')) ? ' ' + new URL(node.getAttribute('href')).href : ' ?';
    if (name === 'OL' && (node.getAttribute('start') ?? '1') !== '1') told = ' ' + node.getAttribute('start');
    if (/^T[HD]$/.test(name) && node.className) told = ' ' + node.className;
    return `<${name}${told}>${inner}</${name}>`;
  };
  const blocks = 'P|UL|OL|LI|BLOCKQUOTE|PRE|H\\d|HR|TABLE|THEAD|TBODY|TR|TH|TD';
  const around = new RegExp(`(?:<BR>|\\s)*(</?(?:${blocks})(?: [^>]*)?>)(?:<BR>|\\s)*`, 'g');
  const text = [...new DOMParser().parseFromString(html, 'text/html').body.childNodes].map(child => form(child, false)).join('');
  return text.split(/(<PRE>.*?<\/PRE>)/s).map(part => part.startsWith('<PRE>')
    ? part.replace(/\n<\/CODE>/, '</CODE>')
    : part.replace(/(\[[ x]\]) /g, '$1').replace(/(?:\s*<BR>\s*)+/g, '<BR>').replace(around, '$1')).join('').trim();
}"""

# By their numbers in the specification: what we draw otherwise.
OTHERWISE = {
    20: "links are as the browser writes them",
    526: "links are as the browser writes them",
    538: "links are as the browser writes them",
    603: "links are as the browser writes them",
    318: "an empty line at the end of code is not kept",
    602: "an address is a link, as on GitHub",
    608: "an address is a link, as on GitHub",
    611: "an address is a link, as on GitHub",
    612: "an address is a link, as on GitHub",
}

LAST = "That is all."
# An element that was something else before has its attributes in another order, and what colours code is fetched later.
DRAWN = """all => all.map(each => {
  const copy = each.cloneNode(true);
  for (const code of copy.querySelectorAll('pre code')) code.textContent = code.textContent;
  for (const element of copy.querySelectorAll('*')) {
    const attributes = [...element.attributes].map(({ name, value }) => [name, value]).sort();
    for (const [name] of attributes) element.removeAttribute(name);
    for (const [name, value] of attributes) element.setAttribute(name, value);
  }
  return copy.innerHTML;
})"""
OURS = {"p", "ul", "ol", "li", "blockquote", "pre", "code", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "em", "strong", "a", "br"}


class Example:
    def __init__(self, number: int, text: str, html: str) -> None:
        self.number, self.text, self.html = number, text, html

    @property
    def is_ours(self) -> bool:
        """Raw HTML, pictures, and links that lead nowhere by themselves are shown as text or as links, whatever the specification says."""
        tags = {tag.lower() for tag in re.findall(r"<[/!?]*([A-Za-z][\w-]*)", self.html)}
        links = re.findall(r'href="([^"]*)"', self.html)
        raw = any(tag in self.text for tag in re.findall(r"<[^>]+>", self.html))
        return (
            bool(self.text.strip())
            and not raw
            and "<!" not in self.html
            and tags <= OURS
            and all(re.match("(https?|mailto):", link) for link in links)
        )


def specification() -> list[Example]:
    fence = "`" * 32
    found: list[Example] = []
    lines = SPECIFICATION.read_text().replace("\u2192", "\t").split("\n")
    at = 0
    while fence + " example" in lines[at:]:
        at = lines.index(fence + " example", at)
        middle, end = lines.index(".", at), lines.index(fence, at + 1)
        found.append(Example(len(found) + 1, "\n".join(lines[at + 1 : middle]), "\n".join(lines[middle + 1 : end])))
        at = end
    return found


@pytest.fixture
def fed(browser: Browser, lasting: Serving, signed_in: StorageState) -> Iterator[tuple[Page, Fed]]:
    with tab(browser, signed_in, service_workers="block") as page:
        yield page, Fed(page, lasting)


def drawn(page: Page, count: int) -> list[str]:
    expect(answers(page).locator(".prose")).to_have_count(count, timeout=WAIT_MS)
    expect(answers(page).locator(".prose").last).to_have_text(LAST, timeout=WAIT_MS)
    found: list[str] = answers(page).locator(".prose").evaluate_all(DRAWN)
    return found


def pieces(answer: Fed, texts: list[str], cut: int) -> Iterator[str]:
    """The next piece of every text: they are cut at different places."""
    for step, text in enumerate(texts):
        begin, end = (len(text) * place // CUTS for place in (cut, cut + 1))
        if end > begin:
            yield answer.piece(text[begin:end], begin, step)


def test_the_examples_of_the_specification_are_drawn_as_it_says_and_grow_into_the_same(fed: tuple[Page, Fed]) -> None:
    page, answer = fed
    chosen = [example for example in specification() if example.is_ours]
    assert len(chosen) >= LEAST, len(chosen)
    chosen += [Example(-number, text, html) for number, (text, html) in enumerate(EXTENSIONS, start=1)]
    texts = [*(example.text for example in chosen), LAST]
    answer.show()
    answer.feed("".join(pieces(answer, texts, cut)) for cut in range(CUTS))
    grown = drawn(page, len(texts))
    answer.show(*texts)
    whole = drawn(page, len(texts))
    assert [example.number for example, one, other in zip(chosen, grown[:-1], whole[:-1], strict=True) if one != other] == []
    both = [[html, True] for html in whole[:-1]] + [[example.html, False] for example in chosen]
    forms: list[str] = page.evaluate(f"all => all.map({FORM})", both)
    compared = zip(chosen, forms[: len(chosen)], forms[len(chosen) :], strict=True)
    otherwise = {example.number: (example.text, ours, theirs) for example, ours, theirs in compared if ours != theirs}
    new = {number: told for number, told in otherwise.items() if number not in OTHERWISE}
    assert not new, "\n".join(f"{number}: {told}" for number, told in new.items())
    assert set(OTHERWISE) == set(otherwise), "these are drawn as the specification says now"
