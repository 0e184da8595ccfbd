"""The editor's files, for tools, while a prompt is answered: asks the gateway what is wanted, and the editor for it."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from holdfast.cli.access.client import Client
from holdfast.cli.access.insisting import Insisting
from holdfast.cli.acp.editor import Editor
from holdfast.core.errors import HoldfastError

NOT_DONE = "the editor refused it"


class Offers(NamedTuple):
    """What an editor says that it does with files."""

    reads: bool = False
    writes: bool = False


def offers(params: dict[str, Any]) -> Offers:
    """From its first request."""
    able = params.get("clientCapabilities")
    files = able.get("fs") if isinstance(able, dict) else None
    if not isinstance(files, dict):
        return Offers()
    return Offers(reads=files.get("readTextFile") is True, writes=files.get("writeTextFile") is True)


class Files:
    """`known_as`: the editor's id of the session."""

    def __init__(self, home: Path, editor: Editor, known_as: str, offered: Offers) -> None:
        self._home, self._editor, self._known_as, self._offers = home, editor, known_as, offered

    def serve(self, session_id: str, over: threading.Event, tell: Callable[[str], None]) -> threading.Event:
        """Until `over`, in a thread of its own. Gives an event that is set once the gateway knows of the editor, or wants none. `tell`
        gets a sentence if the gateway is away.
        """
        known = threading.Event()
        if any(self._offers):
            threading.Thread(target=self._serve, args=(session_id, over, known, tell), daemon=True).start()
        else:
            known.set()
        return known

    def _serve(self, session_id: str, over: threading.Event, known: threading.Event, tell: Callable[[str], None]) -> None:
        wanted = self._ask(session_id, [], tell)
        known.set()
        while not over.is_set() and wanted is not None:
            wanted = self._ask(session_id, [self._answered(each) for each in wanted])

    def _ask(
        self, session_id: str, answers: list[dict[str, Any]], tell: Callable[[str], None] = lambda sentence: None
    ) -> list[dict[str, Any]] | None:
        """What is wanted next. None: tools use the disk."""
        told = {**self._offers._asdict(), "answers": answers}

        def ask(client: Client) -> dict[str, Any]:
            found: dict[str, Any] = client.post(f"/api/sessions/{quote(session_id, safe='')}/editor", told).body
            return found

        try:
            work = Insisting(self._home, tell=tell, met=True)(ask)
        except HoldfastError:
            return None
        return list(work["files"]) if work["used"] else None

    def _answered(self, wanted: dict[str, Any]) -> dict[str, Any]:
        name, where = {"request_id": wanted["request_id"]}, {"sessionId": self._known_as, "path": wanted["path"]}
        if wanted["what"] == "read":
            read = self._editor.ask("fs/read_text_file", where)
            text = None if read is None else read.get("content")
            return name | ({"text": text} if isinstance(text, str) else {"failed": NOT_DONE})
        wrote = self._editor.ask("fs/write_text_file", where | {"content": wanted["text"]})
        return name | ({"failed": NOT_DONE} if wrote is None else {})
