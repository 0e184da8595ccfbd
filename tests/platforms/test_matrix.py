"""Matrix in front of a real Synapse: what every platform has to hold, and what only Matrix has."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing

import pytest

from holdfast.cli.chats import Bot, NoBot
from holdfast.core.chat_errors import Limited, LoggedOut, MessageGone, Unreadable
from holdfast.core.errors import Refused, Unavailable
from holdfast.core.inbound import Echo, Message, RemoteFile
from holdfast.core.markdown import read as markdown
from holdfast.core.places import Place as Where
from holdfast.core.rights import Policy
from holdfast.platforms.matrix import trial
from holdfast.platforms.matrix.platform import Matrix
from holdfast.platforms.matrix.syncing import MOST_TRIES
from holdfast.ports.platforms import Batch, OutFile, Outgoing
from tests.fakes.matrix import Homeserver, Proxy
from tests.platforms.conformance import QUIET, Conformance, shows, texts
from tests.platforms.matrix_rig import MatrixRig, World
from tests.platforms.notices import Notices
from tests.platforms.rigs import ANN, BOB, PATIENCE_S, Life, Place, until

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with Homeserver(tmp_path_factory.mktemp("synapse")) as server:
        yield World(server)


@pytest.fixture
async def rig(world: World) -> AsyncIterator[MatrixRig]:
    since = world.bot.token_now()
    async with Proxy(world.server.url) as proxy:
        yield MatrixRig(world, proxy, since)


async def settled(life: Life, rig: MatrixRig) -> None:
    """Everything that came is part of conversations."""
    await until(lambda: life.gateway.links[rig.name].complete_ms > 0)


class TestMatrix(Conformance):
    """A real homeserver, with faults at the wire before it."""


class TestMatrixNotices(Notices):
    """Ends, returns and commands over the same wire."""


# what only Matrix has


async def test_a_gap_in_what_a_sync_shows_is_filled_before_the_cursor_moves(rig: MatrixRig, place: Place) -> None:
    """P1: more was written than a sync gives at once."""
    words = [f"say:{number}" for number in range(12)]
    async with place.life(manners=QUIET):
        await rig.say("say:first")
        await shows(rig, "first")
    await asyncio.to_thread(lambda: [rig.world.ann.say(rig.world.rooms[ANN], word) for word in words])
    platform = Matrix(rig.proxy.url, rig.world.bot.token, page=5)
    await platform.connect()
    try:
        batch = await anext(aiter(platform.receive(rig.since)))
    finally:
        await platform.aclose()
    read = [one for update in batch.updates for one in platform.read(update)]
    assert [one.text for one in read if isinstance(one, Message)] == ["say:first", *words]


async def test_a_server_that_forgot_the_cursor_gives_the_last_day_again(rig: MatrixRig) -> None:
    """P1, P6: what of it is known is recognized by its key."""
    said = await rig.say("hello")
    platform = rig.platform()
    await platform.connect()
    try:
        batches = aiter(platform.receive("s999999_nonsense"))
        batch = await anext(batches)
        found = [one for update in batch.updates for one in platform.read(update)]
        assert f"{rig.world.rooms[ANN]}|{said}" in [one.key for one in found if isinstance(one, Message)]
        assert batch.cursor is not None and (await anext(aiter(platform.receive(batch.cursor)))).updates == ()
    finally:
        await platform.aclose()


async def test_a_part_of_a_room_that_the_server_cannot_give_now_is_read_later_in_order_and_holds_up_nobody_else(rig: MatrixRig) -> None:
    """P1, P8: what was said after it waits for it. No token is stored before it was read, so a kill loses nothing either."""
    words, again = [f"{number}" for number in range(12)], [f"again {number}" for number in range(8)]
    for word in words:
        await rig.say(word)
    platform = Matrix(rig.proxy.url, rig.world.bot.token, page=5, poll_s=1.0)
    await platform.connect()
    rig.proxy.failing.add("/messages")
    heard: list[str] = []

    def take(batch: Batch) -> None:
        heard.extend(one.text for update in batch.updates for one in platform.read(update) if isinstance(one, Message))

    try:
        async with aclosing(platform.receive(rig.since)) as batches:
            take(first := await anext(batches))
            assert heard == [] and first.cursor is None
            for word in again:
                await rig.say(word)
            await rig.say("elsewhere", chat=BOB, who=BOB)
            while "elsewhere" not in heard:
                take(batch := await anext(batches))
                assert batch.cursor is None
            rig.proxy.failing.clear()
            while batch.cursor is None:
                take(batch := await anext(batches))
            assert heard == ["elsewhere", *words, *again]
        async with aclosing(platform.receive(batch.cursor)) as batches:
            assert (await anext(batches)).updates == ()
    finally:
        await platform.aclose()


async def test_history_that_does_not_end_is_read_once(rig: MatrixRig) -> None:
    """P8: a server that gives the same page again and again is not asked for ever."""
    for number in range(12):
        await rig.say(f"{number}")
    platform = Matrix(rig.proxy.url, rig.world.bot.token, page=5)
    await platform.connect()
    rig.proxy.stuck = True
    try:
        async with aclosing(platform.receive(rig.since)) as batches, asyncio.timeout(PATIENCE_S):
            assert len((await anext(batches)).updates) == 10
    finally:
        await platform.aclose()


async def test_who_is_in_a_room_is_asked_again_if_the_server_did_not_say(rig: MatrixRig) -> None:
    """In a room of two every message is meant for us; a failure must not make it a group for good."""
    ann, bot = rig.world.ann, rig.world.bot
    room = await asyncio.to_thread(ann.make_room, bot)
    await asyncio.to_thread(bot.join, room)
    platform = Matrix(rig.proxy.url, rig.world.bot.token)
    await platform.connect()

    async def addressed(text: str) -> list[bool]:
        since = await asyncio.to_thread(bot.token_now)
        await asyncio.to_thread(ann.say, room, text)
        while True:
            with contextlib.suppress(Unavailable):
                async with aclosing(platform.receive(since)) as batches:
                    read = [one for update in (await anext(batches)).updates for one in platform.read(update)]
                return [one.addressed for one in read if isinstance(one, Message)]

    try:
        rig.proxy.failing.add("/joined_members")
        assert await addressed("one") == [False]
        rig.proxy.failing.clear()
        assert await addressed("two") == [True]
    finally:
        await platform.aclose()


async def test_a_room_that_the_server_cannot_read_holds_up_nobody_for_ever(rig: MatrixRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """P8: an event that somebody replies to, and the rest of a room, cannot be had. What is missing is shown to the operator."""
    first = await rig.say("first")
    for number in range(6):
        await rig.say(f"{number}")
    await asyncio.to_thread(rig.world.ann.say, rig.world.rooms[ANN], "yes", **{"m.relates_to": {"m.in_reply_to": {"event_id": first}}})
    platform = Matrix(rig.proxy.url, rig.world.bot.token, page=5)
    await platform.connect()
    rig.proxy.failing |= {"/event/", "/messages"}
    monkeypatch.setattr("holdfast.platforms.matrix.syncing.MOST_GAP_S", 0.0)
    try:
        tries, updates = 0, tuple[bytes, ...]()
        while not updates:
            tries += 1
            with contextlib.suppress(Unavailable):
                updates = (await anext(aiter(platform.receive(rig.since)))).updates
        assert 2 <= tries <= 2 * MOST_TRIES
        with pytest.raises(Unreadable, match="could not be read"):
            platform.read(updates[0])
        [last] = platform.read(updates[-1])
        assert isinstance(last, Message) and (last.text, last.reply_to, last.quote) == ("yes", first, "")
    finally:
        await platform.aclose()


async def test_an_account_that_was_never_read_begins_now(rig: MatrixRig, place: Place) -> None:
    """What is older than the account's first start is history, except who invites it."""
    await rig.say("say:old")
    rig.since = ""
    async with place.life(manners=QUIET) as life:
        await settled(life, rig)
        await rig.say("say:new")
        await shows(rig, "new")
    assert place.texts == ["say:new"]


