"""A way back in: fresh links from the running gateway, and a second start that leads to the first."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.command_line import command, holdfast, is_one_sentence
from tests.e2e.serving import NO_CERTIFICATES, Serving
from tests.e2e.window import Window


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with Serving(tmp_path_factory.mktemp("shared") / "home") as running:
        yield running


def signs_in(url: str, link: str) -> bool:
    found = re.fullmatch(re.escape(url) + r"/#code=([\w-]+)", link)
    assert found, link
    with httpx.Client(base_url=url, verify=NO_CERTIFICATES, trust_env=False) as browser:
        return browser.post("/api/login", json={"code": found[1]}).status_code == 204 and browser.get("/api/status").status_code == 200


@pytest.mark.parametrize("word", ["open", "link"])
def test_a_fresh_link_signs_one_browser_in_once(shared: Serving, word: str) -> None:
    said = holdfast(shared.home, word, DISPLAY=":0")
    link = said.out.strip()
    assert said.code == 0 and said.err.endswith("It signs one browser in, within 5 minutes.\n")
    assert signs_in(shared.url, link) and not signs_in(shared.url, link)
    made = holdfast(shared.home, word, "--json").json
    assert made["expires_in_s"] == 300 and signs_in(shared.url, made["url"])


def test_the_link_is_good_after_a_hand_over(tmp_path: Path) -> None:
    with Serving(tmp_path / "home") as serving:
        assert holdfast(serving.home, "restart").code == 0
        assert signs_in(serving.url, holdfast(serving.home, "link").out.strip())


def test_without_a_gateway_there_is_no_link(tmp_path: Path) -> None:
    for word in ("open", "link"):
        said = holdfast(tmp_path, word)
        assert said.code == 1 and is_one_sentence(said.err) and "holdfast serve" in said.err


@pytest.mark.parametrize(("fails", "told"), [("0", "Opened in your browser."), ("3", "Open it in a browser. It signs one browser in")])
def test_a_browser_is_opened_where_there_is_a_display(shared: Serving, tmp_path: Path, fails: str, told: str) -> None:
    program = tmp_path / "xdg-open"
    program.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/opened\nexit {fails}\n')
    program.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    with Window(command(shared.home, "open"), cwd=tmp_path, variables={"PATH": path, "DISPLAY": ":0"}) as window:
        assert window.wait() == 0
    link, sentence = window.text.splitlines()
    assert (tmp_path / "opened").read_text() == link + "\n" and sentence.startswith(told)
    variables = {"PATH": path, "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    with Window(command(shared.home, "open"), cwd=tmp_path, variables=variables) as window:
        window.wait()
    assert (tmp_path / "opened").read_text().count("\n") == 1, "without a display nothing is opened"


def test_a_second_start_says_where_it_is_served_and_leads_there(shared: Serving, tmp_path: Path) -> None:
    """C20"""
    with Window(command(shared.home, "serve", "--port", "0"), cwd=tmp_path) as window:
        assert window.wait() == 69
    first, _, rest = window.text.partition("\n\n")
    told = f"holdfast: Process {shared.pid} already serves {shared.home}. Stop it with `holdfast stop --home {shared.home}`, or choose"
    assert " ".join(first.split()).startswith(told)
    assert signs_in(shared.url, rest.split()[1])


def test_what_is_kept_by_others_has_no_link(shared: Serving, tmp_path: Path) -> None:
    said = holdfast(shared.home, "serve", "--port", "0")
    assert said.code == 69 and is_one_sentence(said.err), "not at a terminal"
    with Window(command(shared.home, "serve", "--port", "0"), cwd=tmp_path, variables={"HOLDFAST_SUPERVISOR": "other"}) as window:
        assert window.wait() == 69
    assert "#code=" not in window.text
