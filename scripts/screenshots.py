"""Makes the pictures of the page for the README and the documentation: a real server, a real browser, a real kill, a real hand-over. The
model and the chat platform are the tests' own; what is said is in `pictured.py`. The days before today are written into the store. Every
view light and dark, wide and narrow. Run it with `.venv/bin/python -m scripts.screenshots`; it replaces `docs/images`.
"""

import asyncio
import contextlib
import shutil
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from playwright.sync_api import Page, sync_playwright

import holdfast
from holdfast.core import events as e
from holdfast.core.events.steps import Usage
from holdfast.core.turns import Outcome
from holdfast.ports.inbox import Terms
from holdfast.ports.owners import Owner, Pause
from holdfast.ports.store import Store
from holdfast.store import open_store
from scripts import pictured
from tests.browser.acting import go_to, open_session, send
from tests.browser.conftest import FLAGS, chromium, printed_address
from tests.e2e.serving import Serving, hand_over, wait_until
from tests.fakes.models.server import ModelServer
from tests.fakes.telegram.server import TOKEN
from tests.fakes.telegram.thread import TelegramThread
from tests.fakes.threads import ServerThread

IMAGES = Path(__file__).parents[1] / "docs" / "images"
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 390, "height": 780}
TALL = {"width": 1280, "height": 1860}
HOUR_MS = 3_600_000
ANA, STRANGER = 100, 300
# Long enough for the small lines of the operator's view to be lines: now and then somebody asks for something.
MEASURED_S, PAUSE_S = 120, 30
PRICES = """
[agent.prices."chat:main"]
input = 2.0
cached = 0.5
output = 10.0
[agent.prices."chat:small"]
input = 0.2
output = 0.8
"""


def shot(page: Page, name: str, *, tall: bool = False) -> None:
    page.mouse.move(0, 0)
    for width, size in (("", TALL if tall else WIDE), ("-phone", NARROW))[1 if name == "list" else 0 :]:
        page.set_viewport_size(size)  # type: ignore[arg-type]
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
            page.wait_for_timeout(250)
            page.screenshot(path=IMAGES / f"{name}{width}-{scheme}.png")
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]


class Model(ModelServer):
    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


@contextlib.contextmanager
def workshop() -> Iterator[Path]:
    """The folder that commands work in. It stands in approvals, so it has a name that says nothing about this machine."""
    folder = Path(tempfile.gettempdir()) / "shop"
    folder.mkdir()
    try:
        for name, lines in pictured.PROGRAMS.items():
            program = folder / name
            program.write_text("#!/bin/sh\n" + textwrap.dedent(lines).strip() + "\n")
            program.chmod(0o755)
        (folder / "CHANGES.md").write_text(pictured.LOG)
        yield folder
    finally:
        shutil.rmtree(folder)


# The days before


async def write_past(home: Path) -> None:
    """A week as the gateway would have left it: conversations, what models used, which processes served, a pause."""
    end = int(time.time() * 1000)
    clock = [end]
    store = await open_store(home, now=lambda: clock[0])

    async def process(pid: int, begun: float) -> int:
        at = end - int(begun * HOUR_MS)
        owner = await store.register_owner(Owner(name=f"past{pid}", pid=pid, started_at=at, boot_id="before"))
        await store.record_start(owner, at=at, version=holdfast.__version__)
        return owner

    first = await process(2210, 90)
    for number, past in enumerate(pictured.PAST):
        await exchange(store, first, f"past{number}", past.title, past.said, past.answer, at=end - int(past.hours * HOUR_MS))
    await support(store, first, end)
    clock[0] = end - 8 * HOUR_MS
    await store.set_pause(Pause(holder="ana", since=clock[0], until=clock[0] + HOUR_MS))
    clock[0] += 40 * 60_000
    await store.set_pause(None)
    clock[0] = end - int(3.2 * HOUR_MS)
    await store.record_end(first, handed_over=True)
    second = await process(2764, 3.2)
    clock[0] = end - int(0.1 * HOUR_MS)
    await store.record_end(second)
    await store.aclose()


async def exchange(store: Store, owner: int, name: str, title: str, said: str, told: str, *, at: int) -> None:
    await store.create_session(session_id=f"s_{name}", session_key=f"agent:main:web:page:s_{name}", log=f"l_{name}", at=at, title=title)
    await turn(store, owner, name, 0, said, told, at=at, usage=Usage(input=21_000, output=1_900), cost=61_000)


