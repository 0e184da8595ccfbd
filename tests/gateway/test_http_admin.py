"""The gateway as a whole over HTTP: restart, pause and what becomes of them (C21, C24, C25)."""

from typing import Any

import pytest

from holdfast.core.commands import COMMANDS, SENDING
from holdfast.core.errors import HandOverFailed, NotNow
from tests.gateway.sse import reading
from tests.gateway.test_http_access import error_of
from tests.gateway.web import World

DAY_S = 86400


async def order(world: World, what: str, body: dict[str, Any] | None = None) -> Any:
    return await world.client.post(f"/api/admin/{what}", json=body)


async def test_a_restart_answers_when_the_successor_serves_and_names_it(world: World) -> None:
    """C24"""
    answer = await world.client.post("/api/admin/restart")
    assert (answer.status_code, answer.json()) == (200, {"mode": "hand_over", "pid": 2, "version": "0"})
    assert world.restarts == 1


@pytest.mark.parametrize(
    ("refusal", "code"),
    [(HandOverFailed("it ended before it was ready."), "hand_over_failed"), (NotNow("hand over", "draining"), "not_now")],
)
async def test_a_restart_that_did_not_happen_says_why(world: World, refusal: Exception, code: str) -> None:
    """C25"""
    world.refusal = refusal
    answer = await order(world, "restart", {})
    assert error_of(answer) == (409, code)
    assert answer.json()["error"]["message"] == str(refusal)
    assert (await world.client.get("/api/status")).json()["gateway_state"] == "running"


async def test_a_pause_and_its_end_over_http(world: World) -> None:
    """C21, C22"""
    session_id = await world.new_session()
    answer = await order(world, "pause", {"holder": "ada", "for_s": 60})
    assert answer.status_code == 200
    body = answer.json()
    assert (body["gateway_state"], body["holder"]) == ("paused", "ada") and body["until"].endswith("Z")
    status = (await world.client.get("/api/status")).json()
    assert (status["gateway_state"], status["paused_by"]) == ("paused", "ada")
    assert (await world.post(session_id, "hello")).status_code == 202
    view = await world.view(session_id)
    assert (view["state"], view["queued"], [message["role"] for message in view["messages"]]) == ("queued", 1, ["notice", "user"])
    answer = await order(world, "unpause")
    assert (answer.status_code, answer.json()) == (200, {"gateway_state": "running"})
    view = await world.until_state(session_id, "idle")
    assert [message["role"] for message in view["messages"]] == ["user", "notice", "assistant"]
    assert (await world.client.get("/api/status")).json()["paused_by"] is None


async def test_a_pause_lasts_an_hour_where_nobody_says_how_long(world: World) -> None:
    """C21"""
    answer = await order(world, "pause")
    paused = world.gateway.pausing.paused
    assert answer.status_code == 200 and paused is not None
    assert (paused.holder, paused.until - paused.since) == ("owner", 3600_000)


@pytest.mark.parametrize(
    "body",
    [
        {"for_s": 0}, {"for_s": -1}, {"for_s": DAY_S + 1}, {"for_s": "60"}, {"for_s": None}, {"for_s": 1e308},
        {"holder": ""}, {"holder": "x" * 201}, {"holder": 5}, {"until": "tomorrow"},
    ],
)  # fmt: skip
async def test_a_pause_that_nobody_could_mean_is_refused_and_nothing_is_paused(world: World, body: dict[str, Any]) -> None:
    """C21: none is without an end."""
    assert error_of(await order(world, "pause", body)) == (400, "bad_input")
    assert world.gateway.state == "running" and await world.gateway.store.pause(now=0) is None


async def test_a_gateway_that_hands_over_cannot_be_paused(world: World) -> None:
    """C21"""
    world.gateway.hand_over.begin()
    answer = await order(world, "pause", {})
    assert error_of(answer) == (409, "not_now") and "handing_over" in answer.json()["error"]["message"]
    await world.gateway.hand_over.take_back()
    assert (await order(world, "pause", {"for_s": DAY_S})).status_code == 200
    assert (await order(world, "unpause", {})).status_code == 200


async def test_what_is_not_paused_can_be_unpaused(world: World) -> None:
    assert (await order(world, "unpause", {})).json() == {"gateway_state": "running"}


async def test_a_reader_is_told_that_the_server_hands_over(served: World) -> None:
    """C24: it comes back to the successor with its cursor."""
    session_id = await served.new_session()
    async with reading(served, session_id) as reader:
        await reader.until("session.created")
        served.gateway.hand_over.begin()
        await served.gateway.hand_over.give_way()
        await served.gateway.hand_over.retire()
        assert (await reader.until("end"))[-1].data == {"reason": "handover"}


async def test_the_commands_are_listed_for_those_who_offer_them(world: World) -> None:
    answer = await world.client.get("/api/commands")
    assert answer.status_code == 200, answer.text
    listed = {each["name"]: each for each in answer.json()["commands"]}
    assert {name: (each["form"], each["sentence"]) for name, each in listed.items()} == {
        name: (usage.form, usage.sentence) for name, usage in COMMANDS.items()
    }
    assert [name for name, each in listed.items() if each["sends"]] == [*SENDING]
