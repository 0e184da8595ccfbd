"""What people do in chats: stored as it came before anybody reads it, acknowledged after, and led to what it means once."""

from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import msgspec
import pytest

from holdfast.api import conversation
from holdfast.core import events as e
from holdfast.core import rights
from holdfast.core.chat_errors import LoggedOut
from holdfast.core.content import AudioPart, FilePart, TextPart
from holdfast.core.errors import Unavailable
from holdfast.core.inbound import EARLY_MS, MOST_EARLY, RemoteFile
from holdfast.core.rights import Policy
from holdfast.ports.platforms import Account, Batch
from tests.fakes.loop import Crash
from tests.fakes.platform import ACCOUNT, NAME, ChatServer
from tests.gateway import gateways
from tests.gateway.gateways import ANN, Home, Life

BOB = "bob"
GROUP_KEY = f"agent:main:{NAME}:group:team::"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with gateways.home(tmp_path) as made:
        yield made


def waiting(life: Life) -> int:
    return len(life.do(life.store.updates(f"{NAME}:{ACCOUNT}", limit=1000)))


def refused(life: Life) -> list[str | None]:
    return [update.refused for update in life.do(life.store.refused_updates(limit=100))]


def test_an_update_that_cannot_be_read_is_kept_and_holds_up_nobody(home: Home) -> None:
    """P1: stored as refused, acknowledged and counted; never a crash loop."""
    life = home.start()
    broken = home.server.deliver(b"{ not an update")
    life.say("hello")
    assert home.told() == ["re: hello"]
    assert broken.dedup_key in home.server.confirmed
    [why] = refused(life)
    assert why is not None and why.startswith("It is no update")
    assert life.gateway.links[NAME].refused == 1
    life.die()
    life = home.start()
    life.pass_s(5)
    assert (len(refused(life)), waiting(life)) == (1, 0)


def test_an_edit_that_overtakes_its_message_is_what_the_agent_reads_and_comes_again_for_nothing(home: Home) -> None:
    """P1, DESIGN 5.7: of several the last."""
    said = home.write("old words")
    edits = [home.server.edit(said, text) for text in ("newer words", "new words")]
    home.server.updates[:] = [*edits, said, edits[-1]]
    life = home.start()
    life.until(lambda: home.texts and not waiting(life))
    life.rest()
    assert home.texts == ["new words"]
    assert not [item for item in life.events() if isinstance(item.event, e.MessageEdited)]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_edit_that_overtakes_its_message_counts_also_if_the_process_dies_at_any_commit_in_between(tmp_path: Path, moment: str) -> None:
    """P1: the platform was told that the edit is kept."""
    for commit in range(1, 20):
        (folder := tmp_path / str(commit)).mkdir()
        with gateways.home(folder) as home:
            life = home.start()
            life.say("hello")
            said = home.write("old words")
            edit = home.server.edit(said, "new words")
            del home.server.updates[-2:]
            life.commits, life.dies, died = 0, (moment, commit), False
            try:
                home.server.updates.append(edit)
                life.until(partial(home.server.confirmed.__contains__, edit.dedup_key))
                life.pass_s(2)
                home.server.updates.append(said)
                life.until(partial(_told_new, home))
                life.rest()
            except Crash:
                died, life = True, home.start()
                life.pass_s(2)
                if said not in home.server.updates:
                    home.server.updates.append(said)
                life.until(partial(_told_new, home))
                life.rest()
            assert set(home.texts[1:]) == {"new words"} and home.replies() == ["re: hello", "re: new words"]
            assert waiting(life) == 0
            if not died:
                assert commit > 5
                return
    raise AssertionError("the story never came to its end")


def _told_new(home: Home) -> bool:
    return home.told()[-1:] == ["re: new words"]


