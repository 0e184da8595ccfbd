"""The page on a phone: what can be touched is large enough, the list is a drawer, the story of a turn a sheet."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.browser.acting import WAIT_MS, answers, send
from tests.browser.conftest import tab
from tests.e2e.serving import Serving

PHONE = {"width": 390, "height": 780}
FINGER_PX, FIELD_PX = 44, 16
# What can be touched and is smaller than a finger. A choice is touched by its label; a link within a text is as high as its line.
SMALL = """finger => [...document.querySelectorAll('button, a[href], input, select, textarea, summary')].flatMap(each => {
  const target = each.matches('input[type=radio], input[type=checkbox]') ? each.closest('label') ?? each : each;
  const {width, height, bottom} = target.getBoundingClientRect();
  const unseen = width <= 1 || height <= 1 || bottom <= 0 || !target.checkVisibility({visibilityProperty: true, opacityProperty: true});
  if (unseen || target.parentElement.closest('.prose, .log, .try, p') || (width > finger - 1 && height > finger - 1)) return [];
  return [`${target.tagName} ${target.dataset.testid ?? ''} ${target.ariaLabel ?? target.innerText}: ${width} x ${height}`];
})"""
FIELDS = "() => [...document.querySelectorAll('input, textarea')].map(each => parseFloat(getComputedStyle(each).fontSize))"


@pytest.fixture
def phone(browser: Browser, lasting: Serving, signed_in: StorageState) -> Iterator[Page]:
    with tab(browser, signed_in, viewport=PHONE, has_touch=True, is_mobile=True) as page:
        page.goto(lasting.url)
        page.get_by_test_id("composer").wait_for()
        yield page


def fits_a_finger(page: Page, where: str) -> None:
    page.wait_for_timeout(250)  # Whatever slides in has arrived.
    small = page.evaluate(SMALL, FINGER_PX)
    assert not small, f"{where}: {small}"
    assert min(page.evaluate(FIELDS), default=FIELD_PX) >= FIELD_PX, f"{where}: a smaller field makes a phone zoom in"


def test_everything_that_can_be_touched_is_as_large_as_a_finger(phone: Page, lasting: Serving) -> None:
    """44 px, and fields of 16 px."""
    for _ in range(40):  # More than the list shows at once.
        lasting.new_session()
    fits_a_finger(phone, "a new conversation")
    send(phone, "run echo ahoy")
    expect(answers(phone).first).to_have_attribute("data-status", "complete", timeout=WAIT_MS)
    send(phone, "approve echo yes")
    expect(phone.get_by_test_id("approval")).to_be_visible(timeout=WAIT_MS)
    fits_a_finger(phone, "a conversation with a card")
    phone.get_by_test_id("session-menu").click()
    fits_a_finger(phone, "its menu")
    phone.keyboard.press("Escape")
    phone.get_by_test_id("show-list").click()
    fits_a_finger(phone, "the list")
    phone.reload()
    act = answers(phone).first.get_by_test_id("turn-details")
    expect(act).to_be_hidden()  # Until somebody asks what can be done.
    answers(phone).first.get_by_test_id("acts-more").click()
    fits_a_finger(phone, "what can be done with an answer")
    act.click()
    expect(phone.get_by_test_id("story")).to_be_visible(timeout=WAIT_MS)
    fits_a_finger(phone, "the story of a turn")
    phone.get_by_test_id("close-details").click()
    phone.get_by_test_id("stop").click()
    expect(phone.get_by_test_id("approval")).to_have_count(0, timeout=WAIT_MS)
    phone.goto(lasting.url + "/operations")
    expect(phone.get_by_test_id("day").get_by_role("img")).to_be_visible(timeout=WAIT_MS)
    fits_a_finger(phone, "the operator's view")


def test_the_list_is_a_drawer_and_the_story_of_a_turn_a_sheet_over_what_cannot_be_used_meanwhile(phone: Page) -> None:
    """Beside the conversation from 1,180 px on."""
    send(phone, "run echo ahoy")
    expect(answers(phone).first).to_have_attribute("data-status", "complete", timeout=WAIT_MS)
    main, new = phone.locator("main"), phone.get_by_test_id("new-conversation")
    expect(new).to_be_hidden()
    phone.get_by_test_id("show-list").click()
    expect(new).to_be_in_viewport()
    expect(main).to_have_js_property("inert", True)
    phone.keyboard.press("Escape")
    expect(new).to_be_hidden()
    expect(main).to_have_js_property("inert", False)
    button, details = phone.get_by_test_id("details-button"), phone.get_by_test_id("details")
    button.click()
    for width, is_sheet in ((390, True), (1180, True), (1190, False)):
        phone.set_viewport_size({"width": width, "height": 780})
        expect(main).to_have_js_property("inert", is_sheet)
        expect(details).to_be_in_viewport()
    phone.set_viewport_size(PHONE)  # type: ignore[arg-type]
    phone.keyboard.press("Escape")
    expect(details).to_have_count(0)
    expect(button).to_be_focused()
