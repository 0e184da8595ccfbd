"""An answer in its parts, questions side by side, and attachments: what a person sees of them, loaded and while it happens."""

import asyncio
import re
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from holdfast.core import events as e
from holdfast.core.delivery import DeliveryState
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.spools import stream_id
from holdfast.core.turns import Outcome
from holdfast.ports.store import Store
from holdfast.store import open_store
from tests.browser.acting import WAIT_MS, answers, notices, said, send
from tests.browser.conftest import printed_address, tab
from tests.conformance.steps import ENDED, append, new_owner, new_session, say, start
from tests.e2e.command_line import holdfast
from tests.e2e.serving import Serving

MESSAGES = re.compile(r"/messages\?before=")


def picture() -> bytes:
    """A PNG of 60 by 40 points, green."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = zlib.compress((b"\0" + b"\x2a\x9d\x6f" * 60) * 40)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 60, 40, 8, 2, 0, 0, 0)) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )


def call(call_id: str, command: str, step: int) -> e.ToolStarted:
    return e.ToolStarted(call_id=call_id, name="terminal", arguments={"command": command}, effect=Effect.UNSAFE, step=step)


def done(call_id: str, result: str) -> e.ToolFinished:
    return e.ToolFinished(call_id=call_id, outcome=ToolOutcome.DONE, content=result)


async def seed(home: Path) -> None:
    """A conversation of several steps, with a message taken on the way; and one that waits for two answers."""
    now = int(time.time() * 1000)
    store = await open_store(home, now=lambda: now)
    owner = await new_owner(store)
    await new_session(store, "s_steps", title="Steps", at=now)
    await say(store, "s_steps", "How large is the log?", message_id="m1", at=now)
    turn = await start(store, "s_steps", "t1", owner=owner)
    await say(store, "s_steps", "And in lines?", message_id="m2", at=now, mode="steer")
    turn = await append(
        store, turn, e.ModelResponded(step=0, text="Let me **measure** it."), call("a", "du -h log", 0), done("a", "4.0K log")
    )
    turn = await append(store, turn, e.CauseTaken(cause_id="m2", step=0))
    turn = await append(store, turn, e.ModelResponded(step=1, text="Now the lines."), call("b", "wc -l log", 1), done("b", "120 log"))
    final = "It is 4 kB, in 120 lines."
    answer = e.MessageWritten(message_id="t1.answer", role="assistant", content=final)
    await append(store, turn, e.ModelResponded(step=2, text=final), answer, ENDED)
    await new_session(store, "s_long", title="Long", at=now)
    await say(store, "s_long", "And then?", message_id="m4", at=now)
    turn = await start(store, "s_long", "t3", owner=owner)
    turn = await append(store, turn, e.ContextCompacted(through=0, summary="They met."), e.ModelResponded(step=0, text="They left."))
    await append(store, turn, e.MessageWritten(message_id="t3.answer", role="assistant", content="They left."), ENDED)
    await new_session(store, "s_late", title="Too late", at=now)
    await say(store, "s_late", "Clean up.", message_id="m5", at=now)
    turn = await start(store, "s_late", "t4", owner=owner)
    deed = e.ProposedCall(name="terminal", arguments={"command": "make clean"})
    late = e.QuestionAsked(
        question_id="q9", call_id="c9", content="May I run `terminal`?", expires_at=now - 1, form="approval", call=deed, ends_attempt=False
    )
    await append(store, turn, late, e.TurnWaiting(question_ids=("q9",)))
    await new_session(store, "s_asks", title="Two questions", at=now)
    await say(store, "s_asks", "Plan a trip.", message_id="m3", at=now)
    turn = await start(store, "s_asks", "t2", owner=owner)
    asking: list[e.Event] = []
    for name, text, choices in (("q1", "By train or by boat?", ("train", "boat")), ("q2", "For how many people?", ())):
        asking.append(e.ToolStarted(call_id=f"c{name}", name="ask", arguments={"question": text}, effect=Effect.PURE))
        expires_at = now + 3_600_000
        asked = e.QuestionAsked(
            question_id=name, call_id=f"c{name}", content=text, expires_at=expires_at, choices=choices, ends_attempt=False
        )
        asking.append(asked)
    await append(store, turn, *asking, e.TurnWaiting(question_ids=("q1", "q2")))
    await seed_interruptions(store, owner, now)
    await seed_chat(store, owner, now)
    await seed_many(store, owner, now)
    await store.aclose()


async def seed_interruptions(store: Store, owner: int, now: int) -> None:
    """A model that was interrupted in its second step and asked again, and a turn whose journal is late."""
    await new_session(store, "s_cut", title="Interrupted", at=now)
    await say(store, "s_cut", "Is all well?", message_id="m6", at=now)
    turn = await start(store, "s_cut", "t5", owner=owner)
    turn = await append(store, turn, e.ModelResponded(step=0, text="Let me look."), call("d", "uptime", 0), done("d", "up 3 days"))
    turn = await append(
        store, turn, e.Text(step=1, offset=0, text="It has been"), e.TurnInterrupted(reason="crash", restarts=1, written=25)
    )
    looked = (e.Considered("R0", "No stop is on record.", False), e.Considered("R9", "No other rule applies.", True))
    again = e.TurnResumed(attempt=2, rule="R9", reason="crash", why="interrupted by a crash 2 s earlier", considered=looked)
    answer = e.MessageWritten(message_id="t5.answer", role="assistant", content="All is well.")
    await append(store, turn, again, e.ModelResponded(step=1, text="All is well."), answer, ENDED)
    await new_session(store, "s_journal", title="Late", at=now)
    await say(store, "s_journal", "Count.", message_id="m7", at=now)
    turn = await start(store, "s_journal", "t6", owner=owner)
    late = e.TurnInterrupted(reason="crash", restarts=1, written=3, stream_id=stream_id("t6", turn.lease.epoch))
    aside = e.TurnEnded(outcome=Outcome.SET_ASIDE, rule="R6", why="interrupted by a crash 2 h earlier")
    await append(store, turn, e.Text(offset=0, text="1 2"), late, aside, at=now)


async def seed_many(store: Store, owner: int, now: int) -> None:
    """A hundred requests and their answers."""
    await new_session(store, "s_many", title="Many", at=now)
    for number in range(100):
        turn_id = f"t9.{number}"
        await say(store, "s_many", f"Number {number}?", message_id=f"m9.{number}", at=now)
        turn = await start(store, "s_many", turn_id, owner=owner)
        answer = e.MessageWritten(message_id=f"{turn_id}.answer", role="assistant", content=f"It is **{number}**.")
        await append(store, turn, answer, ENDED, at=now)


async def seed_chat(store: Store, owner: int, now: int) -> None:
    """A chat that is not connected here: one answer arrived, one was given up, one could not be sent yet."""
    await new_session(store, "s_chat", key="agent:main:telegram:dm:7", title="In a chat", at=now)
    changes = [
        e.DeliveryChanged(delivery_id="d0", state="sent", tries=1),
        e.DeliveryChanged(delivery_id="d1", state="dead", tries=8, error="The bot was blocked by the user"),
        e.DeliveryChanged(delivery_id="d2", state="pending", tries=2, retry_at=now + 600_000, error="The network is away"),
    ]
    for number, changed in enumerate(changes):
        turn_id = f"t7{number}"
        who = {} if number == 2 else {"sender": "telegram:7", "sender_name": "Ana"}
        await say(store, "s_chat", f"Question {number}", message_id=f"m8{number}", at=now, **who)
        turn = await start(store, "s_chat", turn_id, owner=owner)
        answer = e.MessageWritten(message_id=f"{turn_id}.answer", role="assistant", content=f"Answer {number}", delivery_id=f"d{number}")
        await append(store, turn, answer, ENDED, at=now)
        assert await store.record_delivery("s_chat", changed, expect=DeliveryState.PENDING, at=now)


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    home = tmp_path_factory.mktemp("parts") / "home"
    home.mkdir(mode=0o700)
    with ThreadPoolExecutor(1) as apart:  # The browser's loop runs in this thread.
        apart.submit(lambda: asyncio.run(seed(home))).result()
    with Serving(home) as serving:
        yield serving


@pytest.fixture(scope="module")  # The printed code is good once.
def seeded_page(browser: Browser, seeded: Serving) -> Iterator[Page]:
    with tab(browser) as page:
        page.goto(printed_address(seeded))
        page.get_by_test_id("composer").wait_for()
        yield page


@contextmanager
def signed(browser: Browser, seeded: Serving) -> Iterator[Page]:
    """A tab of its own, whose list and conversation are as they were left."""
    with tab(browser) as page:
        page.goto(holdfast(seeded.home, "link").out.strip())
        page.get_by_test_id("composer").wait_for()
        yield page


def wait_on(page: Page, true: Callable[[], bool]) -> None:
    while not true():
        page.wait_for_timeout(50)


def test_calls_and_taken_messages_stand_where_they_came_in_the_answer(seeded_page: Page, seeded: Serving) -> None:
    seeded_page.goto(f"{seeded.url}/s/s_steps")
    answer = answers(seeded_page).first
    expect(answer).to_contain_text("120 lines", timeout=WAIT_MS)
    words = answer.inner_text()
    order = ["Let me measure it.", "du -h log", "And in lines?", "Now the lines.", "wc -l log", "It is 4 kB, in 120 lines."]
    places = [words.index(part) for part in order]
    assert places == sorted(places), words
    expect(seeded_page.get_by_text("And in lines?")).to_have_count(1)
    expect(answer.locator("strong")).to_have_text("measure")


def test_a_conversation_that_was_summarised_for_the_model_says_so_in_its_place(seeded_page: Page, seeded: Serving) -> None:
    seeded_page.goto(f"{seeded.url}/s/s_long")
    expect(answers(seeded_page).first).to_contain_text("They left.", timeout=WAIT_MS)
    rows = seeded_page.get_by_role("log").get_by_test_id("message")
    assert [row.get_attribute("data-role") for row in rows.all()] == ["user", "notice", "assistant"]
    expect(notices(seeded_page)).to_contain_text("It sees a summary of the earlier messages from here on.")


def test_what_nobody_answered_in_time_says_so_and_offers_nothing(seeded_page: Page, seeded: Serving) -> None:
    """R5"""
    seeded_page.goto(f"{seeded.url}/s/s_late")
    end = seeded_page.get_by_test_id("turn-end").locator("p")
    expect(end).to_have_text("This answer failed. Nobody answered in time; the question has expired.", timeout=WAIT_MS)
    expect(seeded_page.get_by_test_id("approval")).to_have_count(0)


def test_every_open_question_has_a_card_and_each_is_answered_for_itself(seeded_page: Page, seeded: Serving) -> None:
    """R5: the turn waits until the last is answered."""
    seeded_page.goto(f"{seeded.url}/s/s_asks")
    cards = seeded_page.get_by_test_id("question")
    expect(cards).to_have_count(2, timeout=WAIT_MS)
    cards.first.get_by_role("button", name="boat").click()
    expect(cards).to_have_count(1, timeout=WAIT_MS)
    expect(cards.first).to_contain_text("For how many people?")
    expect(said(seeded_page, "complete").last).to_contain_text("boat")
    cards.first.get_by_test_id("question-answer").fill("two")
    cards.first.get_by_test_id("question-send").click()
    expect(cards).to_have_count(0, timeout=WAIT_MS)


def test_a_call_stands_below_what_was_said_before_it_while_it_happens_and_after_loading(page: Page) -> None:
    """P7"""
    send(page, "run echo ahoy")
    answer = answers(page).first
    expect(answer).to_have_attribute("data-status", "complete", timeout=WAIT_MS)
    live = answer.inner_text()
    page.reload()
    expect(answers(page).first).to_have_attribute("data-status", "complete", timeout=WAIT_MS)
    assert answers(page).first.inner_text().splitlines()[0] == live.splitlines()[0]


def test_a_picture_is_drawn_and_a_file_is_a_link_to_save(page: Page, lasting: Serving) -> None:
    """What a browser might run is never more than a link."""
    with lasting.client() as client:
        session = client.post("/api/sessions", json={"title": "Files"}).json()["session_id"]
        sent = []
        for name, kind, body in (
            ("sea.png", "image/png", picture()),
            ("evil.svg", "image/svg+xml", b"<svg onload='x()'/>"),
            ("a.csv", "text/csv", b"1,2"),
        ):
            made = client.post("/api/uploads", params={"name": name}, headers={"content-type": kind}, content=body)
            assert made.status_code == 201, made.text
            sent.append(made.json()["attachment_id"])
        answer = client.post(f"/api/sessions/{session}/messages", json={"text": "What is this?", "attachments": sent})
        assert answer.status_code == 202, answer.text
    page.goto(f"{lasting.url}/s/{session}")
    attached = page.get_by_test_id("attachment")
    expect(attached).to_have_count(3, timeout=WAIT_MS)
    image = page.locator(".picture img")
    expect(image).to_have_count(1)
    expect(image).to_have_js_property("naturalWidth", 60, timeout=WAIT_MS)
    expect(attached.nth(1)).to_contain_text("evil.svg")
    expect(attached.nth(2)).to_have_attribute("download", "a.csv")
    page.reload()
    expect(attached).to_have_count(3, timeout=WAIT_MS)


def test_an_interruption_stands_in_the_answer_where_it_happened_and_its_facts_behind_it(seeded_page: Page, seeded: Serving) -> None:
    """F1: a model that is asked again says its step from the beginning; the interruption stands before it, in human words."""
    seeded_page.goto(f"{seeded.url}/s/s_cut")
    answer = answers(seeded_page).first
    expect(answer).to_contain_text("All is well.", timeout=WAIT_MS)
    words = answer.inner_text()
    order = ["Let me look.", "uptime", "Interrupted by a crash.", "This part was written again from here.", "Continued", "All is well."]
    places = [words.index(part) for part in order]
    assert places == sorted(places), words
    assert "R9" not in words
    answer.get_by_test_id("what-happened").click()
    why = seeded_page.get_by_test_id("why")
    facts = why.get_by_test_id("fact")
    expect(facts).to_have_text(["No stop is on record.", "No other rule applies."], timeout=WAIT_MS)
    expect(facts.nth(0)).to_be_hidden()  # A line for each rule; the facts of those that did not apply are for who wants them.
    expect(facts.nth(1)).to_be_visible()
    why.get_by_test_id("facts").click()
    expect(facts.nth(0)).to_be_visible()
    expect(why.locator(".hit")).to_contain_text("R9")
    seeded_page.get_by_test_id("close-details").click()


def test_output_that_has_not_arrived_is_not_called_lost(seeded_page: Page, seeded: Serving) -> None:
    """F1: the row says that some output is missing and looked for, and since when."""
    seeded_page.goto(f"{seeded.url}/s/s_journal")
    row = seeded_page.get_by_test_id("interruption")
    expect(row).to_have_attribute("data-state", "recovering", timeout=WAIT_MS)
    expect(row).to_contain_text("Some of its output has not arrived yet; Holdfast is looking for it.")
    expect(row.get_by_test_id("looked-for")).to_contain_text("Looked for since")


def test_every_message_to_a_chat_says_whether_it_arrived_and_what_can_be_done(seeded_page: Page, seeded: Serving) -> None:
    """P4: arrived, given up with the reason, or waiting; one that was given up is sent again at a person's word."""
    seeded_page.goto(f"{seeded.url}/s/s_chat")
    lines = seeded_page.get_by_test_id("delivery")
    expect(lines).to_have_count(3, timeout=WAIT_MS)
    assert [line.get_attribute("data-state") for line in lines.all()] == ["sent", "dead", "pending"]
    expect(lines.nth(0)).to_have_text("delivered to Telegram")
    expect(lines.nth(1)).to_contain_text("not delivered")
    expect(lines.nth(1)).to_contain_text("The bot was blocked by the user.")
    expect(lines.nth(1).get_by_test_id("give-up")).to_have_count(0)
    expect(lines.nth(2)).to_contain_text("could not be sent to Telegram yet")
    lines.nth(2).get_by_test_id("give-up").click()
    expect(lines.nth(2)).to_have_attribute("data-state", "dead", timeout=WAIT_MS)
    lines.nth(2).get_by_test_id("arrived").click()
    expect(lines.nth(2)).to_have_attribute("data-state", "sent", timeout=WAIT_MS)
    needed = seeded_page.locator('[data-testid="needed"][data-kind="delivery_dead"]')
    seeded_page.goto(f"{seeded.url}/operations")
    expect(needed).to_contain_text("Not delivered: The bot was blocked by the user", timeout=WAIT_MS)
    needed.get_by_test_id("dismiss").click()
    expect(needed).to_have_count(0, timeout=WAIT_MS)
    seeded_page.goto(f"{seeded.url}/s/s_chat")
    lines.nth(1).get_by_test_id("send-again").click()
    expect(lines.nth(1)).to_have_attribute("data-state", "pending", timeout=WAIT_MS)


