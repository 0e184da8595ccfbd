"""What a person sees of suspensions, refusals, commands and safe mode, and what the buttons beside them do."""

import re

from playwright.sync_api import Page, expect

from holdfast.core.commands import COMMANDS
from tests.browser.acting import WAIT_MS, answers, go_to, notices, open_session, said, send
from tests.e2e.serving import Serving


def suspend(serving: Serving, session: str) -> None:
    with serving.client() as client:
        answer = client.post(f"/api/sessions/{session}/suspend")
        assert answer.status_code == 200, answer.text


def test_a_suspended_conversation_says_so_and_is_resumed_where_it_stood(page: Page, lasting: Serving) -> None:
    """A14: nothing is lost by a suspension; Resume lifts it, and the turn that it cut goes on."""
    send(page, "count 40 0.05")
    expect(answers(page).first).to_contain_text("1 2 3", timeout=WAIT_MS)
    suspend(lasting, open_session(page))
    bar = page.get_by_test_id("standing")
    expect(bar).to_have_attribute("data-kind", "suspended", timeout=WAIT_MS)
    expect(bar).to_contain_text("This conversation is suspended. Resume continues it; a message starts a new one.")
    expect(page.get_by_test_id("interruption")).to_have_attribute("data-rule", "R1", timeout=WAIT_MS)
    expect(page.get_by_test_id("decision")).to_contain_text("it waits until you resume it")
    expect(page.get_by_test_id("stop")).to_have_count(0)
    page.get_by_test_id("resume").click()
    expect(bar).to_have_count(0, timeout=WAIT_MS)
    expect(answers(page).first).to_contain_text("39 40", timeout=WAIT_MS)
    expect(page.get_by_test_id("interruption")).to_have_attribute("data-rule", "R9")


def test_what_is_written_to_a_suspended_conversation_begins_a_new_one_and_the_way_back_is_shown(page: Page, lasting: Serving) -> None:
    """A14: the page follows to the new conversation; the old one is readable and can be resumed."""
    send(page, "the first one")
    expect(answers(page).first).to_contain_text("the first one", timeout=WAIT_MS)
    old = open_session(page)
    suspend(lasting, old)
    expect(page.get_by_test_id("standing")).to_be_visible(timeout=WAIT_MS)
    send(page, "the second one")
    expect(answers(page).first).to_contain_text("the second one", timeout=WAIT_MS)
    assert open_session(page) != old
    expect(notices(page).first).to_contain_text("the previous one was suspended")
    go_to(page, old)
    expect(answers(page).first).to_contain_text("the first one", timeout=WAIT_MS)
    expect(page.get_by_test_id("standing")).to_contain_text("suspended, and a newer one replaced it", timeout=WAIT_MS)
    page.get_by_test_id("resume").click()
    expect(page.get_by_test_id("standing")).to_have_count(0, timeout=WAIT_MS)
    send(page, "and on")
    expect(answers(page).nth(1)).to_contain_text("and on", timeout=WAIT_MS)
    assert open_session(page) == old


def test_a_message_that_waited_when_its_conversation_was_left_is_shown_as_refused_and_can_be_written_again(page: Page) -> None:
    """A20, A22: `/new` stops the turn and refuses what waits, with its words; the page goes along, and the way back shows it."""
    send(page, "hang")
    expect(answers(page).first).to_contain_text("Hanging", timeout=WAIT_MS)
    send(page, "still to be said")
    expect(page.get_by_text("waiting for its turn")).to_be_visible(timeout=WAIT_MS)
    old = open_session(page)
    send(page, "/new")
    expect(notices(page).first).to_contain_text("This is a new conversation, because you asked for one", timeout=WAIT_MS)
    expect(said(page, "command")).to_contain_text("/new")
    go_to(page, old)
    expect(said(page, "refused")).to_contain_text("still to be said", timeout=WAIT_MS)
    expect(notices(page).first).to_contain_text("This message was not answered")
    expect(page.get_by_test_id("standing")).to_have_attribute("data-kind", "left", timeout=WAIT_MS)
    page.get_by_test_id("put-back").click()
    expect(page.get_by_test_id("composer")).to_have_value("still to be said")
    expect(page.get_by_test_id("composer")).to_be_focused()


