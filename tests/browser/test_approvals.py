"""Approvals as cards: shown whole, answered once, kept over reloads and kills, gone in every tab once they are answered."""

import re
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.acting import WAIT_MS, answers, said, send
from tests.browser.conftest import printed_address, tab
from tests.e2e.models import ModelProcess, asking
from tests.e2e.serving import Serving
from tests.fakes.models.script import Reply, Script, call, text

# From where to where the line beside it goes.
STRAND = """box => {
  const own = box.getBoundingClientRect(), line = getComputedStyle(box, '::before');
  return [own.top + parseFloat(line.top), own.bottom - parseFloat(line.bottom)];
}"""


def cards(page: Page) -> Locator:
    return page.get_by_test_id("approval")


def test_a_call_is_approved_once_or_always_or_denied_with_a_reason_and_the_conversation_says_so(page: Page) -> None:
    """R5: the card shows the tool, where it works, the whole command, and the pattern that "always" allows."""
    send(page, "approve echo one two")
    expect(page.get_by_test_id("approval-asks")).to_have_text("Run this command?", timeout=WAIT_MS)
    expect(page.get_by_test_id("approval-folder")).to_have_text(re.compile("^/"))
    expect(page.get_by_test_id("approval-arguments")).to_contain_text("echo one two")
    expect(page.get_by_test_id("approval-pattern")).to_have_text("terminal(echo *)")
    hung = page.get_by_test_id("asking")
    expect(hung.get_by_test_id("approval")).to_have_count(1)
    expect(hung.locator("> .mark")).to_have_count(1)  # Nothing was said yet: the strand of the turn begins here.
    page.get_by_test_id("deny-reason").fill("not now")
    page.get_by_test_id("deny").click()
    expect(answers(page).first).to_contain_text("The command was denied, or failed.", timeout=WAIT_MS)
    expect(page.get_by_test_id("tool-card").first).to_contain_text("not now")
    expect(cards(page)).to_have_count(0)
    answer = said(page, "complete").nth(1)
    expect(answer).to_contain_text("terminal: echo one two")
    expect(answer).to_contain_text("Denied: not now")
    expect(answer).to_contain_text("denied by you")
    send(page, "approve echo three")
    page.get_by_test_id("approve-always").click(timeout=WAIT_MS)
    expect(answers(page).nth(1)).to_contain_text("Done.", timeout=WAIT_MS)
    send(page, "approve echo four")
    expect(answers(page).nth(2)).to_contain_text("Done.", timeout=WAIT_MS)
    followed = page.get_by_role("log").inner_text()
    page.reload()
    expect(answers(page).nth(2)).to_contain_text("Done.", timeout=WAIT_MS)
    assert "Approved, and from now on in this conversation: terminal(echo *)" in followed
    expect(answer).to_contain_text("denied by you")


def test_what_was_allowed_for_good_is_shown_as_code_with_nothing_in_it_invisible(page: Page) -> None:
    """R5: in the conversation as on the card, while it is on its way, later, and after a reload; no markup of it counts."""
    send(page, "approve ./clean\u202e *all* `of` it")
    expected = page.get_by_test_id("approval-pattern").inner_text(timeout=WAIT_MS)
    assert "clean⟨U+202E⟩ *all* `of` it" in expected
    page.get_by_test_id("approve-always").click()
    allowed = said(page, "complete").get_by_test_id("allowed-pattern")
    for _ in range(2):
        expect(allowed).to_have_text(expected, timeout=WAIT_MS)
        assert allowed.evaluate("code => code.tagName") == "CODE"
        expect(said(page, "complete").nth(1)).to_contain_text(f"Approved, and from now on in this conversation: {expected}")
        page.reload()


