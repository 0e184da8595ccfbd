"""Writes docs/modules.md, which modules there are and who imports whom, from the code. `--check` only says whether it is true; a revision
(`python -m scripts.rooms 054dfe1`) prints the lines of each room then and now instead; those of `store/sqlite` are SQLite's own.
"""

import ast
import io
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "holdfast"
DOCUMENT = ROOT / "docs" / "modules.md"
PACKAGE = "holdfast"
# The rooms whose own modules are drawn, too.
DRAWN = ("gateway", "store")
HEAD = """# The modules, and who imports whom

Printed from the code by `python -m scripts.rooms`. [architecture.md](architecture.md) says what the rooms are for.
An arrow points at what is imported; one that another way already implies is left out.
"""
# Modules by their names below the package, as paths without suffix; each with its source.
Modules = Mapping[str, str]
Graph = dict[str, set[str]]


def modules() -> Modules:
    return {str(path.relative_to(SOURCE).with_suffix("")): path.read_text() for path in sorted(SOURCE.rglob("*.py"))}


def room(module: str) -> str:
    return module.partition("/")[0]


def imports(found: Modules) -> Graph:
    """Of each module, the modules it imports; a package counts as its `__init__`."""
    return {module: set(_targets(module, source, found)) - {module} for module, source in found.items()}


def _targets(module: str, source: str, found: Modules) -> Iterable[str]:
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == PACKAGE:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.partition(".")[0] == PACKAGE]
        for name in names:
            path = name.split(".")[1:]
            while path:
                known = [each for each in ("/".join(path), "/".join([*path, "__init__"])) if each in found]
                if known:
                    yield known[0]
                    break
                path.pop()


def joined(graph: Graph, name: Mapping[str, str]) -> Graph:
    """The same between groups: `name` says which group a module is in; those it does not name are left out."""
    groups: Graph = {group: set() for group in name.values()}
    for module, targets in graph.items():
        if module in name:
            groups[name[module]] |= {name[target] for target in targets if target in name} - {name[module]}
    return groups


def reduced(graph: Graph) -> Graph:
    """Without the arrows that a longer way implies. Where modules import each other in a ring, all of its arrows stay."""
    reach = {node: _reached(graph, node) for node in graph}

    def implied(node: str, target: str) -> bool:
        return any(other != target and target in reach[other] and node not in reach[other] for other in graph[node])

    return {node: {target for target in targets if not implied(node, target)} for node, targets in graph.items()}


def _reached(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    left = list(graph[start])
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += graph[node]
    return found


def drawing(graph: Graph) -> str:
    arrows = [f"    {_id(node)} --> {_id(target)}" for node in sorted(graph) for target in sorted(graph[node])]
    alone = [f"    {_id(node)}" for node in sorted(graph) if not graph[node] and not any(node in targets for targets in graph.values())]
    return "\n".join(["```mermaid", "flowchart TD", *arrows, *alone, "```"])


def _id(node: str) -> str:
    """A name mermaid takes; `end` and the like are words of its own."""
    return f"{node.replace('/', '_')}[{node}]"


def lines(found: Modules) -> Counter[str]:
    """Of each room, and of each folder inside one."""
    counted: Counter[str] = Counter()
    for module, source in found.items():
        parts = module.split("/")
        for depth in range(1, max(2, len(parts))):
            counted["/".join(parts[:depth])] += source.count("\n")
    return counted


def document(found: Modules) -> str:
    graph = imports(found)
    rooms = {module: room(module) for module in found if not room(module).startswith("__")}
    parts = [HEAD, "## Rooms\n", drawing(reduced(joined(graph, rooms))), ""]
    for drawn in DRAWN:
        inside = {module: _short(module, drawn) for module in found if room(module) == drawn and not module.endswith("__init__")}
        parts += [f"## Inside `{drawn}/`\n", drawing(reduced(joined(graph, inside))), ""]
    return "\n".join(parts)


def _short(module: str, drawn: str) -> str:
    """A folder inside a room is one box."""
    path = module.removeprefix(f"{drawn}/").split("/")
    return path[0] if len(path) == 1 else f"{path[0]}/"


def earlier(revision: str) -> Modules:
    packed = subprocess.run(["git", "archive", revision, "src/holdfast"], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        files = [entry for entry in archive.getmembers() if entry.name.endswith(".py")]
        return {
            entry.name.removeprefix("src/holdfast/").removesuffix(".py"): (archive.extractfile(entry) or io.BytesIO()).read().decode()
            for entry in files
        }


def compare(revision: str) -> None:
    then, now = lines(earlier(revision)), lines(modules())
    print(f"{'room':18}{revision:>10}{'now':>8}{'change':>8}")
    for name in sorted({*then, *now}):
        shown = f"  {name}" if "/" in name else name
        print(f"{shown:18}{then[name]:>10}{now[name]:>8}{now[name] - then[name]:>+8}")
    before, after = (sum(count for name, count in each.items() if "/" not in name) for each in (then, now))
    print(f"{'all':18}{before:>10}{after:>8}{after - before:>+8}")


def main(words: list[str]) -> int:
    made = document(modules())
    match words:
        case []:
            DOCUMENT.write_text(made)
        case ["--check"]:
            return int(not DOCUMENT.exists() or DOCUMENT.read_text() != made)
        case [revision]:
            compare(revision)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
