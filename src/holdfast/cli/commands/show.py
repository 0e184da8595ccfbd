"""`holdfast show`: one conversation for reading at a terminal, or its log."""

import json
from datetime import datetime
from typing import Any

import click

from holdfast.cli.options import home, home_option, json_option
from holdfast.cli.terminal.layout import ago, count, cut, excerpt, given, moment, one_line, short, size, table, took, width, wrap
from holdfast.cli.terminal.output import as_typed, print_json
from holdfast.cli.terminal.questions import how_to_judge, is_approval

ROLES = {
    "user": ("you", "cyan"),
    "assistant": ("agent", "green"),
    "notice": ("notice", "yellow"),
    "cause": ("cause", "magenta"),
}
OUTCOMES = {"done": "green", "failed": "red", "unknown": "yellow", "completed": "green", "cancelled": "yellow", "set_aside": "red"}
STATUSES = {
    **{"partial": " (not finished)", "refused": " (not answered)", "command": " (to the gateway)"},
    "superseded": " (from an earlier attempt; recovered later)",
}


@click.command("show")
@home_option
@click.argument("key_or_id")
@click.option("--events", "as_events", is_flag=True, help="Show the log event by event instead of the conversation.")
@json_option
def command(key_or_id: str, as_events: bool, as_json: bool) -> None:
    """Show one conversation: its state, messages, tool calls, interruptions (and what was decided about them) and turns.

    KEY_OR_ID is a session id, its beginning, `last`, or a session key such as agent:main:telegram:dm:123. Works with and without a running
    gateway.
    """
    from holdfast.cli.access import conversations

    if as_events:
        events = conversations.events(home(), key_or_id)
        if as_json:
            print_json({"events": events})
        else:
            click.echo("\n".join(_event(event) for event in events))
        return
    session = conversations.view(home(), key_or_id)
    if as_json:
        print_json(session)
        return
    now = datetime.now().astimezone()
    lines = _head(session, now)
    for message in session["messages"]:
        lines += ["", *_message(message, now)]
    lines += _questions(session, now) + _processes(session, now) + _turns(session, now) + _failures(session, now)
    lines += _schedules(session, now)
    click.echo("\n".join(lines))


def _head(session: dict[str, Any], now: datetime) -> list[str]:
    from holdfast.cli.terminal import states

    begun, updated = moment(session["created_at"]), moment(session["updated_at"])
    columns = width()
    return [
        click.style(cut(one_line(session["title"] or "(no title)"), columns), bold=True),
        click.style(cut(f"{session['session_id']}  {session['session_key']}", columns), dim=True),
        f"{session['state']}; started {short(begun, now)}, last changed {short(updated, now)} ({ago(updated, now)})",
        *states.at_length(session, now),
    ]


def _message(message: dict[str, Any], now: datetime) -> list[str]:
    if message["role"] == "interruption":
        return _interruption(message, now)
    name, colour = ROLES.get(message["role"], (message["role"], "white"))
    name = message.get("cause") or name
    waits = message["role"] in ("user", "cause") and message["turn_id"] is None
    more = STATUSES.get(message["status"], " (waits for its turn)" if waits else "")
    if "schedule" in message:
        more = f" (for {message['schedule']['when']}){more}"
    lines = [f"{click.style(name, fg=colour, bold=True)}  {click.style(short(moment(message['created_at']), now) + more, dim=True)}"]
    for call in message.get("tool_calls", ()):
        lines += _call(call)
    if message["text"]:
        lines += wrap(as_typed(message["text"]) if message["role"] == "notice" else message["text"])
    return lines + [_attachment(part) for part in message["parts"] if "digest" in part]


def _attachment(part: dict[str, Any]) -> str:
    about = f"({part['media_type']}, {size(part['size'])})"
    return f"  + {cut(one_line(part['name'] or part['type']), 60)} {click.style(about, dim=True)}"


def _interruption(message: dict[str, Any], now: datetime) -> list[str]:
    continued = f" Continued (attempt {message['attempt']})." if message["attempt"] else ""
    text = f"{short(moment(message['created_at']), now)}  {message['text']}{continued}"
    why = message["decision"] or "the next start decides what happens to it"
    waits = ""
    if "stream_id" in message:
        since, tries = ago(moment(message["first_seen"]), now), count(message["tries"], "try", "tries")
        waits = f"journal: {message['stream_id']}, missing since {since}, {tries} so far"
    return [click.style(line, fg="yellow") for line in wrap(text, "!  ")] + [
        click.style(line, dim=True) for told in (f"why: {why}", waits) if told for line in wrap(told, "   ")
    ]


