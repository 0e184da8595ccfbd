"""The OpenAPI document: it names what the server does, and the server does what it names."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from holdfast.core.errors import HandOverFailed, StoreClosed, StoreFull
from holdfast.core.events import KINDS, ProcessStarted
from holdfast.gateway.settings import Settings
from holdfast.ports.keepers import Name
from holdfast.web import bodies
from tests.fakes.keepers import Machine, SimKeepers, Simulated
from tests.fakes.platform import NAME, SECRET, ChatServer
from tests.gateway import web
from tests.gateway.gateways import Wire
from tests.gateway.web import TOKEN, World

DOCS = Path(__file__).parents[2] / "docs" / "http-api.md"
BODIES: dict[str, dict[str, Any]] = {
    "/api/sessions": {"title": "A"},
    "/api/sessions/{id}": {"pinned": True},
    "/api/sessions/{id}/messages": {"text": "hello"},
    "/api/sessions/{id}/messages/{message_id}": {"text": "hello"},
    "/api/approvals/{id}": {"verdict": "approve"},
    "/api/questions/{id}": {"text": "yes"},
    "/api/login": {"token": TOKEN},
    "/v1/responses": {"input": "hello"},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hello"}]},
    "/api/sessions/{id}/draft": {"text": "half a"},
    "/api/sessions/{id}/seen": {"cursor": "0"},
    "/api/sessions/{id}/branch": {"message_id": "m_1"},
    "/api/ops/outbox/{id}": {"action": "drop"},
    "/api/ops/people": {"platform": NAME, "user": "7"},
    "/api/schedules/{id}": {"paused": True},
}
# What a chat platform tells by itself.
UPDATE = msgspec.json.encode(["Message", {"key": "c|1", "source": {"chat": "c", "user": "u"}, "text": "hello"}])


async def test_every_path_of_the_documentation_is_in_the_document_and_the_other_way_round(world: World) -> None:
    document = world.document
    text = DOCS.read_text()
    told = {f"{method} {path.partition('?')[0]}" for method, path in re.findall(r"`(GET|POST|PUT|PATCH|DELETE) (/[^\s`]+)", text)}
    for line in text.splitlines():
        for first, others in re.findall(r"`POST (/\S+)`[^|]*?((?:, `[\w./]+`)+)[:|]? *(?:501|\|)", line):
            told |= {f"POST {first.rpartition('/')[0]}/{other.rpartition('/')[2]}" for other in re.findall(r"`([\w./]+)`", others)}
    described = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    assert described == told


def test_every_kind_of_event_is_in_the_documentation_and_the_other_way_round() -> None:
    table = DOCS.read_text().partition("| event | further fields |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `([\w.]+)` \|", table, re.MULTILINE)) == {*KINDS, "snapshot", "end"}


async def test_every_path_serves_the_methods_that_the_document_names_and_no_others(world: World) -> None:
    for path, methods in world.document["paths"].items():
        answer = await world.client.request("BREW", path.replace("{id}", "x"))
        allowed = set(answer.headers["allow"].lower().split(", ")) - {"head"}
        assert allowed == set(methods), path


async def test_every_reference_leads_somewhere_and_everything_is_used(world: World) -> None:
    document = world.document
    assert document["openapi"] == "3.1.0"
    names = set(re.findall(r"'#/components/schemas/(\w+)'", str(document)))
    assert names == set(document["components"]["schemas"])
    ids = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
    assert len(ids) == len(set(ids))
    view = document["components"]["schemas"]["SessionView"]
    assert {"cursor", "messages", "turns", "questions", "session_id"} <= set(view["required"])
    limit = next(one for one in document["paths"]["/api/sessions"]["get"]["parameters"] if one["name"] == "limit")
    assert limit["schema"] == {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}


BYTES = b"some"
BLOB = hashlib.sha256(BYTES).hexdigest()


# What an agent is told, so that a question of the kind is open that is answered there.
ASKS = {"/api/questions/{id}": "ask Well?", "/api/approvals/{id}": "approve this"}


# What is listed for one session, or for all.
LISTED = ("/api/rules", "/api/schedules", "/api/processes", "/api/search")


class Provocations:
    """For each status a way to get it from an operation. Whatever is not special is done to every operation in the same way."""

    def __init__(self, world: World, machine: Machine) -> None:
        self.world, self.machine = world, machine
        self.deleted = False  # Nothing can be said in the session that is asked about.

    async def provoke(self, method: str, path: str, status: int) -> int:
        special = getattr(self, f"special_{status}", None)
        how: Callable[[str, str], Awaitable[httpx.Response]] = getattr(self, f"get_{status}", self.get_good)
        answer = await special(method, path) if special else None
        if answer is None:
            answer = await how(method, path)
        return int(answer.status_code)

    async def ask(self, method: str, path: str, *, session_id: str = "", **more: Any) -> httpx.Response:
        body = BODIES.get(path)
        if path == "/v1/models/{name}":
            path = path.replace("{name}", session_id or "holdfast")
        if path.startswith("/v1/responses/{id}") and not session_id:
            session_id = (await self.response())["id"]
        if "{id}" in path:
            session_id = session_id or await self.world.new_session()
        if "{message_id}" in path:
            known = session_id != "none" and self.world.weather.fault is None
            said = await self.world.post(session_id, "/status" if more.pop("command", False) else "hello") if known else None
            path = path.replace("{message_id}", said.json().get("message_id", "m_1") if said else "m_1")
        if "{turn_id}" in path:
            known = session_id != "none" and self.world.weather.fault is None and not more and not self.deleted
            turns = (await self.world.say(session_id, "hello"))["turns"] if known else []
            path = path.replace("{turn_id}", turns[0]["id"] if turns else "t_1")
        if path == "/api/schedules" and method == "POST":
            where = session_id or (await self.world.new_session() if self.world.weather.fault is None else "s_1")
            more.setdefault("json", {"session_id": where, "text": "x", "when": "in 1 hour"})
        if body is not None and method != "GET" and not {"json", "content"} & set(more):
            more["json"] = body
        if path == "/api/uploads":
            more.setdefault("content", b"x")
        if path == "/hooks/{platform}":
            path = path.replace("{platform}", "none" if session_id == "none" else NAME)
            more.setdefault("content", UPDATE)
            more["headers"] = [("X-Fake-Secret", SECRET), *httpx.Headers(more.get("headers")).multi_items()]
        path = path.replace("{platform}", NAME).replace("{user}", session_id or "7")
        client = more.pop("client", self.world.client)
        if path == "/api/logout":  # Only a sign-in has an end to be stored.
            await client.post("/api/login", json={"token": TOKEN})
        return await client.request(
            method, path.replace("{id}", session_id).replace("{digest}", "none" if session_id == "none" else BLOB), **more
        )

    # by status

    async def get_good(self, method: str, path: str) -> httpx.Response:
        if path == "/api/sessions/{id}/stop":
            session_id = await self.world.new_session()
            await self.world.post(session_id, "hold")
            await self.world.until_state(session_id, "running")
            return await self.ask(method, path, session_id=session_id)
        if path == "/api/sessions/{id}/branch":
            session_id = await self.world.new_session()
            said = (await self.world.say(session_id, "hello"))["messages"]
            return await self.ask(method, path, session_id=session_id, json={"message_id": said[-1]["id"]})
        if path in ASKS:
            return await self.ask(method, path, session_id=await self.question(path))
        if path == "/api/ops/outbox/{id}":
            return await self.ask(method, path, session_id=await self.owed())
        if path == "/api/ops/people/{platform}/{user}":
            await self.ask("POST", "/api/ops/people")
        if path.endswith("{message_id}") and method == "DELETE":  # One that waits behind a turn.
            session_id = await self.world.new_session()
            await self.world.post(session_id, "hold")
            await self.world.until_state(session_id, "running")
            return await self.ask(method, path, session_id=session_id)
        if path == "/api/schedules/{id}":
            planned = {"session_id": await self.world.new_session(), "text": "x", "when": "in 1 hour"}
            return await self.ask(
                method, path, session_id=(await self.world.client.post("/api/schedules", json=planned)).json()["schedule_id"]
            )
        if path.startswith("/api/processes/"):
            return await self.ask(method, path, session_id=(await self.process()).id)
        if path == "/api/rules/{id}":
            approval = await self.question("/api/approvals/{id}")
            await self.world.client.post(f"/api/approvals/{approval}", json={"verdict": "approve", "scope": "session"})
            return await self.ask(method, path, session_id=f"{approval}.rule")
        return await self.ask(method, path)

    async def response(self) -> dict[str, Any]:
        """One that is over, of a session of its own."""
        answer = await self.world.client.post("/v1/responses", json={"input": "hello"})
        return dict(answer.json())

    async def question(self, path: str) -> str:
        """One that is open, of the kind that is answered there."""
        session_id = await self.world.new_session()
        await self.world.post(session_id, ASKS[path])
        return str((await self.world.until_state(session_id, "waiting"))["questions"][0]["question_id"])

    async def process(self) -> Name:
        """A background process of a session of its own."""
        session_id, store = await self.world.new_session(), self.world.gateway.store
        await self.world.post(session_id, "hold")
        turn = (await self.world.until_state(session_id, "running"))["turns"][-1]["id"]
        name = Name(session_id, f"p_{session_id}")
        owner = (await store.owners())[0].id
        wanted = ProcessStarted(process_id=name.id, command="lasts 600", turn_id=turn, call_id="c", owner=owner)
        await store.start_process(session_id, wanted, most=1000, at=self.world.clock.now())
        self.machine.running[name] = Simulated(wanted.command, 0.0, "b")
        return name

    async def owed(self) -> str:
        """A message to a chat whose platform is not connected."""
        store = self.world.gateway.store
        key = f"agent:main:elsewhere:dm:{len(await store.owed(limit=100, given_up=True))}"
        session = await store.create_session(session_id=f"s_{key}", session_key=key, log="l", at=1)
        await store.tell_once(session.session_id, notice_id="n", content="hello", anchor=None, at=1)
        return (await store.owed(limit=100))[-1].delivery_id

    async def attach(self) -> None:
        made = await self.world.client.post("/api/uploads", content=BYTES)
        await self.world.post(await self.world.new_session(), "x", attachments=[made.json()["attachment_id"]])

    async def special_200(self, method: str, path: str) -> httpx.Response | None:
        session_id = await self.world.new_session()
        if path == "/api/uploads":
            await self.ask(method, path, params={"client_id": "c"})
            return await self.ask(method, path, params={"client_id": "c"})
        if path == "/api/blobs/{digest}":
            await self.attach()
        if path.endswith("/messages"):
            await self.world.post(session_id, "hello", client_id="c")
            return await self.world.post(session_id, "hello", client_id="c")
        if path in ("/api/sessions/{id}/events", "/api/events"):
            async with httpx.AsyncClient(base_url=self.world.url, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
                async with client.stream(method, path.replace("{id}", session_id)) as answer:
                    return answer
        return None

    async def get_206(self, method: str, path: str) -> httpx.Response:
        return await self.ask(method, path, headers={"Range": "bytes=0-0"})

    async def get_304(self, method: str, path: str) -> httpx.Response:
        return await self.ask(method, path, headers={"If-None-Match": "*"})

    async def get_416(self, method: str, path: str) -> httpx.Response:
        return await self.ask(method, path, headers={"Range": "bytes=9-"})

    async def get_400(self, method: str, path: str) -> httpx.Response:
        return await self.ask(method, path, headers=[("Origin", self.world.url)] * 2)

    async def get_401(self, method: str, path: str) -> httpx.Response:
        return await self.ask(method, path, client=self.world.browser(Authorization="Bearer wrong"), json={"token": "wrong"})

    async def get_403(self, method: str, path: str) -> httpx.Response:
        return await self.ask(method, path, headers={"Origin": "http://evil.example"})

    async def get_404(self, method: str, path: str) -> httpx.Response:
        if path.startswith("/v1/") and path in BODIES:
            return await self.ask(method, path, json=BODIES[path] | {"model": "none"})
        if path in LISTED and method == "GET":
            return await self.ask(method, path, params={"session": "none"})
        if path == "/api/ops/people":
            return await self.ask(method, path, json={"code": "AAAAAAAA"})
        return await self.ask(method, path, session_id="none")

    async def get_408(self, method: str, path: str) -> httpx.Response:
        async def dripping() -> AsyncIterator[bytes]:
            yield b"{"
            await asyncio.Event().wait()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bodies, "BODY_S", 0.01)
            return await self.ask(method, path, content=dripping())

    async def get_409(self, method: str, path: str) -> httpx.Response:
        if path.startswith("/v1/"):
            other = {"input": "other", "messages": [{"role": "user", "content": "other"}]}
            for body in (BODIES[path], other):
                answer = await self.ask(method, path, json=body, headers={"Idempotency-Key": path})
            return answer
        if path == "/api/uploads":
            await self.ask(method, path, params={"client_id": "d"})
            return await self.ask(method, path, params={"client_id": "d"}, content=b"other")
        if path.endswith("{message_id}"):
            return await self.ask(method, path, command=True)
        if path.endswith("/branch"):
            session_id = await self.world.new_session()
            await self.world.post(session_id, "hold")
            turns = (await self.world.until_state(session_id, "running"))["turns"]
            return await self.ask(method, path, session_id=session_id, json={"message_id": f"{turns[-1]['id']}.answer"})
        if path.endswith("/draft"):
            return await self.ask(method, path, json={"text": "late", "rev": 9})
        if path.endswith("/messages"):
            session_id = await self.world.new_session()
            await self.world.post(session_id, "other", client_id="c")
            return await self.world.post(session_id, "hello", client_id="c")
        if path in ASKS:
            question = await self.question(path)
            await self.ask(method, path, session_id=question)
            return await self.ask(method, path, session_id=question)
        if path == "/api/ops/outbox/{id}":
            seen = await self.owed()
            await self.ask(method, path, session_id=seen)
            await self.ask(method, path, session_id=seen, json={"action": "sent"})
            return await self.ask(method, path, session_id=seen)
        if path == "/api/schedules/{id}":
            planned = {"session_id": await self.world.new_session(), "text": "x", "when": "in 1 minute"}
            schedule_id = (await self.world.client.post("/api/schedules", json=planned)).json()["schedule_id"]
            await self.ask(method, path, session_id=schedule_id)
            self.world.clock.pass_s(120)
            return await self.ask(method, path, session_id=schedule_id, json={"paused": False})
        if path == "/api/schedules":
            planned = {"session_id": await self.world.new_session(), "text": "x", "when": "in 1 hour", "client_id": "c"}
            await self.ask(method, path, json=planned)
            return await self.ask(method, path, json=planned | {"text": "y"})
        if path.startswith("/api/admin/"):
            self.world.gateway.hand_over.begin()
            self.world.refusal = HandOverFailed("it hung.")
            try:
                return await self.ask(method, path)
            finally:
                self.world.refusal = None
                await self.world.gateway.hand_over.take_back()
        return await self.ask(method, path)

    async def get_410(self, method: str, path: str) -> httpx.Response:
        session_id = await self.world.new_session()
        if path.startswith("/v1/responses/"):
            made = await self.response()
            await self.world.client.delete(f"/api/sessions/{made['conversation']['id']}")
            return await self.ask(method, path, session_id=made["id"])
        if path.startswith("/api/processes/"):
            name = await self.process()
            await self.world.client.delete(f"/api/sessions/{name.group}")
            return await self.ask(method, path, session_id=name.id)
        await self.world.client.delete(f"/api/sessions/{session_id}")
        if path.startswith("/v1/"):
            return await self.ask(method, path, headers={"X-Holdfast-Session": session_id})
        if path in LISTED and method == "GET":
            return await self.ask(method, path, params={"session": session_id})
        if path.endswith("/undelete") or method == "DELETE":
            await self.world.gateway.store.purge(now=2**60, steps=1000)
        self.deleted = True
        try:
            return await self.ask(method, path, session_id=session_id)
        finally:
            self.deleted = False

    async def get_413(self, method: str, path: str) -> httpx.Response:
        return await self.ask(method, path, content=b"x" * (8 * 1024 * 1024 + 1), headers={"Content-Type": "application/json"})

    async def get_415(self, method: str, path: str) -> httpx.Response:
        return await self.ask(method, path, content=b"{}", headers={"Content-Type": "text/plain"})

    async def get_421(self, method: str, path: str) -> httpx.Response:
        return await self.ask(method, path, headers={"Host": "evil.example"})

    async def get_431(self, method: str, path: str) -> httpx.Response:
        return await self.ask(method, path, headers={"X-Long": "x" * 65536})

    async def get_429(self, method: str, path: str) -> httpx.Response:
        for _ in range(20):
            await self.world.browser(Authorization="Bearer wrong").get("/api/sessions")
        answer = await self.get_401(method, path)
        self.world.clock.pass_s(61)
        return answer

    async def get_502(self, method: str, path: str) -> httpx.Response:
        return await self.ask(method, path, json={"messages": [{"role": "user", "content": "fail"}]})

    async def _in(self, fault: Exception, method: str, path: str) -> httpx.Response:
        session_id = (await self.response())["id"] if path.startswith("/v1/responses/") else await self.world.new_session()
        self.world.weather.fault = fault
        try:
            return await self.ask(method, path, session_id=session_id)
        finally:
            self.world.weather.fault = None

    async def get_500(self, method: str, path: str) -> httpx.Response:
        return await self._in(RuntimeError("as it was told"), method, path)

    async def get_503(self, method: str, path: str) -> httpx.Response:
        return await self._in(StoreClosed(), method, path)

    async def get_507(self, method: str, path: str) -> httpx.Response:
        return await self._in(StoreFull(), method, path)


async def test_every_status_of_every_operation_can_be_had(tmp_path: Path) -> None:
    """The document promises nothing that does not happen. That nothing else happens is seen to in every test of this folder."""
    machine = Machine(lambda elapsed: 1)
    keepers = SimKeepers(machine, elapsed=lambda: 0.0, faults=Wire())
    chats, settings = ChatServer(reconciles=True), Settings(max_waiting=1)
    async with web.world(tmp_path, settings=settings, chats=chats, keepers=keepers) as world, web.serving(world):
        provocations = Provocations(world, machine)
        for path, methods in world.document["paths"].items():
            for method, operation in methods.items():
                for status in map(int, operation["responses"]):
                    assert await provocations.provoke(method.upper(), path, status) == status, (method, path, status)
