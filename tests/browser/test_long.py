"""Conversations too long for one answer, on the page."""

import json
import re

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


MANY = 2000
# As different in their heights as what people and agents write.
TEXTS = (
    "A line.",
    "Some *words*, a [link](https://example.org/) and `code`. " * 30,
    "```\n" + "let x = 1;\n" * 12 + "```",
    "- one\n- two\n  - three\n\n> a quote\n\n| a | b |\n|---|---|\n| 1 | 2 |",
)
# Where a message is seen, once nothing has moved for a while.
PLACE = """async id => {
  const message = document.getElementById(id);
  let [last, still] = [NaN, 0];
  while (still < 10) {
    await new Promise(requestAnimationFrame);
    const now = message.getBoundingClientRect().top;
    [last, still] = [now, now === last ? still + 1 : 0];
  }
  return last;
}"""


def test_a_reader_of_thousands_of_messages_who_scrolls_away_and_back_finds_the_place_again(page: Page, lasting: Serving) -> None:
    """P8: to less than a pixel, though what is out of sight is not laid out, and older messages are read only when they come near."""
    session = lasting.new_session()
    lasting.post(session, "hello")
    shown = lasting.wait_for(session)
    template = next(message for message in shown["messages"] if message["role"] == "user")
    shown["messages"] = [template | {"id": f"m{n}", "text": f"{n}: {TEXTS[n % len(TEXTS)]}", "parts": []} for n in range(MANY)]
    body = json.dumps(shown)
    asked = re.compile(rf"/api/sessions/{session}\?messages=")
    page.route(asked, lambda route: route.fulfill(status=200, content_type="application/json", body=body))
    page.goto(f"{lasting.url}/s/{session}")
    expect(said(page, "complete").last).to_contain_text(f"{MANY - 1}: ")
    assert page.locator(".rows > .group").count() > 50
    box = page.locator(".scroll")
    read = f"m-m{MANY // 2}"
    for _ in range(2):  # What is there is laid out only now: the first time one does not know where it is.
        page.locator(f"#{read}").evaluate("message => message.scrollIntoView({block: 'center'})")
        before = page.evaluate(PLACE, read)
    for way in (-1, 1):
        for _ in range(20):
            box.evaluate("(box, by) => { box.scrollTop += by }", way * 700)
            page.evaluate("new Promise(requestAnimationFrame)")
        if way < 0:
            assert abs(page.evaluate(PLACE, read) - before) > 10_000
    assert abs(page.evaluate(PLACE, read) - before) < 1, "far up and back, a bit at a time"
    top = box.evaluate("box => box.scrollTop")
    box.evaluate("box => { box.scrollTop = box.scrollHeight }")
    page.evaluate(PLACE, f"m-m{MANY - 1}")
    box.evaluate("(box, top) => { box.scrollTop = top }", top)
    assert abs(page.evaluate(PLACE, read) - before) < 1, "to the end and back"
