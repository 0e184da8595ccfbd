"""Who may talk, who may decide for others, which lane somebody belongs to; and pairing codes."""

import itertools

import pytest

from holdfast.core import pairing, rights
from holdfast.core.errors import BadInput
from holdfast.core.inbound import Source
from holdfast.core.pairing import Ask, Pending
from holdfast.core.rights import Policy, Verdict

DM = Source(chat="7", user="7")
GROUP = Source(chat="-5", user="7", chat_type="group")
TOPIC = Source(chat="-5", user="7", chat_type="group", thread="9")
MINUTE_MS = 60_000


def test_nobody_may_talk_unless_the_operator_said_so() -> None:
    assert rights.verdict(Policy(), DM, paired=False, addressed=True) is Verdict.STRANGER


@pytest.mark.parametrize(
    "policy",
    [Policy(users=frozenset({"7"})), Policy(admins=frozenset({"7"})), Policy(chats=frozenset({"7"})), Policy(everybody=True)],
)
def test_who_is_listed_may_talk(policy: Policy) -> None:
    assert rights.verdict(policy, DM, paired=False, addressed=True) is Verdict.ALLOWED


def test_who_was_paired_may_talk_and_who_is_blocked_never() -> None:
    assert rights.verdict(Policy(), DM, paired=True, addressed=True) is Verdict.ALLOWED
    blocked = Policy(everybody=True, admins=frozenset({"7"}), blocked=frozenset({"7"}))
    assert rights.verdict(blocked, DM, paired=True, addressed=True) is Verdict.STRANGER
    assert not rights.operates(blocked, "7")


@pytest.mark.parametrize(
    ("source", "addressed", "listening", "expected"),
    [
        (GROUP, False, frozenset(), Verdict.NOT_MEANT),
        (GROUP, True, frozenset(), Verdict.ALLOWED),
        (GROUP, False, frozenset({"-5"}), Verdict.ALLOWED),
        (TOPIC, False, frozenset(), Verdict.NOT_MEANT),
        (DM, False, frozenset(), Verdict.ALLOWED),
    ],
)
def test_in_a_group_only_what_is_addressed_to_us_is_meant_for_us(
    source: Source, addressed: bool, listening: frozenset[str], expected: Verdict
) -> None:
    policy = Policy(users=frozenset({"7"}), listening=listening)
    assert rights.verdict(policy, source, paired=False, addressed=addressed) is expected


def test_strangers_who_talk_with_each_other_in_a_group_are_left_alone() -> None:
    assert rights.verdict(Policy(), GROUP, paired=False, addressed=False) is Verdict.NOT_MEANT
    assert rights.verdict(Policy(), GROUP, paired=False, addressed=True) is Verdict.STRANGER


def test_only_admins_decide_for_others() -> None:
    policy = Policy(users=frozenset({"1"}), admins=frozenset({"2"}), everybody=True)
    assert [rights.operates(policy, user) for user in ("1", "2", "3")] == [False, True, False]


@pytest.mark.parametrize(
    ("source", "apart", "key"),
    [
        (DM, True, "agent:main:p:dm:7"),
        (Source(chat="7", user="7", thread="3"), True, "agent:main:p:dm:7:3"),
        (GROUP, True, "agent:main:p:group:-5::7"),
        (GROUP, False, "agent:main:p:group:-5"),
        (TOPIC, True, "agent:main:p:group:-5:9"),
    ],
)
def test_a_private_chat_a_group_and_a_thread_have_their_lanes(source: Source, apart: bool, key: str) -> None:
    """DESIGN 2: a group is one per person by default, a thread is shared."""
    assert rights.session_key("main", "p", source, Policy(apart=apart)) == key


def test_people_of_two_platforms_are_two_people() -> None:
    assert rights.sender("p", "7") != rights.sender("q", "7")
    assert rights.user_of("p", rights.sender("p", "a:b")) == "a:b"
    assert rights.user_of("q", rights.sender("p", "7")) is None


# pairing


def pending(code: str = "ABCDEFGH", *, user: str = "7", made_at: int = 0, told: bool = True) -> Pending:
    salt = user.encode()
    return Pending(platform="p", user=user, name="Ann", salt=salt, digest=pairing.digest(code, salt), made_at=made_at, told=told)


