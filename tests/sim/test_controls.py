"""The harness bites: variants that are broken on purpose are caught by the invariants."""

import asyncio
import itertools
from collections.abc import Callable
from typing import Any, cast

import pytest

from holdfast.core.delivery import DeliveryState
from holdfast.core.effects import ToolOutcome
from holdfast.core.events import DeliveryChanged, ToolFinished
from holdfast.ports import Accepted, Store
from tests.sim.people import Say
from tests.sim.promises import check
from tests.sim.world import Death, World


class _Lying:
    """A store that does everything but what it is made to lie about."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class AcknowledgesTooEarly(_Lying):
    """Says that a message is kept before it is."""

    async def accept(self, session_id: str, *, message_id: str, **named: Any) -> Accepted:
        asyncio.get_running_loop().create_task(self._store.accept(session_id, message_id=message_id, **named))
        return Accepted(message_id, session_id)


class RecordsNoIntent(_Lying):
    """Notes a delivery only once it was made."""

    async def record_delivery(self, session_id: str, change: DeliveryChanged, *, expect: DeliveryState, at: int) -> bool:
        if change.state == DeliveryState.SENDING:
            return True
        return await self._store.record_delivery(session_id, change, expect=DeliveryState.PENDING, at=at)


class ForgetsOpenCalls(_Lying):
    """Leaves calls of unknown outcome open, as if they could be run again."""

    async def append_turn(self, lease: Any, *, events: Any, **named: Any) -> int:
        kept = [event for event in events if not (isinstance(event, ToolFinished) and event.outcome is ToolOutcome.UNKNOWN)]
        return await self._store.append_turn(lease, events=kept, **named)


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
        ({"wrap": lambda store: cast(Store, RecordsNoIntent(store)), "reconciles": False}, "P4: .* without a label"),
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
