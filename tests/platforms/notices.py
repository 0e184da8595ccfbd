"""What every platform has to hold when Holdfast ends and comes back, and when it is spoken to itself: the same words to the same people, in
their chats and threads, over the platform's own wire. A platform gets these tests as it gets `Conformance`.
"""

from functools import partial
from typing import Any

from holdfast.core.restarts import By
from holdfast.core.rights import Policy
from tests import words
from tests.platforms.conformance import QUIET, shows, texts
from tests.platforms.rigs import ANN, BOB, TEAM, Place, Rig, until

RESTART = "restart_timeout"
WORKS = "say:half|until:never / say:whole"


def led_by_ann(rig: Rig) -> Policy:
    return Policy(users=frozenset({rig.user(ANN), rig.user(BOB)}), admins=frozenset({rig.user(ANN)}))


class Notices:
    async def test_who_asks_for_a_restart_in_a_chat_is_answered_there_and_told_when_it_is_back_and_nobody_else_is(
        self, rig: Rig, place: Place
    ) -> None:
        """C11, C12, C13: a command that is delivered again restarts nothing; nor does one of somebody who is no admin."""
        settings: dict[str, Any] = {"manners": QUIET, "policies": {rig.name: led_by_ann(rig)}, "home_channels": (rig.key(BOB),)}
        async with place.life(ends=RESTART, **settings):
            await rig.say("/restart", chat=BOB, who=BOB)
            await shows(rig, words.MAY_NOT_RESTART, chat=BOB)
            asked = await rig.say("/restart")
            await shows(rig, words.RESTARTING)
            await until(lambda: place.asked)
        async with place.life(**settings):
            await shows(rig, words.RESTARTING, words.BACK)
            assert all(rig.is_reply(seen, asked) for seen in await rig.shown())
            await rig.again(asked)
            await rig.say("say:hello")
            await shows(rig, words.RESTARTING, words.BACK, "hello")
            assert await texts(rig, BOB) == [words.MAY_NOT_RESTART]
        assert len(place.asked) == 1

    async def test_a_restart_that_is_asked_for_in_a_thread_is_answered_in_the_thread(self, rig: Rig, place: Place) -> None:
        """C11: before and after."""
        settings: dict[str, Any] = {"manners": QUIET, "policies": {rig.name: led_by_ann(rig)}}
        async with place.life(ends=RESTART, **settings):
            await rig.say("/restart", chat=TEAM, thread="77")
            await shows(rig, words.RESTARTING, chat=TEAM)
            await until(lambda: place.asked)
        async with place.life(**settings):
            await shows(rig, words.RESTARTING, words.BACK, chat=TEAM)
            assert [seen.thread for seen in await rig.shown(TEAM)] == ["77", "77"]

    async def test_a_restart_by_an_operator_is_told_to_the_chat_that_it_interrupts_and_to_home_channels_before_and_after(
        self, rig: Rig, place: Place
    ) -> None:
        """C10, C13"""
        settings: dict[str, Any] = {"manners": QUIET, "home_channels": (rig.key(ANN),)}
        async with place.life(ends=RESTART, **settings) as life:
            await rig.say(WORKS, chat=BOB, who=BOB)
            await until(lambda: place.texts)
            life.gateway.announcements.request(By.OPERATOR)
        async with place.life(**settings):
            await shows(rig, words.RESTARTING, words.BACK)
            await shows(rig, words.RESTARTING_INTERRUPTS, "whole", chat=BOB)

    async def test_a_stop_is_told_to_the_chat_that_it_interrupts_and_to_home_channels_and_a_later_start_to_nobody(
        self, rig: Rig, place: Place
    ) -> None:
        """C10, C13, E5"""
        settings: dict[str, Any] = {"manners": QUIET, "home_channels": (rig.key(ANN),)}
        async with place.life(by=By.OPERATOR, **settings):
            await rig.say(WORKS, chat=BOB, who=BOB)
            await until(lambda: place.texts)
        async with place.life(**settings):
            await shows(rig, words.STOPPING_INTERRUPTS, "whole", chat=BOB)
            assert await texts(rig) == [words.STOPPING]

    async def test_commands_and_approvals_in_words_are_the_same_everywhere(self, rig: Rig, place: Place) -> None:
        """A21, A22: what begins with a slash is for Holdfast itself, and starts no turn."""
        async with place.life(manners=QUIET):
            for command, reply in (("/stop", words.NOTHING_TO_STOP), ("/new", words.ALREADY_NEW), ("/queue", words.QUEUE_WHAT)):
                await rig.say(command)
                await until(partial(_stands, rig, reply))
            assert not place.texts
            for verdict, result in (("/approve", "done [done done]"), ("/deny not now", "not now")):
                await rig.say("steps: go > launch 0 | done")
                await until(partial(_stands, rig, "launch", last=True))
                await rig.say(verdict)
                await until(partial(_stands, rig, result, last=True))
            assert len(place.done) == 1


async def _stands(rig: Rig, words: str, *, last: bool = False) -> bool:
    found = await texts(rig)
    return any(words in text for text in (found[-1:] if last else found))