async def test_a_send_is_one_message_however_often_it_is_sent(rig: MatrixRig) -> None:
    """P4: the key is the id of the transaction."""
    platform = rig.platform()
    await platform.connect()
    try:
        message = Outgoing(place=Where(platform="matrix", chat=rig.world.rooms[ANN]), key="k-one", text=markdown("**once**"))
        assert await platform.send(message) == await platform.send(message)
        assert await texts(rig) == ["once"]
        found = await anext(aiter(platform.receive(rig.since)))
        assert Echo(message=(await rig.shown())[0].name, chat=rig.world.rooms[ANN], key="k-one") in [
            one for update in found.updates for one in platform.read(update)
        ]
    finally:
        await platform.aclose()


async def test_a_message_in_doubt_is_found_by_its_key_also_by_another_device(rig: MatrixRig) -> None:
    """P4, A27"""
    platform = rig.platform()
    await platform.connect()
    login = {"type": "m.login.password", "identifier": {"type": "m.id.user", "user": "holdfast"}, "password": "password of holdfast"}
    token = (await asyncio.to_thread(rig.world.ann.call, "POST", "/_matrix/client/v3/login", login))["access_token"]
    other = Matrix(rig.proxy.url, token)
    await other.connect()
    try:
        here = Where(platform="matrix", chat=rig.world.rooms[ANN])
        sent = await platform.send(Outgoing(place=here, key="k-doubt", text=markdown("there")))
        for asked in (platform, other):
            assert await asked.find("k-doubt", here) == sent
            assert await asked.find("k-nothing", here) is None
            assert await asked.find("k-doubt", Where(platform="matrix", chat="!nowhere:localhost")) is None
    finally:
        await platform.aclose()
        await other.aclose()


