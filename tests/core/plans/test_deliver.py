"""In which messages a reply is sent, and what becomes of those that showed it while it was being written (P4, B11, E1)."""

import pytest

from holdfast.core import delivery, live
from holdfast.core.capabilities import Capabilities
from holdfast.core.content import TextPart, bytes_part
from holdfast.core.delivery import DeliveryState, Settle
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.events import DeliveryChanged, Piece
from holdfast.core.live import Manners, Seen
from holdfast.core.messages import ToolCall
from holdfast.core.plans import deliver
from holdfast.core.plans.deliver import Live
from holdfast.core.rich import Rich

SMALL = Capabilities(text_limit=20)
PICTURE = bytes_part(blob="a" * 64, size=5, media_type="image/png", name="cat.png")
DAY_MS = 24 * 3600 * 1000
FINDS = Capabilities(text_limit=1, finds=True)


def size(text: Rich) -> int:
    return len(text.text)


def shows(name: str, receipt: str | None, *, state: DeliveryState = DeliveryState.LIVE, followed: bool = False) -> Live:
    return Live(delivery_id=name, state=state, seq=5, receipt=receipt, followed=followed)


def texts(pieces: tuple[Piece, ...]) -> list[tuple[str, str | None]]:
    return [(piece.text.text if piece.text else "", piece.target) for piece in pieces]


def test_what_fits_into_a_message_needs_no_plan() -> None:
    assert deliver.planned("d", "short", SMALL, size) is None


def test_a_long_text_and_files_are_pieces_in_their_order() -> None:
    planned = deliver.planned("d", (TextPart("one two three four five six"), PICTURE, TextPart("end")), SMALL, size)
    assert planned is not None
    assert [(piece.text.text if piece.text else None, piece.file) for piece in planned.pieces] == [
        ("one two three four", None),
        ("five six", None),
        (None, 0),
        ("end", None),
    ]


def test_a_file_that_is_too_large_for_the_platform_is_named_instead() -> None:
    can = Capabilities(text_limit=1000, bytes_out=4)
    planned = deliver.planned("d", (PICTURE,), can, size)
    assert planned is None  # One message, with words.
    [piece] = deliver.plan((PICTURE,), can, size)
    assert piece.text is not None and "cat.png" in piece.text.text and "too large" in piece.text.text


def test_an_answer_is_put_into_the_messages_that_showed_it() -> None:
    """B11: continued, not sent again."""
    planned = deliver.planned("d", "one two three four five six", SMALL, size, [shows("l1", "r1"), shows("l2", "r2"), shows("l3", "r3")])
    assert planned is not None
    assert texts(planned.pieces) == [("one two three four", "r1"), ("five six", "r2")]
    assert (planned.live, planned.lost) == (("l1", "l2"), ())


def test_nothing_is_known_to_stand_below_a_message_unless_it_is_said() -> None:
    known = Live(delivery_id="l1", state=DeliveryState.LIVE, seq=1, receipt="r1")
    planned = deliver.planned("d", "short", SMALL, size, [known])
    assert planned is not None and planned.live == ("l1",)


def test_an_answer_is_not_put_above_what_was_said_since() -> None:
    planned = deliver.planned("d", "short", SMALL, size, [shows("l1", "r1", followed=True)])
    assert planned is not None and texts(planned.pieces) == [("short", None)] and planned.live == ()


def test_after_a_message_that_may_have_arrived_the_answer_says_that_it_may_be_a_repeat() -> None:
    """P4"""
    planned = deliver.planned("d", "short", SMALL, size, [shows("l1", None, state=DeliveryState.UNKNOWN)])
    assert planned is not None and [piece.repeat for piece in planned.pieces] == [True]
    assert planned.lost == ("l1",)


def test_a_file_is_never_put_into_a_message_of_text() -> None:
    planned = deliver.planned("d", (PICTURE, TextPart("x")), SMALL, size, [shows("l1", "r1")])
    assert planned is not None and [piece.target for piece in planned.pieces] == [None, None] and planned.live == ()