def test_a_card_outlives_a_kill_and_what_is_clicked_while_nobody_answers_counts_once(own_page: Page, serving: Serving) -> None:
    """R5, P1, P5: approved while the server was away; the command runs once, and the other tab's card goes."""
    ran = serving.folder / "ran.txt"
    send(own_page, f"approve echo ran >> {ran}")
    expect(cards(own_page)).to_have_count(1, timeout=WAIT_MS)
    other = own_page.context.new_page()
    other.goto(own_page.url)
    expect(cards(other)).to_have_count(1, timeout=WAIT_MS)
    serving.kill()
    own_page.get_by_test_id("approve").click()
    expect(cards(own_page)).to_contain_text("Your answer is on its way.")
    expect(own_page.get_by_test_id("approve")).to_be_disabled()
    serving.start()
    for each in (own_page, other):
        expect(answers(each).first).to_contain_text("Done.", timeout=WAIT_MS)
        expect(cards(each)).to_have_count(0)
        expect(said(each, "complete").nth(1)).to_contain_text("approved by you")
    assert ran.read_text() == "ran\n"


def test_a_card_is_there_after_a_reload_and_goes_when_its_turn_is_stopped(page: Page) -> None:
    """A21: what can no longer be answered is no longer offered."""
    send(page, "approve echo never")
    expect(cards(page)).to_have_count(1, timeout=WAIT_MS)
    page.reload()
    expect(cards(page)).to_contain_text("echo never", timeout=WAIT_MS)
    page.get_by_test_id("stop").click()
    expect(cards(page)).to_have_count(0, timeout=WAIT_MS)
    expect(page.get_by_test_id("turn-end")).to_contain_text("Stopped.")


def test_what_is_to_be_approved_is_shown_whole_and_nothing_in_it_is_invisible(page: Page) -> None:
    """A long command scrolls; characters that hide or turn others are written out; no markup of it counts."""
    send(page, "approve echo safe \u202e ```` <b>bold</b> " + "word " * 2000 + "the end")
    shown = page.get_by_test_id("approval-arguments").locator("pre")
    expect(shown).to_contain_text("⟨U+202E⟩ ```` <b>bold</b> word", timeout=WAIT_MS)
    expect(shown).to_contain_text("word the end")
    assert shown.evaluate("box => box.scrollHeight > box.clientHeight && getComputedStyle(box).overflowY === 'auto'")
    page.set_viewport_size({"width": 390, "height": 780})
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.get_by_test_id("approve").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_test_id("deny-reason")).to_be_focused()
    page.keyboard.press("Enter")
    expect(cards(page)).to_have_count(0, timeout=WAIT_MS)


def test_the_calls_of_one_step_are_asked_together(browser: Browser, tmp_path: Path) -> None:
    """R5: each has its card; the turn continues after the last one."""
    step = Reply(say=(*text("Two things."), *(call("terminal", {"command": f"echo {word}"}, id=word) for word in ("one", "two", "three"))))
    script = Script(by="steps", replies=(step, Reply(say=text("All done."))))
    with (
        ModelProcess(tmp_path / "model", script) as server,
        asking(tmp_path / "home", server, policy_allow="", policy_ask="terminal") as serving,
        tab(browser) as page,
    ):
        page.goto(printed_address(serving))
        send(page, "Do it")
        expect(cards(page)).to_have_count(3, timeout=WAIT_MS)
        expect(page.get_by_test_id("approvals")).to_contain_text("3 calls wait for your approval.")
        hung, answer = page.get_by_test_id("asking"), answers(page).first
        expect(hung.locator("> .mark")).to_have_count(0)  # The strand of the answer continues along the cards, without a gap.
        (_, above), (below, _) = answer.evaluate(STRAND), hung.evaluate(STRAND)
        assert below <= above + 1, (above, below)
        cards(page).nth(1).get_by_test_id("deny").click()
        expect(cards(page)).to_have_count(2, timeout=WAIT_MS)
        page.get_by_test_id("approve-all").click()
        expect(answers(page).first).to_contain_text("All done.", timeout=WAIT_MS)
        outcomes = [card.get_attribute("data-outcome") for card in page.get_by_test_id("tool-card").all()]
        assert outcomes == ["done", "failed", "done"]
