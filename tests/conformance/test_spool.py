"""The files of the spool: durable before anybody counts on them, private, and honest about what cannot be written or read."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.errors import StoreFull
from holdfast.core.events import Text, encode
from holdfast.core.spools import Gone, Header, Spooled, Unreadable
from holdfast.ports.spool import Group, SpoolFile
from holdfast.spool import FolderSpool, SpoolFailed

HEADER = Header(session_id="s_1", turn_id="t_1", epoch=3, owner="o_1")


def pieces(first: int, *texts: str) -> list[Spooled]:
    return [Spooled(first + number, 1, 7, "text", encode(Text(offset=0, text=text))) for number, text in enumerate(texts)]


async def add(spool: FolderSpool, size: int, *events: Spooled, header: Header = HEADER) -> int:
    [result] = await spool.append([Group(header, size, events)])
    if isinstance(result, Exception):
        raise result
    return result


async def only(spool: FolderSpool) -> SpoolFile:
    [file] = (await spool.found()).files
    return file


async def test_groups_of_a_turn_are_read_in_their_order(tmp_path: Path) -> None:
    spool = FolderSpool(tmp_path)
    first, second = pieces(4, "one", "two"), pieces(6, "three")
    size = await add(spool, 0, *first)
    size = await add(spool, size, *second)
    file = await only(spool)
    assert (file.owner, file.name, file.turn_id, file.epoch, file.size) == ("o_1", "t_1.3", "t_1", 3, size)
    found = await spool.read(file)
    assert (found.header, list(found.events), found.sealed) == (HEADER, first + second, False)
    await spool.seal(file)
    assert (await spool.read(file)).sealed


async def test_nobody_else_may_read_a_spool(tmp_path: Path) -> None:
    await add(FolderSpool(tmp_path), 0, *pieces(0, "one"))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "spool").rglob("*")}
    assert modes == {"o_1": 0o700, "t_1.3": 0o600}
    assert stat.S_IMODE((tmp_path / "spool").stat().st_mode) == 0o700


async def test_a_group_and_the_name_of_its_file_are_durable_when_it_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync

    def seen(descriptor: int) -> None:
        synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", seen)
    spool = FolderSpool(tmp_path)
    size = await add(spool, 0, *pieces(0, "one"))
    assert synced == [tmp_path.name, "spool", "t_1.3", "o_1"]
    synced.clear()
    await add(spool, size, *pieces(1, "two"))
    assert synced == ["t_1.3"]


@pytest.mark.parametrize(("number", "error"), ((errno.ENOSPC, StoreFull), (errno.EIO, SpoolFailed)))
async def test_a_group_that_was_written_in_part_does_not_count_and_the_next_one_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception]
) -> None:
    """F9: a write that fails is an error that the turn sees."""
    spool = FolderSpool(tmp_path)
    size = await add(spool, 0, *pieces(0, "one"))
    other = Header(session_id="s_2", turn_id="t_2", epoch=1, owner="o_1")

    def fails_halfway(pwrite: Callable[..., int]) -> Callable[..., int]:
        def half(descriptor: int, data: bytes, offset: int) -> int:
            if "t_1" not in os.readlink(f"/proc/self/fd/{descriptor}"):
                return pwrite(descriptor, data, offset)
            pwrite(descriptor, data[: len(data) // 2], offset)
            raise OSError(number, os.strerror(number))

        return half

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", fails_halfway(os.pwrite))
        failed, stored = await spool.append([Group(HEADER, size, pieces(1, "lost" * 50)), Group(other, 0, pieces(0, "kept"))])
    assert isinstance(failed, error) and isinstance(stored, int)
    await add(spool, size, *pieces(1, "two"))
    found = {file.name: await spool.read(file) for file in (await spool.found()).files}
    assert [item.position for item in found["t_1.3"].events] == [0, 1] and found["t_1.3"].torn == 0
    assert len(found["t_2.1"].events) == 1


async def test_a_spool_goes_and_with_the_last_one_its_owners_folder(tmp_path: Path) -> None:
    spool = FolderSpool(tmp_path)
    other = Header(session_id="s_1", turn_id="t_2", epoch=1, owner="o_1")
    await spool.append([Group(HEADER, 0, pieces(0, "one")), Group(other, 0, pieces(0, "one"))])
    await spool.remove("o_1", "t_1.3")
    assert (await only(spool)).name == "t_2.1"
    await spool.remove("o_1", "t_2.1")
    await spool.remove("o_1", "t_2.1")
    assert await spool.found() == ([], []) and not (tmp_path / "spool" / "o_1").exists()
    await add(spool, 0, *pieces(0, "again"))
    assert (await only(spool)).name == "t_1.3"


async def test_a_spool_begins_also_while_another_process_removes_the_folder_of_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F9: two processes share a home during a hand-over, and the last spool of one goes as the first of the other begins."""
    real, others = os.fsync, iter(range(2))

    def removed_meanwhile(descriptor: int) -> None:
        real(descriptor)
        if os.readlink(f"/proc/self/fd/{descriptor}") == str(tmp_path) and next(others, None) is not None:
            (tmp_path / "spool").rmdir()

    monkeypatch.setattr(os, "fsync", removed_meanwhile)
    spool = FolderSpool(tmp_path)
    await add(spool, 0, *pieces(0, "one"))
    assert (await only(spool)).name == "t_1.3" and next(others, None) is None


