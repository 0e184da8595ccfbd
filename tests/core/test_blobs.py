"""Names and types of what people send, and how a browser may treat them."""

import pytest

from holdfast.core import blobs


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("report.pdf", "report.pdf"),
        ("/etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("..", "attachment"),
        ("", "attachment"),
        (None, "attachment"),
        ("a\r\nSet-Cookie: x.txt", "aSet-Cookie: x.txt"),
        ("\u202egpj.exe", "gpj.exe"),
        ("grün 😀.png", "grün 😀.png"),
        ("\ud800x", "x"),
        (f"{'x' * 300}.tar", f"{'x' * 196}.tar"),
        ("x" * 300, "x" * 200),
    ],
)
def test_a_name_is_a_files_own_and_holds_nothing_that_could_harm(given: str | None, name: str) -> None:
    assert blobs.name_of(given) == name


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("image/png", "image/png"),
        ("Text/HTML; charset=utf-8", "text/html"),
        ("application/vnd.ms-excel", "application/vnd.ms-excel"),
        ("nonsense", blobs.OCTETS),
        ("a/b\r\nx: y", blobs.OCTETS),
        ("", blobs.OCTETS),
        (None, blobs.OCTETS),
    ],
)
def test_a_media_type_is_one_or_counts_as_octets(given: str | None, kind: str) -> None:
    assert blobs.type_of(given) == kind


@pytest.mark.parametrize(
    "kind", ["text/html", "image/svg+xml", "application/pdf", "text/plain", "application/xhtml+xml", "text/javascript"]
)
def test_what_a_browser_could_run_is_only_saved(kind: str) -> None:
    assert blobs.served_as(kind) == blobs.OCTETS
    assert blobs.disposition(kind, "x.html") == "attachment; filename*=UTF-8''x.html"


def test_an_image_is_shown_under_its_own_type() -> None:
    assert (blobs.served_as("image/png"), blobs.disposition("image/png", None)) == ("image/png", "inline")


def test_a_name_in_a_header_is_plain_ascii() -> None:
    assert blobs.disposition("a/b", 'é"; x=\n.txt') == "attachment; filename*=UTF-8''%C3%A9%22%3B%20x%3D.txt"
