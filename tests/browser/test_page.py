"""What a person sees: send, stream, kill the server, bring it back, and the answer completes by itself."""

from playwright.sync_api import Browser, Page, expect

from tests.browser.acting import WAIT_MS, answers, open_session, send, words
from tests.e2e.command_line import holdfast
from tests.e2e.serving import Serving, hand_over

LAST = 60
NUMBERS = " ".join(str(number) for number in range(1, LAST + 1))


def test_a_message_is_answered_on_the_page(page: Page) -> None:
    """The first minute: type, Enter, an answer."""
    send(page, "hello there")
    expect(answers(page).first).to_contain_text("You said: hello there", timeout=WAIT_MS)
    expect(page.get_by_test_id("conversation-item").first).to_be_visible()


def test_the_answer_completes_by_itself_after_the_server_was_killed_and_came_back(own_page: Page, serving: Serving) -> None:
    """P7, R9: no reload; what was being typed is still there; the cut says what was decided and why, and a reload shows the same. So do
    another tab and a phone that were looking on.
    """
    send(own_page, f"count {LAST} 0.15")
    expect(answers(own_page).first).to_contain_text("1 2", timeout=WAIT_MS)
    open_session(own_page)
    tab, phone = own_page.context.new_page(), own_page.context.new_page()
    phone.set_viewport_size({"width": 390, "height": 780})
    for other in (tab, phone):
        other.goto(own_page.url)
        expect(answers(other).first).to_contain_text("1 2", timeout=WAIT_MS)
    own_page.get_by_test_id("composer").fill("half a thought")
    serving.kill()
    expect(own_page.get_by_test_id("connection")).to_have_attribute("data-state", "reconnecting", timeout=WAIT_MS)
    serving.start()
    expect(answers(own_page).first).to_contain_text(f"{LAST - 1} {LAST}", timeout=WAIT_MS)
    assert words(own_page) == NUMBERS
    first, second = answers(own_page).first.locator(".prose").all_inner_texts()
    assert first.startswith("1 2") and second.endswith(f" {LAST}"), "the interruption stands where it happened"
    expect(own_page.get_by_test_id("connection")).to_have_attribute("data-state", "live", timeout=WAIT_MS)
    expect(answers(own_page)).to_have_count(1)
    expect(own_page.get_by_test_id("interruption")).to_contain_text("Interrupted by a crash. What had been written is kept.")
    expect(own_page.get_by_test_id("interruption")).to_have_attribute("data-rule", "R9")
    expect(own_page.get_by_test_id("decision")).to_have_text("Continued where it stopped, attempt 2.")
    expect(own_page.get_by_test_id("composer")).to_have_value("half a thought")
    expect(own_page.get_by_test_id("stop")).to_have_count(0, timeout=WAIT_MS)
    followed = own_page.get_by_role("log").inner_text()
    for other in (tab, phone):
        expect(other.get_by_role("log")).to_have_text(followed, use_inner_text=True, timeout=WAIT_MS)
        other.close()
    own_page.reload()
    expect(answers(own_page).first).to_contain_text(f"{LAST - 1} {LAST}", timeout=WAIT_MS)
    assert own_page.get_by_role("log").inner_text() == followed


def test_a_hand_over_in_the_middle_of_an_answer_is_no_interruption(own_page: Page, serving: Serving) -> None:
    """P7: two tabs go over to the new process with their places; nothing is missing, doubled or called interrupted."""
    send(own_page, f"count {LAST} 0.05")
    expect(answers(own_page).first).to_contain_text("1 2", timeout=WAIT_MS)
    open_session(own_page)
    other = own_page.context.new_page()
    other.goto(own_page.url)
    before = serving.pid
    assert hand_over(serving) != before
    for each in (own_page, other):
        expect(answers(each).first).to_have_attribute("data-status", "complete", timeout=WAIT_MS)
        assert words(each) == NUMBERS
        expect(each.get_by_test_id("interruption")).to_have_count(0)
        expect(each.get_by_test_id("connection")).to_have_attribute("data-state", "live", timeout=WAIT_MS)
    send(other, "and you?")
    for each in (own_page, other):
        expect(answers(each).nth(1)).to_contain_text("You said: and you?", timeout=WAIT_MS)


