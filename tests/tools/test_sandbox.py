"""The sandbox by trying: from inside, in each mode that this machine has, nothing of Holdfast's home folder can be read."""

import os
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from holdfast.core.errors import UnfitFolder
from holdfast.sandbox import Mode, Place, Sandbox
from holdfast.sandbox.trial import choose
from holdfast.tools.workspaces import Workspaces
from tests.tools.sandboxes import holding

TOKEN = "the-token-of-this-home"
MODES = ("bubblewrap", "landlock")


class Inside:
    """Commands in a sandbox on a home with a token."""

    def __init__(self, mode: str, around: Path, *, home: str = "home", shared: str | None = None, network: bool = True) -> None:
        self.home = around / home
        self.home.mkdir(parents=True, exist_ok=True)
        (self.home / "token").write_text(TOKEN + "\n")
        (self.home / "holdfast.db").write_text("every conversation")
        folder = around / shared if shared else self.home / "work"
        self.workspaces = Workspaces(self.home, folder=folder, shared=shared is not None)
        self.sandbox = holding(mode, self.home, shared=folder if shared else None, network=network)
        self.place = self.workspaces.make("s_1")

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        return run(self.sandbox, self.place, line)


def run(inside: Sandbox, place: Place, line: str) -> subprocess.CompletedProcess[str]:
    given = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")} | inside.environment(place)
    return subprocess.run(inside.command(line, place), env=given, cwd=place.folder, capture_output=True, text=True, timeout=30)


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def inside(mode: str, tmp_path: Path) -> Inside:
    return Inside(mode, tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        "cat {home}/token",
        "cat {home}/holdfast.db",
        "ls {home} | grep -e token -e holdfast.db",
        "cd {home}/work && cat ../token",
        "cat ./../../token",
        "ln -s {home}/token link && cat link",
        "ln {home}/token hard && cat hard",
        "mv {home}/token taken && cat taken",
        "cat /proc/{pid}/root{home}/token",
        "cat /proc/{pid}/cwd/token",
        "tr '\\0' '\\n' < /proc/{pid}/environ | grep ^PATH=",
        "find / -name token -path '*home*' 2>/dev/null | grep token",
        "sh -c 'exec cat {home}/token'",
        "perl -e 'open(F, shift) or die; print <F>' {home}/token",
        "tar -cf - {home}/token | grep -a the-token",
    ],
)
def test_nothing_of_the_home_folder_can_be_read_from_inside(inside: Inside, line: str) -> None:
    done = inside.run(line.format(home=inside.home, pid=os.getpid()))
    assert done.returncode != 0 and TOKEN not in done.stdout and "every conversation" not in done.stdout, done


@pytest.mark.parametrize(
    "line",
    [
        "truncate -s 0 {home}/token",
        "echo x > {home}/token",
        "echo x >> {home}/holdfast.db",
        "echo x > {home}/new",
        "rm -f {home}/token",
        "mkdir {home}/folder",
        "mv {home}/token {home}/taken",
        "rm -rf {home}/work/../sandboxes/../token {home}",
        "perl -e 'truncate(shift, 0)' {home}/token",
    ],
)
def test_nothing_of_the_home_folder_can_be_changed_from_inside(inside: Inside, line: str) -> None:
    """Where the folder is not there at all, a command may make one of that name; it is gone with the command."""
    inside.run(line.format(home=inside.home))
    assert (inside.home / "token").read_text() == TOKEN + "\n"
    assert (inside.home / "holdfast.db").read_text() == "every conversation"
    assert {path.name for path in inside.home.iterdir()} == {"token", "holdfast.db", "sandboxes", "work"}


def test_a_command_works_in_its_own_folder_and_sees_the_system(inside: Inside) -> None:
    done = inside.run("pwd; echo text > file && cat file; cp /etc/passwd copy; echo me > ~/note; echo t > $TMPDIR/t; ls /usr >/dev/null")
    assert (done.returncode, done.stdout) == (0, f"{inside.place.folder}\ntext\n"), done
    assert (inside.place.folder / "file").read_text() == "text\n"
    again = inside.run("cat ~/note $TMPDIR/t; sh -c 'exit 7'")
    assert (again.returncode, again.stdout) == (7, "me\nt\n"), "what a session left in its home and its temporary folder stays"


