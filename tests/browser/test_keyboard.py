"""The page without a mouse: every place can be reached, one sees where one is, and the focus comes back to where it was."""

from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.acting import WAIT_MS, answers, send

MOST = 120

# Where the focus is, and whether that can be seen: an outline, or what the element it stands for shows instead.
WHERE = """() => {
  const at = document.activeElement;
  if (!at || at === document.body) return null;
  const shows = [at, at.nextElementSibling, at.closest('.box, .field, .search, .ask-form')].filter(Boolean).some(each => {
    const style = getComputedStyle(each);
    return (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0) || (each !== at && style.boxShadow !== 'none');
  });
  const box = at.getBoundingClientRect();
  const name = at.dataset.testid || at.id || at.getAttribute('aria-label') || at.textContent.slice(0, 40);
  return {name, shows: shows || at.matches('input, textarea'), there: box.width > 0 && box.height > 0};
}"""


def where(page: Page) -> dict[str, Any]:
    found = page.evaluate(WHERE)
    return found or {"name": None, "shows": True, "there": True}


def tab_to(page: Page, name: str, *, back: bool = False) -> None:
    for _ in range(MOST):
        page.keyboard.press("Shift+Tab" if back else "Tab")
        at = where(page)
        assert at["shows"] and at["there"], f"one does not see where one is: {at}"
        if at["name"] == name:
            return
    raise AssertionError(f"{name} cannot be reached")


def test_escape_closes_the_details_before_it_stops_an_answer(page: Page) -> None:
    """Also where they stand next to the conversation."""
    page.set_viewport_size({"width": 1500, "height": 800})
    send(page, "hang")
    expect(answers(page).first).to_contain_text("Hanging", timeout=WAIT_MS)
    page.get_by_test_id("details-button").click()
    expect(page.get_by_test_id("close-details")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("close-details")).to_have_count(0)
    expect(page.get_by_test_id("stop")).to_be_enabled()
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("stop")).to_have_count(0, timeout=WAIT_MS)


def test_a_whole_visit_without_a_mouse(page: Page) -> None:
    """Write, answer a question, approve a call, look something up, pause and think better of it."""
    expect(page.get_by_test_id("composer")).to_be_focused()
    tab_to(page, "Skip to the message field", back=True)
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("composer")).to_be_focused()
    page.keyboard.type("ask What is your name?")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("question")).to_be_visible(timeout=WAIT_MS)
    tab_to(page, "question-answer", back=True)
    page.keyboard.type("Ada")
    page.keyboard.press("Enter")
    expect(answers(page).first).to_contain_text("You answered: Ada", timeout=WAIT_MS)
    page.get_by_test_id("composer").focus()
    page.keyboard.type("approve echo yes")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("approval")).to_be_visible(timeout=WAIT_MS)
    page.keyboard.press("Enter")  # Enter elsewhere never approves.
    tab_to(page, "approve", back=True)
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("approval")).to_have_count(0, timeout=WAIT_MS)
    page.keyboard.press("Control+k")
    expect(page.get_by_test_id("palette-field")).to_be_focused()
    page.keyboard.type("operations")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("operations")).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_test_id("pause")).to_be_enabled(timeout=WAIT_MS)
    tab_to(page, "pause")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("confirm")).to_be_visible()
    assert page.evaluate("document.querySelector('dialog[open]').contains(document.activeElement)")
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("pause")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    tab_to(page, "settings", back=True)
    page.keyboard.press("Enter")
    expect(page.get_by_role("menu").get_by_role("menuitem").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("settings")).to_be_focused()


def test_the_list_of_sections_leads_to_each_and_back_to_the_conversations(page: Page) -> None:
    page.get_by_test_id("gate").click()
    expect(page.get_by_test_id("operations")).to_be_visible(timeout=WAIT_MS)
    sections = page.get_by_test_id("section")
    for section in sections.all():
        section.focus()
        page.keyboard.press("Enter")
        to = (section.get_attribute("href") or "").partition("#")[2]
        expect(page.locator(f"#{to}")).to_be_focused()
        expect(page.locator(f"#{to}")).to_be_in_viewport()
    page.get_by_test_id("to-conversations").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("composer")).to_be_visible(timeout=WAIT_MS)
