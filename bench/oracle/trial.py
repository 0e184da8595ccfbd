"""One trial: people and blows for a while, then rest, then judgement."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from bench.load import Address, Api
from bench.oracle.account import Account, Order
from bench.oracle.blows import Blows
from bench.oracle.judge import Logs, Shown, judge
from bench.oracle.people import Person
from bench.soaking.clients import Follower, seen
from bench.soaking.notebook import Notebook
from bench.soaking.processes import FAILURES, Gateway

EVERY_S = 3.0
REST_S = 240.0
LOOK_S = 0.3
TRACEBACK = "Traceback (most recent call last)"


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    seconds: float
    seed: int
    people: int
    deaths: int


class Found(msgspec.Struct, frozen=True):
    """`watched`: for each conversation, what stands for each event that its reader was shown."""

    account: Account
    logs: Logs
    watched: dict[str, list[int]]
    wrong: list[str]

    def report(self) -> list[str]:
        account = self.account
        blows = ", ".join(f"{blow} {count}" for blow, count in Counter(account.blows).most_common())
        orders = ", ".join(f"{what} {count}" for what, count in Counter(order.what for order in account.orders).most_common())
        ends = Counter(str(event.data["outcome"]) for log in self.logs.values() for event in log if event.name == "turn.ended")
        rules = Counter(str(rule) for log in self.logs.values() for event in log if (rule := event.data.get("rule")))
        acknowledged = sum(said.message_id is not None for said in account.said.values())
        return [
            f"blows     {blows}",
            f"messages  {len(account.said)}, acknowledged {acknowledged}, in {len(self.logs)} conversations",
            f"orders    {orders}",
            f"turns     {', '.join(f'{end} {count}' for end, count in ends.most_common())}",
            f"rules     {', '.join(f'{rule} {count}' for rule, count in sorted(rules.items()))}",
            *(["", "wrong:"] if self.wrong else []),
            *(f"- {each}" for each in self.wrong[:40]),
        ]


def run(trial: Trial, folder: Path) -> Found:
    """In an empty folder. Nothing of it runs any more when this returns."""
    account, notes = Account(), Notebook()
    gateway = Gateway(folder / "home", notes)
    lines = folder / "lines.txt"
    try:
        logs = uvloop.run(_try(trial, gateway, account, notes, lines))
    finally:
        gateway.end()
    ran = Counter(lines.read_text().split()) if lines.exists() else Counter()
    wrong = [*notes.faults, *judge(account, logs, ran), *misread(notes.shown, logs)]
    if TRACEBACK in (said := gateway.outputs()):
        wrong.append(f"the gateway reported a failure of its own:\n{said[said.index(TRACEBACK) :][:2000]}")
    return Found(account, logs, notes.shown, wrong)


async def _try(trial: Trial, gateway: Gateway, account: Account, notes: Notebook, lines: Path) -> Logs:
    await gateway.start()
    people = [Person(number, trial.seed, account, lines) for number in range(1, trial.people + 1)]
    blows = Blows(gateway, trial.seed, account, deaths=trial.deaths)
    async with asyncio.TaskGroup() as tasks:
        living = [tasks.create_task(person.run(gateway.address)) for person in people]
        following = tasks.create_task(_follow_all(gateway.address, account, notes))
        await blows.deal(time.monotonic() + trial.seconds, EVERY_S)
        for person in people:
            person.closing = True
        await asyncio.wait(living, timeout=REST_S)
        await _rest(gateway, blows, account, notes)
        following.cancel()
    logs = {session_id: await _read(gateway.address, session_id) for session_id in sorted(account.sessions)}
    if left := await gateway.stop():
        account.faults.append(f"after the stop the processes {left} were still there")
    written = json.loads((gateway.home / "status.json").read_text())
    if written["gateway_state"] != "stopped":
        account.faults.append(f"after an operator's stop the status file says {written['gateway_state']}")
    return logs


async def _follow_all(address: Address, account: Account, notes: Notebook) -> None:
    """A reader for each conversation, from the moment somebody knows of it; it comes back with its cursor whenever it is cut off."""
    followed: set[str] = set()
    async with asyncio.TaskGroup() as tasks:
        while True:
            for session_id in account.sessions - followed:
                followed.add(session_id)
                tasks.create_task(Follower(address, session_id, notes).run())
            await asyncio.sleep(0.1)


async def _rest(gateway: Gateway, blows: Blows, account: Account, notes: Notebook) -> None:
    """Until nothing runs or waits and every reader has seen all of it. Whatever only a human can end, is ended here."""
    deadline = time.monotonic() + REST_S
    restless = ["it was never looked at"]
    while restless:
        if time.monotonic() > deadline:
            account.faults.append(f"after {REST_S:.0f} s it was not at rest: {', '.join(restless[:5])}")
            return
        await asyncio.sleep(LOOK_S)
        try:
            await blows.bring_back()
            restless = await _look(gateway, account, notes)
        except FAILURES as error:
            restless = [f"{type(error).__name__}: {error}"]


async def _look(gateway: Gateway, account: Account, notes: Notebook) -> list[str]:
    await gateway.ask("POST", "/api/admin/unpause")
    if (await gateway.status())["safe_mode"]:
        await gateway.ask("POST", "/api/admin/resume")
    restless = []
    for session in await _sessions(gateway, "&state=deleted"):  # Brought back, so that what became of it can be read.
        await gateway.ask("POST", f"/api/sessions/{session['session_id']}/undelete", {})
    for session in await _sessions(gateway):
        name = session["session_id"]
        account.sessions.add(name)
        if session["state"] != "idle" or session["queued"]:
            restless.append(f"{name} is {session['state']}")
            await _end(gateway, account, session)
            continue
        shown = await gateway.ask("GET", f"/api/sessions/{name}")
        if int(shown["cursor"].rpartition(".")[2]) != len(notes.shown.get(name, [])):
            restless.append(f"{name} is at {shown['cursor']}, its reader at {len(notes.shown.get(name, []))}")
    return restless


async def _end(gateway: Gateway, account: Account, session: dict[str, Any]) -> None:
    """A turn that hangs or waits for somebody is stopped; one that was left is taken up again first."""
    name = session["session_id"]
    shown = await gateway.ask("GET", f"/api/sessions/{name}")
    hangs = any(message["text"].startswith("Hanging") and message["status"] == "partial" for message in shown["messages"])
    if session["state"] == "waiting" or (session["state"] == "running" and hangs) or session["left"]:
        order = Order("stop", name)
        account.orders.append(order)
        order.said = await gateway.ask("POST", f"/api/sessions/{name}/stop", {})


async def _sessions(gateway: Gateway, state: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    before = ""
    while True:
        page = await gateway.ask("GET", f"/api/sessions?limit=100{state}{before}")
        found += page["sessions"]
        if page["next"] is None:
            return found
        before = f"&before={page['next']}"


async def _read(address: Address, session_id: str) -> list[Shown]:
    """All events of a conversation, as a reader sees them who comes for the first time."""
    async with Api(address) as api:
        status, answer = await api.request("GET", f"/api/sessions/{session_id}")
    if status != 200:
        raise OSError(f"{session_id}: {status}")
    last = int(msgspec.json.decode(answer)["cursor"].rpartition(".")[2])
    log: list[Shown] = []
    reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        writer.write(address.head("GET", f"/api/sessions/{session_id}/events?after=0"))
        await reader.readuntil(b"\r\n\r\n")
        rest = b""
        while len(log) < last:
            size = int(await reader.readuntil(b"\r\n"), 16)
            *blocks, rest = (rest + (await reader.readexactly(size + 2))[:-2]).split(b"\n\n")
            log += _events(blocks)
    finally:
        writer.close()
    return log


def _events(blocks: list[bytes]) -> Iterator[Shown]:
    for block in blocks:
        fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if b": " in line)
        if b"event" in fields:
            name, data = fields[b"event"].decode(), fields[b"data"]
            yield Shown(fields[b"id"].decode(), name, json.loads(data), seen(name, data))


def misread(watched: dict[str, list[int]], logs: Logs) -> Iterator[str]:
    """P7: who was there all along, cut off and back again, saw the same bytes as one who comes now."""
    for session_id, log in logs.items():
        shown = watched.get(session_id, [])
        if shown != [event.mark for event in log]:
            yield f"the reader of {session_id} was shown {len(shown)} events; there are {len(log)}, and they are not the same"
