"""`python -m bench.soak [--page] [--seconds N] [--seed S] [--sessions N]`: a real gateway under load, handed over and killed by a schedule,
while pages and chats on all platforms stream.

First a time of hand-overs alone, and of a database that another program holds: no turn may be cut, no request refused that need not be
stored, no reader may see a gap or a double. Then kills as well: nothing may be lost or doubled, and every cut turn and every refused
request must be the work of a kill. What people in chats see is counted at the other end. The seed repeats schedule and messages.
"""

import argparse
import asyncio
import logging
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from bench.oracle.__main__ import main as oracle
from bench.processes import raise_file_limit
from bench.soaking import chats, invariants, page, schedule
from bench.soaking.chats import Talker
from bench.soaking.clients import Follower, Writer, probe
from bench.soaking.notebook import Notebook
from bench.soaking.platforms import End, ends, missing
from bench.soaking.processes import FAILURES, Gateway
from bench.soaking.schedule import Sizes

SECONDS, SESSIONS = 140.0, 50
SETTLED_S = 180.0
LOOK_S = 0.25
SERVED = "bench.soaking.served"
TRACEBACK = "Traceback (most recent call last)"
PROBES = {"short connections": False, "kept connections": True}


class Found(msgspec.Struct, frozen=True):
    """What a soak came to. `chats`: how many messages each platform brought. `wrong` in sentences, empty where every promise was kept."""

    notes: Notebook
    record: invariants.Record
    chats: dict[str, int]
    wrong: list[str]


def main(arguments: Sequence[str]) -> int:
    if "--random" in arguments:
        return oracle([each for each in arguments if each != "--random"])
    parser = argparse.ArgumentParser(prog="./run soak", description="A real gateway under load, handed over and killed by a schedule.")
    parser.add_argument("--random", action="store_true", help="random people and random blows instead; see `--random --help`")
    parser.add_argument("--page", action="store_true", help="the page in a browser instead: its frames and its heap while much is written")
    parser.add_argument("--seconds", type=float, metavar="N", help="of load; settling and checking come on top")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), metavar="S", help="repeats schedule and messages")
    parser.add_argument("--sessions", type=int, default=SESSIONS, metavar="N")
    options = parser.parse_args(arguments)
    if options.page:
        return page.main(options.seconds or page.SECONDS)
    seconds = options.seconds or SECONDS
    size = schedule.sizes(seconds, options.sessions)
    words = f"--seconds {seconds:g} --seed {options.seed} --sessions {options.sessions}"
    print(f"soak {words}\n\nschedule:", *schedule.plan(size, options.seed), sep="\n", flush=True)
    raise_file_limit()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # So that no gateway outlives us.
    folder = Path(tempfile.mkdtemp(prefix="holdfast-soak-"))
    found = run(size, options.seed, folder)
    print("", *report(size, found), sep="\n")
    if found.wrong:
        print(f"\nFAIL: ./run soak {words}\n{folder} has the store and what the gateway said.")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    print(f"\nPASS: ./run soak {words}")
    return 0


def run(size: Sizes, seed: int, folder: Path) -> Found:
    """The soak itself, in an empty folder. Nothing of it runs any more when this returns."""
    return uvloop.run(_run(size, seed, folder))


async def _run(size: Sizes, seed: int, folder: Path) -> Found:
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # A process that is killed hangs up in the middle of a request.
    notes, lines = Notebook(), folder / "lines.txt"
    async with ends() as platforms:
        for sentence in missing([end.name for end in platforms]):
            print(f"\n{sentence}", flush=True)
        settings = {name: value for end in platforms for name, value in end.settings.items()}
        gateway = Gateway(folder / "home", notes, module=SERVED, settings=settings)
        talkers = [Talker(end, chat, size, seed, notes) for end in platforms for chat in end.chats]
        try:
            await _soak(size, seed, gateway, notes, lines, talkers)
        finally:
            gateway.end()
        record = invariants.read(gateway.home)
        chats.acknowledge(notes, record.log)
        seen = await chats.check(talkers, invariants.given_up(notes, record))
    wrong = [*notes.faults, *notes.unexplained(), *invariants.check(gateway.home, lines, notes, record), *seen]
    if TRACEBACK in (said := gateway.outputs()):
        wrong.append(f"the gateway reported a failure of its own:\n{said[said.index(TRACEBACK) :][:2000]}")
    return Found(notes, record, {end.name: _said(end, talkers) for end in platforms}, wrong)


def _said(end: End, talkers: Sequence[Talker]) -> int:
    return sum(len(talker.said) for talker in talkers if talker.end is end)


async def _soak(size: Sizes, seed: int, gateway: Gateway, notes: Notebook, lines: Path, talkers: Sequence[Talker]) -> None:
    await gateway.start()
    notes.began = time.time()
    async with asyncio.TaskGroup() as tasks:
        beside: list[asyncio.Task[None]] = []

        def spawn(work: Coroutine[Any, Any, None]) -> None:
            beside.append(tasks.create_task(work))

        followers: list[Follower] = []

        def follow(follower: Follower) -> None:
            followers.append(follower)
            spawn(follower.run())

        for name, keeps in PROBES.items():
            spawn(probe(gateway.address, notes, name, keeps=keeps))
        writers = [
            Writer(gateway.address, number, schedule.sayings(size, seed, number, str(lines)), notes, follow)
            for number in range(1, size.sessions + 1)
        ]
        people: list[Writer | Talker] = [*writers, *talkers]
        writing = [tasks.create_task(each.run()) for each in people]
        await _act(size, seed, gateway, notes)
        for each in people:
            each.close()
        await _settle(gateway, notes, writing, followers)
        for task in (*beside, *writing):
            task.cancel()
    if left := await gateway.stop():
        notes.faults.append(f"after the stop the processes {left} were still there")


