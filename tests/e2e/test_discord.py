"""Holdfast behind a Discord bot, as people run it: real processes, killed at any moment, counted at the other end."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.core.delivery import REPEAT_LABEL
from tests.e2e.command_line import command, holdfast
from tests.e2e.serving import Serving, files_with, hand_over, wait_until
from tests.e2e.telling import whole
from tests.e2e.window import Window
from tests.fakes.discord.server import TOKEN
from tests.fakes.discord.thread import DiscordThread

ANN, BOB = "100", "200"
AGENT = "tests.e2e.telling:agent"


@pytest.fixture
def discord() -> Iterator[DiscordThread]:
    with DiscordThread() as made:
        yield made


def serving(home: Path, discord: DiscordThread) -> Serving:
    made = Serving(home, agent_module=AGENT, discord_token=TOKEN, discord_base_url=discord.url)
    made.configure(discord_allowed_users=f"{ANN},{BOB}")
    return made


def entered(discord: DiscordThread) -> list[str]:
    """How each connection to the gateway began."""
    return discord.do(lambda server: list(server.gateway.entered))


def answered(discord: DiscordThread, user: str, *said: str) -> bool:
    there = {text.removeprefix(REPEAT_LABEL) for text in discord.texts(user)}
    return all(whole(text) in there for text in said)


def test_kills_and_a_hand_over_lose_nothing_double_nothing_and_keep_the_order(tmp_path: Path, discord: DiscordThread) -> None:
    """P1, P4, B11, C24: intake, streaming and delivery, while people write. A nonce settles every doubt, so nothing is labelled. All of it
    is one session of the gateway: the rest is resumed.
    """
    said: dict[str, list[str]] = {ANN: [], BOB: []}

    def write(number: int) -> None:
        for user in (ANN, BOB):
            word = f"{'quick' if user == BOB else 'slow'}{number}"
            said[user].append(word)
            discord.say(user, word)

    with serving(tmp_path / "home", discord) as gateway:
        wait_until(lambda: entered(discord) == ["identify"])
        for number, wait_s in enumerate((0.3, 1.4)):
            write(number)
            time.sleep(wait_s)
            gateway.kill()
            gateway.start()
        write(2)
        wait_until(lambda: any(text.startswith("slow2:") for text in discord.texts(ANN)))
        hand_over(gateway)
        write(3)
        wait_until(lambda: all(answered(discord, user, *words) for user, words in said.items()))
    for user, words in said.items():
        assert discord.texts(user) == [whole(word) for word in words]
    assert entered(discord)[0] == "identify" and set(entered(discord)[1:]) == {"resume"}
    assert discord.do(lambda server: 1000 not in server.gateway.closes)


def test_from_a_token_to_an_answer(tmp_path: Path, discord: DiscordThread) -> None:
    """What docs/chats.md says, at a terminal. What was written to the bot meanwhile is answered; the token is in one file only."""
    home = tmp_path / "home"
    wrong = holdfast(home, "discord", "setup", "--token-stdin", "--base-url", discord.url, given="a.wrong.one")
    assert wrong.code == 1 and "does not accept the bot's token" in wrong.err and not home.exists()
    with Window(command(home, "discord", "setup", "--base-url", discord.url), cwd=tmp_path) as window:
        window.wait_for("Token (not shown)")
        window.press(f"{TOKEN}\n")
        window.wait_for("Waiting for three minutes")
        assert "It is @holdfast#0815 (Holdfast)." in window.text and "/oauth2/authorize?client_id=4712" in window.text
        wait_until(lambda: entered(discord) == ["identify"])
        discord.say(ANN, "quick")
        window.wait_for("Is that you?")
        window.press("y\n")
        window.wait_for("As an admin?")
        window.press("n\n")
        assert window.wait() == 0
        assert "Person 100 (id 100) wrote: quick" in window.text and "Allowed to talk: 100." in window.text
    assert (home / "discord.token").stat().st_mode & 0o777 == 0o600
    with Serving(home, agent_module=AGENT) as gateway:
        wait_until(lambda: answered(discord, ANN, "quick"))
        assert [chat["account"] for chat in gateway.status()["chats"]] == ["@holdfast#0815"]
        assert "@holdfast#0815 answers" in holdfast(home, "doctor", "--deep").out
    assert files_with(home, TOKEN) == ["discord.token"]