async def test_an_edit_that_says_what_stands_there_leaves_no_trace_and_one_of_what_is_gone_says_so(rig: MatrixRig) -> None:
    platform = rig.platform()
    await platform.connect()
    try:
        here = Where(platform="matrix", chat=rig.world.rooms[ANN])
        name = (await platform.send(Outgoing(place=here, key="k-two", text=markdown("one")))).message
        for words in ("one", "**two**", "**two**", "one"):
            await platform.edit(name, Outgoing(place=here, key="k-other", text=markdown(words)))
        await rig.shown()
        [shown] = rig.messages()
        assert (shown.text, shown.edits) == ("one", 2)
        await platform.remove(here, name)
        await platform.remove(here, name)
        with pytest.raises(MessageGone):
            await platform.edit(name, Outgoing(place=here, key="k-other", text=markdown("three")))
    finally:
        await platform.aclose()


async def test_the_rate_of_a_server_that_nobody_configured(rig: MatrixRig) -> None:
    """Ten at once, then one in five seconds, edits included."""
    slow = rig.world.slow
    platform = Matrix(rig.proxy.url, slow.token)
    await platform.connect()
    rates = platform.capabilities.rates
    assert (rates.account_per_s, rates.account_burst, rates.edit_every_s) == (0.2, 10, (5.0, 5.0))
    room = await asyncio.to_thread(slow.make_room)
    here, sent = Where(platform="matrix", chat=room), 0
    try:
        with pytest.raises(Limited) as refused:
            for sent in range(30):
                await platform.send(Outgoing(place=here, key=f"slow-{sent}", text=markdown("x")))
        assert refused.value.account and 0 < refused.value.retry_after_s <= 6
        assert sent >= 8
    finally:
        await platform.aclose()


