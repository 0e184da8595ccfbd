"""What a start loads that nobody configured anything for: time is what people notice, but it varies; what is loaded does not."""

import subprocess
import sys
from pathlib import Path

from tests.e2e.command_line import environment

# Loaded by those who configure a chat platform, a model, a server of tools or another program as the agent; and what nobody needs here.
FOR_OTHERS = (
    *("holdfast.platforms.telegram", "holdfast.platforms.slack", "holdfast.platforms.discord", "holdfast.platforms.matrix"),
    *("holdfast.agents.model", "holdfast.agents.wires", "holdfast.agents.acp", "holdfast.agents.own"),
    *("holdfast.tools.mcp", "holdfast.tools.files", "holdfast.tools.fetch"),
    *("aiohttp", "pydantic", "rich", "pygments", "pydantic_ai"),
)
PLAIN_START = """
import os, signal, sys, threading, time
from pathlib import Path
from holdfast.cli.app import run

def stop_once_it_serves():
    while not Path(sys.argv[1], "status.json").exists() or '"running"' not in Path(sys.argv[1], "status.json").read_text():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=stop_once_it_serves, daemon=True).start()
run(["--home", sys.argv[1], "serve", "--port", "0"])
import rich
print(*(name for name in sys.argv[2:] if name in sys.modules), file=sys.stdout)
"""


def test_a_plain_start_loads_nothing_that_only_others_need(tmp_path: Path) -> None:
    """And what was left out while it loaded can be had afterwards, by an agent of somebody's own."""
    command = [sys.executable, "-c", PLAIN_START, str(tmp_path / "home"), *FOR_OTHERS]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120)
    assert done.stdout.split("\n")[-2] == "rich", done.stdout + done.stderr