def test_stop_typed_in_the_message_field_stops_a_running_command(page: Page) -> None:
    """A21: chosen from the list that a slash opens, without a mouse; the turn ends long before its command would."""
    send(page, "run sleep 60")
    expect(page.get_by_test_id("tool-card").first).to_have_attribute("data-outcome", "running", timeout=WAIT_MS)
    composer = page.get_by_test_id("composer")
    composer.press_sequentially("/st")
    expect(page.get_by_test_id("command")).to_have_count(3)
    composer.press("ArrowDown")
    expect(page.locator('[data-testid="command"][aria-selected="true"]')).to_have_attribute("data-name", "status")
    composer.press("ArrowUp")
    composer.press("Tab")
    expect(composer).to_have_value("/stop")
    expect(page.get_by_test_id("commands")).to_have_count(0)
    composer.press("Enter")
    expect(page.get_by_test_id("turn-end")).to_have_attribute("data-outcome", "cancelled", timeout=30_000)
    expect(notices(page)).to_have_text("Stopped.")
    expect(said(page, "command")).to_have_count(1)


def test_commands_are_offered_in_the_language_of_the_page(page: Page) -> None:
    """Each of them: the server says what they do in English."""
    page.evaluate("localStorage['holdfast.language'] = 'de'")
    page.reload()
    page.get_by_label("Nachricht", exact=True).fill("/")
    offered = page.get_by_test_id("command")
    expect(offered).to_have_count(len(COMMANDS), timeout=WAIT_MS)
    for name, usage in COMMANDS.items():
        words = page.locator(f'[data-testid="command"][data-name="{name}"]')
        expect(words.locator("code")).to_have_text(re.compile(rf"^/{name}\b"))
        expect(words.locator("span")).not_to_have_text(usage.sentence)
    expect(offered.first).to_contain_text("Stoppt, was läuft.")


def test_escape_closes_the_list_of_commands_and_leaves_the_turn_alone(page: Page) -> None:
    """A slash that is meant as one stays a slash."""
    send(page, "hang")
    expect(page.get_by_test_id("stop")).to_be_visible(timeout=WAIT_MS)
    composer = page.get_by_test_id("composer")
    composer.press_sequentially("/")
    expect(page.get_by_test_id("command")).to_have_count(len(COMMANDS))
    composer.press("Escape")
    expect(page.get_by_test_id("commands")).to_have_count(0)
    expect(composer).to_have_value("/")
    expect(page.get_by_test_id("stop")).to_be_enabled()


def test_safe_mode_holds_what_was_cut_until_resume_all_and_a_stuck_conversation_stays_suspended(own_page: Page, serving: Serving) -> None:
    """B14, A17, R2, R7: three starts in a row died without a completed turn, and one more, for which a conversation was suspended."""
    send(own_page, "count 4000 0.05")
    expect(answers(own_page).first).to_contain_text("1 2", timeout=WAIT_MS)
    stuck, cuts = open_session(own_page), own_page.get_by_test_id("interruption")
    for count in (1, 2):
        serving.kill()
        serving.start()
        expect(cuts).to_have_count(count, timeout=WAIT_MS)
        expect(cuts.last).to_have_attribute("data-rule", "R9", timeout=WAIT_MS)
    serving.kill()
    serving.start()
    expect(cuts.last).to_have_attribute("data-rule", "R2", timeout=WAIT_MS)
    own_page.get_by_test_id("new-conversation").click()
    send(own_page, "count 40 0.05")
    expect(answers(own_page).first).to_contain_text("1 2", timeout=WAIT_MS)
    serving.kill()
    serving.start()
    banner, bar = own_page.get_by_test_id("safe-mode"), own_page.get_by_test_id("standing")
    expect(banner).to_contain_text("interrupted work is not resumed automatically", timeout=WAIT_MS)
    expect(bar).to_have_attribute("data-kind", "held", timeout=WAIT_MS)
    expect(cuts).to_have_attribute("data-rule", "R7")
    own_page.get_by_test_id("resume-all").click()
    expect(banner).to_have_count(0, timeout=WAIT_MS)
    expect(answers(own_page).first).to_contain_text("39 40", timeout=WAIT_MS)
    expect(cuts).to_have_attribute("data-rule", "R9")
    go_to(own_page, stuck)
    expect(bar).to_have_attribute("data-kind", "suspended", timeout=WAIT_MS)
    expect(cuts.last).to_contain_text("Interrupted too often, so the conversation is suspended.")
    expect(notices(own_page)).to_contain_text(
        "3 restarts in a row interrupted this conversation, so it is suspended. "
        "Send /resume to continue it, or a message to start a new conversation."
    )
    own_page.get_by_test_id("resume").click()
    expect(bar).to_have_count(0, timeout=WAIT_MS)
    expect(answers(own_page).nth(1)).to_contain_text("1 2 3", timeout=WAIT_MS)
