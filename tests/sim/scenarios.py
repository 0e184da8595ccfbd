"""Short stories that are told again and again, with the process dying at a different place each time."""

from collections.abc import Callable
from typing import NamedTuple

from holdfast.core.turns import Outcome
from tests.sim.people import Answer, Deed, Restart, Say, Stop
from tests.sim.promises import Evidence
from tests.sim.world import Death, World

COMPLETED, CANCELLED = Outcome.COMPLETED, Outcome.CANCELLED


class Story(NamedTuple):
    """`outcomes`: how each turn ends, in order, whatever dies in between; `lives`: how many it takes if nothing does."""

    name: str
    tell: Callable[[World, bool], object]
    outcomes: tuple[Outcome, ...]
    chats: bool = False
    reconciles: bool = True
    lives: int = 1

    def world(self, *deaths: Death | None) -> World:
        world = World(1, deaths=deaths, reconciles=self.reconciles)
        self.tell(world, self.chats)
        return world

    def check(self, found: Evidence) -> None:
        ended = tuple(turn.end.outcome if turn.end else None for turn in found.turns)
        assert ended == self.outcomes, f"P3: the turns ended as {ended}"


def _work(effect: str) -> str:
    return f"say:one|call:{effect}|say:two"


def _ann(*deeds: Deed) -> Callable[[World, bool], object]:
    return lambda world, chats: world.person("ann", *deeds, chats=chats)


# Told of a page and of a chat alike.
ANYWHERE = {
    "a turn with an unsafe tool": (_ann(Say(_work("unsafe"))), (COMPLETED,)),
    "a turn with an idempotent tool": (_ann(Say(_work("idempotent"))), (COMPLETED,)),
    "a turn with a pure tool": (_ann(Say(_work("pure"))), (COMPLETED,)),
    "a question answered by a message": (_ann(Say("say:one|ask:why?|say:two"), Say("because", once=("question.asked", 1))), (COMPLETED,)),
    "a stop in mid-text": (_ann(Say("say:one|hang"), Stop(once=("text", 1))), (CANCELLED,)),
    "a stop in mid-tool": (_ann(Say(_work("unsafe") + "|sleep:2"), Stop(once=("tool.started", 1))), (CANCELLED,)),
    "a queue of three": (_ann(Say("say:one"), Say("say:two|call:unsafe"), Say("say:three")), (COMPLETED,) * 3),
}
RESTARTED = (_ann(Say(_work("unsafe") + "|sleep:1|say:three"), Restart(once=("tool.started", 1))), (COMPLETED,))
PAGE = {
    "a question answered at its own address": (_ann(Say("ask:why?|call:unsafe|say:two"), Answer("because")), (COMPLETED,)),
    "the demo agent counts": (_ann(Say("count 9 0.05")), (COMPLETED,)),
}
# A platform that cannot be asked what arrived makes a difference where something is sent.
UNSURE = ("a turn with an unsafe tool", "a queue of three")

STORIES = (
    *(Story(f"page, {name}", tell, ends) for name, (tell, ends) in (ANYWHERE | PAGE).items()),
    *(Story(f"chat, {name}", tell, ends, chats=True) for name, (tell, ends) in ANYWHERE.items()),
    *(Story(f"unsure chat, {name}", *ANYWHERE[name], chats=True, reconciles=False) for name in UNSURE),
    *(Story(f"{where}, a restart in mid-turn", *RESTARTED, chats=where == "chat", lives=2) for where in ("page", "chat")),
)
