"""One story, told again and again: people write to a real gateway in a process of its own, which dies at one step of it, each time one step
later, until the story is over before that. The next process makes it good, and people count what they see. A step is a commit of the
database, or a request to the platform's server; a death falls right before it, or right after it. The process that makes it good dies as
well, every other time, at a step of its own.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.core.capabilities import Capabilities
from holdfast.core.delivery import REPEAT_LABEL
from tests.fakes.gate import Gate
from tests.fakes.hooks import Hook
from tests.platforms.mortal import Mortal, way
from tests.platforms.rigs import ANN, BOB, Rig, until

AT_ONCE = 2
MOST_STEPS = 200
# A recovery has about so many steps.
RECOVERY = 19
GROWING, GROWN = "say:one|sleep:0.2|say: two|sleep:0.15|say: three", "one two three"


class Far(NamedTuple):
    """The far side of a wire. `hook`: how the platform reaches us, if it does. `begins`: as a `Way` says."""

    rig: Rig
    gate: Gate
    hook: Hook | None = None
    begins: bool = False


Open = Callable[[], AbstractAsyncContextManager[Far]]


class Steps:
    """The numbers of the steps at which it has still to die."""

    def __init__(self, stride: int) -> None:
        self.next, self.over, self.deaths, self._stride = 1, False, 0, stride

    def take(self) -> int | None:
        if self.over:
            return None
        number, self.next = self.next, self.next + self._stride
        assert number < MOST_STEPS, "the story never comes to its end"
        return number


async def die_at_each(folder: Path, far_side: Open, kind: str, moment: str, *, stride: int = 1, at_once: int = AT_ONCE) -> int:
    """Gives how many deaths there were, without those of recoveries."""
    steps = Steps(stride)
    async with far_side() as far:
        can = far.rig.platform().capabilities

    async def tell_some() -> None:
        while (number := steps.take()) is not None:
            place = folder / f"{kind}-{moment}-{number}"
            place.mkdir()
            async with far_side() as far:
                try:
                    died, reached = await Story(place, far, can).told(kind, moment, number)
                except BaseException as error:
                    error.add_note(f"It died {moment} {kind} {number}.")
                    raise
            steps.deaths += died
            steps.over = steps.over or not reached

    async with asyncio.TaskGroup() as telling:
        for _ in range(at_once):
            telling.create_task(tell_some())
    return steps.deaths


class Story:
    """Ann's first answer grows while it is written, her second one waits behind it; Bob's needs two messages."""

    def __init__(self, folder: Path, far: Far, can: Capabilities) -> None:
        self._folder, self._rig, self._gate, self._hook = folder, far.rig, far.gate, far.hook
        self._way = way(far.rig, hooked=far.hook is not None, begins=far.begins)
        self._long = " ".join(f"word{number}" for number in range(can.text_limit // 7))
        self._knows = bool(can.finds or can.key_lasts_s or can.echoes_s)
        self._lives = 0

    async def told(self, kind: str, moment: str, number: int) -> tuple[bool, bool]:
        """Whether it died, and whether it came to that step. A request that only waits for news may outlast the story."""
        with self._alive() as first:
            assert await first.hears("begun")
            if kind == "commit":
                await first.dies_at(moment, number)
            else:
                self._gate.arm(moment, number, first.kill)
            said = [await self._rig.say(GROWING), await self._rig.say("next")]
            await self._rig.say(f"say:{self._long}", chat=BOB, who=BOB)
            died = not await self._is_over(first)
            reached = died or (kind == "request" and self._gate.passed >= number)
        if died and (number % 2 == 0 or not await self._is_made_good(kind, moment, 1 + number * 7 % RECOVERY)):
            with self._alive() as last:
                assert await self._is_over(last)
        await self._check(said)
        return died, reached

    async def _is_made_good(self, kind: str, moment: str, number: int) -> bool:
        """By a process that dies as well, at some step from its start on, unless it is done before that."""
        with self._alive((moment, number) if kind == "commit" else None) as second:
            if kind == "request":
                self._gate.arm(moment, number, second.kill)
            return await self._is_over(second)

    @contextmanager
    def _alive(self, dies: tuple[str, int] | None = None) -> Iterator[Mortal]:
        life = Mortal(self._folder, self._way, self._lives, dies=dies, lead_to=self._hook.lead_to if self._hook else None)
        self._lives += 1
        try:
            yield life
        finally:
            life.bury()

    async def _is_over(self, life: Mortal) -> bool:
        """False if it died before that."""

        async def ends() -> bool:
            return life.dead or await self._stands()

        await life.hears("begun")
        await until(ends)
        return await life.rests()

    async def _texts(self, chat: str) -> list[str]:
        return [seen.text for seen in await self._rig.shown(chat)]

    async def _stands(self) -> bool:
        """Everything that is to be seen can be seen."""
        anns = {text.removeprefix(REPEAT_LABEL) for text in await self._texts(ANN)}
        return anns >= {GROWN, "re: next"} and _whole(await self._texts(BOB)) == self._long

    async def _check(self, said: list[Any]) -> None:
        """0 lost, 0 doubled without a word, and in order."""
        ann, bob = await self._texts(ANN), await self._texts(BOB)
        assert _whole(bob) == self._long, bob
        assert len(set(_plain(bob))) == len(_plain(bob)), bob
        if self._knows:
            assert ann == [GROWN, "re: next"] and _plain(bob) == bob, (ann, bob)
            assert all(self._rig.is_reply(seen, message) for seen, message in zip(await self._rig.shown(), said, strict=True))
        else:
            _check_labelled(ann, [GROWN, "re: next"])


def _plain(texts: list[str]) -> list[str]:
    return [text for text in texts if not text.startswith(REPEAT_LABEL)]


def _whole(texts: list[str]) -> str:
    """What pieces say together; one that says of itself that it may be a repeat counts once."""
    return " ".join(dict.fromkeys(text.removeprefix(REPEAT_LABEL) for text in texts))


def _check_labelled(shown: list[str], expected: list[str]) -> None:
    """Where nobody can ask what arrived: a second time only with a label, and first words only where the whole has one."""
    plain = _plain(shown)
    there = [text for text in dict.fromkeys(text.removeprefix(REPEAT_LABEL) for text in shown) if text in expected]
    assert there == expected, shown
    assert all(plain.count(text) <= 1 for text in expected), shown
    begun = [text for text in plain if text not in expected]
    assert len(begun) <= len(shown) - len(plain), shown
