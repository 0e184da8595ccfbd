"""Output that a crash left behind and that arrives late, as people see it: live, in another tab, and after a reload (F1 to F9)."""

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from holdfast.core import events as e
from holdfast.core.blame import End, Interruption
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.plans.start import StartedTurn
from holdfast.core.spools import Header, Sealed, Spooled, frame, frames
from holdfast.core.turns import Outcome
from holdfast.ports.owners import Owner
from holdfast.ports.store import Store
from holdfast.store import open_store
from tests.browser.acting import WAIT_MS, answers, open_session, send, words
from tests.browser.conftest import Check, printed_address, tab
from tests.conformance.steps import append, new_session, say
from tests.e2e.serving import Serving, wait_until

GONE, DAY_MS = "o_gone", 24 * 3600 * 1000
LEFT = e.TurnLeft(rule="R7", why="interrupted by a crash 2 s earlier")
# How long after the start the oldest one is given up.
LAST_MS = 12_000
SAID = """log => {
  const all = log.cloneNode(true);
  for (const each of all.querySelectorAll('.call-body')) each.remove();
  return all.textContent;
}"""
ODD = "tick tick\u2028tick \u0085 tick \U0001fab8 tick tick"

# What the device keeps of a conversation, once it is there.
KEPT = """async key => {
  const pause = () => new Promise(resolve => setTimeout(resolve, 100));
  while (!(await indexedDB.databases()).some(each => each.name === 'holdfast')) await pause();
  const open = new Promise((resolve, reject) => Object.assign(indexedDB.open('holdfast'), {
    onsuccess() { resolve(this.result) }, onerror() { reject(this.error) } }));
  const shelf = await open;
  for (;;) {
    const kept = await new Promise(resolve => {
      shelf.transaction('shelf').objectStore('shelf').get(key).onsuccess = event => resolve(event.target.result);
    });
    const text = JSON.stringify(kept ?? null);
    if (text.includes('1 2 3')) return text;
    await pause();
  }
}"""


def call(call_id: str, command: str, offset: int = 0) -> e.ToolStarted:
    return e.ToolStarted(call_id=call_id, name="terminal", arguments={"command": command}, effect=Effect.UNSAFE, offset=offset)


def done(call_id: str, result: str, outcome: ToolOutcome = ToolOutcome.DONE) -> e.ToolFinished:
    return e.ToolFinished(call_id=call_id, outcome=outcome, content=result)


class Late:
    """What a process that died had spooled of a turn. Nobody can read it yet."""

    def __init__(self, home: Path, session_id: str, turn: StartedTurn, events: tuple[e.Event, ...], at: int) -> None:
        epoch = turn.lease.epoch
        self.header = Header(session_id=session_id, turn_id=turn.turn_id, epoch=epoch, owner=GONE)
        self.items = [
            Spooled(turn.position + place, 1, at + 1000 * (place + 1), event.kind, e.encode(event)) for place, event in enumerate(events)
        ]
        self.path = home / "spool" / GONE / self.header.stream_id
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(b"?")

    def arrives(self, count: int | None = None, *, torn: bool = False) -> None:
        """So many events of it; all of them, and the seal, where nothing is said. `torn`: with half a record at the end."""
        end = (Sealed(),) if count is None else ()
        self.path.write_bytes(frames((self.header, *self.items[:count], *end)) + (frame(self.items[0])[:20] if torn else b""))


