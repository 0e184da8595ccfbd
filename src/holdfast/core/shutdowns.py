"""A stop of everything that lives on one home: what is asked for, and how a second request joins the first."""

import msgspec

# What running turns are told when they are interrupted: why the process ended.
STOPPED, RESTARTED = "shutdown_timeout", "restart_timeout"


class Shutdown(msgspec.Struct, frozen=True, kw_only=True):
    """`planned`: somebody asked for it who may, so it stays stopped. `now`: running turns get no more time to end."""

    why: str
    planned: bool
    now: bool = False


def joined(first: Shutdown | None, later: Shutdown) -> Shutdown:
    """One stop of both. The operator's word wins at any time: once planned, it stays planned; once without delay, it stays so (C28)."""
    if first is None:
        return later
    why = later.why if later.planned and not first.planned else first.why
    return Shutdown(why=why, planned=first.planned or later.planned, now=first.now or later.now)
