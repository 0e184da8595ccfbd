"""Holdfast behind a Telegram bot, as people run it: real processes, killed at any moment, counted at the other end."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.delivery import REPEAT_LABEL
from tests.e2e.command_line import holdfast
from tests.e2e.serving import Serving, files_with, hand_over, wait_until
from tests.e2e.telling import whole
from tests.fakes.telegram.server import TOKEN
from tests.fakes.telegram.thread import TelegramThread

ANN, BOB = 100, 200
AGENT = "tests.e2e.telling:agent"
BY_WEBHOOK = {"telegram_webhook": "true", "public_url": "https://bot.example.org"}


@pytest.fixture
def telegram() -> Iterator[TelegramThread]:
    with TelegramThread() as made:
        yield made


def serving(home: Path, telegram: TelegramThread, **settings: str) -> Serving:
    made = Serving(home, agent_module=AGENT, telegram_token=TOKEN, telegram_base_url=telegram.url)
    made.configure(telegram_allowed_users=f"{ANN},{BOB}", **settings)
    if settings:
        telegram.do(lambda server: server.hook.lead_to(made.url))
    return made


def plain(texts: list[str]) -> list[str]:
    return [text for text in texts if not text.startswith(REPEAT_LABEL)]


def answered(telegram: TelegramThread, chat: int, *said: str) -> bool:
    """Everything is answered, whole."""
    there = {text.removeprefix(REPEAT_LABEL) for text in telegram.texts(chat)}
    return all(whole(text) in there for text in said)


def check(telegram: TelegramThread, chat: int, said: list[str]) -> int:
    """0 lost, 0 silently doubled, order kept. Gives how many were labelled."""
    shown = telegram.texts(chat)
    answers = [text.removeprefix(REPEAT_LABEL) for text in shown if text.removeprefix(REPEAT_LABEL) in {whole(word) for word in said}]
    assert list(dict.fromkeys(answers)) == [whole(word) for word in said], shown
    assert all(shown.count(whole(word)) <= 1 for word in said), shown
    labelled = [text for text in shown if text.startswith(REPEAT_LABEL)]
    left_over = [text for text in shown if text.removeprefix(REPEAT_LABEL) not in {whole(word) for word in said}]
    assert len(left_over) <= len(labelled), shown  # First words of which nobody could know that they had arrived.
    return len(labelled)


@pytest.mark.parametrize("settings", [{}, BY_WEBHOOK], ids=["polling", "webhook"])
def test_kills_at_any_moment_lose_nothing_double_nothing_silently_and_keep_the_order(
    tmp_path: Path, telegram: TelegramThread, settings: dict[str, str]
) -> None:
    """P1, P4, B11: intake, streaming and delivery, killed while people write. `platforms/test_kills.py` dies at every point of it."""
    said: dict[int, list[str]] = {ANN: [], BOB: []}
    with serving(tmp_path / "home", telegram, **settings) as gateway:
        for number, wait_s in enumerate((0.3, 1.4)):
            for chat in (ANN, BOB):
                word = f"{'quick' if chat == BOB else 'slow'}{number}"
                said[chat].append(word)
                telegram.say(chat, word)
            time.sleep(wait_s)
            gateway.kill()
            gateway.start()
        wait_until(lambda: all(answered(telegram, chat, *words) for chat, words in said.items()))
    labelled = [check(telegram, chat, words) for chat, words in said.items()]
    assert sum(labelled) <= 2


@pytest.mark.parametrize("settings", [{}, BY_WEBHOOK], ids=["polling", "webhook"])
def test_a_hand_over_in_the_middle_of_an_answer_leaves_one_message_and_no_gap(
    tmp_path: Path, telegram: TelegramThread, settings: dict[str, str]
) -> None:
    """C24, B11: the turn ends in the old process, its message is continued by the new one."""
    with serving(tmp_path / "home", telegram, **settings) as gateway:
        telegram.say(ANN, "slow")
        wait_until(lambda: telegram.texts(ANN)[:1] != [] and telegram.texts(ANN)[0].startswith("slow:"))
        hand_over(gateway)
        telegram.say(ANN, "next")
        wait_until(lambda: answered(telegram, ANN, "slow", "next"))
        assert telegram.texts(ANN) == [whole("slow"), whole("next")]
        assert telegram.do(lambda server: server.removed) == []


def test_from_a_token_to_an_answer(tmp_path: Path, telegram: TelegramThread) -> None:
    """What docs/chats.md says: setup, a stranger, a code, an answer; the token is in one file and nowhere else."""
    home = tmp_path / "home"
    wrong = holdfast(home, "telegram", "setup", "--token-stdin", "--base-url", telegram.url, given="1:wrong")
    assert wrong.code == 1 and "does not accept the bot's token" in wrong.err and not home.exists()
    done = holdfast(home, "telegram", "setup", "--token-stdin", "--base-url", telegram.url, given=TOKEN)
    assert done.code == 0 and "It is @holdfast_bot (Holdfast)." in done.out, done
    assert (home / "telegram.token").stat().st_mode & 0o777 == 0o600
    telegram.say(BOB, "before it ran")
    with Serving(home, agent_module=AGENT) as gateway:
        wait_until(lambda: len(telegram.texts(BOB)) == 1)
        [code] = re.findall(r"code is (\w{8}),", telegram.texts(BOB)[0])
        assert "asks" in holdfast(home, "pair").out
        assert holdfast(home, "pair", "approve", "AAAAAAAA").code == 1
        let_in = holdfast(home, "pair", "approve", code)
        assert "may talk to the agent now" in let_in.out
        telegram.say(BOB, "quick")
        wait_until(lambda: answered(telegram, BOB, "quick"))
        assert [chat["account"] for chat in gateway.status()["chats"]] == ["@holdfast_bot"]
        assert "connected as @holdfast_bot" in holdfast(home, "doctor").out
        assert "Everything that was owed to chats has arrived" in holdfast(home, "outbox").out
        listed = holdfast(home, "outbox", "--all", "--json").json["deliveries"]
        assert [each["state"] for each in listed] == ["sent"]
        refused = holdfast(home, "outbox", "--retry", listed[0]["delivery_id"])
        assert refused.code == 1 and "nothing to retry" in refused.err
        assert holdfast(home, "pair", "remove", "telegram", str(BOB)).code == 0
        telegram.do(lambda server: server.deliver(message="what?"))
        wait_until(lambda: gateway.status()["chats"][0]["refused"] == 1)
        assert "1 update of Telegram could not be read since the start" in holdfast(home, "doctor").out
    assert files_with(home, TOKEN) == ["telegram.token"]


def test_without_a_model_a_chat_is_told_so_and_the_demo_runs_nothing_for_it(tmp_path: Path, telegram: TelegramThread) -> None:
    """DESIGN 9"""
    made = Serving(tmp_path / "home", telegram_token=TOKEN, telegram_base_url=telegram.url, telegram_allowed_users=str(ANN))
    with made as gateway:
        telegram.say(ANN, "run touch made")
        wait_until(lambda: len(telegram.texts(ANN)) == 1)
        assert telegram.texts(ANN)[0].startswith("No agent is set up here yet.")
        assert not (gateway.folder / "made").exists()


def test_a_webhook_is_stored_before_it_is_answered(tmp_path: Path, telegram: TelegramThread) -> None:
    """P1: the same message by a webhook, twice, one that is not signed, and one that nobody can read, of which the operator is told."""
    with serving(tmp_path / "home", telegram, **BY_WEBHOOK) as gateway:
        telegram.do(lambda server: server.hook.lead_to(None))
        wait_until(lambda: gateway.status()["chats"][0]["account"] == "@holdfast_bot")
        hook = telegram.do(lambda server: dict(server.webhook))
        assert hook["url"] == "https://bot.example.org/hooks/telegram"
        said = telegram.say(ANN, "quick")
        body = {"update_id": 5, "message": said}
        with gateway.client() as client:
            headers = {"host": "bot.example.org", "x-telegram-bot-api-secret-token": hook["secret_token"]}
            assert client.post("/hooks/telegram", json=body, headers={"host": "bot.example.org"}).status_code == 403
            # Until it is connected it refuses, and Telegram would say it again.
            wait_until(lambda: client.post("/hooks/telegram", json=body, headers=headers).status_code == 200)
            assert client.post("/hooks/telegram", json=body, headers=headers).status_code == 200
            assert client.post("/hooks/telegram", content=b"nonsense", headers=headers).status_code == 200
        wait_until(lambda: answered(telegram, ANN, "quick"))
        wait_until(lambda: gateway.status()["chats"][0]["refused"] == 1)
        assert telegram.texts(ANN) == [whole("quick")]
        gateway.kill()
        gateway.start()
        wait_until(lambda: _platform(gateway)["state"] == "connected")
        assert _platform(gateway)["refused"] == 0 and "JSON is malformed" in _platform(gateway)["last_refused"]


def _platform(gateway: Serving) -> dict[str, Any]:
    with gateway.client() as client:
        [found] = client.get("/api/ops/platforms").json()["platforms"]
    return dict(found)