def test_a_command_cannot_change_the_system_or_see_the_users_own_files(inside: Inside, tmp_path: Path) -> None:
    private = tmp_path / "letter"
    private.write_text("dear")
    for line in (
        f"cat {private}",
        f"echo x > {tmp_path}/other",
        "touch /etc/holdfast-was-here",
        "touch /usr/holdfast-was-here",
        "touch /x",
    ):
        done = inside.run(f"{line}")
        assert "dear" not in done.stdout
        assert not any(Path(place).exists() for place in ("/etc/holdfast-was-here", "/usr/holdfast-was-here", "/x", tmp_path / "other"))


def test_sessions_do_not_see_each_others_folders(inside: Inside) -> None:
    other = inside.workspaces.make("s_2")
    for folder in (other.folder, other.home, other.tmp):
        (folder / "theirs").write_text("theirs")
        assert "theirs" not in inside.run(f"cat {folder}/theirs; ls {folder}").stdout


def test_a_command_cannot_signal_processes_outside(inside: Inside) -> None:
    with subprocess.Popen(["sleep", "600"]) as other:
        if inside.sandbox.mode is Mode.LANDLOCK and tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) < (6, 12):
            pytest.skip("NOT TESTED HERE: Landlock keeps signals inside from Linux 6.12 on")
        assert inside.run(f"kill -9 {other.pid}").returncode != 0
        assert other.poll() is None
        other.kill()


TCP, UDP = "bash -c 'echo hi > /dev/tcp/127.0.0.1/{port}'", "bash -c 'echo hi > /dev/udp/127.0.0.1/{port}'"


@pytest.mark.parametrize("network", [True, False])
def test_the_network_is_there_or_not_as_it_is_configured(mode: str, tmp_path: Path, network: bool) -> None:
    inside = Inside(mode, tmp_path, network=network)
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        udp.settimeout(10.0 if network else 0.2)
        assert (inside.run(TCP.format(port=tcp.getsockname()[1])).returncode == 0) is network
        inside.run(UDP.format(port=udp.getsockname()[1]))
        try:
            reached = udp.recv(10) == b"hi\n"
        except TimeoutError:
            reached = False
        assert reached is network


CONNECT = """perl -MSocket -e '
    {open} or die "no socket: $!";
    connect(S, sockaddr_un("{path}")) or die "no connection: $!";
    print "connected"'"""


@pytest.mark.parametrize(
    ("kind", "opened"),
    [
        (socket.SOCK_STREAM, "socket(S, AF_UNIX, SOCK_STREAM, 0)"),
        (socket.SOCK_DGRAM, "socket(S, AF_UNIX, SOCK_DGRAM, 0)"),
        (socket.SOCK_DGRAM, "socketpair(S, T, AF_UNIX, SOCK_DGRAM, 0)"),
    ],
    ids=["stream", "datagrams", "one of a pair"],
)
def test_programs_that_listen_on_a_socket_of_the_file_system_cannot_be_asked_to_act(inside: Inside, kind: int, opened: str) -> None:
    """A service manager or Docker would do outside whatever a command asks for."""
    path = inside.home / "bus"
    with socket.socket(socket.AF_UNIX, kind) as listening:
        listening.bind(str(path))
        if kind == socket.SOCK_STREAM:
            listening.listen()
        line = CONNECT.replace("{open}", opened).replace("{path}", str(path))
        assert run(unconfined(inside), inside.place, line).stdout == "connected", "the trial itself works"
        done = inside.run(line)
    assert done.returncode != 0 and done.stdout == "", done


def unconfined(inside: Inside) -> Sandbox:
    return choose("none", home=inside.home, shared=None, network=True, environment=os.environ)


def test_pairs_of_sockets_still_work_inside(inside: Inside) -> None:
    done = inside.run("perl -MSocket -e 'socketpair(S, T, AF_UNIX, SOCK_STREAM, 0) or die $!; print \"pair\"'")
    assert done.stdout == "pair", done


def test_nothing_inside_becomes_more_than_it_was(inside: Inside) -> None:
    status = inside.run("grep -e ^NoNewPrivs -e ^CapEff /proc/self/status").stdout.split()
    assert status == ["CapEff:", "0" * 16, "NoNewPrivs:", "1"]


