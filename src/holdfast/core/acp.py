"""The Agent Client Protocol, spoken to an agent that is another program. Its output folds into moves: text, thoughts, reported calls,
requests for permission, replies. The same output always folds into the same moves, so that it can be read again after a crash.
"""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.core.effects import ToolOutcome

VERSION = 1
UNFINISHED = {
    "max_tokens": "The agent reached its limit of tokens, so the answer is not complete. Ask for the rest.",
    "max_turn_requests": "The agent reached its limit of requests for one turn, so the work is not complete. Ask it to continue.",
    "refusal": "The agent refused to answer this. Put the request in other words, or start a new conversation.",
}
AUTH_REQUIRED, METHOD_NOT_FOUND = -32000, -32601
ALLOW_ONCE, ALLOW_ALWAYS, REJECT_ONCE, REJECT_ALWAYS = "allow_once", "allow_always", "reject_once", "reject_always"
_OUTCOMES = {"completed": ToolOutcome.DONE, "failed": ToolOutcome.FAILED}
MOST_NAME = 60


# what it does, in order


class Said(msgspec.Struct, frozen=True):
    text: str


class Thought(msgspec.Struct, frozen=True):
    text: str


class Started(msgspec.Struct, frozen=True):
    """A call that the agent makes itself. `call`: the agent's id of it."""

    call: str
    name: str
    arguments: dict[str, Any]


class PutOut(msgspec.Struct, frozen=True):
    call: str
    text: str


class Finished(msgspec.Struct, frozen=True):
    call: str
    outcome: ToolOutcome
    text: str


class Option(msgspec.Struct, frozen=True):
    id: str
    name: str
    kind: str


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """It asks for a permission. `request`: the id of its request. `number`: how many permissions it asked for earlier in this prompt.
    `call`: the agent's id of the call.
    """

    request: int | str
    number: int
    call: str | None
    name: str
    arguments: dict[str, Any]
    options: tuple[Option, ...]


class Wanted(msgspec.Struct, frozen=True):
    """A request that Holdfast does not serve."""

    request: int | str
    method: str


class Replied(msgspec.Struct, frozen=True):
    """The reply to a request of ours, or its error."""

    request: int | str
    result: dict[str, Any]
    error: str | None = None
    code: int | None = None


Move = Said | Thought | Started | PutOut | Finished | Asked | Wanted | Replied


class _Call(msgspec.Struct):
    name: str = "tool"
    title: str = ""
    arguments: dict[str, Any] = {}
    started: bool = False
    told: str = ""
    ended: bool = False


class State(msgspec.Struct):
    """The state of a fold, so that it can continue in the middle of a long output. `apart`: a call came since the last text."""

    calls: dict[str, _Call] = {}
    asked: int = 0
    message: str | None = None
    spoke: bool = False
    apart: bool = False


