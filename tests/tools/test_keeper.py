"""Keepers with real processes: what they keep, what kills reach, what is known after any of them died. P6, E6 rest on this."""

import asyncio
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from holdfast import files, processes, tool_processes
from holdfast.core.errors import Held, Unavailable
from holdfast.core.process_id import process_in
from holdfast.keeper import KeeperProcesses
from holdfast.keeper.files import InputClosed, spec
from holdfast.keeper.keep import EARLIER, EXIT, LOCK, PID
from holdfast.keeper.launching import CannotStart, Launcher, StartedBefore
from holdfast.ports.keepers import ERR, Command, End, Look, Loss, Name, kill_all
from tests.e2e.serving import wait_until

NAME = Name("s_1", "p_1")
SECRET = "sk-live-Zk39Qx"
SPEC = spec(Command(words=["/bin/sh", "-c", "echo ran > ran"], folder="/", environment={}))


class Home:
    """A home folder and its keepers. Nothing of it is left running."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        self.keepers = self.found_again()

    def found_again(self) -> KeeperProcesses:
        """As a gateway that has just started finds them."""
        return KeeperProcesses(self.path, Launcher({}))

    def start(self, line: str, name: Name = NAME, **more: object) -> End | None:
        environment = {"PATH": os.environ["PATH"]}
        command = Command(words=["/bin/sh", "-c", line], folder=str(self.path), environment=environment, **more)  # type: ignore[arg-type]
        return asyncio.run(self.keepers.start(name, command))

    def look(self, name: Name = NAME) -> Look:
        return asyncio.run(self.keepers.look(name))

    def end(self, name: Name = NAME) -> End:
        wait_until(lambda: not self.look(name).runs)
        found = self.look(name)
        return found.end or asyncio.run(self.keepers.give_up(name))

    def read(self, offset: int = 0, limit: int = 1 << 30, stream: str = "out", name: Name = NAME) -> bytes:
        return asyncio.run(self.keepers.read(name, offset=offset, limit=limit, stream=stream)).data

    def kill(self, name: Name = NAME) -> None:
        asyncio.run(self.keepers.kill(name))

    def until_said(self, text: bytes, name: Name = NAME) -> None:
        wait_until(lambda: text in self.read(name=name))

    def folder(self, name: Name = NAME) -> Path:
        return self.path / "processes" / name.group / name.id

    def kill_keeper(self, name: Name = NAME) -> None:
        """SIGKILL: it writes nothing down."""
        found = files.read_json(self.folder(name) / PID)
        assert found is not None
        os.kill(found["keeper"]["pid"], signal.SIGKILL)

    def left(self) -> list[int]:
        return [process.pid for process, _ in tool_processes.running(self.path, tool_processes.KEPT)]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path)
    yield home
    for name in asyncio.run(home.keepers.names()):
        asyncio.run(home.keepers.forget(name))
    assert not home.left()


def test_output_and_exit_code_are_kept(home: Home) -> None:
    assert home.start("echo one; echo two >&2; exit 7") is None
    end = home.end()
    assert (end.code, end.signal, end.problem, end.lost, end.asked) == (7, None, None, None, False)
    assert home.read() == b"one\ntwo\n" and home.look().out == 8
    assert home.read(4) == b"two\n" and home.read(4, 2) == b"tw" and home.read(8) == b""


def test_a_signal_that_ended_it_is_told_apart_from_an_exit_code(home: Home) -> None:
    home.start("kill -SEGV $$")
    end = home.end()
    assert (end.code, end.signal) == (None, signal.SIGSEGV)


def test_a_command_that_cannot_be_started_says_why_and_is_over(home: Home) -> None:
    command = Command(words=["/nowhere/program"], folder=str(home.path), environment={})
    end = asyncio.run(home.keepers.start(NAME, command))
    assert end is not None and end.problem == "No such file or directory: /nowhere/program"
    assert home.look().end == end


def test_it_is_on_disk_which_processes_they_are_before_the_command_runs(home: Home) -> None:
    """The command itself looks: its own id, start time and boot are there already."""
    home.start(f"cat {home.folder()}/pid.json; echo; echo $$; sleep 60")
    home.until_said(b"\n")
    wait_until(lambda: home.read().count(b"\n") == 2)
    written, pid = home.read().decode().splitlines()
    found = files.read_json(home.folder() / PID)
    assert found is not None and json.loads(written) == found
    main, keeper = process_in(found["main"]), process_in(found["keeper"])
    assert main is not None and main == processes.with_pid(int(pid))
    assert keeper is not None and processes.is_alive(keeper) and os.getsid(keeper.pid) == keeper.pid


def test_a_name_is_started_once_however_many_start_it_at_the_same_time(home: Home) -> None:
    async def start_all() -> None:
        command = Command(words=["/bin/sh", "-c", "echo ran; sleep 60"], folder=str(home.path), environment={})
        started = await asyncio.gather(*(home.keepers.start(NAME, command) for _ in range(4)))
        assert started == [None] * 4

    asyncio.run(start_all())
    home.until_said(b"ran")
    assert home.read() == b"ran\n" and len(home.left()) == 2


def test_it_is_found_again_and_read_on_by_somebody_else(home: Home) -> None:
    """E6: what a process puts out while nobody is there is whole, from the very byte where the last reader was."""
    home.start("for i in 1 2 3 4 5 6; do echo $i; sleep 0.05; done; exit 3")
    home.until_said(b"2\n")
    seen = home.read()
    home.keepers = home.found_again()
    assert home.end().code == 3
    assert seen + home.read(len(seen)) == b"1\n2\n3\n4\n5\n6\n"


def test_its_input_can_be_written_by_somebody_else_and_closed(home: Home) -> None:
    home.start("cat; echo over", input=True)
    for text in (b"one\n", b"two\n"):
        home.keepers = home.found_again()
        assert asyncio.run(home.keepers.write(NAME, text)) == 4
    home.until_said(b"two\n")
    asyncio.run(home.keepers.close_input(NAME))
    assert home.end().code == 0 and home.read() == b"one\ntwo\nover\n"
    with pytest.raises(InputClosed):
        asyncio.run(home.keepers.write(NAME, b"late"))


def test_an_input_that_nobody_reads_takes_what_fits_and_says_so(home: Home) -> None:
    home.start("sleep 60", input=True)
    taken = asyncio.run(home.keepers.write(NAME, b"x" * 1_000_000))
    assert 0 < taken < 1_000_000
    home.start("exec <&-; echo closed; sleep 60", Name("s_1", "p_2"), input=True)
    home.until_said(b"closed", Name("s_1", "p_2"))
    with pytest.raises(InputClosed):
        asyncio.run(home.keepers.write(Name("s_1", "p_2"), b"x"))
    home.start("read x || echo nothing", Name("s_1", "p_3"))
    assert home.end(Name("s_1", "p_3")).code == 0 and home.read(name=Name("s_1", "p_3")) == b"nothing\n"


def test_of_a_long_output_the_newest_is_kept_and_the_rest_counted(home: Home) -> None:
    home.start("seq 1 200000", most_bytes=100_000)
    assert home.end().code == 0
    whole = "".join(f"{number}\n" for number in range(1, 200_001)).encode()
    chunk = asyncio.run(home.keepers.read(NAME, offset=0, limit=1 << 30))
    assert home.look().out == len(whole) and chunk.offset > len(whole) - 110_000
    assert sum(file.stat().st_size for file in home.folder().glob("out.*")) <= 100_000
    kept, offset = b"", chunk.offset
    while piece := home.read(offset):
        kept, offset = kept + piece, offset + len(piece)
    assert kept == whole[chunk.offset :] and len(kept) > 40_000


def test_one_that_holds_waits_for_its_reader_and_loses_nothing(home: Home) -> None:
    """What an agent on the other side of a pipe says must be read whole, however long nobody was there."""
    home.start("seq 1 50000", most_bytes=65_536, holds=True)
    whole = "".join(f"{number}\n" for number in range(1, 50_001)).encode()
    read, offset = b"", 0
    while len(read) < len(whole):
        chunk = asyncio.run(home.keepers.read(NAME, offset=offset, limit=4096))
        assert chunk.offset == offset
        read, offset = read + chunk.data, chunk.next
        asyncio.run(home.keepers.drop(NAME, before=offset))
    assert read == whole and home.end().code == 0
    assert sum(file.stat().st_size for file in home.folder().glob("out.*")) <= 2 * 65_536


def test_one_that_holds_does_not_wait_for_a_reader_of_its_complaints(home: Home) -> None:
    """An agent may complain for days; nobody reads that before its end."""
    home.start("seq 1 50000 >&2; echo said", most_bytes=65_536, holds=True, apart=True)
    assert home.end().code == 0 and home.read() == b"said\n"
    assert home.look().err == sum(len(f"{number}\n") for number in range(1, 50_001))
    assert home.read(home.look().err - 6, stream=ERR) == b"50000\n"
    assert sum(file.stat().st_size for file in home.folder().glob("err.*")) <= 65_536


def test_errors_can_be_an_output_of_their_own(home: Home) -> None:
    home.start("echo said; echo complained >&2", apart=True)
    assert home.end().code == 0
    assert home.read() == b"said\n" and home.read(stream=ERR) == b"complained\n"
    assert (home.look().out, home.look().err) == (5, 11)


# A child with a session of its own that ignores every polite word, an orphan, and their children.
TREE = """
setsid sh -c 'trap "" TERM HUP INT; sleep 300 & echo here; wait; sleep 300' &
(sh -c 'sleep 300; :' & echo here)
echo here
sleep 300; :
"""


def test_a_kill_reaches_everything_it_started(home: Home) -> None:
    home.start(TREE)
    wait_until(lambda: home.read().count(b"here") == 3 and len(home.left()) >= 6)
    home.kill()
    end = home.look().end
    assert end is not None and end.asked and end.signal == signal.SIGTERM
    assert home.left() == []


def test_one_that_is_asked_to_end_may_end_in_its_own_way(home: Home) -> None:
    home.start("trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.02; done")
    home.until_said(b"ready")
    home.kill()
    end = home.look().end
    assert end is not None and (end.code, end.asked) == (5, True) and home.read().endswith(b"bye\n")


def test_what_a_command_leaves_behind_ends_with_it(home: Home) -> None:
    home.start("setsid sleep 300 & echo over")
    end = home.end()
    assert end.code == 0 and not end.asked and home.left() == []


def test_what_a_command_leaves_behind_may_finish_its_words(home: Home) -> None:
    home.start("(sleep 0.1; echo last words) & exit 4")
    assert home.end().code == 4 and home.read() == b"last words\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_of_one_whose_keeper_was_killed_the_code_is_not_known_and_nothing_stays(home: Home) -> None:
    home.start(TREE)
    wait_until(lambda: home.read().count(b"here") == 3)
    home.kill_keeper()
    wait_until(lambda: home.look().lost is Loss.KEEPER)
    assert home.left(), "nobody has looked after the rest yet"
    before = time.time()
    end = asyncio.run(home.keepers.give_up(NAME))
    assert end.lost is Loss.KEEPER and end.code is None and abs(end.at / 1000 - before) < 300
    assert home.left() == [] and home.look().end == end
    assert asyncio.run(home.found_again().give_up(NAME)) == end
    assert home.read().count(b"here") == 3


def test_after_a_boot_nothing_of_it_runs(home: Home) -> None:
    home.start("echo ran; sleep 60")
    home.until_said(b"ran")
    home.kill_keeper()
    wait_until(lambda: not home.look().runs)
    found = files.read_json(home.folder() / PID)
    assert found is not None
    found["keeper"]["boot_id"] = "another"
    files.replace_json(home.folder() / PID, found)
    os.utime(home.folder() / LOCK, (1000.0, 1000.0))
    end = home.end()
    assert end.lost is Loss.MACHINE and end.at == 1_000_000, "the last time it was known to run"


DAMAGED = (
    b"",
    b"\0" * 100,
    b"{",
    b"\xff",
    b"[]",
    b"{}",
    b'{"keeper": 7, "ended_at": "yesterday"}',
    b'{"keeper": {}, "ended_at": 1, "lost": "x"}',
)


@pytest.mark.parametrize("content", DAMAGED)
@pytest.mark.parametrize("which", [PID, EXIT])
def test_one_whose_files_are_damaged_is_lost_and_nothing_of_it_stays(home: Home, which: str, content: bytes) -> None:
    """P8: nobody fails over it, and what is said of it then stays."""
    home.start("sleep 60" if which == PID else "exit 3")
    if which == PID:
        home.kill_keeper()
    wait_until(lambda: not home.look().runs)
    (home.folder() / which).write_bytes(content)
    wait_until(lambda: home.look().lost is Loss.UNREADABLE)
    end = asyncio.run(home.keepers.give_up(NAME))
    assert end.lost is Loss.UNREADABLE and home.left() == []
    assert home.look().end == end == asyncio.run(home.found_again().give_up(NAME))
    assert home.start(f"echo ran > {home.path}/ran") == end and not (home.path / "ran").exists()


@pytest.mark.parametrize("content", [b"{", b"{}"])
def test_one_that_runs_is_killed_also_if_nobody_can_read_which_process_it_is(home: Home, content: bytes) -> None:
    home.start("echo here; trap '' TERM; while :; do sleep 1; done")
    home.until_said(b"here")
    (home.folder() / PID).write_bytes(content)
    assert home.look().runs
    home.kill()
    assert home.end().signal == signal.SIGKILL and home.left() == []


def test_one_that_was_given_up_before_its_keeper_came_never_runs(home: Home) -> None:
    """A start that a death has interrupted is over: a keeper that comes late finds that and goes."""
    assert home.look().lost is Loss.NEVER_RAN
    end = asyncio.run(home.keepers.give_up(NAME))
    assert end.lost is Loss.NEVER_RAN
    assert home.start(f"echo ran > {home.path}/ran") == end
    with pytest.raises(StartedBefore):
        Launcher({}).launch(home.folder(), SPEC)
    assert not (home.path / "ran").exists() and home.left() == []


def test_a_command_whose_keeper_dies_before_it_is_known_never_runs(home: Home) -> None:
    """Its child waits for a word that does not come."""
    (home.folder() / f".{PID}").mkdir(parents=True)
    end = home.start(f"echo ran > {home.path}/ran")
    assert end is not None and end.problem is not None and "directory" in end.problem
    assert not (home.path / "ran").exists() and home.left() == []


@pytest.mark.parametrize("told", [b"", SPEC[:-1]])
def test_a_keeper_that_is_not_told_all_of_what_to_run_runs_nothing(home: Home, told: bytes) -> None:
    """Whoever started it has died meanwhile."""
    home.folder().mkdir(parents=True)
    with pytest.raises(CannotStart, match="not told what to run"):
        Launcher({}).launch(home.folder(), told)
    assert home.look().lost is Loss.NEVER_RAN and home.end().lost is Loss.NEVER_RAN


def test_a_gateway_from_before_an_upgrade_starts_a_keeper_from_after_it(home: Home) -> None:
    """It has put into a file what is to run."""
    home.folder().mkdir(parents=True)
    (home.folder() / EARLIER).write_bytes(SPEC.replace(b'"/"', json.dumps(str(home.path)).encode()))
    Launcher({}).launch(home.folder(), b"")
    assert home.end().code == 0 and (home.path / "ran").read_text() == "ran\n"


def test_the_environment_and_the_words_of_a_command_are_in_none_of_its_files(home: Home) -> None:
    """An environment may hold any secret: at no time, so that a death leaves none."""
    command = Command(
        words=["/bin/sh", "-c", f'echo "${{#KEY}}"; : {SECRET}; read line'], folder="/", environment={"KEY": SECRET}, input=True
    )
    asyncio.run(home.keepers.start(NAME, command))
    home.until_said(f"{len(SECRET)}\n".encode())
    for killed in (False, True):
        if killed:
            home.kill()
        found = [path for path in home.path.rglob("*") if path.is_file()]
        assert found and not [path for path in found if SECRET.encode() in path.read_bytes()]


def test_one_that_runs_is_not_given_up(home: Home) -> None:
    home.start("sleep 60")
    with pytest.raises(Held):
        asyncio.run(home.keepers.give_up(NAME))
    assert home.look().runs


def test_of_many_that_are_killed_one_that_cannot_be_reached_keeps_none_of_the_others_alive(home: Home) -> None:
    """C29: an operator's stop, or the end of a conversation. It is said all the same."""
    names = [Name("s_1", f"p_{number}") for number in range(3)]
    for name in names:
        home.start("sleep 600", name)
    (home.folder(names[0]) / PID).rename(home.folder(names[0]) / "elsewhere")
    (home.folder(names[0]) / PID).mkdir()
    with pytest.raises(Unavailable):
        asyncio.run(kill_all(home.keepers, names))
    assert [home.look(name).runs for name in names] == [True, False, False]
    (home.folder(names[0]) / PID).rmdir()
    (home.folder(names[0]) / "elsewhere").rename(home.folder(names[0]) / PID)


def test_what_is_forgotten_is_dead_and_gone(home: Home) -> None:
    home.start("sleep 60")
    asyncio.run(home.keepers.forget(NAME))
    assert home.left() == [] and asyncio.run(home.keepers.names()) == [] and not home.folder().exists()


class FullDisk(Launcher):
    """Files of more than a few blocks are refused to its keepers."""

    def launch(self, folder: Path, spec: bytes) -> None:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
        try:
            super().launch(folder, spec)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_costs_output_and_not_the_exit_code(home: Home) -> None:
    home.keepers = KeeperProcesses(home.path, FullDisk({}))
    home.start("seq 1 100000; exit 9")
    assert home.end().code == 9
    assert home.look().out == sum(len(f"{number}\n") for number in range(1, 100_001))


def _cpu_of(work: Callable[[], object]) -> float:
    before = os.times()
    work()
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def test_a_keeper_is_small(home: Home) -> None:
    """Not a benchmark: it must not begin to load what it does not need."""
    assert _cpu_of(lambda: home.start("sleep 60")) < 1.0
    found = files.read_json(home.folder() / PID)
    assert found is not None
    assert psutil.Process(found["keeper"]["pid"]).memory_info().rss < 20_000_000