def test_an_edit_that_no_message_follows_is_forgotten_after_an_hour_or_behind_many_others(home: Home) -> None:
    life = home.start()
    life.say("hello")
    for number in range(1000, 1005 + MOST_EARLY):
        last = home.server.edit(home.server.updates[0]._replace(dedup_key=f"{NAME}|{ACCOUNT}|{ANN}|{number}|0"), "x")
    life.until(lambda: last.dedup_key in home.server.confirmed)
    life.until(lambda: waiting(life) == MOST_EARLY)
    life.die()
    life = home.start()
    life.until(lambda: waiting(life) == MOST_EARLY)
    life.pass_s(EARLY_MS / 1000)
    assert waiting(life) == 0


def test_the_place_to_read_on_from_is_the_stores_and_the_next_process_goes_by_it(tmp_path: Path) -> None:
    """P1: neither a gap nor a double over a hand-over, a stop or a death."""
    with gateways.home(tmp_path) as home:
        home.server = ChatServer(reconciles=True, by_cursor=True)
        life = home.start()
        life.say("one")
        home.write("two")
        life.die()
        life = home.start()
        life.rest()
        life.say("three")
        life.stop()
        home.write("four")
        life = home.start()
        life.until(lambda: len(home.replies()) == 4)
        assert home.replies() == [f"re: {word}" for word in ("one", "two", "three", "four")]
        assert life.do(life.store.cursor(f"{NAME}:{ACCOUNT}")) == "4"


def _sent_four(home: Home) -> bool:
    return len(home.server.sent) >= 4


@pytest.mark.parametrize("by_cursor", [True, False])
def test_killed_before_or_after_any_commit_of_intake_each_message_starts_one_turn(tmp_path: Path, by_cursor: bool) -> None:
    """P1, P6: the table of kills in LESSONS, counted at the other end."""
    for moment in ("before", "after"):
        for commit in range(1, 14):
            folder = tmp_path / f"{moment}-{commit}"
            folder.mkdir()
            with gateways.home(folder) as home:
                home.server = ChatServer(reconciles=True, by_cursor=by_cursor)
                life = home.start()
                life.say("hello")
                life.commits, life.dies = 0, (moment, commit)
                home.write("one")
                home.write("two", chat=BOB)
                home.write("three")
                try:
                    life.until(lambda: len(home.server.sent) == 4)
                except Crash:
                    life = home.start()
                    life.until(partial(_sent_four, home))
                life.rest()
                assert home.replies() == ["re: hello", "re: one", "re: three"]
                assert home.replies(BOB) == ["re: two"]
                assert waiting(life) == 0


def test_an_update_that_comes_again_and_again_starts_one_turn(home: Home) -> None:
    """P1, P6"""
    again = iter([False] + [True] * 6)
    home.server.repeats = lambda: next(again, False)
    life = home.start()
    life.say("one")
    life.say("two")
    life.pass_s(10)
    assert home.replies() == ["re: one", "re: two"]


def test_what_came_while_the_store_could_not_write_is_not_acknowledged_before_it_can(home: Home) -> None:
    """P1"""
    life = home.start()
    take, tried = life.store.take_updates, 0

    async def fails(*given: object, **named: object) -> None:
        nonlocal tried
        tried += 1
        if tried < 4:
            raise Unavailable("The store failed.", retry_after_s=1.0)
        await take(*given, **named)  # type: ignore[arg-type]

    life.store.take_updates = fails  # type: ignore[method-assign]
    update = home.write("hello")
    life.until(lambda: tried == 3)
    assert update.dedup_key not in home.server.confirmed
    life.until(lambda: home.told() == ["re: hello"])


def test_one_chat_in_which_something_takes_long_holds_up_no_other(home: Home) -> None:
    """P8: within a chat the order stays."""
    life = home.start()
    home.server.files["big"] = b"bytes"
    fetch = home.server.files
    home.server.files = {}
    home.server.write(ANN, ANN, "with a file", files=(RemoteFile(id="big", name="big.bin"),))
    home.write("after it")
    life.say("hello", chat=BOB)
    assert home.told(BOB) == ["re: hello"]
    home.server.files = fetch
    life.rest()
    assert home.replies()[-1] == "re: after it"


