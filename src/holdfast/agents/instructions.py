"""What a model is told before a conversation begins. It stays the same from step to step and from turn to turn of a day, so that providers
can keep it: what changes most often stands last.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import structlog

from holdfast.beneath import Beneath
from holdfast.core import keys
from holdfast.core.errors import BadInput
from holdfast.core.history import User
from holdfast.core.keys import SessionKey
from holdfast.core.plans.edit import OWNER
from holdfast.core.redaction import NO_SECRETS, Secrets
from holdfast.ports.agents import AgentRequest
from holdfast.ports.process import Clock
from holdfast.ports.tools import ToolSpec

WORK = """You are an assistant that does real work with the tools it is given. Look before you change something, and say what you did.
Your work survives interruptions: results of calls are kept. If the outcome of a call is unknown, check what it did before you repeat it."""
PROJECT = "AGENTS.md"
MEMORY = "memory"
# Of a file that comes with the instructions. More of it would crowd out the conversation.
MOST_CHARS = 32_000
MOST_OF_A_NAME = 100

log = structlog.get_logger()


class Extras(msgspec.Struct, frozen=True, kw_only=True):
    """What comes with the instructions. `project`: the text of AGENTS.md in the working folder, `memory`: what was kept for later."""

    project: str = ""
    memory: str = ""


def compose(work: str, *, key: SessionKey, person: str, tools: Sequence[ToolSpec], extras: Extras, today: str) -> str:
    """The system text. `work`: the configured instructions. `person`: who writes, where it is one person."""
    sections = [work.strip() or WORK, place(key, person)]
    if tools:
        sections.append(f"Your tools: {', '.join(tool.name for tool in tools)}.")
    if extras.project:
        sections.append(f"The working folder has this {PROJECT}:\n\n{extras.project}")
    if extras.memory:
        sections.append(f"What you noted earlier, in {MEMORY}/{key.profile}.md:\n\n{extras.memory}")
    return "\n\n".join([*sections, f"Today is {today}."])


def place(key: SessionKey, person: str = "") -> str:
    """Where the conversation is, and with whom."""
    if key.on_page:
        return "The user writes on a web page that shows Markdown."
    who = f"The user, {person}," if person and not several_write(key) else "The user"
    where = {"dm": "a direct chat", "group": "a group", "channel": "a channel", "thread": "a thread"}.get(key.chat_type, "a chat")
    others = " Several people may write here: each message begins with its sender." if several_write(key) else ""
    return f"{who} writes in {where} on {key.platform}.{others} Keep answers short enough to be read there."


def several_write(key: SessionKey) -> bool:
    return not key.on_page and key.chat_type != "dm" and key.user_id is None


def person(request: AgentRequest) -> str:
    """The person who wrote last, except on the page: the same from turn to turn, also where the owner writes in the conversation of
    somebody else. On one line, because it is their own word for themselves.
    """
    senders = (item.sender for item in reversed(request.history) if isinstance(item, User) and item.sender not in (None, OWNER))
    return " ".join((next(senders, None) or "").split())[:MOST_OF_A_NAME]


class Instructions:
    """`text`: the configured instructions, or `file` with them. `folder`: where a session works, given its id and the folder that was
    chosen for it. Files are read for each turn. `secrets` are told to no model.
    """

    def __init__(
        self,
        *,
        home: Path,
        clock: Clock,
        folder: Callable[[str, str | None], Path],
        text: str = "",
        file: Path | None = None,
        secrets: Secrets = NO_SECRETS,
    ) -> None:
        self._home, self._clock, self._folder, self._text, self._file = home, clock, folder, text, file
        self._secrets = secrets

    def read(self, request: AgentRequest) -> str:
        key = keys.parse(request.session_key)
        extras = Extras(
            project=self._read_beneath(self._folder(request.session_id, request.folder), PROJECT),
            memory=self._read(self._home / MEMORY / f"{key.profile}.md") if _plain(key.profile) else "",
        )
        work = self._work(self._file) if self._file is not None else self._secrets.text(self._text)
        return compose(work, key=key, person=self._secrets.text(person(request)), tools=request.tools, extras=extras, today=self._today())

    def _work(self, file: Path) -> str:
        """The turn continues without it, with our own instructions; the person who wrote the file must hear of that."""
        if not file.exists():
            log.warning("the file of the instructions is not there; the model gets Holdfast's own", path=str(file))
        return self._read(file)

    def _today(self) -> str:
        now = self._clock.now()
        local = datetime.fromtimestamp(now / 1000, UTC) + timedelta(seconds=self._clock.offset_s(now))
        return f"{local:%A, %-d %B %Y}"

    def _read_beneath(self, folder: Path, name: str) -> str:
        """Of a folder in which commands can write: a link there must not show what they cannot see, and a fifo must not hold us up."""
        return self._read(folder / name, lambda: Beneath(folder).open_file(name))

    def _read(self, path: Path, opened: Callable[[], int] | None = None) -> str:
        """As much of a file as is given, nothing if there is none. Half a secret is not given either."""
        try:
            with open(opened() if opened else path, encoding="utf-8", errors="replace") as file:
                text, more = file.read(MOST_CHARS), bool(file.read(1))
        except FileNotFoundError:
            return ""
        except (OSError, BadInput) as error:
            log.warning("a file of the instructions cannot be read", path=str(path), error=str(error))
            return ""
        clean = self._secrets.stream()
        given = clean.add(text)
        return f"{given.rstrip()}\n[The rest of this file is left out.]" if more else (given + clean.end()).strip()


def _plain(profile: str) -> bool:
    """Whether it can be the name of a file."""
    return "/" not in profile and not profile.startswith(".") and "\0" not in profile
