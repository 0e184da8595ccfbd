"""The status of a gateway: what `GET /api/status` returns, and what the file `status.json` in the home folder says."""

from typing import Any

import msgspec

from holdfast.core.process_id import ProcessId


class Process(msgspec.Struct, kw_only=True):
    """Which process it is."""

    pid: int
    process_started_at: int
    boot_id: str

    @property
    def process(self) -> ProcessId:
        return ProcessId(self.pid, self.process_started_at, self.boot_id)


class Retiring(Process, kw_only=True):
    """A process that finishes its turns after another one took over."""

    running_turns: int


class SandboxStatus(msgspec.Struct, kw_only=True):
    """Which sandbox commands run in, found out by trying: bubblewrap, landlock or none. `gaps`: what it does not keep, a sentence each.
    `missing`: why there is no better one.
    """

    mode: str
    network: bool
    gaps: list[str]
    missing: list[str]


class McpStatus(msgspec.Struct, kw_only=True):
    """A server whose tools agents may use. `state`: off, not started, starting, running, ending, failed or closed; of one that failed,
    `problem` says why. `tools`: how many it offers; `left_out`: those that it has and does not offer, and why.
    """

    name: str
    kind: str
    state: str
    tools: int
    trusted: bool
    problem: str | None
    left_out: list[str]


class JournalStatus(msgspec.Struct, kw_only=True):
    """What running turns, or dead processes, have in their spools and not in the database: `files` and `bytes`. `late`: how many journals
    of interrupted turns are still looked for.
    """

    files: int
    bytes: int
    late: int


class ChatStatus(msgspec.Struct, kw_only=True):
    """An account on a chat platform. `account`: its name there, once it is known. `problem`: what keeps it from working now. `waiting`:
    updates that are stored and not yet part of a conversation; `refused`: those that could not be read since the start.
    """

    platform: str
    account: str | None
    problem: str | None
    waiting: int
    refused: int


class Status(Process, kw_only=True):
    """What the serving process says about itself. A lock with the name `owner` proves that it is alive. `models`: those that a
    conversation may choose, the default first.
    """

    started_at: str
    version: str
    gateway_state: str
    since: str
    why: str | None
    url: str
    public_url: str | None
    running_turns: int
    retiring: list[Retiring]
    inbox: int
    outbox: int
    suspended: int
    pending: int
    safe_mode: bool
    paused_by: str | None
    paused_until: str | None
    platforms: list[str]
    chats: list[ChatStatus]
    home: str
    supervisor: str
    owner: str | None
    agent: str | None
    models: list[str]
    degraded: str | None
    stop_timeout_s: float
    sandbox: SandboxStatus | None
    mcp: list[McpStatus]
    journal: JournalStatus


# What a status of another version may lack.
_UNSAID: dict[str, Any] = {
    **dict.fromkeys(("boot_id", "started_at", "version", "since", "url", "home"), ""),
    **dict.fromkeys(("why", "public_url", "paused_by", "paused_until", "owner", "agent", "degraded", "sandbox")),
    **dict.fromkeys(("process_started_at", "running_turns", "inbox", "outbox", "suspended", "pending", "stop_timeout_s"), 0),
    "journal": {"files": 0, "bytes": 0, "late": 0},
    **{
        "gateway_state": "unknown",
        "supervisor": "plain",
        "retiring": [],
        "platforms": [],
        "chats": [],
        "models": [],
        "mcp": [],
        "safe_mode": False,
    },
}


def read(said: Any) -> Status | None:
    """The status in decoded JSON, whichever version wrote it; None if it is none."""
    if not isinstance(said, dict):
        return None
    try:
        return msgspec.convert(_UNSAID | said, Status)
    except msgspec.ValidationError:
        return None
