"""Session keys: built in one place, parsed in one, the round trip exact."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core import keys
from holdfast.core.errors import BadInput
from holdfast.core.keys import SessionKey

PART = st.text(min_size=1, max_size=12) | st.text(":%A3250", min_size=1, max_size=8)
KEYS = st.builds(SessionKey, PART, PART, PART, PART, st.none() | PART, st.none() | PART)


@settings(max_examples=150, derandomize=True, database=None)
@given(key=KEYS)
def test_a_key_comes_back_from_its_text(key: SessionKey) -> None:
    assert keys.parse(str(key)) == key


@settings(max_examples=100, derandomize=True, database=None)
@given(one=KEYS, other=KEYS)
def test_two_keys_never_share_a_text(one: SessionKey, other: SessionKey) -> None:
    assert (str(one) == str(other)) == (one == other)


@settings(max_examples=150, derandomize=True, database=None)
@given(text=st.text(max_size=40) | st.text("agent:%325A", max_size=40))
def test_a_text_is_a_key_in_its_one_form_or_refused(text: str) -> None:
    try:
        key = keys.parse(text)
    except BadInput:
        return
    assert str(key) == text


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("agent:main:telegram:dm:123", SessionKey("main", "telegram", "dm", "123")),
        ("agent:main:telegram:dm:123:7", SessionKey("main", "telegram", "dm", "123", "7")),
        ("agent:main:slack:group:C1::U9", SessionKey("main", "slack", "group", "C1", None, "U9")),
        ("agent:main:slack:thread:C1:T2:U9", SessionKey("main", "slack", "thread", "C1", "T2", "U9")),
        ("agent:a%3Ab:x:dm:100%25", SessionKey("a:b", "x", "dm", "100%")),
    ],
)
def test_keys_as_users_see_them(text: str, key: SessionKey) -> None:
    assert str(key) == text
    assert keys.parse(text) == key


@pytest.mark.parametrize(
    "text",
    ["", "agent", "agent:main:telegram:dm", "agent:main:telegram:dm:", "agent::telegram:dm:1", "user:main:telegram:dm:1",
     "agent:main:telegram:dm:1:", "agent:main:telegram:dm:1:2:", "agent:main:telegram:dm:1:2:3:4", "agent:main:telegram:dm:%3a",
     "agent:main:telegram:dm:50%", "Agent:main:telegram:dm:1", " agent:main:telegram:dm:1"],
)  # fmt: skip
def test_what_is_no_key_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadInput):
        keys.parse(text)


def test_an_empty_part_cannot_be_built() -> None:
    with pytest.raises(BadInput):
        str(SessionKey("main", "telegram", "dm", ""))
    with pytest.raises(BadInput):
        str(SessionKey("main", "telegram", "dm", "1", ""))


def test_a_page_has_a_lane_of_its_own() -> None:
    key = keys.page_key("main", "s_1")
    assert str(key) == "agent:main:web:page:s_1" and key.chat_type == "page"
