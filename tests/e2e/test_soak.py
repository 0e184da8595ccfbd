"""A small soak: hand-overs, kills and a locked database under load on a real gateway, while pages and chats stream; and proof that what a
soak looks for would be found.
"""

import msgspec
import pytest

from bench import soak
from bench.soaking import chats, invariants, schedule
from bench.soaking.notebook import Kill, Lock, Notebook, Sent
from bench.soaking.schedule import Saying, Target
from holdfast.core.delivery import REPEAT_LABEL
from tests.fakes.matrix.homeserver import PYTHON as HOMESERVER

SEED = 5
SIZE = schedule.sizes(20, 6)


@pytest.fixture(scope="module")
def soaked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("soak")
    return folder, soak.run(SIZE, SEED, folder)


def test_hand_overs_and_kills_under_load_lose_nothing_and_double_nothing(soaked):
    """P1, P2, P4, P5, P6, P7, B11, C20, C24: what was acknowledged ended in one turn each, every cut turn had its process killed, and what
    people see in their chats is whole, there once, and in order.
    """
    _, found = soaked
    assert found.wrong == [], "\n".join(soak.report(SIZE, found))
    taken = [done for done in found.notes.hand_overs if not done.failed]
    assert len(taken) >= 5
    assert {kill.target for kill in found.notes.kills} == {Target.SERVING, Target.RETIRING, Target.BOTH}
    assert len(found.record.turns) >= SIZE.sessions
    installed = {"matrix"} if HOMESERVER.exists() else set()
    assert {"telegram", "slack", "discord"} | installed == found.chats.keys() and min(found.chats.values()) >= 3
    assert len(found.notes.locks) == 1


def test_a_platform_that_has_no_part_is_named(soaked):
    """Nobody takes a soak of three platforms for one of four."""
    _, found = soaked
    without = msgspec.structs.replace(found, chats={name: count for name, count in found.chats.items() if name != "matrix"})
    [line] = [line for line in soak.report(SIZE, without) if line.startswith("missing")]
    assert "matrix has no part in this soak: no homeserver is installed" in line
    assert not [line for line in soak.report(SIZE, found) if line.startswith("missing")] or not HOMESERVER.exists()


def test_the_same_seed_gives_the_same_schedule():
    """So that a failure can be repeated."""
    assert schedule.plan(SIZE, SEED) == schedule.plan(SIZE, SEED)
    assert schedule.plan(SIZE, SEED) != schedule.plan(SIZE, SEED + 1)
    one, other = (schedule.sayings(SIZE, SEED, 1, "lines.txt") for _ in range(2))
    assert [next(one) for _ in range(20)] == [next(other) for _ in range(20)]


def test_a_lost_message_a_second_run_of_a_command_and_a_reader_that_missed_something_would_be_found(soaked, tmp_path):
    """P1, P5, P7."""
    folder, found = soaked
    notes, record = found.notes, found.record

    def wrong(lines=folder / "lines.txt") -> str:
        return "\n".join(invariants.check(folder / "home", lines, notes, record))

    notes.sent["lost"] = Sent(Saying(client_id="lost", text="hello"), "s_1", tries=1, message_id="m_lost", session_id="s_1")
    assert "lost was acknowledged and is 0 times in the store" in wrong()
    del notes.sent["lost"]

    ran = (folder / "lines.txt").read_text().split()
    (tmp_path / "lines.txt").write_text("\n".join([*ran, ran[0]]))
    assert f"the command of {ran[0]} " in wrong(tmp_path / "lines.txt")

    session_id, shown = next((each, shown) for each, shown in notes.shown.items() if shown)
    notes.shown[session_id] = shown[:-1]
    assert f"the reader of {session_id} was shown {len(shown) - 1} events" in wrong()
    notes.shown[session_id] = shown

    kills, notes.kills = notes.kills, []
    assert all("which nobody had ended" in line for line in wrong().splitlines())
    assert bool(record.cuts) == bool(wrong())
    notes.kills = kills
    assert wrong() == ""


ONE, TWO = (Saying(client_id=name, text=f"tell {name} 2 0", answer=f"{name}: 1 2") for name in ("one", "two"))


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        (["one: 1 2", "two: 1 2"], None),
        (["one: 1", f"{REPEAT_LABEL}one: 1 2", "Something else.", "two: 1 2"], None),
        (["two: 1 2"], "one was never answered"),
        (["one: 1", "two: 1 2"], "one was never answered"),
        (["one: 1 2", "one: 1 2", "two: 1 2"], "one was answered 2 times"),
        (["two: 1 2", "one: 1 2"], "the order is"),
        (["one: 1 2", "two: 1", "two: 1 2"], "1 answers stand half-written"),
    ],
)
def test_an_answer_that_is_lost_doubled_out_of_order_or_half_written_in_a_chat_would_be_found(shown, found):
    """P1, P4"""
    wrong = list(chats.wrong([ONE, TWO], shown, labels=True))
    assert wrong == [] if found is None else any(each.startswith(found) for each in wrong)


def test_a_repeat_is_a_fault_where_the_platform_can_be_asked():
    """P4"""
    assert len(list(chats.wrong([ONE], [f"{REPEAT_LABEL}one: 1 2"], labels=False))) == 1


def test_a_locked_database_explains_what_could_not_be_stored_and_nothing_else():
    notes = Notebook()
    notes.trouble("a writer", "was refused", writes=True)
    notes.trouble("a reader", "was refused")
    at = notes.troubles[0].at
    notes.locks = [Lock(at - 1, at + 1)]
    assert [each.partition(" s ")[2].partition(":")[0] for each in notes.unexplained()] == ["a reader"]


def test_a_refused_request_is_explained_only_by_a_kill_near_it():
    notes = Notebook()
    notes.trouble("somebody", "was refused")
    at = notes.troubles[0].at
    assert len(list(notes.unexplained())) == 1
    notes.kills = [Kill(at - 60, Target.SERVING, [1], [1], at - 59)]
    assert len(list(notes.unexplained())) == 1
    notes.kills = [msgspec.structs.replace(notes.kills[0], over_at=at - 1)]
    assert list(notes.unexplained()) == []
