"""The harness bites: variants that are broken on purpose are caught by the invariants."""

import asyncio
import itertools
from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest

from holdfast.core import blame
from holdfast.core.delivery import DeliveryState
from holdfast.core.effects import ToolOutcome
from holdfast.core.events import DeliveryChanged, MessageAccepted, ProcessEnded, SessionChanged, ToolFinished
from holdfast.core.plans.accept import Accepted
from holdfast.core.plans.causes import Cause
from holdfast.core.plans.schedules import Fired
from holdfast.core.plans.start import StartedTurn
from holdfast.core.processes import Telling
from holdfast.core.schedules import Due, Schedule
from holdfast.core.sessions import Session
from holdfast.core.turns import TurnState
from holdfast.ports.inbox import Terms
from holdfast.ports.store import Store
from holdfast.store.tx import Tx
from holdfast.store.work import snapshots
from tests.sim.people import Happens, Plan, Reset, Say, Stop, Wait
from tests.sim.promises import check
from tests.sim.world import Death, Weather, World


class Lying:
    """A store that does everything but what it is made to lie about."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class AcknowledgesTooEarly(Lying):
    """Says that a message is kept before it is."""

    async def accept(self, session_id: str, message: MessageAccepted, terms: Terms, *, at: int) -> Accepted:
        asyncio.get_running_loop().create_task(self._store.accept(session_id, message, terms, at=at))
        return Accepted(message.message_id, session_id)


class RecordsNoIntent(Lying):
    """Notes a delivery only once it was made."""

    async def record_delivery(self, session_id: str, change: DeliveryChanged, *, expect: DeliveryState, at: int) -> bool:
        if change.state == DeliveryState.SENDING:
            return True
        return await self._store.record_delivery(session_id, change, expect=DeliveryState.PENDING, at=at)


class ForgetsOpenCalls(Lying):
    """Leaves calls of unknown outcome open, as if they could be run again."""

    async def take_turn(self, session_id: str, *, events: Any, **named: Any) -> StartedTurn:
        kept = [event for event in events if not (isinstance(event, ToolFinished) and event.outcome is ToolOutcome.UNKNOWN)]
        return await self._store.take_turn(session_id, events=kept, **named)


class TakesWhateverComesForAnAnswer(Lying):
    """Does not ask whether a question has reached its chat."""

    async def accept(self, session_id: str, message: MessageAccepted, terms: Terms, *, at: int) -> Accepted:
        return await self._store.accept(session_id, message, msgspec.structs.replace(terms, on_page=True), at=at)


class OverlooksStops(Lying):
    """Does not say of a cut turn that it was stopped."""

    async def session(self, session_id: str) -> Session:
        session = await self._store.session(session_id)
        if session.turn_state is TurnState.INTERRUPTED:
            return msgspec.structs.replace(session, stop_requested=False)
        return session


class FiresTooEarly(Lying):
    """Takes times that are still to come for due."""

    async def fire_schedule(self, schedule: Schedule, due: Due, *, at: int, **named: Any) -> Fired | None:
        return await self._store.fire_schedule(schedule, due, at=at - 1000, **named)


class IgnoresSafeMode(Lying):
    """Starts a turn from whatever waits."""

    async def start_turn(self, session_id: str, **named: Any) -> StartedTurn | None:
        return await self._store.start_turn(session_id, **named | {"safe": False})

    async def waiting_lanes(self, *, limit: int, safe: bool = False) -> list[str]:
        return await self._store.waiting_lanes(limit=limit)


class KillsWithoutARecord(Lying):
    """Does not note that nobody needs to be told of a process that is killed."""

    async def consume_process(self, process_id: str, *, how: str, at: int) -> bool:
        return True


class HushesEnds(Lying):
    """Takes every end for one that is known already."""

    async def end_process(self, ended: ProcessEnded, **named: Any) -> Telling:
        await self._store.consume_process(ended.process_id, how="read", at=named["at"])
        return await self._store.end_process(ended, **named)


class WritesAtTheEnd(Lying):
    """Changes a conversation in the last moment of a process, when no stream tells of it any more."""

    async def record_end(self, owner: int, **named: Any) -> None:
        for session in (await self._store.sessions(limit=1)).sessions:
            for title in ("one", "two", "three", "four"):
                await self._store.change_session(session.session_id, SessionChanged(title=title), at=1)
        await self._store.record_end(owner, **named)


def _first_breach(tell: Callable[[World], object], **world_is: Any) -> str:
    """What the invariants say of the first death that shows the fault."""
    for point in itertools.count(1):
        world = World(1, deaths=(Death(point=point, unsynced="none"),), **world_is)
        tell(world)
        try:
            world.run()
            check(world)
        except AssertionError as broken:
            return str(broken)
        if not world.crashes:
            break
    return "nothing was found"


@pytest.mark.parametrize(
    ("fault", "breach"),
    (
        ({"wrap": lambda store: cast(Store, AcknowledgesTooEarly(store))}, "P1: "),
        ({"wrap": lambda store: cast(Store, RecordsNoIntent(store)), "reconciles": False}, "P4: .* do not say that they may be repeats"),
        ({"wrap": lambda store: cast(Store, ForgetsOpenCalls(store))}, "P5: the unsafe .* was done 2 times"),
        ({"synchronous": "OFF"}, "P[17]: "),
    ),
    ids=("acknowledges too early", "records no intent", "forgets open calls", "does not sync"),
)
def test_a_fault_that_was_put_in_is_found(fault: dict[str, Any], breach: str) -> None:
    """P1, P4, P5, P7: if one of these passed, the simulation would prove nothing."""
    found = _first_breach(
        lambda world: (
            world.person("ann", Say("say:one|call:unsafe|say:two")),
            world.person("bob", Say("say:one|call:unsafe"), chats=True),
        ),
        **fault,
    )
    with pytest.raises(AssertionError, match=breach):
        raise AssertionError(found)


def test_what_is_recorded_in_the_last_moment_is_still_read() -> None:
    """P7: readers come back with their cursors, and are shown it from the store."""
    world = World(1, wrap=lambda store: cast(Store, WritesAtTheEnd(store)))
    world.person("ann", Say("say:one"))
    world.run()
    assert check(world).log[-1].event == SessionChanged(title="four")


def test_planned_work_that_comes_too_early_is_found() -> None:
    """P6"""
    hasty = {"wrap": lambda store: cast(Store, FiresTooEarly(store))}
    found = _first_breach(lambda world: world.person("ann", Say("say:one"), Plan("say:two", in_s=0.2)), **hasty)
    with pytest.raises(AssertionError, match=r"P6: .* came too early"):
        raise AssertionError(found)


def test_a_cause_that_starts_a_turn_in_safe_mode_is_found() -> None:
    """B14"""
    world = World(1, deaths=[Death(at_s=3.0)] * 3, wrap=lambda store: cast(Store, IgnoresSafeMode(store)))
    world.person("ann", Wait(lambda life: life.gateway.safe_mode), Happens("say:two"))
    world.run()
    with pytest.raises(AssertionError, match=r"B14: .* in safe mode"):
        check(world)


@pytest.mark.parametrize(
    ("script", "liar", "breach"),
    [
        ("start:at 0.1 print x|sleep:0.3|kill", KillsWithoutARecord, "E2: .* was killed, and that is not on record"),
        ("start:lasts 0.5", HushesEnds, "E2: .* is said to be read, and nobody has read it"),
    ],
)
def test_a_process_that_is_told_of_wrongly_is_found(script: str, liar: type[Lying], breach: str) -> None:
    """E2, E6"""
    world = World(1, wrap=lambda store: cast(Store, liar(store)), keeps=True)
    world.person("ann", Say(script))
    world.run()
    with pytest.raises(AssertionError, match=breach):
        check(world)


def test_an_answer_to_a_question_that_nobody_had_seen_is_found() -> None:
    """A27"""

    def tell(world: World) -> None:
        world.server.takes_s = 5.0  # Long enough to write before the question is there.
        world.person("ann", Say("ask:why?|say:two"), Say("because", once=("question.asked", 1)), chats=True)

    found = _first_breach(
        tell,
        wrap=lambda store: cast(Store, TakesWhateverComesForAnAnswer(store)),
    )
    with pytest.raises(AssertionError, match=r"A27: .* answers what had not been asked"):
        raise AssertionError(found)


STOPPED = (Say("say:one|call:unsafe|hang"), Stop(once=("tool.finished", 1)))


@pytest.mark.parametrize(
    ("deeds", "fault", "breach"),
    (
        (
            (Say("say:one|call:unsafe|sleep:1|say:two"),),
            {
                "really": lambda settings: msgspec.structs.replace(settings, resume_window_s=-1.0),
                "weather": Weather(downtimes=(24 * 3600.0,)),
            },
            "P8: .*'R9'.* the record says .*'R6'",
        ),
    ),
    ids=("resumes what is stale",),
)
def test_a_recovery_that_decides_otherwise_is_found(deeds: tuple[Any, ...], fault: dict[str, Any], breach: str) -> None:
    """P3, P8, R0, R6: the labels are recomputed from the log, so a wrong decision shows however well it ends."""
    found = _first_breach(lambda world: world.person("ann", *deeds), **fault)
    with pytest.raises(AssertionError, match=breach):
        raise AssertionError(found)


def test_a_reset_that_forgets_the_words_that_waited_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A20: a refusal without the texts is none."""
    whole = snapshots.waiting

    def without_words(tx: Tx, session: int) -> tuple[Cause, ...]:
        return tuple(msgspec.structs.replace(cause, content="") for cause in whole(tx, session))

    monkeypatch.setattr(snapshots, "waiting", without_words)
    found = _first_breach(lambda world: world.person("ann", Say("say:one|hang"), Say("say:two"), Reset(once=("text", 1))))
    with pytest.raises(AssertionError, match="A20: 'say:two' is missing"):
        raise AssertionError(found)


def test_restarts_that_are_not_counted_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A17: a count that never grows would never suspend anybody."""
    monkeypatch.setattr(blame, "restarts_after", lambda end, *, progressed, before: 0)
    found = _first_breach(lambda world: world.person("ann", Say("say:one|sleep:1|say:two")))
    with pytest.raises(AssertionError, match=r"A17: .* counts 0"):
        raise AssertionError(found)


def test_a_recovery_that_overlooks_a_stop_is_refused_by_the_store() -> None:
    """A21, R0: the decision is made on what was read before; the stop that came since is in the same transaction as its outcome."""
    found = _first_breach(lambda world: world.person("ann", *STOPPED), wrap=lambda store: cast(Store, OverlooksStops(store)))
    assert found == "nothing was found"
