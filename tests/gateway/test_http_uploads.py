"""Files through the HTTP API: in as uploads, with a message, and out again, whole or by range, and never run by a browser."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from holdfast.core.blobs import UNUSED_FOR_MS
from holdfast.core.errors import StoreFull
from tests.gateway import web
from tests.gateway.web import MAX_UPLOAD, World

pytestmark = pytest.mark.anyio
BYTES = bytes(range(256)) * 40
DIGEST = hashlib.sha256(BYTES).hexdigest()


async def upload(world: World, data: bytes = BYTES, kind: str = "image/png", **query: str) -> httpx.Response:
    return await world.client.post("/api/uploads", params=query, content=data, headers={"Content-Type": kind})


async def attached(world: World, data: bytes = BYTES, kind: str = "image/png", name: str = "x.png") -> str:
    """The session of a message with a file."""
    session_id = await world.new_session()
    made = (await upload(world, data, kind, name=name)).json()
    sent = await world.post(session_id, "look", attachments=[made["attachment_id"]])
    assert sent.status_code == 202, sent.text
    return session_id


async def blob(world: World, digest: str = DIGEST, **headers: str) -> httpx.Response:
    return await world.client.get(f"/api/blobs/{digest}", headers=headers)


def files(world: World) -> list[str]:
    return world.blobs_folder.names()


async def test_a_file_goes_in_with_a_message_and_comes_out_whole(world: World) -> None:
    """P1, P7"""
    made = await upload(world, name="../holiday ☀.png")
    assert made.status_code == 201
    assert made.json() == {"attachment_id": made.json()["attachment_id"], "name": "holiday ☀.png", "size": len(BYTES), "type": "image/png"}
    session_id = await world.new_session()
    sent = await world.post(session_id, "look", attachments=[made.json()["attachment_id"]])
    assert sent.status_code == 202
    got = await blob(world)
    assert (got.status_code, got.content) == (200, BYTES)


async def test_the_same_bytes_under_another_type_and_name_are_shown_under_those(world: World) -> None:
    """P7: each part says what its own sender said, and the bytes come under the type that is asked for, if a browser may show it."""
    session_id = await world.new_session()
    for name, kind in (("notes.txt", "text/plain"), ("holiday.png", "image/png")):
        made = (await world.client.post("/api/uploads", params={"name": name, "type": kind}, content=BYTES)).json()
        assert (made["name"], made["type"]) == (name, kind)
        await world.post(session_id, name, attachments=[made["attachment_id"]])
    shown = [part for message in (await world.view(session_id))["messages"] for part in message["parts"] if "digest" in part]
    assert {(part["type"], part["name"], part["media_type"]) for part in shown} == {
        ("file", "notes.txt", "text/plain"), ("image", "holiday.png", "image/png"),
    }  # fmt: skip
    for asked, given in (
        ("image/png", "image/png"),
        ("text/html", "application/octet-stream"),
        ("image/svg+xml", "application/octet-stream"),
    ):
        got = await world.client.get(f"/api/blobs/{DIGEST}", params={"type": asked})
        assert (got.status_code, got.headers["content-type"], got.headers["x-content-type-options"]) == (200, given, "nosniff")
        assert got.headers["content-disposition"].startswith("inline" if given == asked else "attachment")


async def test_a_message_may_be_a_file_alone_but_not_nothing(world: World) -> None:
    session_id = await world.new_session()
    made = (await upload(world, name="holiday.png")).json()
    assert (await world.post(session_id, "", attachments=[made["attachment_id"]])).status_code == 202
    assert (await world.post(session_id, "")).status_code == 400
    assert (await world.view(session_id))["title"] == "[holiday.png]"


async def test_a_refused_message_is_quoted_with_the_names_of_its_files_and_found_by_them(world: World) -> None:
    """A20"""
    session_id = await world.new_session()
    await world.post(session_id, "hold")
    await world.until_state(session_id, "running")
    made = (await upload(world, name="holiday.png")).json()
    await world.post(session_id, "", attachments=[made["attachment_id"]])
    await world.client.post(f"/api/sessions/{session_id}/reset", json={})
    said = [message["text"] for message in (await world.view(session_id))["messages"] if message["role"] == "notice"]
    assert any("> [holiday.png]" in text for text in said)
    while await world.gateway.store.index_search(limit=100):
        pass
    found = (await world.client.get("/api/sessions", params={"query": "holiday"})).json()["sessions"]
    assert [session["session_id"] for session in found] == [session_id]


async def test_the_same_client_id_again_is_the_same_upload_and_with_another_file_a_conflict(world: World) -> None:
    first = await upload(world, client_id="k", name="x")
    again = await upload(world, client_id="k", name="x")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    for other in (await upload(world, b"other", client_id="k", name="x"), await upload(world, client_id="k", name="y")):
        assert (other.status_code, other.json()["error"]["code"]) == (409, "client_id_reused")


async def test_the_same_message_again_is_recognised_by_text_and_attachments(world: World) -> None:
    """P1"""
    session_id = await world.new_session()
    ids = [(await upload(world, data)).json()["attachment_id"] for data in (b"one", b"two")]
    first = await world.post(session_id, "look", client_id="k", attachments=ids[:1])
    world.clock.pass_s(3 * UNUSED_FOR_MS / 1000)
    await world.blobs.collect()
    again = await world.post(session_id, "look", client_id="k", attachments=ids[:1])
    assert (first.status_code, again.status_code, again.json()) == (202, 200, first.json())
    for others in ([], [(await upload(world, b"two")).json()["attachment_id"]]):
        other = await world.post(session_id, "look", client_id="k", attachments=others)
        assert (other.status_code, other.json()["error"]["code"]) == (409, "client_id_reused")


@pytest.mark.parametrize("gone", ["never", "late"])
async def test_an_attachment_that_is_not_there_refuses_the_message(world: World, gone: str) -> None:
    session_id = await world.new_session()
    attachment_id = "a_never"
    if gone == "late":
        attachment_id = (await upload(world)).json()["attachment_id"]
        world.clock.pass_s(UNUSED_FOR_MS / 1000)
        assert await world.blobs.collect() == 1
        assert files(world) == []
    refused = await world.post(session_id, "look", attachments=[attachment_id])
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "attachment_gone")
    assert (await world.view(session_id))["messages"] == []


async def test_a_message_takes_twenty_attachments_and_not_one_more(world: World) -> None:
    session_id = await world.new_session()
    attachment_id = (await upload(world)).json()["attachment_id"]
    assert (await world.post(session_id, "x", attachments=[attachment_id] * 21)).status_code == 400
    assert (await world.post(session_id, "x", attachments=[attachment_id] * 20)).status_code == 202


async def test_a_command_takes_no_attachments(world: World) -> None:
    session_id = await world.new_session()
    attachment_id = (await upload(world)).json()["attachment_id"]
    refused = await world.post(session_id, "/status", attachments=[attachment_id])
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_input")
    assert "takes no attachments" in refused.json()["error"]["message"]
    assert (await world.post(session_id, "/queue later", attachments=[attachment_id])).status_code == 202


async def test_a_file_too_large_is_refused_and_leaves_nothing(world: World) -> None:
    async def dripping() -> AsyncIterator[bytes]:
        for _ in range(MAX_UPLOAD // 50_000 + 1):
            yield bytes(50_000)

    announced = await upload(world, bytes(MAX_UPLOAD + 1))
    grown = await world.client.post("/api/uploads", content=dripping())
    for refused in (announced, grown):
        assert (refused.status_code, refused.json()["error"]["code"]) == (413, "too_large")
        assert "larger than 1 MB" in refused.json()["error"]["message"]
    assert files(world) == []
    assert (await upload(world, bytes(MAX_UPLOAD))).status_code == 201


async def test_an_upload_that_breaks_off_leaves_nothing(served: World) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", served.port)
    lines = ("POST /api/uploads HTTP/1.1", f"Host: 127.0.0.1:{served.port}", f"Authorization: Bearer {web.TOKEN}", "Content-Length: 900000")
    writer.write("\r\n".join((*lines, "", "")).encode() + bytes(600_000))
    await writer.drain()
    await web.eventually(lambda: len(files(served)) == 1)
    writer.transport.abort()
    await web.eventually(lambda: files(served) == [])


async def test_a_full_disk_refuses_an_upload_and_keeps_nothing_half(world: World) -> None:
    """P1: nothing is acknowledged that is not there."""
    world.weather.fault = StoreFull()
    assert (await upload(world)).status_code == 507
    world.weather.fault = None
    assert files(world) == []
    world.blobs_folder.leave_free = 1 << 60
    refused = await upload(world)
    assert (refused.status_code, refused.json()["error"]["code"]) == (507, "store_full")
    assert files(world) == []
    world.blobs_folder.leave_free = 0
    assert (await upload(world)).status_code == 201


async def test_a_compressed_body_is_refused(world: World) -> None:
    refused = await world.client.post("/api/uploads", content=b"x", headers={"Content-Encoding": "gzip"})
    assert refused.status_code == 400


async def test_an_upload_without_a_name_or_type_has_both(world: World) -> None:
    made = await world.client.post("/api/uploads", content=b"")
    assert made.status_code == 201
    assert made.json() | {"attachment_id": ""} == {"attachment_id": "", "name": "attachment", "size": 0, "type": "application/octet-stream"}
    typed = await upload(world, b"x", "text/plain", type="Text/Markdown; charset=utf-8")
    assert typed.json()["type"] == "text/markdown"


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [("bytes=0-99", 0, 99), ("bytes=10000-", 10000, len(BYTES) - 1), ("bytes=-7", len(BYTES) - 7, len(BYTES) - 1)],
)
async def test_a_range_is_given_as_it_was_asked_for(world: World, asked: str, first: int, last: int) -> None:
    """P7"""
    await attached(world)
    got = await blob(world, Range=asked)
    assert (got.status_code, got.content) == (206, BYTES[first : last + 1])
    assert got.headers["content-range"] == f"bytes {first}-{last}/{len(BYTES)}"
    assert got.headers["content-length"] == str(last + 1 - first)


async def test_a_range_behind_the_end_is_refused_with_the_size(world: World) -> None:
    await attached(world)
    got = await blob(world, Range=f"bytes={len(BYTES)}-")
    assert (got.status_code, got.headers["content-range"]) == (416, f"bytes */{len(BYTES)}")


async def test_a_version_that_is_there_already_is_not_sent_again(world: World) -> None:
    await attached(world)
    tag = (await blob(world)).headers["etag"]
    again = await blob(world, **{"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    assert (await blob(world, **{"If-Range": '"other"', "Range": "bytes=0-1"})).status_code == 200
    assert (await blob(world, **{"If-Range": tag, "Range": "bytes=0-1"})).status_code == 206


async def test_head_says_what_get_would_give(world: World) -> None:
    await attached(world)
    whole, head = await blob(world), await world.client.head(f"/api/blobs/{DIGEST}", headers={"Range": "bytes=0-1"})
    assert (head.status_code, head.content) == (200, b"")
    for name in ("content-length", "content-type", "etag", "accept-ranges"):
        assert head.headers[name] == whole.headers[name]


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("image/png", True),
        ("audio/mpeg", True),
        ("text/html", False),
        ("image/svg+xml", False),
        ("application/pdf", False),
        ("text/plain", False),
    ],
)
async def test_a_browser_never_runs_what_was_sent(world: World, kind: str, shown: bool) -> None:
    data = f"<script>alert('{kind}')</script>".encode()
    await attached(world, data, kind)
    got = await world.client.get(f"/api/blobs/{hashlib.sha256(data).hexdigest()}?name=a%0d%0ab%22.html")
    assert got.headers["content-type"] == (kind if shown else "application/octet-stream")
    assert got.headers["content-disposition"] == f"{'inline' if shown else 'attachment'}; filename*=UTF-8''ab%22.html"
    assert got.headers["x-content-type-options"] == "nosniff"
    assert got.headers.get_list("content-security-policy") == ["default-src 'none'; sandbox"]
    assert got.headers["cache-control"] == "private, no-cache"
    assert got.headers["cross-origin-resource-policy"] == "same-origin"


async def test_bytes_are_given_to_nobody_without_a_credential(world: World) -> None:
    await attached(world)
    async with world.browser() as stranger:
        assert (await stranger.get(f"/api/blobs/{DIGEST}")).status_code == 401
        assert (await stranger.post("/api/uploads", content=b"x")).status_code == 401


async def test_only_what_a_visible_conversation_names_is_given(world: World) -> None:
    """A28: a digest is a name, not a permission."""
    await upload(world)
    assert (await blob(world)).status_code == 404
    session_id = await attached(world)
    assert (await blob(world)).status_code == 200
    await world.client.delete(f"/api/sessions/{session_id}")
    assert (await blob(world)).status_code == 404
    await world.client.post(f"/api/sessions/{session_id}/undelete")
    assert (await blob(world)).status_code == 200


@pytest.mark.parametrize("digest", ["x", "A" * 64, "0" * 63, "0" * 64, "%2e%2e%2fholdfast.db"])
async def test_what_is_no_digest_of_ours_is_not_found(world: World, digest: str) -> None:
    assert (await blob(world, digest)).status_code == 404


async def test_a_deleted_conversations_files_are_really_gone(world: World) -> None:
    """A28"""
    session_id = await attached(world)
    await attached(world, b"kept")
    await world.client.delete(f"/api/sessions/{session_id}")
    await world.blobs.collect()
    assert len(files(world)) == 2, "it can still be brought back"
    world.clock.pass_s(world.gateway.settings.undo_delete_s + 61)
    while await world.gateway.store.purge(now=world.clock.now(), steps=100):
        pass
    assert await world.blobs.collect() == 1
    assert files(world) == [name for name in files(world) if name.startswith(hashlib.sha256(b"kept").hexdigest())]
    assert not any(BYTES in path.read_bytes() for path in world.home.rglob("*") if path.is_file())


async def test_a_file_that_is_lost_on_disk_is_said_to_be_and_is_healed_by_the_next_upload(world: World) -> None:
    """P7: never half a file."""
    await attached(world)
    [name] = files(world)
    (world.home / "blobs" / name).write_bytes(BYTES[:-1])
    lost = await blob(world)
    assert (lost.status_code, lost.json()["error"]["code"]) == (404, "blob_lost")
    await upload(world)
    assert (await blob(world)).content == BYTES
    assert await world.blobs.sweep() == 1
    assert len(files(world)) == 1


async def test_the_same_bytes_many_times_at_once_are_one_file(world: World) -> None:
    made = await asyncio.gather(*(upload(world, name=f"{number}.png") for number in range(10)))
    assert {answer.status_code for answer in made} == {201}
    assert len({answer.json()["attachment_id"] for answer in made}) == 10
    assert len(files(world)) == 1


async def test_uploads_and_blobs_are_in_the_document(world: World) -> None:
    paths: dict[str, Any] = world.document["paths"]
    assert "application/octet-stream" in paths["/api/uploads"]["post"]["requestBody"]["content"]
    assert {"200", "201", "409", "413", "507"} <= set(paths["/api/uploads"]["post"]["responses"])
    assert {"200", "206", "304", "404", "416"} <= set(paths["/api/blobs/{digest}"]["get"]["responses"])


async def test_a_file_goes_over_a_real_connection(served: World) -> None:
    data = bytes(range(256)) * 3000
    async with httpx.AsyncClient(base_url=served.url, headers={"Authorization": f"Bearer {web.TOKEN}"}) as client:
        made = await client.post("/api/uploads?name=x", content=data)
        assert made.status_code == 201, made.text
        session_id = await served.new_session()
        await served.post(session_id, "x", attachments=[made.json()["attachment_id"]])
        got = await client.get(f"/api/blobs/{hashlib.sha256(data).hexdigest()}", headers={"Range": "bytes=700000-"})
        assert (got.status_code, got.content) == (206, data[700000:])
        refused = await client.post("/api/uploads", content=bytes(MAX_UPLOAD + 1))
        assert refused.status_code == 413
