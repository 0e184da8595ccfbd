"""The list of conversations and what can be done from it: find, rename, delete with undo, see what is unread; and drafts on two devices."""

import re

from playwright.sync_api import Browser, FilePayload, Locator, Page, StorageState, expect

from tests.browser.acting import WAIT_MS, answers, open_session, said, send
from tests.browser.conftest import tab
from tests.e2e.serving import Serving, wait_until


def item(page: Page, session: str) -> str:
    return f'[data-testid="conversation-item"][data-session-id="{session}"]'


def test_a_search_shows_where_the_words_are_and_leads_to_the_message(page: Page, lasting: Serving) -> None:
    """Grouped by conversation, with the finds marked; the message comes into view, also one far up."""
    send(page, "the zanzibar lighthouse")
    expect(answers(page).first).to_contain_text("zanzibar", timeout=WAIT_MS)
    session = open_session(page)
    with lasting.client() as client:
        for number in range(60):
            assert client.post(f"/api/sessions/{session}/messages", json={"text": f"/status {number}"}).status_code == 202
    expect(page.get_by_text("/status 59", exact=True)).to_be_visible(timeout=WAIT_MS)
    page.get_by_test_id("new-conversation").click()
    page.get_by_test_id("search").fill("zanzi")
    hit = page.locator(item(page, session)).get_by_test_id("hit").last
    expect(hit.locator("mark")).to_have_text("zanzibar", timeout=WAIT_MS)
    hit.click()
    expect(page).to_have_url(re.compile(session))
    expect(page.get_by_role("log").get_by_text("the zanzibar lighthouse", exact=True)).to_be_in_viewport(timeout=WAIT_MS)
    page.get_by_test_id("search").press("Escape")


def test_a_conversation_is_renamed_in_the_list_and_deleted_with_a_way_back(page: Page) -> None:
    """A28: until its time is over a deleted conversation comes back whole."""
    send(page, "to be deleted")
    expect(answers(page)).to_have_count(1, timeout=WAIT_MS)
    session = open_session(page)
    row = page.locator(item(page, session))
    row.hover()
    row.get_by_test_id("entry-menu").click()
    page.get_by_role("menuitem", name="Rename").press("Enter")
    page.get_by_test_id("rename-title").fill("A better name")
    page.get_by_test_id("rename-title").press("Enter")
    expect(row).to_contain_text("A better name", timeout=WAIT_MS)
    expect(page.get_by_role("heading", level=1)).to_have_text("A better name", timeout=WAIT_MS)
    row.hover()
    row.get_by_test_id("entry-menu").click()
    page.get_by_role("menuitem", name="Delete").click()
    expect(row).to_have_count(0, timeout=WAIT_MS)
    page.get_by_test_id("toast").get_by_role("button", name="Undo").click()
    expect(row).to_contain_text("A better name", timeout=WAIT_MS)
    expect(answers(page).first).to_contain_text("to be deleted", timeout=WAIT_MS)


def test_what_was_deleted_can_be_brought_back_long_after_the_toast_is_gone(page: Page, lasting: Serving) -> None:
    """A28: from the list of what was deleted, an archived conversation, too."""
    gone = [lasting.new_session() for _ in range(2)]
    with lasting.client() as client:
        for session, title in zip(gone, ("Lost and found", "Put away"), strict=True):
            client.patch(f"/api/sessions/{session}", json={"title": title, "archived": title == "Put away"})
            assert client.delete(f"/api/sessions/{session}").status_code == 200
    page.get_by_test_id("settings").click()
    page.get_by_test_id("recently-deleted").click()
    rows = page.get_by_test_id("deleted-item")
    lost, away = rows.filter(has_text="Lost and found"), rows.filter(has_text="Put away")
    expect(lost).to_have_count(1, timeout=WAIT_MS)
    expect(away).to_have_count(1)
    lost.get_by_test_id("bring-back").click()
    expect(page).to_have_url(re.compile(gone[0]), timeout=WAIT_MS)
    expect(lost).to_have_count(0, timeout=WAIT_MS)
    with lasting.client() as client:
        later = client.post("/api/sessions", json={"title": "Deleted meanwhile"}).json()["session_id"]
        client.delete(f"/api/sessions/{later}")
    expect(rows.filter(has_text="Deleted meanwhile")).to_have_count(1, timeout=WAIT_MS)  # The list is live.
    page.get_by_role("button", name="Back to the list").click()
    expect(page.locator(item(page, gone[0]))).to_contain_text("Lost and found", timeout=WAIT_MS)


