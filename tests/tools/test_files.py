"""The tools for files: what they give, what they change, and that no link, name or special file leads them out of their folder."""

import asyncio
import os
import socket
from collections.abc import AsyncIterable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from holdfast.beneath import Beneath, NotAFile, Outside
from holdfast.core import content
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.redaction import NO_SECRETS, Secrets
from holdfast.ports.blobs import Blob
from holdfast.ports.tools import ToolContext, ToolResult
from holdfast.sandbox import Mode, Sandbox
from holdfast.tools import files
from holdfast.tools.confinement import Confinement
from holdfast.tools.files.reading import LINE_CHARS, MOST_CHARS
from holdfast.tools.files.roots import FileTool, fingerprint
from holdfast.tools.workspaces import Workspaces

pytestmark = pytest.mark.anyio
SECRET = "the-token"
WITHIN_S = 30.0


@pytest.fixture(params=[True, False], ids=["by the kernel", "step by step"])
def beneath(request: pytest.FixtureRequest, tmp_path: Path) -> Beneath:
    (tmp_path / "root" / "in").mkdir(parents=True)
    (tmp_path / "root" / "in" / "file").write_text("inside")
    (tmp_path / "token").write_text(SECRET)
    return Beneath(tmp_path / "root", by_kernel=request.param)


def read(opened: int) -> str:
    with open(opened) as file:
        return file.read()


ESCAPES = {
    "by the folder above": "../token",
    "through the folder and up": "in/../../token",
    "by its whole path": "{around}/token",
    "by a link to the file": "link",
    "by a link to a folder": "folder/token",
    "by a link over a link": "chain",
    "by a whole path of a link": "{around}/root/link",
    "by a process": "process/token",
}


@pytest.mark.parametrize("path", ESCAPES.values(), ids=ESCAPES)
@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY | os.O_CREAT], ids=["to read", "to write"])
def test_nothing_leads_out_of_the_folder(beneath: Beneath, tmp_path: Path, path: str, flags: int) -> None:
    root = tmp_path / "root"
    (root / "link").symlink_to("../token")
    (root / "folder").symlink_to(tmp_path)
    (root / "chain").symlink_to("link")
    (root / "process").symlink_to(f"/proc/{os.getpid()}/cwd")
    with pytest.raises(Outside, match="is not in the folder of this conversation"):
        os.close(beneath.open(path.format(around=tmp_path), flags))
    assert (tmp_path / "token").read_text() == SECRET


def test_links_that_stay_inside_and_whole_paths_work(beneath: Beneath, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "link").symlink_to("in/file")
    (root / "in" / "up").symlink_to("../in")
    for path in ("link", "in/up/file", "in/../in/file", f"{root}/in/file", "./in//file"):
        assert read(beneath.open_file(path)) == "inside"


def test_a_link_that_is_put_there_while_we_look_leads_nowhere(beneath: Beneath, tmp_path: Path) -> None:
    """Whichever of the two is there at the moment: the file inside, or nothing."""
    inside, swapped = tmp_path / "root" / "in", tmp_path / "root" / "aside"
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "file").write_text(SECRET)
    for _ in range(200):
        inside.rename(swapped)
        inside.symlink_to(tmp_path / "secret")
        with pytest.raises((Outside, FileNotFoundError)):
            read(beneath.open_file("in/file"))
        inside.unlink()
        swapped.rename(inside)
        assert read(beneath.open_file("in/file")) == "inside"


def test_what_is_no_file_is_refused_and_holds_nobody_up(beneath: Beneath, tmp_path: Path) -> None:
    root = tmp_path / "root"
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(root / "socket"))
        for path, said in (("fifo", "special"), ("socket", "special"), ("in", "a folder"), (".", "a folder"), ("", "a folder")):
            with pytest.raises(NotAFile, match=said):
                beneath.open_file(path)
    with pytest.raises(FileNotFoundError):
        beneath.open_file("nothing")
    with pytest.raises(Outside):
        beneath.open_file("a\0b")