def test_files_are_fetched_and_stored_before_their_message(home: Home) -> None:
    life = home.start()
    home.server.files |= {"f1": b"one", "f2": b"two"}
    files = (RemoteFile(id="f1", name="a.txt", media_type="text/plain"), RemoteFile(id="f2", name="v.ogg", media_type="audio/ogg"))
    home.server.write(ANN, ANN, "look", files=files)
    life.until(lambda: home.told() == ["re: look"])
    [said] = [item.event for item in life.events() if isinstance(item.event, e.MessageAccepted)]
    assert [type(part) for part in said.parts] == [TextPart, FilePart, AudioPart]


def test_a_file_that_is_too_large_is_named_and_not_fetched(home: Home) -> None:
    home.server.capabilities = msgspec.structs.replace(home.server.capabilities, bytes_in=1_000_000)
    life = home.start()
    home.server.write(ANN, ANN, "look", files=(RemoteFile(id="x", name="film.mp4", size=2_000_000),))
    life.until(lambda: len(home.told()) == 1)
    assert "film.mp4 is missing: it is larger than 1.0 MB" in home.told()[0]


def test_pictures_that_were_sent_together_are_one_message(home: Home) -> None:
    life = home.start()
    for name in ("1", "2", "3"):
        home.server.files[name] = name.encode()
        file = RemoteFile(id=name, name=f"{name}.png", media_type="image/png")
        home.server.write(ANN, ANN, "look" if name == "1" else "", files=(file,), album="holiday")
    life.until(lambda: home.told() == ["re: look"])
    life.rest()
    [said] = [item.event for item in life.events() if isinstance(item.event, e.MessageAccepted)]
    assert len(said.parts) == 4 and len(home.heard) == 1


def test_an_edit_of_a_message_that_waits_replaces_it_and_of_an_answered_one_is_recorded(home: Home) -> None:
    """DESIGN 5.7"""
    life = home.start()
    first = home.write("sleep:20|say:first")
    second = home.write("say:sekond")
    life.until(lambda: len(home.texts) == 1 and waiting(life) == 0 and len(home.server.confirmed) == 2)
    life.arrived(home.server.edit(second, "say:second"))
    life.rest()
    assert home.texts[-1] == "say:second"
    life.arrived(home.server.edit(first, "say:changed my mind"))
    life.rest()
    edits = [item.event for item in life.events() if isinstance(item.event, e.MessageEdited)]
    assert [edit.effect for edit in edits] == ["replaced", "recorded"]
    assert len(home.heard) == 2


def test_an_edit_by_somebody_else_or_of_nothing_we_know_changes_nothing(home: Home) -> None:
    life = home.start()
    life.say("say:one")
    life.arrived(home.server.edit(home.server.updates[0]._replace(sender=BOB), "say:mine"))
    ghost = home.server.edit(home.server.updates[0]._replace(dedup_key=f"{NAME}|{ACCOUNT}|{ANN}|99|0"), "say:ghost")
    life.until(lambda: ghost.dedup_key in home.server.confirmed and not life.gateway.links[NAME].waiting)
    life.rest()
    assert (len(home.heard), refused(life)) == (1, [])


def test_a_message_that_its_sender_deletes_before_its_turn_starts_no_turn(home: Home) -> None:
    life = home.start()
    home.write("sleep:10|say:first")
    second = home.write("say:second")
    life.until(lambda: len(home.texts) == 1 and len(home.server.confirmed) == 2)
    life.arrived(home.server.take_back(second))
    life.rest()
    assert home.replies() == ["first"]
    life.arrived(home.server.take_back(home.server.updates[0]))  # Too late: it was answered.
    assert life.answers() == ["first"]


# groups