async def support(store: Store, owner: int, end: int) -> None:
    """A conversation that is busy all day."""
    name = "support"
    begun = end - 7 * 24 * HOUR_MS
    key = "agent:main:web:page:s_support"
    await store.create_session(session_id="s_support", session_key=key, log="l_support", at=begun, title="Support inbox")
    number = 0
    for day, many in ((6, 5), (5, 9), (4, 6), (3, 2), (2, 1)):
        for _ in range(many):
            at = end - day * 24 * HOUR_MS + number
            used = Usage(input=60_000, output=4_200)
            await turn(store, owner, name, number, "A new mail came in.", "Sorted.", at=at, usage=used, cost=162_000)
            number += 1
    for hour, many in enumerate(pictured.TRAFFIC):
        for place in range(many):
            at = end - (len(pictured.TRAFFIC) - hour) * HOUR_MS + place * HOUR_MS // many
            used, failed = Usage(input=1_700, output=110), number % 97 == 17
            await turn(store, owner, name, number, "A new mail came in.", "Sorted.", at=at, usage=used, cost=4_500, failed=failed)
            number += 1


async def turn(
    store: Store, owner: int, name: str, number: int, said: str, told: str, *, at: int, usage: Usage, cost: int, failed: bool = False
) -> None:
    day = time.strftime("%Y-%m-%d", time.localtime(at / 1000))
    message = e.MessageAccepted(message_id=f"m_{name}{number}", content=said, dedup_key=None)
    await store.accept(f"s_{name}", message, Terms(fresh=(f"f_{name}{number}", f"fl_{name}{number}"), max_waiting=100), at=at)
    turn_id = f"t_{name}{number}"
    begun = await store.start_turn(f"s_{name}", owner=owner, turn_id=turn_id, at=at)
    assert begun is not None
    model = "main" if number % 3 else "small"
    share = 1 if model == "main" else 4
    responded = e.ModelResponded(step=0, text=told, usage=usage, cost=cost // share, provider="chat", model=model, day=day, sender="owner")
    written = e.MessageWritten(message_id=f"{turn_id}.answer", role="assistant", content=told)
    ended = e.TurnEnded(outcome=Outcome.FAILED, error="the model did not answer") if failed else e.TurnEnded(outcome=Outcome.COMPLETED)
    done = [ended] if failed else [responded, written, ended]
    await store.append_turn(begun.lease, turn_id=turn_id, attempt=begun.attempt, position=begun.position, events=done, at=at + 4_000)


# Today


def begin(serving: Serving, words: str, *, state: str = "idle") -> str:
    """A conversation that was begun in another tab, or on a phone. One that has no answer yet was named by a person."""
    session_id = serving.new_session()
    serving.post(session_id, words)
    serving.wait_for(session_id, state=state)
    if state != "idle":
        with serving.client() as client:
            client.patch(f"/api/sessions/{session_id}", json={"title": pictured.TITLES[words]}).raise_for_status()
    return session_id


def see(serving: Serving, session_id: str) -> None:
    with serving.client() as client:
        client.post(f"/api/sessions/{session_id}/seen", json={"cursor": serving.session(session_id)["cursor"]}).raise_for_status()


def write(telegram: TelegramThread, user: int, name: str, words: str) -> None:
    telegram.say(user, words, **{"from": {"id": user, "is_bot": False, "first_name": name}})


def play(page: Page, serving: Serving, telegram: TelegramThread) -> str:
    """A working day: chats, what runs on the side, and an answer that is interrupted by a kill in the middle of a call. Gives one of its
    conversations.
    """
    write(telegram, ANA, "Ana", pictured.TRAIN)
    wait_until(lambda: any("08:12" in each for each in telegram.texts(ANA)))
    write(telegram, STRANGER, "Jonas", "Hello, may I ask something?")
    seen = [begin(serving, pictured.WATCH), begin(serving, pictured.PHOTOS), begin(serving, pictured.SHOPPING)]
    serving.post(seen[0], f"/remind every weekday 7:30 {pictured.DIGEST}")
    with serving.client() as client:
        client.patch(f"/api/sessions/{seen[2]}", json={"pinned": True}).raise_for_status()
        for name in [f"s_past{number}" for number in range(len(pictured.PAST))] + ["s_support"]:
            seen.append(name)
    digest = begin(serving, pictured.DIGEST)
    seen += [digest, begin(serving, pictured.ON_CALL, state="waiting")]
    begin(serving, pictured.GUIDE)
    for each in seen:
        see(serving, each)
    page.get_by_test_id("new-conversation").click()
    send(page, pictured.READY)
    page.get_by_role("heading", name=pictured.TITLES[pictured.READY]).wait_for()
    send(page, pictured.RELEASE)
    page.locator('[data-testid="tool-card"][data-outcome="running"]').filter(has_text="notify").wait_for()
    page.wait_for_timeout(2500)
    serving.kill()
    page.get_by_test_id("away").get_by_text("Holdfast is not answering").wait_for()
    page.wait_for_timeout(400)
    shot(page, "away")
    serving.start()
    page.get_by_test_id("approval").wait_for()
    return digest


def main() -> int:
    IMAGES.mkdir(exist_ok=True)
    for old in IMAGES.glob("*.png"):
        old.unlink()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        page = browser.new_page(viewport=WIDE)  # type: ignore[arg-type]
        with tempfile.TemporaryDirectory() as made, Serving(Path(made) / "home") as serving:
            first_run(page, serving)
        page = browser.new_context(viewport=WIDE).new_page()  # type: ignore[arg-type]
        with (
            tempfile.TemporaryDirectory() as made,
            workshop() as folder,
            ServerThread(Model(pictured.answer)) as model,
            TelegramThread() as telegram,
        ):
            home = Path(made) / "home"
            home.mkdir(mode=0o700)
            (home / "config.toml").write_text(PRICES)
            with ThreadPoolExecutor(1) as apart:  # The browser's loop runs in this thread.
                apart.submit(lambda: asyncio.run(write_past(home))).result()
            serving = Serving(home, model="chat:main", model_base_url=model.server.url, model_api_key="sk-of-the-pictures")
            serving.configure(agent_titles="true", agent_title_model="chat:small", agent_models="chat:small")
            serving.configure(telegram_token=TOKEN, telegram_base_url=telegram.url, telegram_allowed_users=str(ANA))
            serving.configure(tools_folder=str(folder), policy_ask="terminal(./deploy *)")
            with serving:
                daily(page, serving, telegram)
        browser.close()
    return 0


def first_run(page: Page, serving: Serving) -> None:
    page.goto(serving.url)
    page.get_by_test_id("token").wait_for()
    shot(page, "sign-in")
    page.goto(printed_address(serving))
    page.get_by_test_id("kill").wait_for()
    shot(page, "first-run")


def daily(page: Page, serving: Serving, telegram: TelegramThread) -> None:
    page.goto(printed_address(serving))
    page.get_by_test_id("composer").wait_for()
    digest = play(page, serving, telegram)
    index = begin(serving, pictured.REINDEX, state="running")
    see(serving, index)
    serving.post(index, pictured.QUEUED)
    release = open_session(page)
    page.reload()
    page.get_by_test_id("approval").wait_for()
    shot(page, "page")
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    page.get_by_test_id("show-list").click()
    shot(page, "list")
    page.keyboard.press("Escape")
    page.get_by_test_id("conversation-item").filter(has_text=pictured.TITLES[pictured.GUIDE]).get_by_role("link").first.click()
    page.get_by_role("heading", name=pictured.TITLES[pictured.GUIDE]).wait_for()
    page.get_by_role("table").wait_for()
    shot(page, "answer")
    go_to(page, index)
    page.get_by_text("batch 7 of").first.wait_for()
    shot(page, "work")
    go_to(page, release)
    page.get_by_test_id("approval").wait_for()
    page.keyboard.press("Control+k")
    page.get_by_test_id("palette-field").wait_for()
    shot(page, "palette")
    page.keyboard.press("Escape")
    page.get_by_test_id("what-happened").click()
    page.get_by_test_id("story").wait_for()
    shot(page, "turn")
    hand_over(serving)
    write(telegram, ANA, "Ana", pictured.INVOICES)
    wait_until(lambda: any("Studio Lind" in each for each in telegram.texts(ANA)))
    page.goto(f"{serving.url}/operations")
    page.get_by_test_id("day").get_by_role("img").wait_for()
    for _ in range(MEASURED_S // PAUSE_S):
        serving.post(digest, pictured.DIGEST)
        page.wait_for_timeout(PAUSE_S * 1000)
    shot(page, "operations", tall=True)


if __name__ == "__main__":
    sys.exit(main())