def test_a_message_sent_while_the_server_is_away_is_kept_and_answered_once(own_page: Page, serving: Serving) -> None:
    """P1: kept by the page until it is acknowledged, sent again with the same id, answered once."""
    send(own_page, "first")
    expect(answers(own_page)).to_have_count(1, timeout=WAIT_MS)
    serving.kill()
    send(own_page, "sent into the void")
    serving.start()
    expect(answers(own_page)).to_have_count(2, timeout=WAIT_MS)
    expect(answers(own_page).nth(1)).to_contain_text("You said: sent into the void")
    expect(own_page.locator('[data-testid="message"][data-role="user"]')).to_have_count(2)


def test_two_tabs_show_the_same(page: Page) -> None:
    """P7: any number of tabs."""
    send(page, "count 20 0.05")
    expect(answers(page).first).to_contain_text("3", timeout=WAIT_MS)
    other = page.context.new_page()
    other.goto(page.url)
    whole = " ".join(str(number) for number in range(1, 21))
    for tab in (page, other):
        expect(answers(tab).first).to_contain_text(whole, timeout=WAIT_MS)
        expect(answers(tab)).to_have_count(1)


def test_stop_ends_the_turn(page: Page) -> None:
    """A21."""
    send(page, "hang")
    expect(answers(page).first).to_contain_text("Hanging", timeout=WAIT_MS)
    page.get_by_test_id("stop").click()
    expect(page.get_by_test_id("stop")).to_have_count(0, timeout=WAIT_MS)
    send(page, "still there?")
    expect(answers(page).nth(1)).to_contain_text("You said: still there?", timeout=WAIT_MS)


def test_a_question_is_answered_on_its_card(page: Page) -> None:
    send(page, "ask What is your name?")
    expect(page.get_by_test_id("question")).to_contain_text("What is your name?", timeout=WAIT_MS)
    page.get_by_test_id("question-answer").fill("Ada")
    page.get_by_test_id("question-answer").press("Enter")
    expect(answers(page).first).to_contain_text("You answered: Ada", timeout=WAIT_MS)
    expect(page.get_by_test_id("question")).to_have_count(0)


def test_a_tool_card_shows_what_ran_and_how_it_ended(page: Page) -> None:
    send(page, "run echo one two")
    card = page.get_by_test_id("tool-card").first
    expect(card).to_have_attribute("data-outcome", "done", timeout=WAIT_MS)
    expect(card).to_contain_text("echo one two")
    expect(card.get_by_text("one two", exact=True)).to_have_count(1)
    expect(answers(page).first).to_contain_text("Done.")


def test_what_the_agent_says_is_never_run_by_the_page(page: Page) -> None:
    """Markup in an answer is text."""
    send(page, "<img src=x onerror=window.owned=1><script>window.owned=1</script>[go](javascript:window.owned=1)")
    expect(answers(page).first).to_contain_text("<script>", timeout=WAIT_MS)
    expect(answers(page).locator("a")).to_have_count(0)
    assert page.evaluate("window.owned") is None


