"""What every platform has to hold, with faults at the wire: a real gateway, the platform's own SDK part, and a server that outlives both.

A platform gets the suite by a class of its own below `Conformance`, next to a fixture `rig`: see `test_telegram_conformance.py`.
"""

import asyncio

import pytest

from holdfast.core import events as e
from holdfast.core.delivery import DUE, IN_FLIGHT, REPEAT_LABEL, DeliveryState
from holdfast.core.live import Manners
from holdfast.core.notices import stopping_interrupts
from holdfast.core.rights import Policy
from tests.platforms.rigs import ANN, BOB, TEAM, Life, Place, Rig, Seen, until

STREAMS = Manners(still_working_s=0)
QUIET = Manners(stream=False, still_working_s=0)


async def texts(rig: Rig, chat: str = ANN) -> list[str]:
    return [seen.text for seen in await rig.shown(chat)]


async def shows(rig: Rig, *expected: str, chat: str = ANN) -> None:
    """Waits until exactly this stands in a chat."""

    async def holds() -> bool:
        return await texts(rig, chat) == list(expected)

    try:
        await until(holds)
    except TimeoutError:
        raise AssertionError(f"{chat} shows {await texts(rig, chat)}, not {list(expected)}") from None


async def edits(life: Life, rig: Rig) -> list[str]:
    """What edits of Ann's messages led to."""
    session = await life.store.current_session(rig.key(ANN))
    assert session is not None
    events = await life.store.events(session.session_id, after=0, limit=100)
    return [item.event.effect for item in events if isinstance(item.event, e.MessageEdited)]


