"""The status as files and responses have it, read by a command of any version."""

import msgspec
import pytest

from holdfast.api import status
from holdfast.core.process_id import ProcessId


def test_a_status_of_another_version_is_read_with_what_it_lacks_at_its_default() -> None:
    """C18: a command must find a gateway that was started by an older or a newer Holdfast."""
    found = status.read({"pid": 7, "process_started_at": 5, "boot_id": "b", "url": "http://127.0.0.1:1", "added_later": [1]})
    assert found is not None
    assert (found.process, found.url) == (ProcessId(7, 5, "b"), "http://127.0.0.1:1")
    assert (found.gateway_state, found.supervisor, found.retiring, found.safe_mode, found.owner) == ("unknown", "plain", [], False, None)


def test_what_was_written_is_what_is_read() -> None:
    written = status.read({"pid": 7, "retiring": [{"pid": 8, "process_started_at": 1, "boot_id": "b", "running_turns": 2}]})
    assert written is not None and written.retiring[0].process == ProcessId(8, 1, "b")
    assert status.read(msgspec.json.decode(msgspec.json.encode(written))) == written


@pytest.mark.parametrize("said", [None, [], "x", {}, {"pid": "7"}, {"pid": 7, "url": 5}, {"pid": 7, "retiring": [{}]}])
def test_what_is_no_status_is_none(said: object) -> None:
    assert status.read(said) is None
