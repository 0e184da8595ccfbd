"""Holdfast as an agent: what it answers to the requests of an editor. Every request has a thread, so that none holds up another."""

import os
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from holdfast import __version__
from holdfast.api.status import Status
from holdfast.cli.access.client import ApiError, Client
from holdfast.cli.access.conversations import WHOLE_ID
from holdfast.cli.access.insisting import Insisting
from holdfast.cli.acp import prompts, updates
from holdfast.cli.acp.editor import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, NOT_FOUND, BadRequest, Editor, Message
from holdfast.cli.acp.files import Files, Offers, offers
from holdfast.cli.acp.turns import Turn
from holdfast.core.commands import COMMANDS
from holdfast.core.errors import HoldfastError, UnfitFolder

T = TypeVar("T")
VERSION = 1
PAGE = 50
MODEL = "model"
# Those that leave the editor in the conversation that it shows.
OFFERED = ("status", "model", "remind", "help")
# How long requests that are quick, and stops, may take once the editor has closed its side.
ENDS_S = 3.0
# Requests that open a conversation in the editor and need no turn.
OPENING = ("session/new", "session/resume")


class Opened(NamedTuple):
    """`notes`: what the editor's user should know about it."""

    session_id: str
    result: dict[str, Any]
    notes: tuple[str, ...]


class Agent:
    """`moved`: sessions whose conversation continues in another one, because they were suspended or reset. `met`: whether the gateway was
    there once; from then on requests wait for it to come back. `typed`: our sentences with commands as people type them here.
    """

    def __init__(self, home: Path, editor: Editor, typed: Callable[[str], str]) -> None:
        self._home, self._editor, self._typed = home, editor, typed
        self._met = False
        self._offers = Offers()
        self._moved: dict[str, str] = {}
        self._turns: dict[str, set[Turn]] = {}
        self._answers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "initialize": self._initialize,
            "authenticate": lambda params: {},
            "session/list": self._list,
            "session/set_config_option": self._choose,
        }

    def serve(self) -> None:
        """Until the editor closes its side. Turns continue without it."""
        quick: list[threading.Thread] = []
        for message in self._editor.messages():
            quick = [thread for thread in quick if thread.is_alive()]
            if message.method == "session/cancel":
                quick += [_thread(turn.cancel) for turn in tuple(self._turns.get(str(message.params.get("sessionId")), ()))]
            elif message.id is None:
                continue  # A notification that we do not know.
            elif message.method in ("session/prompt", "session/load"):
                self._begin(message)
            elif message.method in self._answers or message.method in OPENING:
                quick.append(_thread(self._guarded, message, self._answer))
            else:
                self._editor.refuse(message.id, METHOD_NOT_FOUND, f"Holdfast does not offer {message.method}.")
        for thread in quick:
            thread.join(ENDS_S)

    def _guarded(self, message: Message, work: Callable[[Message], None]) -> None:
        """The boundary of a request: here an error becomes an answer."""
        assert message.id is not None
        try:
            work(message)
        except BadRequest as error:
            self._editor.refuse(message.id, error.rpc, str(error))
        except HoldfastError as error:
            gone = isinstance(error, ApiError) and error.status in (404, 410)
            self._editor.refuse(message.id, NOT_FOUND if gone else INTERNAL_ERROR, self._typed(str(error)))
        except BrokenPipeError:
            pass  # The editor is gone.
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            self._editor.refuse(message.id, INTERNAL_ERROR, f"Something unexpected went wrong ({type(error).__name__}: {error}).")

    def _answer(self, message: Message) -> None:
        assert message.id is not None
        if message.method in OPENING:
            opened = self._new(message.params) if message.method == "session/new" else self._resume(message.params)
            self._editor.reply(message.id, opened.result)
            self._greet(opened)
        else:
            self._editor.reply(message.id, self._answers[message.method](message.params))

    def _ask(self, ask: Callable[[Client], T]) -> T:
        insist = Insisting(self._home, tell=lambda sentence: None, met=self._met)
        try:
            return insist(ask)
        finally:
            self._met = self._met or insist.met

    # sessions

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        self._offers = offers(params)
        return {
            "protocolVersion": VERSION,
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": prompts.TAKES,
                "mcpCapabilities": {"http": False, "sse": False},
                "sessionCapabilities": {"list": {}, "resume": {}},
            },
            "agentInfo": {"name": "holdfast", "title": "Holdfast", "version": __version__},
            "authMethods": [],
        }

    def _new(self, params: dict[str, Any]) -> Opened:
        """In the folder of the editor, or with a note why not."""
        folder, notes = params.get("cwd"), _unused(params)
        if not isinstance(folder, str):
            raise BadRequest(INVALID_PARAMS, "`cwd` must be an absolute path.")
        try:
            made = self._ask(lambda client: client.post("/api/sessions", {"folder": folder}))
        except ApiError as error:
            if error.code != UnfitFolder.code:
                raise
            made = self._ask(lambda client: client.post("/api/sessions"))
            notes = (f"{error} This conversation works in the default folder instead.", *notes)
        session_id = made.body["session_id"]
        return Opened(session_id, {"sessionId": session_id, **self._options(None)}, notes)

    def _resume(self, params: dict[str, Any]) -> Opened:
        session_id = _session_id(params)
        session = self._ask(lambda client: client.session(session_id))
        return Opened(session_id, self._options(session["model"]), _notes(params, session))

    def _list(self, params: dict[str, Any]) -> dict[str, Any]:
        """Without those of other folders. A conversation that belongs to no folder is said to be in the one that the editor asks for."""
        cursor, wanted = params.get("cursor"), params.get("cwd")
        if not isinstance(cursor, str | None) or not isinstance(wanted, str | None):
            raise BadRequest(INVALID_PARAMS, "`cursor` must be the `nextCursor` of an earlier list, and `cwd` a path.")
        folder = wanted or str(self._home)
        found = self._ask(lambda client: client.get("/api/sessions", limit=PAGE, before=cursor))
        sessions = [
            {
                "sessionId": each["session_id"],
                "cwd": each.get("folder", folder),
                "title": each["title"] or each.get("excerpt") or None,
                "updatedAt": each["updated_at"],
            }
            for each in found["sessions"]
            if not wanted or same_folder(each.get("folder", folder), folder)
        ]
        return {"sessions": sessions} | ({"nextCursor": found["next"]} if found["next"] else {})

    def _greet(self, opened: Opened) -> None:
        """The commands there are, and what should be known about the conversation."""
        known = [
            {"name": name, "description": COMMANDS[name].sentence, **({"input": {"hint": form}} if form else {})}
            for name in OFFERED
            for form in [COMMANDS[name].form.partition(" ")[2]]
        ]
        self._editor.update(opened.session_id, {"sessionUpdate": "available_commands_update", "availableCommands": known})
        for sentence in opened.notes:
            self._editor.update(opened.session_id, updates.note(self._typed(sentence)))

    # models

    def _options(self, chosen: str | None) -> dict[str, Any]:
        status: Status = self._ask(lambda client: client.status())
        if not status.models:
            return {}
        current = chosen if chosen in status.models else status.models[0]
        option = {
            "id": MODEL,
            "name": "Model",
            "category": "model",
            "type": "select",
            "currentValue": current,
            "options": [{"value": name, "name": name} for name in status.models],
        }
        return {"configOptions": [option]}

    def _choose(self, params: dict[str, Any]) -> dict[str, Any]:
        session_id, value = self._current(_session_id(params)), params.get("value")
        if params.get("configId") != MODEL or not isinstance(value, str):
            raise BadRequest(INVALID_PARAMS, "Only the option 'model' can be set, to one of its values.")
        changed = self._ask(lambda client: client.change(session_id, model=value)).body
        return {"configOptions": [], **self._options(changed["model"])}

    # turns

    def _current(self, session_id: str) -> str:
        return self._moved.get(session_id, session_id)

    def _begin(self, message: Message) -> None:
        """The turn is known before the next message is read, because that may cancel it."""
        known_as = str(message.params.get("sessionId"))
        turn = Turn(self._home, self._editor, known_as, Files(self._home, self._editor, known_as, self._offers))
        turns = self._turns.setdefault(known_as, set())
        turns.add(turn)

        def work(message: Message) -> None:
            try:
                (self._prompt if message.method == "session/prompt" else self._load)(message, turn)
            finally:
                turns.discard(turn)

        _thread(self._guarded, message, work)

    def _prompt(self, message: Message, turn: Turn) -> None:
        assert message.id is not None
        known_as = _session_id(message.params)
        given = prompts.message(message.params.get("prompt"))
        if not self._met:
            self._ask(lambda client: client.status())  # Says at once how to start a gateway that was never there.
        try:
            reason = turn.prompt(self._current(known_as), given)
        finally:
            if turn.session_id != known_as:
                self._moved[known_as] = turn.session_id
        self._editor.reply(message.id, {"stopReason": reason})

    def _load(self, message: Message, turn: Turn) -> None:
        assert message.id is not None
        session_id = _session_id(message.params)
        view = self._ask(lambda client: client.export(session_id))
        for update in updates.replay(view):
            self._editor.update(session_id, update)
        opened = Opened(session_id, self._options(view["model"]), _notes(message.params, view))
        self._editor.reply(message.id, opened.result)
        self._greet(opened)
        turn.take_up(view)