def test_what_was_said_elsewhere_is_unread_until_it_is_seen(page: Page, lasting: Serving) -> None:
    """The list is live: no reload, no asking again and again."""
    session = lasting.new_session()
    with lasting.client() as client:
        client.post(f"/api/sessions/{session}/messages", json={"text": "from elsewhere"})
    row = page.locator(item(page, session))
    expect(row).to_have_attribute("data-unread", "true", timeout=WAIT_MS)
    expect(row).to_contain_text("You said: from elsewhere")
    row.locator("a").first.click()
    expect(answers(page).first).to_contain_text("from elsewhere", timeout=WAIT_MS)
    page.get_by_test_id("new-conversation").click()
    expect(row).to_have_attribute("data-unread", "false", timeout=WAIT_MS)


def test_what_is_typed_on_one_device_is_there_on_the_next(page: Page, browser: Browser, lasting: Serving, signed_in: StorageState) -> None:
    send(page, "hello")
    expect(answers(page)).to_have_count(1, timeout=WAIT_MS)
    with page.expect_response(lambda answer: answer.url.endswith("/draft") and answer.request.method == "PUT"):
        page.get_by_test_id("composer").fill("half a thought")
    with tab(browser, signed_in) as phone:
        phone.goto(page.url)
        expect(phone.get_by_test_id("composer")).to_have_value("half a thought", timeout=WAIT_MS)


def test_the_palette_finds_a_conversation_and_what_can_be_done_without_a_mouse(page: Page) -> None:
    send(page, "palette quokka")
    expect(answers(page)).to_have_count(1, timeout=WAIT_MS)
    session = open_session(page)
    page.keyboard.press("Control+k")
    page.get_by_test_id("palette-field").fill("new conv")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("composer")).to_be_focused()
    page.keyboard.press("Control+k")
    page.get_by_test_id("palette-field").fill("quokka")
    expect(page.get_by_test_id("palette-entry").first).to_contain_text("quokka")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(session))


def test_what_the_server_finds_late_does_not_take_the_place_of_a_chosen_action(page: Page, lasting: Serving) -> None:
    """Enter does what was chosen when the key went down, not what came from the server a moment before."""
    session = lasting.new_session()
    lasting.post(session, "/status of the keyboard")
    with lasting.client() as client:
        wait_until(lambda: bool(client.get("/api/search", params={"q": "keyboard"}).json()["hits"]))
    page.keyboard.press("Control+k")
    page.get_by_test_id("palette-field").fill("keyboard")
    entries = page.get_by_test_id("palette-entry")
    expect(entries).to_have_count(2, timeout=WAIT_MS)
    expect(entries.first).to_have_attribute("aria-selected", "true")
    expect(entries.first).to_have_text("Keyboard")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()


def test_a_message_that_waits_is_taken_back_into_the_message_field(page: Page) -> None:
    send(page, "hang")
    expect(answers(page).first).to_contain_text("Hanging", timeout=WAIT_MS)
    send(page, "better not")
    waiting = said(page, "complete").last
    expect(waiting).to_contain_text("waiting for its turn", timeout=WAIT_MS)
    waiting.hover()
    waiting.get_by_test_id("withdraw").click()
    expect(page.get_by_test_id("composer")).to_have_value("better not", timeout=WAIT_MS)
    expect(said(page, "refused")).to_contain_text("better not")
    page.get_by_test_id("stop").click()


def test_a_failed_answer_can_be_asked_for_again(page: Page) -> None:
    send(page, "fail")
    page.get_by_test_id("retry").click(timeout=WAIT_MS)
    expect(page.get_by_test_id("turn-end")).to_have_count(2, timeout=WAIT_MS)


def attach(page: Page, name: str, content: bytes = b"1,2") -> None:
    chosen: FilePayload = {"name": name, "mimeType": "text/csv", "buffer": content}
    page.get_by_test_id("attach-files").set_input_files(chosen)
    expect(page.get_by_test_id("files")).to_contain_text("B", timeout=WAIT_MS)  # Its size, once it is uploaded.
    expect(page.get_by_test_id("send")).to_be_enabled(timeout=WAIT_MS)


