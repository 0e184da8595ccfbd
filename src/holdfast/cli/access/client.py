"""HTTP to the running gateway: requests, and the event stream of a session. Uses the standard library's client, which loads quickly."""

import contextlib
import http.client
import json
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from holdfast.api import status as statuses
from holdfast.api.status import Status
from holdfast.cli.access import running, version_0_1
from holdfast.config import read_token
from holdfast.core.errors import Refused, Unavailable

TIMEOUT_S = 15.0
# The server sends a heartbeat every 15 s; three missed ones mean that it is gone.
SILENCE_S = 45.0
JSON = {"Content-Type": "application/json"}
# Addresses that a server can listen on but a client cannot call, and what to call instead.
CALLED = {"0.0.0.0": "127.0.0.1", "::": "::1"}

# We send the token in the home folder; a gateway notices a new one within a second.
REPLACED = "The running gateway does not accept the token in its home folder. Try again in a second; if that does not help, restart it."


class Unreachable(Unavailable):
    """The gateway's process is alive, or was a moment ago, but does not answer."""

    code = "unreachable"

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"The gateway at {url} does not answer: {why}. `holdfast doctor` looks for the reason.")


class ApiError(Refused):
    """The gateway refused the request."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Response(NamedTuple):
    status: int
    body: Any


class StreamEvent(NamedTuple):
    id: str
    event: str
    data: dict[str, Any]


class Client:
    """One gateway at one address. Each request has its own connection, so a restart between two requests does not matter."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        parts = urlsplit(url)
        host = parts.hostname or ""
        self._host, self._port = CALLED.get(host, host), parts.port or 80
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}

    def get(self, path: str, **query: Any) -> Any:
        given = {name: value for name, value in query.items() if value not in (None, "")}
        return self._ask("GET", f"{path}?{urlencode(given)}" if given else path).body

    def post(self, path: str, body: dict[str, Any] | None = None, *, patience_s: float = TIMEOUT_S) -> Response:
        return self._ask("POST", path, json.dumps(body or {}).encode(), patience_s=patience_s)

    def status(self) -> Status:
        found = statuses.read(self.get("/api/status"))
        if found is None:
            raise Unreachable(self.url, "its status cannot be read")
        return found

    def session(self, session_id: str) -> dict[str, Any]:
        return version_0_1.session(self.get(f"/api/sessions/{quote(session_id, safe='')}"))

    def order(self, session_id: str, what: str, **more: str | None) -> Response:
        """`what` is stop, reset, resume, suspend or undelete."""
        return self.post(f"/api/sessions/{quote(session_id, safe='')}/{what}", more or None)

    def judge(self, approval_id: str, verdict: str, **more: str) -> Response:
        """Approves or denies a call."""
        return self.post(f"/api/approvals/{quote(approval_id, safe='')}", {"verdict": verdict} | more)

    def remove_rule(self, rule_id: str) -> Response:
        return self._ask("DELETE", f"/api/rules/{quote(rule_id, safe='')}")

    def pause_schedule(self, schedule_id: str, *, paused: bool) -> Response:
        """Pauses it, or continues it."""
        return self._ask("PATCH", f"/api/schedules/{quote(schedule_id, safe='')}", json.dumps({"paused": paused}).encode())

    def remove_schedule(self, schedule_id: str) -> Response:
        return self._ask("DELETE", f"/api/schedules/{quote(schedule_id, safe='')}")

    def process(self, process_id: str, **query: Any) -> dict[str, Any]:
        """A background process, and some of its output."""
        found: dict[str, Any] = self.get(f"/api/processes/{quote(process_id, safe='')}", **query)
        return found

    def kill_process(self, process_id: str) -> Response:
        return self.post(f"/api/processes/{quote(process_id, safe='')}/kill")

    def remove_person(self, platform: str, user: str) -> Response:
        return self._ask("DELETE", f"/api/ops/people/{quote(platform, safe='')}/{quote(user, safe='')}")

    def decide_delivery(self, delivery_id: str, action: str) -> Response:
        return self.post(f"/api/ops/outbox/{quote(delivery_id, safe='')}", {"action": action})

    def change(self, session_id: str, **fields: Any) -> Response:
        """Title, pinned, archived or model of a session."""
        return self._ask("PATCH", f"/api/sessions/{quote(session_id, safe='')}", json.dumps(fields).encode())

    def take_back(self, session_id: str, message_id: str) -> Response:
        """A message that no turn has taken yet."""
        return self._ask("DELETE", f"/api/sessions/{quote(session_id, safe='')}/messages/{quote(message_id, safe='')}")

    def export(self, session_id: str) -> dict[str, Any]:
        """A session with its whole conversation, nothing left out."""
        return version_0_1.session(self.get(f"/api/sessions/{quote(session_id, safe='')}/export", **{"as": "json"}))

    def delete(self, session_id: str) -> Response:
        return self._ask("DELETE", f"/api/sessions/{quote(session_id, safe='')}")

    def post_message(
        self, session_id: str, text: str, client_id: str, attachments: Sequence[str] = (), mode: str | None = None
    ) -> Response:
        more = ({"attachments": list(attachments)} if attachments else {}) | ({"mode": mode} if mode else {})
        return self.post(f"/api/sessions/{quote(session_id, safe='')}/messages", {"text": text, "client_id": client_id} | more)

    def upload(self, file: Path, media_type: str, client_id: str) -> str:
        """The attachment's id. Raises `OSError` where the file cannot be read. Its length is not announced: it may grow as it is read."""
        path = f"/api/uploads?{urlencode({'name': file.name, 'client_id': client_id})}"
        with file.open("rb") as body:
            response = self._ask("POST", path, body, headers={"Content-Type": media_type})
        return str(response.body["attachment_id"])

    def _ask(
        self,
        method: str,
        path: str,
        body: bytes | BinaryIO | None = None,
        *,
        headers: dict[str, str] = JSON,
        patience_s: float = TIMEOUT_S,
    ) -> Response:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=patience_s)
        try:
            connection.connect()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # It may have answered before it had read everything.
                connection.request(method, path, body, self._headers | (headers if body is not None else {}))
            response = connection.getresponse()
            return _checked(response.status, response.read())
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(self.url, _why(error)) from error
        finally:
            connection.close()

    def events(self, session_id: str, *, after: str, until: float | None = None) -> Iterator[StreamEvent]:
        """The events after a cursor, then live ones. Ends when the server says so; raises `Unreachable` when the connection breaks, and
        `TimeoutError` at the monotonic time `until`.
        """
        connection = http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_S)
        try:
            headers = self._headers | {"Accept": "text/event-stream", "Last-Event-ID": after}
            connection.request("GET", f"/api/sessions/{quote(session_id, safe='')}/events", headers=headers)
            line = connection.sock  # The response takes it over, but we keep setting its timeout.
            response = connection.getresponse()
            if response.status != 200:
                _checked(response.status, response.read())
            yield from _parsed(response, line, until)
        except TimeoutError as error:
            if until is not None and time.monotonic() >= until:
                raise
            raise Unreachable(self.url, _why(error)) from error
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(self.url, _why(error)) from error
        finally:
            connection.close()


