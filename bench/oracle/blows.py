"""What is done to the gateway, by chance: it is killed, told to end, handed over, frozen, paused. After each it is brought back."""

import asyncio
import contextlib
import os
import random
import signal
import time

from bench.oracle.account import Account
from bench.soaking.processes import FAILURES, Gateway

BLOWS = {"kill": 30, "kill in mid hand-over": 10, "hand-over": 25, "term": 12, "stop": 8, "freeze": 8, "pause": 10}
FROZEN_S = (0.3, 2.0)
GONE_S = 60.0


class Blows:
    """`deaths`: how many unclean ones are dealt at most. Each start after one waits longer before it resumes anything."""

    def __init__(self, gateway: Gateway, seed: int, account: Account, *, deaths: int) -> None:
        self._gateway, self._account, self._deaths = gateway, account, deaths
        self._chance = random.Random(f"blows {seed}")

    async def deal(self, until: float, every_s: float) -> None:
        while time.monotonic() < until:
            await asyncio.sleep(self._chance.uniform(0.5, 1.5) * every_s)
            blow = self._chance.choices(list(BLOWS), list(BLOWS.values()))[0]
            if blow.startswith("kill"):
                self._deaths -= 1
            if self._deaths < 0:
                blow = "hand-over"
            self._account.blows.append(blow)
            with contextlib.suppress(*FAILURES):
                await self._deal(blow)
            await self.bring_back()

    async def _deal(self, blow: str) -> None:
        pid = int((await self._gateway.status())["pid"])
        match blow:
            case "kill":
                os.kill(pid, signal.SIGKILL)
            case "kill in mid hand-over":
                begun = asyncio.ensure_future(self._gateway.hand_over())
                await asyncio.sleep(self._chance.uniform(0.0, 1.5))
                os.kill(self._chance.choice([pid, *self._gateway.pids()]), signal.SIGKILL)
                await begun
            case "hand-over":
                await self._gateway.hand_over()
            case "term":
                os.kill(pid, signal.SIGTERM)
                await self._gone(pid)
            case "stop":
                await self._gateway.stop()
            case "freeze":
                os.kill(pid, signal.SIGSTOP)
                await asyncio.sleep(self._chance.uniform(*FROZEN_S))
                os.kill(pid, signal.SIGCONT)
            case "pause":
                await self._gateway.ask("POST", "/api/admin/pause", {"for_s": self._chance.uniform(0.5, 3)})

    async def _gone(self, pid: int) -> None:
        deadline = time.monotonic() + GONE_S
        while pid in self._gateway.pids():
            if time.monotonic() > deadline:
                self._account.faults.append(f"process {pid} did not end within {GONE_S:.0f} s of a SIGTERM")
                os.kill(pid, signal.SIGKILL)
            self._gateway.reap()
            await asyncio.sleep(0.05)

    async def bring_back(self) -> None:
        """As a supervisor would: if nobody answers, it is started."""
        self._gateway.reap()
        try:
            await self._gateway.status()
        except FAILURES:
            await self._gateway.start()