def test_folders_are_made_inside_only(beneath: Beneath, tmp_path: Path) -> None:
    os.close(beneath.open_folder("a/b/c", make=True))
    assert (tmp_path / "root" / "a" / "b" / "c").is_dir()
    (tmp_path / "root" / "out").symlink_to(tmp_path)
    for path in ("out/made", "../made", str(tmp_path / "made")):
        with pytest.raises(Outside):
            beneath.open_folder(path, make=True)
    assert not (tmp_path / "made").exists()


class Desk:
    """All tools for files, for one session, next to commands without a sandbox."""

    def __init__(self, home: Path, mode: Mode = Mode.NONE) -> None:
        self.home = home
        workspaces = Workspaces(home, folder=home / "work")
        self.folder = workspaces.make("s_1").folder
        self.roots = files.Roots(home, workspaces, Confinement(lambda: Sandbox(mode=mode, network=True, hidden=home)))
        self.blobs: dict[str, bytes] = {}
        made: list[FileTool] = [files.AttachFile(self.roots, self.put, most_bytes=1000)]
        made += [kind(self.roots) for kind in (files.ReadFile, files.ListFiles, files.SearchFiles, files.WriteFile, files.EditFile)]
        self.tools = {tool.name: tool for tool in made}

    async def put(self, chunks: AsyncIterable[bytes], *, media_type: str) -> Blob:
        data = b"".join([chunk async for chunk in chunks])
        self.blobs["d" * 64] = data
        return Blob(digest="d" * 64, size=len(data), media_type=media_type, file="f")

    async def use(self, called: str, /, *, profile: str = "main", secrets: Secrets = NO_SECRETS, **arguments: Any) -> ToolResult:
        async def output(text: str) -> None: ...

        tool = self.tools[called]
        jsonschema_rs.validator_for(tool.schema).validate(arguments)
        key = f"agent:{profile}:web:page:s_1"
        context = ToolContext(
            session_id="s_1", session_key=key, generation=1, turn_id="t", call_id="c", key="k", output=output, secrets=secrets
        )
        async with asyncio.timeout(WITHIN_S):
            return await tool.run(arguments, context)

    async def done(self, called: str, /, **arguments: Any) -> str:
        result = await self.use(called, **arguments)
        assert result.outcome is ToolOutcome.DONE, result
        return result.text

    async def fails(self, called: str, /, **arguments: Any) -> str:
        result = await self.use(called, **arguments)
        assert result.outcome is ToolOutcome.FAILED, result
        return result.text


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "token").write_text(SECRET)
    return Desk(tmp_path)


async def test_a_file_is_written_read_and_edited_by_its_hash(desk: Desk) -> None:
    said = await desk.done("write_file", path="notes/a.md", content="one\ntwo\n")
    first, second = fingerprint(b"one\ntwo\n"), fingerprint(b"one\nthree\n")
    assert said == f"notes/a.md has 8 bytes now (hash {first})."
    assert await desk.done("read_file", path="notes/a.md") == f"[hash {first}, 2 lines]\none\ntwo\n"
    said = await desk.done("edit_file", path="notes/a.md", hash=first, old="two", new="three")
    assert said == f"notes/a.md is changed (hash {second})."
    assert (desk.folder / "notes" / "a.md").read_text() == "one\nthree\n"
    assert sorted(path.name for path in (desk.folder / "notes").iterdir()) == ["a.md"]


async def test_what_somebody_changed_since_it_was_read_is_not_overwritten(desk: Desk) -> None:
    await desk.done("write_file", path="a", content="mine")
    read = fingerprint(b"mine")
    (desk.folder / "a").write_text("theirs")
    assert "'a' is not as it was read" in await desk.fails("edit_file", path="a", hash=read, old="mine", new="x")
    assert "'a' is not as it was read" in await desk.fails("write_file", path="a", hash=read, content="x")
    assert "is there already" in await desk.fails("write_file", path="a", content="x")
    assert (desk.folder / "a").read_text() == "theirs"
    await desk.done("write_file", path="a", content="x", hash=fingerprint(b"theirs"))
    assert (desk.folder / "a").read_text() == "x"