def test_bubblewrap_hides_a_home_that_lies_in_the_shared_folder_or_among_the_programs(tmp_path: Path) -> None:
    inside = Inside("bubblewrap", tmp_path, home="project/.holdfast", shared="project")
    (tmp_path / "project" / "readme").write_text("read me")
    assert inside.run("cat readme; touch made; ls -A .holdfast").stdout == "read me" + "sandboxes\n"
    assert (tmp_path / "project" / "made").exists()
    assert TOKEN not in inside.run("cat .holdfast/token").stdout


def test_a_sandbox_that_shows_the_home_folder_is_none(tmp_path: Path) -> None:
    """Landlock cannot leave out a part of a folder. That is found by trying, and every command asks then."""
    holding("landlock", tmp_path)
    home = tmp_path / "project" / ".holdfast"
    home.mkdir(parents=True)
    (home / "token").write_text(TOKEN)
    found = choose("landlock", home=home, shared=tmp_path / "project", network=True, environment=os.environ)
    assert (found.mode, found.confines) == (Mode.NONE, False)
    assert found.missing == ("Landlock: the home folder of Holdfast can be read from inside.",)
    assert found.gaps == ("Commands can do everything that you can, so those of a model ask first.",)


def test_the_best_one_is_chosen_and_what_is_missing_is_said(tmp_path: Path) -> None:
    few = tmp_path / "few" / "bin"
    few.mkdir(parents=True)
    for name in ("cat", "ls", "dirname"):
        (few / name).symlink_to(f"/usr/bin/{name}")
    holding("landlock", tmp_path)
    found = choose("auto", home=tmp_path, shared=None, network=True, environment={"PATH": str(few)})
    assert (found.mode, found.missing) == (Mode.LANDLOCK, ("Bubblewrap: the program bwrap is not installed.",))
    off = choose("none", home=tmp_path, shared=None, network=True, environment=os.environ)
    assert (off.mode, off.missing) == (Mode.NONE, ("The setting tools.sandbox switches it off.",))


def test_a_program_that_fails_is_no_sandbox_and_its_words_are_told(tmp_path: Path) -> None:
    """As where user namespaces are not allowed."""
    broken = tmp_path / "bin" / "bwrap"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    broken.chmod(0o755)
    environment = {"PATH": f"{broken.parent}:{os.environ['PATH']}"}
    found = choose("bubblewrap", home=tmp_path, shared=None, network=True, environment=environment)
    assert found.mode is Mode.NONE
    assert found.missing == ("Bubblewrap: a command in it failed (bwrap: setting up uid map: Permission denied).",)


def test_a_trial_leaves_nothing_behind(inside: Inside) -> None:
    assert {path.name for path in (inside.home / "sandboxes").iterdir()} == {"s_1"}


def test_of_the_users_own_folder_only_programs_are_shown(tmp_path: Path, mode: str) -> None:
    user = tmp_path / "user"
    for path in (".cargo/bin/tool", ".cargo/credentials.toml", ".pyenv/shims/snake", ".pyenv/version", "bin/script", ".ssh/id"):
        (user / path).parent.mkdir(parents=True, exist_ok=True)
        (user / path).write_text(path)
    home = user / ".holdfast"
    home.mkdir()
    holding(mode, home)
    own = (user / ".cargo/bin", user / ".pyenv/shims", user / "bin", user)
    path = ":".join((*map(str, own), "relative", os.environ["PATH"]))
    found = choose(mode, home=home, shared=None, network=True, environment={"PATH": path, "HOME": str(user)})
    place = Workspaces(home, folder=home / "work").make("s")
    shown = run(found, place, f"cd {user}; cat .cargo/bin/tool .cargo/credentials.toml .pyenv/version bin/script .ssh/id").stdout
    assert shown == ".cargo/bin/tool" + ".pyenv/version" + "bin/script"


