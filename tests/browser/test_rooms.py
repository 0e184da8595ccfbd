"""What surrounds a conversation: archive and pins, the list that hides, themes, the first run, files pasted or dropped, copying."""

import re
from typing import Any

from playwright.sync_api import Browser, Locator, Page, Request, StorageState, expect

from tests.browser.acting import WAIT_MS, answers, open_session, said, send
from tests.browser.conftest import printed_address, tab
from tests.e2e.serving import Serving, wait_until

# As if somebody looked at another tab.
HIDE = """state => {
  Object.defineProperty(document, 'visibilityState', {value: state, configurable: true});
  document.dispatchEvent(new Event('visibilitychange'));
}"""
# A file arrives as browsers say it: in the data of a paste or of a drop.
ARRIVES = """(box, [kind, name]) => {
  const data = new DataTransfer();
  data.items.add(new File(['1,2'], name, { type: 'text/csv' }));
  const about = { bubbles: true, cancelable: true };
  if (kind === 'paste') box.dispatchEvent(new ClipboardEvent(kind, { ...about, clipboardData: data }));
  else box.dispatchEvent(new DragEvent(kind, { ...about, dataTransfer: data }));
}"""
COPIED = """async () => {
  for (;;) {
    const text = await navigator.clipboard.readText();
    if (text !== '') return text;
    await new Promise(resolve => setTimeout(resolve, 50));
  }
}"""
SIZE = """src => new Promise((resolve, reject) => {
  const image = new Image();
  image.onload = () => resolve(`${image.naturalWidth}x${image.naturalHeight}`);
  image.onerror = () => reject(new Error(src));
  image.src = src;
})"""


def row(page: Page, session: str) -> Locator:
    return page.locator(f'[data-testid="conversation-item"][data-session-id="{session}"]')


def choose(page: Page, session: str, name: str) -> None:
    """From the menu of a conversation in the list."""
    row(page, session).hover()
    row(page, session).get_by_test_id("entry-menu").click()
    page.get_by_role("menuitem", name=name, exact=True).click()


def test_an_archived_conversation_leaves_the_list_and_comes_back_from_the_archive(page: Page, lasting: Serving) -> None:
    session = lasting.new_session()
    lasting.post(session, "put me away")
    expect(row(page, session)).to_be_visible(timeout=WAIT_MS)
    choose(page, session, "Archive")
    expect(row(page, session)).to_have_count(0, timeout=WAIT_MS)
    expect(page.get_by_test_id("toast")).to_contain_text("Archived.", timeout=WAIT_MS)
    page.get_by_test_id("settings").click()
    page.get_by_test_id("archived").click()
    expect(row(page, session)).to_contain_text("put me away", timeout=WAIT_MS)
    assert lasting.session(session)["archived"] is True
    choose(page, session, "Unarchive")
    expect(row(page, session)).to_have_count(0, timeout=WAIT_MS)
    page.get_by_role("button", name="Back to the list").click()
    expect(row(page, session)).to_be_visible(timeout=WAIT_MS)
    choose(page, session, "Archive")
    expect(row(page, session)).to_have_count(0, timeout=WAIT_MS)
    page.get_by_test_id("toast").get_by_role("button", name="Undo").click()
    expect(row(page, session)).to_be_visible(timeout=WAIT_MS)


def test_a_pinned_conversation_stands_above_newer_ones(page: Page, lasting: Serving) -> None:
    session = lasting.new_session()
    expect(row(page, session)).to_be_visible(timeout=WAIT_MS)
    pinned = page.get_by_role("region", name="Pinned", exact=True)
    choose(page, session, "Pin")
    expect(pinned.locator(f'[data-session-id="{session}"]')).to_have_count(1, timeout=WAIT_MS)
    newer = lasting.new_session()
    expect(row(page, newer)).to_be_visible(timeout=WAIT_MS)
    page.reload()
    expect(pinned.locator(f'[data-session-id="{session}"]')).to_have_count(1, timeout=WAIT_MS)
    choose(page, session, "Unpin")
    expect(pinned.locator(f'[data-session-id="{session}"]')).to_have_count(0, timeout=WAIT_MS)


