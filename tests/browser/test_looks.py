"""How the page looks to those who see it differently: every view, theme and width, checked by axe against WCAG 2.2 AA.

Axe is a package of this folder (`./run test tests/browser` installs it); it is evaluated, so that the page's policy stays as it is.
"""

from typing import Literal

from playwright.sync_api import Browser, Page, expect

from tests.browser.acting import WAIT_MS, answers, send
from tests.browser.conftest import EVERYTHING, Check, tab
from tests.browser.test_parts import seeded  # noqa: F401 - a fixture
from tests.e2e.serving import Serving

WIDE, NARROW = {"width": 1300, "height": 820}, {"width": 390, "height": 780}
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")

# What a theme can change.
COLOURS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}


def in_every_look(page: Page, check: Check, where: str) -> None:
    for size in (WIDE, NARROW):
        page.set_viewport_size(size)  # type: ignore[arg-type]
        for theme in THEMES:
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            page.wait_for_timeout(50)
            check(page, f"{where}, {theme}, {size['width']} wide", EVERYTHING if theme == "light" else COLOURS)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), f"{where} scrolls sideways at {size['width']}"


def test_every_part_of_a_conversation_can_be_read_by_everybody(page: Page, lasting: Serving, check: Check) -> None:
    send(page, "run echo ahoy; sleep 0.1")
    expect(answers(page).first).to_have_attribute("data-status", "complete", timeout=WAIT_MS)
    said = "## Title\n\nSome *words*, `code`, a [link](https://example.org/).\n\n| a | b |\n|---|--:|\n| 1 | 2 |"
    send(page, said + "\n\n```python\nx = 1  # one\n```")
    expect(answers(page)).to_have_count(2, timeout=WAIT_MS)
    send(page, "fail")
    expect(page.get_by_test_id("turn-end")).to_be_visible(timeout=WAIT_MS)
    send(page, "approve echo yes")
    expect(page.get_by_test_id("approval")).to_be_visible(timeout=WAIT_MS)
    in_every_look(page, check, "a conversation with a card")
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    page.get_by_test_id("session-menu").click()
    check(page, "the menu of a conversation")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    expect(page.get_by_test_id("palette-field")).to_be_focused()
    check(page, "the palette")
    page.keyboard.press("Escape")
    page.get_by_test_id("search").fill("title")
    expect(page.get_by_test_id("hit").first).to_be_visible(timeout=WAIT_MS)
    check(page, "what a search found")
    page.get_by_test_id("search").press("Escape")
    page.get_by_test_id("stop").click()
    expect(page.get_by_test_id("approval")).to_have_count(0, timeout=WAIT_MS)
    send(page, "ask Which way?")
    expect(page.get_by_test_id("question")).to_be_visible(timeout=WAIT_MS)
    page.get_by_test_id("session-menu").click()
    page.get_by_test_id("archive").last.click()
    expect(page.get_by_test_id("toast")).to_be_visible(timeout=WAIT_MS)
    check(page, "a question and a toast")
    page.get_by_test_id("toast").get_by_role("button", name="Undo").click()


def test_beginnings_menus_and_the_sign_in_can_be_read_by_everybody(page: Page, browser: Browser, lasting: Serving, check: Check) -> None:
    in_every_look(page, check, "a new conversation")
    page.get_by_test_id("show-list").click()
    check(page, "the list on a phone")
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    page.get_by_test_id("settings").click()
    check(page, "the settings")
    gone = lasting.new_session()
    with lasting.client() as client:
        client.delete(f"/api/sessions/{gone}")
    page.get_by_test_id("recently-deleted").click()
    expect(page.locator(f'[data-testid="deleted-item"][data-session-id="{gone}"]')).to_be_visible(timeout=WAIT_MS)
    check(page, "what was deleted")
    page.goto(lasting.url + "/no/such/page")
    expect(page.get_by_role("heading", name="There is no such page.")).to_be_visible(timeout=WAIT_MS)
    check(page, "an address where nothing is")
    with tab(browser) as out:
        out.goto(lasting.url)
        expect(out.get_by_test_id("token")).to_be_visible(timeout=WAIT_MS)
        in_every_look(out, check, "signing in")


def test_a_page_whose_server_is_away_can_be_read_by_everybody(own_page: Page, serving: Serving, check: Check) -> None:
    send(own_page, "count 400 0.05")
    expect(answers(own_page).first).to_contain_text("1 2 3", timeout=WAIT_MS)
    serving.kill()
    expect(own_page.get_by_test_id("away")).to_contain_text("Holdfast is not answering.", timeout=WAIT_MS)
    send(own_page, "kept")
    in_every_look(own_page, check, "the server away")


def test_the_story_of_a_turn_and_the_operators_view_can_be_read_by_everybody(page: Page, lasting: Serving, check: Check) -> None:
    send(page, "run echo ahoy; sleep 0.1")
    expect(answers(page).first).to_have_attribute("data-status", "complete", timeout=WAIT_MS)
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    page.get_by_test_id("details-button").click()
    expect(page.get_by_test_id("story")).to_be_visible(timeout=WAIT_MS)
    in_every_look(page, check, "the story of a turn")
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    page.goto(lasting.url + "/operations")
    expect(page.get_by_test_id("day").get_by_role("img")).to_be_visible(timeout=WAIT_MS)
    in_every_look(page, check, "the operator's view")
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    page.get_by_test_id("pause").click()
    expect(page.get_by_test_id("confirm")).to_be_visible()
    check(page, "what asks first")
    page.keyboard.press("Escape")


def test_longer_words_another_direction_and_a_small_window_break_nothing(page: Page, lasting: Serving) -> None:
    """320 and 640 px (400 and 200 % of 1280), words two fifths longer, right to left, German: nothing scrolls sideways, and the page says
    its words.
    """
    send(page, "run echo ahoy")
    expect(answers(page).first).to_have_attribute("data-status", "complete", timeout=WAIT_MS)
    address = page.url
    for language, direction, width in (("pseudo", "ltr", 320), ("pseudo", "rtl", 320), ("de", "ltr", 640), ("de", "rtl", 1200)):
        page.evaluate(
            "([l, d]) => { localStorage['holdfast.language'] = l; localStorage['holdfast.direction'] = d }", [language, direction]
        )
        page.set_viewport_size({"width": width, "height": 640})
        for view in (address, lasting.url + "/operations"):
            page.goto(view)
            expect(page.locator("html")).to_have_attribute("lang", "de" if language == "de" else "en", timeout=WAIT_MS)
            page.wait_for_timeout(300)
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (language, direction, width, view)
    expect(page.locator("html")).to_have_attribute("dir", "rtl")
    expect(page.get_by_test_id("pause")).to_have_text("Pausieren")


def test_forced_colours_and_reduced_motion_are_obeyed(page: Page) -> None:
    page.emulate_media(forced_colors="active", reduced_motion="reduce")
    send(page, "hang")
    expect(answers(page).first).to_contain_text("Hanging", timeout=WAIT_MS)
    assert page.evaluate("document.getAnimations().length") == 0
    assert page.locator(".bubble").first.evaluate("bubble => getComputedStyle(bubble).borderTopStyle") == "solid"
    page.get_by_test_id("stop").click()
