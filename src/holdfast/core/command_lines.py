"""How far a shell line can be understood without a shell: whether it is plain, and if so which commands it runs with which words.

What is not surely plain is not plain. Reading more out of a line than a shell would do is harmless; reading less is not.
"""

import re
from collections.abc import Iterator, Sequence

# What stands between two commands. The longer ones first.
_OPERATORS = ("&&", "||", "|&", ";", "|", "&")
# Outside quotes each of these may do something that its words do not show: substitution, redirection, groups, escapes, comments, history.
_SPECIAL = frozenset("$`<>(){}\\#!")
# In double quotes a shell still replaces these.
_SPECIAL_QUOTED = frozenset("$`\\!")
# Programs that run what they are given, and words of the shell itself: of them a prefix says nothing.
_RUNNERS = frozenset(
    """
    sh bash dash zsh ksh ash fish csh tcsh pwsh busybox toybox env sudo doas su runuser pkexec xargs parallel find fd python pypy perl
    ruby node nodejs deno bun php lua luajit tclsh wish expect awk gawk mawk nawk sed ed ex vi vim nvim emacs nano less more man eval exec
    command builtin source time nohup nice ionice chrt taskset timeout setsid stdbuf unbuffer watch entr ssh scp sftp rsync mosh telnet nc
    ncat netcat socat docker podman nerdctl kubectl chroot unshare nsenter bwrap firejail systemd-run machinectl flock script strace ltrace
    gdb lldb valgrind perf make gmake ninja just task rake gradle mvn npx pipx uvx crontab at batch trap alias coproc tmux screen dtach tar
    zip cpio java Rscript R julia ghci irb psql mysql sqlite osascript open xdg-open start ld.so
    if then else elif fi for while until do done case esac function select in let declare export readonly local set unset
    """.split()
)
_VERSION = re.compile(r"[-.\d]+$")
# Where a line may be taken apart to look for what is denied: at whatever could begin another command in any reading of it.
_SEAMS = re.compile(r"""&&|\|\||[;|&<>(){}\n\r`"'$]""")
_QUOTES = str.maketrans("", "", "\"'\\")


def commands(line: str) -> tuple[tuple[str, ...], ...] | None:
    """The words of each command of a plain line, as the commands get them. None where the line is not plain."""
    if any(ord(letter) < 32 and letter != "\t" for letter in line) or "\x7f" in line:
        return None
    found: list[tuple[str, ...]] = []
    for part in _parts(line):
        if part is None or not _is_plain(part):
            return None
        found.append(part)
    return tuple(found) if found else None


def runs_others(command: str) -> bool:
    """Whether a command runs what its arguments say, so that its first words say nothing about what happens."""
    return command in _RUNNERS or _VERSION.sub("", command) in _RUNNERS


def is_compound(pattern: str) -> bool:
    """Whether a pattern is more than the words of one command."""
    return _SEAMS.search(pattern) is not None


def _is_plain(words: Sequence[str]) -> bool:
    name = words[0]
    return bool(name) and not any(letter in name for letter in "/=~*?[]") and name != "." and not runs_others(name)


def _parts(line: str) -> Iterator[tuple[str, ...] | None]:
    """The words of each part. None for a part that a shell reads otherwise, or not at all; nothing follows it."""
    words: list[str] = []
    word: str | None = None
    quote, at = "", 0
    while at < len(line):
        letter = line[at]
        operator = "" if quote else next((each for each in _OPERATORS if line.startswith(each, at)), "")
        at += len(operator) or 1
        if quote:
            if letter == quote:
                quote = ""
            elif quote == '"' and letter in _SPECIAL_QUOTED:
                yield None
                return
            else:
                word = (word or "") + letter
        elif operator:
            if word is not None:
                words.append(word)
            if not words:
                yield None
                return
            yield tuple(words)
            words, word = [], None
            if not line[at:].strip() and operator in (";", "&"):
                return
        elif letter in "\"'":
            quote, word = letter, word or ""
        elif letter in _SPECIAL:
            yield None
            return
        elif letter in " \t":
            if word is not None:
                words.append(word)
            word = None
        else:
            word = (word or "") + letter
    if word is not None:
        words.append(word)
    yield tuple(words) if words and not quote else None


def pieces(line: str) -> Iterator[tuple[str, ...]]:
    """The words of everything in a line that some reading of it could run: between operators, inside quotes and substitutions, and with
    quotes and escapes taken out. A path also stands there as its last name.
    """
    joined = line.replace("\\\n", "")  # A shell takes a line that ends with a backslash and the next one for one.
    for text in (line, line.translate(_QUOTES), line.replace("\\", ""), *((joined, joined.translate(_QUOTES)) if joined != line else ())):
        for piece in _SEAMS.split(text):
            words = tuple(piece.split())
            if words:
                yield words
                yield tuple(word.rstrip("/").rpartition("/")[2] or word for word in words)
