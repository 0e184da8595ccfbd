"""Judgements about an installed service: pure, over everything that can be found."""

import itertools

import msgspec
import pytest

from holdfast.api import status as statuses
from holdfast.install import systemd
from holdfast.install.unit_state import Shown, explained, not_up, stale
from tests.install.texts import own

UP = Shown(active="active", sub="running", main_pid=7, enabled="enabled")
STATUS = statuses.read({"pid": 7, "url": "http://127.0.0.1:1"})


def judged(text: str | None = None, wanted=None, python_exists: bool = True, home_exists: bool = True) -> str:
    described = own()
    text = systemd.unit(described) if text is None else text
    return " ".join(stale(text, systemd.described_in(text), wanted or described, python_exists=python_exists, home_exists=home_exists))


def test_a_unit_that_this_version_would_write_is_not_stale() -> None:
    assert judged() == ""


def test_a_unit_changed_by_hand_or_by_another_version_is_noticed() -> None:
    assert "changed by hand, or written by another version" in judged(systemd.unit(own()) + "Nice=5\n")


def test_a_unit_nobody_can_compare_is_noticed() -> None:
    assert "cannot be checked" in judged("[Service]\nExecStart=/bin/true\n")


def test_an_interpreter_that_is_gone_is_named_with_what_to_do() -> None:
    told = judged(python_exists=False)
    assert own().command[0] in told and "`holdfast service install`" in told


def test_a_home_folder_that_is_gone_is_named_with_what_to_do() -> None:
    told = judged(home_exists=False)
    assert own().home in told and "Put the folder back" in told


@pytest.mark.parametrize(
    ("field", "value", "word"),
    [("stop_timeout_s", 999, "how long a stop may take"), ("command", ("/other/python",), "the command"), ("folder", "/x", "the folder")],
)
def test_what_no_longer_fits_is_named(field: str, value: object, word: str) -> None:
    assert word in judged(wanted=msgspec.structs.replace(own(), **{field: value}))


def test_settings_that_cannot_be_read_hide_nothing_else() -> None:
    text = systemd.unit(own())
    assert stale(text, own(), None, python_exists=True, home_exists=True) == []
    assert len(stale(text + "#", own(), None, python_exists=False, home_exists=False)) == 3


def test_a_service_is_up_only_when_everything_fits_together() -> None:
    """Over all combinations: active, a main process, its status file, its life, its answer."""
    choices = itertools.product(
        ["active", "reloading", "activating", "inactive", "failed", "deactivating"],
        [0, 7, 8],
        [None, STATUS],
        [True, False],
        [True, False],
    )
    for active, main_pid, status, alive, answers in choices:
        shown = msgspec.structs.replace(UP, active=active, main_pid=main_pid)
        fits = active in ("active", "reloading") and main_pid == 7 and status is not None and alive and answers
        assert (not_up(shown, status, alive=alive, answers=answers) is None) == fits


@pytest.mark.parametrize(
    ("shown", "word"),
    [
        (Shown(active="failed", result="exit-code", exit_status=78), "with this configuration"),
        (Shown(active="activating", result="exit-code", exit_status=69), "its home folder, port or address"),
        (Shown(active="inactive", result="success", exit_status=75), "stopped by a signal"),
        (Shown(active="failed", result="exit-code", exit_status=203), "interpreter cannot be run"),
        (Shown(active="failed", result="exit-code", exit_status=1), "exit code 1"),
        (Shown(active="failed", result="start-limit-hit"), "more often than"),
        (Shown(active="failed", result="timeout"), "in time"),
        (Shown(active="failed", result="watchdog"), "hung"),
        (Shown(active="failed", result="something-new"), "something-new"),
        (Shown(active="activating"), "starting"),
        (Shown(), "it was not started"),
    ],
)
def test_why_it_is_down_is_told_in_words(shown: Shown, word: str) -> None:
    assert word in explained(shown)