def test_the_list_hides_in_every_room_and_stays_hidden(page: Page, lasting: Serving) -> None:
    """On a new conversation, in an open one and in operations, with the focus where it can be shown again."""
    hide, show = page.get_by_test_id("hide-list"), page.get_by_test_id("show-list")
    session = lasting.new_session()
    for address in ("/", f"/s/{session}", "/operations"):
        page.goto(lasting.url + address)
        hide.click()
        expect(page.locator(".side")).to_be_hidden()
        expect(show).to_be_focused()
        page.reload()
        expect(show).to_be_visible(timeout=WAIT_MS)
        expect(page.locator(".side")).to_be_hidden()
        show.click()
        expect(page.locator(".side")).to_be_visible()
        expect(hide).to_be_focused()
    page.set_viewport_size({"width": 390, "height": 780})
    page.goto(lasting.url)
    show.click()
    expect(page.get_by_test_id("new-conversation")).to_be_visible()
    expect(hide).to_be_hidden()  # There it is a drawer, which is closed.


def test_a_chosen_theme_counts_over_the_systems_and_lasts(page: Page) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme="light")
    light = page.evaluate(ground)
    page.get_by_test_id("settings").click()
    page.get_by_test_id("theme-dark").click()
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    page.get_by_test_id("composer").wait_for()
    assert page.evaluate(ground) == dark
    page.get_by_test_id("settings").click()
    expect(page.get_by_test_id("theme-dark")).to_have_attribute("aria-checked", "true")
    page.get_by_test_id("theme-system").click()
    assert page.evaluate(ground) == light


def test_the_first_run_offers_three_things_to_try_and_names_the_process_to_kill(own_page: Page, serving: Serving) -> None:
    tries = own_page.get_by_test_id("suggestion")
    expect(tries).to_have_count(3, timeout=WAIT_MS)
    expect(own_page.get_by_test_id("kill")).to_have_text(f"kill -9 {serving.pid}", timeout=WAIT_MS)
    tries.last.click()
    expect(answers(own_page).first).to_contain_text("1 2", timeout=WAIT_MS)
    expect(own_page.get_by_test_id("toast")).to_contain_text(f"kill -9 {serving.pid}")
    own_page.get_by_test_id("stop").click()
    own_page.get_by_test_id("new-conversation").click()
    tries.nth(1).click()
    expect(own_page.get_by_test_id("question")).to_contain_text("Which colour is the sea today?", timeout=WAIT_MS)
    own_page.get_by_test_id("new-conversation").click()
    tries.first.click()
    expect(own_page.get_by_test_id("tool-card").first).to_have_attribute("data-outcome", "done", timeout=WAIT_MS)


def test_the_page_can_be_installed(page: Page, lasting: Serving) -> None:
    """With an identity, and with icons of the sizes that phones and desktops ask for."""
    manifest: dict[str, Any] = page.evaluate("async () => (await fetch(document.querySelector('link[rel=manifest]').href)).json()")
    assert (manifest["id"], manifest["start_url"], manifest["display"]) == ("/", "/", "standalone")
    icons = {(icon["sizes"], icon["purpose"]): icon["src"] for icon in manifest["icons"] if icon["type"] == "image/png"}
    assert set(icons) == {("192x192", "any"), ("512x512", "any"), ("512x512", "maskable")}
    for (size, _), src in icons.items():
        assert page.evaluate(SIZE, src) == size
    assert page.evaluate(SIZE, page.locator('link[rel="apple-touch-icon"]').get_attribute("href")) == "180x180"


def test_a_file_that_is_pasted_or_dropped_goes_along_with_the_message(page: Page) -> None:
    page.get_by_test_id("composer").evaluate(ARRIVES, ["paste", "pasted.csv"])
    page.locator("form.composer").evaluate(ARRIVES, ["drop", "dropped.csv"])
    files = page.get_by_test_id("files").get_by_test_id("file")
    expect(files).to_have_text([re.compile("pasted.csv"), re.compile("dropped.csv")])
    expect(page.get_by_test_id("send")).to_be_enabled(timeout=WAIT_MS)  # Once both are uploaded.
    send(page, "two files")
    expect(answers(page).first).to_contain_text("dropped.csv", timeout=WAIT_MS)
    expect(said(page, "complete").first.get_by_test_id("attachment")).to_have_count(2)


