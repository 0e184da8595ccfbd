"""What may go wrong around the page: no room to keep anything, files that an upgrade took away, no network, a conversation of megabytes."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, StorageState, expect

from bench.soaking.page import Meter
from tests.browser.acting import WAIT_MS, answers, send, words
from tests.browser.conftest import tab
from tests.browser.feeding import Fed
from tests.e2e.serving import Serving

VECTORS = Path(__file__).parents[2] / "page" / "tests" / "vectors.json"
# Until not one more message fits.
FILL = """() => {
  let size = 1 << 20;
  for (let number = 0; size >= 1; number++) {
    try { localStorage.setItem('full.' + number, 'x'.repeat(size)); } catch { size >>= 1; }
  }
  try { localStorage.setItem('more', 'x'.repeat(64)); return false; } catch { return true; }
}"""


@pytest.fixture
def plain(browser: Browser, lasting: Serving, signed_in: StorageState) -> Iterator[Page]:
    """Without a service worker, which would answer from what it has kept."""
    with tab(browser, signed_in, service_workers="block") as page:
        page.goto(lasting.url)
        page.get_by_test_id("composer").wait_for()
        yield page


def test_with_a_full_storage_and_no_network_a_message_is_still_sent_once(plain: Page) -> None:
    """P1: what cannot be kept in the browser is kept by the page itself, and goes out when the network is back."""
    send(plain, "before")
    expect(answers(plain)).to_have_count(1, timeout=WAIT_MS)
    assert plain.evaluate(FILL), "it is not full"
    plain.context.set_offline(True)
    send(plain, "while nobody answers")
    plain.get_by_test_id("composer").fill("half a thought")
    expect(plain.locator('[data-testid="message"][data-status="sending"]')).to_have_count(1)
    plain.context.set_offline(False)
    expect(answers(plain)).to_have_count(2, timeout=WAIT_MS)
    expect(answers(plain).nth(1)).to_contain_text("You said: while nobody answers")
    expect(plain.locator('[data-testid="message"][data-role="user"]')).to_have_count(2)
    expect(plain.get_by_test_id("composer")).to_have_value("half a thought")


def test_a_page_from_before_an_upgrade_works_without_the_files_that_are_gone(plain: Page, lasting: Serving) -> None:
    """After a hand-over to a version whose chunks have other names, the old page asks for files that nobody has: code stays plain, a
    formula stays its source, the language stays, and nothing else suffers.
    """
    asked: list[str] = []

    def gone(route: Route) -> None:
        asked.append(route.request.url)
        with lasting.client() as client:  # What the server says of a file that it does not have.
            answer = client.get("/assets/gone-aaaaaaaa.js")
        assert answer.status_code == 404
        route.fulfill(status=404, content_type="application/json", body=answer.text)

    plain.route(re.compile(r"/assets/(?!index-|style-).*\.js"), gone)
    send(plain, "Look:\n\n```python\nx = 1  # one\n```\n\n$$\\frac{a}{b}$$")
    answer = answers(plain).first
    expect(answer).to_have_attribute("data-status", "complete", timeout=WAIT_MS)
    expect(answer.locator("pre").first).to_contain_text("x = 1  # one")
    expect(answer).to_contain_text("frac")
    plain.get_by_test_id("settings").click()
    plain.get_by_test_id("language-de").click()
    send(plain, "still here")
    expect(answers(plain).nth(1)).to_contain_text("You said: still here", timeout=WAIT_MS)
    expect(plain.locator("html")).to_have_attribute("lang", "en")
    assert len({url.rsplit("/", 1)[1].partition("-")[0] for url in asked}) >= 3, asked


def test_a_snapshot_of_eight_megabytes_is_drawn_and_the_page_stays_usable(plain: Page, lasting: Serving) -> None:
    """P8: a page of a conversation whose messages are as long as they may be."""
    session = lasting.new_session()
    lasting.post(session, "hello")
    shown = lasting.wait_for(session)
    long = "```\n" + "word " * 16_000 + "\n```"
    template = next(message for message in shown["messages"] if message["role"] == "user")
    shown["messages"] = [template | {"id": f"m{number}", "text": f"{long}\n\n{number} is its number", "parts": []} for number in range(100)]
    body = json.dumps(shown)
    assert len(body) > 8_000_000
    asked = re.compile(rf"/api/sessions/{session}\?messages=")
    plain.route(asked, lambda route: route.fulfill(status=200, content_type="application/json", body=body))
    plain.goto(f"{lasting.url}/s/{session}")
    expect(plain.locator('[data-testid="message"]').last).to_contain_text("99 is its number", timeout=WAIT_MS)
    send(plain, "and one more")
    expect(answers(plain).last).to_contain_text("You said: and one more", timeout=WAIT_MS)


# A field that nobody knows makes it as long as it is to be. Gives its length.
FEED = """([snapshot, bytes, size]) => {
  const whole = snapshot.replace('data: {', () => 'data: {"unknown": "' + 'x'.repeat(bytes) + '", ');
  for (let at = 0; at < whole.length; at += size) window.feed(whole.slice(at, at + size));
  return whole.length;
}"""
EIGHT_MB = 8 << 20


def test_a_snapshot_that_comes_in_pieces_of_a_kilobyte_costs_what_it_is_long_and_not_its_square(plain: Page, lasting: Serving) -> None:
    """P8: over the stream. Measured: a fifth more than in one piece. A square would be a hundred times that."""
    fed = Fed(plain, lasting)
    fed.show("begun")
    meter, costs = Meter(plain), []
    for name, size in (("whole", 2 * EIGHT_MB), ("pieces", 1024)):

        def arrive(name: str = name, size: int = size) -> None:
            assert plain.evaluate(FEED, [fed.snapshot(f"it came as {name}"), EIGHT_MB, size]) > EIGHT_MB
            expect(answers(plain).first).to_contain_text(f"it came as {name}", timeout=WAIT_MS)

        costs.append(meter.cost(arrive))
    print(f"{costs[0]:.2f} s, in pieces {costs[1]:.2f} s")
    assert costs[1] <= 10 * costs[0] + 1


def test_a_slow_line_shows_all_of_a_fast_answer_and_the_page_can_be_used_meanwhile(plain: Page) -> None:
    """P7: 40 kB/s, half a second there and back: the server reads on, the page shows what has come, in its order, once."""
    cdp = plain.context.new_cdp_session(plain)
    cdp.send("Network.enable")
    slow = {"offline": False, "latency": 500, "downloadThroughput": 40_000, "uploadThroughput": 40_000}
    cdp.send("Network.emulateNetworkConditions", slow)
    send(plain, "count 1500 0.001")
    expect(answers(plain).first).to_contain_text("1 2 3", timeout=WAIT_MS)
    plain.get_by_test_id("composer").fill("meanwhile")
    expect(plain.get_by_test_id("composer")).to_have_value("meanwhile")
    expect(answers(plain).first).to_have_attribute("data-status", "complete", timeout=WAIT_MS)
    assert words(plain) == " ".join(str(number) for number in range(1, 1501))
    expect(plain.get_by_test_id("connection")).to_have_attribute("data-state", "live")


def test_a_line_that_is_cut_within_an_answer_is_taken_up_where_it_was(plain: Page) -> None:
    """P7: the server stays; what it said meanwhile is there when the network is."""
    send(plain, "count 80 0.05")
    expect(answers(plain).first).to_contain_text("1 2 3", timeout=WAIT_MS)
    plain.context.set_offline(True)
    plain.wait_for_timeout(500)
    plain.context.set_offline(False)
    expect(answers(plain).first).to_have_attribute("data-status", "complete", timeout=WAIT_MS)
    assert words(plain) == " ".join(str(number) for number in range(1, 81))
    expect(plain.get_by_test_id("interruption")).to_have_count(0)


def test_a_line_of_a_hundred_kilobytes_and_five_thousand_quotes_are_drawn(plain: Page) -> None:
    """P8: what no screen was made for takes neither the page's time nor its stack, and scrolls nothing sideways."""
    send(plain, "x" * 100_000 + "\n\n" + "> " * 5000 + "deep")
    expect(answers(plain).first).to_have_attribute("data-status", "complete", timeout=WAIT_MS)
    expect(answers(plain).first).to_contain_text("deep")
    assert plain.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    send(plain, "still here?")
    expect(answers(plain).nth(1)).to_contain_text("You said: still here?", timeout=WAIT_MS)


def test_no_text_becomes_more_than_text(plain: Page) -> None:
    """Eighty and more vectors at once, in an answer and in a message: nothing runs, nothing is fetched, nothing leads elsewhere than to
    the web. That nothing breaks the policy or asks another server is held by the tab itself.
    """
    vectors: list[str] = json.loads(VECTORS.read_text())
    assert len(vectors) >= 83
    send(plain, "\n\n---\n\n".join(vectors))
    answer = answers(plain).first
    expect(answer).to_have_attribute("data-status", "complete", timeout=WAIT_MS)
    expect(answer.locator("hr").nth(20)).to_be_attached()
    prose = plain.locator(".prose, .bubble")
    assert plain.evaluate("window.owned") is None
    forbidden = "script, iframe, object, embed, form, input:not([type=checkbox]), video, audio, source, base, meta, link, style, template"
    assert prose.locator(forbidden).count() == 0
    assert prose.locator("img, [style], [onerror], [onload], [onclick], [onmouseover], [ontoggle], [name]").count() == 0
    links: list[str] = prose.locator("a[href]").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert links and not [link for link in links if not link.startswith(("https://", "http://", "mailto:"))], links
