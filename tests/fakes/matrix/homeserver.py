"""Synapse, as its operators run it, on a folder of its own. `./run test` installs it."""

import base64
import contextlib
import hashlib
import hmac
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes.matrix.people import Person
from tests.ports import free_port

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / ".venv-homeserver" / "bin" / "python"
SECRET = "sesame"
START_S = 60.0
_MANY = {"per_second": 10_000, "burst_count": 10_000}


class Homeserver:
    """`rc_message` is Synapse's own, 0.2 messages a second and ten at once; accounts are free of it unless a test asks otherwise."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._client = httpx.Client(base_url=self.url, timeout=30, trust_env=False, verify=False)
        self._people: list[Person] = []

    def __enter__(self) -> "Homeserver":
        if not PYTHON.exists():
            pytest.skip("no homeserver in .venv-homeserver: `./run test tests/platforms` installs one")
        self._configure()
        with (self.folder / "output.txt").open("wb") as output:
            command = [str(PYTHON), "-m", "synapse.app.homeserver", "--config-path", str(self.folder / "homeserver.json")]
            self._process = subprocess.Popen(command, stdout=output, stderr=output, cwd=self.folder)
        deadline = time.monotonic() + START_S
        while not self._answers():
            assert self._process.poll() is None and time.monotonic() < deadline, (self.folder / "output.txt").read_text()
            time.sleep(0.05)
        self._registered("admin", admin=True)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.kill()  # Nobody reads what it has stored.
        self._process.wait()
        self._client.close()
        for person in self._people:
            person.close()

    def register(self, name: str, *, limited: bool = False) -> Person:
        """`limited`: as much as a server that nobody configured takes."""
        made = self._registered(name)
        if not limited:
            path = f"/_synapse/admin/v1/users/{made.user}/override_ratelimit"
            self._people[0].call("POST", path, {"messages_per_second": 0, "burst_count": 0})
        return made

    def _registered(self, name: str, *, admin: bool = False) -> Person:
        path = "/_synapse/admin/v1/register"
        nonce = self._client.get(path).json()["nonce"]
        words = "\0".join((nonce, name, f"password of {name}", "admin" if admin else "notadmin"))
        mac = hmac.new(SECRET.encode(), words.encode(), hashlib.sha1).hexdigest()
        body = {
            "nonce": nonce,
            "username": name,
            "password": f"password of {name}",
            "admin": admin,
            "mac": mac,
            "displayname": name.title(),
        }
        found = self._client.post(path, json=body).json()
        self._people.append(Person(self.url, found["user_id"], found["access_token"]))
        return self._people[-1]

    def _answers(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return self._client.get("/health").status_code == 200
        return False

    def _configure(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        seed = base64.b64encode(os.urandom(32)).decode().rstrip("=")
        (self.folder / "signing.key").write_text(f"ed25519 a_test {seed}\n")
        logs: dict[str, Any] = {"version": 1, "disable_existing_loggers": False, "root": {"level": "ERROR"}}
        (self.folder / "logs.json").write_text(json.dumps(logs))
        listener = {"port": self.port, "bind_addresses": ["127.0.0.1"], "type": "http", "resources": [{"names": ["client"]}]}
        settings = {
            "server_name": "localhost",
            "listeners": [listener],
            "database": {"name": "sqlite3", "args": {"database": str(self.folder / "homeserver.db")}},
            "media_store_path": str(self.folder / "media"),
            "signing_key_path": str(self.folder / "signing.key"),
            "log_config": str(self.folder / "logs.json"),
            "registration_shared_secret": SECRET,
            "report_stats": False,
            "trusted_key_servers": [],
            "bcrypt_rounds": 4,
            # Else the first sync of an account is answered for two minutes with what it was answered before.
            "caches": {"sync_response_cache_duration": "0s"},
            "presence": {"enabled": False},
            "rc_login": dict.fromkeys(("address", "account", "failed_attempts"), _MANY),
            "rc_joins": {"local": _MANY, "remote": _MANY},
            "rc_invites": dict.fromkeys(("per_room", "per_user", "per_issuer"), _MANY),
            "rc_room_creation": _MANY,
        }
        (self.folder / "homeserver.json").write_text(json.dumps(settings))  # JSON is YAML.
