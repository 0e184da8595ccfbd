"""The tour of the README, followed as it is written: real terminals, a real kill, and the outputs compared."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from holdfast import __version__
from tests.e2e.serving import ROOT, wait_until
from tests.e2e.window import Window
from tests.ports import free_port

STEP = re.compile(r"<!-- tour: terminal (?P<terminal>\d)(?P<interrupt>, Ctrl-C)? -->\n```console\n(?P<text>.*?)```\n", re.DOTALL)
# What differs from run to run, and what it must look like. A name that came before must be the same again.
NAMES = {"id": r"s_[a-z0-9]{16}", "pid": r"(?<=kill -9 )\d+|(?<=rocess )\d+"}
OTHERS = {
    "code": (r"#code=[\w-]+", r"#code=[\w-]{20,}"),
    "port": (r"127\.0\.0\.1:\d+", r"127\.0\.0\.1:\d+"),
    "place": (r"/home/you/\S*", r"/\S+"),
    "time": (r"\b\d\d:\d\d\b", r"\d\d:\d\d"),
    "ago": (r"\(just now\)", r"\((?:just now|\d+ s ago)\)"),
    "span": (r"\b\d+(?:\.\d)? s\b", r"\d+(?:\.\d)? s"),
    "counted": (r"(?:\b\d+ ){2,}\d+", r"(?:\d+ ?)+"),
    "more": (r"^  \.\.\.$", r".*?"),
}
FOUND = NAMES | {name: found for name, (found, _) in OTHERS.items()}
TOKEN = re.compile("|".join(f"(?P<{name}>{found})" for name, found in FOUND.items()), re.MULTILINE)
# How far it had counted when something happened differs; that it counted to the end is looked at by itself.
COUNTED, NOTHING = re.compile(r"^[\d ]+\n", re.MULTILINE), re.compile(r"(?!)")
# These go on printing while the tour does something else.
LASTING = re.compile(r"\./run(?: send .*)?")


class Step(NamedTuple):
    """`commands`: each with what it prints. Without one: what the command that runs there has printed at its end."""

    terminal: str
    interrupt: bool
    commands: list[tuple[str | None, str]]


def steps(text: str) -> Iterator[Step]:
    for found in STEP.finditer(text):
        first, *others = re.split(r"^\$ (.*)\n", found["text"], flags=re.MULTILINE)
        commands: list[tuple[str | None, str]] = [(None, first)] if first else []
        commands += zip(others[::2], others[1::2], strict=True)
        yield Step(found["terminal"], bool(found["interrupt"]), commands)


class Tour:
    """`known`: how the names of the README are called in this run."""

    def __init__(self, home: Path) -> None:
        self._variables = {"HOLDFAST_HOME": str(home), "HOLDFAST_PORT": str(free_port())}
        self.windows: dict[str, Window] = {}
        self.known: dict[str, str] = {}

    def follow(self, step: Step) -> None:
        if step.interrupt:
            self.windows[step.terminal].press("\x03")
        for command, printed in step.commands:
            if command is not None:
                self.type(step.terminal, command)
            if command is None:
                self.windows[step.terminal].wait()
                self.compare(self.windows[step.terminal], COUNTED.sub("", printed), ends=True, without=COUNTED)
            else:
                self.compare(self.windows[step.terminal], printed, ends=not LASTING.fullmatch(command))

    def type(self, terminal: str, command: str) -> None:
        if before := self.windows.pop(terminal, None):
            before.wait()
            before.__exit__()
        typed = TOKEN.sub(lambda found: self.known.get(found[0], found[0]), command)
        self.windows[terminal] = Window(["sh", "-c", typed], cwd=ROOT, columns=250, variables=self._variables)

    def compare(self, window: Window, printed: str, *, ends: bool, without: re.Pattern[str] = NOTHING) -> None:
        """With all that it printed, or with the last paragraph; where it still runs, with the beginning. `without`: lines that may stand
        anywhere between the others.
        """
        wanted = re.compile("".join(self.patterns(printed)) + (r"\n?\Z" if ends else r"(?:\n|\Z)"), re.DOTALL)

        def found() -> re.Match[str] | None:
            text = without.sub("", window.text)
            return wanted.match(text) or wanted.match(text.rpartition("\n\n")[2])

        if ends:
            window.wait()
        wait_until(lambda: found() is not None or window.process.poll() is not None)
        matched = found()
        assert matched, f"The README says\n{printed}\nand it is\n{window.text}"
        self.known |= {self._named[name]: actual for name, actual in matched.groupdict().items()}

    def patterns(self, printed: str) -> Iterator[str]:
        self._named: dict[str, str] = {}
        printed, at = printed.rstrip("\n"), 0
        for token in TOKEN.finditer(printed):
            yield re.escape(printed[at : token.start()])
            at = token.end()
            kind = str(token.lastgroup)
            if kind in OTHERS:
                yield OTHERS[kind][1]
            elif token[0] in self.known:
                yield re.escape(self.known[token[0]])
            elif token[0] in self._named.values():
                yield f"(?P={next(name for name, named in self._named.items() if named == token[0])})"
            else:
                name = f"n{len(self._named)}"
                self._named[name] = token[0]
                yield f"(?P<{name}>\\w+)"
        yield re.escape(printed[at:])


def counted(text: str) -> list[int]:
    return [int(number) for line in text.splitlines() if re.fullmatch(r"[\d ]+", line) for number in line.split()]


def test_the_tour_of_the_readme_can_be_followed_as_written(tmp_path: Path) -> None:
    """P1, P4, P7, C24, C26: and the documents do not promise what nobody ran."""
    text = (ROOT / "README.md").read_text()
    found = list(steps(text))
    assert len(found) == text.count("```console") > 8, "every console block is a step of the tour"
    assert __version__ in text
    tour = Tour(tmp_path / "home")
    counts = []
    try:
        for step in found:
            tour.follow(step)
            if step.terminal == "2" and step.commands[0][0] is None:
                counts.append(counted(tour.windows["2"].text))
    finally:
        tour.type("3", "./run stop")
        tour.windows["3"].wait()
        for window in tour.windows.values():
            window.__exit__()
    assert counts == [list(range(1, 61)), list(range(1, 101)), list(range(1, 101))]
