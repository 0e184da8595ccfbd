"""Every kind of event: written down and read back the same, and honest about what does not read."""

import itertools
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core import content
from holdfast.core import events as e
from holdfast.core.content import Content
from holdfast.core.elicitation import Elicited, Request
from holdfast.core.events import KINDS, Damaged, Event, Logged, Unknown, checksum, decode, encode

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)

PARTS = TEXT.map(content.TextPart) | st.builds(
    content.bytes_part,
    blob=TEXT,
    size=st.integers(0, 2**40),
    media_type=st.sampled_from(["image/png", "audio/ogg", "text/plain"]),
    name=TEXT,
)


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Anything a field of this type can hold."""
    if kind is msgspec.UnsetType:
        return st.just(msgspec.UNSET)
    if kind is str:
        return TEXT
    if kind is int:
        return st.integers(-(2**62), 2**62)
    if kind == dict[str, Any]:
        return st.dictionaries(TEXT, JSON, max_size=3)
    if kind == Content:
        return st.lists(PARTS, max_size=3).map(content.of)
    if get_origin(kind) is tuple:
        return st.lists(values(get_args(kind)[0]), max_size=3).map(tuple)
    if arguments := get_args(kind):
        return st.one_of([values(argument) for argument in arguments])
    if kind is e.ProposedCall:
        return st.builds(e.ProposedCall, name=TEXT, arguments=values(dict[str, Any]), problem=st.none() | TEXT)
    if kind in (Elicited, Request):
        return st.builds(kind, **{name: values(hint) for name, hint in get_type_hints(kind).items()})
    return st.from_type(kind)


def bodies(event: type[Event]) -> st.SearchStrategy[Event]:
    hints = get_type_hints(event)
    return st.builds(event, **{name: values(hints[name]) for name in event.__struct_fields__})


@pytest.mark.parametrize("event", list(KINDS.values()), ids=list(KINDS))
def test_an_event_comes_back_as_it_was_written(event: type[Event]) -> None:
    @settings(max_examples=25, derandomize=True, database=None, deadline=None)
    @given(body=bodies(event))
    def round_trip(body: Event) -> None:
        stored = encode(body)
        assert decode(event.kind, stored) == body
        assert b"\n" not in stored
        assert Logged("s", 1, None, 0, 0, event.kind, 0, stored).event == body

    round_trip()


def test_kinds_are_unique_words_and_stream_events_are_the_pieces_and_the_heartbeat() -> None:
    made = {*Event.__subclasses__(), *e.Says.__subclasses__()} - {e.Says, Unknown}
    classes = {each for each in made if each.__module__.startswith(f"{e.__name__}.")}  # Another test makes kinds of a later version.
    assert set(KINDS.values()) == classes and len(KINDS) == len(classes)
    assert {kind for kind, event in KINDS.items() if event.stream} == {"text", "reasoning", "tool.output", "turn.alive"}


@pytest.mark.parametrize("event", list(KINDS.values()), ids=list(KINDS))
def test_a_body_of_an_older_version_reads_with_defaults_and_one_of_a_newer_with_what_is_known(event: type[Event]) -> None:
    """A3"""
    required = {
        field.encode_name: field
        for field in msgspec.structs.fields(event)
        if field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT
    }
    samples: dict[str, Any] = {"pieces": [{}], "arguments": {}, "message_ids": [], "question_ids": [], "effect": "pure", "outcome": "done"}
    if event is e.TurnEnded:
        samples["outcome"] = "failed"
    old = {name: samples.get(name, 1 if field.type is int else "x") for name, field in required.items()}
    read = decode(event.kind, msgspec.json.encode(old))
    assert type(read) is event
    newer = decode(event.kind, msgspec.json.encode({**old, "something_new": [1, 2]}))
    assert newer == read
    if event is not Damaged and required:
        assert isinstance(decode(event.kind, b"{}"), Damaged)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'{"offset": "x", "text": 1}', b'{"offset": 0, "text": "\xff"}', b"\xff\xfe", b"[" * 100_000]
)
def test_a_body_that_does_not_read_says_so_and_raises_nothing(body: bytes) -> None:
    """F8: a torn record, a cut multi-byte character."""
    assert isinstance(decode("text", body), Damaged)


def test_values_nested_too_deeply_to_read_are_damage() -> None:
    deep = b'{"call_id":"c","name":"n","effect":"pure","arguments":{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}}"
    assert isinstance(decode("tool.started", deep), Damaged)


def test_a_kind_of_a_later_version_is_no_damage() -> None:
    assert decode("from.the.future", b"whatever it says") == Unknown(name="from.the.future")


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_body_cut_anywhere_is_damaged_and_never_another_text(cut: int) -> None:
    whole = encode(e.Text(offset=1, text="é\u2028日本 😀"))
    if cut < len(whole):
        assert isinstance(decode("text", whole[:cut]), Damaged)


FIELDS: tuple[Any, ...] = (3, 7, "t_1", 1, 2, "text", 1_700_000_000_000, b'{"offset":0,"text":"x"}')
OTHER: tuple[Any, ...] = (4, 8, "t_2", 2, 3, "reasoning", 1_700_000_000_001, b'{"offset":0,"text":"y"}')


def test_the_checksum_covers_every_field() -> None:
    whole = checksum(*FIELDS)
    for index in range(len(FIELDS)):
        changed = [*FIELDS]
        changed[index] = OTHER[index]
        assert checksum(*changed) != whole
    changed = [*FIELDS]
    changed[2] = None
    assert checksum(*changed) != whole


def test_the_checksum_sees_every_bit_of_the_body() -> None:
    body = FIELDS[-1]
    for index, bit in itertools.product(range(len(body)), range(8)):
        changed = bytearray(body)
        changed[index] ^= 1 << bit
        assert checksum(*[*FIELDS[:-1], bytes(changed)]) != checksum(*FIELDS)


def test_a_changed_session_says_only_what_changed() -> None:
    assert encode(e.SessionChanged(title="x")) == b'{"title":"x"}'
    assert encode(e.SessionChanged(resume_reason=None)) == b'{"resume_reason":null}'
    assert decode("session.changed", b'{"pinned":true}') == e.SessionChanged(pinned=True)
