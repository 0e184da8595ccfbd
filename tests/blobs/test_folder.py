"""Files of blobs: durable before they are named, never half, and told apart from what a kill left."""

import hashlib
import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.blobs.folder import Folder
from holdfast.core.errors import StoreFull, Unavailable


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "blobs", leave_free=0)


def test_a_file_is_named_by_its_bytes_and_is_its_owners_alone(folder: Folder) -> None:
    making = folder.begin()
    making.write(b"some ")
    making.write(b"bytes")
    stored = making.finish()
    making.release()
    assert (stored.digest, stored.size) == (hashlib.sha256(b"some bytes").hexdigest(), 10)
    assert stored.file.startswith(f"{stored.digest}-")
    assert folder.names() == [stored.file]
    assert (folder.path / stored.file).read_bytes() == b"some bytes"
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder.path / stored.file).stat().st_mode) == 0o600


def test_the_same_bytes_twice_are_two_files_so_that_removing_one_leaves_the_other(folder: Folder) -> None:
    files = []
    for _ in range(2):
        making = folder.begin()
        making.write(b"x")
        files.append(making.finish().file)
        making.release()
    folder.remove(files[:1])
    assert folder.names() == files[1:]


def test_what_is_given_up_leaves_nothing(folder: Folder) -> None:
    making = folder.begin()
    making.write(b"x")
    making.discard()
    untouched = folder.begin()
    untouched.discard()
    assert folder.names() == []


def test_a_file_that_is_being_written_is_not_taken_for_left_over(folder: Folder) -> None:
    making = folder.begin()
    making.write(b"x")
    assert folder.locked(folder.names()).take() == []
    stored = making.finish()
    assert folder.locked(folder.names()).take() == [], "no row names it yet, but one is about to"
    making.release()
    locks = folder.locked(folder.names())
    assert locks.take() == [stored.file]
    locks.release()


def test_what_a_killed_process_was_writing_is_left_over(folder: Folder) -> None:
    writer = (
        "import os, signal, sys; from pathlib import Path; from holdfast.blobs.folder import Folder\n"
        "making = Folder(Path(sys.argv[1]), leave_free=0).begin(); making.write(b'half'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", writer, str(folder.path)])
    assert len(folder.names()) == 1
    locks = folder.locked(folder.names())
    assert locks.take() == folder.names()
    locks.release()


def test_bytes_never_take_the_last_of_the_disk(tmp_path: Path) -> None:
    """P8: conversations must still be recorded."""
    making = Folder(tmp_path / "blobs", leave_free=1 << 60).begin()
    with pytest.raises(StoreFull):
        making.write(b"x")
    making.discard()
    assert os.listdir(tmp_path / "blobs") == []


def test_a_write_that_finds_no_room_is_refused_and_leaves_nothing(folder: Folder) -> None:
    """P1: as on a full disk, half of a write may have been done."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    making = folder.begin()
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(StoreFull):
            making.write(bytes(2000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    making.discard()
    assert folder.names() == []


def test_a_folder_that_cannot_be_used_is_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "blobs").write_text("a file in its place")
    with pytest.raises(Unavailable, match="cannot be used"):
        Folder(tmp_path / "blobs", leave_free=0).begin().write(b"x")


def test_a_file_that_is_not_whole_is_not_opened(folder: Folder) -> None:
    """P7"""
    making = folder.begin()
    making.write(b"12345")
    stored = making.finish()
    making.release()
    assert folder.open(stored.file, 4) is None
    assert folder.open("not there", 4) is None
    descriptor = folder.open(stored.file, 5)
    assert descriptor is not None
    folder.remove([stored.file])
    assert os.pread(descriptor, 10, 0) == b"12345", "what is being read can be read to its end"
    os.close(descriptor)


def test_without_a_descriptor_left_nothing_is_said_to_be_lost(folder: Folder) -> None:
    """P7"""
    making = folder.begin()
    making.write(b"some bytes")
    stored = making.finish()
    making.release()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        with pytest.raises(Unavailable, match="Too many open files"):
            folder.open(stored.file, stored.size)
        with pytest.raises(Unavailable, match="Too many open files"):
            folder.names()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_what_is_no_file_holds_nobody_up(folder: Folder) -> None:
    """P8: a pipe in the place of a file is opened only when somebody writes to it."""
    folder.path.mkdir()
    os.mkfifo(folder.path / "pipe")
    assert folder.open("pipe", 10) is None
