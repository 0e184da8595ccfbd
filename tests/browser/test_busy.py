"""What a person does while an answer is being written: queue, steer, interrupt; and files that go along, either way."""

from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.browser.acting import WAIT_MS, answers, open_session, said, send
from tests.browser.conftest import printed_address, tab
from tests.browser.test_parts import picture
from tests.e2e.models import ModelProcess, asking
from tests.e2e.serving import Serving
from tests.fakes.models.script import Reply, Script, call, text


def test_a_message_steers_the_answer_that_is_being_written(page: Page) -> None:
    """Chosen without a mouse; the message stands in the answer that took it, and the next one is queued again."""
    send(page, "count 200 0.05")
    expect(answers(page).first).to_contain_text("3", timeout=WAIT_MS)
    expect(page.get_by_test_id("mode-queue")).to_be_checked()
    page.get_by_test_id("mode-queue").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_test_id("modes-hint")).to_contain_text("goes to the answer that is being written")
    send(page, "20")
    expect(page.get_by_test_id("mode-queue")).to_be_checked()
    expect(answers(page).first.locator('[data-role="user"]')).to_contain_text("20", timeout=WAIT_MS)
    expect(page.get_by_test_id("modes")).to_have_count(0, timeout=WAIT_MS)


def test_a_message_interrupts_what_runs_and_is_answered_before_those_that_wait(page: Page) -> None:
    send(page, "hang")
    expect(answers(page).first).to_contain_text("Hanging", timeout=WAIT_MS)
    send(page, "later")
    expect(page.get_by_text("waiting for its turn")).to_be_visible(timeout=WAIT_MS)
    page.get_by_test_id("mode-interrupt").check()
    expect(page.get_by_test_id("composer")).to_have_attribute("placeholder", "Say what to do instead")
    send(page, "now")
    expect(page.get_by_test_id("turn-end")).to_have_text("Stopped: interrupted by a new message.", timeout=WAIT_MS)
    expect(answers(page).nth(1)).to_contain_text("You said: now", timeout=WAIT_MS)
    expect(answers(page).nth(2)).to_contain_text("You said: later", timeout=WAIT_MS)


def test_an_edited_message_has_its_new_words_at_once_and_after_loading(page: Page, lasting: Serving) -> None:
    """P7"""
    send(page, "teh words")
    expect(answers(page).first).to_contain_text("You said: teh words", timeout=WAIT_MS)
    session = open_session(page)
    message_id = lasting.session(session)["messages"][0]["id"]
    with lasting.client() as client:
        answer = client.patch(f"/api/sessions/{session}/messages/{message_id}", json={"text": "the words"})
        assert answer.status_code == 200, answer.text
    expect(said(page, "complete").first).to_contain_text("the words", timeout=WAIT_MS)
    expect(said(page, "complete").first).to_contain_text("edited")
    page.reload()
    expect(said(page, "complete").first).to_contain_text("edited", timeout=WAIT_MS)


def test_files_go_along_with_a_message_and_one_that_could_not_be_uploaded_is_kept(own_page: Page, serving: Serving) -> None:
    """P1: the upload is tried again under its own name when the server is back; a message needs no words."""
    sea = {"name": "sea.png", "mimeType": "image/png", "buffer": picture()}
    own_page.get_by_test_id("attach-files").set_input_files(sea)  # type: ignore[arg-type]
    files = own_page.get_by_test_id("files")
    expect(files).to_contain_text("sea.png")
    expect(own_page.get_by_test_id("send")).to_be_enabled(timeout=WAIT_MS)
    serving.kill()
    own_page.get_by_test_id("attach-files").set_input_files({"name": "a.csv", "mimeType": "text/csv", "buffer": b"1,2"})
    expect(files).to_contain_text("waits for Holdfast", timeout=WAIT_MS)
    expect(own_page.get_by_test_id("send")).to_be_disabled()
    serving.start()
    expect(own_page.get_by_test_id("send")).to_be_enabled(timeout=WAIT_MS)
    own_page.get_by_test_id("send").click()
    expect(files).to_have_count(0)
    attached = said(own_page, "complete").first.get_by_test_id("attachment")
    expect(attached).to_have_count(2, timeout=WAIT_MS)
    expect(own_page.locator(".picture img")).to_have_js_property("naturalWidth", 60, timeout=WAIT_MS)
    expect(answers(own_page).first).to_contain_text("a.csv", timeout=WAIT_MS)
    open_session(own_page)
    expect(own_page.get_by_role("heading", level=1)).to_have_text("sea.png")
    own_page.reload()
    expect(own_page.get_by_role("heading", level=1)).to_have_text("sea.png, a.csv", timeout=WAIT_MS)


def test_what_a_tool_attaches_is_drawn_once(browser: Browser, tmp_path: Path) -> None:
    script = Script(by="steps", replies=(Reply(say=(call("attach_file", {"path": "sea.png"}),)), Reply(say=text("There it is."))))
    with ModelProcess(tmp_path / "model", script) as server, asking(tmp_path / "home", server, policy_allow="attach_file") as serving:
        (serving.folder / "sea.png").write_bytes(picture())
        with tab(browser) as page:
            page.goto(printed_address(serving))
            send(page, "Show me the sea")
            expect(answers(page).first).to_contain_text("There it is.", timeout=WAIT_MS)
            expect(page.get_by_test_id("answer-cost")).to_be_visible(timeout=WAIT_MS)
            expect(answers(page).locator(".picture img")).to_have_js_property("naturalWidth", 60, timeout=WAIT_MS)
            page.reload()
            expect(answers(page).locator(".picture img")).to_have_js_property("naturalWidth", 60, timeout=WAIT_MS)
