"""What happened in a turn and why, next to the conversation; the operator's view; and a reload while the server is away."""

import os
import re
import signal

from playwright.sync_api import Page, expect

from tests.browser.acting import WAIT_MS, answers, send
from tests.e2e.serving import Serving


def test_an_interruption_says_what_happened_and_behind_it_stand_the_rules(own_page: Page, serving: Serving) -> None:
    """F1 to F9 as shown on the page: human words in the text, the rule and its facts behind a link; the same for the operator."""
    send(own_page, "count 40 0.05")
    expect(answers(own_page).first).to_contain_text("1 2 3", timeout=WAIT_MS)
    serving.kill()
    serving.start()
    expect(answers(own_page).first).to_contain_text("39 40", timeout=WAIT_MS)
    expect(answers(own_page).first).to_have_attribute("data-status", "complete", timeout=WAIT_MS)
    assert "R9" not in own_page.get_by_role("log").inner_text()
    own_page.get_by_test_id("what-happened").click()
    details = own_page.get_by_test_id("details")
    expect(details.get_by_test_id("turn-summary")).to_contain_text(
        "in 2 attempts. Interrupted once by a crash; it continued", timeout=WAIT_MS
    )
    spans = details.get_by_test_id("process-span")
    expect(spans).to_have_count(2)
    expect(details.get_by_test_id("nobody")).to_have_count(1)
    resumed = details.locator('.ev[data-kind="resumed"]')
    expect(resumed).to_contain_text(f"process {serving.pid}")
    kinds = [event.get_attribute("data-kind") for event in details.locator(".ev").all()]
    assert kinds == ["started", "interrupted", "resumed", "written", "ended"], kinds
    expect(details.get_by_test_id("why").locator(".hit")).to_contain_text("R9")
    details.get_by_role("tab", name="Log").click()
    expect(details).to_contain_text("turn.interrupted")
    own_page.get_by_test_id("close-details").click()
    expect(own_page.get_by_test_id("details-button")).to_be_focused()
    own_page.get_by_test_id("gate").click()
    expect(own_page.get_by_test_id("state-sentence")).to_contain_text("The process before it crashed.", timeout=WAIT_MS)
    expect(own_page.get_by_test_id("log")).to_contain_text(re.compile(r"interrupted\s*by a crash"), timeout=WAIT_MS)
    expect(own_page.get_by_test_id("needs")).to_contain_text("Nothing waits for you.")


def test_an_operator_sees_what_runs_and_who_is_waited_for_and_a_pause_asks_first(own_page: Page, serving: Serving) -> None:
    send(own_page, "ask Which colour?")
    expect(own_page.get_by_test_id("question")).to_be_visible(timeout=WAIT_MS)
    own_page.get_by_test_id("new-conversation").click()
    send(own_page, "hang")
    expect(answers(own_page).first).to_contain_text("Hanging", timeout=WAIT_MS)
    own_page.get_by_test_id("gate").click()
    expect(own_page.get_by_test_id("running-turn")).to_contain_text("hang", timeout=WAIT_MS)
    expect(own_page.get_by_test_id("needed")).to_contain_text("Which colour?", timeout=WAIT_MS)
    own_page.get_by_test_id("pause").click()
    dialog = own_page.get_by_test_id("confirm")
    expect(dialog).to_contain_text("The turn that runs is finished.")
    own_page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert serving.status()["gateway_state"] == "running"
    own_page.get_by_test_id("pause").click()
    own_page.get_by_test_id("confirm-yes").click()
    expect(own_page.get_by_test_id("state-sentence")).to_contain_text("Paused by owner until", timeout=WAIT_MS)
    own_page.get_by_test_id("unpause").click()
    expect(own_page.get_by_test_id("pause")).to_be_visible(timeout=WAIT_MS)
    own_page.get_by_test_id("running-turn").get_by_role("button", name="Stop").click()
    expect(own_page.get_by_test_id("running")).to_contain_text("Nothing runs.", timeout=WAIT_MS)


def test_a_reload_while_the_server_is_away_shows_the_page_and_what_was_there(own_page: Page, serving: Serving) -> None:
    """P1: the shell, the last conversations, and what waits to be sent, files too, which is sent once when the server is back. So does one
    whose server hangs.
    """
    own_page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    own_page.reload()
    send(own_page, "before the storm")
    expect(answers(own_page)).to_have_count(1, timeout=WAIT_MS)
    own_page.wait_for_function("caches.match('/').then(found => found !== undefined)")
    own_page.wait_for_timeout(2000)  # What is there now is put aside a moment later.
    serving.kill()
    send(own_page, "into the storm")
    own_page.get_by_test_id("attach-files").set_input_files({"name": "chart.txt", "mimeType": "text/plain", "buffer": b"here"})
    expect(own_page.get_by_test_id("files")).to_contain_text("waits for Holdfast", timeout=WAIT_MS)
    own_page.reload()
    expect(own_page.get_by_test_id("away")).to_contain_text("Holdfast is not answering.", timeout=WAIT_MS)
    expect(answers(own_page).first).to_contain_text("before the storm", timeout=WAIT_MS)
    expect(own_page.get_by_role("heading", name="before the storm")).to_be_visible()
    expect(own_page.get_by_text("into the storm", exact=True)).to_be_visible()
    expect(own_page.get_by_test_id("conversation-item")).to_have_count(1, timeout=WAIT_MS)
    serving.start()
    expect(answers(own_page)).to_have_count(2, timeout=WAIT_MS)
    expect(answers(own_page).nth(1)).to_contain_text("You said: into the storm")
    expect(own_page.get_by_test_id("files")).to_have_text(re.compile("^chart.txt *4 B$"), timeout=WAIT_MS)
    send(own_page, "and the chart")
    expect(own_page.get_by_test_id("attachment")).to_have_count(1, timeout=WAIT_MS)
    expect(own_page.get_by_test_id("files")).to_have_count(0)
    expect(answers(own_page)).to_have_count(3, timeout=WAIT_MS)
    os.kill(serving.pid, signal.SIGSTOP)  # It hangs: it takes every request and answers none.
    own_page.reload()
    expect(own_page.get_by_test_id("away")).to_contain_text("Holdfast is not answering.", timeout=WAIT_MS)
    expect(answers(own_page).first).to_contain_text("before the storm", timeout=10_000)
    os.kill(serving.pid, signal.SIGCONT)
    expect(own_page.get_by_test_id("connection")).to_have_attribute("data-state", "live", timeout=WAIT_MS)
    expect(answers(own_page)).to_have_count(3, timeout=WAIT_MS)