def test_older_messages_are_read_when_they_come_near_and_are_plain_text_until_then(seeded_page: Page, seeded: Serving) -> None:
    seeded_page.goto(f"{seeded.url}/s/s_many")
    expect(answers(seeded_page).last.locator("strong")).to_have_text("99", timeout=WAIT_MS)
    seeded_page.locator(".scroll").evaluate("box => { box.scrollTop = 0 }")  # Which fetches the page before.
    groups = seeded_page.locator(".rows > .group")
    expect(groups.first).to_have_attribute("data-near", "false", timeout=WAIT_MS)
    expect(groups.first).to_contain_text("It is **0**.")
    groups.first.scroll_into_view_if_needed()
    expect(groups.first).to_have_attribute("data-near", "true", timeout=WAIT_MS)
    expect(groups.first.locator("strong").first).to_have_text("0")


def test_a_conversation_continues_from_an_answer_or_before_a_request_in_a_new_one(seeded_page: Page, seeded: Serving) -> None:
    seeded_page.goto(f"{seeded.url}/s/s_steps")
    answer = answers(seeded_page).first
    expect(answer).to_contain_text("120 lines", timeout=WAIT_MS)
    answer.hover()
    answer.get_by_test_id("branch").click()
    expect(notices(seeded_page)).to_contain_text("copied from there", timeout=WAIT_MS)
    assert not seeded_page.url.endswith("s_steps")
    expect(answers(seeded_page).first).to_contain_text("It is 4 kB, in 120 lines.")
    expect(answers(seeded_page).first.get_by_test_id("tool-card")).to_have_count(2)
    send(seeded_page, "and on")
    expect(answers(seeded_page).nth(1)).to_contain_text("You said: and on", timeout=WAIT_MS)
    seeded_page.goto(f"{seeded.url}/s/s_steps")
    request = said(seeded_page, "complete").first
    request.hover()
    request.get_by_test_id("branch").click()
    expect(seeded_page.get_by_test_id("composer")).to_have_value("How large is the log?", timeout=WAIT_MS)
    expect(answers(seeded_page)).to_have_count(0)


