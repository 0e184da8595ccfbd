"""Telegram holds what every platform has to hold, whether it is asked for what is new or tells it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.core.live import Manners
from holdfast.core.notices import thread_gone
from tests.fakes.telegram import TelegramServer
from tests.fakes.telegram.server import BOT
from tests.platforms.conformance import QUIET, STREAMS, Conformance, shows
from tests.platforms.hooks import HookedPlace
from tests.platforms.notices import Notices
from tests.platforms.rigs import ANN, TEAM, Place, Rig, until
from tests.platforms.telegram_rig import CHATS, TelegramByWebhook, TelegramRig

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as made:
        yield made


class TestTelegram(Conformance):
    """By long polling, with the real SDK part in front of a server that speaks the Bot API."""

    @pytest.fixture
    def rig(self, server: TelegramServer) -> Rig:
        return TelegramRig(server)

    @pytest.mark.parametrize("told", [True, False])
    async def test_a_group_that_becomes_a_supergroup_keeps_its_conversation(
        self, rig: Rig, place: Place, server: TelegramServer, told: bool
    ) -> None:
        """P4: what is owed arrives under the new name, also if only the send is told that there is one; the next process knows it."""
        old, new = CHATS[TEAM], -1007
        async with place.life(manners=QUIET) as life:
            await rig.say("until:moved|say:hello", chat=TEAM)
            await until(lambda: place.texts)
            server.moved[old] = new
            if told:
                server.say(old, user=CHATS[ANN], migrate_to_chat_id=new)
                await until(lambda: life.gateway.links[rig.name].kept(str(new)) == str(old))
            place.edge.gate("moved").set()
            await until(lambda: server.texts(new) == ["hello"])
        async with place.life(manners=QUIET) as life:
            server.say(new, f"@{BOT['username']} say:again", user=CHATS[ANN])
            await until(lambda: server.texts(new)[-1] == "again")
            assert len((await life.store.sessions(limit=10)).sessions) == 1
        assert server.texts(old) == []

    async def test_an_answer_that_grows_while_its_group_becomes_a_supergroup_is_whole_there(
        self, rig: Rig, place: Place, server: TelegramServer
    ) -> None:
        """P4, B11: the message that showed its beginning cannot be edited under the new name."""
        old, new = CHATS[TEAM], -1007
        async with place.life(manners=STREAMS):
            await rig.say("say:one|until:moved|say: two", chat=TEAM)
            await shows(rig, "one", chat=TEAM)
            server.moved[old] = new
            place.edge.gate("moved").set()
            await until(lambda: server.texts(new) == ["one two"])

    @pytest.mark.parametrize("manners", [QUIET, STREAMS])
    async def test_an_answer_for_a_topic_that_is_gone_comes_to_the_chat_and_says_so(
        self, rig: Rig, place: Place, server: TelegramServer, manners: Manners
    ) -> None:
        """C11"""
        async with place.life(manners=manners):
            await rig.say("until:gone|say:hello", chat=TEAM, thread="77")
            await until(lambda: place.texts)
            server.gone_threads.add(77)
            place.edge.gate("gone").set()
            await shows(rig, f"{thread_gone()}hello", chat=TEAM)
            [seen] = await rig.shown(TEAM)
            assert seen.thread is None


class TestTelegramByWebhook(Conformance):
    """By requests of the server, which come to a real HTTP server in front of the gateway."""

    @pytest.fixture
    def rig(self, server: TelegramServer) -> Rig:
        return TelegramByWebhook(server)

    @pytest.fixture
    def place(self, tmp_path: Path, rig: Rig, server: TelegramServer) -> Place:
        return HookedPlace(tmp_path, rig, server.hook.lead_to)

    async def test_a_webhook_that_another_program_took_away_is_set_again(self, rig: Rig, place: Place, server: TelegramServer) -> None:
        """P1: what people wrote meanwhile is answered."""
        async with place.life(manners=QUIET):
            await until(lambda: server.webhook)
            server.webhook = {}
            await rig.say("say:hello")
            await shows(rig, "hello")


class TestTelegramNotices(Notices):
    """Ends, returns and commands over the same wire."""

    @pytest.fixture
    def rig(self, server: TelegramServer) -> Rig:
        return TelegramRig(server)


class TestTelegramNoticesByWebhook(Notices):
    rig, place = TestTelegramByWebhook.rig, TestTelegramByWebhook.place