async def _act(size: Sizes, seed: int, gateway: Gateway, notes: Notebook) -> None:
    for act in schedule.plan(size, seed):
        await asyncio.sleep(max(0.0, notes.began + act.at_s - time.time()))
        try:
            if act.lock_s:
                await gateway.lock(act.lock_s)
            else:
                await (gateway.hand_over() if act.target is None else gateway.kill(act))
        except FAILURES as error:
            notes.trouble("operator", f"{type(error).__name__}: {error}")
    await asyncio.sleep(max(0.0, notes.began + size.seconds - time.time()))


async def _settle(gateway: Gateway, notes: Notebook, writing: Sequence["asyncio.Task[None]"], followers: list[Follower]) -> None:
    """Until all that was said is acknowledged, every session rests, and every reader has seen all of it."""
    deadline = time.monotonic() + SETTLED_S
    unsettled = ["it was never looked at"]
    while unsettled and time.monotonic() < deadline:
        await asyncio.sleep(LOOK_S)
        try:
            unsettled = [str(task.get_name()) for task in writing if not task.done()] or await _restless(gateway, notes, followers)
        except FAILURES as error:
            notes.trouble("operator", f"{type(error).__name__}: {error}")
    if unsettled:
        notes.faults.append(f"after {SETTLED_S:.0f} s it was not settled: {', '.join(unsettled[:5])}")


async def _restless(gateway: Gateway, notes: Notebook, followers: list[Follower]) -> list[str]:
    status = await gateway.status()
    if status["safe_mode"]:  # As it should be after several starts that came to nothing. Its operator lets it go on.
        notes.remark("the gateway was in safe mode, and was told to go on")
        await gateway.ask("POST", "/api/admin/resume")
    restless = [f"{status[what]} in {what}" for what in ("inbox", "outbox", "running_turns") if status[what]]
    for follower in followers:
        session = await gateway.ask("GET", f"/api/sessions/{follower.session_id}")
        if session["state"] != "idle":
            restless.append(f"{follower.session_id} is {session['state']}")
        elif int(session["cursor"].rpartition(".")[2]) != len(follower.shown):
            restless.append(f"{follower.session_id} is at {session['cursor']}, its reader at {len(follower.shown)}")
    return restless


# What a person sees


def report(size: Sizes, found: Found) -> list[str]:
    notes, record = found.notes, found.record
    calm_until = notes.began + size.calm_s
    taken = [each for each in notes.hand_overs if not each.failed]
    acknowledged = sum(sent.message_id is not None for sent in notes.sent.values())
    again = sum(sent.tries > 1 for sent in notes.sent.values())
    rules = ", ".join(f"{rule} {count}" for rule, count in sorted(record.rules.items())) or "none"
    calm = sum(each.at < calm_until for each in notes.troubles)
    slowest = max((each.took_s for each in taken), default=0.0)
    return [
        "what happened:",
        *_events(notes, record),
        "",
        f"messages      {len(notes.sent)}, acknowledged {acknowledged}, sent more than once {again}",
        f"in chats      {', '.join(f'{name} {count}' for name, count in found.chats.items())}",
        *(f"missing       {sentence}" for sentence in missing(found.chats)),
        f"turns         {len(record.turns)}, cut {len(record.cuts)} times; decided by rule: {rules}; sessions suspended {record.suspended}",
        f"hand-overs    {len(taken)}, failed {len(notes.hand_overs) - len(taken)}; the slowest {slowest:.2f} s",
        f"kills         {len(notes.kills)}; the database was locked {len(notes.locks)} times",
        f"refused       {len(notes.troubles)} requests and streams, {calm} of them before the kills",
        f"longest gap   {_gaps(notes, calm_until)}",
        *(["", "wrong:"] if found.wrong else []),
        *(f"- {each}" for each in found.wrong[:40]),
    ]


def _gaps(notes: Notebook, calm_until: float) -> str:
    shown = []
    for who, all_gaps in notes.gaps.items():
        gaps = [(began, took) for began, took in all_gaps if not any(lock.near(began) or lock.near(began + took) for lock in notes.locks)]
        calm = max((took for began, took in gaps if began < calm_until), default=0.0)
        rough = max((took for began, took in gaps if began >= calm_until), default=0.0)
        shown.append(f"{who} {1000 * calm:.0f} ms, with kills {1000 * rough:.0f} ms")
    return "; ".join(shown) + f" (a stream speaks every {1000 * schedule.PACE_S:.0f} ms)"


def _events(notes: Notebook, record: invariants.Record) -> list[str]:
    """In the order of time: hand-overs, kills with what they explain, and what was remarked upon."""
    killed = notes.killed
    table = [
        (each.at, f"hand-over to {each.pid}, {each.took_s:.2f} s" if not each.failed else f"hand-over failed: {each.failed}")
        for each in notes.hand_overs
    ]
    for kill in notes.kills:
        cut = sum(killed.get(owner) is kill for _, owner in record.cuts)
        refused = sum(notes.explained(trouble.at) is kill for trouble in notes.troubles)
        back = f"answers again after {kill.over_at - kill.at:.2f} s" if kill.over_at > kill.at else "goes on"
        table.append((kill.at, f"SIGKILL to {kill.target} {kill.pids}: {cut} turns cut, {refused} requests and streams refused, {back}"))
    table += [(each.at, f"the database was locked for {each.over_at - each.at:.1f} s") for each in notes.locks]
    table += notes.remarks
    return [f"{at - notes.began:6.1f} s  {what}" for at, what in sorted(table)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
