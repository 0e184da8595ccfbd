"""People with accounts on a homeserver, and what they see there."""

import itertools
import json
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx

CLIENT = "/_matrix/client/v3"
_FILTER = json.dumps({"room": {"timeline": {"limit": 1000}, "state": {"types": []}}})


class Shown(NamedTuple):
    """A message as a client shows it now: edits are in it, and what was taken away is not there."""

    id: str
    content: dict[str, Any]
    relates: dict[str, Any]
    edits: int = 0

    @property
    def text(self) -> str:
        return str(self.content.get("body", ""))


class Person:
    """Blocking, and straight to the server. `seen`: what every room has brought, in order."""

    _numbers = itertools.count()

    def __init__(self, url: str, user: str, token: str) -> None:
        self.user, self.token, self.name = user, token, user[1:].partition(":")[0]
        headers = {"Authorization": f"Bearer {token}"}
        self._client = httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False, verify=False)
        self._since: str | None = None
        self.seen: dict[str, list[dict[str, Any]]] = {}
        self.invited: dict[str, list[dict[str, Any]]] = {}

    def call(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        found = self._client.request(method, path, json=body, params=query)
        assert found.status_code < 300, (method, path, found.status_code, found.text)
        return found.json()

    def close(self) -> None:
        self._client.close()

    # what they do

    def make_room(self, *invited: "Person", direct: bool = False, encrypted: bool = False, name: str = "") -> str:
        state = [{"type": "m.room.encryption", "state_key": "", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}] if encrypted else []
        body = {"preset": "private_chat", "invite": [one.user for one in invited], "is_direct": direct, "initial_state": state}
        return str(self.call("POST", f"{CLIENT}/createRoom", body | ({"name": name} if name else {}))["room_id"])

    def join(self, room: str) -> None:
        self.call("POST", f"{CLIENT}/rooms/{quote(room)}/join", {})

    def send(self, room: str, kind: str, content: dict[str, Any]) -> str:
        path = f"{CLIENT}/rooms/{quote(room)}/send/{kind}/{self.name}-{next(self._numbers)}"
        return str(self.call("PUT", path, content)["event_id"])

    def say(self, room: str, text: str, **content: Any) -> str:
        return self.send(room, "m.room.message", {"msgtype": "m.text", "body": text, **content})

    def edit(self, room: str, event: str, text: str) -> str:
        new = {"msgtype": "m.text", "body": text}
        return self.say(room, f"* {text}", **{"m.new_content": new, "m.relates_to": {"rel_type": "m.replace", "event_id": event}})

    def react(self, room: str, event: str, key: str) -> str:
        return self.send(room, "m.reaction", {"m.relates_to": {"rel_type": "m.annotation", "event_id": event, "key": key}})

    def redact(self, room: str, event: str) -> None:
        self.call("PUT", f"{CLIENT}/rooms/{quote(room)}/redact/{quote(event)}/{self.name}-{next(self._numbers)}", {})

    def upload(self, data: bytes, media_type: str) -> str:
        found = self._client.post("/_matrix/media/v3/upload", content=data, headers={"Content-Type": media_type})
        return str(found.json()["content_uri"])

    def download(self, url: str) -> bytes:
        return self._client.get(f"/_matrix/client/v1/media/download/{url.removeprefix('mxc://')}").content

    def event(self, room: str, event: str) -> dict[str, Any]:
        found: dict[str, Any] = self.call("GET", f"{CLIENT}/rooms/{quote(room)}/event/{quote(event)}")
        return found

    # what they see

    def token_now(self) -> str:
        """From where somebody reads who wants only what comes from now on."""
        none = json.dumps({"room": {"rooms": []}})
        return str(self.call("GET", f"{CLIENT}/sync", filter=none, timeout="0")["next_batch"])

    def look(self, wait_s: float = 0.0) -> None:
        """Takes in what is new, and waits a while if nothing is."""
        since = {"since": self._since} if self._since else {}
        found = self.call("GET", f"{CLIENT}/sync", filter=_FILTER, timeout=str(int(1000 * wait_s if self._since else 0)), **since)
        self._since = found["next_batch"]
        rooms = found.get("rooms", {})
        for room, shown in [*rooms.get("join", {}).items(), *rooms.get("leave", {}).items()]:
            self.seen.setdefault(room, []).extend(shown["timeline"]["events"])
        for room, shown in rooms.get("invite", {}).items():
            self.invited[room] = shown["invite_state"]["events"]

    def shown(self, room: str, by: str, *, after: int = 0) -> list[Shown]:
        """What somebody has written, as it stands now. `after`: so many events are not counted."""
        found: dict[str, Shown] = {}
        for event in self.seen.get(room, [])[after:]:
            content = event.get("content", {})
            relates = content.get("m.relates_to", {})
            if event["type"] == "m.room.redaction":
                found.pop(content.get("redacts") or event.get("redacts", ""), None)
            elif event["type"] == "m.room.message" and event["sender"] == by and content:
                if relates.get("rel_type") != "m.replace":
                    found[event["event_id"]] = Shown(event["event_id"], content, relates)
                elif (old := found.get(relates["event_id"])) is not None:
                    found[old.id] = Shown(old.id, content["m.new_content"], old.relates, old.edits + 1)
        return list(found.values())