async def test_a_call_that_runs_twice_changes_nothing_the_second_time(desk: Desk) -> None:
    """P5: after an interruption nobody knows whether it was done, so it is run again."""
    write = {"path": "a", "content": "one"}
    assert await desk.done("write_file", **write) == await desk.done("write_file", **write)
    edit = {"path": "a", "hash": fingerprint(b"one"), "old": "one", "new": "one one"}
    await desk.done("edit_file", **edit)
    assert "perhaps this very call before an interruption" in await desk.fails("edit_file", **edit)
    assert (desk.folder / "a").read_text() == "one one"
    effects = {name: tool.effect({}) for name, tool in desk.tools.items()}
    assert {name for name, effect in effects.items() if effect is Effect.PURE} == {"read_file", "list_files", "search_files"}
    assert {name for name, effect in effects.items() if effect is Effect.IDEMPOTENT} == {"write_file", "edit_file", "attach_file"}


@pytest.mark.parametrize("name", ["read_file", "write_file", "edit_file", "list_files", "search_files", "attach_file"])
@pytest.mark.parametrize("path", ["../../token", "link", "/etc/passwd", "up/token"])
async def test_no_tool_leaves_the_folder(desk: Desk, name: str, path: str) -> None:
    (desk.folder / "link").symlink_to("../../token")
    (desk.folder / "up").symlink_to("../..")
    more = {"write_file": {"content": "x"}, "edit_file": {"hash": "h", "old": "t", "new": "x"}, "search_files": {"text": "t"}}
    said = await desk.fails(name, path=path, **more.get(name, {}))
    assert SECRET not in said and "is not in the folder of this conversation" in said
    assert (desk.home / "token").read_text() == SECRET


async def test_a_passage_must_stand_there_once(desk: Desk) -> None:
    (desk.folder / "a").write_text("a b a")
    read = fingerprint(b"a b a")
    assert "stands 2 times" in await desk.fails("edit_file", path="a", hash=read, old="a", new="c")
    assert "stands nowhere" in await desk.fails("edit_file", path="a", hash=read, old="z", new="c")


async def test_what_is_no_text_too_large_missing_or_special_is_said(desk: Desk) -> None:
    (desk.folder / "picture").write_bytes(b"\x89PNG\0\xff")
    os.mkfifo(desk.folder / "fifo")
    with (desk.folder / "large").open("wb") as file:
        file.truncate(11 * 1024 * 1024)
    assert await desk.fails("read_file", path="picture") == "'picture' is not text (6 bytes)."
    assert await desk.fails("read_file", path="nothing") == "There is no 'nothing'."
    assert await desk.fails("read_file", path="large") == "'large' is too large (11,534,336 bytes). Look at parts of it with the terminal."
    for name, more in (("read_file", {}), ("write_file", {"content": "x"}), ("attach_file", {})):
        assert await desk.fails(name, path="fifo", **more) == "'fifo' is a special file, not a file."
        assert await desk.fails(name, path=".", **more) == "'.' is a folder, not a file."


async def test_a_long_file_comes_in_parts(desk: Desk) -> None:
    (desk.folder / "long").write_text("".join(f"{number}\n" for number in range(1, 5001)))
    said = await desk.done("read_file", path="long")
    assert "lines 1 to 2000 of 5000]\n1\n" in said and said.endswith("\n2000\n")
    assert (await desk.done("read_file", path="long", from_line=4999, lines=10)).endswith("lines 4999 to 5000 of 5000]\n4999\n5000\n")
    (desk.folder / "wide").write_text(("w" * 40_000 + "\n") * 3)
    said = await desk.done("read_file", path="wide")
    assert "lines 1 to 1 of 3]" in said and len(said) < 41_000


