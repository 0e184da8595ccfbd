"""The tables of chat platforms and `[chats]`: who may talk, and where a token comes from."""

from pathlib import Path

import pytest

from holdfast import config
from holdfast.config import chats, known_secrets
from holdfast.config.errors import BadConfig

TOKEN = "4711:sesame-open-the-door"


def written(home: Path, text: str, *, mode: int = 0o600) -> config.Config:
    file = home / config.FILE
    file.write_text(text)
    file.chmod(mode)
    return config.load({}, home=str(home))


def test_who_may_talk_is_read_with_ids_as_numbers_or_texts(tmp_path: Path) -> None:
    found = written(
        tmp_path, "[telegram]\nallowed_users = [1, '2']\nadmins = [3]\nlisten_chats = [-5]\nmention = false\nshared_groups = true\n"
    )
    policy = found.telegram.policy
    assert (sorted(policy.users), sorted(policy.admins), sorted(policy.listening)) == (["1", "2"], ["3"], ["-5"])
    assert (policy.mention, policy.apart, policy.everybody, policy.pairing) == (False, False, False, True)


def test_variables_name_people_with_commas() -> None:
    found = config.load({"HOME": "/nowhere", "HOLDFAST_TELEGRAM_ALLOWED_USERS": "1, 2", "HOLDFAST_TELEGRAM_TOKEN": TOKEN})
    assert (found.telegram.allowed_users, found.telegram.token) == (("1", "2"), TOKEN)


def test_nobody_is_connected_and_nobody_may_talk_by_default(tmp_path: Path) -> None:
    found = config.load({}, home=str(tmp_path)).telegram
    assert not chats.configured("telegram", found) and not found.policy.everybody and not found.policy.users


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_token_may_stand_in_a_file_that_only_its_owner_can_read(tmp_path: Path, mode: int) -> None:
    found = written(tmp_path, f"[telegram]\ntoken = '{TOKEN}'\n", mode=mode)
    assert chats.account("telegram", found.telegram, tmp_path) == {"token": TOKEN, "base_url": ""}


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_token_that_others_can_read_is_refused_with_what_to_do(tmp_path: Path, mode: int) -> None:
    with pytest.raises(BadConfig, match="chmod 600") as refused:
        written(tmp_path, f"[telegram]\ntoken = '{TOKEN}'\n", mode=mode)
    assert TOKEN not in str(refused.value)
    (tmp_path / "t").write_text(TOKEN)
    (tmp_path / "t").chmod(mode)
    found = written(tmp_path, "[telegram]\ntoken_file = 't'\n")
    with pytest.raises(BadConfig, match="chmod 600"):
        chats.account("telegram", found.telegram, tmp_path)


def test_other_settings_may_stand_where_others_can_read_them(tmp_path: Path) -> None:
    assert written(tmp_path, "[telegram]\nallowed_users = [1]\n", mode=0o644).telegram.allowed_users == ("1",)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[telegram]\ntoken = 'x'\ntoken_file = 'y'\n", "both a token and a token_file"),
        ("[telegram]\nwebhook = true\n", "needs public_url"),
        ("public_url = 'http://x.example'\n[telegram]\nwebhook = true\n", "needs public_url"),
        ("[telegram]\nusers = [1]\n", "Unknown setting telegram.users"),
        ("[telegram]\nallowed_users = 1\n", "It must be a list of texts"),
        ("[slack]\nbot_token = 'xoxb-1'\n", "needs an app_token as well"),
        ("[slack]\nbot_token = 'xoxb-1'\nsigning_secret = 'a'\n", "needs public_url"),
        ("[slack]\napp_token = 'xapp-1'\nsigning_secret = 'a'\n", "Keep one"),
        ("[chats]\nstill_working_s = -1\n", "at least 0"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(BadConfig, match=why):
        written(tmp_path, text)


@pytest.mark.parametrize("token", ["", "nonsense", "1:with space", ":x"])
def test_what_is_no_token_is_told_before_anybody_is_asked(tmp_path: Path, token: str) -> None:
    (tmp_path / "t").write_text(token)
    (tmp_path / "t").chmod(0o600)
    with pytest.raises(BadConfig, match="This is not a Telegram bot token"):
        chats.account("telegram", written(tmp_path, "[telegram]\ntoken_file = 't'\n").telegram, tmp_path)


def test_tokens_of_slack_are_told_apart_before_anybody_is_asked(tmp_path: Path) -> None:
    swapped = written(tmp_path, "[slack]\nbot_token = 'xapp-1'\napp_token = 'xoxb-1'\n")
    with pytest.raises(BadConfig, match="those begin with xoxb-"):
        chats.account("slack", swapped.slack, tmp_path)
    whole = written(tmp_path, "[slack]\nbot_token = 'xoxb-1'\napp_token = 'xapp-1'\n")
    assert chats.account("slack", whole.slack, tmp_path) == {
        "bot_token": "xoxb-1",
        "app_token": "xapp-1",
        "signing_secret": "",
        "base_url": "",
    }


@pytest.mark.parametrize("token", ["nonsense", "two.parts", "a.b.with space", "a..c"])
def test_what_is_no_token_of_discord_is_told_before_anybody_is_asked(tmp_path: Path, token: str) -> None:
    with pytest.raises(BadConfig, match="neither the public key nor the client secret"):
        chats.account("discord", written(tmp_path, f"[discord]\ntoken = '{token}'\n").discord, tmp_path)
    whole = written(tmp_path, "[discord]\ntoken = 'a-1.b_2.c3'\nallowed_users = [100]\n").discord
    assert chats.account("discord", whole, tmp_path) == {"token": "a-1.b_2.c3", "base_url": ""}
    assert whole.policy.users == {"100"}


def test_a_token_is_known_as_a_secret_wherever_it_comes_from(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(f"{TOKEN}\n")
    (tmp_path / "t").chmod(0o600)
    found = written(tmp_path, "[telegram]\ntoken_file = 't'\n")
    assert TOKEN in known_secrets.known(found, {}).values()
    assert TOKEN in known_secrets.known(written(tmp_path, f"[telegram]\ntoken = '{TOKEN}'\n"), {}).values()


MATRIX = "[matrix]\nhomeserver = 'https://matrix.example.org'\ntoken_file = 't'\n"


def test_a_matrix_account_is_reached_by_its_homeserver_and_its_token(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("syt_abc\n")
    (tmp_path / "t").chmod(0o600)
    found = written(tmp_path, MATRIX + "since = 's1_2'\nallowed_users = ['@ann:example.org']\n")
    account = chats.account("matrix", found.matrix, tmp_path)
    assert (account["homeserver"], account["token"], account["since"]) == ("https://matrix.example.org", "syt_abc", "s1_2")
    assert (found.matrix.messages_per_s, found.matrix.burst) == (0.2, 10)
    assert "syt_abc" in known_secrets.known(found, {}).values()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[matrix]\ntoken_file = 't'\n", "a token and no homeserver"),
        ("[matrix]\nhomeserver = 'example.org'\ntoken_file = 't'\n", "a token and no homeserver"),
        (MATRIX + "messages_per_s = 0\n", "at least 0.01"),
        (MATRIX + "burst = 0\n", "at least 1"),
    ],
)
def test_a_matrix_account_that_cannot_work_is_refused_in_words(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(BadConfig, match=words):
        written(tmp_path, text)
