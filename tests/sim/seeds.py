"""From a seed to a world: its people and their scripts, its weather and its deaths."""

import random
from collections.abc import Iterator

from tests.fakes.power import MODES
from tests.sim.people import Answer, Deed, Restart, Say, Stop
from tests.sim.world import Death, Weather, World

KINDS = ("text", "tool.started", "tool.finished", "turn.ended", "turn.started", "question.asked")
TOOLS = ("unsafe", "idempotent", "pure")


def world_of(seed: int) -> World:
    chance = random.Random(f"{seed}|world")
    world = World(seed, deaths=tuple(_deaths(chance)), reconciles=chance.random() < 0.5, weather=_weather(chance))
    for number in range(chance.randint(1, 4)):
        chats = chance.random() < 0.5
        world.person(f"p{number}", *_deeds(chance, chats), chats=chats)
    return world


def _deaths(chance: random.Random) -> Iterator[Death]:
    for _ in range(chance.choice((0, 1, 1, 2, 2, 3, 4))):
        mode = chance.choice(MODES)
        if chance.random() < 0.7:
            yield Death(point=chance.randint(1, chance.choice((20, 60, 150))), unsynced=mode)
        else:
            yield Death(at_s=chance.uniform(0, chance.choice((0.3, 3.0, 30.0))), unsynced=mode)


def _weather(chance: random.Random) -> Weather:
    hour = 3_600_000
    jumps = tuple((chance.uniform(0, 20), chance.randint(-2 * hour, 2 * hour)) for _ in range(chance.choice((0, 0, 1, 3))))
    return Weather(
        drift=chance.choice((0.0, -0.2, 0.5)),
        jumps=jumps,
        moods=chance.choice((("",), ("",), ("", "", "refused"), ("", "", "", "lost", "cut"), ("", "", "", "", "late"))),
        repeats=chance.choice((0.0, 0.0, 0.05)),
        slow=chance.choice((0.0, 0.0, 0.1, 0.5)),
        flaky=chance.choice((0.0, 0.0, 0.0, 0.02, 0.1)),
        full=chance.choice(((0.0, 0.0), (0.0, 0.0), (0.0, 0.0), (0.5, 6.0))),
        noise=chance.choice((0, 2, 10)),
    )


def _deeds(chance: random.Random, chats: bool) -> Iterator[Deed]:
    for _ in range(chance.randint(1, 5)):
        after_s = chance.choice((0.0, 0.0, chance.uniform(0, 0.5), chance.uniform(0, 3)))
        once = (chance.choice(KINDS), chance.randint(1, 2)) if chance.random() < 0.3 else None
        kind = chance.random()
        if kind < 0.70:
            client_id = chance.random() < 0.9
            again = chance.choice((0, 0, 0, 2)) if client_id else 0
            yield Say(_script(chance, chats), after_s=after_s, once=once, client_id=client_id, again=again)
        elif kind < 0.85:
            yield Stop(after_s=after_s, once=once)
        elif kind < 0.95:
            yield Answer("because", after_s=after_s)
        else:
            yield Restart(after_s=after_s, once=once)


def _script(chance: random.Random, chats: bool) -> str:
    if not chats and chance.random() < 0.2:
        return f"count {chance.randint(1, 30)} {chance.choice((0, 0.01, 0.1))}"
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
            steps.append(chance.choice(("fail", "hang", "say:rare")))
    return "|".join(steps)
