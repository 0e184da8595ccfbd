"""What a start loads. Time is what people notice, but it varies with the machine; what is loaded does not."""

import importlib.util
import re
import sys

import pytest

from tests.e2e.serving import Serving

# Everything foreign that a gateway with the demo agent needs, and what that loads in turn.
NEEDED = {"apsw", "click", "httptools", "msgspec", "starlette", "structlog", "typing_extensions", "uvicorn", "uvloop"}
# Python and structlog load these where they are installed, as some are with the tools of this project.
IF_INSTALLED = {"_distutils_hack", "greenlet", "rich"}
# Needed by a few requests or commands, or only where something has gone wrong.
LATER = {
    "cronsim": "a cron expression",
    "ctypes": "a file of a conversation, a long write-ahead log",
    "starlette.routing": "nothing: paths are looked up in a table of our own",
    "statistics": "nothing: a median is one line",
    "difflib": "a command that does not exist",
    "prometheus_client": "the metrics",
    "psutil": "a search for processes",
    "tomllib": "a config file",
    "markdown_it": "an export as a page",
    "holdfast.api.prose": "an export as a page",
    "holdfast.cli.acp": "holdfast acp",
    "holdfast.cli.doctor": "holdfast doctor",
    "holdfast.install": "holdfast service",
    "holdfast.store.sqlite.restoring": "holdfast restore",
    "holdfast.agents.acp": "an agent that is another program",
    "holdfast.tools.mcp": "an MCP server",
}
# Each takes a tenth of a millisecond of every start and every hand-over, whatever is in it.
MOST_OWN = 440


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    with Serving(tmp_path_factory.mktemp("start") / "home", variables={"PYTHONPROFILEIMPORTTIME": "1"}) as serving:
        return set(re.findall(r"^import time: .*\| +([\w.]+)$", serving.output(), re.MULTILINE))


def test_a_start_loads_no_foreign_package_that_the_demo_agent_does_not_need(loaded: set[str]) -> None:
    foreign = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names - {"holdfast"}
    found = {name for name in foreign if importlib.util.find_spec(name)}  # Those that were tried and do not exist are listed, too.
    assert NEEDED <= found <= NEEDED | IF_INSTALLED


@pytest.mark.parametrize("name", LATER)
def test_what_a_start_does_not_need_is_loaded_when_it_is_needed(loaded: set[str], name: str) -> None:
    assert name not in loaded, f"needed for {LATER[name]}"


def test_a_start_loads_a_bounded_number_of_own_modules(loaded: set[str]) -> None:
    own = {name for name in loaded if name.partition(".")[0] == "holdfast"}
    assert 100 < len(own) < MOST_OWN
