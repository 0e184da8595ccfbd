"""Code in colours and formulas as MathML: fetched when they are wanted, and never more than what was written."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.browser.acting import WAIT_MS, answers
from tests.browser.conftest import tab
from tests.browser.feeding import Fed
from tests.e2e.serving import Serving

LONG = 50_000


@pytest.fixture
def fed(browser: Browser, lasting: Serving, signed_in: StorageState) -> Iterator[tuple[Page, Fed]]:
    with tab(browser, signed_in, service_workers="block") as page:
        yield page, Fed(page, lasting)


def test_code_gets_its_colours_when_its_fence_closes_and_long_code_stays_plain(fed: tuple[Page, Fed]) -> None:
    page, answer = fed
    code = "```python\ndef one():  # two\n    return 'three'\n"
    long = "```python\n" + "x = 1\n" * (LONG // 6 + 1) + "```\n\n```python\ny = 2\n```"
    answer.show(code)
    blocks = answers(page).locator("pre code")
    expect(blocks).to_contain_text("return 'three'", timeout=WAIT_MS)
    page.wait_for_timeout(300)
    assert blocks.locator("span").count() == 0
    answer.feed([answer.piece("```", len(code))])
    expect(blocks.locator(".hljs-keyword")).to_have_text(["def", "return"], timeout=WAIT_MS)
    expect(blocks).to_have_text("def one():  # two\n    return 'three'")
    answer.show(long)
    expect(blocks.nth(1).locator(".hljs-number")).to_have_text("2", timeout=WAIT_MS)
    assert blocks.nth(0).locator("span").count() == 0


def test_a_formula_becomes_mathml_and_nothing_in_it_a_link_or_a_picture(fed: tuple[Page, Fed]) -> None:
    """One that cannot be read, or wants more than to be a formula, stands as it was written."""
    page, answer = fed
    wanted = (
        "\\href{javascript:alert(1)}{x}",
        "\\href{https://example.org/}{x}",
        "\\includegraphics{https://example.org/a.png}",
        "\\frac{",
    )
    answer.show("\n\n".join(("$$\\frac{a}{b}$$", "Inline \\(x^2\\) here.", *(f"$${formula}$$" for formula in wanted))))
    shown = answers(page)
    expect(shown.locator("math")).not_to_have_count(0, timeout=WAIT_MS)
    expect(shown.locator(".math-block mfrac")).to_have_count(1, timeout=WAIT_MS)
    expect(shown.locator(".math msup")).to_have_count(1)
    page.wait_for_timeout(300)
    assert shown.locator("a, img, [href], [src], script").count() == 0
    expect(shown).to_contain_text("\\frac{")
