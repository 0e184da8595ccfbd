"""HTML as Markdown, or as its words where the library for that is not installed: in a process of its own, with a limit on its time.

A page can be made so that reading it takes minutes, during which nothing else of a process would run: neither the library nor a regular
expression lets other threads work.
"""

import asyncio
import html
import re
import sys

LONGEST_S = 10.0
_TAGS = re.compile(r"<(script|style|head|nav)\b.*?</\1\s*>|<!--.*?-->|<[^>]+>", re.DOTALL | re.IGNORECASE)


class Unreadable(Exception):
    """Why the page has no text, in words that follow its address."""


async def convert(page: str, url: str, *, within_s: float = LONGEST_S) -> str:
    """`url`: what links on the page start from. Raises `Unreadable`."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", __name__, url),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},  # It needs nothing of ours.
    )
    try:
        async with asyncio.timeout(within_s):
            text, _ = await process.communicate(page.encode("utf-8", "replace"))
    except TimeoutError:
        raise Unreadable(f"takes longer than {within_s:g} s to read") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise Unreadable("cannot be read as HTML")
    return text.decode()


def _readable(page: str, url: str) -> str:
    try:
        from html_to_markdown import ConversionOptions, convert
    except ImportError:
        words = html.unescape(_TAGS.sub(" ", page))
        return re.sub(r"[ \t]*\n\s*\n\s*", "\n\n", re.sub(r"[ \t]+", " ", words)).strip()
    return str(convert(page, ConversionOptions(base_url=url, skip_images=True)).content).strip()


if __name__ == "__main__":
    sys.stdout.buffer.write(_readable(sys.stdin.buffer.read().decode(), sys.argv[1]).encode("utf-8", "replace"))