class Conformance:
    # what comes

    async def test_a_message_is_answered_as_a_reply_to_it(self, rig: Rig, place: Place) -> None:
        """P1, P4"""
        async with place.life():
            said = await rig.say("hello")
            await shows(rig, "re: hello")
            [seen] = await rig.shown()
            assert rig.is_reply(seen, said)

    async def test_what_came_while_nobody_was_there_is_answered_and_not_dropped(self, rig: Rig, place: Place) -> None:
        """P1: the backlog."""
        await rig.say("one")
        await rig.say("two")
        async with place.life():
            await shows(rig, "re: one", "re: two")
        await rig.say("three")
        async with place.life():
            await shows(rig, "re: one", "re: two", "re: three")
        assert place.texts == ["one", "two", "three"]

    async def test_a_message_that_is_delivered_again_starts_one_turn(self, rig: Rig, place: Place) -> None:
        """P1, P6: also in a later process, and out of order."""
        async with place.life():
            first = await rig.say("one")
            await rig.say("two")
            await rig.again(first)
            await shows(rig, "re: one", "re: two")
        await rig.again(first)
        async with place.life():
            await rig.say("three")
            await shows(rig, "re: one", "re: two", "re: three")
        assert place.texts == ["one", "two", "three"]

    async def test_an_update_that_nobody_can_read_is_kept_as_refused_and_holds_up_nobody(self, rig: Rig, place: Place) -> None:
        """P1"""
        await rig.garbage()
        async with place.life() as life:
            await rig.say("hello")
            await rig.garbage()
            await rig.say("still there?")
            await shows(rig, "re: hello", "re: still there?")
            await until(lambda: life.gateway.links[rig.name].refused == 2)
            assert len(await life.store.refused_updates(limit=10)) == 2
        async with place.life() as life:
            await rig.say("and now?")
            await shows(rig, "re: hello", "re: still there?", "re: and now?")
            assert life.gateway.links[rig.name].refused == 0

    async def test_an_edit_of_a_message_that_waits_replaces_it(self, rig: Rig, place: Place) -> None:
        """DESIGN 5.7"""
        async with place.life(manners=QUIET) as life:
            await rig.say("until:edited|say:first")
            await until(lambda: place.texts)
            second = await rig.say("say:sekond")
            await rig.edit(second, "say:second")

            async def replaced() -> bool:
                return await edits(life, rig) == ["replaced"]

            await until(replaced)
            place.edge.gate("edited").set()
            await shows(rig, "first", "second")

    async def test_messages_that_come_in_another_order_are_each_answered_once(self, rig: Rig, place: Place) -> None:
        """P1"""
        async with place.life(manners=QUIET):
            if not rig.hold():
                pytest.skip("a platform that keeps the order")
            await rig.say("one")
            await rig.say("two")
            rig.release()

            async def both() -> bool:
                return sorted(await texts(rig)) == ["re: one", "re: two"]

            await until(both)
            assert sorted(place.texts) == ["one", "two"]

    async def test_an_edit_that_comes_before_its_message_is_what_is_answered(self, rig: Rig, place: Place) -> None:
        """P1, DESIGN 5.7"""
        async with place.life(manners=QUIET):
            if not rig.hold():
                pytest.skip("a platform that keeps the order")
            said = await rig.say("old words")
            await rig.edit(said, "new words")
            rig.release()
            await shows(rig, "re: new words")
            await rig.say("and more")
            await shows(rig, "re: new words", "re: and more")
        assert place.texts == ["new words", "and more"]

    async def test_a_file_comes_with_its_message(self, rig: Rig, place: Place) -> None:
        async with place.life() as life:
            await rig.attach(b"some bytes", name="notes.txt", media_type="text/plain", text="look")
            await shows(rig, "re: look")
            session = await life.store.current_session(rig.key(ANN))
            assert session is not None
            events = await life.store.events(session.session_id, after=0, limit=50)
            [said] = [item.event for item in events if isinstance(item.event, e.MessageAccepted)]
            [file] = e.attached(said)
            assert (file.name, file.size, file.media_type) == ("notes.txt", 10, "text/plain")

    # what goes

    async def test_a_long_answer_arrives_whole_and_formatted_in_several_messages(self, rig: Rig, place: Place) -> None:
        """P4"""
        limit = rig.platform().capabilities.text_limit
        words = " ".join(f"**word{number}**" for number in range(limit // 5))
        async with place.life(manners=QUIET):
            await rig.say(f"say:{words}")

            async def whole() -> bool:
                return " ".join(await texts(rig)) == words.replace("**", "")

            await until(whole)
            assert len(await rig.shown()) > 1

    @pytest.mark.parametrize("stray", ["2*3 and _ and ` and [x]( and **open", "a < b & c > d \\ e | f # g", "¯\\_(ツ)_/¯ 😀 👨‍👩‍👧"])
    async def test_no_stray_character_keeps_an_answer_from_arriving(self, rig: Rig, place: Place, stray: str) -> None:
        async with place.life():
            await rig.say("sleep:0")
            await until(lambda: place.texts)
            await rig.say(f"say:{stray}".replace("|", "¦"))
            expected = stray.replace("|", "¦").replace("\\_", "_")

            async def arrived() -> bool:
                return expected in await texts(rig)

            await until(arrived)

    async def test_a_send_that_took_effect_and_whose_answer_was_lost_is_never_silently_doubled(self, rig: Rig, place: Place) -> None:
        """P4: found, or sent once more with a label."""
        async with place.life(manners=QUIET):
            rig.next_send("cut")
            await rig.say("say:hello")
            await until(lambda: place.texts)
            await rig.say("say:next")

            async def there() -> bool:
                return "next" in await texts(rig)

            await until(there)
            found = await texts(rig)
            can = rig.platform().capabilities
            known = can.finds or can.key_lasts_s or can.echoes_s
            assert found == (["hello", "next"] if known else ["hello", f"{REPEAT_LABEL}hello", "next"])

    @pytest.mark.parametrize("fault", ["lost", "failed", "limited", "slowly"])
    async def test_a_send_that_failed_is_made_good_and_order_is_kept(self, rig: Rig, place: Place, fault: str) -> None:
        """P4: 429 with and without a time to wait, a connection that breaks, a server that fails."""
        async with place.life(manners=QUIET):
            rig.next_send(fault)
            await rig.say("say:one")
            await rig.say("say:two")

            async def both() -> bool:
                return [text.removeprefix(REPEAT_LABEL) for text in await texts(rig)] == ["one", "two"]

            await until(both)

    async def test_what_is_owed_when_the_process_ends_is_sent_once_by_the_next(self, rig: Rig, place: Place) -> None:
        """P4"""
        async with place.life(manners=QUIET) as life:
            rig.next_send("limited")
            await rig.say("say:hello")

            async def owed() -> bool:  # A turn that still runs would be told that it is interrupted.
                return bool(await life.store.deliveries(states=[*DUE, *IN_FLIGHT], now=2**62, limit=1))

            await until(owed)
        async with place.life(manners=QUIET):
            await shows(rig, "hello")

    async def test_an_answer_grows_in_one_message_and_is_whole_at_the_end(self, rig: Rig, place: Place) -> None:
        """B11"""
        async with place.life(manners=STREAMS):
            await rig.say("say:one|until:more|say: two|until:the end|say: three")
            await shows(rig, "one")
            [first] = await rig.shown()
            place.edge.gate("more").set()
            await shows(rig, "one two")
            place.edge.gate("the end").set()
            await shows(rig, "one two three")
            [last] = await rig.shown()
            assert first.name == last.name

    @pytest.mark.parametrize("fault", ["cut", "lost"])
    async def test_an_answer_whose_first_words_may_not_have_arrived_grows_on_or_says_so(self, rig: Rig, place: Place, fault: str) -> None:
        """P4, B11: it is known while the turn runs what became of them, or the whole answer may be a repeat and says so."""
        can = rig.platform().capabilities
        known = can.finds or can.key_lasts_s
        async with place.life(manners=STREAMS) as life:
            rig.next_send(fault)
            await rig.say("say:one|until:more|say: two|until:the end|say: three")

            async def doubted() -> bool:
                return any(row.state is DeliveryState.UNKNOWN for row in await life.store.live_deliveries())

            if known:
                await shows(rig, "one")
                place.edge.gate("more").set()
                await shows(rig, "one two")
            else:
                await until(doubted)
                place.edge.gate("more").set()
            place.edge.gate("the end").set()
            begun = ["one"] if fault == "cut" and not known else []
            await shows(rig, *begun, f"{'' if known else REPEAT_LABEL}one two three")

    async def test_an_answer_that_is_being_written_is_continued_by_the_next_process(self, rig: Rig, place: Place) -> None:
        """B11"""
        async with place.life(manners=STREAMS):
            await rig.say("say:one|until:never / say:one|sleep:1|say: two")
            await shows(rig, "one")
        async with place.life(manners=STREAMS):

            async def continued() -> bool:
                return await texts(rig) == [stopping_interrupts(0), "one two"]

            await until(continued)

    async def test_a_chat_that_is_gone_is_remembered_and_comes_back_with_its_first_word(self, rig: Rig, place: Place) -> None:
        async with place.life(manners=QUIET) as life:
            rig.close(ANN)
            await rig.say("say:hello")
            await until(lambda: life.gateway.links[rig.name].closed)
            await rig.say("say:elsewhere", chat=BOB, who=BOB)
            await shows(rig, "elsewhere", chat=BOB)
            rig.open(ANN)
            await rig.say("say:again")
            await shows(rig, "again")

    async def test_an_answer_waits_for_the_right_to_write_and_the_operator_is_told_what_it_waits_for(
        self, rig: Rig, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """P4, P8: rights come back, so no chat is closed and nothing given up; other chats do not wait, and it arrives once."""
        monkeypatch.setattr("holdfast.core.chat_errors.MUTED_S", 0.5)
        async with place.life(manners=STREAMS) as life:
            await rig.mute(TEAM)
            await rig.say("say:one|until:more|say: two", chat=TEAM)
            await rig.say("say:elsewhere")
            await shows(rig, "elsewhere")
            place.edge.gate("more").set()

            async def told() -> bool:
                owed = await life.store.deliveries(states=[DeliveryState.PENDING], now=2**62, limit=10)
                return len(owed) == 1 and " wait until " in (owed[0].error or "")

            await until(told)
            assert not life.gateway.links[rig.name].closed
        async with place.life(manners=STREAMS):
            await rig.unmute(TEAM)
            await shows(rig, "one two", chat=TEAM)

    async def test_credentials_that_are_revoked_are_shown_and_nothing_is_lost(
        self, rig: Rig, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for module in ("links", "intake", "sending"):
            monkeypatch.setattr(f"holdfast.gateway.{module}.LOG_IN_AGAIN_S", 0.5)
        async with place.life(manners=QUIET) as life:
            await rig.say("say:one")
            await shows(rig, "one")
            rig.revoke()
            await until(lambda: life.gateway.links[rig.name].problem is not None)
            await rig.say("say:two")
            await asyncio.sleep(1)
            rig.restore()
            await shows(rig, "one", "two")
            await until(lambda: life.gateway.links[rig.name].problem is None)

    async def test_a_second_process_on_the_same_account_takes_nothing_away_and_doubles_nothing(self, rig: Rig, place: Place) -> None:
        """A hand-over: both are connected for a moment."""
        async with place.life(manners=QUIET) as old:
            await rig.say("say:one")
            await shows(rig, "one")
            old.gateway.hand_over.begin()
            await rig.say("say:two")
            await old.gateway.hand_over.give_way()
            await rig.say("say:three")
            async with place.life(manners=QUIET):
                await rig.say("say:four")
                await shows(rig, "one", "two", "three", "four")
                assert sorted(place.texts) == sorted(f"say:{word}" for word in ("one", "two", "three", "four"))

    # questions

    async def test_a_question_is_answered_by_its_button_or_by_words(self, rig: Rig, place: Place) -> None:
        """A27"""
        async with place.life(manners=QUIET):
            for number in range(2):
                await rig.say("steps: go > ask colour [red,green] | done")

                async def asked(number: int = number) -> bool:
                    return len([seen for seen in await rig.shown() if "2. green" in seen.text]) == number + 1

                await until(asked)
                [question] = [seen for seen in await rig.shown() if "2. green" in seen.text][-1:]
                if number == 0 and question.buttons:
                    await rig.press(question, "green")
                else:
                    await rig.say("2")

                async def answered(number: int = number) -> bool:
                    return (await texts(rig)).count("done [done green]") == number + 1

                await until(answered)

    async def test_an_approval_is_given_by_its_button_also_when_the_platform_takes_no_answer_any_more(self, rig: Rig, place: Place) -> None:
        """P5: the click is on record before it is answered; a second click changes nothing."""
        async with place.life(manners=QUIET):
            await rig.say("steps: go > launch 0 | done")

            async def asked() -> bool:
                return bool(await rig.shown())

            await until(asked)
            [question] = await rig.shown()
            if not question.buttons:
                pytest.skip("a platform without buttons")
            await rig.press(question, "Deny", who=BOB)
            await rig.press(question, "Approve", late=True)

            async def done() -> bool:
                return "done [done done]" in await texts(rig)

            await until(done)
            assert len(place.done) == 1

    # who may talk

    async def test_a_stranger_is_told_once_and_reaches_nobody(self, rig: Rig, place: Place) -> None:
        """DESIGN 11"""
        async with place.life(policies={rig.name: Policy(users=frozenset({rig.user(ANN)}))}):
            for _ in range(3):
                await rig.say("hello", chat=BOB, who=BOB)
            await rig.say("hello")
            await shows(rig, "re: hello")
            [told] = await texts(rig, BOB)
            assert "pairing code" in told and place.texts == ["hello"]

    async def test_in_a_group_only_what_is_addressed_to_us_is_answered(self, rig: Rig, place: Place) -> None:
        async with place.life(manners=QUIET):
            await rig.say("between us", chat=TEAM, addressed=False)
            await rig.say("say:hello", chat=TEAM)
            await shows(rig, "hello", chat=TEAM)
            assert place.texts == ["say:hello"]

    async def test_a_thread_is_answered_in_the_thread(self, rig: Rig, place: Place) -> None:
        """B11, C11"""
        async with place.life(manners=QUIET):
            await rig.say("say:hello", chat=TEAM, thread="77")
            await shows(rig, "hello", chat=TEAM)
            [seen] = await rig.shown(TEAM)
            assert isinstance(seen, Seen) and seen.thread == "77"
