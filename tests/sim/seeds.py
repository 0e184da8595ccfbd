"""From a seed to a world: its people and their scripts, its weather and its deaths."""

import itertools
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec

from holdfast.core.limits import SpendingLimits
from holdfast.core.resets import Policy
from holdfast.gateway.settings import Settings
from tests.fakes.agents_sim import IN_STEPS
from tests.fakes.power import MODES
from tests.fakes.tools import GUARDED
from tests.sim.people import (
    Answer,
    Aside,
    Deed,
    Edit,
    Garble,
    Happens,
    Pause,
    Plan,
    Reset,
    Restart,
    Resume,
    ResumeAll,
    Say,
    Stop,
    Suspend,
    Unplan,
    Where,
)
from tests.sim.twins import HandOverWorld
from tests.sim.wire import Nature, Troubles, natures
from tests.sim.world import MAX_LIVES, SETTINGS, Death, Weather, World

KINDS = ("text", "tool.started", "tool.finished", "turn.ended", "turn.started", "question.asked", "model.responded", "turn.waiting")
TOOLS = ("unsafe", "idempotent", "pure")
COMMANDS = (
    "/stop",
    "/new",
    "/resume",
    "/resume 1",
    "/queue say:queued",
    "/steer say:steered",
    "/interrupt say:instead",
    "/status",
    "/sessions",
    "/help",
    "/nonsense",
    "/approve all",
    "/approve all always",
    "/deny",
)
UNKIND = ("", "busy", "cut", "no end", "too long", "no key")
HOUR_MS, DAY_MS = 3_600_000, 24 * 3_600_000
TEAM, ADMIN = "team", "admin"
# What a chat platform does with what is sent to it.
MOODS = (
    ("",),
    ("", "", "refused"),
    ("", "", "", "limited", "slowly"),
    ("", "", "", "", "", "limited account"),
    ("", "", "", "lost", "cut"),
    ("", "", "", "", "", "late", "cut"),
)


def world_of(seed: int) -> World:
    chance, kept, chats_of = (random.Random(f"{seed}|{name}") for name in ("world", "kept", "chats"))
    if chats_of.random() < 0.4:
        return _world_of_chats(seed, chats_of)
    keeps = kept.random() < 0.35
    world = World(
        seed,
        deaths=tuple(_deaths(chance)),
        reconciles=chance.random() < 0.5,
        weather=_with_outages(_weather(chance), seed),
        settings=_settings(chance),
        boot=_boots(random.Random(f"{seed}|boots")),
        keeps=keeps,
        **_unreadable(seed),
    )
    for number in range(chance.randint(1, 4)):
        chats = chance.random() < 0.5
        world.person(f"p{number}", *_deeds(chance, chats), chats=chats)
    plans = random.Random(f"{seed}|plans")
    if plans.random() < 0.3:
        world.person("planner", *_plans(plans))
    if keeps:
        chats = kept.random() < 0.4
        world.person("starter", *_starts(kept, chats), chats=chats)
    pauses = random.Random(f"{seed}|pauses")
    if pauses.random() < 0.2:
        breaks = [Pause(after_s=pauses.uniform(0, 3), for_s=pauses.choice((1.0, 5.0, 20.0))) for _ in range(pauses.randint(1, 3))]
        world.person("operator", *breaks)
    return world


def _world_of_chats(seed: int, chance: random.Random) -> World:
    """On one of the platforms that Holdfast speaks, in private chats, in a group and in threads of it."""
    nature = chance.choice(list(natures().values()))
    people = {f"p{number}": _where(chance) for number in range(chance.randint(1, 4))}
    hands_over = chance.random() < 0.25
    world = (partial(HandOverWorld, hands_over_at_s=chance.uniform(0, 8)) if hands_over else World)(
        seed,
        deaths=tuple(_deaths(chance)),
        weather=_with_outages(_chats_weather(chance), seed),
        settings=_settings(chance),
        boot=_boots(chance),
        nature=nature,
        troubles=_troubles(chance, [where.chat if where else name for name, where in people.items()]),
        restarts=True,
        **_unreadable(seed),
    )
    for name, where in people.items():
        world.person(name, *_said_in_chats(chance, nature, shared=where is not None), chats=True, where=where)
    if chance.random() < 0.3:
        world.server.operators.add(ADMIN)
        asks = [Say("/restart", after_s=chance.uniform(0, 5)) for _ in range(chance.randint(1, 2))]
        world.person(ADMIN, *asks, Say("say:hello"), chats=True, where=_where(chance))
    return world