class Past:
    """A home in which a process died with turns whose last events were only in its spool."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.late: dict[str, Late] = {}

    async def make(self) -> None:
        now = int(time.time() * 1000)
        store = await open_store(self.home, now=lambda: now)
        gone = self.gone = await store.register_owner(Owner(name=GONE, pid=2**22 + 77, started_at=5, boot_id="before"))
        heir = await store.register_owner(Owner(name="o_heir", pid=2**22 + 78, started_at=5, boot_id="before"))
        look = call("c1", "uptime", 10)
        output = (
            e.Text(offset=10, text=" And this is how long it runs: "),
            done("c1", "up 3 days"),
            e.Text(offset=41, text="**three days**."),
        )
        for name in ("s_left", "s_two"):
            turn = await self._begun(store, name, gone, e.Text(offset=0, text="I look up."), look, at=now)
            await self._interrupted(store, name, turn, heir, output, LEFT, at=now)
        turn = await self._begun(store, "s_again", gone, call("c1", "uptime"), e.Text(offset=0, text="First try."), at=now)
        again = e.TurnResumed(attempt=2, rule="R9", reason="crash", why="interrupted by a crash 2 s earlier")
        taken = await self._interrupted(
            store,
            "s_again",
            turn,
            heir,
            (e.Text(offset=10, text=" Up for days."), done("c1", "up 3 days")),
            done("c1", "", ToolOutcome.UNKNOWN),
            again,
            at=now,
        )
        answer = e.MessageWritten(message_id="s_again.answer", role="assistant", content="Second try.")
        second = StartedTurn(taken.lease, taken.turn_id, 2, taken.position)
        await append(
            store, second, e.ModelResponded(step=0, text="Second try."), answer, e.TurnEnded(outcome=Outcome.COMPLETED), at=now + 5000
        )
        turn = await self._begun(store, "s_partly", gone, e.Text(offset=0, text="1"), at=now)
        counted = tuple(e.Text(offset=2 * number - 3, text=f" {number}") for number in range(2, 7))
        await self._interrupted(store, "s_partly", turn, heir, counted, LEFT, at=now)
        turn = await self._begun(store, "s_odd", gone, call("c1", "date"), call("c2", "date"), call("c3", "date"), at=now)
        odd = (done("c3", "third", ToolOutcome.FAILED), e.Text(offset=0, text=ODD), done("c1", "first"))
        await self._interrupted(store, "s_odd", turn, heir, odd, LEFT, at=now)
        old = now - DAY_MS + LAST_MS
        turn = await self._begun(store, "s_old", gone, e.Text(offset=0, text="Long ago."), at=old)
        await self._interrupted(store, "s_old", turn, heir, output, LEFT, at=old)
        await store.aclose()

    async def _begun(self, store: Store, name: str, owner: int, *events: e.Event, at: int) -> StartedTurn:
        await new_session(store, name, title=name, at=at)
        await say(store, name, "How long does it run?", message_id=f"{name}.m", at=at)
        started = await store.start_turn(name, owner=owner, turn_id=f"{name}.t", at=at)
        assert started is not None
        return await append(store, started, *events, at=at)

    async def _interrupted(
        self, store: Store, name: str, turn: StartedTurn, heir: int, spooled: tuple[e.Event, ...], *then: e.Event, at: int
    ) -> StartedTurn:
        late = self.late[name] = Late(self.home, name, turn, spooled, at)
        cut = Interruption(reason="crash", end=End.DEATH, died=self.gone, written=10, stream_id=late.header.stream_id)
        taken = await store.take_turn(name, owner=heir, turn_id=turn.turn_id, epoch=turn.lease.epoch, events=[cut], at=at + 4000)
        return await store.take_turn(name, owner=heir, turn_id=turn.turn_id, epoch=taken.lease.epoch, events=then, at=at + 4000)


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    home = tmp_path_factory.mktemp("late") / "home"
    home.mkdir(mode=0o700)
    made = Past(home)
    with ThreadPoolExecutor(1) as apart:  # The browser's loop runs in this thread.
        apart.submit(lambda: asyncio.run(made.make())).result()
    return made


@pytest.fixture(scope="module")
def after(past: Past) -> Iterator[Serving]:
    with Serving(past.home, auto_resume="false") as serving:
        yield serving


@pytest.fixture(scope="module")
def follower(browser: Browser, after: Serving) -> Iterator[Page]:
    """One tab for all, and a second that has followed the oldest conversation since the beginning."""
    with tab(browser) as page:
        page.goto(printed_address(after))
        page.get_by_test_id("composer").wait_for()
        page.goto(f"{after.url}/s/s_old")
        expect(row(page)).to_be_visible(timeout=WAIT_MS)
        yield page.context.new_page()


def row(page: Page) -> Locator:
    return page.get_by_test_id("interruption")


def shown(serving: Serving, session: str) -> dict[str, Any]:
    """The row, as the server shows it to somebody who asks now."""
    return next(message for message in serving.session(session)["messages"] if message["role"] == "interruption")


def opened(page: Page, serving: Serving, session: str) -> Page:
    page.goto(f"{serving.url}/s/{session}")
    expect(row(page)).to_have_attribute("data-state", "recovering", timeout=WAIT_MS)
    expect(row(page)).to_contain_text("Some of its output has not arrived yet; Holdfast is looking for it.")
    expect(row(page).get_by_test_id("looked-for")).to_contain_text("Looked for since")
    return page


def recovered(page: Page, serving: Serving, session: str) -> None:
    """Somebody else reads the conversation, which is when its journal is looked for. This page only follows."""
    wait_until(lambda: bool(shown(serving, session)["state"] == "recovered"))
    expect(row(page)).to_have_attribute("data-state", "recovered", timeout=WAIT_MS)
    expect(row(page)).to_contain_text("Its output was recovered from the run journal.")
    expect(row(page).get_by_test_id("looked-for")).to_have_count(0)


def told(page: Page) -> str:
    """What the conversation says. Cards that were looked on as they finished are still unfolded."""
    said: str = page.get_by_role("log").evaluate(SAID)
    return said


def same_after_a_reload(page: Page) -> None:
    """P7: as a tab shows it that was opened just now, and then this one, too."""
    expect(page.get_by_test_id("connection")).to_have_attribute("data-state", "live", timeout=WAIT_MS)
    fresh = page.context.new_page()
    fresh.goto(page.url)
    expect(row(fresh)).to_be_visible(timeout=WAIT_MS)
    wait_until(lambda: told(page) == told(fresh))  # What this one only follows may come a moment later.
    followed = told(page)
    fresh.close()
    page.reload()
    expect(row(page)).to_be_visible(timeout=WAIT_MS)
    wait_until(lambda: told(page) == followed)


def test_output_that_arrives_late_is_filled_in_where_it_belongs_above_the_row(
    follower: Page, after: Serving, past: Past, check: Check
) -> None:
    """F1, F2: text and card in their order, the card with its own duration, both called recovered, and nothing is shown twice."""
    page = opened(follower, after, "s_left")
    card = page.get_by_test_id("tool-card")
    expect(card).to_have_attribute("data-outcome", "running")
    expect(page.locator(".writing")).to_have_count(0)
    expect(page.get_by_test_id("stop")).to_have_count(0)
    check(page, "output that is looked for")
    same_after_a_reload(page)
    past.late["s_left"].arrives()
    recovered(page, after, "s_left")
    expect(answers(page)).to_have_count(1)
    expect(card).to_have_attribute("data-outcome", "done")
    expect(card.locator(".took")).to_have_text("2 s")
    expect(card).to_contain_text("Its result was recovered from the run journal.")
    expect(answers(page).locator("strong")).to_have_text("three days")
    said = page.get_by_role("log").inner_text()
    places = [said.index(part) for part in ("I look up.", "uptime", "And this is", "three days", "Interrupted by a crash")]
    assert places == sorted(places), said
    same_after_a_reload(page)


def test_two_tabs_and_other_readers_at_once_recover_it_once(follower: Page, after: Serving, past: Past) -> None:
    """F3: neither tab reloads, and both show what is stored."""
    page = opened(follower, after, "s_two")
    other = opened(page.context.new_page(), after, "s_two")
    past.late["s_two"].arrives()
    with ThreadPoolExecutor(4) as readers:
        list(readers.map(after.session, ["s_two"] * 8))
    for each in (page, other):
        recovered(each, after, "s_two")
        expect(each.get_by_text("three days", exact=True)).to_have_count(1)
        expect(each.get_by_test_id("tool-card")).to_have_count(1)
    other.close()
    assert len([seen for seen in after.log("s_two") if seen.event == "journal.changed" and seen.body["text"]]) == 1


def test_a_result_that_comes_after_its_call_was_closed_is_shown_late_and_what_was_said_before_as_superseded(
    follower: Page, after: Serving, past: Past, check: Check
) -> None:
    """F2, P5: the card stays what the agent was told; the earlier attempt's words are folded above the interruption."""
    page = opened(follower, after, "s_again")
    expect(answers(page).last).to_contain_text("Second try.")
    past.late["s_again"].arrives()
    recovered(page, after, "s_again")
    card = page.get_by_test_id("tool-card")
    expect(card).to_have_count(1)
    expect(card).to_have_attribute("data-outcome", "unknown")
    expect(card.get_by_test_id("late-result")).to_be_visible()
    expect(card).to_contain_text("up 3 days")
    folded = page.locator('[data-testid="message"][data-status="superseded"]')
    expect(folded).to_have_count(1)
    expect(folded.get_by_text("Up for days.")).to_be_hidden()
    folded.locator("summary").click()
    expect(folded.get_by_text("Up for days.")).to_be_visible()
    check(page, "a late result and what was superseded")
    expect(answers(page).last).to_contain_text("Second try.")
    expect(answers(page).last).not_to_contain_text("Up for days.")
    folded.locator("summary").click()
    same_after_a_reload(page)


