"""A store that goes away under running turns: what they may record is on disk all the same, the rest waits, and nothing is shown, lost or
done twice (P3, P5, P7, F9).
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.core import events as e
from holdfast.core.effects import ToolOutcome
from holdfast.core.errors import Refused, StoreAway, Unavailable
from holdfast.core.journals import Limits
from holdfast.core.redaction import Secrets
from holdfast.core.sessions import Lease
from holdfast.gateway.host import Host
from holdfast.gateway.spooling import Spooling
from holdfast.gateway.tasks import Tasks
from holdfast.locks import OwnerLocks
from holdfast.process.system import RandomIds
from holdfast.spool import FolderSpool
from tests.fakes.spool import at_once
from tests.gateway import gateways
from tests.gateway.gateways import Home, Life


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


def kinds(life: Life) -> list[str]:
    return [item.kind for item in life.events()]


def spooled(life: Life) -> list[str]:
    """What is in the only spool."""
    [contents] = life.spools().values()
    return [item.kind for item in contents.events]


def test_what_a_turn_says_while_the_store_is_away_is_on_disk_and_shown_only_once_it_is_stored(home: Home) -> None:
    """P3, P7"""
    life = home.start()
    life.under_way("say:one |sleep:2|say:two |sleep:1|say:three|sleep:1|say: four")
    before = life.session().seq
    life.lock_database(20)
    life.pass_s(6)
    assert life.session().seq == before and life.answers() == ["one "]
    assert "".join(event.text for event in _texts(life)) == "two three four"
    life.pass_s(13)
    assert (life.session().seq, life.turn().outcome) == (before, None)  # Its end waits.
    life.rest()
    assert (life.answers(), life.turn().outcome, home.told()) == (["one two three four"], "completed", ["one two three four"])
    assert life.spools() == {} and not (home.path.parent / "spool").exists()
    assert life.gateway.tally.rules == {}
    [end] = [item for item in life.events() if item.kind == "turn.ended"]
    texts = [item for item in life.events() if item.kind == "text"]
    assert texts[-1].at < end.at - 10_000  # They keep their own times.


def _texts(life: Life) -> list[e.Text]:
    [contents] = life.spools().values()
    return [event for item in contents.events if isinstance(event := item.event, e.Text)]


def test_no_call_starts_while_the_store_is_away(home: Home) -> None:
    """P5: a call is on record before it starts."""
    life = home.start()
    life.under_way("say:one |sleep:2|say:two |call:deed 0|say:three")
    life.lock_database(10)
    life.pass_s(8)
    assert home.done == [] and "tool.started" not in kinds(life) and set(spooled(life)) == {"text"}
    life.rest()
    assert len(home.done) == 1 and life.turn().outcome == "completed"


@pytest.mark.parametrize("next_step", ["call:deed 3", "ask:your name"])
def test_a_stop_does_not_wait_for_a_record_that_waits_for_the_store(home: Home, next_step: str) -> None:
    """C18, P5: nothing of the call has begun, so the agent lets go of it, and the next process continues."""
    life = home.start()
    life.under_way(f"say:one |sleep:2|{next_step} / say:again")
    life.lock_database(1000)
    life.pass_s(5)
    assert home.done == [] and life.turn().outcome is None
    life.stop()
    assert home.logged("agent does not let go of its turn") == home.logged("tasks did not end") == []
    life = home.start()
    life.rest()
    assert home.done == [] and life.turn().outcome == "completed" and home.heard[-1].attempt == 2


def test_an_agent_that_has_returned_is_not_blamed_for_a_store_that_does_not_record_it(home: Home) -> None:
    """C18, C23: what holds up the end is named as what it is, and the next process continues."""
    life = home.start()
    life.under_way("say:one |sleep:2|say:two / say:again")
    life.lock_database(1000)
    life.pass_s(5)
    assert life.turn().outcome is None
    life.stop()
    assert home.logged("agent does not let go of its turn") == [] and home.logged("a turn that ends waits for the store")
    life = home.start()
    life.rest()
    assert life.turn().outcome == "completed"


def test_a_result_that_was_spooled_outlives_the_process_and_the_call_is_not_made_again(home: Home) -> None:
    """P5: recovery ships what its predecessor spooled before it decides anything."""
    life = home.start()
    life.under_way("say:one |call:deed 3|say:two|hang / say:again")
    life.lock_database(1000)
    life.pass_s(5)
    assert home.done and kinds(life)[-1] == "tool.started"
    assert [kind for kind in spooled(life) if kind != "turn.alive"] == ["tool.finished", "text"]
    life.die()
    life = home.start()
    life.rest()
    assert len(home.done) == 1
    [call] = [call for message in life.transcript().messages for call in message.tool_calls]
    assert (call.outcome, call.result) == (ToolOutcome.DONE, "done")
    assert home.heard[-1].attempt == 2 and home.heard[-1].kept == "one two"
    [cut] = life.cuts()
    assert cut.state == "recovered" and life.spools() == {}
    at = kinds(life)
    assert at.index("tool.finished") < at.index("turn.interrupted")


def test_a_second_death_before_the_spool_is_removed_changes_nothing(home: Home) -> None:
    """F3: shipping again is no event more."""
    life = home.start()
    life.under_way("say:one |sleep:2|say:two|hang / say: three")
    life.lock_database(1000)
    life.pass_s(4)
    life.die()
    folder = home.path.parent / "spool"
    files = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    life = home.start()
    life.rest()
    life.stop()
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_bytes(data)
    life = home.start()
    before = life.session().seq
    life.pass_s(90)
    assert life.session().seq == before and life.spools() == {}


def test_a_full_spool_stops_the_agent_and_a_store_that_is_back_lets_it_go_on(home: Home) -> None:
    life = home.start(spool_turn_bytes=256 * 1024, turn_idle_timeout_s=30)
    long = "x" * 4096
    script = "|".join(["say:one", "sleep:2", *(f"say:{long}" for _ in range(200)), "say:end"])
    life.under_way(script)
    life.lock_database(100)
    life.pass_s(60)
    [contents] = life.spools().values()
    assert 100_000 < sum(len(item.body) for item in contents.events) <= 256 * 1024
    assert life.turn().outcome is None  # It waits, and that is no idleness.
    life.rest()
    assert life.answers() == ["one" + long * 200 + "end"]


def test_all_spools_together_are_bounded(home: Home) -> None:
    life = home.start(spool_turn_bytes=64 * 1024, spool_all_bytes=80 * 1024)
    pages = [life.open_page() for _ in range(4)]
    for page in pages:
        life.post(page, "say:one|sleep:2|say:" + "y" * 30_000 + "|sleep:1|say:" + "z" * 10_000)
    life.pass_s(1.0)
    life.lock_database(20)
    life.pass_s(10)
    assert sum(path.stat().st_size for path in (home.path.parent / "spool").rglob("*") if path.is_file()) <= 90 * 1024
    for page in pages:
        life.rest(page)
        assert life.answers(page) == ["one" + "y" * 30_000 + "z" * 10_000]


def test_a_stop_while_the_store_is_away_ends_and_the_next_start_finds_what_was_said(home: Home) -> None:
    """C23: the turn is interrupted without a mark, and nothing that was said is lost."""
    life = home.start()
    life.under_way("say:one |sleep:2|say:two|hang / say:again")
    life.lock_database(10_000)
    life.pass_s(3)
    began = life.loop.time()
    life.stop()
    assert life.loop.time() - began < 30
    life = home.start()
    life.rest()
    assert home.heard[-1].kept == "one two" and life.answers() == ["again"]


def test_a_spool_that_cannot_be_written_is_an_error_that_the_turn_sees(home: Home) -> None:
    """F9: it is interrupted, visibly, and continues when the store is back."""
    life = home.start()
    life.under_way("say:one |sleep:2|say:two|hang / say:again")
    spool = home.path.parent / "spool"
    spool.mkdir()
    (spool / life.name).write_text("in the way")
    life.lock_database(8)
    life.pass_s(5)
    assert home.logged("turn cannot be written")
    (spool / life.name).unlink()
    life.rest()
    assert [cut.reason for cut in life.cuts()] == ["store_failed"]
    assert life.outcomes() == ["completed"] and home.heard[-1].attempt == 2


@pytest.mark.parametrize(
    ("problem", "stays"),
    ((Unavailable("as it was told"), False), (StoreAway(), False), (Refused("as it was told"), True)),
    ids=("unavailable", "away", "refused"),
)
def test_what_an_attempt_left_is_shipped_again_by_itself_and_takes_no_room_for_ever(home: Home, problem: Exception, stays: bool) -> None:
    """P7: without another outage. What the store refuses waits in its file for the next process, and others may use the room."""
    life = home.start()
    session = life.say("say:one")
    host = Host(clock=life.clock, ids=RandomIds(), liveness=OwnerLocks(home.path.parent), tasks=Tasks(), owner=1, name=life.name)
    spool = FolderSpool(home.path.parent, run=at_once)
    due = asyncio.Event()
    spooling = Spooling(spool=spool, store=life.store, host=host, due=due, turn_bytes=10_000, all_bytes=10_000, limits=Limits())
    backlog = spooling.backlog(Lease(session_id=session.session_id, owner=1, epoch=session.epoch), session.turn_id or "")

    async def leave() -> None:
        items = spooling.items([e.Text(offset=9, text="late")], position=1000, attempt=1)
        assert spooling.reserve(backlog, items, results=False) == 1
        assert await spooling.put([(backlog, items)]) == [None] and spooling.size == backlog.size > 0
        life.failing = problem
        spooling.leave_behind(backlog)

    life.do(leave())
    life.pass_s(0.002)
    life.failing = None
    assert life.spools()
    life.until(lambda: not spooling.size)
    assert bool(life.spools()) is stays and not spooling.away


def test_two_turns_that_end_and_one_that_steers_wait_for_the_store_together(home: Home) -> None:
    life = home.start()
    pages = [life.open_page() for _ in range(3)]
    for number, page in enumerate(pages):
        life.post(page, f"say:one |sleep:{number + 2}|say:two|call:look x|say: three")
    life.pass_s(1.0)
    life.lock_database(8)
    life.pass_s(1.0)
    for page in pages:
        life.rest(page)
        assert life.answers(page) == ["one two three"]
    assert len(home.logged("the store is back")) == 1


def test_messages_are_not_accepted_while_the_store_stays_away(home: Home) -> None:
    """P1: never spooled, so never acknowledged."""
    life = home.start()
    page = life.open_page()
    life.lock_database(100)
    with pytest.raises(StoreAway):
        life.post(page, "say:lost")
    life.pass_s(100)
    life.post(page, "say:kept")
    life.rest(page)
    assert life.answers(page) == ["kept"] and life.spools() == {}


def test_no_secret_reaches_a_spool(home: Home) -> None:
    """Secrets are replaced where something is recorded, and a spool is such a place."""
    secrets = Secrets()
    secrets.know({"key": "sesame-open-sesame"})
    home.secrets = secrets
    life = home.start()
    life.under_way("say:one |sleep:2|say:the key is sesame-open-|say:sesame, says it|sleep:1|call:deed 2|hang")
    life.lock_database(1000)
    life.pass_s(6)
    written = b"".join(path.read_bytes() for path in (home.path.parent / "spool").rglob("*") if path.is_file())
    assert b"[secret key]" in written and b"sesame" not in written
    life.die()


def test_the_store_goes_away_twice_during_one_turn(home: Home) -> None:
    life = home.start()
    life.under_way("|".join(f"say:{number} |sleep:1" for number in range(20)))
    for seconds in (3, 0.5, 4):
        life.lock_database(seconds)
        life.pass_s(seconds + 1.5)
    life.rest()
    assert life.answers() == ["".join(f"{number} " for number in range(20))]
    assert life.spools() == {}
