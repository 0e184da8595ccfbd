"""Who may come in: the token of this home and the sign-ins that ended, followed while they change."""

import asyncio
import contextlib
from pathlib import Path

import structlog

from holdfast.config import Config, make_token, public_origin, read_token
from holdfast.core.errors import Refused, Unavailable
from holdfast.core.redaction import Secrets
from holdfast.process.this_process import ThisProcess
from holdfast.store import SqliteStore
from holdfast.web.access import Access

CREDENTIALS_S = 0.5

log = structlog.get_logger()


async def access(config: Config, this: ThisProcess, store: SqliteStore, *, port: int) -> Access:
    token = read_token(config.home) or make_token(config.home)
    this.secrets.know({"token": token})
    found = Access(token, clock=this.clock, port=port, hosts=config.allowed_hosts, public=public_origin(config))
    found.end_sign_ins(await store.signed_out(now=this.clock.now()))
    this.tasks.spawn(_follow(config.home, found, token, store, this.secrets), name="credentials")
    return found


async def _follow(home: Path, access: Access, known: str, store: SqliteStore, known_secrets: Secrets) -> None:
    """A token that was replaced counts within a second, and the old one no more; a sign-in that ended in another process is over here."""
    while True:
        await asyncio.sleep(CREDENTIALS_S)
        with contextlib.suppress(Unavailable):
            access.end_sign_ins(await store.signed_out(now=access.now()))
        try:
            found = read_token(home)
        except Refused as error:
            log.warning("the token cannot be read", error=str(error))
            continue
        if found and found != known:
            known_secrets.know({"token": found})
            access.use_token(found)
            known = found