@pytest.mark.parametrize(("limit", "room"), [(20, 20), (200, 200), (201, 145), (4096, 4040)])
def test_a_message_has_room_for_what_may_have_to_stand_before_its_text(limit: int, room: int) -> None:
    """P4: "(may be a repeat)", and that something is missing; in a very short message the text comes first."""
    assert deliver.room(Capabilities(text_limit=limit)) == room


def test_files_are_numbered_in_their_order_whether_or_not_the_platform_takes_them() -> None:
    large, nameless = (bytes_part(blob="b" * 64, size=6, media_type=kind, name=name) for kind, name in (("a/b", "x"), ("c/d", None)))
    found = deliver.plan((PICTURE, large, nameless, PICTURE), Capabilities(text_limit=1000, bytes_out=5), size)
    assert [piece.file for piece in found] == [0, None, None, 3]
    assert [piece.text.text.split(" (")[0] for piece in found if piece.text] == ["x", "c/d"]


@pytest.mark.parametrize("said", ["", (TextPart("  "),)])
def test_where_nothing_was_said_a_chat_is_told_so(said: str | tuple[TextPart, ...]) -> None:
    assert [piece.text.text for piece in deliver.plan(said, SMALL, size) if piece.text] == ["(nothing was said)"]
    assert deliver.words("", None).text == "(nothing was said)"


def test_what_is_sent_of_a_reply_is_its_piece_or_all_of_it() -> None:
    piece = Piece(text=Rich("a piece"))
    assert [deliver.words("all of it", each).text for each in (piece, None, Piece(file=0))] == ["a piece", "all of it", "all of it"]


def test_a_file_alone_is_a_piece() -> None:
    planned = deliver.planned("d", (PICTURE,), SMALL, size)
    assert planned is not None and [(piece.file, piece.text) for piece in planned.pieces] == [(0, None)]


@pytest.mark.parametrize("state", [state for state in DeliveryState if state is not DeliveryState.LIVE])
def test_an_answer_is_put_only_into_messages_that_are_known_to_be_there(state: DeliveryState) -> None:
    """P4"""
    for one in (shows("l1", "r1", state=state), shows("l1", None)):
        planned = deliver.planned("d", "short", SMALL, size, [one, shows("l2", "r2")])
        assert planned is not None and texts(planned.pieces) == [("short", "r2")] and planned.live == ("l2",)


def test_only_what_follows_a_message_that_may_have_arrived_may_be_a_repeat() -> None:
    """P4: the first piece says so, for all of them."""
    long, lost = "one two three four five six", shows("l1", None, state=DeliveryState.UNKNOWN)
    for shown, repeats in (([lost], [True, False]), ([shows("l2", None)], [False, False])):
        planned = deliver.planned("d", long, SMALL, size, shown)
        assert planned is not None and [piece.repeat for piece in planned.pieces] == repeats


@pytest.mark.parametrize(
    ("can", "tries", "ago_ms", "sure_ms", "way"),
    [
        (Capabilities(text_limit=1, key_lasts_s=120), 1, 119_999, 0, Settle.SAME_KEY),
        (Capabilities(text_limit=1, key_lasts_s=120), 1, 120_000, 0, Settle.REPEAT),
        (Capabilities(text_limit=1, key_lasts_s=120), 1, -1, 0, Settle.REPEAT),
        (Capabilities(text_limit=1, echoes_s=10), 1, 0, 9_999, Settle.WAIT),
        (Capabilities(text_limit=1, echoes_s=10), 1, 0, 10_000, Settle.REPEAT),
        (Capabilities(text_limit=1), 1, 0, 0, Settle.REPEAT),
        (Capabilities(text_limit=1), delivery.MAX_TRIES, 0, 0, Settle.GIVE_UP),
    ],
)
def test_a_send_of_unknown_outcome_is_settled_by_what_the_platform_can_do(
    can: Capabilities, tries: int, ago_ms: int, sure_ms: int, way: Settle
) -> None:
    """P4"""
    assert delivery.settle(can, tries=tries, tried_ms_ago=ago_ms, works_ms=DAY_MS, sure_ms=sure_ms) is way