def connect(home: Path) -> Client:
    """The gateway that serves a home folder, wherever it listens now. Raises `NotRunning`."""
    status = running.require(home)
    token = read_token(home)
    if not status.url or token is None:
        raise Unreachable(status.url, "it is still starting" if token else f"there is no token in {home}")
    return Client(status.url, token)


def _parsed(response: http.client.HTTPResponse, line: socket.socket, until: float | None) -> Iterator[StreamEvent]:
    fields: dict[str, str] = {}
    while True:
        if until is not None and time.monotonic() >= until:
            raise TimeoutError
        line.settimeout(SILENCE_S if until is None else min(SILENCE_S, max(0.01, until - time.monotonic())))
        read = response.readline()
        if not read:
            raise http.client.IncompleteRead(b"")
        text = read.decode("utf-8", "replace").rstrip("\r\n")
        if text:
            name, _, value = text.partition(":")
            fields[name] = value.removeprefix(" ")
            continue
        if "data" in fields:
            name = fields.get("event", "message")
            if name == "end":
                return
            yield StreamEvent(fields.get("id", ""), name, version_0_1.event(name, json.loads(fields["data"])))
        fields = {}


def _checked(status: int, body: bytes) -> Response:
    try:
        value = json.loads(body) if body else None
    except ValueError:
        value = None
    if 200 <= status < 300:
        return Response(status, value)
    if status == 401:
        raise ApiError(status, "unauthorized", REPLACED)
    error = value.get("error") if isinstance(value, dict) else None
    if not isinstance(error, dict):
        raise ApiError(
            status, "unknown", f"Something answered with status {status}, but it is not Holdfast. Does another program have its port?"
        )
    raise ApiError(status, str(error.get("code")), str(error.get("message")))


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it does not respond"
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    return "the connection broke off"
