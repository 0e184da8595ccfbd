"""Frames: whatever is stored, what goes out is one well-formed event (P7, P8)."""

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from holdfast.api import events
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.events import KINDS, Event, Logged, encode
from holdfast.core.turns import Outcome
from holdfast.web import frames
from tests.gateway import sse

ANY_TEXT = st.text(st.characters(codec="utf-8"))
st.register_type_strategy(Effect, st.sampled_from(Effect))
st.register_type_strategy(ToolOutcome, st.sampled_from(ToolOutcome))
st.register_type_strategy(Outcome, st.sampled_from(Outcome))


def bodies(kind: type[Event]) -> st.SearchStrategy[Event]:
    fields: dict[str, st.SearchStrategy[Any]] = {}
    for field in msgspec.structs.fields(kind):
        by_name = {
            "arguments": st.dictionaries(ANY_TEXT, st.none() | st.booleans() | ANY_TEXT),
            "causes": st.tuples(ANY_TEXT),
            "question_ids": st.tuples(ANY_TEXT),
            "pieces": st.just(()),
        }
        words = {"effect": st.sampled_from(Effect), "outcome": st.sampled_from(list(Outcome))}
        if field.name in by_name:
            fields[field.name] = by_name[field.name]
        elif field.name in words:
            fields[field.name] = st.sampled_from(ToolOutcome) if kind.kind == "tool.finished" else words[field.name]
        elif field.type is int:
            fields[field.name] = st.integers(-(2**53), 2**53)
        elif field.default is not msgspec.NODEFAULT:
            fields[field.name] = st.just(field.default)
        else:
            fields[field.name] = ANY_TEXT
    return st.builds(kind, **fields)


EVENTS = st.one_of([bodies(kind) for kind in KINDS.values()])


@given(EVENTS, st.integers(0, 2**62), st.none() | ANY_TEXT, st.integers(-(2**62), 2**62))
def test_every_event_becomes_one_frame_with_its_place_and_its_content(event: Event, seq: int, turn_id: str | None, at: int) -> None:
    logged = Logged("s", seq, turn_id, 3, 7, event.kind, at, encode(event))
    data = frames.join("l_og", [frames.encode(logged)])
    assert data.endswith(b"\n\n") and b"\r" not in data
    assert len(data.decode().splitlines()) == 4  # By the most eager notion of a line.
    parsed = sse.parse(data[:-2])
    assert parsed is not None and (parsed.id, parsed.name) == (f"l_og.{seq}", event.kind)
    stored = json.loads(logged.body)
    if event.kind in ("model.responded", "journal.changed"):
        stored.setdefault("text", "")
    if event.stream:
        assert {name: parsed.data[name] for name in stored} == stored
    assert not set(parsed.data) & {"dedup_key", "owner", "epoch", "log", "blocks"}
    assert (parsed.data["at"] is None) == (at == 0)
    if turn_id is not None:
        assert (parsed.data["turn_id"], parsed.data["attempt"], parsed.data["position"]) == (turn_id, 3, 7)
    for name in ("text", "message_id", "question_id", "reason", "result", "call_id"):
        assert parsed.data.get(name) == stored.get(name)


@given(EVENTS, st.none() | ANY_TEXT, st.integers(-(2**62), 2**62))
def test_the_command_line_shows_an_event_as_the_stream_does(event: Event, turn_id: str | None, at: int) -> None:
    """P7: `holdfast show --events` reads the store when no gateway runs, and says the same."""
    logged = Logged("s", 1, turn_id, 3, 7, event.kind, at, encode(event))
    parsed = sse.parse(frames.join("l_og", [frames.encode(logged)])[:-2])
    assert parsed is not None and parsed.data == json.loads(json.dumps(events.data(logged)))


@given(
    st.sampled_from(sorted(KINDS)),
    st.binary() | st.sampled_from([b"{}", b"", b"{", b"null", b'{ "text":"a",\n"offset":0}', b'{"text":"\xff"}']),
)
def test_bytes_that_should_never_have_been_stored_still_make_one_frame(kind: str, body: bytes) -> None:
    data = frames.join("l", [frames.encode(Logged("s", 5, "t", 1, 0, kind, 1, body))])
    assert data.count(b"\n") == 4 and data.endswith(b"\n\n") and b"\r" not in data


def test_an_empty_body_is_well_formed() -> None:
    for turn_id in (None, "t"):
        data = frames.encode(Logged("s", 5, turn_id, 1, 0, "reasoning", 1, b"{}"))
        assert isinstance(json.loads(data.split(b"data: ")[1]), dict)