def _chats_weather(chance: random.Random) -> Weather:
    """Most clocks are right: what has to be waited for is waited for longer where one is set back."""
    weather = _weather(chance)._replace(moods=chance.choice(MOODS), repeats=chance.choice((0.0, 0.05, 0.3)))
    return weather if chance.random() < 0.2 else weather._replace(jumps=())


def _where(chance: random.Random) -> Where | None:
    return chance.choice((None, None, Where(TEAM), Where(TEAM, "7"), Where(TEAM, "8")))


def _troubles(chance: random.Random, chats: list[str]) -> Troubles:
    def spell(*lasts: float) -> tuple[float, float]:
        begin = chance.uniform(0, 15)
        return begin, begin + chance.choice(lasts)

    gone = {chance.choice(chats): spell(3.0, 30.0, 300.0)} if chance.random() < 0.15 else {}
    return Troubles(gone=gone, revoked=(spell(1.0, 30.0, 100.0),) if chance.random() < 0.1 else ())


def _said_in_chats(chance: random.Random, nature: Nature, *, shared: bool) -> Iterator[Deed]:
    """As anywhere, and much that is shown while it is being written."""
    for deed in _deeds(chance, chats=True):
        kind = chance.random()
        if kind < 0.35:
            yield Say(_tale(chance, nature.capabilities.text_limit), after_s=chance.choice((0.0, chance.uniform(0, 3))))
        elif kind < 0.42:
            yield Garble(after_s=chance.uniform(0, 2))
        elif kind < 0.5 and shared:
            yield Aside("say:between us", after_s=chance.uniform(0, 2))
        elif kind < 0.54:
            yield Say("/restart")
        else:
            yield deed


