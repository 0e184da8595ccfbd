"""Short stories that are told again and again, with the process dying at a different place each time."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from holdfast.core.schedules import Policy
from holdfast.core.turns import Outcome
from tests.sim.evidence import Evidence
from tests.sim.people import Answer, Deed, Delete, EndProcesses, Happens, Plan, Reset, Restart, Resume, Say, Stop, Suspend, Unplan
from tests.sim.world import SETTINGS, Death, Weather, World

COMPLETED, CANCELLED, SET_ASIDE = Outcome.COMPLETED, Outcome.CANCELLED, Outcome.SET_ASIDE
HOUR_MS, DAY_MS = 3_600_000, 24 * 3_600_000


class Story(NamedTuple):
    """`outcomes`: how each turn ends, in order, whatever dies in between, or all the ways they may; `lives`: how many it takes if nothing
    does. `stride`: it dies at every so manieth point. `world_is`: what is unusual in its world.
    """

    name: str
    tell: Callable[[World, bool], object]
    outcomes: tuple[Outcome, ...] | frozenset[tuple[Outcome, ...]]
    chats: bool = False
    reconciles: bool = True
    lives: int = 1
    stride: int = 1
    world_is: Mapping[str, Any] = MappingProxyType({})

    def world(self, *deaths: Death | None) -> World:
        world = World(1, deaths=deaths, reconciles=self.reconciles, **self.world_is)
        self.tell(world, self.chats)
        return world

    def check(self, found: Evidence) -> None:
        ended = tuple(turn.end.outcome if turn.end else None for turn in found.turns)
        allowed = self.outcomes if isinstance(self.outcomes, frozenset) else {self.outcomes}
        assert ended in allowed, f"P3: the turns ended as {ended}"


def _work(effect: str) -> str:
    return f"say:one|call:{effect}|say:two"


def _ann(*deeds: Deed) -> Callable[[World, bool], object]:
    return lambda world, chats: world.person("ann", *deeds, chats=chats)


def _ways(*ends: tuple[Outcome, ...]) -> frozenset[tuple[Outcome, ...]]:
    return frozenset(ends)


Tale = tuple[Callable[[World, bool], object], tuple[Outcome, ...] | frozenset[tuple[Outcome, ...]]]

# Told of a page and of a chat alike.
ANYWHERE: dict[str, Tale] = {
    "a turn with an unsafe tool": (_ann(Say(_work("unsafe"))), (COMPLETED,)),
    "a turn with an idempotent tool": (_ann(Say(_work("idempotent"))), (COMPLETED,)),
    "a turn with a pure tool": (_ann(Say(_work("pure"))), (COMPLETED,)),
    "a question answered by a message": (_ann(Say("say:one|ask:why?|say:two"), Say("because", once=("question.asked", 1))), (COMPLETED,)),
    "a stop in mid-text": (_ann(Say("say:one|hang"), Stop(once=("text", 1))), (CANCELLED,)),
    "a stop in mid-tool": (_ann(Say(_work("unsafe") + "|sleep:2"), Stop(once=("tool.started", 1))), (CANCELLED,)),
    "a queue of three": (_ann(Say("say:one"), Say("say:two|call:unsafe"), Say("say:three")), (COMPLETED,) * 3),
    "a stop that is typed": (_ann(Say("say:one|hang"), Say("/stop", once=("text", 1)), Say("/status")), (CANCELLED,)),
}
# In a chat a message answers a question once the question has arrived there (A27).
ASKED_IN_CHAT: dict[str, Tale] = {
    "a question answered by a message": (
        _ann(Say("say:one|ask:why?|say:two"), Say("because", once=("delivery.changed sent", 1))),
        (COMPLETED,),
    ),
}
# An agent that works in steps: calls in parallel, several questions, answers before it waits, and words that steer it.
STEPS: dict[str, Tale] = {
    "steps with calls in parallel": (
        _ann(Say("steps: look > pure a > pure b > unsafe c | act > idempotent d > unsafe e | done")),
        (COMPLETED,),
    ),
    "two questions in one step": (
        _ann(
            Say("steps: go > unsafe a > ask colour > ask size > unsafe b > pure c | done"),
            Answer("blue", which=0),
            Answer("big", which=1, once=("question.asked", 2)),
        ),
        (COMPLETED,),
    ),
    "two questions answered by messages": (
        _ann(
            Say("steps: go > ask colour > ask size | done"),
            Say("blue", once=("turn.waiting", 1)),
            Say("big", once=("question.answered", 1)),
        ),
        _ways((COMPLETED,), (COMPLETED, COMPLETED)),
    ),
    "two approvals in one step": (
        _ann(
            Say("steps: go > unsafe a > guarded b > unsafe c > guarded d > pure e | done"),
            Answer("", which=0, verdict="approve"),
            Answer("not now", which=1, once=("question.asked", 2), verdict="deny"),
        ),
        (COMPLETED,),
    ),
    "a stop while a step's calls run": (
        _ann(Say("steps: go > pure a > unsafe b > unsafe c | done"), Stop(once=("tool.started", 1))),
        _ways((CANCELLED,), (COMPLETED,)),
    ),
}
STEPS_IN_CHAT: dict[str, Tale] = {
    "two questions answered by messages": (
        _ann(
            Say("steps: go > ask colour > ask size | done"),
            Say("blue", once=("delivery.changed sent", 2)),
            Say("big", once=("question.answered", 1)),
        ),
        _ways((COMPLETED,), (COMPLETED, COMPLETED)),
    ),
}
# A model that is asked twice now and then, and calls that a person has to approve.
FLAKY = {"weather": Weather(models=("", "", "closed", "cut", "thoughts"))}
MODELS: dict[str, Tale] = {
    "a model's calls in parallel": (
        _ann(Say("model: look > pure a > pure b > unsafe c | act > idempotent d > unsafe e | done")),
        (COMPLETED,),
    ),
    "two approvals and a question of a model": (
        _ann(
            Say("model: go > guarded a > pure b > ask colour > guarded c | more > guarded d | done"),
            Answer("blue", which=1, once=("question.asked", 3)),
            Answer("not this", which=2, verdict="deny"),
            Answer("", which=0, verdict="approve", always=True),
        ),
        (COMPLETED,),
    ),
}
APPROVED_IN_CHAT: Tale = (
    _ann(
        Say("model: go > unsafe a > guarded b > guarded c | done"),
        Say("/approve all", once=("delivery.changed sent", 2)),
    ),
    (COMPLETED,),
)
STEERED: dict[str, Tale] = {
    "something happens that starts a turn": (
        _ann(Say("say:one"), Happens("say:two|call:unsafe", once=("turn.ended", 1), again=1), Say("say:three")),
        (COMPLETED,) * 3,
    ),
    "words that steer": (
        _ann(Say("steps: go > unsafe a | more > unsafe b | done"), Say("this way", once=("tool.started", 1), mode="steer")),
        _ways((COMPLETED,), (COMPLETED, COMPLETED)),
    ),
    "words that interrupt": (
        _ann(
            Say("steps: go > unsafe a | more > unsafe b | done"),
            Say("say:waits", once=("tool.started", 1)),
            Say("say:instead", once=("tool.finished", 1), mode="interrupt"),
        ),
        _ways((CANCELLED, COMPLETED, COMPLETED), (COMPLETED, CANCELLED, COMPLETED), (COMPLETED, COMPLETED, COMPLETED)),
    ),
    "the demo agent counts and is steered": (
        _ann(Say("count 12 0.05"), Say("say:faster", once=("text", 1), mode="steer")),
        _ways((COMPLETED,), (COMPLETED, COMPLETED)),
    ),
}
# What starts at a time: alone, behind a turn, again and again, taken back in that moment, and where its conversation was left.
PLANNED: dict[str, Tale] = {
    "work is planned and its time comes": (
        _ann(Say("say:one"), Plan("say:two|call:unsafe|say:three", in_s=0.4, again=1), Say("say:four", once=("turn.ended", 2))),
        (COMPLETED,) * 3,
    ),
    "the time of planned work comes while a turn runs": (
        _ann(Plan("say:one|call:idempotent", in_s=0.3), Say("say:two|sleep:0.5|call:unsafe")),
        (COMPLETED,) * 2,
    ),
    "work that comes every second until it is taken back": (
        _ann(Plan("say:tick|sleep:0.7", every_s=1), Unplan(after_s=2.4)),
        _ways(*((COMPLETED,) * count for count in range(6))),
    ),
    "planned work is taken back in that moment": (
        _ann(Say("say:one"), Plan("say:two", in_s=0.2), Unplan(after_s=0.2)),
        _ways((COMPLETED,), (COMPLETED,) * 2),
    ),
    "planned work goes on in a new conversation": (
        _ann(Say("say:one"), Plan("say:two|call:unsafe", in_s=0.5), Reset(once=("turn.ended", 1), again=1)),
        _ways((COMPLETED,) * 2, (COMPLETED, CANCELLED), (CANCELLED, COMPLETED)),
    ),
}
# Processes in the background that end, and print what is watched for, at every moment of a turn's life and of recovery. Whether a process
# ran at all, and whether its lines came before or after a turn, depends on where the gateway died.
UP_TO_THREE = _ways(*((COMPLETED,) * count for count in (1, 2, 3)))
KEPT: dict[str, Tale] = {
    "a process ends after its turn": (_ann(Say("say:one|start:lasts 1; exit 3|say:two")), UP_TO_THREE),
    "a process ends while its turn runs": (_ann(Say("start:lasts 0.6; exit 3|sleep:1|call:unsafe")), UP_TO_THREE),
    "a process is waited for": (_ann(Say("start:lasts 1; exit 3|say:two|wait|say:three")), (COMPLETED,)),
    "a process is killed": (_ann(Say("start:at 0.1 print x|sleep:0.5|kill|say:two")), (COMPLETED,)),
    "the end of a process is read": (_ann(Say("start:lasts 0.5|sleep:0.8|read|say:two")), (COMPLETED,)),
    "lines that are watched for": (_ann(Say("quiet:lasts 3; at 1 print watched; at 2 print watched|say:two")), UP_TO_THREE),
    "watched lines and an end while a count takes them": (
        _ann(Say("start:lasts 2; at 0.5 print watched"), Say("count 12 0.2")),
        _ways(*((COMPLETED,) * count for count in (2, 3, 4))),
    ),
    "a process of an agent that works in steps": (
        _ann(Say("steps: go > start lasts 0.4; exit 2 > unsafe a | more > pure b | done")),
        UP_TO_THREE,
    ),
    "a message comes before the end of a process": (
        _ann(Say("start:lasts 1; at 0.6 print watched"), Say("sleep:0.7|say:two", once=("turn.ended", 1))),
        _ways(*((COMPLETED,) * count for count in (2, 3, 4))),
    ),
    "a conversation is left before the end of its process": (
        _ann(Say("start:lasts 1; at 0.5 print watched"), Reset(once=("turn.ended", 1), again=1), Say("say:two")),
        _ways(*((COMPLETED,) * count for count in (2, 3)), (COMPLETED, CANCELLED, COMPLETED), (CANCELLED, COMPLETED)),
    ),
    "a conversation is deleted while its process runs": (
        _ann(Say("start:lasts 9; at 0.5 print watched"), Delete(once=("turn.ended", 1)), Delete(after_s=0.5, undo=True), Say("say:two")),
        # A death may let the watched line come before the deletion.
        _ways((COMPLETED,) * 2, (COMPLETED,) * 3, (COMPLETED, CANCELLED, COMPLETED), (CANCELLED, COMPLETED)),
    ),
    "a person ends a process": (
        _ann(Say("start:lasts 9; at 0.1 print x|say:two"), EndProcesses(once=("turn.ended", 1))),
        UP_TO_THREE,
    ),
    "a stop while a process is started": (
        _ann(Say("start:lasts 1|hang"), Stop(once=("tool.started", 1))),
        _ways((CANCELLED,), (CANCELLED, COMPLETED)),
    ),
}
IN_CHATS = ("a process ends after its turn", "a conversation is left before the end of its process")
REMINDED: Tale = (_ann(Say("say:one"), Say("/remind in 1 second say:two|call:unsafe"), Say("say:three")), (COMPLETED,) * 3)
OFTEN = {"settings": msgspec.structs.replace(SETTINGS, schedules=Policy(least_s=1.0))}
RESTARTED: Tale = (_ann(Say(_work("unsafe") + "|sleep:1|say:three"), Restart(once=("tool.started", 1))), (COMPLETED,))
PAGE: dict[str, Tale] = {
    "a question answered at its own address": (_ann(Say("ask:why?|call:unsafe|say:two"), Answer("because")), (COMPLETED,)),
    "the demo agent counts": (_ann(Say("count 9 0.05")), (COMPLETED,)),
    "a message with a file, and the same file again": (
        _ann(Say("say:one", attach="x", again=1), Say("say:two", attach="x")),
        (COMPLETED,) * 2,
    ),
    # What waits when a new conversation begins is refused, or was already on its way.
    "a reset while a turn runs and a message waits": (
        _ann(Say("say:one|hang"), Say("say:two"), Reset(once=("text", 1), again=1), Say("say:three")),
        _ways((CANCELLED, COMPLETED)),
    ),
    "a deletion while a turn runs and a message waits, and back again": (
        _ann(Say("say:one|hang"), Say("say:two"), Delete(once=("text", 1)), Delete(after_s=0.5, undo=True), Say("say:three")),
        _ways((CANCELLED, COMPLETED)),
    ),
    "a suspension, and back again": (
        _ann(Say("say:one|sleep:1|say:two"), Suspend(once=("text", 1)), Resume(after_s=0.3, again=1)),
        _ways((COMPLETED,)),
    ),
}
CHAT: dict[str, Tale] = {
    "a new conversation is typed before the turn starts": (
        _ann(Say("say:one|sleep:1"), Say("say:two"), Say("/new"), Say("say:three")),
        _ways((CANCELLED, COMPLETED), (COMPLETED, CANCELLED, COMPLETED), (COMPLETED, COMPLETED, COMPLETED)),
    ),
    "an older conversation is resumed while a turn runs": (
        _ann(
            Say("say:one"), Say("/new", once=("turn.ended", 1)), Say("say:two|hang"), Say("/resume 1", once=("text", 2)), Say("say:three")
        ),
        _ways((COMPLETED, COMPLETED, CANCELLED), (CANCELLED, COMPLETED, CANCELLED)),
    ),
}
# A platform that cannot be asked what arrived makes a difference where something is sent.
UNSURE = ("a turn with an unsafe tool", "a queue of three")

SHORT_WINDOW = msgspec.structs.replace(SETTINGS, turn_idle_timeout_s=1000.0, resume_window_s=30.0)
LONG_TOOL = Story(
    "page, a tool that runs for longer than the freshness window",
    _ann(Say("say:one|call:idempotent 100|say:two")),
    (COMPLETED,),
    stride=7,
    world_is={"settings": SHORT_WINDOW},
)


def _step(jump_ms: int) -> Mapping[str, Any]:
    """The wall clock steps while the turn runs, or while the gateway is down."""
    return {"weather": Weather(jumps=((0.2, jump_ms),))}


STORIES = (
    *(Story(f"page, {name}", tell, ends) for name, (tell, ends) in (ANYWHERE | PAGE).items()),
    *(Story(f"chat, {name}", tell, ends, chats=True) for name, (tell, ends) in (ANYWHERE | ASKED_IN_CHAT).items()),
    *(Story(f"page, {name}", tell, ends) for name, (tell, ends) in (STEPS | STEERED).items()),
    *(Story(f"chat, {name}", tell, ends, chats=True, stride=3) for name, (tell, ends) in (STEPS | STEPS_IN_CHAT).items()),
    *(Story(f"page, {name}", tell, ends, stride=3, world_is=FLAKY) for name, (tell, ends) in MODELS.items()),
    Story("chat, two calls of a model are approved", *APPROVED_IN_CHAT, chats=True, stride=5, world_is=FLAKY),
    *(Story(f"chat, {name}", tell, ends, chats=True, stride=3) for name, (tell, ends) in CHAT.items()),
    *(Story(f"unsure chat, {name}", *ANYWHERE[name], chats=True, reconciles=False) for name in UNSURE),
    *(Story(f"page, {name}", tell, ends, world_is=OFTEN) for name, (tell, ends) in PLANNED.items()),
    Story("chat, a reminder", *REMINDED, chats=True),
    # A title comes two seconds after the first answer, and somebody still reads then.
    Story("page, a title", _ann(Say("say:one"), Say("say:two", after_s=4.0)), (COMPLETED,) * 2, stride=2, world_is={"titles": True}),
    *(Story(f"page, {name}", tell, ends, world_is={"keeps": True}) for name, (tell, ends) in KEPT.items()),
    *(Story(f"chat, {name}", *KEPT[name], chats=True, world_is={"keeps": True}) for name in IN_CHATS),
    # The machine is started again with the second life: what ran is lost.
    Story(
        "page, a process is lost with its machine",
        _ann(Say("say:one|start:lasts 3; exit 3|say:two")),
        UP_TO_THREE,
        stride=5,
        world_is={"keeps": True, "boot": lambda life: f"boot {min(life, 1)}"},
    ),
    *(
        Story(
            f"page, the clock steps by {name} before planned work is due",
            _ann(Say("say:one"), Plan("say:two|call:unsafe", in_s=0.6)),
            _ways((COMPLETED,), (COMPLETED,) * 2, (COMPLETED, SET_ASIDE), (SET_ASIDE,), (SET_ASIDE, COMPLETED)),
            stride=3,
            world_is=_step(by),
        )
        for name, by in (("two hours forward", 2 * HOUR_MS), ("two hours back", -2 * HOUR_MS))
    ),
    *(Story(f"{where}, a restart in mid-turn", *RESTARTED, chats=where == "chat", lives=2) for where in ("page", "chat")),
    LONG_TOOL,
    # Whether it is resumed or set aside depends on whether the clock stepped between its last sign of life and its recovery.
    *(
        Story(
            f"chat, the clock steps by {name}", _ann(Say("say:one|sleep:0.3|call:unsafe")), _ways(*ends), True, stride=2, world_is=_step(by)
        )
        for name, by, ends in (
            ("two hours forward", 2 * HOUR_MS, ((COMPLETED,), (SET_ASIDE,))),
            ("three days forward", 3 * DAY_MS, ((COMPLETED,), (SET_ASIDE,))),
            ("two hours back", -2 * HOUR_MS, ((COMPLETED,), (SET_ASIDE,))),
        )
    ),
)
