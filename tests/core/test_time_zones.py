"""Time zones by name, and that of this machine."""

from pathlib import Path

import pytest

from holdfast import time_zones
from holdfast.core.errors import BadInput


@pytest.mark.parametrize("name", ["", "Europe", "Mars/Base", "../../etc/passwd", "/etc/passwd", "a" * 500, "Europe/Berlin\0"])
def test_what_is_no_zone_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="There is no time zone"):
        time_zones.zone(name)


def test_the_zone_of_this_machine_is_found_by_name(tmp_path: Path) -> None:
    database, link, written = tmp_path / "zoneinfo" / "Asia", tmp_path / "localtime", tmp_path / "timezone"
    database.mkdir(parents=True)
    (database / "Tokyo").write_bytes(b"")
    link.symlink_to(database / "Tokyo")
    written.write_text("Europe/Paris\n")
    places = {"localtime": link, "timezone": written}
    assert time_zones.local({"TZ": ":Europe/Berlin"}, **places) == "Europe/Berlin"
    assert time_zones.local({}, **places) == "Asia/Tokyo"
    assert time_zones.local({"TZ": "CET-1CEST"}, localtime=tmp_path / "none", timezone=written) == "Europe/Paris"
    assert time_zones.local({}, localtime=tmp_path / "none", timezone=tmp_path / "none") == "UTC"
