"""One session's long output, long message or long history: everybody else goes on, and nobody takes a part for the whole (P8)."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import TypeVar

import pytest
from starlette.types import Message

from holdfast.core import events as e
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.output import RECORDED_HEAD, RECORDED_TAIL, SAMPLE
from holdfast.ports.store import Store
from holdfast.store import open_store
from tests.conformance.steps import ENDED, NOW, append, new_owner, new_session, running, say, start, whole_log
from tests.gateway.web import TOKEN, WAIT_S, Hands, World, eventually, world
from tests.pulse import undisturbed

T = TypeVar("T")
pytestmark = pytest.mark.anyio
# An answer over HTTP, whatever is asked for.
MOST_BYTES = 2_000_000
# Measured at a tenth of it and less.
SILENCE_S = 0.5


@pytest.fixture
async def web(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


async def unhurt(work: Awaitable[T]) -> T:
    """Does it, and finds that nobody else had to wait for it."""
    async with undisturbed(SILENCE_S):
        return await work


async def streamed(made: World, session_id: str, *, after: str, until: str) -> bytes:
    """The event stream as it is sent, up to where these words come."""
    sent, there = bytearray(), asyncio.Event()

    async def receive() -> Message:
        await there.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.extend(message.get("body", b""))
        if until.encode() in sent[-100_000:]:
            there.set()

    headers = [(b"host", f"127.0.0.1:{made.port}".encode()), (b"authorization", f"Bearer {TOKEN}".encode())]
    path = f"/api/sessions/{session_id}/events"
    scope = {"type": "http", "method": "GET", "scheme": "http", "path": path, "raw_path": path.encode(), "headers": headers}
    async with asyncio.timeout(WAIT_S):
        await made.app(scope | {"query_string": f"after={after}".encode()}, receive, send)
    return bytes(sent)


async def recorded(store: Store, session_id: str) -> list[e.ToolOutput]:
    events = [item.event for item in await whole_log(store, session_id)]
    return [event for event in events if isinstance(event, e.ToolOutput)]


async def resumed(made: World) -> bool:
    [turn] = (await made.view("s1"))["turns"]
    return bool(turn["attempt"] == 2)


async def test_of_a_long_output_the_log_has_the_beginning_the_end_and_a_count(web: World) -> None:
    """P8, P5: what is left out is counted where it is missing; the result says it too."""
    session_id = await web.new_session()
    await web.post(session_id, "pour 40000000")
    await eventually(web.printer.poured.is_set)
    web.printer.released.set()
    view = await web.until_state(session_id, "idle")
    outputs = await recorded(web.gateway.store, session_id)
    poured = 40_000_000 // 65536 * 65536 + len("the end")
    assert sum(len(piece.text) + piece.omitted for piece in outputs) == poured
    assert sum(len(piece.text) for piece in outputs) <= RECORDED_HEAD + RECORDED_TAIL + 16 * SAMPLE
    assert (outputs[0].text, outputs[-1].text[-7:]) == ("x" * RECORDED_HEAD, "the end")
    [call] = view["messages"][1]["tool_calls"]
    assert call["result"].endswith("the end") and call["result_omitted"] > 0
    assert "characters left out ...]" in call["result"]
    assert len(json.dumps(view)) < MOST_BYTES


async def test_a_reader_sees_a_long_output_grow_while_its_tool_goes_on_in_silence(web: World) -> None:
    """P7, P8: what came last is shown when its time has come, without another word from the tool."""
    session_id = await web.new_session()
    await web.post(session_id, "pour 1000000")
    await eventually(web.printer.poured.is_set)
    web.clock.pass_s(1.5)

    async def shown() -> bool:
        view = await web.view(session_id)
        [call] = view["messages"][1]["tool_calls"]
        return bool(call["output"].endswith("the end") and call["output_omitted"] > 900_000 and call["outcome"] is None)

    async with asyncio.timeout(WAIT_S):
        while not await shown():  # noqa: ASYNC110 - the sweep looks every second, by its own clock.
            await asyncio.sleep(0.05)


async def test_output_that_is_not_recorded_is_a_sign_of_life_all_the_same(web: World) -> None:
    """P3: a turn whose tool puts something out is not idle, whether it is recorded or not."""
    session_id = await web.new_session()
    await web.post(session_id, "pour 1000000")
    await eventually(web.printer.poured.is_set)
    web.clock.pass_s(0.9)
    [attempt] = web.gateway.runner.attempts.values()
    before = attempt.idle_s
    await web.printer.put_out("more")
    assert before > 0.8 and attempt.idle_s == 0
    assert "more" not in [piece.text for piece in await recorded(web.gateway.store, session_id)]


async def test_forty_megabytes_that_an_older_version_recorded_hold_up_nobody(tmp_path: Path) -> None:
    """P8: the turn of such a session is found, decided upon, resumed and read while the event loop goes on. It was silent for 10 s."""
    store = await open_store(tmp_path, now=lambda: NOW, reserve_bytes=4096)
    await new_session(store)
    await say(store, text="hold")
    turn = await start(store, "s1", "t1", owner=await new_owner(store))
    turn = await append(store, turn, e.ToolStarted(call_id="c", name="terminal", arguments={}, effect=Effect.UNSAFE))
    for _ in range(20):
        turn = await append(store, turn, *(e.ToolOutput(call_id="c", text="y" * 65536) for _ in range(32)), at=Hands().now())
    await store.aclose()
    async with world(tmp_path) as made:
        await unhurt(made.until(lambda: resumed(made)))
        answer = await unhurt(made.client.get("/api/sessions/s1"))
        assert len(answer.content) < MOST_BYTES
        [call] = next(message for message in answer.json()["messages"] if message["role"] == "assistant")["tool_calls"]
        assert (call["outcome"], call["output_omitted"]) == ("unknown", 20 * 32 * 65536 - 16 * 1024)


async def test_an_answer_carries_a_part_of_a_huge_message_and_says_where_it_is_whole(web: World) -> None:
    """P8: six megabytes that were said, and said back."""
    said = "".join(f"line {number}\n" for number in range(480_000))
    session_id = await web.new_session()
    view = await unhurt(web.say(session_id, said))
    assert len(json.dumps(view)) < MOST_BYTES
    for message in view["messages"]:
        assert message["text"].startswith("line 0\n") and message["text"].endswith("line 479999\n")
        assert message["text_omitted"] == len(said) - 256 * 1024
        sent = await unhurt(streamed(web, session_id, after=message["whole_after"], until="479999"))
        assert json.loads(sent.split(b"data: ")[1].split(b"\n\n")[0])["text"] == said


async def test_a_session_of_a_hundred_thousand_events_holds_up_nobody(tmp_path: Path) -> None:
    """P8: read whole, followed from the beginning, and continued with another turn."""
    store = await open_store(tmp_path, now=lambda: NOW, reserve_bytes=4096)
    turn = await running(store)
    for page in range(100):
        turn = await append(store, turn, *(e.Text(offset=4 * (1000 * page + number), text="word") for number in range(1000)))
    await store.aclose()
    async with world(tmp_path) as made:
        view = await unhurt(made.until_state("s1", "idle"))
        assert int(view["cursor"].rpartition(".")[2]) > 100_000
        sent = await unhurt(streamed(made, "s1", after="0", until=f"id: {view['cursor']}\n"))
        assert sent.count(b"\nevent: text\n") == 100_000
        await unhurt(made.say("s1", "hello"))


async def test_a_long_conversation_comes_in_pages_and_nothing_of_it_is_missing(tmp_path: Path) -> None:
    """P8: an answer has a page of messages, with their turns, and says where the page before it is."""
    store = await open_store(tmp_path, now=lambda: NOW, reserve_bytes=4096)
    owner = await new_owner(store)
    await new_session(store)
    for number in range(700):
        await say(store, text=f"said {number}", message_id=f"m{number}")
        turn = await start(store, "s1", f"t{number}", owner=owner)
        await append(store, turn, e.MessageWritten(message_id=f"t{number}.answer", role="assistant", content=f"answer {number}"), ENDED)
    await store.aclose()
    async with world(tmp_path) as made:
        view = await made.view("s1")
        pages = [view]
        while pages[-1]["earlier"] is not None:
            before = pages[-1]["earlier"]
            answer = await made.client.get("/api/sessions/s1/messages", params={"before": before, "limit": 300})
            assert answer.status_code == 200
            pages.append(answer.json())
        assert [len(page["messages"]) for page in pages] == [500, 300, 300, 300]
        assert [len(page["turns"]) for page in pages] == [250, 150, 150, 150]
        shown = [message["text"] for page in reversed(pages) for message in page["messages"]]
        assert shown == [text for number in range(700) for text in (f"said {number}", f"answer {number}")]
        newest = (await made.client.get("/api/sessions/s1/messages", params={"limit": 2})).json()
        assert [message["text"] for message in newest["messages"]] == ["said 699", "answer 699"]
        wrong = await made.client.get("/api/sessions/s1/messages", params={"before": "no"})
        assert (wrong.status_code, wrong.json()["error"]["code"]) == (400, "bad_input")


async def test_a_page_of_many_long_messages_and_calls_stays_a_page(tmp_path: Path) -> None:
    """P8: a hundred huge messages that wait, and a turn of two thousand calls with long results."""
    store = await open_store(tmp_path, now=lambda: NOW, reserve_bytes=4096)
    turn = await running(store)
    for number in range(0, 2000, 100):
        calls: list[e.Event] = []
        for each in range(number, number + 100):
            arguments = {"command": "c" * 20_000}
            calls.append(e.ToolStarted(call_id=f"c{each}", name="terminal", arguments=arguments, effect=Effect.UNSAFE))
            calls.append(e.ToolFinished(call_id=f"c{each}", outcome=ToolOutcome.DONE, content="r" * 60_000))
        turn = await append(store, turn, *calls)
    await append(store, turn, ENDED)
    await store.aclose()
    async with world(tmp_path) as made:
        answer = await unhurt(made.client.get("/api/sessions/s1"))
        assert len(answer.content) < MOST_BYTES
        shown = answer.json()["messages"][-1]
        assert (len(shown["tool_calls"]), shown["tool_calls_omitted"]) == (200, 1800)
        assert shown["tool_calls"][-1]["call_id"] == "c1999" and shown["tool_calls"][-1]["result_omitted"] == 60_000 - 16 * 1024
        await made.post("s1", "hold")
        await made.until_state("s1", "running")
        for _ in range(20):
            await made.post("s1", "long " * 1_000_000)
        answer = await unhurt(made.client.get("/api/sessions/s1"))
        assert len(answer.content) < MOST_BYTES and answer.json()["earlier"] is not None


async def test_a_page_of_calls_with_long_arguments_stays_a_page(tmp_path: Path) -> None:
    """P8"""
    store = await open_store(tmp_path, now=lambda: NOW, reserve_bytes=4096)
    owner = await new_owner(store)
    await new_session(store)
    arguments = {name: "a" * 15_000 for name in ("one", "two", "three", "four")}
    for number in range(30):
        await say(store)
        turn = await start(store, "s1", f"t{number}", owner=owner)
        calls = (e.ToolStarted(call_id=f"c{each}", name="files", arguments=arguments, effect=Effect.PURE) for each in range(8))
        await append(store, turn, *calls, ENDED)
    await store.aclose()
    async with world(tmp_path) as made:
        answer = await made.client.get("/api/sessions/s1")
        assert len(answer.content) < MOST_BYTES and answer.json()["earlier"] is not None