async def test_a_folder_is_listed_and_searched(desk: Desk) -> None:
    assert await desk.done("list_files") == "[empty]"
    (desk.folder / "src").mkdir()
    (desk.folder / "src" / "a.py").write_text("import os\nprint('Hello')\n")
    (desk.folder / "src" / "b.txt").write_text("hello again")
    (desk.folder / "src" / "picture").write_bytes(b"hello\0")
    (desk.folder / "src" / "link").symlink_to(desk.home / "token")
    os.mkfifo(desk.folder / "src" / "fifo")
    assert await desk.done("list_files", path="src") == (
        f"a.py  25 bytes\nb.txt  11 bytes\nfifo  (special file)\nlink -> {desk.home}/token\npicture  6 bytes"
    )
    assert await desk.done("list_files") == "src/"
    assert await desk.done("search_files", text="hello") == "src/a.py:2: print('Hello')\nsrc/b.txt:1: hello again"
    assert await desk.done("search_files", text="hello", path="src", names="*.py") == "src/a.py:2: print('Hello')"
    assert await desk.done("search_files", text=SECRET) == "[nothing found]"
    (desk.folder / "many").write_text("hello\n" * 500)
    said = await desk.done("search_files", text="hello")
    assert len(said.splitlines()) == 201 and said.endswith("[There may be more: search a part of it.]")


async def test_a_replaced_file_keeps_its_permissions_and_a_link_is_not_written_through(desk: Desk) -> None:
    script = desk.folder / "run.sh"
    script.write_text("echo 1")
    script.chmod(0o755)
    await desk.done("edit_file", path="run.sh", hash=fingerprint(b"echo 1"), old="1", new="2")
    assert script.stat().st_mode & 0o777 == 0o755
    (desk.folder / "link").symlink_to("run.sh")
    said = await desk.fails("write_file", path="link", content="x", hash=fingerprint(b"echo 2"))
    assert said == "'link' is a link. Name the file that it leads to." and script.read_text() == "echo 2"


async def test_the_memory_is_one_file_of_the_profile(desk: Desk) -> None:
    await desk.done("write_file", root="memory", path="main.md", content="Ann likes tea.\n")
    assert (desk.home / "memory" / "main.md").read_text() == "Ann likes tea.\n"
    assert "Ann likes tea." in await desk.done("read_file", root="memory", path="main.md")
    for path in ("other.md", "../token", "main.md/../../token", "."):
        assert await desk.fails("read_file", root="memory", path=path) == "The memory has one file for this conversation: main.md."
    assert "one file for this conversation: other.md" in await desk.fails("read_file", profile="other", root="memory", path="main.md")


KNOWN = Secrets({"KEY": "hunter2-hunter2"})


async def test_the_memory_never_holds_a_secret_and_other_files_are_the_users_own(desk: Desk) -> None:
    """DESIGN 11: not even one that is put together from two edits."""
    note = {"root": "memory", "path": "main.md", "secrets": KNOWN}
    said = await desk.fails("write_file", content="key: hunter2-hunter2", **note)
    assert said == "'main.md' was not changed: it would hold a secret, and the memory must not. Leave the secret out."
    await desk.done("write_file", content="key: hunter2-", **note)
    assert "would hold a secret" in await desk.fails("edit_file", hash=fingerprint(b"key: hunter2-"), old="r2-", new="r2-hunter2", **note)
    assert (desk.home / "memory" / "main.md").read_text() == "key: hunter2-"
    await desk.done("write_file", path="env", content="hunter2-hunter2", secrets=KNOWN)
    assert (desk.folder / "env").read_text() == "hunter2-hunter2"


