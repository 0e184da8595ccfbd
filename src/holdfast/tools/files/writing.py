"""Changing files: each is replaced as a whole, so that nobody finds half of one, and only if it is as it was read.

Running such a call twice does nothing the second time: what a call wants is there already, or the file is no longer as it was read.
"""

import os
import secrets
import stat
from typing import Any

from holdfast.beneath import Beneath, NotAFile
from holdfast.core import policy
from holdfast.core.effects import Effect
from holdfast.core.errors import BadInput
from holdfast.ports.tools import ToolResult
from holdfast.tools.files.roots import MOST_BYTES, PATH, ROOT, FileTool, Spot, as_text, done, failed, fingerprint

HASH = {"type": "string", "description": "The hash that read_file gave for it."}


class ChangingTool(FileTool):
    """What git obeys is not changed unasked where its commands run without a sandbox: what it names there would run without one, too."""

    async def ready(self) -> None:
        await self._roots.ready()

    def effect(self, arguments: dict[str, Any]) -> Effect:
        return Effect.IDEMPOTENT

    def confined(self, arguments: dict[str, Any]) -> bool:
        return self._roots.commands_are_confined or not policy.obeyed_by_git(str(arguments.get("path", "")))


class WriteFile(ChangingTool):
    name = "write_file"
    description = "Writes a whole text file, and makes the folders around it. To replace one that is there, give the hash of what you read."
    schema: dict[str, Any] = {  # noqa: RUF012 - nobody changes a schema.
        "type": "object",
        "properties": {"path": PATH, "root": ROOT, "content": {"type": "string"}, "hash": HASH},
        "required": ["path", "content"],
        "additionalProperties": False,
    }

    def _act(self, spot: Spot, arguments: dict[str, Any]) -> ToolResult:
        path, new = spot.path, _encoded(str(arguments["content"]))
        try:
            there: bytes | None = spot.content()
        except FileNotFoundError:
            there = None
        if there is not None and there != new:
            if "hash" not in arguments:
                return failed(f"{path!r} is there already (hash {fingerprint(there)}). Read it first; then give its hash to replace it.")
            if arguments["hash"] != fingerprint(there):
                return failed(_changed(path))
        if there != new:
            _write(spot, new, there=there is not None)
        return done(f"{path} has {len(new):,} bytes now (hash {fingerprint(new)}).")


class EditFile(ChangingTool):
    name = "edit_file"
    description = "Replaces a passage of a text file. The passage must stand in it exactly once."
    schema: dict[str, Any] = {  # noqa: RUF012 - nobody changes a schema.
        "type": "object",
        "properties": {
            "path": PATH,
            "root": ROOT,
            "hash": HASH,
            "old": {"type": "string", "minLength": 1, "description": "The passage as it stands there, with all spaces."},
            "new": {"type": "string", "description": "What is to stand there instead."},
        },
        "required": ["path", "hash", "old", "new"],
        "additionalProperties": False,
    }

    def _act(self, spot: Spot, arguments: dict[str, Any]) -> ToolResult:
        path, content = spot.path, spot.content()
        if arguments["hash"] != fingerprint(content):
            return failed(_changed(path))
        text, old = as_text(content, path), str(arguments["old"])
        if (times := text.count(old)) != 1:
            return failed(f"The passage stands {f'{times} times' if times else 'nowhere'} in {path!r}. Give more of what is around it.")
        new = _encoded(text.replace(old, str(arguments["new"])))
        _write(spot, new, there=True)
        return done(f"{path} is changed (hash {fingerprint(new)}).")


def _changed(path: str) -> str:
    return f"{path!r} is not as it was read: somebody changed it since, perhaps this very call before an interruption. Read it again."


def _encoded(text: str) -> bytes:
    content = text.encode("utf-8", "replace")
    if len(content) > MOST_BYTES:
        raise BadInput(f"That is too much for one file: {len(content):,} bytes, and at most {MOST_BYTES:,} are allowed.")
    return content


def _write(spot: Spot, content: bytes, *, there: bool) -> None:
    """The memory is in the home folder and is given to every conversation, so no secret is written there, in parts either. A file that is
    `there` is written by the editor that shows it, if one does, so that its unsaved changes and the agent's do not collide.
    """
    if spot.keeps_none and spot.secrets.holds(content.decode()):
        raise BadInput(f"{spot.path!r} was not changed: it would hold a secret, and the memory must not. Leave the secret out.")
    if (meant := _meant(spot)) is not None:
        raise BadInput(f"{spot.path!r} was not changed: a link in it leads to {meant!r}, which git obeys. Name it like that.")
    if there and spot.shown is not None and spot.shown.write(content.decode()):
        return
    replace(spot.beneath, spot.path, content)


def _meant(spot: Spot) -> str | None:
    """What git obeys, if a path leads there by a link, so that nobody could see it in the name."""
    real = os.path.relpath(os.path.realpath(spot.beneath.root / spot.path), spot.beneath.root)
    return real if policy.obeyed_by_git(real) and not policy.obeyed_by_git(spot.path) else None


def replace(beneath: Beneath, path: str, content: bytes) -> None:
    """With the permissions of the one that is there. A link is not replaced, and not written through. Raises `BadInput`, `OSError`."""
    around, name = os.path.split(path)
    if name in ("", ".", ".."):
        raise NotAFile(path, "a folder")
    folder = beneath.open_folder(around or ".", make=True)
    new = f".{name[:100]}.{secrets.token_hex(4)}"
    try:
        mode = _mode(folder, name, path)
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder), "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        try:
            os.unlink(new, dir_fd=folder)
        except FileNotFoundError:
            pass
        raise
    finally:
        os.close(folder)


def _mode(folder: int, name: str, path: str) -> int:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return 0o644
    if stat.S_ISLNK(found):
        raise BadInput(f"{path!r} is a link. Name the file that it leads to.")
    if not stat.S_ISREG(found):
        raise NotAFile(path, "a folder" if stat.S_ISDIR(found) else "a special file")
    return stat.S_IMODE(found)