def _tale(chance: random.Random, limit: int) -> str:
    """Something that is said slowly, or at length."""
    steps = []
    for number in range(chance.randint(1, 5)):
        length = chance.choice((20, 200, 200, limit // 6, int(1.2 * limit)))
        words = " ".join(f"{number}word{place}" for place in range(length // 7))
        steps.append(f"say:{words}" if chance.random() < 0.8 else f"say:\n\n```\n{words}\n```\n\n")
        steps.append(chance.choice(("sleep:0.7", "sleep:2", "sleep:4", "call:pure 3", "call:unsafe")))
    return "|".join(steps)


def _plans(chance: random.Random) -> Iterator[Deed]:
    """Work for later, and what people do in between."""
    for _ in range(chance.randint(1, 3)):
        yield Plan(
            chance.choice(("say:due", "say:due|call:unsafe|say:done", "call:idempotent|sleep:0.5|say:due", "fail")),
            after_s=chance.uniform(0, 1.5),
            in_s=chance.choice((0.05, 0.4, chance.uniform(0, 6), chance.uniform(0, 900))),
            missed=chance.choice(("run", "run", "skip")),
            again=chance.choice((0, 0, 1)),
        )
        if chance.random() < 0.4:
            yield chance.choice((Say("say:between"), Reset(again=1), Unplan(after_s=0.3), Restart(after_s=0.2), Suspend(after_s=0.5)))


def _deaths(chance: random.Random) -> Iterator[Death]:
    for _ in range(chance.choice((0, 1, 1, 2, 2, 3, 4))):
        mode = chance.choice(MODES)
        if chance.random() < 0.7:
            yield Death(point=chance.randint(1, chance.choice((20, 60, 150))), unsynced=mode)
        else:
            yield Death(at_s=chance.uniform(0, chance.choice((0.3, 3.0, 30.0))), unsynced=mode)


def _boots(chance: random.Random) -> Callable[[int], str]:
    """Now and then the whole machine was started again between two lives."""
    boots = list(itertools.accumulate(chance.random() < 0.15 for _ in range(MAX_LIVES)))
    return lambda life: f"boot {boots[life]}"


def _settings(chance: random.Random) -> Settings:
    """Most operators change nothing."""
    unusual = {
        "auto_resume": chance.random() < 0.5,
        "resume_window_s": chance.choice((0.0, -1.0, 20.0)),
        "crash_policy": chance.choice(("suspend", "resume")),
        "resets": {"default": Policy(idle_min=1, daily_hour=chance.choice((None, 4)))},
        "resumes_at_once": 1,
        "limits": SpendingLimits(sender_turns=chance.choice((1, 2, 4))),
    }
    name = chance.choice((*unusual, *("" for _ in range(3 * len(unusual)))))
    return msgspec.structs.replace(SETTINGS, **{name: unusual[name]}) if name else SETTINGS


def _weather(chance: random.Random) -> Weather:
    far = chance.choice((2 * HOUR_MS, 2 * HOUR_MS, 3 * DAY_MS))
    jumps = tuple((chance.uniform(0, 20), chance.randint(-far, far)) for _ in range(chance.choice((0, 0, 1, 3))))
    return Weather(
        drift=chance.choice((0.0, -0.2, 0.5)),
        jumps=jumps,
        moods=chance.choice((("",), ("",), ("", "", "refused"), ("", "", "", "lost", "cut"), ("", "", "", "", "late"))),
        models=chance.choice((("",), ("", "", "busy", "closed", "cut"), ("", "later", "thoughts", "slow", "length", "no end"), UNKIND)),
        repeats=chance.choice((0.0, 0.0, 0.05)),
        slow=chance.choice((0.0, 0.0, 0.1, 0.5)),
        flaky=chance.choice((0.0, 0.0, 0.0, 0.02, 0.1)),
        full=chance.choice(((0.0, 0.0), (0.0, 0.0), (0.0, 0.0), (0.5, 6.0))),
        noise=chance.choice((0, 2, 10)),
        downtimes=chance.choice(((0.0, 0.5, 5.0), (0.0, 0.5, 5.0), (0.0, 700.0, 5000.0))),
        summaries=chance.choice((0.0, 0.0, 0.7)),
    )


def _away(chance: random.Random) -> tuple[tuple[float, float], ...]:
    """In some worlds another program has the database now and then."""
    begins = (chance.uniform(0, chance.choice((2.0, 10.0))) for _ in range(chance.choice((0, 0, 0, 1, 2))))
    return tuple((begin, begin + chance.choice((0.5, 3.0, 12.0))) for begin in begins)


def _with_outages(weather: Weather, seed: int) -> Weather:
    """Also in the middle of what a life writes, where turns run."""
    chance, among = random.Random(f"{seed}|away"), random.Random(f"{seed}|among")
    begins = sorted(among.sample(range(3, 60), among.choice((0, 0, 1, 2))))
    return weather._replace(away=_away(chance), away_after=tuple((commits, among.choice((2.0, 4.0, 12.0))) for commits in begins))


def _unreadable(seed: int) -> dict[str, Any]:
    """In some worlds nobody can read for a while what the process before has spooled."""
    chance = random.Random(f"{seed}|unreadable")
    if chance.random() < 0.7:
        return {}
    after_s = chance.choice((1.0, 5.0, 20.0))
    return {"readable": lambda life: life.number == 0 or life.lives_s() > after_s, "unreadable": True}


def _deeds(chance: random.Random, chats: bool) -> Iterator[Deed]:
    for _ in range(chance.randint(1, 5)):
        after_s = chance.choice((0.0, 0.0, chance.uniform(0, 0.5), chance.uniform(0, 3)))
        once = (chance.choice(KINDS), chance.randint(1, 2)) if chance.random() < 0.3 else None
        kind = chance.random()
        if kind < 0.57:
            client_id = chance.random() < 0.9
            again = chance.choice((0, 0, 0, 2)) if client_id else 0
            mode = chance.choice(("steer", "interrupt", "reject")) if not chats and chance.random() < 0.3 else "queue"
            attach = chance.choice((None, None, None, "x", "y")) if not chats else None
            script = _script(chance, chats)
            yield Say(script, after_s=after_s, once=once, client_id=client_id, again=again, mode=mode, attach=attach)
            if not chats and chance.random() < 0.15:
                yield Edit(after_s=chance.choice((0.0, 0.1, 1.0)), again=chance.choice((0, 0, 1)))
        elif kind < 0.60:
            yield Happens(_script(chance, chats), after_s=after_s, once=once, again=chance.choice((0, 1)))
        elif kind < 0.68:
            yield Say(chance.choice(COMMANDS), after_s=after_s, once=once, again=chance.choice((0, 0, 1)))
        elif kind < 0.76:
            yield Stop(after_s=after_s, once=once)
        elif kind < 0.83:
            seen, which = ("question.asked", chance.choice((1, 1, 2))), chance.choice((-1, -1, 0, 1))
            verdict = chance.choice((None, None, "approve", "approve", "deny"))
            yield Answer("because", after_s=after_s, once=seen, which=which, verdict=verdict, always=chance.random() < 0.2)
        elif kind < 0.86:
            yield Restart(after_s=after_s, once=once)
        elif kind < 0.90:
            yield Reset(after_s=after_s, once=once, again=chance.choice((0, 1)))
        elif kind < 0.95:
            yield Resume(after_s=after_s, once=once, number=chance.choice((1, 1, 2)), again=chance.choice((0, 1)))
        else:
            yield chance.choice((Suspend, ResumeAll))(after_s=after_s, once=once)


def _starts(chance: random.Random, chats: bool) -> Iterator[Deed]:
    """Processes in the background, and what may come between their starts and their ends."""
    for _ in range(chance.randint(1, 4)):
        after_s = chance.choice((0.0, chance.uniform(0, 0.5), chance.uniform(0, 3)))
        once = (chance.choice(KINDS), chance.randint(1, 2)) if chance.random() < 0.3 else None
        kind = chance.random()
        if kind < 0.6:
            yield Say(_in_background(chance), after_s=after_s, once=once)
        elif kind < 0.7:
            yield Say(_script(chance, chats), after_s=after_s, once=once)
        elif kind < 0.78:
            yield Stop(after_s=after_s, once=once)
        elif kind < 0.9:
            yield Reset(after_s=after_s, once=once, again=chance.choice((0, 1)))
        else:
            yield chance.choice((Suspend, Resume))(after_s=after_s, once=once)


def _in_background(chance: random.Random) -> str:
    lasts = chance.choice((0.1, 0.5, 2.0, 6.0))
    prints = "".join(f"; at {chance.uniform(0, lasts):.2f} print watched {number}" for number in range(chance.randint(0, 4)))
    start = f"{chance.choice(('start', 'start', 'quiet'))}:lasts {lasts}; exit {chance.randint(0, 3)}{prints}"
    after = chance.choice(("", "", "|wait", "|kill", "|read", "|sleep:0.6|read", "|sleep:1|say:x", "|hang", "|fail", "|crash"))
    return f"{chance.choice(('', 'say:hello|'))}{start}{after}"


def _script(chance: random.Random, chats: bool) -> str:
    if not chats and chance.random() < 0.2:
        return f"count {chance.randint(1, 30)} {chance.choice((0, 0.01, 0.1))}"
    if chance.random() < 0.3:
        return _steps(chance)
    steps = []
    for _ in range(chance.randint(1, 6)):
        step = chance.choice(("say", "say", "say", "call", "call", "sleep", "ask", "rare"))
        if step == "say":
            steps.append(f"say:{chance.choice(('hello', 'ä ö', 'well', 'x' * 300))}")
        elif step == "call":
            steps.append(f"call:{chance.choice(TOOLS)}")
        elif step == "sleep":
            steps.append(f"sleep:{chance.choice((0.05, 0.5, 1.5))}")
        elif step == "ask":
            steps.append("ask:why?")
        else:
            steps.append(chance.choice(("fail", "hang", "say:rare", "crash", "call:pure 40")))
    return "|".join(steps)


def _steps(chance: random.Random) -> str:
    """For the agents that work in steps: calls in parallel and in order, several questions and approvals."""
    steps = []
    for _ in range(chance.randint(0, 3)):
        calls = [chance.choice((*TOOLS, "pure", "unsafe", "ask", GUARDED)) for _ in range(chance.randint(0, 4))]
        steps.append(" > ".join((chance.choice(("go", "well", "ä ö")), *(f"{tool} {number}" for number, tool in enumerate(calls)))))
    return f"{chance.choice(IN_STEPS)} " + " | ".join((*steps, "done"))
