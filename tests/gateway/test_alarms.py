"""A time that is put off more often than it comes."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from holdfast.gateway.tasks import Alarm
from tests.fakes.loop import SimLoop

Story = Callable[[Alarm, list[float]], Coroutine[Any, Any, None]]


async def _put_off(alarm: Alarm, rang: list[float]) -> None:
    for _ in range(10):
        alarm.set(1.0)
        await asyncio.sleep(0.5)
    assert rang == []
    await asyncio.sleep(5)


async def _cleared(alarm: Alarm, rang: list[float]) -> None:
    alarm.set(1.0)
    alarm.clear()
    await asyncio.sleep(5)


async def _set_again_after_it_was_cleared(alarm: Alarm, rang: list[float]) -> None:
    alarm.set(1.0)
    alarm.clear()
    await asyncio.sleep(0.5)
    alarm.set(1.0)
    await asyncio.sleep(5)


async def _twice(alarm: Alarm, rang: list[float]) -> None:
    for _ in range(2):
        alarm.set(1.0)
        await asyncio.sleep(2)


async def _closed(alarm: Alarm, rang: list[float]) -> None:
    alarm.set(1.0)
    await asyncio.sleep(0.5)
    alarm.close()
    await asyncio.sleep(5)


@pytest.mark.parametrize(
    ("story", "rings"),
    [(_put_off, [5.5]), (_cleared, []), (_set_again_after_it_was_cleared, [1.5]), (_twice, [1.0, 3.0]), (_closed, [])],
)
def test_an_alarm_rings_once_when_nobody_puts_it_off_any_more(story: Story, rings: list[float]) -> None:
    loop = SimLoop()
    began, rang = loop.time(), list[float]()

    async def run() -> None:
        await story(Alarm(lambda: rang.append(round(loop.time() - began, 3))), rang)

    loop.run_until_complete(run())
    loop.close()
    assert rang == rings
