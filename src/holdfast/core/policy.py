"""Which tool calls run, which ask a person first, and which do not run: one pure decision.

Deny beats ask beats allow, however narrow a pattern is. Where no pattern says anything, calls that only read and calls that a sandbox
confines run, and everything else asks. Patterns are a comfort; the sandbox is the wall.

A pattern is `tool` or `tool(arguments)`; `*` stands for anything. `tool@version` means a tool of others only as long as they describe it
as they did. What the arguments mean depends on the tool: for `terminal` a command and its first words, for tools with a `path` a path, for
tools with a `url` a host, for all others their arguments as JSON. To allow, a pattern must cover the whole call; to ask or deny it is
enough that some part of the call may be meant. What holds for a command in `terminal` holds for the same command in the background, too.
"""

import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from holdfast.core import command_lines
from holdfast.core.effects import Effect
from holdfast.core.errors import BadInput

TERMINAL, PROCESSES = "terminal", "processes"
_PATTERN = re.compile(r"([A-Za-z_*][\w.:*/-]*)(?:@([0-9a-f]+))?(?:\((.*)\))?", re.DOTALL)
# Commands that are allowed by their first two words, because the second says what they do, and nothing that may stand behind it runs
# another program: builders and package managers run scripts, so they have none. And those that only read, whatever they are given.
_VERBS = {
    "git": frozenset(
        """
        add blame branch checkout cherry-pick commit describe diff fetch log ls-files merge mv pull push reset restore rev-parse revert rm
        shortlog show stash status switch tag
        """.split()
    )
}
# Options with which it would run something, or write a file of any name, after all. Git knows them by their first letters, too.
_ESCAPES = {"git": ("--exec", "--ext-diff", "--open-files-in-pager", "--output", "--receive-pack", "--textconv", "--upload-pack")}
_SHORTEST_OPTION = len("--e")  # Even by one.
_READERS = frozenset("basename cat cut df diff dirname du echo grep head id ls nl ps pwd stat tail uname wc which".split())
_ODD_URL = re.compile(r"[\\@\s\x00-\x1f]|[^\x00-\x7f]")
_HOST = re.compile(r"https?://(?:[^/?#@]*@)*(?:\[([0-9a-f:.]+)\]|([^/?#:@\[\]]+))(?::\d*)?(?:[/?#]|$)")
_URL_SEAMS = re.compile(r"[/\\@?#:\s]+")