@pytest.mark.parametrize(
    ("can", "tries", "ago_ms", "works_ms", "way"),
    [
        (FINDS, 1, 0, 0, Settle.ASK),
        (FINDS, delivery.MAX_TRIES, 0, DAY_MS, Settle.ASK),
        (FINDS, 1, delivery.ASK_MS - 1, DAY_MS, Settle.ASK),
        (FINDS, 1, DAY_MS, delivery.ASK_MS - 1, Settle.ASK),
        (FINDS, 1, delivery.ASK_MS, delivery.ASK_MS, Settle.REPEAT),
        (FINDS, 1, -1, delivery.ASK_MS, Settle.REPEAT),
        (FINDS, delivery.MAX_TRIES, delivery.ASK_MS, delivery.ASK_MS, Settle.GIVE_UP),
        (Capabilities(text_limit=1, finds=True, key_lasts_s=3600), 1, delivery.ASK_MS, delivery.ASK_MS, Settle.SAME_KEY),
    ],
)
def test_a_platform_that_can_be_asked_is_asked_while_it_is_out_of_reach_and_for_five_minutes_in_which_it_works(
    can: Capabilities, tries: int, ago_ms: int, works_ms: int, way: Settle
) -> None:
    """P4: not for ever, because what comes next in the chat waits."""
    assert delivery.settle(can, tries=tries, tried_ms_ago=ago_ms, works_ms=works_ms, sure_ms=0) is way


@pytest.mark.parametrize(
    ("can", "tries", "way"),
    [
        (FINDS, 1, Settle.REPEAT),
        (FINDS, delivery.MAX_TRIES, Settle.GIVE_UP),
        (Capabilities(text_limit=1, finds=True, key_lasts_s=120), 1, Settle.SAME_KEY),
        (Capabilities(text_limit=1, finds=True, echoes_s=10), 1, Settle.WAIT),
    ],
)
def test_a_platform_that_can_never_tell_what_arrived_is_as_one_that_cannot_be_asked(can: Capabilities, tries: int, way: Settle) -> None:
    """P4"""
    assert delivery.settle(can, tries=tries, tried_ms_ago=0, works_ms=0, sure_ms=0, refused=True) is way


@pytest.mark.parametrize(("ago_ms", "wait_ms"), [(-5, 2000), (0, 2000), (2000, 2000), (16_000, 16_000), (60_000, 60_000), (DAY_MS, 60_000)])
def test_a_platform_that_cannot_tell_now_is_asked_more_and_more_rarely(ago_ms: int, wait_ms: int) -> None:
    assert delivery.ask_delay_ms(ago_ms) == wait_ms


def test_what_surely_did_not_arrive_is_tried_for_days_and_a_clock_that_jumps_gives_up_nothing_at_once() -> None:
    assert not delivery.gives_up(tries=1000, age_ms=DAY_MS)
    assert not delivery.gives_up(tries=1, age_ms=100 * DAY_MS)
    assert delivery.gives_up(tries=8, age_ms=4 * DAY_MS)


def test_a_key_is_the_same_in_every_process_and_short_enough_for_every_platform() -> None:
    assert delivery.key("t.answer") == delivery.key("t.answer", 0) != delivery.key("t.answer", 1)
    assert len(delivery.key("x" * 500)) == 24


def test_a_file_has_a_minute_more_and_the_time_of_a_slow_connection() -> None:
    assert (delivery.send_s(0), delivery.upload_s(0)) == (60, 60)
    assert (delivery.upload_s(5_000_000), delivery.send_s(5_000_000)) == (160, 220)


