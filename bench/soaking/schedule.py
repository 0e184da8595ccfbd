"""What a soak does and when, from its seed alone: the same seed and the same sizes give the same acts and the same messages."""

import random
from collections.abc import Iterator
from enum import StrEnum

import msgspec

from holdfast.agents.demo import HINT

PACE_S = 0.25
LONG_S = 60.0


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """First `calm_s` seconds with hand-overs alone, then the rest with kills as well. Turns last from one second to `turn_s`. Another
    program holds the database for `lock_s`, early on and then every `lock_every_s`.
    """

    seconds: float
    sessions: int
    calm_s: float
    hand_over_every_s: float
    kill_every_s: float
    turn_s: float
    lock_s: float
    lock_every_s: float = 200.0


def sizes(seconds: float, sessions: int) -> Sizes:
    long = seconds >= LONG_S
    calm_s = min(60.0, 0.4 * seconds)
    return Sizes(
        seconds=seconds,
        sessions=sessions,
        calm_s=calm_s,
        hand_over_every_s=5.0 if long else 2.5,
        kill_every_s=20.0 if long else (seconds - calm_s) / 3,
        turn_s=30.0 if long else 5.0,
        lock_s=20.0 if long else 2.5,
    )


class Target(StrEnum):
    """Who is killed. MIDWAY: the serving process while its successor starts. SUCCESSOR: the one that starts."""

    SERVING = "serving"
    RETIRING = "retiring"
    BOTH = "serving and retiring"
    MIDWAY = "serving, in mid hand-over"
    SUCCESSOR = "successor, in mid hand-over"

    @property
    def needs_retiring(self) -> bool:
        return self in (Target.RETIRING, Target.BOTH)

    @property
    def in_mid_hand_over(self) -> bool:
        return self in (Target.MIDWAY, Target.SUCCESSOR)


class Act(msgspec.Struct, frozen=True):
    """A hand-over, or, with a target, a kill; `midway_s` after the hand-over began where it is to hit one. With `lock_s` another program
    holds the database for so long.
    """

    at_s: float
    target: Target | None = None
    midway_s: float = 0.0
    lock_s: float = 0.0

    def __str__(self) -> str:
        if self.lock_s:
            return f"{self.at_s:6.1f} s  the database is locked for {self.lock_s:g} s"
        if self.target is None:
            return f"{self.at_s:6.1f} s  hand-over"
        midway = f", {self.midway_s:.2f} s after it began" if self.target.in_mid_hand_over else ""
        return f"{self.at_s:6.1f} s  SIGKILL to {self.target}{midway}"


def plan(size: Sizes, seed: int) -> list[Act]:
    """In the order they are due. Each of the first three kinds of kill comes before any comes again. Nothing else happens to the gateway
    while the database is locked.
    """
    chance = random.Random(f"acts {seed}")
    acts = [Act(round(at, 1)) for at in _multiples(size.hand_over_every_s, size.seconds)]
    targets = _targets(chance)
    for at in _multiples(size.kill_every_s, size.seconds - size.calm_s):
        # A little before or after a hand-over, or in the middle of one.
        shift = chance.uniform(-0.1, 0.1) * size.hand_over_every_s
        acts.append(Act(round(size.calm_s + at + shift, 1), next(targets), round(chance.uniform(0.02, 0.7), 2)))
    begins = 0.1 * size.calm_s
    locks = [
        Act(round(begins + at, 1), lock_s=size.lock_s) for at in (0.0, *_multiples(size.lock_every_s, size.seconds - begins - size.lock_s))
    ]
    free = [act for act in acts if not any(lock.at_s <= act.at_s < lock.at_s + lock.lock_s for lock in locks)]
    return sorted([*free, *locks], key=lambda act: (act.at_s, act.target or ""))


def _multiples(step: float, until: float) -> Iterator[float]:
    number = 1
    while number * step <= until + 0.01:
        yield number * step
        number += 1


def _targets(chance: random.Random) -> Iterator[Target]:
    while True:
        for some in ([Target.SERVING, Target.RETIRING, Target.BOTH], [Target.MIDWAY, Target.SUCCESSOR]):
            chance.shuffle(some)
            yield from some


class Saying(msgspec.Struct, frozen=True, kw_only=True):
    """One message. `answer` is what a turn that completes must say; `line` what its command writes down, once. `twice`: it is sent again
    after it was acknowledged.
    """

    client_id: str
    text: str
    answer: str | None = None
    line: str | None = None
    pause_s: float = 0.0
    twice: bool = False


def sayings(size: Sizes, seed: int, number: int, lines: str) -> Iterator[Saying]:
    """The messages of one session. Short turns are more common than long ones."""
    chance = random.Random(f"messages {seed} {number}")
    count = 0
    while True:
        count += 1
        name = f"c{number}-{count}"
        turn_s = size.turn_s ** chance.random()
        pause_s, twice = chance.uniform(0.0, 2.0), chance.random() < 0.1
        kind = chance.random()
        if kind < 0.6:
            last = int(turn_s / PACE_S) + 1
            text, answer, line = f"count {last} {PACE_S}", " ".join(str(each) for each in range(1, last + 1)), None
        elif kind < 0.9:
            text, answer, line = f"run echo {name} >> {lines}; sleep {turn_s:.1f}; echo {name}", None, name
        else:
            text, answer, line = f"hello {name}", f"You said: hello {name}\n\n{HINT}", None
        yield Saying(client_id=name, text=text, answer=answer, line=line, pause_s=pause_s, twice=twice)