def test_in_a_group_only_what_is_addressed_to_us_is_answered_and_each_person_has_a_conversation(home: Home) -> None:
    """DESIGN 2"""
    life = home.start()
    home.server.write("team", ANN, "between us", group=True, addressed=False)
    home.server.write("team", ANN, "hello", group=True)
    home.server.write("team", BOB, "hi", group=True)
    life.until(lambda: len(home.server.sent) == 2)
    life.pass_s(5)
    assert sorted(sent.text for sent in home.server.sent) == ["re: hello", "re: hi"]
    keys = {session.session_key for session in life.do(life.store.sessions(limit=10)).sessions}
    assert keys == {f"{GROUP_KEY}{ANN}", f"{GROUP_KEY}{BOB}"}


def test_a_group_may_be_one_conversation_and_need_no_mention(home: Home) -> None:
    policy = Policy(everybody=True, apart=False, mention=False)
    life = home.start(policies={NAME: policy})
    home.server.write("team", ANN, "hello", group=True, addressed=False)
    home.server.write("team", BOB, "hi", group=True, addressed=False)
    life.until(lambda: len(home.server.sent) == 2)
    assert {session.session_key for session in life.do(life.store.sessions(limit=10)).sessions} == {f"agent:main:{NAME}:group:team"}


# platforms that fail


class Failing(gateways.Line):
    """Its connection fails as no other does, the first few times."""

    fails = 3

    def receive(self, cursor: str | None) -> AsyncIterator[Batch]:
        if self.fails:
            self.fails -= 1
            raise KeyError("result")
        return super().receive(cursor)


def test_a_platform_that_fails_in_its_own_way_is_tried_again_and_takes_nobody_with_it(home: Home) -> None:
    """P8: a bug in an SDK is no reason to end the process."""
    home.line = Failing
    life = home.start()
    page = life.open_page()
    life.post(page, "on the page")
    life.rest(page)
    assert "KeyError" in (life.gateway.links[NAME].problem or "")
    life.say("hello")
    assert home.told() == ["re: hello"] and life.gateway.links[NAME].problem is None
    assert not life.gateway.broken.is_set()


class LoggedOutLine(gateways.Line):
    """The platform refuses the credentials, until it is told to take them."""

    takes = False

    async def connect(self) -> Account:
        if not self.takes:
            raise LoggedOut("The token was revoked.")
        return await super().connect()


def test_credentials_that_were_revoked_are_shown_and_what_is_owed_waits(home: Home) -> None:
    """P4: nothing is given up, and the page goes on."""
    home.line = LoggedOutLine
    life = home.start()
    home.write("hello")
    page = life.open_page()
    life.post(page, "on the page")
    life.rest(page)
    life.pass_s(200)
    assert life.gateway.links[NAME].problem == "The token was revoked."
    LoggedOutLine.takes = True
    try:
        life.until(lambda: home.told() == ["re: hello"])
    finally:
        LoggedOutLine.takes = False


def test_what_people_write_is_shown_with_their_names_and_what_is_written_on_the_page_is_answered_in_the_chat(home: Home) -> None:
    """The page can join a chat's conversation; both sides see who said what."""
    life = home.start()
    session = life.say("hello")
    life.post(session.session_id, "and from the page")
    life.rest()
    assert home.told() == ["re: hello", "re: and from the page"]
    shown = conversation.session(life.session(), life.transcript())
    said = [(view.text, view.sender, view.sender_name) for view in shown.messages if view.role == "user"]
    assert said == [("hello", f"{NAME}:{ANN}", "Ann"), ("and from the page", "owner", msgspec.UNSET)]


def test_a_name_is_one_line_and_no_longer_than_anybody_reads() -> None:
    assert rights.shown_name(" Ana\n\tof  the sea ") == "Ana of the sea"
    assert len(rights.shown_name("a" * 1000)) == rights.MOST_OF_A_NAME