class Verdict(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Pattern(msgspec.Struct, frozen=True):
    """`arguments`: None for every call of the tool. `version`: empty for any."""

    tool: str
    arguments: str | None = None
    version: str = ""

    def __str__(self) -> str:
        tool = f"{self.tool}@{self.version}" if self.version else self.tool
        return tool if self.arguments is None else f"{tool}({self.arguments})"


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What is configured."""

    allow: tuple[Pattern, ...] = ()
    ask: tuple[Pattern, ...] = ()
    deny: tuple[Pattern, ...] = ()


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A call that is about to start. `version`: of its tool. `confined`: something keeps it within bounds. `careful`: its agent wants a
    person to agree, unless the conversation has a rule for it.
    """

    tool: str
    arguments: dict[str, Any]
    version: str = ""
    effect: Effect = Effect.UNSAFE
    confined: bool = False
    careful: bool = False


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """`reason`: for people and agents. `offer`: the pattern that would allow this call and others like it from now on, if there is one."""

    verdict: Verdict
    reason: str = ""
    offer: Pattern | None = None


ALLOWED = Decision(verdict=Verdict.ALLOW)


def decide(call: Request, rules: Rules, granted: Sequence[Pattern] = ()) -> Decision:
    """`granted`: what people have allowed for the conversation."""
    started, typed = _started(call), _typed(call)
    faces = [face for face in (call, started, typed) if face is not None]
    if pattern := _first(rules.deny, faces):
        return Decision(verdict=Verdict.DENY, reason=f"The rule {pattern} denies it.")
    if pattern := _first(rules.ask, faces):  # No rule of the conversation can help: asking beats allowing. So none is offered.
        return Decision(verdict=Verdict.ASK, reason=f"The rule {pattern} asks first.")
    patterns = (*granted, *(() if call.careful else rules.allow))
    if (not call.careful and (call.effect is Effect.PURE or call.confined)) or covers(patterns, call):
        return ALLOWED
    if started is not None and covers(patterns, started):
        return ALLOWED
    wanted = started or call
    offer = _offer(wanted)
    return Decision(verdict=Verdict.ASK, reason="No rule allows it.", offer=offer if offer and covers((offer,), wanted) else None)


def _started(call: Request) -> Request | None:
    """The command that a call starts in the background, as a call of the terminal."""
    return _in_terminal(call, call.arguments.get("command")) if call.arguments.get("action") == "start" else None


def _typed(call: Request) -> Request | None:
    """What a call writes to a process in the background, which may be a shell, as a call of the terminal. Nothing is allowed by that."""
    return _in_terminal(call, call.arguments.get("text")) if call.arguments.get("action") == "write" else None


def _in_terminal(call: Request, line: object) -> Request | None:
    if call.tool != PROCESSES or not isinstance(line, str):
        return None
    return msgspec.structs.replace(call, tool=TERMINAL, arguments={"command": line})


def parse(text: str) -> Pattern:
    """Raises `BadInput`."""
    match = _PATTERN.fullmatch(text.strip())
    if match is None:
        raise BadInput(f"{text!r} is not a pattern. Write a tool's name, or tool(arguments), for example terminal(git status *).")
    tool, version, arguments = match[1], match[2] or "", match[3]
    if arguments is not None and not arguments.strip():
        raise BadInput(f"{text!r} has empty parentheses. Write {tool} alone for every call of it.")
    return Pattern(tool, None if arguments is None else arguments.strip(), version)


def parse_allowed(text: str) -> Pattern:
    """As `parse`; a pattern that could never allow anything is refused, too."""
    pattern = parse(text)
    if pattern.tool == TERMINAL and pattern.arguments is not None and "*" in pattern.arguments and _prefix(pattern.arguments) is None:
        raise BadInput(
            f"{text!r} can allow nothing: only plain commands are matched by their first words, not paths, assignments, redirections,"
            " substitutions, or programs that run others (sh, sudo, python ...). Write the exact line instead."
        )
    return pattern


def parse_all(*, allow: Iterable[str], ask: Iterable[str], deny: Iterable[str]) -> Rules:
    return Rules(allow=tuple(map(parse_allowed, allow)), ask=tuple(map(parse, ask)), deny=tuple(map(parse, deny)))


# to allow: the whole call is covered


def covers(patterns: Sequence[Pattern], call: Request) -> bool:
    """Whether together they allow all of it: of a line with several commands, each one."""
    found = [pattern for pattern in patterns if _names(pattern, call)]
    if any(pattern.arguments is None for pattern in found):
        return True
    wanted = [pattern.arguments for pattern in found if pattern.arguments is not None]
    path, url = _subject(call)
    if call.tool == TERMINAL:
        line = call.arguments.get("command")
        return isinstance(line, str) and _covers_line(wanted, line)
    if path is not None:
        return any(each == path or _covers_path(each, path) for each in wanted)
    if url is not None:
        host = None if _ODD_URL.search(url) else _host(url)
        return any(each == url or (host is not None and _glob(each.lower(), host)) for each in wanted)
    return any(_glob(each, _canonical(call.arguments)) for each in wanted)


def _covers_line(wanted: Sequence[str], line: str) -> bool:
    if line.strip() in wanted:
        return True
    found = command_lines.commands(line) if wanted else None
    prefixes = [prefix for each in wanted if (prefix := _prefix(each)) is not None]
    return found is not None and all(any(_begins(prefix, words) for prefix in prefixes) for words in found)


def _prefix(wanted: str) -> tuple[str, ...] | None:
    """The words of a pattern for plain commands, None where it is an exact line and nothing else. `*` alone: any plain command."""
    if wanted == "*":
        return ("*",)
    parts = command_lines.commands(wanted)
    return parts[0] if parts is not None and len(parts) == 1 else None


def _begins(prefix: Sequence[str], words: Sequence[str]) -> bool:
    """A last `*` stands for any number of words, also none, but for no option with which a command would do something else."""
    if prefix[-1] == "*":
        prefix = prefix[:-1]
        if any(_escapes(words[0], word) for word in words[len(prefix) :]):
            return False
        words = words[: len(prefix)]
    return len(prefix) == len(words) and all(_glob(*pair) for pair in zip(prefix, words, strict=True))


def _escapes(command: str, word: str) -> bool:
    option = word.partition("=")[0]
    return len(option) >= _SHORTEST_OPTION and any(each.startswith(option) for each in _ESCAPES.get(command, ()))


def _covers_path(wanted: str, path: str) -> bool:
    """`*` stays within a folder, `**` does not. No pattern leads out of the folder, or from a relative path to an absolute one."""
    found = posixpath.normpath(path)
    if ".." in found.split("/") or "\0" in path or wanted.startswith("/") != found.startswith("/"):
        return False
    return _glob(wanted, found, within="[^/]*")


def obeyed_by_git(path: str) -> bool:
    """Whether git takes orders from a file: from everything below a `.git`, and from a folder with a `HEAD`, which it takes for such a
    folder. Its settings and hooks name programs, which an allowed `git status` would run.
    """
    names = [name.casefold() for name in posixpath.normpath(path).split("/")]
    return ".git" in names or names[-1] == "head"


def _host(url: str) -> str | None:
    match = _HOST.match(url.lower())
    return None if match is None else (match[1] or match[2]).rstrip(".") or None


# to ask or deny: some part of the call may be meant


def concerns(pattern: Pattern, call: Request) -> bool:
    if not _names(pattern, call):
        return False
    if pattern.arguments is None:
        return True
    wanted, (path, url) = pattern.arguments, _subject(call)
    if call.tool == TERMINAL:
        line = call.arguments.get("command")
        return _concerns_line(wanted, line if isinstance(line, str) else _canonical(call.arguments))
    if path is not None:
        return any(_glob(wanted, each, within="[^/]*") for each in _tails(path))
    if url is not None:
        hosts = {part.rstrip(".") for part in _URL_SEAMS.split(url.lower())} | {_host(url)}
        return wanted == url or any(host and _glob(wanted.lower(), host) for host in hosts)
    return _search(wanted, _canonical(call.arguments))


def _concerns_line(wanted: str, line: str) -> bool:
    """Whether the words of the pattern stand in this order anywhere in any piece of the line. A pattern that is itself more than one piece
    is looked for in the line as it is written.
    """
    if command_lines.is_compound(wanted):
        return _search(wanted, line)
    words = tuple(wanted.split())
    words = words[:-1] if len(words) > 1 and words[-1] == "*" else words
    return any(
        all(_glob(*pair) for pair in zip(words, piece[start:], strict=False))
        for piece in command_lines.pieces(line)
        for start in range(len(piece) - len(words) + 1)
    )


def _tails(path: str) -> Iterator[str]:
    """A path as it is written and as it is meant, and everything it ends with."""
    yield path
    found = posixpath.normpath(path)
    yield found
    parts = found.split("/")
    yield from ("/".join(parts[start:]) for start in range(1, len(parts)))


def _names(pattern: Pattern, call: Request) -> bool:
    """Whether it is about the call's tool."""
    return _glob(pattern.tool, call.tool) and pattern.version in ("", call.version)


def _subject(call: Request) -> tuple[str | None, str | None]:
    """Its path or its URL, where that is what the call is about."""
    path, url = call.arguments.get("path"), call.arguments.get("url")
    if isinstance(path, str) and url is None:
        return path, None
    return (None, url) if isinstance(url, str) and path is None else (None, None)


# what is offered


def _offer(call: Request) -> Pattern | None:
    """As narrow as is useful: a command with its verb, one that only reads, a folder, a host; otherwise this very line."""
    (path, url), line = _subject(call), call.arguments.get("command")
    if call.tool == TERMINAL:
        offered = _offered_line(line) if isinstance(line, str) and line.strip() else None
        return None if offered is None else Pattern(TERMINAL, offered)
    if "*" in (path or url or ""):  # As a pattern it would stand for more than it says.
        return None
    if path is not None:
        folder = posixpath.dirname(posixpath.normpath(path))
        return Pattern(call.tool, f"{folder.rstrip('/')}/*" if folder else "*", call.version)
    if url is not None:
        return Pattern(call.tool, _host(url) or url, call.version)
    return Pattern(call.tool, version=call.version)


def _offered_line(line: str) -> str | None:
    """None for a line that, read as a pattern, would allow others: `rm -rf *` is not the only line that begins with `rm -rf`."""
    found = command_lines.commands(line)
    if found is not None and len(found) == 1:
        words = found[0]
        if len(words) > 1 and words[1] in _VERBS.get(words[0], ()) and not any(_escapes(words[0], word) for word in words):
            return f"{words[0]} {words[1]} *"
        if words[0] in _READERS:
            return f"{words[0]} *"
        if "*" in line:
            return None
    return line.strip()


def _first(patterns: Sequence[Pattern], faces: Sequence[Request]) -> Pattern | None:
    return next((pattern for pattern in patterns if any(concerns(pattern, face) for face in faces)), None)


def _canonical(arguments: dict[str, Any]) -> str:
    return json.dumps(arguments, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _glob(wanted: str, found: str, *, within: str = ".*") -> bool:
    if "*" not in wanted:
        return wanted == found
    return re.fullmatch(_expression(wanted, within), found, re.DOTALL) is not None


def _search(wanted: str, found: str) -> bool:
    return re.search(_expression(wanted, ".*"), found, re.DOTALL) is not None


def _expression(wanted: str, within: str) -> str:
    """`**` stands for anything, `*` for what lies `within`."""
    parts = re.split(r"(\*+)", wanted)
    return "".join((".*" if len(part) > 1 else within) if part.startswith("*") else re.escape(part) for part in parts)
