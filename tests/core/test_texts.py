"""What can be written down: whatever an agent hands in becomes something the log can hold."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core import events as e
from holdfast.core.effects import Effect
from holdfast.core.texts import storable, storable_value

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())) | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(exclude_categories=())), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.dictionaries(st.text(), anything, max_size=3))
def test_whatever_an_agent_hands_in_can_be_stored_and_read(arguments: dict[str, Any]) -> None:
    """P3, P7"""
    event = e.ToolStarted(call_id="c", name="n", arguments=storable_value(arguments), effect=Effect.PURE)
    assert isinstance(e.decode(event.kind, e.encode(event)), e.ToolStarted)


def test_what_can_be_stored_is_left_as_it_is() -> None:
    value = {"a": [1, 2.5, None, True, "ä 😀"], "b": {"c": -(2**63)}}
    assert storable_value(value) == value and storable("ä 😀") == "ä 😀"


def test_half_a_character_becomes_the_sign_for_one_that_is_missing() -> None:
    assert storable("a\ud83db") == "a\ufffdb" and storable_value({"\udc00": 2**64}) == {"\ufffd": str(2**64)}


def test_what_is_nested_too_deeply_is_told_as_text() -> None:
    deep: Any = "end"
    for _ in range(200):
        deep = [deep]
    assert msgspec.json.encode(storable_value(deep))