def test_what_was_said_is_copied_as_it_was_written_and_quoted_into_the_message_field(page: Page, lasting: Serving) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=lasting.url)
    text = "**two**\nlines"
    session = lasting.new_session()
    lasting.post(session, text)
    page.goto(f"{lasting.url}/s/{session}")
    expect(answers(page).first).to_have_attribute("data-status", "complete", timeout=WAIT_MS)
    mine = said(page, "complete").first
    mine.hover()
    mine.get_by_test_id("copy").click()
    assert page.evaluate(COPIED) == text
    mine.get_by_test_id("quote").click()
    expect(page.get_by_test_id("composer")).to_have_value("> **two**\n> lines\n\n")
    expect(page.get_by_test_id("composer")).to_be_focused()


def test_a_restart_and_a_stop_ask_first_and_say_what_will_happen(browser: Browser, serving: Serving) -> None:
    """C1: nothing happens without a yes; a restart hands over, and after a stop nobody answers."""
    with tab(browser) as page:
        page.goto(printed_address(serving))
        page.get_by_test_id("composer").wait_for()
        send(page, "hello")
        expect(answers(page)).to_have_count(1, timeout=WAIT_MS)
        open_session(page)
        page.goto(serving.url + "/operations")
        confirm, sentence = page.get_by_test_id("confirm"), page.get_by_test_id("state-sentence")
        before = serving.pid
        expect(sentence).to_contain_text(str(before), timeout=WAIT_MS)
        for button in ("restart", "stop-gateway"):
            page.get_by_test_id(button).click()
            expect(confirm).to_be_visible()
            page.keyboard.press("Escape")
            expect(confirm).to_be_hidden()
        assert serving.pid == before
        page.get_by_test_id("restart").click()
        page.get_by_test_id("confirm-yes").click()
        wait_until(lambda: serving.pid != before)
        expect(sentence).to_contain_text(str(serving.pid), timeout=WAIT_MS)
        expect(page.get_by_test_id("stop-gateway")).to_be_enabled(timeout=WAIT_MS)
        page.get_by_test_id("stop-gateway").click()
        page.get_by_test_id("confirm-yes").click()
        expect(page.get_by_test_id("away")).to_contain_text("Holdfast is not answering.", timeout=WAIT_MS)


def test_a_tab_that_nobody_looks_at_gives_its_connection_back_and_asks_again_when_it_is_seen(
    browser: Browser, lasting: Serving, signed_in: StorageState
) -> None:
    """Browsers allow only a few connections to a server: after a minute the tabs in front can have it."""
    with tab(browser, signed_in, service_workers="block") as page:
        page.clock.install()
        page.goto(lasting.url)
        expect(page.get_by_test_id("connection")).to_have_attribute("data-state", "live", timeout=WAIT_MS)
        streams: list[Request] = []
        page.on("request", lambda request: streams.append(request) if "/api/events" in request.url else None)
        page.on("requestfailed", lambda request: streams.remove(request) if request in streams else None)
        page.reload()  # From here on they are counted.
        expect(page.get_by_test_id("connection")).to_have_attribute("data-state", "live", timeout=WAIT_MS)
        assert len(streams) == 1
        page.evaluate(HIDE, "hidden")
        page.clock.run_for(5_000)
        assert len(streams) == 1
        for _ in range(3):  # And it stays so.
            page.clock.run_for(60_000)
            page.wait_for_timeout(200)
            assert streams == []
        page.evaluate(HIDE, "visible")
        expect(page.get_by_test_id("connection")).to_have_attribute("data-state", "live", timeout=WAIT_MS)
        assert len(streams) == 1


def test_what_becomes_of_an_answer_is_said_aloud_once_and_not_its_pieces(page: Page) -> None:
    """For who hears the page: one polite line; the answer itself is silent while it grows."""
    send(page, "count 40 0.05")
    expect(answers(page).first.locator(".answer-body")).to_have_attribute("aria-live", "off", timeout=WAIT_MS)
    line = page.get_by_test_id("announcer")
    expect(line).to_have_text("The answer is finished.", timeout=WAIT_MS)
    assert line.get_attribute("role") == "status"
    expect(page.get_by_role("log")).to_have_attribute("aria-relevant", "additions")
    send(page, "ask Which way?")
    expect(line).to_contain_text("Which way?", timeout=WAIT_MS)
