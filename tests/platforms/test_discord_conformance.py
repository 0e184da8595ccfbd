"""Discord holds what every platform has to hold."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.core.events import MessageAccepted
from tests.fakes.discord import DiscordServer
from tests.platforms.conformance import QUIET, Conformance, shows
from tests.platforms.discord_rig import DiscordRig
from tests.platforms.notices import Notices
from tests.platforms.rigs import ANN, Place, Rig, until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with DiscordServer() as server:
        yield DiscordRig(server)


@pytest.fixture
async def place(tmp_path: Path, rig: Rig) -> Place:
    """A home that was connected before: to a bot Discord tells only what happens from its first login on."""
    made = Place(tmp_path, rig)
    async with made.life() as life:

        async def begun() -> bool:
            return await life.store.cursor(life.gateway.links[rig.name].id) is not None

        await until(begun)
    return made


class TestDiscord(Conformance):
    """By the gateway, with sessions that are resumed."""

    async def test_what_was_written_while_nobody_could_resume_is_answered_once_and_in_order(self, rig: Rig, place: Place) -> None:
        """P1: longer away than Discord remembers a session, and what was edited meanwhile is read as edited."""
        assert isinstance(rig, DiscordRig)
        async with place.life():
            await rig.say("zero")
            await shows(rig, "re: zero")
        rig.server.gateway.forget()
        await rig.say("one")
        await rig.edit(await rig.say("twoo"), "two")
        async with place.life():
            await shows(rig, "re: zero", "re: one", "re: two")
            await rig.say("three")
            await shows(rig, "re: zero", "re: one", "re: two", "re: three")
        assert place.texts == ["zero", "one", "two", "three"]

    async def test_a_command_of_the_menu_is_heeded_and_its_answer_comes_as_a_message(self, rig: Rig, place: Place) -> None:
        assert isinstance(rig, DiscordRig)
        async with place.life():
            await rig.say("hello")
            await shows(rig, "re: hello")
            click = rig.server.choose(rig.channel(ANN), "status", user=rig.user(ANN))

            async def told() -> bool:
                return len(await rig.shown()) == 2

            await until(told)
            [seen] = rig.server.answers[click]
            assert (seen["type"], seen["data"]["content"]) == (4, "Received: /status")
        assert place.texts == ["hello"]

    async def test_a_message_that_is_taken_back_while_it_waits_is_not_answered(self, rig: Rig, place: Place) -> None:
        """DESIGN 5.7"""
        assert isinstance(rig, DiscordRig)
        async with place.life(manners=QUIET) as life:
            await rig.say("until:gone|say:first")
            await until(lambda: place.texts)
            rig.server.take_back(await rig.say("say:second"))
            await rig.say("say:third")

            async def taken() -> bool:
                session = await life.store.current_session(rig.key(ANN))
                events = await life.store.events(session.session_id, after=0, limit=100) if session else []
                return sum(isinstance(item.event, MessageAccepted) for item in events) == 3

            await until(taken)
            place.edge.gate("gone").set()
            await shows(rig, "first", "third")


class TestDiscordNotices(Notices):
    """Ends, returns and commands over the same wire."""
