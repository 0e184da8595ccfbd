"""A small soak: hand-overs and kills under load on a real gateway, and proof that what a soak looks for would be found."""

import msgspec
import pytest

from bench import soak
from bench.soaking import invariants, schedule
from bench.soaking.notebook import Kill, Notebook, Sent
from bench.soaking.schedule import Saying, Target

SEED = 5
SIZE = schedule.sizes(15, 6)


@pytest.fixture(scope="module")
def soaked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("soak")
    return folder, soak.run(SIZE, SEED, folder)


def test_hand_overs_and_kills_under_load_lose_nothing_and_double_nothing(soaked):
    """P1, P2, P5, P6, P7, C20, C24: what was acknowledged ended in one turn each, and every cut turn had its process killed."""
    _, found = soaked
    assert found.wrong == [], "\n".join(soak.report(SIZE, found))
    taken = [done for done in found.notes.hand_overs if not done.failed]
    assert len(taken) >= 5
    assert {kill.target for kill in found.notes.kills} == {Target.SERVING, Target.RETIRING, Target.BOTH}
    assert len(found.record.turns) >= SIZE.sessions


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


def test_a_refused_request_is_explained_only_by_a_kill_near_it():
    notes = Notebook()
    notes.trouble("somebody", "was refused")
    at = notes.troubles[0].at
    assert len(list(notes.unexplained())) == 1
    notes.kills = [Kill(at - 60, Target.SERVING, [1], [1], at - 59)]
    assert len(list(notes.unexplained())) == 1
    notes.kills = [msgspec.structs.replace(notes.kills[0], over_at=at - 1)]
    assert list(notes.unexplained()) == []
