"""Branching a conversation over HTTP: its own log, continued for itself, the same once however often it is asked for."""

from typing import Any

from tests.gateway.test_http_access import error_of
from tests.gateway.web import World


async def said(world: World, session_id: str) -> list[tuple[str, str]]:
    return [(message["role"], message["text"]) for message in (await world.view(session_id))["messages"]]


async def branch(world: World, session_id: str, message_id: str, **more: Any) -> Any:
    return await world.client.post(f"/api/sessions/{session_id}/branch", json={"message_id": message_id, **more})


async def answered(world: World, session_id: str, text: str) -> str:
    """The id of the answer to a message."""
    await world.post(session_id, text)

    async def done() -> str | None:
        view = await world.view(session_id)
        last = view["messages"][-1]
        return str(last["id"]) if last["role"] == "assistant" and last["status"] == "complete" and view["state"] == "idle" else None

    return await world.until(done)


async def test_a_branch_begins_with_what_was_said_and_continues_for_itself(world: World) -> None:
    session_id = await world.new_session()
    first = await answered(world, session_id, "one")
    await answered(world, session_id, "two")
    before = await said(world, session_id)
    made = await branch(world, session_id, first, client_id="c1")
    assert made.status_code == 201, made.text
    copy = made.json()["session_id"]
    view = await world.view(copy)
    assert [(each["role"], each["text"]) for each in view["messages"][:2]] == before[:2]
    assert view["messages"][-1]["role"] == "notice" and view["usage"]["requests"] == 0 and view["state"] == "idle"
    again = await branch(world, session_id, first, client_id="c1")
    assert again.json()["session_id"] == copy
    await answered(world, copy, "three")
    assert ("user", "three") in await said(world, copy)
    assert await said(world, session_id) == before
    turns = (await world.view(copy))["turns"]
    assert [turn["state"] for turn in turns] == ["ended", "ended"] and turns[1]["generation"] == turns[0]["generation"] + 1


async def test_a_branch_outlives_the_conversation_that_it_is_from(world: World) -> None:
    """A28: it is a copy, not a reference."""
    session_id = await world.new_session()
    first = await answered(world, session_id, "one")
    copy = (await branch(world, session_id, first)).json()["session_id"]
    words = await said(world, copy)
    assert (await world.client.delete(f"/api/sessions/{session_id}")).status_code == 200
    assert await said(world, copy) == words
    assert (await branch(world, session_id, first)).status_code == 410


async def test_what_is_not_there_or_not_over_is_not_branched_from(world: World) -> None:
    session_id = await world.new_session()
    assert error_of(await branch(world, session_id, "m_none")) == (404, "not_found")
    await world.post(session_id, "hold")

    async def begun() -> str | None:
        found = [message for message in (await world.view(session_id))["messages"] if message["role"] == "assistant"]
        return str(found[0]["id"]) if found else None

    answer = await world.until(begun)
    assert error_of(await branch(world, session_id, answer)) == (409, "not_over")


async def test_a_turn_that_is_too_large_is_left_out_or_refused(world: World) -> None:
    """P8: it is read page by page, and no page of it is copied."""
    session_id = await world.new_session()
    first = await answered(world, session_id, "one")
    large = await answered(world, session_id, "much 14")
    last = await answered(world, session_id, "two")
    refused = await branch(world, session_id, large)
    assert error_of(refused) == (409, "too_much_to_copy") and "earlier or a later message" in refused.json()["error"]["message"]
    assert [len(await said(world, await made(world, session_id, message))) for message in (first, last)] == [3, 3]
    words = await said(world, await made(world, session_id, last))
    assert words[:2] == [("user", "two"), ("assistant", "two")] and words[2][0] == "notice"


async def made(world: World, session_id: str, message_id: str) -> str:
    answer = await branch(world, session_id, message_id)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["session_id"])


async def test_operators_see_each_turn_once(world: World) -> None:
    """What is copied ended where it ran; what the branch does itself counts."""
    session_id = await world.new_session()
    copy = await made(world, session_id, await answered(world, session_id, "one"))
    again = await made(world, copy, (await world.view(copy))["messages"][1]["id"])

    async def seen() -> tuple[int, list[str]]:
        timeline = (await world.client.get("/api/ops/timeline", params={"hours": 1})).json()
        lines = (await world.client.get("/api/ops/log", params={"hours": 1})).json()["lines"]
        return sum(timeline["turns"]["completed"]), [line["session_id"] for line in lines]

    assert await seen() == (1, [session_id])
    await answered(world, again, "two")
    count, where = await seen()
    assert count == 2 and sorted(where) == sorted([session_id, again])
