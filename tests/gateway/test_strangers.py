"""Those who may not talk to the agent: each is told once, and the operator lets them in by their code."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from holdfast.core.pairing import TooManyWrongCodes, WrongCode
from holdfast.core.rights import Policy
from tests.fakes.platform import NAME, UNHURRIED
from tests.gateway import gateways
from tests.gateway.gateways import ANN, Home, Life

EVE = "eve"
CLOSED = {NAME: Policy(users=frozenset({ANN}))}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


def start(home: Home, policy: Policy | None = None) -> Life:
    return home.start(policies={NAME: policy} if policy else CLOSED)


def after(home: Home, life: Life, seconds: float) -> Life:
    """Hours in which nobody was there. Those of a process that waits would take a minute to simulate."""
    life.die()
    home.later(seconds)
    return start(home)


def hears(home: Home, life: Life, text: str = "hello") -> None:
    life.arrived(home.write(text, chat=EVE, sender=EVE))


def code(home: Home) -> str:
    found = re.search(r"code is ([A-Z0-9]{8}),", home.told(EVE)[-1])
    assert found is not None, home.told(EVE)
    return found[1]


def test_a_stranger_is_told_once_and_reaches_neither_the_agent_nor_the_list_of_conversations(home: Home) -> None:
    """DESIGN 11: denied by default."""
    life = start(home)
    for _ in range(5):
        hears(home, life)
    assert len(home.told(EVE)) == 1 and "You are not allowed" in home.told(EVE)[0]
    assert home.heard == [] and life.do(life.store.sessions(limit=10)).sessions == []
    life.say("hello")
    assert home.told() == ["re: hello"]


def test_the_operator_lets_a_stranger_in_by_the_code_and_it_lasts(home: Home) -> None:
    life = start(home)
    hears(home, life)
    paired = life.do(life.gateway.strangers.approve(code(home).lower()))
    assert (paired.platform, paired.user, paired.name) == (NAME, EVE, "Eve")
    life.say("hi", chat=EVE, sender=EVE)
    life.stop()
    life = start(home)
    life.say("again", chat=EVE, sender=EVE)
    assert home.told(EVE)[1:] == ["re: hi", "re: again"]


def test_a_code_is_used_once_and_dies_after_an_hour(home: Home) -> None:
    life = start(home)
    hears(home, life)
    first = code(home)
    life.pass_s(3601)
    with pytest.raises(WrongCode):
        life.do(life.gateway.strangers.approve(first))
    hears(home, life)
    assert len(home.told(EVE)) == 2 and code(home) != first
    life.do(life.gateway.strangers.approve(code(home)))
    with pytest.raises(WrongCode):
        life.do(life.gateway.strangers.approve(code(home)))


def test_only_the_digest_of_a_code_is_on_disk(home: Home) -> None:
    life = start(home)
    hears(home, life)
    life.stop()
    stored = b"".join(path.read_bytes() for path in home.path.parent.glob("holdfast.db*"))
    assert code(home).encode() not in stored


def test_wrong_codes_can_be_tried_five_times_also_over_restarts(home: Home) -> None:
    life = start(home)
    hears(home, life)
    for number in range(5):
        if number == 3:
            life.stop()
            life = start(home)
        with pytest.raises(WrongCode):
            life.do(life.gateway.strangers.approve("AAAAAAAA"))
    with pytest.raises(TooManyWrongCodes):
        life.do(life.gateway.strangers.approve(code(home)))
    life.pass_s(601)
    life.do(life.gateway.strangers.approve(code(home)))


def test_a_stranger_whose_code_was_made_and_not_sent_gets_another_one_which_says_so(home: Home) -> None:
    """P1: killed between the record and the send."""
    life = start(home)
    home.server.moods = lambda: "late"
    home.write("hello", chat=EVE, sender=EVE)
    life.until(lambda: home.told(EVE))
    first = code(home)
    life.die()
    home.server.moods = lambda: ""
    life = start(home)
    life.until(lambda: len(home.told(EVE)) == 2)
    assert "It replaces the earlier one" in home.told(EVE)[1] and code(home) != first
    life.do(life.gateway.strangers.approve(code(home)))


def test_so_many_strangers_can_ask_at_once_and_no_more(home: Home) -> None:
    life = start(home)
    for number in range(25):
        home.write("hello", chat=f"s{number}", sender=f"s{number}")
    life.until(lambda: len(home.server.sent) == 25)
    assert sum("pairing code" in sent.text for sent in home.server.sent) == 20


@pytest.mark.parametrize("policy", [Policy(pairing=False), Policy(pairing=True)])
def test_without_pairing_and_in_groups_there_is_no_code(home: Home, policy: Policy) -> None:
    life = start(home, policy)
    group = policy.pairing
    for _ in range(3):
        life.arrived(home.server.write("team" if group else EVE, EVE, "hello", group=group))
    [sent] = home.server.sent
    assert "Ask the person who runs it" in sent.text and "code" not in sent.text


def test_refusals_in_a_group_use_up_no_codes_and_leave_the_private_chat_its_code(home: Home) -> None:
    life = start(home, Policy())
    for number in range(25):
        life.arrived(home.server.write("team", f"s{number}", "hello", group=True))
    life.arrived(home.server.write("team", EVE, "hello", group=True))
    hears(home, life)
    first = code(home)
    assert life.do(life.store.pairings())[-1].alive(life.clock.now())
    life.pass_s(700)
    life.arrived(home.server.write("team", EVE, "hello?", group=True))
    life.do(life.gateway.strangers.approve(first))


def test_who_found_no_code_left_gets_one_as_soon_as_there_is_one(home: Home) -> None:
    life = start(home)
    for number in range(20):
        life.arrived(home.write("hello", chat=f"s{number}", sender=f"s{number}"))
    hears(home, life)
    hears(home, life)
    assert len(home.told(EVE)) == 1 and "pairing code" not in home.told(EVE)[0]
    assert life.do(life.gateway.strangers.turn_away(NAME, "s3"))
    hears(home, life)
    life.do(life.gateway.strangers.approve(code(home)))


def test_somebody_who_is_blocked_gets_no_code(home: Home) -> None:
    life = start(home, Policy(blocked=frozenset({EVE})))
    for _ in range(2):
        hears(home, life)
    [told] = home.told(EVE)
    assert "code" not in told and life.do(life.store.pairings())[-1].alive(life.clock.now()) is False


def test_a_code_that_surely_did_not_arrive_is_sent_again_as_it_is(home: Home) -> None:
    moods = iter(["refused", "limited", "refused"])
    home.server.moods = lambda: next(moods, "")
    life = start(home)
    hears(home, life)
    assert len(home.told(EVE)) == 1 and "replaces" not in home.told(EVE)[0]
    life.do(life.gateway.strangers.approve(code(home)))


def test_many_strangers_are_told_within_the_budget_of_the_account(home: Home) -> None:
    """P8"""
    rates = msgspec.structs.replace(UNHURRIED, account_per_s=1.0, account_burst=3)
    home.server.capabilities = msgspec.structs.replace(home.server.capabilities, rates=rates)
    life = start(home)
    for number in range(10):
        home.write("hello", chat=f"s{number}", sender=f"s{number}")
    life.until(lambda: home.server.sent)
    life.pass_s(1)
    assert len(home.server.sent) <= 5
    life.until(lambda: len(home.server.sent) == 10)


def test_who_is_no_longer_allowed_is_not_answered_after_a_restart(home: Home) -> None:
    """R8: rights are looked at again before a turn is resumed."""
    life = start(home, Policy(users=frozenset({ANN, EVE})))
    life.cut(chat=EVE, sender=EVE)
    life = start(home)
    life.until(lambda: life.outcomes(EVE) == ["set_aside"])
    assert home.replies(EVE) == []


def test_who_was_let_in_can_be_shut_out_again(home: Home) -> None:
    life = start(home)
    life.do(life.gateway.strangers.let_in(NAME, EVE, name="Eve"))
    life.say("hi", chat=EVE, sender=EVE)
    assert life.do(life.store.unpair(NAME, EVE)) and not life.do(life.store.unpair(NAME, EVE))
    hears(home, life, "still here?")
    assert home.told(EVE)[0] == "re: hi" and "not allowed" in home.told(EVE)[1]


def test_a_stranger_who_was_denied_has_no_code_and_hears_nothing_for_a_day(home: Home) -> None:
    life = start(home)
    hears(home, life)
    assert life.do(life.gateway.strangers.turn_away(NAME, EVE)) and not life.do(life.gateway.strangers.turn_away(NAME, EVE))
    with pytest.raises(WrongCode):
        life.do(life.gateway.strangers.approve(code(home)))
    life = after(home, life, 4 * 3600)
    home.write("hello", chat="other", sender="other")
    life.until(lambda: home.told("other"))  # Which forgets old codes, and not who was denied.
    hears(home, life)
    assert len(home.told(EVE)) == 1
    life = after(home, life, 24 * 3600)
    hears(home, life)
    assert len(home.told(EVE)) == 2
    life.do(life.gateway.strangers.approve(code(home)))
    assert life.do(life.gateway.strangers.turn_away(NAME, EVE)), "and so is somebody who was let in"