def refused(*, told: bool = True) -> Pending:
    return Pending(platform="p", user="7", name="Ann", salt=b"7", digest=b"", made_at=0, told=told)


def test_a_code_has_eight_letters_and_digits_that_nobody_confuses() -> None:
    codes = {pairing.make(bytes([number, 255 - number]) * pairing.LENGTH) for number in range(256)}
    assert all(len(code) == 8 and not set(code) & set("01OIL") for code in codes)
    assert len(codes) > 25


def test_a_code_is_found_however_it_is_typed_within_an_hour() -> None:
    known = [pending("AAAAAAAA", user="1"), pending("ABCDEFGH", user="7")]
    for typed in ("ABCDEFGH", "abcd-efgh", " abcd efgh "):
        found = pairing.find(typed, known, now=pairing.LIFE_MS - 1)
        assert found is not None and found.user == "7"
    assert pairing.find("ABCDEFGH", known, now=pairing.LIFE_MS) is None
    assert pairing.find("ABCDEFGJ", known, now=0) is None
    assert pairing.find("", known, now=0) is None


def test_a_digest_says_nothing_about_its_code() -> None:
    assert pairing.digest("ABCDEFGH", b"1") != pairing.digest("ABCDEFGH", b"2")
    assert b"ABCDEFGH" not in pairing.digest("ABCDEFGH", b"1")


@pytest.mark.parametrize(
    ("known", "others", "now", "code", "words"),
    [
        (None, 0, 0, Ask.CODE, Ask.WORDS),
        (pending(), 0, MINUTE_MS, Ask.SILENCE, Ask.SILENCE),
        (pending(), 0, pairing.AGAIN_MS, Ask.CODE, Ask.SILENCE),
        (pending(told=False), 0, MINUTE_MS, Ask.CODE, Ask.SILENCE),
        (pending(), 0, pairing.LIFE_MS, Ask.CODE, Ask.WORDS),
        (None, pairing.MOST, 0, Ask.WORDS, Ask.WORDS),
        (None, pairing.MOST - 1, 0, Ask.CODE, Ask.WORDS),
        (pending(made_at=10 * MINUTE_MS), 0, 0, Ask.CODE, Ask.SILENCE),
        (refused(), 0, MINUTE_MS, Ask.CODE, Ask.SILENCE),
        (refused(), pairing.MOST, MINUTE_MS, Ask.SILENCE, Ask.SILENCE),
        (refused(), pairing.MOST, pairing.AGAIN_MS, Ask.WORDS, Ask.WORDS),
        (refused(told=False), pairing.MOST, MINUTE_MS, Ask.WORDS, Ask.WORDS),
    ],
)
def test_a_stranger_gets_one_code_and_nothing_more_for_a_while(known: Pending | None, others: int, now: int, code: Ask, words: Ask) -> None:
    """`code`: where codes are given; `words`: where none are, as in a group."""
    assert pairing.ask(known, others=others, codes=True, now=now) is code
    assert pairing.ask(known, others=others, codes=False, now=now) is words


def test_a_refusal_without_a_code_is_no_code() -> None:
    assert not refused().alive(0) and pairing.find("", [refused()], now=0) is None


def test_after_five_wrong_codes_nobody_can_try_for_ten_minutes() -> None:
    wrong = [number * 1000 for number in range(5)]
    assert pairing.locked_ms(wrong[:4], now=5000) == 0
    assert pairing.locked_ms(wrong, now=5000) == pairing.WRONG_MS - 5000
    assert pairing.locked_ms(wrong, now=pairing.WRONG_MS) == 0
    assert pairing.locked_ms(wrong, now=-1) == 0  # A clock that was set back locks nobody out.


def test_a_place_and_an_anchor_are_read_as_they_were_written() -> None:
    from holdfast.core.places import Anchor, anchor, place

    for parts in itertools.product(("", "a", "1@2", "%40"), repeat=3):
        made = Anchor(*parts)
        assert anchor(str(made)) == made
    assert anchor(None) == Anchor()
    where = place("agent:main:p:group:-5:9:7", "m1@8@news")
    assert (where.chat, where.thread, where.topic, where.reply_to, where.shared) == ("-5", "8", "news", "m1", True)
    assert place("agent:main:p:dm:7").spot == place("agent:main:p:dm:7", "m1").spot
    with pytest.raises(BadInput):
        place("nonsense")
