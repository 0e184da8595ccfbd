"""The operator's view and the conversation of a chat with something in every part: who asks to talk, what was allowed, what was used, what
did not arrive.
"""

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from holdfast.core import events as e
from holdfast.core.delivery import DeliveryState
from holdfast.core.events.steps import Usage
from holdfast.core.pairing import Pending
from holdfast.store import open_store
from tests.browser.acting import WAIT_MS, answers
from tests.browser.conftest import Check, printed_address, tab
from tests.browser.test_looks import in_every_look
from tests.browser.test_parts import seed
from tests.conformance.steps import ENDED, append, new_owner, new_session, say, start
from tests.e2e.serving import Serving

DAY_MS = 24 * 3600 * 1000


async def fill(home: Path) -> None:
    await seed(home)
    now = int(time.time() * 1000)
    store = await open_store(home, now=lambda: now)
    owner = await new_owner(store, "filling")
    await store.put_pairing(Pending(platform="telegram", user="8", name="Eve", salt=b"s", digest=b"d", made_at=now, told=True))
    await store.pair("telegram", "7", name="Ana", at=now)
    await new_session(store, "s_used", title="Used", at=now)
    for number, (model, cost) in enumerate((("large", 42_000), ("small", 1_700))):
        day = time.strftime("%Y-%m-%d", time.localtime((now - number * DAY_MS) / 1000))
        await say(store, "s_used", f"Ask {model}", message_id=f"mu{number}", at=now)
        turn = await start(store, "s_used", f"tu{number}", owner=owner)
        usage = Usage(input=12_000, output=800)
        said = e.ModelResponded(step=0, text="Well.", usage=usage, cost=cost, provider="acme", model=model, day=day, sender="owner")
        answer = e.MessageWritten(message_id=f"tu{number}.answer", role="assistant", content="Well.")
        await append(
            store, turn, said, e.RuleAdded(rule_id=f"r{number}", pattern=f"terminal({model} *)", by="owner"), answer, ENDED, at=now
        )
    await say(store, "s_chat", "Question 3", message_id="m83", at=now, sender="telegram:7", sender_name="Ana")
    turn = await start(store, "s_chat", "t73", owner=owner)
    answer = e.MessageWritten(message_id="t73.answer", role="assistant", content="Answer 3", delivery_id="d3")
    await append(store, turn, answer, ENDED, at=now)
    unsure = e.DeliveryChanged(delivery_id="d3", state="unknown", tries=1)
    assert await store.record_delivery("s_chat", unsure, expect=DeliveryState.PENDING, at=now)
    await store.aclose()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    home = tmp_path_factory.mktemp("filled") / "home"
    home.mkdir(mode=0o700)
    with ThreadPoolExecutor(1) as apart:  # The browser's loop runs in this thread.
        apart.submit(lambda: asyncio.run(fill(home))).result()
    with Serving(home) as serving:
        yield serving


@pytest.fixture(scope="module")
def desk(browser: Browser, filled: Serving) -> Iterator[Page]:
    with tab(browser) as page:
        page.goto(printed_address(filled))
        page.get_by_test_id("composer").wait_for()
        yield page


def operate(page: Page, filled: Serving) -> None:
    page.goto(filled.url + "/operations")
    expect(page.get_by_test_id("day").get_by_role("img")).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_test_id("usage").get_by_role("img")).to_be_visible(timeout=WAIT_MS)