def test_a_journal_that_is_still_arriving_is_shown_as_far_as_it_is_there(follower: Page, after: Serving, past: Past) -> None:
    """F4, F7: no try is used up, however often it is read; the rest completes it."""
    page = opened(follower, after, "s_partly")
    past.late["s_partly"].arrives(3)
    wait_until(lambda: after.session("s_partly")["messages"][1]["text"] == "1 2 3 4")
    expect(answers(page)).to_contain_text("1 2 3 4", timeout=WAIT_MS)
    expect(row(page)).to_have_attribute("data-state", "recovering")
    assert len({shown(after, "s_partly")["tries"] for _ in range(12)}) == 1
    same_after_a_reload(page)
    past.late["s_partly"].arrives()
    recovered(page, after, "s_partly")
    assert words(page) == "1 2 3 4 5 6"
    same_after_a_reload(page)


def test_odd_characters_equal_calls_and_half_a_record_lose_and_mix_nothing(follower: Page, after: Serving, past: Past) -> None:
    """F8: each result is on the card of its own call, and the text is as it was said."""
    page = opened(follower, after, "s_odd")
    past.late["s_odd"].arrives(torn=True)
    recovered(page, after, "s_odd")
    cards = page.get_by_test_id("tool-card")
    expect(cards).to_have_count(3)
    assert [card.get_attribute("data-outcome") for card in cards.all()] == ["done", "running", "failed"]
    expect(cards.nth(0)).to_contain_text("first")
    expect(cards.nth(2)).to_contain_text("third")
    assert page.locator(".answer .prose").evaluate_all("all => all.map(each => each.textContent).join('')") == ODD
    same_after_a_reload(page)


