"""An answer in parts over HTTP: the same whether it is loaded, followed, read page by page, or read once its pieces are pruned."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.api import conversation
from holdfast.api import events as api_events
from holdfast.core import events as e
from holdfast.core.content import FilePart, ImagePart, TextPart
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.events import Logged, encode
from holdfast.core.sessions import Session
from holdfast.store import open_store
from holdfast.web import frames
from tests.conformance.steps import ENDED, NOW, append, running, whole_log
from tests.core.logs import Log, begun, fold, text
from tests.gateway.web import world

IMAGE = ImagePart(blob="d1", size=3, media_type="image/png", name="a.png")
FILE = FilePart(blob="d2", size=9, media_type="text/csv", name=None)


def call(call_id: str, step: int = 0, **more: Any) -> e.ToolStarted:
    return e.ToolStarted(call_id=call_id, name="terminal", arguments={"command": "ls"}, effect=Effect.UNSAFE, step=step, **more)


def shown(log: Log) -> dict[str, Any]:
    """The session as HTTP shows it."""
    found = Session(session_id="s", session_key="k", log="l", generation=1, seq=len(log.items), created_at=1, updated_at=1)
    made: dict[str, Any] = msgspec.to_builtins(conversation.session(found, fold(log)))
    return made


STEPS = (
    e.Text(offset=0, text="Let me look."),
    e.ModelResponded(step=0, text="Let me look.", blocks=({"type": "text"},)),
    call("a"),
    e.ToolFinished(call_id="a", outcome=ToolOutcome.DONE, content="ok"),
    e.Text(offset=0, text="It is ", step=1),
    e.Text(offset=6, text="so.", step=1),
    e.ModelResponded(step=1, text="It is so."),
    e.MessageWritten(message_id="t1.answer", role="assistant", content="It is so."),
)
PARTS = [
    {"type": "text", "id": "t1.0.0", "step": 0, "text": "Let me look."},
    {"type": "call", "id": "t1.0.1", "step": 0, "offset": 12, "call_id": "a"},
    {"type": "text", "id": "t1.1.0", "step": 1, "text": "It is so."},
]


@pytest.mark.anyio
async def test_an_answer_has_the_same_parts_before_and_after_its_pieces_are_pruned_and_in_a_snapshot(tmp_path: Path) -> None:
    """P7"""
    store = await open_store(tmp_path, now=lambda: NOW, reserve_bytes=4096)
    await append(store, await running(store), *STEPS, ENDED)
    found = await store.session("s1")
    whole = msgspec.to_builtins(conversation.session(found, fold(await whole_log(store))))
    loaded = msgspec.to_builtins(conversation.session(found, await store.transcript(found)))
    assert whole["messages"] == loaded["messages"]
    assert await store.prune_streams(before=NOW + 1, at=NOW + 1, limit=1000) == 3
    await store.aclose()
    async with world(tmp_path) as made:
        view = await made.view("s1")
        assert view["messages"] == whole["messages"]
        [said, answer] = view["messages"]
        assert (answer["text"], answer["parts"]) == ("It is so.", PARTS)
        assert said["parts"] == [{"type": "text", "text": "hello"}]
        assert [(found["call_id"], found["step"]) for found in answer["tool_calls"]] == [("a", 0)]
        page = (await made.client.get("/api/sessions/s1/messages", params={"limit": 1})).json()
        assert page["messages"] == [answer]
        session = await made.gateway.session("s1")
        transcript = await made.gateway.store.transcript(session)
        snapshot = json.loads(frames.snapshot("l", 1, conversation.snapshot(session, transcript, "pruned")).split(b"data: ")[1])
        assert snapshot["messages"] == view["messages"]


def test_an_attachment_is_shown_by_digest_name_size_and_type_wherever_it_stands() -> None:
    log = Log().free(e.MessageAccepted(message_id="m1", content=(TextPart("What is this?"), IMAGE)))
    log.turn = "t1"
    log.in_turn(e.TurnStarted(generation=1, attempt=1, cause="message", causes=("m1",), owner=1, epoch=1), call("a"))
    log.in_turn(e.ToolFinished(call_id="a", outcome=ToolOutcome.DONE, content=(TextPart("a table"), FILE)))
    log.in_turn(text("See:", 0), e.MessageWritten(message_id="t1.answer", role="assistant", content=(TextPart("See:"), IMAGE)))
    [said, answer] = shown(log)["messages"]
    image = {"type": "image", "digest": "d1", "size": 3, "media_type": "image/png", "name": "a.png"}
    assert (said["text"], said["parts"]) == ("What is this?", [{"type": "text", "text": "What is this?"}, image])
    [found] = answer["tool_calls"]
    file = {"type": "file", "digest": "d2", "size": 9, "media_type": "text/csv", "name": None}
    assert (found["result"], found["result_parts"]) == ("a table", [{"type": "text", "text": "a table"}, file])
    assert answer["parts"] == [
        {"type": "call", "id": "t1.0.1", "step": 0, "offset": 0, "call_id": "a"},
        {"type": "text", "id": "t1.0.2", "step": 0, "text": "See:"},
        image | {"id": "t1.0.3", "step": 0},
    ]
    assert api_events.data(log.items[0])["parts"] == said["parts"] and api_events.data(log.items[0])["text"] == "What is this?"
    assert json.loads(frames.encode(log.items[0]).split(b"data: ")[1])["parts"] == msgspec.to_builtins(said["parts"])


def test_every_open_question_is_shown_with_its_call_and_its_choices() -> None:
    """R5"""
    log = begun().in_turn(call("a"), call("b"))
    for name, form, choices in (("a", "approval", ("approve", "deny")), ("b", "question", ())):
        asked = e.QuestionAsked(question_id=f"q{name}", call_id=name, content=f"{name}?", expires_at=99, form=form, choices=choices)
        log.in_turn(msgspec.structs.replace(asked, ends_attempt=False))
    log.in_turn(e.TurnWaiting(question_ids=("qa", "qb")))
    [first, second] = shown(log)["questions"]
    assert first == {
        "question_id": "qa", "kind": "approval", "turn_id": "t1", "call_id": "a", "text": "a?", "parts": [{"type": "text", "text": "a?"}],
        "choices": ["approve", "deny"], "call": {"name": "terminal", "arguments": {"command": "ls"}}, "pattern": None,
        "asked_at": first["asked_at"], "expires_at": "1970-01-01T00:00:00.099Z",
    }  # fmt: skip
    assert (second["question_id"], second["kind"], second["choices"]) == ("qb", "question", [])
    assert shown(log)["turns"][0]["state"] == "waiting"
    log.in_turn(e.QuestionAnswered(question_id="qa", call_id="a", content="yes", last=False))
    assert [question["question_id"] for question in shown(log)["questions"]] == ["qb"]
    assert shown(log)["turns"][0]["state"] == "waiting"


def test_a_message_that_a_running_turn_took_is_shown_in_its_place() -> None:
    log = (
        begun()
        .in_turn(text("One. ", 0), call("a", offset=5))
        .said("m2", "and that?")
        .free(e.CauseRecorded(cause_id="k1", what="process", content="It ended with 0."))
    )
    view = shown(log)
    assert [(message["id"], message["role"], message.get("cause")) for message in view["messages"]][2:] == [
        ("m2", "user", None),
        ("k1", "cause", "process"),
    ]
    log.in_turn(e.CauseTaken(cause_id="m2", offset=5), e.CauseTaken(cause_id="k1", offset=5), text("Two.", 5))
    view = shown(log)
    assert [(message["id"], message["turn_id"]) for message in view["messages"]] == [
        (name, "t1") for name in ("m1", "m2", "k1", "t1.answer")
    ]
    assert [(part["type"], part["id"]) for part in view["messages"][-1]["parts"]] == [
        ("text", "t1.0.0"), ("call", "t1.0.1"), ("message", "t1.0.3"), ("message", "t1.0.5"), ("text", "t1.0.6"),
    ]  # fmt: skip


def test_pieces_say_which_step_they_belong_to() -> None:
    for event, step in (
        (text("x", 0), 0),
        (text('"step":1', 0), 0),
        (text("x", 0, 2), 2),
        (e.Reasoning(text="x"), 0),
        (e.TurnAlive(), None),
    ):
        logged = Logged(session_id="s", seq=1, turn_id="t", attempt=2, position=3, kind=event.kind, at=1, body=encode(event))
        sent = json.loads(frames.encode(logged).split(b"data: ")[1])
        assert (sent.get("step"), sent["attempt"]) == (step, 2)
        assert sent == api_events.data(logged)


def test_an_answer_of_very_many_parts_is_shown_by_its_newest_ones() -> None:
    """P8"""
    log = begun()
    for step in range(2000):
        log.in_turn(e.ModelResponded(step=step, text="word " * 1000), call(f"c{step}", step))
    answer = shown(log)["messages"][-1]
    assert (len(answer["parts"]), answer["parts_omitted"]) == (1000, 3000)
    assert answer["parts"][-1] == {"type": "call", "id": "t1.1999.1", "step": 1999, "offset": 5000, "call_id": "c1999"}
    assert len(json.dumps(answer["parts"])) < 1_200_000
