"""The operator's view over HTTP: what runs, who is waited for, what waits, how the last hours went."""

from typing import Any

from tests.gateway.web import World


async def ops(world: World, name: str, **asked: Any) -> Any:
    answer = await world.client.get(f"/api/ops/{name}", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_running_turn_and_what_waits_behind_it_are_shown(world: World) -> None:
    """Visible without a click: turns with their last sign of life, and the inbox."""
    session_id = await world.new_session(title="Long work")
    path = f"/api/sessions/{session_id}/messages"
    await world.client.post(path, json={"text": "hold"})
    await world.until_state(session_id, "running")
    await world.client.post(path, json={"text": "next"})
    (turn,) = (await ops(world, "turns"))["turns"]
    assert (turn["session_id"], turn["title"], turn["platform"], turn["attempt"]) == (session_id, "Long work", "web", 1)
    assert turn["phase"]["kind"] in ("model", "tool") and turn["last_sign_at"] and turn["retiring"] is False
    inbox = await ops(world, "inbox")
    assert (inbox["waiting"], inbox["lanes"][0]["behind"]) == (1, "turn")
    assert await ops(world, "outbox") == {"deliveries": [], "counts": {}, "dead": []}
    await world.client.post(f"/api/sessions/{session_id}/stop")
    await world.until_state(session_id, "idle")


async def test_what_waits_for_a_person_is_one_list_the_oldest_first(world: World) -> None:
    asked, suspended = await world.new_session(title="Asks"), await world.new_session(title="Held")
    await world.client.post(f"/api/sessions/{asked}/messages", json={"text": "ask Which one?"})
    await world.until_state(asked, "waiting")
    await world.client.post(f"/api/sessions/{suspended}/suspend")
    items = (await ops(world, "attention"))["items"]
    assert {(item["kind"], item["title"]) for item in items} == {("question", "Asks"), ("suspended", "Held")}
    question = next(item for item in items if item["kind"] == "question")
    assert question["expires_at"] and question["text"] and question["actions"] == ["open"]
    row = next(each for each in (await world.client.get("/api/sessions")).json()["sessions"] if each["session_id"] == asked)
    assert row["needs"] == "question"


async def test_the_timeline_counts_ends_and_the_log_names_them(world: World) -> None:
    session_id = await world.new_session(title="Two turns")
    await world.say(session_id, "hello")
    await world.say(session_id, "fail")
    timeline = await ops(world, "timeline", hours=1)
    assert (sum(timeline["turns"]["completed"]), sum(timeline["turns"]["failed"]), timeline["partial"]) == (1, 1, False)
    lines = (await ops(world, "log"))["lines"]
    assert [(line["what"], line["outcome"], line["title"]) for line in lines] == [
        ("ended", "failed", "Two turns"),
        ("ended", "completed", "Two turns"),
    ]
    assert (await world.client.get("/api/ops/log", params={"hours": 0})).status_code == 400
