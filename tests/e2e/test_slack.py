"""Holdfast behind a Slack app, as people run it: real processes, killed at any moment, counted at the other end."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from slack_sdk.signature import SignatureVerifier

from holdfast.core.delivery import REPEAT_LABEL
from tests.e2e.command_line import command, holdfast
from tests.e2e.serving import Serving, files_with, hand_over, wait_until
from tests.e2e.telling import whole
from tests.e2e.window import Window
from tests.fakes.slack.hooking import SECRET
from tests.fakes.slack.server import APP_TOKEN, BOT_TOKEN
from tests.fakes.slack.thread import SlackThread

ANN, BOB = "U100", "U200"
DM, BOBS, TEAM = "D100", "D200", "C300"
AGENT = "tests.e2e.telling:agent"
PUBLIC = "https://bot.example.org"
BY_SOCKET = {"slack_app_token": APP_TOKEN}
OVER_HTTP = {"slack_signing_secret": SECRET, "public_url": PUBLIC}


@pytest.fixture
def slack() -> Iterator[SlackThread]:
    with SlackThread() as made:
        yield made


def serving(home: Path, slack: SlackThread, **settings: str) -> Serving:
    made = Serving(home, agent_module=AGENT, slack_bot_token=BOT_TOKEN, slack_base_url=slack.url)
    made.configure(slack_allowed_users=f"{ANN},{BOB}", **settings)
    return made


@pytest.mark.parametrize("settings", [BY_SOCKET, OVER_HTTP], ids=["socket", "http"])
def test_kills_and_a_hand_over_while_chats_stream_lose_nothing_double_nothing_and_keep_the_order(
    tmp_path: Path, slack: SlackThread, settings: dict[str, str]
) -> None:
    """P1, P4, B11, C24: intake, streaming and delivery. Nothing is even labelled: a send in doubt is looked up in the history."""
    said: dict[str, list[str]] = {DM: [], BOBS: [], TEAM: []}

    def everybody_writes(number: int) -> None:
        for channel, user, word in ((DM, ANN, "slow"), (BOBS, BOB, "quick"), (TEAM, ANN, "slow")):
            said[channel].append(f"{word}{number}")
            slack.say(channel, f"{'<@UBOT> ' if channel == TEAM else ''}{word}{number}", user=user)

    with serving(tmp_path / "home", slack, **settings) as gateway:
        if settings is OVER_HTTP:
            slack.do(lambda server: server.hook.lead_to(gateway.url))
            slack.do(lambda server: setattr(server.hook, "url", f"{PUBLIC}/hooks/slack"))
        for number, wait_s in enumerate((0.3, 1.4)):
            everybody_writes(number)
            time.sleep(wait_s)
            gateway.kill()
            gateway.start()
        everybody_writes(2)
        hand_over(gateway)
        wait_until(lambda: all(whole(word) in slack.texts(channel) for channel, words in said.items() for word in words))
    for channel, words in said.items():
        answers = [text for text in slack.texts(channel) if ":" in text and text in {whole(word) for word in words}]
        shown = slack.texts(channel)
        assert sorted(answers) == sorted(whole(word) for word in words), shown
        assert channel == TEAM or answers == [whole(word) for word in words], shown
        assert not any(text.startswith(REPEAT_LABEL) for text in shown), shown
    threads = slack.do(lambda server: {one["text"]: one.get("thread_ts") for one in server.ours(TEAM)})
    roots = slack.do(lambda server: {one["text"].split()[-1]: one["ts"] for one in server.said if one["user"] == ANN})
    assert all(threads[whole(word)] == roots[word] for word in said[TEAM])


def test_from_tokens_to_an_answer(tmp_path: Path, slack: SlackThread) -> None:
    """What docs/chats.md says, without a terminal: setup, an answer, doctor; each token is in one file and nowhere else."""
    home, bot, app = tmp_path / "home", tmp_path / "bot", tmp_path / "app"
    bot.write_text(BOT_TOKEN)
    app.write_text("xapp-wrong")
    words = ("slack", "setup", "--bot-token-file", str(bot), "--app-token-file", str(app), "--base-url", slack.url, "--user", BOB)
    wrong = holdfast(home, *words)
    assert wrong.code == 1 and "does not accept the app's tokens" in wrong.err and not home.exists()
    app.write_text(APP_TOKEN)
    done = holdfast(home, *words)
    assert done.code == 0 and "It is @holdfast (Acme)." in done.out, done
    assert {(home / f"slack.{name}").stat().st_mode & 0o777 for name in ("bot_token", "app_token")} == {0o600}
    slack.say(BOBS, "quick", user=BOB)
    with Serving(home, agent_module=AGENT) as gateway:
        wait_until(lambda: whole("quick") in slack.texts(BOBS))
        assert [chat["account"] for chat in gateway.status()["chats"]] == ["@holdfast"]
        assert "@holdfast answers" in holdfast(home, "doctor", "--deep").out
    for token, name in ((BOT_TOKEN, "slack.bot_token"), (APP_TOKEN, "slack.app_token")):
        assert files_with(home, token) == [name]


def test_at_a_terminal_it_prints_the_manifest_tries_both_tokens_and_lets_the_first_person_in(tmp_path: Path, slack: SlackThread) -> None:
    """P1: what the person wrote meanwhile is not taken away from the gateway."""
    home = tmp_path / "home"
    with Window(command(home, "slack", "setup", "--base-url", slack.url), cwd=tmp_path) as window:
        window.wait_for("Bot token (xoxb-")
        shown = window.text
        assert json.loads(shown[shown.index("{") : shown.rindex("}") + 1])["settings"]["socket_mode_enabled"]
        window.press(f"{BOT_TOKEN}\n")
        window.wait_for("App token (xapp-")
        window.press(f"{BOT_TOKEN}\n")
        window.wait_for("Try again?")
        window.press("y\n")
        wait_until(lambda: window.text.count("Bot token (xoxb-") == 2)
        window.press(f"{BOT_TOKEN}\n")
        wait_until(lambda: window.text.count("App token (xapp-") == 2)
        window.press(f"{APP_TOKEN}\n")
        window.wait_for("Now write anything to @holdfast in Slack")
        slack.say(DM, "quick", user=ANN)
        window.wait_for("Is that you?")
        assert "Person U100 (id U100) wrote: quick" in window.text
        window.press("y\n")
        window.wait_for("As an admin?")
        window.press("y\n")
        assert window.wait() == 0 and "Allowed to talk: U100 (admin)." in window.text
        assert BOT_TOKEN not in window.text and APP_TOKEN not in window.text
    with Serving(home, agent_module=AGENT):
        wait_until(lambda: slack.texts(DM) == [whole("quick")])


def test_a_change_to_http_leaves_no_app_token_in_the_settings(tmp_path: Path, slack: SlackThread) -> None:
    home, bot, secret = tmp_path / "home", tmp_path / "bot", tmp_path / "secret"
    home.mkdir(mode=0o700)
    bot.write_text(BOT_TOKEN)
    secret.write_text(SECRET)
    (home / "config.toml").write_text('public_url = "https://bot.example.org"\n\n[slack]\nbot_token_file = "b"\napp_token_file = "a"\n')
    files = ("--bot-token-file", str(bot), "--signing-secret-file", str(secret))
    done = holdfast(home, "slack", "setup", "--http", *files, "--base-url", slack.url)
    written = (home / "config.toml").read_text()
    assert done.code == 0 and "slack.signing_secret; only you can read them" in done.out, done
    assert 'signing_secret_file = "slack.signing_secret"' in written and "app_token" not in written


def test_the_manifest_is_one_that_slack_can_read(tmp_path: Path) -> None:
    by_socket = holdfast(tmp_path, "slack", "manifest").json
    over_http = holdfast(tmp_path, "slack", "manifest", "--http", "https://bot.example.org/").json
    assert by_socket["settings"]["socket_mode_enabled"] and not over_http["settings"]["socket_mode_enabled"]
    assert over_http["settings"]["interactivity"]["request_url"] == "https://bot.example.org/hooks/slack"
    refused = holdfast(tmp_path, "slack", "setup", "--http")
    assert refused.code == 2 and "First set public_url" in refused.err
    assert "app_mention" not in by_socket["settings"]["event_subscriptions"]["bot_events"]


def test_over_http_an_event_is_stored_before_it_is_answered(tmp_path: Path, slack: SlackThread) -> None:
    """P1: the same event twice, one that is not signed, and one that nobody can read."""
    with serving(tmp_path / "home", slack, **OVER_HTTP) as gateway:
        wait_until(lambda: gateway.status()["chats"][0]["account"] == "@holdfast")
        said = slack.say(DM, "quick", user=ANN)
        body = json.dumps({"type": "event_callback", "event": {**said, "channel_type": "im"}}).encode()
        with gateway.client() as client:

            def told(body: bytes, secret: str = SECRET) -> tuple[int, str]:
                stamp = str(int(time.time()))
                signature = SignatureVerifier(secret).generate_signature(timestamp=stamp, body=body)
                headers = {"host": "bot.example.org", "x-slack-request-timestamp": stamp, "x-slack-signature": signature}
                found = client.post("/hooks/slack", content=body, headers={name: str(value) for name, value in headers.items()})
                return found.status_code, found.text

            assert told(body, "f" * 32)[0] == 403
            wait_until(lambda: told(body)[0] == 200)  # Until it is connected it refuses, and Slack would say it again.
            assert told(body)[0] == 200
            assert told(b"nonsense")[0] == 200
            assert told(b'{"type": "url_verification", "challenge": "abc"}') == (200, "abc")
        wait_until(lambda: whole("quick") in slack.texts(DM))
        wait_until(lambda: gateway.status()["chats"][0]["refused"] == 1)
        assert slack.texts(DM) == [whole("quick")]
