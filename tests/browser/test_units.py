"""The page's own tests: its pure parts, without a browser."""

import subprocess
from pathlib import Path

import playwright
import pytest

PAGE = Path(__file__).parents[2] / "page"
VITEST = PAGE / "node_modules" / "vitest" / "vitest.mjs"
# The one that the browser's driver brings along: a system's own may be too old.
NODE = Path(playwright.__file__).parent / "driver" / "node"


def test_the_pages_own_tests_pass() -> None:
    """P7: the fold of the log, the reading of Markdown at every cut, the stream's format, the outbox."""
    if not VITEST.exists():
        pytest.skip("NOT TESTED HERE: npm could not install what runs the tests in page/tests.")
    done = subprocess.run([NODE, VITEST, "run", "--reporter=dot", "--retry=2"], cwd=PAGE, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
