"""Approvals and rules over HTTP (R5), as docs/http-api.md promises them."""

from typing import Any

from tests.gateway.test_http_sessions import code
from tests.gateway.web import World


async def asked(world: World, text: str = "approve hello", session_id: str | None = None) -> tuple[str, dict[str, Any]]:
    """A session that waits for an approval, and the approval."""
    session_id = session_id or await world.new_session()
    await world.post(session_id, text)
    [question] = (await world.until_state(session_id, "waiting"))["questions"]
    return session_id, question


async def judge(world: World, question: dict[str, Any], **said: str) -> Any:
    return await world.client.post(f"/api/approvals/{question['question_id']}", json=said)


async def answer(world: World, session_id: str) -> str:
    view = await world.until_state(session_id, "idle")
    return str([message["text"] for message in view["messages"] if message["role"] == "assistant"][-1])


async def test_an_approval_is_shown_whole_and_lets_its_call_run(world: World) -> None:
    """However long it is."""
    long = "x" * 100_000
    session_id, question = await asked(world, f"approve {long}")
    assert (question["kind"], question["call"], question["pattern"]) == (
        "approval",
        {"name": "printer", "arguments": {"text": long}},
        "printer",
    )
    assert long in question["text"]
    found = await judge(world, question, verdict="approve")
    assert (found.status_code, found.json()) == (202, {"question_id": question["question_id"], "session_id": session_id})
    assert (await answer(world, session_id)).startswith("done: x")
    assert code(await judge(world, question, verdict="approve")) == (409, "question_answered")


async def test_a_denial_gives_the_agent_the_reason(world: World) -> None:
    session_id, question = await asked(world)
    assert (await judge(world, question, verdict="deny", reason="not today")).status_code == 202
    assert await answer(world, session_id) == "failed: owner denied it, so it was not run. The reason: not today"
    view = await world.view(session_id)
    assert [message["text"] for message in view["messages"] if message["role"] == "user"] == ["approve hello", "Denied: not today"]


async def test_the_same_client_id_is_the_same_verdict_and_another_one_under_it_is_refused(world: World) -> None:
    _, question = await asked(world)
    first = await judge(world, question, verdict="approve", client_id="c1")
    again = await judge(world, question, verdict="approve", client_id="c1")
    assert (first.status_code, again.status_code, again.json()) == (202, 202, first.json())
    assert code(await judge(world, question, verdict="deny", client_id="c1")) == (409, "client_id_reused")


async def test_always_makes_a_rule_that_is_listed_and_can_be_taken_back(world: World) -> None:
    session_id, question = await asked(world)
    await judge(world, question, verdict="approve", scope="session")
    await world.until_state(session_id, "idle")
    [rule] = (await world.client.get("/api/rules")).json()["rules"]
    assert (rule["session_id"], rule["pattern"], rule["by"]) == (session_id, "printer", "owner")
    other = await world.new_session()
    assert (await world.client.get("/api/rules", params={"session": other})).json() == {"rules": []}
    assert (await world.client.get("/api/rules", params={"session": session_id})).json() == {"rules": [rule]}
    await world.say(session_id, "approve again")
    gone = await world.client.delete(f"/api/rules/{rule['rule_id']}")
    assert (gone.status_code, gone.json()) == (200, rule)
    assert code(await world.client.delete(f"/api/rules/{rule['rule_id']}")) == (404, "not_found")
    await asked(world, "approve more", session_id)


async def test_what_does_not_fit_an_approval_is_refused(world: World) -> None:
    _, question = await asked(world)
    for wrong in ({}, {"verdict": "maybe"}, {"verdict": "approve", "scope": "for ever"}, {"verdict": "approve", "reason": "r"}):
        assert (await judge(world, question, **wrong)).status_code == 400, wrong
    path = f"/api/questions/{question['question_id']}"
    assert code(await world.client.post(path, json={"text": "yes"})) == (400, "bad_input")
    assert code(await world.client.post("/api/approvals/q_none", json={"verdict": "approve"})) == (404, "not_found")
    assert code(await world.client.get("/api/rules", params={"session": "s_none"})) == (404, "not_found")
    session_id = await world.new_session()
    await world.post(session_id, "ask why")
    [plain] = (await world.until_state(session_id, "waiting"))["questions"]
    assert code(await judge(world, plain, verdict="approve")) == (400, "bad_input")
