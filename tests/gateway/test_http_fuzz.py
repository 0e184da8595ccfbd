"""Whatever is sent, there is no 500, and every error has the one shape. That each status is one the document names is seen to elsewhere."""

import json
from typing import Any
from urllib.parse import unquote

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.gateway.web import TOKEN, World, ask

PATHS = (
    "/api/sessions", "/api/sessions/{id}", "/api/sessions/{id}/messages", "/api/sessions/{id}/events", "/api/sessions/{id}/stop",
    "/api/sessions/{id}/reset", "/api/sessions/{id}/resume", "/api/sessions/{id}/suspend",
    "/api/admin/resume", "/api/questions/{id}", "/api/approvals/{id}", "/api/rules",
    "/api/rules/{id}", "/api/login", "/api/logout", "/api/status",
    "/api/openapi.json", "/api/admin/stop", "/api/admin/restart", "/api/admin/pause", "/api/admin/unpause",
    "/metrics", "/healthz", "/", "/s/{id}", "/assets/{id}",
)  # fmt: skip
FIELDS = ("text", "client_id", "mode", "attachments", "title", "pinned", "archived", "code", "token", "holder", "for_s", "other")
PARAMETERS = ("limit", "before", "query", "archived", "state", "after", "other")
NAMES = ("host", "origin", "authorization", "cookie", "content-type", "content-length", "content-encoding", "last-event-id", "range", "x")
CALM = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)
objects = st.dictionaries(st.sampled_from(FIELDS), st.sampled_from(["hello", "queue", "ask what?", True, TOKEN, "c1"]) | values)
bodies = st.binary() | objects.map(lambda value: json.dumps(value).encode()) | values.map(lambda value: json.dumps(value).encode())
methods = st.sampled_from(["GET", "POST", "PATCH", "DELETE", "HEAD", "PUT", "OPTIONS"]) | st.text("ABCxyz-", min_size=1)
ids = st.just("SESSION") | st.just("QUESTION") | st.text(min_size=1) | st.sampled_from(["%00", "%ff", "..", "%2f", "%2e%2e", "'"])
paths = st.builds(lambda path, name: path.replace("{id}", name), st.sampled_from(PATHS), ids) | st.text().map(lambda text: "/" + text)
texts = st.text(st.characters(codec="latin-1")).map(lambda text: text.encode("latin-1")) | st.binary()
queries = st.binary() | st.dictionaries(
    st.sampled_from(PARAMETERS), texts | st.sampled_from([b"5", b"0", b"true", b"%FF", b"1.2", b"LOG.3"])
).map(lambda fields: b"&".join(name.encode() + b"=" + value for name, value in fields.items()))
headers = st.lists(
    st.tuples(st.sampled_from(NAMES), texts | st.sampled_from([b"application/json", b"LOG.2", b"holdfast=1.x", b"Bearer x"])), max_size=3
)


@CALM
@given(methods, paths, queries, headers, bodies, st.booleans())
@example("POST", "/api/sessions/SESSION/messages", b"", [], b'{"text": "\\ud800"}', True)
@example("GET", "/api/sessions/SESSION/events", b"after=LOG.99999999999999999999", [], b"", True)
@example("GET", "/api/sessions/\udc80", b"", [], b"", True)
@example("GET", "/api/sessions", b"query=%22%2A%22", [], b"", True)
async def test_no_request_makes_the_server_fail(
    world: World, method: str, path: str, query: bytes, more: list[tuple[str, bytes]], body: bytes, plain: bool
) -> None:
    session_id, question_id, log = await anchors(world)
    path = path.replace("SESSION", session_id).replace("QUESTION", question_id)
    usual: dict[str, bytes] = {
        "host": f"localhost:{world.port}".encode(), "authorization": f"Bearer {TOKEN}".encode(), "content-type": b"application/json",
    }  # fmt: skip
    more = [] if plain else more
    given_headers = [*((name, value) for name, value in usual.items() if name not in dict(more)), *more]
    scope: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": unquote(path, errors="replace"),
        "raw_path": path.encode("utf-8", "replace"),
        "query_string": query.replace(b"LOG", log.encode()),
        "headers": [(name.encode(), value.replace(b"LOG", log.encode())) for name, value in given_headers],
        "scheme": "http",
        "client": ("127.0.0.1", 1),
        "root_path": "",
    }
    status, answer = await ask(world.app, scope, body)
    assert status and status != 500, answer
    if status >= 400 and method != "HEAD":
        error = json.loads(answer)["error"]
        assert set(error) == {"code", "message"} and error["code"] and error["message"]
    assert not world.app.violations
    assert world.gateway.feed.readers == 0


async def anchors(world: World) -> tuple[str, str, str]:
    """A session, a question of another that is open at first, and the first one's log: made once for each gateway."""
    if not world.anchors:
        session_id, asking = await world.new_session(), await world.new_session()
        await world.post(asking, "ask Well?")
        question = (await world.until_state(asking, "waiting"))["questions"][0]["question_id"]
        world.anchors = (session_id, question, (await world.gateway.store.session(session_id)).log)
    return world.anchors