def test_a_phone_shows_the_conversation_without_scrolling_sideways(browser: Browser, page: Page) -> None:
    send(page, "run echo " + "wide " * 60)
    expect(page.get_by_test_id("tool-card").first).to_have_attribute("data-outcome", "done", timeout=WAIT_MS)
    page.set_viewport_size({"width": 390, "height": 780})
    expect(page.get_by_test_id("composer")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_without_a_credential_the_page_says_what_to_type_and_takes_what_that_prints(browser: Browser, lasting: Serving) -> None:
    for pasted, taken in ((holdfast(lasting.home, "link").out, True), (holdfast(lasting.home, "token").out, True), ("nonsense", False)):
        context = browser.new_context()
        tab = context.new_page()
        tab.goto(lasting.url)
        expect(tab.get_by_test_id("connection")).to_have_attribute("data-state", "signed-out", timeout=WAIT_MS)
        expect(tab.get_by_text("type holdfast open (in the project")).to_be_visible()
        tab.get_by_label("Link or token").fill(pasted)
        tab.get_by_test_id("sign-in").click()
        if taken:
            expect(tab.get_by_test_id("composer")).to_be_visible(timeout=WAIT_MS)
        else:
            expect(tab.get_by_role("alert")).to_have_text("That is neither a sign-in link nor the token of this server.", timeout=WAIT_MS)
        context.close()


def test_what_you_say_comes_into_view_even_if_you_were_reading_further_up(page: Page) -> None:
    send(page, "count 2000 0")
    expect(answers(page).first).to_contain_text("2000", timeout=WAIT_MS)
    expect(answers(page).first).to_have_attribute("data-status", "complete", timeout=WAIT_MS)
    box = page.locator(".scroll")
    box.evaluate("box => { box.scrollTop = 0 }")
    expect(page.get_by_label("To the latest message")).to_be_visible()
    send(page, "count 5 0.2")
    expect(page.locator('[data-testid="message"][data-role="user"]').last).to_be_in_viewport()
    expect(page.get_by_label("To the latest message")).to_have_count(0)
    expect(answers(page).nth(1)).to_contain_text("4 5", timeout=WAIT_MS)
    expect(answers(page).nth(1)).to_be_in_viewport()


def test_a_notice_stands_below_the_message_it_is_about(own_page: Page, serving: Serving) -> None:
    """C21, C22: told once, under the first message that is kept; what is written later stands below it."""
    with serving.client() as client:
        assert client.post("/api/admin/pause", json={"for_s": 60}).status_code == 200
        rows = own_page.get_by_role("log").get_by_test_id("message")
        send(own_page, "first")
        expect(rows).to_have_count(2, timeout=WAIT_MS)
        send(own_page, "second")
        expect(rows).to_have_count(3, timeout=WAIT_MS)
        # The stream may show it before its request has been answered: until then it also stands there as one that is being sent.
        expect(rows.filter(has_text="sending…")).to_have_count(0, timeout=WAIT_MS)
        expect(rows).to_have_count(3, timeout=WAIT_MS)
        assert [row.get_attribute("data-role") for row in rows.all()] == ["user", "notice", "user"]
        own_page.reload()
        expect(rows).to_have_count(3, timeout=WAIT_MS)
        assert [row.get_attribute("data-role") for row in rows.all()] == ["user", "notice", "user"]
        client.post("/api/admin/unpause")
    expect(answers(own_page)).to_have_count(2, timeout=WAIT_MS)


def test_a_page_whose_server_is_away_does_not_look_alive(own_page: Page, serving: Serving) -> None:
    """What it shows is from before, and it says so: nothing moves, nothing claims to run."""
    send(own_page, "count 400 0.05")
    expect(answers(own_page).first).to_contain_text("1 2 3", timeout=WAIT_MS)
    assert own_page.title().startswith("● ")
    item = own_page.get_by_test_id("conversation-item").first
    expect(item).to_contain_text("running", timeout=WAIT_MS)
    serving.kill()
    expect(own_page.get_by_test_id("away")).to_contain_text("Holdfast is not answering.", timeout=WAIT_MS)
    expect(item).to_contain_text("was running")
    expect(own_page.locator(".writing")).to_have_count(0)
    assert not own_page.title().startswith("●")
    moving = "document.getAnimations().filter(a => a.playState === 'running' && a.effect.getTiming().iterations === Infinity).length"
    sign = own_page.get_by_test_id("connection")
    expect(sign).to_have_attribute("data-state", "reconnecting")
    assert own_page.evaluate(moving) == 1  # The sign that says "Reconnecting".
    serving.start()
    expect(own_page.get_by_test_id("away")).to_have_text("", timeout=WAIT_MS)
    expect(own_page.locator(".writing")).to_have_count(1, timeout=WAIT_MS)


def test_an_address_where_nothing_is_says_so_in_words(page: Page, lasting: Serving) -> None:
    page.goto(lasting.url + "/no/such/page")
    expect(page.get_by_role("heading", name="There is no such page.")).to_be_visible(timeout=WAIT_MS)
    page.get_by_role("button", name="Start a new one").click()
    expect(page.get_by_test_id("composer")).to_be_visible()