class Fold:
    """Turns lines of one session's output into moves. Lines that it does not understand are skipped."""

    def __init__(self, session: str | None, state: State | None = None) -> None:
        self._session, self.state = session, state or State()

    def feed(self, line: bytes) -> Iterator[Move]:
        try:
            said = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return  # Not a message: some agents print warnings here.
        if not isinstance(said, dict):
            return
        request, method, given = said.get("id"), said.get("method"), said.get("params")
        given = given if isinstance(given, dict) else {}
        if method is None:
            if isinstance(request, int | str):
                yield _replied(request, said)
        elif method == "session/update":
            update = given.get("update")
            if given.get("sessionId") == self._session and isinstance(update, dict):
                yield from self._update(update)
        elif not isinstance(request, int | str):
            return  # A notification that is not for us.
        elif method == "session/request_permission" and given.get("sessionId") == self._session:
            yield from self._permission(request, given)
        else:
            yield Wanted(request, str(method))

    def _update(self, update: dict[str, Any]) -> Iterator[Move]:
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                yield from self._say(update)
            case "agent_thought_chunk":
                if text := _text(update.get("content")):
                    yield Thought(text)
            case "tool_call" | "tool_call_update":
                yield from self._call(update)

    def _say(self, update: dict[str, Any]) -> Iterator[Move]:
        """Separates the agent's messages by a blank line, because they become one answer."""
        text, message, state = _text(update.get("content")), update.get("messageId"), self.state
        if not text:
            return
        named = message if isinstance(message, str) else state.message
        if state.spoke and (state.apart or named != state.message):
            yield Said("\n\n")
        state.message, state.spoke, state.apart = named, True, False
        yield Said(text)

    def _call(self, update: dict[str, Any]) -> Iterator[Move]:
        name = update.get("toolCallId")
        if not isinstance(name, str) or (call := self._known(name, update)).ended:
            return
        status, text = str(update.get("status")), _content(update.get("content"))
        if not call.started and (status in ("in_progress", *_OUTCOMES) or text):
            yield self._begin(name, call)
        if text.startswith(call.told) and len(text) > len(call.told):
            if status not in _OUTCOMES:
                yield PutOut(name, text[len(call.told) :])
            call.told = text
        if status in _OUTCOMES:
            self.state.calls[name] = _Call(name=call.name[:MOST_NAME], ended=True)  # The state is recorded: it must stay small.
            yield Finished(name, _OUTCOMES[status], text or call.told or _raw(update.get("rawOutput")))

    def _known(self, name: str, update: dict[str, Any]) -> _Call:
        call = self.state.calls.setdefault(name, _Call())
        if call.ended:
            call = _Call(name=call.name, ended=True)  # Nothing more is kept of it.
        kind, title, arguments = update.get("kind"), update.get("title"), update.get("rawInput")
        call.name = kind if isinstance(kind, str) and kind != "other" else call.name
        call.title = title if isinstance(title, str) else call.title
        if isinstance(arguments, dict) and arguments:
            call.arguments = arguments
        return call

    def _begin(self, name: str, call: _Call) -> Started:
        call.started = self.state.apart = True
        return Started(name, call.name[:MOST_NAME], call.arguments or ({"title": call.title} if call.title else {}))

    def _permission(self, request: int | str, given: dict[str, Any]) -> Iterator[Move]:
        wanted, offered = given.get("toolCall"), given.get("options")
        wanted = wanted if isinstance(wanted, dict) else {}
        name = wanted.get("toolCallId")
        call = self._known(name, wanted) if isinstance(name, str) else _Call()
        number, self.state.asked = self.state.asked, self.state.asked + 1
        yield Asked(
            request=request,
            number=number,
            call=name if isinstance(name, str) else None,
            name=call.name[:MOST_NAME],
            arguments=call.arguments or ({"title": call.title} if call.title else {}),
            options=tuple(_options(offered if isinstance(offered, list) else [])),
        )


def _replied(request: int | str, said: dict[str, Any]) -> Replied:
    error, result = said.get("error"), said.get("result")
    if isinstance(error, dict):
        code = error.get("code")
        return Replied(request, {}, str(error.get("message") or "it does not say why"), code if isinstance(code, int) else None)
    return Replied(request, result if isinstance(result, dict) else {})


def _options(offered: list[Any]) -> Iterator[Option]:
    for each in offered:
        if isinstance(each, dict) and isinstance(each.get("optionId"), str):
            yield Option(each["optionId"], str(each.get("name") or each["optionId"]), str(each.get("kind")))


def _text(content: Any) -> str:
    """The text of a content block; other kinds are only named."""
    if not isinstance(content, dict):
        return ""
    match content.get("type"):
        case "text":
            return str(content.get("text") or "")
        case "resource_link":
            return f"[{content.get('name') or content.get('uri')}]"
        case "image" | "audio" as kind:
            return f"[{kind}]"
        case _:
            return ""