def test_a_session_has_a_private_folder_of_its_own_and_loses_it(tmp_path: Path) -> None:
    spaces = Workspaces(tmp_path, folder=tmp_path / "work")
    assert spaces.sessions() == []
    made = spaces.make("s_1")
    assert made.folder == spaces.folder("s_1") == tmp_path / "work" / "s_1"
    assert {stat.S_IMODE(each.stat().st_mode) for each in (made.folder, made.home, made.tmp)} == {0o700}
    (made.folder / "closed").mkdir()
    (made.folder / "closed" / "file").write_text("")
    (made.folder / "closed").chmod(0)
    (made.folder / "link").symlink_to(tmp_path / "elsewhere")
    spaces.make("s_2")
    (tmp_path / "work" / "note.txt").write_text("somebody's")
    assert spaces.sessions() == ["s_1", "s_2"]
    spaces.remove("s_1")
    spaces.remove("s_1")
    assert spaces.sessions() == ["s_2"] and not made.folder.exists() and not made.home.exists()


def test_a_shared_folder_is_never_removed(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "s_1").mkdir()
    (tmp_path / "home").mkdir()
    spaces = Workspaces(tmp_path / "home", folder=tmp_path / "project", shared=True)
    assert spaces.make("s_1").folder == spaces.make("s_2").folder == tmp_path / "project"
    assert spaces.sessions() == ["s_1", "s_2"]
    spaces.remove("s_1")
    assert (tmp_path / "project" / "s_1").exists() and spaces.sessions() == ["s_2"]


@pytest.mark.parametrize("session_id", ["../up", "a/b", "", ".", "..", "\ud83d", "x" * 300, "s-1"])
def test_no_session_id_leads_out_of_the_folder(tmp_path: Path, session_id: str) -> None:
    assert Workspaces(tmp_path, folder=tmp_path / "work").make(session_id).folder.parent == tmp_path / "work"


@pytest.mark.parametrize("mode", MODES)
def test_a_home_that_was_moved_away_is_not_made_again_by_a_command(mode: str, tmp_path: Path) -> None:
    """Also where the folder of the tools holds it: an empty home would be taken for a new one."""
    inside = Inside(mode, tmp_path, home="project/home", shared="project")
    inside.home.rename(tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError):
        inside.workspaces.make("s_1")
    with pytest.raises(FileNotFoundError):
        inside.workspaces.make("s_2")
    assert not inside.home.exists()


def test_a_chosen_folder_is_used_as_it_is_and_neither_made_nor_removed(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    spaces = Workspaces(home, folder=home / "work")
    assert spaces.check(f"{project}/../project") == str(project)
    assert spaces.make("s_1", str(project)).folder == project and not (home / "work").exists()
    spaces.remove("s_1")
    assert project.exists()
    project.rmdir()
    with pytest.raises(UnfitFolder, match="there is no such folder"):
        spaces.make("s_1", str(project))
    assert not project.exists()


def test_a_chosen_folder_that_became_a_link_is_refused(tmp_path: Path) -> None:
    home, project, other = tmp_path / "home", tmp_path / "project", tmp_path / "other"
    for folder in (home, project, other):
        folder.mkdir()
    spaces = Workspaces(home, folder=home / "work")
    chosen = spaces.check(str(project))
    project.rmdir()
    project.symlink_to(other)
    with pytest.raises(UnfitFolder, match="it leads elsewhere now"):
        spaces.make("s_1", chosen)


@pytest.mark.parametrize(
    "folder", ["{home}", "{home}/work", "{home}/..", "/", "{link}", "relative", "/proc/self", "{home}/token", "/dev", "a\0b"]
)
def test_no_folder_is_chosen_through_which_the_home_folder_is_reached(tmp_path: Path, folder: str) -> None:
    home = tmp_path / "around" / "home"
    (home / "work").mkdir(parents=True)
    (home / "token").write_text(TOKEN)
    (tmp_path / "link").symlink_to(home.parent)
    with pytest.raises(UnfitFolder):
        Workspaces(home, folder=home / "work").check(folder.format(home=home, link=tmp_path / "link"))


def test_a_command_in_a_chosen_folder_changes_that_and_nothing_around_it(mode: str, tmp_path: Path) -> None:
    inside = Inside(mode, tmp_path)
    (tmp_path / "project").mkdir()
    (tmp_path / "letter").write_text("dear")
    place = inside.workspaces.make("s_1", str(tmp_path / "project"))
    done = run(inside.sandbox, place, f"echo built > result; cat ../letter; cat {inside.home}/token; echo x > ../other")
    assert "dear" not in done.stdout and TOKEN not in done.stdout and not (tmp_path / "other").exists(), done
    assert (tmp_path / "project" / "result").read_text() == "built\n"