def test_behind_a_message_that_shows_its_part_the_first_that_may_be_a_repeat_says_so() -> None:
    """P4: and only that one."""
    shown = [shows("l1", "m1"), shows("l2", None, state=DeliveryState.UNKNOWN)]
    planned = deliver.planned("d", "one two three four five six seven eight nine", SMALL, size, shown)
    assert planned is not None and len(planned.pieces) > 2
    assert [piece.target for piece in planned.pieces[:2]] == ["m1", None]
    assert [piece.repeat for piece in planned.pieces] == [False, True, *[False] * (len(planned.pieces) - 2)]


# while it is being written


@pytest.mark.parametrize(
    ("delivery_id", "state", "error", "ended"),
    [
        ("t1.live_a", DeliveryState.SENT, "It cannot be edited.", True),
        ("t1.live_a", DeliveryState.SENT, None, False),
        ("t1.live_a", DeliveryState.DEAD, "It was refused.", False),
        ("t1.answer", DeliveryState.SENT, "It was late.", False),
        ("t12.live_a", DeliveryState.SENT, "It cannot be edited.", False),
    ],
)
def test_an_answer_is_shown_no_more_once_the_log_tells_that_it_could_not_be_edited(
    delivery_id: str, state: DeliveryState, error: str | None, ended: bool
) -> None:
    change = DeliveryChanged(delivery_id=delivery_id, state=state, tries=1, error=error)
    assert live.ended("t1", [change]) is ended


def call(name: str, outcome: ToolOutcome | None = None, **arguments: str) -> ToolCall:
    return ToolCall(call_id="c", name=name, arguments=arguments, effect=Effect.PURE, attempt=1, outcome=outcome)


def seen(text: str = "", *calls: ToolCall, ran_s: float = 5.0) -> Seen:
    return Seen(text=text, calls=calls, ran_s=ran_s)


BIG = Capabilities(text_limit=1000)


@pytest.mark.parametrize(
    ("what", "manners", "opens"),
    [
        (seen("hi"), Manners(), True),
        (seen("hi", ran_s=0.5), Manners(), False),
        (seen(), Manners(), False),
        (seen("", call("look")), Manners(), True),
        (seen("", call("look")), Manners(tools=False), False),
        (seen("hi"), Manners(stream=False), False),
        (seen("", ran_s=60), Manners(), True),
        (seen("", ran_s=60), Manners(still_working_s=0), False),
        (seen("hi", ran_s=60), Manners(stream=False), True),
    ],
)
def test_a_chat_is_shown_something_as_soon_as_there_is_something_to_show(what: Seen, manners: Manners, opens: bool) -> None:
    assert live.opens(what, manners) is opens


@pytest.mark.parametrize(
    ("what", "shown"),
    [
        (seen("hello"), ["hello"]),
        (seen("hello", call("terminal", command="ls  -la\n/tmp")), ["hello\n\nWorking: terminal: ls -la /tmp…"]),
        (seen("", call("look"), call("look")), ["Working: look, look…"]),
        (seen("", call("look", ToolOutcome.DONE)), ["Working…"]),
        (seen("", ran_s=130), ["Still working (2 min 10 s)…"]),
        (seen("hello", ran_s=130), ["hello\n\nStill working (2 min 10 s)…"]),
    ],
)
def test_a_chat_is_shown_the_words_so_far_and_what_the_agent_is_doing(what: Seen, shown: list[str]) -> None:
    """E1: it says so in the message that becomes the answer, so it goes when the answer is there."""
    assert [part.text for part in live.parts(what, Manners(), BIG, size)] == shown


def test_what_the_agent_is_doing_is_left_out_where_it_does_not_fit() -> None:
    assert [part.text for part in live.parts(seen("one two three four", call("look")), Manners(), SMALL, size)] == ["one two three four"]