def _content(content: Any) -> str:
    """The output of a call so far."""
    told = []
    for each in content if isinstance(content, list) else []:
        match each:
            case {"type": "content", "content": inner}:
                told.append(_text(inner))
            case {"type": "diff", "path": path, "newText": new}:
                told.append(_diff(str(path), each.get("oldText"), str(new)))
    return "\n".join(text for text in told if text)


def _diff(path: str, old: Any, new: str) -> str:
    lines = [f"--- {path}"] if isinstance(old, str) and old else [f"+++ {path} (new)"]
    if isinstance(old, str):
        lines += [f"- {line}" for line in old.splitlines()]
    return "\n".join([*lines, *(f"+ {line}" for line in new.splitlines())])


def _raw(output: Any) -> str:
    if output is None:
        return ""
    if isinstance(output, dict) and isinstance(output.get("output"), str):
        return str(output["output"])
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)


# what is sent to it


def request(name: int | str, method: str, given: dict[str, Any]) -> bytes:
    return _line({"jsonrpc": "2.0", "id": name, "method": method, "params": given})


def notification(method: str, given: dict[str, Any]) -> bytes:
    return _line({"jsonrpc": "2.0", "method": method, "params": given})


def reply(name: int | str, result: dict[str, Any]) -> bytes:
    return _line({"jsonrpc": "2.0", "id": name, "result": result})


def refusal(wanted: Wanted) -> bytes:
    error = {"code": METHOD_NOT_FOUND, "message": f"Holdfast does not offer {wanted.method}."}
    return _line({"jsonrpc": "2.0", "id": wanted.request, "error": error})


def _line(said: dict[str, Any]) -> bytes:
    return msgspec.json.encode(said) + b"\n"


def initialize(version: str) -> dict[str, Any]:
    """Offers the agent neither files nor terminals: it has its own."""
    return {
        "protocolVersion": VERSION,
        "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
        "clientInfo": {"name": "holdfast", "title": "Holdfast", "version": version},
    }


def chosen(asked: Asked, *, approved: bool, always: bool) -> dict[str, Any]:
    """The reply to a request for permission: one of the options that it offers, or a cancellation if none fits."""
    allowing = (ALLOW_ALWAYS, ALLOW_ONCE) if always else (ALLOW_ONCE, ALLOW_ALWAYS)
    for kind in allowing if approved else (REJECT_ONCE, REJECT_ALWAYS):
        for option in asked.options:
            if option.kind == kind:
                return {"outcome": {"outcome": "selected", "optionId": option.id}}
    return cancelled()


def cancelled() -> dict[str, Any]:
    return {"outcome": {"outcome": "cancelled"}}


def always(asked: Asked) -> str | None:
    """The agent's name for "allow from now on", if it offers that in addition to "allow once"."""
    kinds = {option.kind for option in asked.options}
    offered = next((option.name for option in asked.options if option.kind == ALLOW_ALWAYS), None)
    return offered if ALLOW_ONCE in kinds else None


class Abilities(msgspec.Struct, frozen=True):
    """What an agent says about itself. `resumes`, `loads`: how it can continue a session in a new process. `takes`: image, audio."""

    name: str = "The agent"
    resumes: bool = False
    loads: bool = False
    takes: tuple[str, ...] = ()
    sign_in: tuple[str, ...] = ()


def abilities(replied: dict[str, Any]) -> Abilities:
    can = _table(replied.get("agentCapabilities"))
    prompts, sessions, info = (
        _table(can.get("promptCapabilities")),
        _table(can.get("sessionCapabilities")),
        _table(replied.get("agentInfo")),
    )
    methods = replied.get("authMethods")
    return Abilities(
        name=str(info.get("title") or info.get("name") or "The agent"),
        resumes=sessions.get("resume") is not None,
        loads=can.get("loadSession") is True,
        takes=tuple(kind for kind in ("image", "audio") if prompts.get(kind) is True),
        sign_in=tuple(
            str(each.get("description") or each.get("name"))
            for each in (methods if isinstance(methods, list) else [])
            if isinstance(each, dict)
        ),
    )


def _table(found: Any) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}
