"""Which folder a call is about, and what all tools for files have in common: they read and write in a thread, and only beneath it."""

import asyncio
import errno
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from holdfast.beneath import Beneath
from holdfast.core import keys
from holdfast.core.effects import Effect, ToolOutcome
from holdfast.core.errors import BadInput
from holdfast.core.redaction import Secrets
from holdfast.ports.tools import Buffers, ToolContext, ToolResult
from holdfast.tools.confinement import Confinement
from holdfast.tools.plain import PlainTool
from holdfast.tools.workspaces import Workspaces

T = TypeVar("T")
WORK, MEMORY = "work", "memory"
# Of a file that is read or changed as a whole.
MOST_BYTES = 10 * 1024 * 1024
PATH = {"type": "string", "description": "A path in the working folder."}
ROOT = {
    "enum": [WORK, MEMORY],
    "description": "Where the path starts. work: the working folder, also if this is left out. memory: one file with your notes for later"
    " conversations, PROFILE.md (main.md if nothing else is configured).",
}


class Shown(NamedTuple):
    """A file as the editor has it that shows the conversation. For threads: `loop` is the one that the editor is asked in."""

    buffers: Buffers
    loop: asyncio.AbstractEventLoop
    session_id: str
    path: str

    def read(self) -> str | None:
        return asyncio.run_coroutine_threadsafe(self.buffers.read(self.session_id, self.path), self.loop).result()

    def write(self, text: str) -> bool:
        return asyncio.run_coroutine_threadsafe(self.buffers.write(self.session_id, self.path, text), self.loop).result()


class Spot(NamedTuple):
    """What a call is about. `secrets`: to be replaced before a text is shortened. `keeps_none`: no secret may be written there. `shown`: by
    an editor, if there may be one.
    """

    beneath: Beneath
    path: str
    secrets: Secrets
    keeps_none: bool
    shown: Shown | None = None

    def content(self) -> bytes:
        """Of a file that is on disk; as the editor has it, if there is one. Raises `BadInput`, `OSError`."""
        saved = read_whole(self.beneath.open_file(self.path), self.path)
        text = self.shown.read() if self.shown is not None else None
        return saved if text is None else text.encode("utf-8", "replace")

    def text(self, content: bytes) -> str:
        """Of a file, without secrets. Raises `BadInput` for what is no text."""
        return self.secrets.text(as_text(content, self.path))


class Roots:
    """`home` is the home folder of Holdfast. `confinement`: of commands in the same folders. `buffers`: the files of editors."""

    def __init__(self, home: Path, workspaces: Workspaces, confinement: Confinement, buffers: Buffers | None = None) -> None:
        self._memory, self._workspaces, self._confinement, self._buffers = home / MEMORY, workspaces, confinement, buffers

    async def ready(self) -> None:
        await self._confinement.found()

    @property
    def commands_are_confined(self) -> bool:
        sandbox = self._confinement.known
        return sandbox is not None and sandbox.confines

    def shown(self, root: str, path: str, context: ToolContext) -> Shown | None:
        """Only a folder that was chosen for its conversation can be open in an editor."""
        if self._buffers is None or root != WORK or context.folder is None:
            return None
        place = os.path.normpath(os.path.join(context.folder, path))
        return Shown(self._buffers, asyncio.get_running_loop(), context.session_id, place)

    def place(self, session_id: str, folder: str | None) -> str:
        return str(self._workspaces.folder(session_id, folder))

    def beneath(self, root: str, path: str, context: ToolContext) -> Beneath:
        """Raises `BadInput`, `OSError`."""
        if root == MEMORY:
            own = f"{keys.parse(context.session_key).profile}.md"
            if path != own or "/" in own or own.startswith("."):
                raise BadInput(f"The memory has one file for this conversation: {own}.")
            self._memory.mkdir(mode=0o700, exist_ok=True)
            return Beneath(self._memory)
        if root != WORK:
            raise BadInput(f"There is no root {root!r}. It is {WORK} or {MEMORY}.")
        return Beneath(self._workspaces.open(context.session_id, context.folder))


class FileTool(PlainTool):
    """A tool that acts on a file or a folder beneath a root. What keeps it there also keeps it from asking."""

    name = ""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots

    def effect(self, arguments: dict[str, Any]) -> Effect:
        return Effect.PURE

    def place(self, session_id: str, folder: str | None) -> str:
        return self._roots.place(session_id, folder)

    def confined(self, arguments: dict[str, Any]) -> bool:
        return True

    def shared(self, arguments: dict[str, Any]) -> bool:
        """The memory is given to every conversation of the profile."""
        return arguments.get("root") == MEMORY and self.effect(arguments) is not Effect.PURE

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        path, root = str(arguments.get("path", ".")), str(arguments.get("root", WORK))
        try:
            shown = self._roots.shown(root, path, context)
            spot = Spot(self._roots.beneath(root, path, context), path, context.secrets, keeps_none=root == MEMORY, shown=shown)
            return await in_thread(self._act, spot, arguments)
        except BadInput as error:
            return failed(str(error))
        except OSError as error:
            return failed(why(error, path))

    def _act(self, spot: Spot, arguments: dict[str, Any]) -> ToolResult:
        raise NotImplementedError


def done(text: str) -> ToolResult:
    return ToolResult(ToolOutcome.DONE, text)


def failed(text: str) -> ToolResult:
    return ToolResult(ToolOutcome.FAILED, text)


def why(error: OSError, path: str) -> str:
    if error.errno == errno.ENOENT:
        return f"There is no {path!r}."
    return f"{path!r}: {error.strerror or error}."


def fingerprint(content: bytes) -> str:
    """By which an edit knows that a file is as it was read."""
    return hashlib.sha256(content).hexdigest()[:16]


def read_whole(opened: int, path: str) -> bytes:
    """Closes it. Raises `BadInput` for a file that is too large."""
    with open(opened, "rb") as file:
        content = file.read(MOST_BYTES + 1)
        size = os.fstat(file.fileno()).st_size
    if len(content) > MOST_BYTES:
        raise BadInput(f"{path!r} is too large ({size:,} bytes). Look at parts of it with the terminal.")
    return content


def as_text(content: bytes, path: str) -> str:
    """Raises `BadInput` for what is no text."""
    try:
        if b"\0" in content:
            raise ValueError
        return content.decode("utf-8")
    except ValueError:
        raise BadInput(f"{path!r} is not text ({len(content):,} bytes).") from None


async def in_thread(work: Callable[..., T], *arguments: Any) -> T:
    """A call that was cancelled is over when its thread is: nothing of it happens later."""
    running = asyncio.get_running_loop().run_in_executor(None, work, *arguments)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        raise
