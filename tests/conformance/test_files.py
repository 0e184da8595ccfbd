"""The small files of a home folder: whole at any moment, and there, or gone, after a power cut."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import files, status_file
from holdfast.core import planned_stop
from holdfast.core.process_id import ProcessId
from holdfast.core.restarts import By, Request
from holdfast.process import restart_note, stop_marker

NAME = "note.json"


class Disk:
    """What the system was asked to do, in order. A power cut keeps what was synchronised: a file's content by its own sync, a name that
    was given or taken away by a sync of its folder.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[str, str]] = []

        def seen(name: str, call: Callable[..., None], path_of: Callable[..., Any]) -> Callable[..., None]:
            def asked(*given: Any, **more: Any) -> None:
                self.asked.append((name, os.path.basename(os.fspath(path_of(*given)))))
                call(*given, **more)

            return asked

        monkeypatch.setattr(os, "fsync", seen("sync", os.fsync, lambda descriptor: os.readlink(f"/proc/self/fd/{descriptor}")))
        monkeypatch.setattr(os, "replace", seen("replace", os.replace, lambda old, new: new))
        monkeypatch.setattr(os, "unlink", seen("unlink", os.unlink, lambda path: path))

    @property
    def steps(self) -> list[str]:
        """`sync file`: whatever name it has while it is made."""
        return [f"{step} {'file' if name.startswith('.') or name == NAME else name}" for step, name in self.asked]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def test_a_file_is_on_disk_before_it_has_its_name_and_its_name_before_anybody_relies_on_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D8, C9: the marker, the restart note."""
    disk = Disk(monkeypatch)
    files.replace_json(folder / NAME, {"a": 1})
    assert disk.steps == ["sync file", "replace file", "sync home"]
    assert json.loads((folder / NAME).read_text()) == {"a": 1} and [path.name for path in folder.iterdir()] == [NAME]


def test_a_removed_file_does_not_come_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D6: an obeyed marker; a note whose people have been told."""
    (folder / NAME).touch()
    disk = Disk(monkeypatch)
    files.remove(folder / NAME)
    assert disk.steps == ["unlink file", "sync home"]
    files.remove(folder / NAME)  # Nothing is there any more.
    assert not (folder / NAME).exists()


def test_a_file_that_could_not_be_made_leaves_the_one_before_it(folder: Path) -> None:
    files.replace_json(folder / NAME, {"a": 1})
    with pytest.raises(TypeError):
        files.replace_json(folder / NAME, {"a": object()})
    assert files.read_json(folder / NAME) == {"a": 1}


def test_an_obeyed_marker_and_a_settled_note_are_removed_durably(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D6, C13"""
    process = ProcessId(1, 2, "boot")
    note = restart_note.RestartNote(folder, cuts=True, begin=lambda request: None, now=lambda: 0)
    files.replace_json(folder / planned_stop.NAME, {**process.fields, "written_at": 0})
    note.keep([Request(id="r1", by=By.OPERATOR)])
    disk = Disk(monkeypatch)
    stop_marker.clear(folder, process)
    note.keep([])
    assert disk.asked == [("unlink", "planned-stop.json"), ("sync", "home"), ("unlink", "restart-pending.json"), ("sync", "home")]


@pytest.mark.parametrize(("durable", "syncs"), [(True, 2), (False, 0)])
def test_a_status_is_synchronised_where_it_matters(folder: Path, monkeypatch: pytest.MonkeyPatch, durable: bool, syncs: int) -> None:
    """C17, C18: what decides whether a start-up script brings it back."""
    disk = Disk(monkeypatch)
    status_file.write(folder, {"gateway_state": "stopped"}, durable=durable)
    assert [step for step, _ in disk.asked].count("sync") == syncs
    assert status_file.read(folder) == {"gateway_state": "stopped"}
