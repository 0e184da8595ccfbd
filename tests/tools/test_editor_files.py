"""Files that an editor has open: tools read and write them there, saved or not; where no editor answers, the disk counts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.effects import ToolOutcome
from holdfast.core.errors import HoldfastError
from holdfast.gateway import editors as module
from holdfast.gateway.editors import READ, WRITE, Editors, FileAnswer, FileRequest
from holdfast.ports.tools import ToolContext, ToolResult
from holdfast.process.system import RandomIds
from holdfast.sandbox import Mode, Sandbox
from holdfast.tools import files
from holdfast.tools.confinement import Confinement
from holdfast.tools.files.roots import fingerprint
from holdfast.tools.workspaces import Workspaces

pytestmark = pytest.mark.anyio

KEY = "agent:main:web:page:s_1"


class Project:
    """A folder that is open in an editor. `shown`: the files as the editor has them. `asked`: what it was asked for."""

    def __init__(self, around: Path, *, silent: bool = False, takes_s: float = 0) -> None:
        self.home, self.folder = around / "home", around / "project"
        self.home.mkdir()
        self.folder.mkdir()
        (self.folder / "a.txt").write_text("saved\n")
        self.editors = Editors(RandomIds(), used=True)
        self.shown: dict[str, str] = {}
        self.asked: list[tuple[str, str]] = []
        self._silent, self._takes_s = silent, takes_s
        roots = files.Roots(
            self.home,
            Workspaces(self.home, folder=self.home / "work"),
            Confinement(lambda: Sandbox(mode=Mode.NONE, network=True, hidden=self.home)),
            self.editors,
        )
        self.tools = {tool.name: tool for tool in (files.ReadFile(roots), files.WriteFile(roots), files.EditFile(roots))}

    @asynccontextmanager
    async def open(self, *offers: str) -> AsyncIterator[None]:
        """An editor shows it."""
        task = asyncio.ensure_future(self._edit(offers))
        await asyncio.sleep(0)
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _edit(self, offers: tuple[str, ...]) -> None:
        answers: list[FileAnswer] = []
        while True:
            wanted = await self.editors.serve("s_1", offers, answers)
            if wanted:
                await asyncio.sleep(self._takes_s)
            answers = [] if self._silent else [self._answer(each) for each in wanted]

    def _answer(self, wanted: FileRequest) -> FileAnswer:
        name = str(Path(wanted.path).relative_to(self.folder))
        self.asked.append((wanted.what, name))
        if wanted.what == WRITE and name == "locked":
            return FileAnswer(request_id=wanted.request_id, failed="it is locked")
        if wanted.what == WRITE:
            self.shown[name] = wanted.text or ""
            return FileAnswer(request_id=wanted.request_id)
        text = self.shown.get(name)
        return FileAnswer(request_id=wanted.request_id, text=text, failed=None if text is not None else "it is not there")

    async def use(self, called: str, *, chosen: bool = True, **arguments: Any) -> ToolResult:
        async def output(text: str) -> None: ...

        context = ToolContext(
            session_id="s_1", session_key=KEY, generation=1, turn_id="t", call_id="c", key="k", output=output,
            folder=str(self.folder) if chosen else None,
        )  # fmt: skip
        async with asyncio.timeout(20):
            return await self.tools[called].run(arguments, context)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


async def test_what_is_not_saved_is_read_and_changed_in_the_editor(project: Project) -> None:
    project.shown["a.txt"] = "not saved\n"
    async with project.open(READ, WRITE):
        read = await project.use("read_file", path="a.txt")
        assert read.text == f"[hash {fingerprint(b'not saved' + bytes([10]))}, 1 lines]\nnot saved\n"
        stale = await project.use("edit_file", path="a.txt", hash=fingerprint(b"saved\n"), old="saved", new="kept")
        assert stale.outcome is ToolOutcome.FAILED and "not as it was read" in stale.text
        edited = await project.use("edit_file", path="a.txt", hash=fingerprint(b"not saved\n"), old="not saved", new="kept")
        assert edited.outcome is ToolOutcome.DONE and project.shown["a.txt"] == "kept\n"
        assert (project.folder / "a.txt").read_text() == "saved\n", "the editor saves it, or its user does"
        new = await project.use("write_file", path="b.txt", content="new")
        assert new.outcome is ToolOutcome.DONE and (project.folder / "b.txt").read_text() == "new"
        assert (WRITE, "b.txt") not in project.asked


async def test_without_an_editor_that_gives_a_file_the_disk_counts(project: Project) -> None:
    assert "saved" in (await project.use("read_file", path="a.txt")).text
    async with project.open(READ):
        assert "saved" in (await project.use("read_file", path="a.txt")).text and project.asked == [(READ, "a.txt")]
        done = await project.use("write_file", path="a.txt", content="more", hash=fingerprint(b"saved\n"))
        assert done.outcome is ToolOutcome.DONE and (project.folder / "a.txt").read_text() == "more"
    async with project.open():
        assert "more" in (await project.use("read_file", path="a.txt")).text and (WRITE, "a.txt") not in project.asked


async def test_an_editor_is_asked_only_for_files_of_a_folder_that_was_chosen(project: Project) -> None:
    """Nothing outside of it, and nothing of a conversation that works elsewhere, or of the memory."""
    (project.home.parent / "letter").write_text("dear")
    async with project.open(READ, WRITE):
        for path in ("../letter", "../home/token", str(project.home.parent / "letter")):
            assert (await project.use("read_file", path=path)).outcome is ToolOutcome.FAILED
        (project.folder / "link").symlink_to(project.home.parent / "letter")
        assert (await project.use("read_file", path="link")).outcome is ToolOutcome.FAILED
        await project.use("read_file", path="a.txt", chosen=False)
        await project.use("write_file", path="main.md", root="memory", content="x")
        assert project.asked == []


async def test_an_editor_that_does_not_write_says_so_and_the_disk_is_not_written_behind_its_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P5: whether it wrote is not known if it says nothing; what is read meanwhile comes from the disk."""
    monkeypatch.setattr(module, "ANSWERS_S", 0.2)
    project = Project(tmp_path, silent=True)
    async with project.open(READ, WRITE):
        assert "saved" in (await project.use("read_file", path="a.txt")).text
        with pytest.raises(HoldfastError, match="did not say whether it wrote"):
            await project.use("write_file", path="a.txt", content="x", hash=fingerprint(b"saved\n"))
    assert (project.folder / "a.txt").read_text() == "saved\n"


