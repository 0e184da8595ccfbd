"""Turns that no process runs: what a stop, a question and a suspension leave behind."""

from pathlib import Path

import msgspec
import pytest

from holdfast.core.effects import Effect
from holdfast.core.events import MessageAccepted, QuestionAsked, SessionChanged, Text, ToolStarted
from holdfast.core.plans.start import StartedTurn
from holdfast.core.plans.wait import Waiting
from holdfast.core.transcript import Transcript
from holdfast.core.turns import TurnState
from holdfast.ports.inbox import Terms
from holdfast.ports.owners import Owner
from holdfast.ports.store import Store
from holdfast.store import open_store

pytestmark = pytest.mark.anyio

ASKS = (
    ToolStarted(call_id="c", name="ask", arguments={}, effect=Effect.PURE),
    QuestionAsked(question_id="q", call_id="c", content="why?", expires_at=2**50),
)


async def _store(home: Path) -> Store:
    store = await open_store(home, now=lambda: 1)
    await store.register_owner(Owner(name="one", pid=1, started_at=1, boot_id="b"))
    await store.create_session(session_id="s", session_key="agent:main:web:page:s", log="l", at=1)
    return store


async def _accept(store: Store, message_id: str) -> None:
    message = MessageAccepted(message_id=message_id, content=message_id, sender="ann")
    await store.accept("s", message, Terms(fresh=("s2", "l2"), max_waiting=100), at=1)


async def _start(store: Store) -> StartedTurn:
    await _accept(store, "m1")
    started = await store.start_turn("s", owner=1, turn_id="t", at=1)
    assert started is not None
    return started


async def _append(store: Store, started: StartedTurn, *events: object) -> None:
    await store.append_turn(started.lease, turn_id="t", attempt=1, position=started.position, events=events, at=1)  # type: ignore[arg-type]


async def test_a_turn_that_was_stopped_does_not_wait_for_an_answer(tmp_path: Path) -> None:
    """A21, R0: the stop was acknowledged; its process is told so when it is about to wait."""
    store = await _store(tmp_path)
    try:
        started = await _start(store)
        await store.request_stop("s", by="ann", dedup_key=None, at=1)
        call, asked = ASKS
        await _append(store, started, call, msgspec.structs.replace(asked, ends_attempt=False))
        waits, _ = await store.wait_turn(started.lease, turn_id="t", attempt=1, position=started.position + 2, asking=("c",), at=1)
        assert waits == Waiting(stopped=True)
        assert (await store.session("s")).turn_state is TurnState.RUNNING
    finally:
        await store.aclose()


async def test_a_suspended_session_starts_no_turn(tmp_path: Path) -> None:
    """A20: what waited in it is refused in that transaction."""
    store = await _store(tmp_path)
    try:
        await _accept(store, "m1")
        await store.change_session("s", SessionChanged(suspended=True), at=1)
        assert await store.start_turn("s", owner=1, turn_id="t", at=1) is None
        assert (await store.session("s")).queued == 0
    finally:
        await store.aclose()


async def test_what_a_waiting_turn_had_said_is_kept_when_it_is_stopped(tmp_path: Path) -> None:
    """P7: a page that loads later shows what the reader saw."""
    store = await _store(tmp_path)
    try:
        started = await _start(store)
        await _append(store, started, Text(offset=0, text="Let me think."), *ASKS)
        await store.request_stop("s", by="ann", dedup_key=None, at=1)
        loaded = Transcript().extend(await store.records("s", after=0, limit=100))
        assert loaded.answer_text == "Let me think."
    finally:
        await store.aclose()
