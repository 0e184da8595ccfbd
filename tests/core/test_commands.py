"""Words to the gateway itself: what is a command, what is a message, and that the help tells of every command."""

import pytest

from holdfast.core import notices
from holdfast.core.commands import COMMANDS, Command, parse


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/stop", Command("stop")),
        ("/STOP", Command("stop")),
        ("/Stop \n", Command("stop")),
        ("/stop@holdfast_bot", Command("stop")),
        ("/stop@holdfast_bot now", Command("stop", "now")),
        ("/resume 2", Command("resume", "2")),
        ("/resume   s_ABC  ", Command("resume", "s_ABC")),
        ("/queue first line\nsecond  line\n\n/third", Command("queue", "first line\nsecond  line\n\n/third")),
        ("/queue\nbelow", Command("queue", "below")),
        ("/queue /stop", Command("queue", "/stop")),
        ("/dance", Command("dance")),
        ("/set-up x", Command("set-up", "x")),
    ],
)
def test_a_command_is_its_name_and_what_follows(text: str, command: Command) -> None:
    assert parse(text) == command


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "/", "//", "/ stop", "stop", "please /stop", " /stop", "\n/stop", "\t/help"),
        *("/usr/bin/env", "/usr/bin/env python", "/2", "/stop.", "/stop!", "/stop/now", "/stop@", "/été", "/1 + 2"),
    ],
)
def test_everything_else_is_a_message_to_the_agent(text: str) -> None:
    """A path is none, and a space before it makes any command a message."""
    assert parse(text) is None


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_known_by_its_own_form_and_told_by_the_help(name: str) -> None:
    usage = COMMANDS[name]
    found = parse(usage.form.partition(" ")[0])
    assert found == Command(name) and found.known
    assert f"{usage.form} - {usage.sentence}" in notices.help_text().splitlines()


def test_the_help_lists_nothing_else() -> None:
    assert len(notices.help_text().splitlines()) == len(COMMANDS)


def test_a_name_that_no_table_has_is_a_command_that_is_not_known_and_its_answer_says_how_to_send_it() -> None:
    found = parse("/dance slowly")
    assert found and not found.known
    told = notices.unknown_command(found.name)
    assert "/dance" in told and "/help" in told and "space" in told
