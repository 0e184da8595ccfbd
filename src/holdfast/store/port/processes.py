"""Processes in the background."""

from holdfast.core import events as e
from holdfast.core.processes import Matches, Process, Telling
from holdfast.store.port.base import OverLines
from holdfast.store.work import processes


class Processes(OverLines):
    async def start_process(self, session_id: str, wanted: e.ProcessStarted, *, most: int, at: int) -> Process:
        return await self._lines.write(processes.start_process, session_id, wanted, most, at)

    async def end_process(self, ended: e.ProcessEnded, *, tail: str, matches: Matches, window_s: float, at: int) -> Telling:
        return await self._lines.write(processes.end_process, ended, tail, matches, window_s, at)

    async def match_process(self, process_id: str, matches: Matches, *, at: int) -> bool:
        return await self._lines.write(processes.match_process, process_id, matches, at)

    async def consume_process(self, process_id: str, *, how: str, at: int) -> bool:
        return await self._lines.write(processes.consume_process, process_id, how, at, when_full=True)

    async def process(self, process_id: str) -> Process:
        return await self._lines.read(processes.process, process_id)

    async def processes(self, session_id: str) -> list[Process]:
        return await self._lines.read(processes.processes, session_id)

    async def running_processes(self) -> list[Process]:
        return await self._lines.read(processes.running_processes)
