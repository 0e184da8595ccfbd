"""`holdfast status`: whether the gateway is running, and its state."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.options import home, home_option, json_option
from holdfast.cli.terminal.layout import ago, count, fields, moment, one_line, short, size, took, wrap
from holdfast.cli.terminal.output import as_typed, note, print_json, say
from holdfast.core.lifecycle import comes_back

if TYPE_CHECKING:
    from holdfast.api.status import ChatStatus, McpStatus, Status


@click.command("status")
@home_option
@json_option
def command(as_json: bool) -> int:
    """Show whether the gateway is running, and its state.

    Asks the gateway itself. If it does not answer but its process is alive, shows its status file. Exit code 0 if it runs, 1 if it does
    not, or hangs.
    """
    from holdfast.cli.access import running

    folder = home()
    found = running.find(folder)
    if found.status is None or not found.alive:
        if as_json:
            print_json({"running": False, "home": str(folder), "last": _plain(found.status)})
        else:
            say(f"No gateway runs on {folder}.")
            say(_last(found.status) if found.status else "Start it with `holdfast serve`.")
        return 1
    if found.hung_s:
        return _hung(found.status, found.hung_s, as_json)
    status, silent = _ask(found.status)
    if as_json:
        print_json({"running": True, "answers": silent is None, "hung": False} | _plain(status))
        return 0
    click.echo("\n".join(_lines(status, None if silent else _today())))
    if silent:
        note(f"This is from its status file. {silent}")
    return 0


def _plain(status: "Status | None") -> Any:
    from msgspec import to_builtins

    return to_builtins(status)


def _hung(status: "Status", silent_s: float, as_json: bool) -> int:
    if as_json:
        print_json({"running": True, "answers": False, "hung": True} | _plain(status))
    else:
        say(
            f"Process {status.pid} serves {status.home or home()} but hangs: no sign of life for {took(silent_s)}. Its last state "
            f"was {status.gateway_state}. `holdfast stop` ends it, by force if necessary; no accepted message is lost."
        )
    return 1


def _ask(status: "Status") -> tuple["Status", str | None]:
    """What the gateway says about itself; or its file, and why it could not be asked."""
    from holdfast.cli.access.client import connect
    from holdfast.core.errors import HoldfastError

    try:
        return connect(home()).status(), None
    except HoldfastError as error:
        return status, str(error)


def _last(status: "Status") -> str:
    supervisor, state = status.supervisor, status.gateway_state
    gone = f"The last one (process {status.pid}) is gone; its last state was {state}"
    if supervisor != "plain" and comes_back(state):
        return f"{gone}: not running, comes back with its supervisor ({supervisor})."
    return f"{gone}. Start it with `holdfast serve`."


def _agent(status: "Status") -> str:
    if not status.models:
        return status.agent or "none"
    first, *others = status.models
    return f"{first}, or {', '.join(others)} if a conversation chooses it" if others else first


def _server(server: "McpStatus") -> str:
    known = f"{server.name}: {server.state}" + (f", {count(server.tools, 'tool')}" if server.state == "running" else "")
    if server.problem:
        return click.style(f"{known}: {server.problem}", fg="yellow")
    return f"{known} ({len(server.left_out)} left out; `holdfast doctor` says why)" if server.left_out else known


def _today() -> str | None:
    """What models used today, if any was asked."""
    from holdfast.cli.access.client import connect
    from holdfast.core.errors import HoldfastError

    try:
        total = connect(home()).get("/api/usage", days=1)["total"]
    except HoldfastError:  # An earlier version does not know it.
        return None
    cost = "" if total["cost"] is None else f", ${total['cost'] / 1_000_000:,.2f}"
    return f"{total['input'] + total['output']:,} tokens in {count(total['requests'], 'request')}{cost}" if total["requests"] else None


def _chat(chat: "ChatStatus") -> str:
    name = f"{chat.platform} {chat.account}" if chat.account else chat.platform
    if chat.problem is not None:
        return click.style(f"{name}: {one_line(chat.problem)}", fg="yellow")
    refused = f", {count(chat.refused, 'update')} could not be read" if chat.refused else ""
    return f"{name}{refused}" if chat.account else f"{name}: connecting"


def _lines(status: "Status", today: str | None) -> list[str]:
    now = datetime.now().astimezone()
    state = status.gateway_state
    pairs = [("state", click.style(state, fg="green" if state == "running" else "yellow"))]
    if started := status.started_at:
        at = moment(started)
        pairs.append(("started", f"{short(at, now)} ({ago(at, now)})"))
    pairs += [
        ("process", str(status.pid)),
        ("home", status.home or str(home())),
        ("agent", _agent(status)),
        ("turns", f"{status.running_turns} running"),
        ("inbox", f"{count(status.inbox, 'message')} waiting for a turn"),
        ("outbox", f"{count(status.outbox, 'reply', 'replies')} to be sent"),
        *([("chats", _chat(chat)) for chat in status.chats] or [("chats", "none")]),
        *([("today", today)] if today else []),
        *(("mcp", _server(server)) for server in status.mcp),
    ]
    for retiring in status.retiring:
        pairs.append(("retiring", f"process {retiring.pid}, {count(retiring.running_turns, 'turn')} running"))
    pairs += [("suspended", count(status.suspended, "conversation"))] if status.suspended else []
    pairs += [("pending", count(status.pending, "conversation"))] if status.pending else []
    if status.paused_by and status.paused_until:
        until = short(moment(status.paused_until), now)
        pairs.append(("paused", click.style(f"by {status.paused_by} until {until}", fg="yellow")))
    if status.safe_mode:
        pairs.append(("safe mode", click.style("on", fg="red")))
    if status.journal.files:
        pairs.append(("journal", f"{size(status.journal.bytes)} in {count(status.journal.files, 'spool')}, not stored yet"))
    pairs += [("late", f"{count(status.journal.late, 'journal')} of interrupted turns")] if status.journal.late else []
    if status.degraded:
        pairs.append(("degraded", click.style(as_typed(status.degraded), fg="red")))
    return [f"Holdfast {status.version} at {status.url}", *fields(pairs), *_to_do(status)]


def _to_do(status: "Status") -> list[str]:
    """What an operator may want to do; empty for a healthy gateway."""
    lines = []
    if status.paused_by:
        lines.append("No turn starts during the pause; messages are saved. `holdfast unpause` ends it now.")
    if status.safe_mode:
        lines.append(
            "Safe mode: several starts in a row crashed, so no interrupted work is resumed automatically. Messages are answered as usual. "
            "It ends after ten healthy minutes, or when a pending conversation completes a turn; `holdfast resume --all` ends it now."
        )
    if status.pending:
        lines.append(
            "Pending conversations were interrupted; most continue by themselves. `holdfast sessions --state pending` says why one does "
            "not. Its next message, or `holdfast resume ID`, continues it."
        )
    if status.suspended:
        lines.append(
            "The next message to a suspended conversation starts a new one. `holdfast sessions --state suspended` lists them; "
            "`holdfast resume ID` brings one back."
        )
    if status.journal.late:
        lines.append(
            "Some output of interrupted turns could not be read and is still looked for. `holdfast journal show` says where it is."
        )
    return [line for text in lines for line in ("", *wrap(as_typed(text), ""))]
