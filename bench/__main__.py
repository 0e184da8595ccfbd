"""`python -m bench [ROW ...] [--quick] [--list] [--profile ROW] [--compare REVISION]`: runs and prints the rows; a full run writes
`results/latest.json`.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import chat_rows, handover_rows, model_rows, page_rows, processes, report, server_rows, store_rows, wire_rows
from bench.comparing import compare
from bench.figures import Figure, Row
from bench.profiling import Profiles
from bench.setting import Setting
from holdfast.store.sqlite.connection import file_system

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "latest.json"
NOT_A_DISK = ("tmpfs", "ramfs")


class Entry(NamedTuple):
    what: str
    peer: str
    measure: Callable[[Setting], list[Figure]]


ROWS = {
    "append": Entry("one durable append through the store", "3 x the floor", store_rows.append),
    "accept": Entry("one message accepted: key, inbox, log and catalog", "a plain insert: floor + 0.34 ms", store_rows.accepted),
    "group": Entry("group commit, 100 producers, whole fenced appends", "3,500/s durable", store_rows.group),
    "update": Entry("a session's title changed, among few and among many", "11 x -> 3,300 x the floor", store_rows.update),
    "message": Entry("a message appended to a store with a long past", "stalls of 2.2 s", store_rows.message),
    "start": Entry("start with many sessions and interrupted turns", "1.4 s with no turns; 6.9 s for 1,000", server_rows.start),
    "last-events": Entry("the last 10 events of a long stream, at the store", "55 ms", store_rows.last_events),
    "last-events-http": Entry("the last 10 events of a long stream, over HTTP", "55 ms", server_rows.last_events),
    "cpu": Entry("processor time per streamed token, agent to client, durable", "0.37 ms, not durable", server_rows.cpu),
    "wire": Entry("processor time per token that a model's wire needs", "0.39-0.77 ms", wire_rows.wire),
    "model": Entry("first text and processor time per token of a model's answer", "0.4-0.8 ms (SDK layers alone)", model_rows.model),
    "model-turns": Entry("very many turns at once that a model answers", "10 turns at most", model_rows.model_turns),
    "first-text": Entry("from a message posted to its first text at the client", "220 / 4,100 ms", server_rows.first_text),
    "history": Entry("processor time of a turn with a short and with a long past", "grows", server_rows.history),
    "many-turns": Entry("very many turns and readers at once", "10 turns at most", server_rows.many_turns),
    "fan-out": Entry("one session, many readers, an agent that does not wait", "-", server_rows.fan_out),
    "stop": Entry("SIGTERM to exit with running turns, drain 0", "up to 65 s", server_rows.stop),
    "hand-over": Entry("what hand-overs add to the longest gap of the same load", "restart of seconds", handover_rows.hand_over),
    "chats": Entry("very many chats of one bot, with the platform's flood control", "not published", chat_rows.chats),
    "search": Entry("search and list in a store with a long past", "13-15 ms; 43 ms", store_rows.search),
    "page": Entry("what the page asks a server with a long past", "-", page_rows.asked),
    "browser": Entry("a long conversation and each piece of an answer, drawn by a browser", "0.25-3.5 ms a piece", page_rows.drawn),
    "cold-start": Entry("cold start to healthy", "0.9-1.8 s, 95 MB", server_rows.cold_start),
    "message-bytes": Entry("bytes written per message", "130-600 KB", store_rows.message_bytes),
    "stream-bytes": Entry("bytes written per streaming conversation", "130-600 KB", server_rows.stream_bytes),
}


def main(arguments: Sequence[str]) -> int:
    options = _options(arguments)
    if options.list:
        for name, entry in ROWS.items():
            report.say(f"{name:18}{entry.what}")
        return 0
    if not sys.platform.startswith("linux"):
        report.say("The bench reads /proc and needs Linux.")
        return 2
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    processes.raise_file_limit()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # So that servers and folders go with us.
    options.folder.mkdir(parents=True, exist_ok=True)
    if file_system(options.folder) in NOT_A_DISK:
        report.say(f"{options.folder} lies in memory. Name a folder on a disk with --folder.")
        return 2
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=options.folder))
    try:
        if options.compare:
            return compare(options.compare, options.rows or list(ROWS), folder=folder, rounds=options.rounds, quick=options.quick)
        return _run(folder, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run bench", description="Measures Holdfast beside the floor of the same disk.")
    parser.add_argument("rows", nargs="*", metavar="ROW", help="only these rows (--list names them)")
    parser.add_argument("--quick", action="store_true", help="everything small, within a minute: shows that it runs, proves nothing")
    parser.add_argument("--list", action="store_true", help="name the rows")
    parser.add_argument("--profile", metavar="ROW", help="run one row once and show where its time goes")
    parser.add_argument("--compare", metavar="REVISION", help="measure this version and that one in turn, and print the ratios")
    parser.add_argument("--rounds", type=int, default=4, metavar="N", help="of a comparison")
    parser.add_argument("--folder", type=Path, default=HERE / "out", help="where to work; must be on the disk to be measured")
    options = parser.parse_args(arguments)
    if options.profile:
        options.rows = [options.profile]
    for name in options.rows:
        if name not in ROWS:
            parser.error(f"there is no row {name!r}; there are {', '.join(ROWS)}")
    return options


def _run(folder: Path, options: argparse.Namespace) -> int:
    profiles = Profiles(folder / "profiles", wanted=bool(options.profile))
    setting = Setting(folder, quick=options.quick, profiles=profiles)
    found = report.machine(folder)
    for line in report.heading(found, quick=options.quick):
        report.say(line)
    rows = []
    for name in options.rows or ROWS:
        report.progress(f"{name} ...")
        rows.append(_measured(name, setting))
        report.progress("")
        for line in report.lines(rows[-1]):
            report.say(line)
    if profiles.wanted:
        for text in profiles.report():
            report.say(f"\n{text}")
        return 0  # Profiled figures are slower ones: nothing is judged or kept.
    report.say("")
    for line in report.last_lines(rows):
        report.say(line)
    if not options.rows and not options.quick:
        report.write(RESULTS, found, rows)
        report.say(f"Written to {os.path.relpath(RESULTS)}.")
    return 1 if any(row.error for row in rows) else 0


def _measured(name: str, setting: Setting) -> Row:
    entry, began = ROWS[name], time.monotonic()
    setting.begin_row()
    figures: list[Figure] = []
    error = None
    try:
        figures = entry.measure(setting)
    except Exception as failure:  # One row that cannot be measured must not hide the others.
        traceback.print_exc()
        error = f"{type(failure).__name__}: {failure}"
    steady = setting.steady
    return Row(
        name=name,
        what=entry.what,
        peer=entry.peer,
        figures=figures,
        floors=steady.floors,
        thrown_away=steady.thrown_away,
        moved=steady.moved,
        took_s=time.monotonic() - began,
        notes=setting.notes,
        error=error,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
