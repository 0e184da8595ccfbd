"""The status of a gateway: what `GET /api/status` returns and what the file `status.json` in the home folder says."""

from typing import Any

import msgspec


class Status(msgspec.Struct):
    """What the serving process says about itself. It may say more."""

    pid: int
    started_at: str
    version: str
    gateway_state: str
    since: str
    why: str | None
    url: str
    public_url: str | None
    running_turns: int
    retiring: list[Any]
    inbox: int
    outbox: int
    suspended: int
    pending: int
    safe_mode: bool
    paused_by: str | None
    paused_until: str | None
    supervisor: str
    platforms: Any
    home: str
    agent: str
    degraded: str | None