async def test_no_half_of_a_secret_is_given_where_a_text_is_shortened(desk: Desk) -> None:
    """DESIGN 11"""
    (desk.folder / "long").write_text("x" * (MOST_CHARS - 7) + "hunter2-hunter2")
    (desk.folder / "line").write_text("wanted " + "y" * (LINE_CHARS - 14) + "hunter2-hunter2")
    assert "hunter2" not in await desk.done("read_file", path="long", secrets=KNOWN)
    assert "hunter2" not in await desk.done("search_files", text="wanted", secrets=KNOWN)


async def test_a_file_is_attached_for_the_user(desk: Desk) -> None:
    (desk.folder / "plot.png").write_bytes(b"\x89PNG\0")
    result = await desk.use("attach_file", path="plot.png", name="Plot 1.png")
    (part,) = content.attached(result.content)
    assert result.text == "Plot 1.png (5 bytes) is attached."
    assert isinstance(part, content.ImagePart) and (part.size, part.name, part.media_type) == (5, "Plot 1.png", "image/png")
    assert desk.blobs[part.blob] == b"\x89PNG\0"
    (desk.folder / "large").write_bytes(b"x" * 1001)
    said = await desk.fails("attach_file", path="large")
    assert said == "'large' is too large to be attached: 1,001 bytes, and at most 1,000 are allowed."


async def test_where_a_tool_works_is_said_and_that_it_stays_there(desk: Desk) -> None:
    assert {(tool.place("s_1", None), tool.confined({})) for tool in desk.tools.values()} == {(str(desk.folder), True)}


@pytest.mark.parametrize(("name", "concerns"), [("read_file", False), ("write_file", True), ("edit_file", True)])
async def test_a_change_of_the_memory_concerns_other_conversations_and_reading_it_does_not(desk: Desk, name: str, concerns: bool) -> None:
    tool = desk.tools[name]
    assert tool.shared({"path": "main.md", "root": "memory"}) is concerns
    assert not tool.shared({"path": "main.md", "root": "work"}) and not tool.shared({"path": "main.md"})


GITS = [".git/config", "a/.git/hooks/post-commit", ".git", "./a/../.GIT/config", "a/.git/x/y", "HEAD", "a/head"]


@pytest.mark.parametrize("name", ["write_file", "edit_file"])
@pytest.mark.parametrize(
    ("path", "asks"), [*((path, True) for path in GITS), ("a.git/x", False), (".gitignore", False), ("a/HEAD/b", False)]
)
async def test_what_git_obeys_is_changed_unasked_only_if_commands_have_a_sandbox(tmp_path: Path, name: str, path: str, asks: bool) -> None:
    """E4: an allowed `git status` runs the programs that its settings name, where they are."""
    for mode, confined in ((Mode.NONE, not asks), (Mode.BUBBLEWRAP, True)):
        tool = Desk(tmp_path, mode).tools[name]
        await tool.ready()
        assert tool.confined({"path": path}) is confined
    assert Desk(tmp_path).tools["read_file"].confined({"path": path})


@pytest.mark.parametrize("path", ["docs/config", "docs/new/x", "plain"])
async def test_no_link_hides_that_a_file_is_one_that_git_obeys(desk: Desk, path: str) -> None:
    (desk.folder / ".git").mkdir()
    (desk.folder / ".git" / "config").write_text("[core]")
    (desk.folder / "docs").symlink_to(".git")
    (desk.folder / "plain").symlink_to(".git/config")
    hash = fingerprint(b"[core]")
    assert "which git obeys" in await desk.fails("write_file", path=path, content="x", hash=hash)
    if path != "docs/new/x":
        assert "which git obeys" in await desk.fails("edit_file", path=path, hash=hash, old="[core]", new="x")
    assert (desk.folder / ".git" / "config").read_text() == "[core]" and not (desk.folder / ".git" / "new").exists()
    await desk.done("write_file", path=".git/config", content="x", hash=hash)