async def test_a_home_that_is_gone_is_not_made_again_for_a_spool(tmp_path: Path) -> None:
    with pytest.raises(SpoolFailed):
        await add(FolderSpool(tmp_path / "gone"), 0, *pieces(0, "one"))
    assert not (tmp_path / "gone").exists()


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("spoil", (_directory, _link, lambda path: path.write_bytes(b"x")))
async def test_a_spool_that_cannot_be_read_says_so(tmp_path: Path, spoil: Callable[[Path], Any]) -> None:
    spool = FolderSpool(tmp_path)
    await add(spool, 0, *pieces(0, "one"))
    file = await only(spool)
    spoil(tmp_path / "spool" / "o_1" / "t_1.3")
    with pytest.raises(Unreadable, match=r"The journal t_1\.3 cannot be read: "):
        await spool.read(file)


async def test_a_spool_that_was_removed_since_it_was_seen_is_gone_and_not_unreadable(tmp_path: Path) -> None:
    """F1: a process that removes one has stored it, so that nothing of it is late."""
    spool = FolderSpool(tmp_path)
    await add(spool, 0, *pieces(0, "one"))
    file = await only(spool)
    await spool.remove(file.owner, file.name)
    for look in (spool.read, spool.seal):
        with pytest.raises(Gone, match=r"The journal t_1\.3 is no longer in the spool"):
            await look(file)


async def test_what_lies_about_in_the_folder_is_no_spool(tmp_path: Path) -> None:
    folder = tmp_path / "spool" / "o_1"
    folder.mkdir(parents=True)
    (tmp_path / "spool" / "note").write_text("x")
    (folder / "note").write_text("x")
    assert await FolderSpool(tmp_path).found() == ([], [])


async def test_a_folder_that_cannot_be_listed_hides_its_own_spools_and_no_others(tmp_path: Path) -> None:
    """P8"""
    spool = FolderSpool(tmp_path)
    await add(spool, 0, *pieces(0, "one"))
    bad = tmp_path / "spool" / "o_0"
    bad.symlink_to(bad.name)  # A link to itself: nobody can look into it, root neither.
    files, hidden = await spool.found()
    assert [file.name for file in files] == ["t_1.3"] and [each.owner for each in hidden] == ["o_0"] and hidden[0].why
    bad.unlink()
    (tmp_path / "spool").rename(tmp_path / "elsewhere")
    (tmp_path / "spool").symlink_to("spool")
    files, hidden = await spool.found()
    assert files == [] and [each.owner for each in hidden] == [None]