def _call(call: dict[str, Any]) -> list[str]:
    outcome = call["outcome"] or "running"
    columns = width()
    head = cut(f"  > {one_line(call['name'])}: {one_line(given(call['arguments']))}", columns - len(outcome) - 3 if columns else None)
    lines = [f"{head}  {click.style(outcome, fg=OUTCOMES.get(outcome, 'cyan'))}"]
    result = call["result"] or call["output"] or ""
    lines += [click.style(line, dim=True) for line in excerpt(result, "    ", hint=" (--json shows all)")]
    if late := call.get("late"):
        lines.append(click.style(f"    arrived later, and the agent was not told: {late['outcome']}", fg="yellow"))
        lines += [click.style(line, dim=True) for line in excerpt(late["result"], "    ", hint=" (--json shows all)")]
    return lines


def _questions(session: dict[str, Any], now: datetime) -> list[str]:
    lines = []
    for question in session["questions"]:
        expires = moment(question["expires_at"])
        if is_approval(question):
            lines += _approval(question, f"  (until {short(expires, now)})")
            continue
        lines += [
            "",
            click.style("the agent asks", fg="yellow", bold=True) + click.style(f"  (until {short(expires, now)})", dim=True),
            *wrap(question["text"]),
            *(line for choice in question["choices"] for line in wrap(one_line(choice), "  - ")),
        ]
    if not all(is_approval(question) for question in session["questions"]):
        lines.append(click.style(as_typed(f"  answer with `holdfast send {session['session_id']} TEXT`"), dim=True))
    return lines


def _approval(question: dict[str, Any], until: str) -> list[str]:
    """The call, whole, and how to answer."""
    return [
        "",
        click.style("the agent needs an approval", fg="yellow", bold=True) + click.style(until, dim=True),
        *wrap(question["text"]),
        *(click.style(as_typed(f"  {hint}"), dim=True) for hint in how_to_judge(question)),
    ]


def _processes(session: dict[str, Any], now: datetime) -> list[str]:
    """Those of the background that run."""
    lines = []
    for process in session.get("processes", ()):  # An older gateway knows none.
        if process["state"] == "running":
            began = moment(process["started_at"])
            lines += wrap(f"{process['process_id']}  {one_line(process['command'])} ({took((now - began).total_seconds())})", "  ")
    return ["", click.style("runs in the background", fg="cyan", bold=True), *lines] if lines else []


def _turns(session: dict[str, Any], now: datetime) -> list[str]:
    rows = []
    for turn in session["turns"]:
        began = moment(turn["started_at"])
        ended = moment(turn["ended_at"]) if turn["ended_at"] else None
        rows.append(
            (
                str(turn["generation"]),
                str(turn["attempt"]),
                turn["cause"],
                turn["outcome"] or turn["state"],
                short(began, now),
                took((ended - began).total_seconds()) if ended else "",
                one_line(turn["error"] or ""),
            )
        )
    if not rows:
        return ["", "No turn yet."]
    return [
        "",
        *table(("TURN", "ATTEMPT", "CAUSE", "STATE", "STARTED", "TOOK", "ERROR"), rows, flexible=6, optional=(2, 1), styles=OUTCOMES),
    ]


def _failures(session: dict[str, Any], now: datetime) -> list[str]:
    """The requests to models that failed."""
    lines: list[str] = []
    for turn in session["turns"]:
        for failure in turn.get("failures", ()):
            then = f"asked again {short(moment(failure['retry_at']), now)}" if failure["retry_at"] else "not asked again"
            where = f"turn {turn['generation']}, step {failure['step'] + 1}, try {failure['tries']}"
            told = f"{short(moment(failure['at']), now)}  {failure['model']} did not answer ({where}; {then}): {failure['why']}"
            lines += [click.style(line, fg="yellow") for line in wrap(told, "!  ")]
    return ["", *lines] if lines else []


def _schedules(session: dict[str, Any], now: datetime) -> list[str]:
    """What is planned; a gateway of version 0.1 plans nothing."""
    lines = []
    for each in session.get("schedules", ()):
        told = f"{each['schedule_id']}: {one_line(each['text'])} ({each['when']}; next {short(moment(each['due_at']), now)})"
        lines += [click.style(line, dim=True) for line in wrap(told, "@  ")]
    return ["", *lines] if lines else []


def _event(event: dict[str, Any]) -> str:
    data = dict(event["data"])
    at, attempt, position = data.pop("at", None), data.pop("attempt", None), data.pop("position", None)
    if event["event"] != "turn.started":
        data.pop("turn_id", None)  # It is the one of the turn that started last.
    time = f"{moment(at):%H:%M:%S}" if at else "--:--:--"
    where = "" if attempt is None else f"{attempt}.{position}"
    telling_first = sorted(data.items(), key=lambda item: item[0].endswith(("_id", "_ids")))
    body = " ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in telling_first if value is not None)
    seq = event["id"].rpartition(".")[2]
    return cut(f"{seq:>6}  {time}  {where:>7}  {event['event']:<17}  {one_line(body)}", width()).rstrip()
