"""When the next message may be sent, and how much is kept for final texts."""

import pytest

from holdfast.core import pacing
from holdfast.core.capabilities import Rates
from holdfast.core.pacing import What

RATES = Rates(every_s=(1.0, 3.0), burst=2, edit_every_s=(1.5, 4.0), account_per_s=10.0, account_burst=5, kept=2)


def test_a_chat_takes_a_few_messages_at_once_and_then_one_at_a_time() -> None:
    account, chat = pacing.of_account(RATES, 0.0), pacing.of_chat(RATES, shared=False, now=0.0)
    for _ in range(2):
        assert pacing.wait_s(RATES, account, chat, What.FINAL, 0.0) == 0
        account, chat = account.taken(0.0), chat.taken(0.0)
    assert pacing.wait_s(RATES, account, chat, What.FINAL, 0.0) == 1.0
    assert pacing.wait_s(RATES, account, chat, What.FINAL, 0.4) == pytest.approx(0.6)
    assert pacing.wait_s(RATES, account, chat, What.FINAL, 1.0) == 0


def test_a_chat_with_several_people_takes_less() -> None:
    chat = pacing.of_chat(RATES, shared=True, now=0.0).taken(0.0).taken(0.0)
    assert chat.wait_s(0.0) == 3.0


def test_an_account_has_one_budget_and_edits_leave_the_kept_part_of_it_alone() -> None:
    """P4: a final text never waits for edits of what is still being written."""
    account = pacing.of_account(RATES, 0.0)
    chat = pacing.of_chat(RATES, shared=False, now=0.0)
    for _ in range(3):
        account = account.taken(0.0)
    assert pacing.wait_s(RATES, account, chat, What.LIVE, 0.0) > 0
    assert pacing.wait_s(RATES, account, chat, What.FINAL, 0.0) == 0


def test_an_edit_leaves_the_next_final_text_of_its_chat_its_turn() -> None:
    account, chat = pacing.of_account(RATES, 0.0), pacing.of_chat(RATES, shared=False, now=0.0).taken(0.0)
    assert pacing.wait_s(RATES, account, chat, What.LIVE, 0.0) > 0
    assert pacing.wait_s(RATES, account, chat, What.FINAL, 0.0) == 0


def test_a_platform_that_asks_to_wait_is_obeyed_however_much_is_left() -> None:
    account, chat = pacing.of_account(RATES, 0.0), pacing.of_chat(RATES, shared=False, now=0.0).quiet(30.0)
    assert pacing.wait_s(RATES, account, chat, What.FINAL, 0.0) == 30.0
    assert pacing.wait_s(RATES, account, chat.quiet(10.0), What.FINAL, 20.0) == 10.0  # The longer one counts.
    assert pacing.wait_s(RATES, account.quiet(5.0), pacing.of_chat(RATES, shared=False, now=0.0), What.FINAL, 0.0) == 5.0


def test_no_budget_grows_beyond_its_burst_and_a_clock_that_stands_gives_nothing() -> None:
    chat = pacing.of_chat(RATES, shared=False, now=0.0)
    assert chat.filled(1e9) == 2
    assert chat.taken(5.0).filled(4.0) == 1


@pytest.mark.parametrize(("writing", "every_s"), [(1, 1.5), (9, 1.5), (60, 10.0)])
def test_the_more_answers_are_being_written_the_less_often_each_is_edited(writing: int, every_s: float) -> None:
    assert pacing.edit_every_s(RATES, shared=False, writing=writing) == pytest.approx(every_s)


def test_a_budget_may_be_forgotten_once_it_says_no_more_than_a_new_one_would() -> None:
    """P8: one that was asked to wait is kept, however full it is."""
    chat = pacing.of_chat(RATES, shared=False, now=0.0)
    assert chat.untouched(0.0)
    assert not chat.taken(0.0).untouched(0.5) and chat.taken(0.0).untouched(1.0)
    assert not chat.quiet(30.0).untouched(29.0) and chat.quiet(30.0).untouched(30.0)


def test_what_was_reserved_long_ago_may_go_at_once_without_breaking_the_budget() -> None:
    """P8: the store was away between each reservation and its request, and all requests go when it is back."""
    chat = pacing.of_chat(RATES, shared=True, now=0.0)
    burst, reserved, now = chat.size, 0, 0.0
    while now < 100.0:
        if chat.wait_s(now) == 0:
            chat, reserved = chat.reserved(now), reserved + 1
        now += 0.5
    assert reserved == burst
    for _ in range(reserved):
        chat = chat.used(now)
    assert chat.filled(now) == 0 and chat.wait_s(now) > 0
    assert chat.filled(now + 1000) == burst


def test_what_was_reserved_and_not_needed_is_free_again() -> None:
    chat = pacing.of_chat(RATES, shared=True, now=0.0)
    assert not chat.reserved(0.0).untouched(1000.0)
    assert chat.reserved(0.0).given_back().untouched(0.0)
