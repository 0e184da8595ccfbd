"""Conversations too long for one answer, on the page."""

from playwright.sync_api import Page, expect

from tests.browser.acting import said
from tests.e2e.serving import Serving


def test_the_beginning_of_a_long_conversation_is_fetched_when_somebody_asks_for_it(page: Page, lasting: Serving) -> None:
    """P8: the page loads the newest part and gets the rest a page at a time."""
    session_id = lasting.new_session()
    with lasting.client() as client:
        for number in range(160):
            answer = client.post(f"/api/sessions/{session_id}/messages", json={"text": f"/status {number}"})
            assert answer.status_code == 202, answer.text
    page.goto(f"{lasting.url}/s/{session_id}")
    expect(said(page, "command").last).to_contain_text("/status 159")
    assert page.get_by_text("/status 0", exact=True).count() == 0
    more = page.get_by_test_id("earlier")
    while page.get_by_text("/status 0", exact=True).count() == 0:
        shown = said(page, "command").count()
        if more.count():
            more.scroll_into_view_if_needed()  # Which fetches the page before; pressing it does, too.
        expect(said(page, "command").nth(shown)).to_be_attached()
    expect(more).to_have_count(0)
    assert said(page, "command").count() == 160
    groups = page.locator(".rows > .group")
    assert groups.count() > 0 and groups.first.evaluate("group => getComputedStyle(group).contentVisibility") == "auto"
