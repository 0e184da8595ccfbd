"""Holdfast behind an account on Matrix, as people run it: real processes in front of a real homeserver, killed while rooms stream, and
counted at the homeserver.
"""

import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.core.delivery import REPEAT_LABEL
from tests.e2e.command_line import holdfast
from tests.e2e.serving import Serving, files_with, hand_over, wait_until
from tests.e2e.telling import whole
from tests.fakes.matrix import Homeserver, Person

AGENT = "tests.e2e.telling:agent"


@pytest.fixture(scope="module")
def homeserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homeserver]:
    with Homeserver(tmp_path_factory.mktemp("synapse")) as server:
        yield server


def texts(person: Person, room: str, bot: Person) -> list[str]:
    person.look(0.2)
    return [one.text for one in person.shown(room, bot.user)]


def test_kills_and_a_hand_over_while_rooms_stream_lose_nothing_double_nothing_and_keep_the_order(
    tmp_path: Path, homeserver: Homeserver
) -> None:
    """P1, P4, B11, C24: intake, streaming and delivery. A send of which nobody knows is settled by the id of its transaction, so there is
    no label either.
    """
    bot, people = homeserver.register("holdfast"), [homeserver.register(name) for name in ("ann", "bob", "cy")]
    rooms = {person: person.make_room(bot, direct=True) for person in people}
    said: dict[Person, list[str]] = {person: [] for person in people}

    def everybody_says(number: int) -> None:
        for person, room in rooms.items():
            word = f"{'quick' if person.name == 'cy' or number == 2 else 'slow'}{number}"
            said[person].append(word)
            person.say(room, word)

    made = Serving(tmp_path / "home", agent_module=AGENT, matrix_homeserver=homeserver.url, matrix_token=bot.token)
    made.configure(matrix_since=bot.token_now(), matrix_messages_per_s="100", matrix_burst="1000")
    made.configure(matrix_allowed_users=",".join(person.user for person in people))
    # The rooms were made before the account was ever read: their invitations are what the first process finds.
    with made as gateway:
        for number, wait_s in enumerate((0.5, 1.6)):
            everybody_says(number)
            time.sleep(wait_s)
            gateway.kill()
            gateway.start()
        ann = people[0]
        wait_until(lambda: any(text.startswith("slow1:") for text in texts(ann, rooms[ann], bot)))
        hand_over(gateway)
        everybody_says(2)
        wait_until(lambda: all(whole(words[-1]) in texts(person, rooms[person], bot) for person, words in said.items()))
    for person, words in said.items():
        shown = texts(person, rooms[person], bot)
        assert shown == [whole(word) for word in words], shown
        assert not any(REPEAT_LABEL in text for text in shown)


def test_from_a_password_to_an_answer(tmp_path: Path, homeserver: Homeserver) -> None:
    """What docs/chats.md says: setup, an invitation, an answer to what was written before it ran; the token is in one file and nowhere
    else, the password in none, and the account stays the same device.
    """
    home, bot, dee = tmp_path / "home", homeserver.register("helper"), homeserver.register("dee")
    account = ("matrix", "setup", "--homeserver", homeserver.url, "--account", "helper", "--password-stdin", "--user", dee.user)
    wrong = holdfast(home, *account, given="wrong")
    assert wrong.code == 1 and "does not let helper in" in wrong.err and not home.exists()
    nobody = holdfast(home, "matrix", "setup", "--homeserver", "http://127.0.0.1:9", "--token-stdin", given="t")
    assert nobody.code == 1 and "cannot be reached" in nobody.err
    devices = set()
    for _ in range(2):
        done = holdfast(home, *account, given="password of helper")
        assert done.code == 0 and f"It is {bot.user} (Helper)." in done.out, done
        devices.add(tomllib.loads((home / "config.toml").read_text())["matrix"]["device_id"])
    assert len(devices) == 1 and (home / "matrix.token").stat().st_mode & 0o777 == 0o600
    token = (home / "matrix.token").read_text().strip()
    room = dee.make_room(bot, direct=True)
    dee.say(room, "quick, before it ran")
    with Serving(home, agent_module=AGENT) as gateway:
        wait_until(lambda: texts(dee, room, bot) == [whole("quick, before it ran")])
        assert [chat["account"] for chat in gateway.status()["chats"]] == [bot.user]
        assert f"connected as {bot.user}" in holdfast(home, "doctor").out
        assert f"{bot.user} answers" in holdfast(home, "doctor", "--deep").out
    for secret, names in ((token, ["matrix.token"]), ("password of helper", [])):
        assert files_with(home, secret) == names