async def test_an_editor_that_takes_long_to_answer_is_asked_for_the_next_file_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is not read while the editor has changes that are not saved."""
    monkeypatch.setattr(module, "STAYS_S", 0.05)
    project = Project(tmp_path, takes_s=0.5)
    project.shown = {"a.txt": "not saved\n", "b.txt": "not saved either\n"}
    (project.folder / "b.txt").write_text("saved\n")
    async with project.open(READ, WRITE):
        first = asyncio.ensure_future(project.use("read_file", path="a.txt"))
        await asyncio.sleep(0.25)
        assert "not saved either" in (await project.use("read_file", path="b.txt")).text
        assert "not saved" in (await first).text


async def test_an_editor_that_only_writes_is_not_given_what_was_read_from_the_disk(project: Project) -> None:
    project.shown["a.txt"] = "not saved\n"
    async with project.open(WRITE):
        assert "not saved" not in (await project.use("read_file", path="a.txt")).text
        done = await project.use("write_file", path="a.txt", content="more", hash=fingerprint(b"saved\n"))
    assert done.outcome is ToolOutcome.DONE and (project.folder / "a.txt").read_text() == "more"
    assert project.shown == {"a.txt": "not saved\n"} and project.asked == []


async def test_why_an_editor_refused_is_told(project: Project) -> None:
    (project.folder / "locked").write_text("old")
    async with project.open(READ, WRITE):
        refused = await project.use("write_file", path="locked", content="new", hash=fingerprint(b"old"))
    assert refused.outcome is ToolOutcome.FAILED and "it is locked" in refused.text
