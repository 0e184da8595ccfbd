"""Stops of a turn over real HTTP."""

import asyncio
from pathlib import Path

import httpx
import pytest

from tests.e2e.serving import Serving


@pytest.mark.parametrize("way", ["the request", "words"])
def test_a_hundred_stops_at_once_stop_one_turn_and_leave_the_next(tmp_path: Path, way: str) -> None:
    """A21: they arrive one after the other over a hundred connections, the last of them while the next turn runs."""
    with Serving(tmp_path / "home") as serving:
        session_id = serving.new_session()
        serving.post(session_id, "hang")
        serving.wait_for(session_id, state="running")
        serving.post(session_id, "count 10 0.1")
        path, body = (
            (f"/api/sessions/{session_id}/stop", {})
            if way == "the request"
            else (f"/api/sessions/{session_id}/messages", {"text": "/stop"})
        )

        async def stop_often() -> list[int]:
            with serving.client() as signed_in:
                base, headers = signed_in.base_url, signed_in.headers
            limits = httpx.Limits(max_connections=100, max_keepalive_connections=100)
            async with httpx.AsyncClient(base_url=base, headers=headers, limits=limits, timeout=60) as client:
                await asyncio.gather(*(client.get("/healthz") for _ in range(100)))  # So that the connections are there.
                return [answer.status_code for answer in await asyncio.gather(*(client.post(path, json=body) for _ in range(100)))]

        answers = asyncio.run(stop_often())
        session = serving.wait_for(session_id)
        assert [turn["outcome"] for turn in session["turns"]] == ["cancelled", "completed"]
        assert session["messages"][-1]["text"].endswith("9 10") or way == "words"
        assert set(answers) <= ({202, 409} if way == "the request" else {202})