async def test_files_go_both_ways(rig: MatrixRig, place: Place) -> None:
    platform = rig.platform()
    await platform.connect()
    try:
        file = OutFile(name="a.txt", media_type="text/plain", data=b"bytes")
        here = Where(platform="matrix", chat=rig.world.rooms[ANN])
        await platform.send(Outgoing(place=here, key="k-file", file=file))
        await rig.shown()
        [shown] = rig.messages()
        assert shown.content["msgtype"] == "m.file" and rig.world.ann.download(shown.content["url"]) == b"bytes"
        remote = RemoteFile(id=shown.content["url"], name="a.txt")
        assert b"".join([chunk async for chunk in platform.fetch(remote)]) == b"bytes"
        with pytest.raises(Refused):
            _ = [chunk async for chunk in platform.fetch(RemoteFile(id="mxc://localhost/nothing", name="x"))]
        assert platform.capabilities.bytes_out == 50 * 2**20
    finally:
        await platform.aclose()


async def test_a_message_that_waits_is_taken_back_by_deleting_it(rig: MatrixRig, place: Place) -> None:
    """DESIGN 5.7"""
    async with place.life(manners=QUIET) as life:
        await rig.say("until:gone|say:first")
        await until(lambda: place.texts)
        second = await rig.say("say:second")

        async def waits() -> int:
            session = await life.store.current_session(rig.key(ANN))
            return session.queued if session else 0

        await until(waits)
        await asyncio.to_thread(rig.world.ann.redact, rig.world.rooms[ANN], second)

        async def withdrawn() -> bool:
            return not await waits()

        await until(withdrawn)
        place.edge.gate("gone").set()
        await rig.say("say:third")
        await shows(rig, "first", "third")


async def test_typing_is_shown(rig: MatrixRig, place: Place) -> None:
    async with place.life(manners=QUIET):
        await rig.say("sleep:1|say:done")
        await shows(rig, "done")
    assert any(method == "PUT" and "/typing/" in path for method, path in rig.proxy.asked)


# invitations


async def test_who_may_talk_may_invite_and_is_answered_for_what_they_wrote_meanwhile(rig: MatrixRig, place: Place) -> None:
    """P1: people write as soon as they have sent the invitation."""
    ann, bot = rig.world.ann, rig.world.bot
    room = await asyncio.to_thread(ann.make_room, direct=True)
    await asyncio.to_thread(ann.say, room, "say:before you came")
    await asyncio.to_thread(ann.call, "POST", f"/_matrix/client/v3/rooms/{room}/invite", {"user_id": bot.user})
    await asyncio.to_thread(ann.say, room, "say:hello")
    team = await asyncio.to_thread(ann.make_room, bot)
    async with place.life(manners=QUIET):

        async def answered() -> bool:
            await asyncio.to_thread(ann.look, 0.1)
            return [one.text for one in ann.shown(room, bot.user)] == ["hello"]

        await until(answered)
        await asyncio.to_thread(ann.say, team, "say:two of us")

        async def in_the_team() -> bool:
            await asyncio.to_thread(ann.look, 0.1)
            return [one.text for one in ann.shown(team, bot.user)] == ["two of us"]

        await until(in_the_team)
    assert sorted(place.texts) == ["say:hello", "say:two of us"]