def same_folder(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _notes(params: dict[str, Any], session: dict[str, Any]) -> tuple[str, ...]:
    """About a conversation that is there already: it stays in its folder."""
    wanted, folder = params.get("cwd"), session.get("folder")
    if not isinstance(wanted, str) or (folder is not None and same_folder(folder, wanted)):
        return _unused(params)
    where = f"in {folder}" if folder is not None else "in the default folder"
    return (f"This conversation works {where}, not in {wanted}. Start a new conversation to work there.", *_unused(params))


def _unused(params: dict[str, Any]) -> tuple[str, ...]:
    """A server of tools would be run by the gateway, also when the editor is gone, with secrets that only the editor has."""
    servers = params.get("mcpServers")
    names = [str(each.get("name")) for each in servers if isinstance(each, dict)] if isinstance(servers, list) else []
    if not names:
        return ()
    named = ", ".join(names)
    return (f"Holdfast does not use the MCP servers of the editor ({named}). Add those that the agent needs to its settings ([mcp.NAME]).",)


def _session_id(params: dict[str, Any]) -> str:
    found = params.get("sessionId")
    if not isinstance(found, str):
        raise BadRequest(INVALID_PARAMS, "`sessionId` must be text.")
    if not WHOLE_ID.fullmatch(found):
        raise BadRequest(NOT_FOUND, f"There is no conversation {found!r}.")
    return found


def _thread(work: Callable[..., None], *given: Any) -> threading.Thread:
    thread = threading.Thread(target=work, args=given, daemon=True)
    thread.start()
    return thread