def test_asking_again_sends_the_request_with_its_own_files_and_leaves_the_message_field_alone(page: Page) -> None:
    """Not what was said to steer the turn, and not the files of the next message."""
    attach(page, "own.csv")
    send(page, "count 900 0.1")
    expect(answers(page).first).to_contain_text("1 2", timeout=WAIT_MS)
    page.get_by_test_id("mode-steer").check(force=True)
    send(page, "be quick")
    expect(answers(page).first).to_contain_text("be quick", timeout=WAIT_MS)  # It was taken.
    page.get_by_test_id("stop").click()
    expect(page.get_by_test_id("stop")).to_have_count(0, timeout=WAIT_MS)
    attach(page, "next.csv")
    page.get_by_test_id("composer").fill("what comes next")
    page.get_by_test_id("retry").click(timeout=WAIT_MS)
    expect(said(page, "complete").last).to_contain_text("count 900", timeout=WAIT_MS)
    expect(said(page, "complete").last.get_by_test_id("attachment")).to_have_text(re.compile("own.csv"), timeout=WAIT_MS)
    expect(page.get_by_test_id("composer")).to_have_value("what comes next")
    expect(page.get_by_test_id("files").get_by_test_id("file")).to_have_text([re.compile("next.csv")])
    page.get_by_test_id("stop").click()
    expect(page.get_by_test_id("stop")).to_have_count(0, timeout=WAIT_MS)


def test_a_message_that_is_taken_back_or_edited_keeps_its_files(page: Page) -> None:
    send(page, "hang")
    expect(answers(page).first).to_contain_text("Hanging", timeout=WAIT_MS)
    attach(page, "only.csv")
    page.get_by_test_id("send").click()  # No words, only a file.
    waiting = said(page, "complete").last
    expect(waiting).to_contain_text("waiting for its turn", timeout=WAIT_MS)
    waiting.hover()
    waiting.get_by_test_id("withdraw").click()
    files = page.get_by_test_id("files").get_by_test_id("file")
    expect(files).to_have_text([re.compile("only.csv")], timeout=WAIT_MS)
    page.get_by_test_id("stop").click()
    expect(page.get_by_test_id("stop")).to_have_count(0, timeout=WAIT_MS)
    send(page, "look")
    expect(answers(page).last).to_contain_text("only.csv", timeout=WAIT_MS)
    asked = said(page, "complete").last
    asked.hover()
    asked.get_by_test_id("edit").click()
    expect(page.get_by_test_id("composer")).to_have_value("look")
    expect(files).to_have_text([re.compile("only.csv")], timeout=WAIT_MS)


def titles(page: Page, group: str) -> Locator:
    return page.get_by_role("region", name=group, exact=True).locator(".entry .title")


def test_what_needs_somebody_or_is_pinned_is_listed_however_many_newer_ones_there_are(own_page: Page, serving: Serving) -> None:
    """After a reload, and as it happens."""
    with serving.client() as client:
        old = {
            name: client.post("/api/sessions", json={"title": name}).json()["session_id"] for name in ("asks", "pinned", "later", "plain")
        }
        serving.post(old["asks"], "ask Which colour?")
        serving.wait_for(old["asks"], state="waiting")
        client.patch(f"/api/sessions/{old['pinned']}", json={"pinned": True})
        for number in range(40):
            client.post("/api/sessions", json={"title": f"newer {number}"})
        own_page.reload()
        expect(titles(own_page, "Needs you")).to_have_text(["asks, unread"], timeout=WAIT_MS)
        expect(titles(own_page, "Pinned")).to_have_text(["pinned"])
        expect(titles(own_page, "Today")).to_have_count(30)
        client.patch(f"/api/sessions/{old['later']}", json={"pinned": True})
        expect(titles(own_page, "Pinned")).to_have_text(["pinned", "later"], timeout=WAIT_MS)
    own_page.locator(item(own_page, old["asks"])).locator("a").first.click()
    own_page.get_by_test_id("question-answer").fill("blue")
    own_page.get_by_test_id("question-answer").press("Enter")
    expect(titles(own_page, "Needs you")).to_have_count(0, timeout=WAIT_MS)
    expect(titles(own_page, "Today").first).to_have_text("asks", timeout=WAIT_MS)
    own_page.locator("nav.list").evaluate("box => { box.scrollTop = box.scrollHeight }")  # Which loads the rest.
    expect(own_page.get_by_test_id("conversation-item")).to_have_count(44, timeout=WAIT_MS)