def test_a_full_operators_view_and_a_chat_with_deliveries_can_be_read_by_everybody(desk: Page, filled: Serving, check: Check) -> None:
    operate(desk, filled)
    kinds = {item.get_attribute("data-kind") for item in desk.get_by_test_id("needed").all()}
    assert kinds >= {"pairing", "question", "delivery_unknown", "delivery_dead"}, kinds
    in_every_look(desk, check, "the operator's view, filled")
    desk.set_viewport_size({"width": 1300, "height": 820})
    hidden = desk.get_by_test_id("boxes").evaluate(
        "card => Math.max(...[...card.querySelectorAll('*')].map(e => e.scrollWidth - e.clientWidth))"
    )
    assert hidden <= 1, "what can be done about a delivery is cut off"
    desk.set_viewport_size({"width": 1300, "height": 820})
    desk.goto(f"{filled.url}/s/s_chat")
    expect(answers(desk)).to_have_count(4, timeout=WAIT_MS)
    states = [line.get_attribute("data-state") for line in desk.get_by_test_id("delivery").all()]
    assert states == ["sent", "dead", "pending", "unknown"]
    in_every_look(desk, check, "a chat with deliveries")
    desk.set_viewport_size({"width": 1300, "height": 820})
    answers(desk).first.hover()
    answers(desk).first.get_by_test_id("turn-details").click()
    expect(desk.get_by_test_id("story")).to_be_visible(timeout=WAIT_MS)
    in_every_look(desk, check, "the story of a turn in a chat")
    desk.set_viewport_size({"width": 1300, "height": 820})
    desk.get_by_test_id("close-details").click()
    desk.get_by_test_id("session-menu").click()
    desk.get_by_test_id("find").click()
    desk.get_by_test_id("find-field").fill("Answer")
    expect(desk.get_by_test_id("find-hit").first).to_be_visible(timeout=WAIT_MS)
    in_every_look(desk, check, "finding in a conversation")
    desk.set_viewport_size({"width": 1200, "height": 800})


def test_a_stranger_is_let_in_and_shut_out_and_a_wrong_code_lets_nobody_in(desk: Page, filled: Serving) -> None:
    operate(desk, filled)
    people, paired = desk.get_by_test_id("people"), desk.get_by_test_id("paired")
    expect(people.get_by_test_id("asking")).to_contain_text("Eve")
    expect(paired).to_have_count(1)
    expect(paired).to_contain_text("Ana")
    desk.get_by_test_id("pairing-code").fill("AAAAAAAA")
    people.get_by_role("button", name="Let in").last.click()
    expect(desk.get_by_test_id("toast")).to_be_visible(timeout=WAIT_MS)
    expect(paired).to_have_count(1)
    desk.get_by_test_id("needed").get_by_test_id("approve-pairing").click()
    expect(paired).to_have_count(2, timeout=WAIT_MS)
    expect(people.get_by_test_id("asking")).to_have_count(0)
    paired.filter(has_text="Eve").get_by_role("button", name="Shut out").click()
    expect(desk.get_by_test_id("confirm")).to_contain_text("Shut Eve out?")
    desk.get_by_test_id("confirm-yes").click()
    expect(paired).to_have_count(1, timeout=WAIT_MS)
    with filled.client() as client:
        assert [who["user"] for who in client.get("/api/ops/people").json()["paired"]] == ["7"]


def test_what_was_allowed_for_good_is_shown_and_taken_back(desk: Page, filled: Serving) -> None:
    operate(desk, filled)
    rules = desk.get_by_test_id("rules").get_by_role("listitem")
    expect(rules).to_have_count(2, timeout=WAIT_MS)
    rules.filter(has_text="terminal(large *)").get_by_role("button", name="Take back").click()
    expect(rules).to_have_count(1, timeout=WAIT_MS)
    expect(rules).to_contain_text("terminal(small *)")
    with filled.client() as client:
        assert [rule["pattern"] for rule in client.get("/api/rules").json()["rules"]] == ["terminal(small *)"]


def test_what_models_used_is_shown_by_day_by_model_and_by_conversation(desk: Page, filled: Serving) -> None:
    operate(desk, filled)
    usage = desk.get_by_test_id("usage")
    expect(usage).to_contain_text("$0.04")
    expect(usage.get_by_test_id("model-share")).to_have_count(2)
    expect(usage.get_by_test_id("model-share").first).to_contain_text("large")
    expect(usage).to_contain_text("Used")
    assert (usage.get_by_role("img").get_attribute("aria-label") or "").count("$") == 2
    usage.get_by_role("radio", name="30 days").check()
    expect(usage.get_by_test_id("model-share")).to_have_count(2)
    expect(usage.get_by_role("radio", name="30 days")).to_be_checked()
