"""Slack holds what every platform has to hold, whichever way it tells what is new."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.slack import SlackServer
from tests.fakes.slack.server import Refusal
from tests.platforms.conformance import QUIET, STREAMS, Conformance, shows
from tests.platforms.hooks import HookedPlace
from tests.platforms.notices import Notices
from tests.platforms.rigs import TEAM, Place, until
from tests.platforms.slack_rig import SlackOverHttp, SlackRig

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server() -> AsyncIterator[SlackServer]:
    async with SlackServer() as made:
        yield made


class TestSlack(Conformance):
    """By Socket Mode, with the real SDK parts in front of a server that speaks Slack's wire."""

    @pytest.fixture
    def rig(self, server: SlackServer) -> SlackRig:
        return SlackRig(server)

    async def test_in_a_thread_that_we_take_part_in_nobody_has_to_name_us_again(self, rig: SlackRig, place: Place) -> None:
        """A27: a question that is asked there is answered in words. Other threads, and words to somebody else, are none of ours."""
        async with place.life(manners=QUIET):
            asked = await rig.say("steps: go > ask colour [red,green] | done", chat=TEAM)
            await until(lambda: rig.server.ours("C300"))
            other = await rig.say("between us", chat=TEAM, addressed=False)
            for text, thread in (("<@U200> 1", asked), ("1", other), ("2", asked)):
                rig.server.say("C300", text, user="U100", thread_ts=thread["ts"])
            await until(lambda: "done [done green]" in rig.server.texts("C300"))
            assert set(place.texts) == {"steps: go > ask colour [red,green] | done"}

    @pytest.mark.parametrize("why", ["edit_window_closed", "cant_update_message"])
    async def test_where_the_workspace_allows_no_edits_an_answer_is_begun_once_and_then_sent_whole(
        self, rig: SlackRig, place: Place, why: str
    ) -> None:
        """P4, B11"""
        rig.server.faults["chat.update"].extend([Refusal(why)] * 100)
        async with place.life(manners=STREAMS):
            await rig.say("say:one|until:more|say: two|until:the end|say: three")
            await shows(rig, "one")
            place.edge.gate("more").set()
            await shows(rig)
            place.edge.gate("the end").set()
            await shows(rig, "one two three")
        assert [method for method, _ in rig.server.asked].count("chat.postMessage") == 2


class TestSlackOverHttp(Conformance):
    """By signed requests, which come to a real HTTP server in front of the gateway."""

    @pytest.fixture
    def rig(self, server: SlackServer) -> SlackRig:
        return SlackOverHttp(server)

    @pytest.fixture
    def place(self, tmp_path: Path, rig: SlackRig, server: SlackServer) -> Place:
        return HookedPlace(tmp_path, rig, server.hook.lead_to)


class TestSlackNotices(Notices):
    """Ends, returns and commands over the same wire."""

    @pytest.fixture
    def rig(self, server: SlackServer) -> SlackRig:
        return SlackRig(server)


class TestSlackNoticesOverHttp(Notices):
    rig, place = TestSlackOverHttp.rig, TestSlackOverHttp.place