def fetched_pages(page: Page) -> list[str]:
    """The pages of earlier messages that are asked for from now on."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/messages?before=" in request.url else None)
    return asked


def look_for(page: Page, words: str, session: str) -> None:
    page.get_by_test_id("search").fill(words)
    page.locator(f'[data-session-id="{session}"]').get_by_test_id("hit").first.click()


def test_a_jump_to_an_old_message_asks_once_for_each_page_while_an_answer_is_being_written(browser: Browser, seeded: Serving) -> None:
    with signed(browser, seeded) as page:
        page.goto(f"{seeded.url}/s/s_many")
        expect(answers(page).last).to_contain_text("99", timeout=WAIT_MS)
        seeded.post("s_many", "count 900 0.02")
        expect(answers(page).last).to_contain_text("1 2 3", timeout=WAIT_MS)
        asked = fetched_pages(page)

        def late(route: Route) -> None:
            page.wait_for_timeout(500)  # The answer grows meanwhile.
            route.continue_()

        page.route(MESSAGES, late)
        look_for(page, "Number 0", "s_many")
        expect(page.get_by_role("log").get_by_text("Number 0?", exact=True)).to_be_in_viewport(timeout=WAIT_MS)
        assert asked and len(asked) == len(set(asked))
        page.get_by_test_id("stop").click()
        expect(page.get_by_test_id("stop")).to_have_count(0, timeout=WAIT_MS)


def test_whoever_leaves_in_the_middle_of_a_jump_is_not_taken_along_in_the_next_conversation(browser: Browser, seeded: Serving) -> None:
    with seeded.client() as client:
        branched = client.post("/api/sessions/s_many/branch", json={"message_id": "t9.98.answer"})
        assert branched.status_code == 201, branched.text
        other = branched.json()["session_id"]
    with signed(browser, seeded) as page:
        page.goto(f"{seeded.url}/s/s_many")
        expect(answers(page).last).to_be_visible(timeout=WAIT_MS)
        held: list[Route] = []
        page.route(MESSAGES, lambda route: held.append(route))
        look_for(page, "Number 0", "s_many")
        wait_on(page, lambda: len(held) == 1)
        page.locator(f'[data-session-id="{other}"] > a').click()
        expect(answers(page).last).to_contain_text("98", timeout=WAIT_MS)
        page.unroute(MESSAGES)
        asked = fetched_pages(page)
        send(page, "hello")
        expect(answers(page).last).to_contain_text("You said: hello", timeout=WAIT_MS)
        assert asked == []


def test_a_jump_whose_messages_cannot_be_had_says_so_and_is_over(browser: Browser, seeded: Serving) -> None:
    with signed(browser, seeded) as page:
        page.goto(f"{seeded.url}/s/s_many")
        expect(answers(page).last).to_be_visible(timeout=WAIT_MS)
        page.route(MESSAGES, lambda route: route.abort())
        look_for(page, "Number 0", "s_many")
        expect(page.get_by_test_id("toast")).to_be_visible(timeout=WAIT_MS)
        asked = fetched_pages(page)
        send(page, "hello")
        expect(answers(page).last).to_contain_text("You said: hello", timeout=WAIT_MS)
        assert asked == []


def test_a_conversation_of_a_chat_says_who_wrote_what(seeded_page: Page, seeded: Serving) -> None:
    """Whoever reads along on the page is not taken for those who write in the chat."""
    seeded_page.goto(f"{seeded.url}/s/s_chat")
    asked = said(seeded_page, "complete")
    expect(asked.nth(0).get_by_test_id("sender")).to_have_text("Ana, from Telegram", timeout=WAIT_MS)
    expect(asked.nth(0)).to_have_attribute("aria-label", "Ana, from Telegram")
    expect(asked.nth(2).get_by_test_id("sender")).to_have_text("You, from this page")
    expect(seeded_page.get_by_test_id("platform")).to_have_text("Telegram · Ana")
    seeded_page.goto(f"{seeded.url}/s/s_steps")
    expect(said(seeded_page, "complete").first).to_have_attribute("aria-label", "You", timeout=WAIT_MS)
    expect(seeded_page.get_by_test_id("sender")).to_have_count(0)


def test_every_answer_leads_to_the_picture_of_its_turn_and_that_tells_what_became_of_sending_it(seeded_page: Page, seeded: Serving) -> None:
    seeded_page.goto(f"{seeded.url}/s/s_chat")
    expect(answers(seeded_page)).to_have_count(3, timeout=WAIT_MS)
    for number, told in enumerate(("Delivered", "Not delivered: given up")):
        answers(seeded_page).nth(number).hover()
        answers(seeded_page).nth(number).get_by_test_id("turn-details").click()
        details = seeded_page.get_by_test_id("details")
        expect(details.get_by_role("heading", name=f"Turn {number + 1}")).to_be_visible(timeout=WAIT_MS)
        expect(details.locator('.ev[data-kind="delivery"]').first).to_contain_text(told, timeout=WAIT_MS)
        expect(details.get_by_test_id("delivery-mark").first).to_be_attached()
    seeded_page.get_by_test_id("close-details").click()


def test_words_are_found_in_one_conversation_also_in_what_is_not_loaded(seeded_page: Page, seeded: Serving) -> None:
    """With the keyboard alone: to the first find with Enter, to the others with the arrows; Escape closes it."""
    seeded_page.goto(f"{seeded.url}/s/s_many")
    expect(answers(seeded_page).last).to_be_visible(timeout=WAIT_MS)
    seeded_page.get_by_test_id("session-menu").click()
    seeded_page.get_by_test_id("find").click()
    field, hits = seeded_page.get_by_test_id("find-field"), seeded_page.get_by_test_id("find-hit")
    expect(field).to_be_focused()
    field.fill("Number 7")
    expect(hits).to_have_count(11, timeout=WAIT_MS)
    expect(seeded_page.get_by_test_id("find-count")).to_have_text("11 messages")
    field.press("ArrowUp")
    for _ in range(11):
        seeded_page.keyboard.press("ArrowDown")
    expect(hits.last).to_be_focused()
    seeded_page.keyboard.press("Enter")
    expect(seeded_page.get_by_role("log").get_by_text("Number 7?", exact=True)).to_be_in_viewport(timeout=WAIT_MS)
    seeded_page.keyboard.press("Escape")
    expect(field).to_have_count(0)
    expect(seeded_page.get_by_test_id("session-menu")).to_be_focused()


def test_a_search_shows_what_it_finds_in_archived_conversations_apart(seeded_page: Page, seeded: Serving) -> None:
    with seeded.client() as client:
        assert client.patch("/api/sessions/s_long", json={"archived": True}).status_code == 200
    seeded_page.goto(f"{seeded.url}/s/s_many")
    seeded_page.get_by_test_id("search").fill("They left")
    apart = seeded_page.get_by_test_id("archived-hits")
    expect(apart.get_by_test_id("archived-hit")).to_have_text("Long", timeout=WAIT_MS)
    apart.get_by_test_id("hit").first.click()
    expect(answers(seeded_page).first).to_contain_text("They left.", timeout=WAIT_MS)
    with seeded.client() as client:
        client.patch("/api/sessions/s_long", json={"archived": False})
    seeded_page.get_by_test_id("search").press("Escape")


def test_characters_that_are_not_seen_are_written_out_in_code_and_in_what_tools_print(page: Page) -> None:
    """A text that is read in another order than it runs is an attack, wherever it is taken for a program. What is copied stays as it is."""
    send(page, "run printf 'one \\342\\200\\256two \\342\\234\\224\\357\\270\\217'")
    card = page.get_by_test_id("tool-card").first
    expect(card).to_have_attribute("data-outcome", "done", timeout=WAIT_MS)
    expect(card.locator(".output")).to_contain_text("one ⟨U+202E⟩two ✔\ufe0f")
    send(page, "Read `a\u202eb` and\n\n```js\nif (a\u2066b) c = 1; // \u200b\n```\n\nand \u202eprose\u202c.")
    expect(answers(page)).to_have_count(2, timeout=WAIT_MS)
    for said_or_answered in (said(page, "complete").last, answers(page).last):
        expect(said_or_answered.locator("p code").first).to_have_text("a⟨U+202E⟩b")
        expect(said_or_answered.locator("pre code")).to_have_text("if (a⟨U+2066⟩b) c = 1; // ⟨U+200B⟩")
        expect(said_or_answered).to_contain_text("and \u202eprose\u202c.")