async def test_an_invitation_waits_while_the_token_is_not_accepted(rig: MatrixRig, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """P1: it is not an invitation that is gone."""
    monkeypatch.setattr("holdfast.gateway.intake.LOG_IN_AGAIN_S", 0.2)
    ann, bot = rig.world.ann, rig.world.bot
    rig.proxy.barred.add("/join")
    async with place.life(manners=QUIET):
        room = await asyncio.to_thread(ann.make_room, bot, direct=True)
        await asyncio.to_thread(ann.say, room, "say:hello")
        await until(lambda: sum(path.endswith("/join") for _, path in rig.proxy.asked) > 1)
        rig.proxy.barred.clear()
        await until(lambda: place.texts == ["say:hello"])


async def test_a_stranger_who_opens_a_private_chat_gets_a_code_there_and_is_declined_elsewhere(rig: MatrixRig, place: Place) -> None:
    """DESIGN 11: every refusal is said once."""
    eve, bot = rig.world.eve, rig.world.bot
    async with place.life(policies={rig.name: Policy(users=frozenset({rig.user(ANN)}))}):
        private = await asyncio.to_thread(eve.make_room, bot, direct=True)

        async def told() -> bool:
            await asyncio.to_thread(eve.look, 0.1)
            return ["pairing code" in one.text for one in eve.shown(private, bot.user)] == [True]

        await until(told)
        team = await asyncio.to_thread(eve.make_room, bot)

        async def declined() -> bool:
            await asyncio.to_thread(eve.look, 0.1)
            ours = [event for event in eve.seen[team] if event.get("state_key") == bot.user]
            return ours[-1]["content"].get("membership") == "leave" and "not allowed" in ours[-1]["content"]["reason"]

        await until(declined)
        await asyncio.to_thread(eve.say, private, "hello?")
        await rig.say("hello")
        await shows(rig, "re: hello")
        assert place.texts == ["hello"] and await told()


async def test_without_pairing_and_for_blocked_people_every_invitation_is_declined(rig: MatrixRig, place: Place) -> None:
    """DESIGN 11"""
    people, bot = (rig.world.eve, rig.world.bob), rig.world.bot
    policy = Policy(users=frozenset({rig.user(BOB)}), blocked=frozenset({rig.user(BOB)}), pairing=False)
    async with place.life(policies={rig.name: policy}):
        rooms = {person: await asyncio.to_thread(person.make_room, bot, direct=True) for person in people}

        async def declined() -> bool:
            for person in people:
                await asyncio.to_thread(person.look, 0.1)
            last = [[event for event in person.seen[room] if event.get("state_key") == bot.user][-1] for person, room in rooms.items()]
            return all(event["content"]["membership"] == "leave" for event in last)

        await until(declined)
    assert place.texts == []


async def test_an_encrypted_room_is_told_once_that_it_cannot_be_read(rig: MatrixRig, place: Place) -> None:
    """P1: a visible refusal, also over a restart."""
    ann, bot = rig.world.ann, rig.world.bot
    room = await asyncio.to_thread(ann.make_room, bot, direct=True, encrypted=True)
    sealed = {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "AwgAEn", "session_id": "s", "device_id": "D", "sender_key": "k"}

    async def told() -> bool:
        await asyncio.to_thread(ann.look, 0.1)
        return ["cannot read encrypted" in one.text for one in ann.shown(room, bot.user)] == [True]

    for _ in range(2):
        async with place.life(manners=QUIET) as life:
            for _ in range(2):
                await asyncio.to_thread(ann.send, room, "m.room.encrypted", sealed)
            await until(told)
            await settled(life, rig)
    assert await told() and place.texts == []


async def test_a_room_that_the_account_was_removed_from_is_gone_until_it_is_invited_again(rig: MatrixRig, place: Place) -> None:
    ann, bot = rig.world.ann, rig.world.bot
    room = await asyncio.to_thread(ann.make_room, bot, direct=True)
    async with place.life(manners=QUIET) as life:
        link = life.gateway.links[rig.name]

        async def shown(*expected: str) -> None:
            async def holds() -> bool:
                await asyncio.to_thread(ann.look, 0.1)
                return [one.text for one in ann.shown(room, bot.user)] == list(expected)

            await until(holds)

        await asyncio.to_thread(ann.say, room, "say:one")
        await shown("one")
        await asyncio.to_thread(ann.call, "POST", f"/_matrix/client/v3/rooms/{room}/kick", {"user_id": bot.user, "reason": "bye"})
        await until(lambda: link.closed)
        assert next(iter(link.closed.values())) == f"{ann.user} removed the account from the room: bye"
        await asyncio.to_thread(ann.call, "POST", f"/_matrix/client/v3/rooms/{room}/invite", {"user_id": bot.user})
        await until(lambda: not link.closed)
        await asyncio.to_thread(ann.say, room, "say:two")
        await shown("one", "two")


async def test_a_room_that_was_upgraded_keeps_its_conversation(rig: MatrixRig, place: Place) -> None:
    """C11: the room has another id from then on."""
    ann, bot = rig.world.ann, rig.world.bot
    old = await asyncio.to_thread(ann.make_room, bot, direct=True)
    async with place.life(manners=QUIET) as life:
        await asyncio.to_thread(ann.say, old, "say:one")
        await until(lambda: place.texts)
        found = await asyncio.to_thread(ann.call, "POST", f"/_matrix/client/v3/rooms/{old}/upgrade", {"new_version": "10"})
        new = found["replacement_room"]
        invite = {"membership": "invite", "is_direct": True}
        await asyncio.to_thread(ann.call, "PUT", f"/_matrix/client/v3/rooms/{new}/state/m.room.member/{bot.user}", invite)
        await asyncio.to_thread(ann.say, new, "say:two")

        async def answered() -> bool:
            await asyncio.to_thread(ann.look, 0.1)
            return [one.text for one in ann.shown(new, bot.user)] == ["two"]

        await until(answered)
        keys = {session.session_key for session in (await life.store.sessions(limit=10)).sessions}
        assert keys == {f"agent:main:matrix:dm:{old.replace(':', '%3A')}"}


async def test_nobody_can_take_over_the_conversation_of_another_room(rig: MatrixRig, place: Place) -> None:
    """DESIGN 11: a room can name any other as its successor or its predecessor, so one of them alone means nothing."""
    eve, bot, victim = rig.world.eve, rig.world.bot, rig.world.rooms[ANN]
    async with place.life(policies={rig.name: Policy(users=frozenset({rig.user(ANN), eve.user}))}) as life:
        old = await asyncio.to_thread(eve.make_room, bot, direct=True)
        await asyncio.to_thread(eve.say, old, "say:one")
        await until(lambda: place.texts)
        grave = {"body": "moved", "replacement_room": victim}
        await asyncio.to_thread(eve.call, "PUT", f"/_matrix/client/v3/rooms/{old}/state/m.room.tombstone/", grave)
        made = {"preset": "private_chat", "invite": [bot.user], "is_direct": True, "creation_content": {"predecessor": {"room_id": victim}}}
        new = (await asyncio.to_thread(eve.call, "POST", "/_matrix/client/v3/createRoom", made))["room_id"]
        await asyncio.to_thread(eve.say, new, "say:two")
        await until(lambda: len(place.texts) == 2)
        await rig.say("say:three")
        await shows(rig, "three")
        keys = {session.session_key for session in (await life.store.sessions(limit=10)).sessions}
        assert keys == {f"agent:main:matrix:dm:{room.replace(':', '%3A')}" for room in (old, new, victim)}


def test_an_address_that_is_not_that_of_a_homeserver_is_told(world: World) -> None:
    with pytest.raises(Unavailable, match="'ftp://here' is not the address of a homeserver"):
        trial.discover("ftp://here")
    with pytest.raises(Unavailable, match="What answers at this address is not a Matrix homeserver"):
        trial.discover(f"{world.server.url}/elsewhere")
    with pytest.raises(NoBot, match=r"Check the network, the proxy and homeserver\."):
        Bot("matrix", {"homeserver": "http://127.0.0.1:9", "token": "t"})


async def test_a_token_that_was_logged_out_is_said_to_be(rig: MatrixRig) -> None:
    gone = await asyncio.to_thread(rig.world.server.register, "gone")
    await asyncio.to_thread(gone.call, "POST", "/_matrix/client/v3/logout", {})
    platform = Matrix(rig.world.server.url, gone.token)
    try:
        with pytest.raises(LoggedOut, match="holdfast matrix setup"):
            await platform.connect()
    finally:
        await platform.aclose()