def test_what_never_arrived_is_called_possibly_missing_and_nothing_is_invented(follower: Page, after: Serving, past: Past) -> None:
    """F5, F6: after a day the row is neutral, in a tab that has only followed, too; then it is the same after a reload."""
    [page] = [each for each in follower.context.pages if each.url.endswith("s_old")]
    wait_until(lambda: bool(shown(after, "s_old")["state"] == "neutral"), timeout_s=60)
    expect(row(page)).to_have_attribute("data-state", "neutral", timeout=WAIT_MS)
    expect(row(page)).to_contain_text("Some output may be missing.")
    expect(row(page).get_by_test_id("looked-for")).to_have_count(0)
    past.late["s_old"].arrives()  # Too late: it is not even read.
    assert shown(after, "s_old")["state"] == "neutral"
    assert words(page) == "Long ago."
    same_after_a_reload(page)


def test_an_answer_that_is_being_written_is_kept_on_the_device_meanwhile(own_page: Page, serving: Serving) -> None:
    """A reload while the server is away shows what had been written until shortly before, though the answer never rested."""
    send(own_page, "count 600 0.05")
    expect(answers(own_page).first).to_contain_text("1 2 3", timeout=WAIT_MS)
    kept = own_page.evaluate(KEPT, f"s.{open_session(own_page)}")
    assert "1 2 3" in kept
    expect(own_page.get_by_test_id("stop")).to_be_visible()
    own_page.get_by_test_id("stop").click()
