"""The operator's view over HTTP: what runs, who is waited for, what waits, how the last hours went."""

from pathlib import Path
from typing import Any

from holdfast.core.errors import Unavailable
from holdfast.core.pairing import Pending
from tests.fakes.platform import NAME, ChatServer
from tests.gateway import web
from tests.gateway.web import World, eventually


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


async def test_the_timeline_has_every_pause_also_those_that_are_over(world: World) -> None:
    """C21, P8"""
    for holder in ("ada", "bea"):
        assert (await world.client.post("/api/admin/pause", json={"holder": holder, "for_s": 60})).status_code == 200
        found = (await ops(world, "timeline", hours=1))["pauses"][-1]
        assert (found["holder"], found["holds"], found["ended_at"]) == (holder, True, None) and found["until"] > found["since"]
        await world.client.post("/api/admin/unpause")
    pauses = (await ops(world, "timeline", hours=1))["pauses"]
    assert [(each["holder"], each["holds"]) for each in pauses] == [("ada", False), ("bea", False)]
    assert all(each["since"] <= each["ended_at"] <= each["until"] for each in pauses)


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


async def test_what_the_process_measures_is_shown_in_steps_with_gaps_where_nothing_was(world: World) -> None:
    """A ring of ten seconds: bounded, and of no use to anything but the view."""
    session_id = await world.new_session()
    await world.post(session_id, "hold")
    await world.until_state(session_id, "running")
    await world.series.measure()
    world.clock.pass_s(20)
    await world.post(session_id, "waits")
    await world.series.measure()
    found = await ops(world, "series")
    assert found["step_s"] == 10 and {len(numbers) for numbers in found["series"].values()} == {360}
    assert found["series"]["running_turns"][-3:] == [1, None, 1]
    assert found["series"]["inbox"][-3:] == [0, None, 1]
    assert found["series"]["memory_bytes"][-1] == 50_000_000
    assert 0 < found["series"]["commit_ms"][-1] < 60_000
    await world.client.post(f"/api/sessions/{session_id}/stop")
    await world.until_state(session_id, "idle")
    await world.series.measure()
    measured = (await ops(world, "series"))["series"]
    assert measured["inbox_lag_ms"][-1] >= 0 and measured["first_text_ms"][-1] >= 0
    day = await ops(world, "series", hours=24)
    assert (day["step_s"], day["series"]["inbox"][-1], len(day["series"]["inbox"])) == (240, 1, 360)
    assert (await world.client.get("/api/ops/series", params={"hours": 25})).status_code == 400


async def test_a_store_that_cannot_be_read_leaves_a_gap_in_what_is_measured(world: World) -> None:
    world.weather.fault = Unavailable("The disk is away.")
    await world.series.measure()
    world.weather.fault = None
    found = (await ops(world, "series"))["series"]
    assert (found["inbox"][-1], found["memory_bytes"][-1]) == (None, 50_000_000)


async def test_each_platform_says_since_when_it_is_as_it_is_and_what_was_wrong(tmp_path: Path) -> None:
    chats = ChatServer(reconciles=True)
    async with web.world(tmp_path, chats=chats) as world:
        link = world.gateway.links[NAME]
        await eventually(lambda: link.state == "connected")
        [found] = (await ops(world, "platforms"))["platforms"]
        assert (found["name"], found["state"], found["account"]) == (NAME, "connected", link.account and link.account.name)
        assert found["since"] and (found["error"], found["last_error"], found["outbox"], found["dead"]) == (None, None, {}, [])
        world.clock.pass_s(60)
        link.fails("no route", retry_after_s=8)
        [away] = (await ops(world, "platforms"))["platforms"]
        assert (away["state"], away["error"], away["last_error"]) == ("away", "no route", "no route")
        assert away["since"] > found["since"] and away["retry_at"] > away["since"]
        link.works()
        [back] = (await ops(world, "platforms"))["platforms"]
        assert (back["state"], back["error"], back["last_error"], back["retry_at"]) == ("connected", None, "no route", None)


async def test_what_is_written_on_the_page_is_counted_for_a_day(world: World) -> None:
    session_id = await world.new_session()
    await world.say(session_id, "hello")
    found = await ops(world, "platforms")
    assert found["taken_in"] == 1 and found["counted_since"]
    world.clock.pass_s(25 * 3600)
    assert (await ops(world, "platforms"))["taken_in"] == 0


async def test_messages_owed_to_a_platform_that_is_not_set_up_are_shown_as_such(world: World) -> None:
    store = world.gateway.store
    await store.create_session(session_id="s_x", session_key="agent:main:elsewhere:dm:1", log="l", at=1)
    await store.tell_once("s_x", notice_id="n", content="hello", anchor=None, at=1)
    found = await ops(world, "platforms")
    assert [(each["name"], each["state"], each["outbox"]) for each in found["platforms"]] == [("elsewhere", "off", {"pending": 1})]
    assert found["readers"] == 0


async def test_a_stranger_who_asks_waits_for_a_person_and_can_be_let_in_or_denied(world: World) -> None:
    now = world.clock.now()
    for user in ("7", "8"):
        who = Pending(platform="telegram", user=user, name=f"Eve {user}", salt=b"s", digest=b"d", made_at=now, told=True)
        await world.gateway.store.put_pairing(who)
    items = (await ops(world, "attention"))["items"]
    assert [(item["kind"], item["id"], item["text"]) for item in items] == [
        ("pairing", "telegram/7", "Eve 7"),
        ("pairing", "telegram/8", "Eve 8"),
    ]
    assert items[0]["session_id"] is None and items[0]["actions"] == ["approve", "deny"]
    answer = await world.client.post("/api/ops/people", json={"platform": "telegram", "user": "7", "name": "Eve 7"})
    assert answer.status_code == 200
    assert (await world.client.delete("/api/ops/people/telegram/8")).status_code == 204
    assert (await world.client.delete("/api/ops/people/telegram/8")).status_code == 404
    assert (await ops(world, "attention"))["items"] == []
    people = await ops(world, "people")
    assert ([who["user"] for who in people["paired"]], people["asking"]) == (["7"], [])
