"""`./run mutate [MODULES]`: makes small wrong changes to the modules that decide, and lists those that no test of theirs notices.

Each change is tried in a process of its own; no file is touched. A change to a function is tried quickly: forked from a process that has
collected the tests, with the function's code exchanged. Any other one (to a table, a default) is tried whole: forked from a process that
has loaded only pytest, with the changed module in memory. What survives is either a test that is missing or judged in docs/mutants.md.
"""

import argparse
import re
import sys
import time
from collections.abc import Sequence

import hypothesis

from scripts.mutant_runs import ROOT, SLOW, SLOWER_S, Tries, of, start, try_functions

JUDGED = ROOT / "docs" / "mutants.md"
WORDS, DIAGRAMS = "tests/core/test_words.py", "tests/core/test_diagrams.py"
FOLD = (
    "tests/core/test_transcript.py",
    "tests/core/test_transcript_values.py",
    "tests/core/test_steps.py",
    "tests/core/test_transcript_damage.py",
    "tests/core/test_transcript_decisions.py",
    "tests/core/test_transcript_signs.py",
    "tests/core/test_transcript_models.py",
    "tests/core/test_transcript_late.py",
    "tests/core/test_transcript_places.py",
    "tests/core/test_transcript_recall.py",
    "tests/core/test_transcript_any.py",
)
HISTORY = "tests/core/test_history.py"
# Where a plan is tested, if not in the one file of its name.
PLANS = {
    "accept": ("accept", "approvals"),
    "answer": ("questions", "approvals"),
    "approve": ("approvals",),
    "ask": ("questions", "approvals"),
    "causes": ("start", "leave"),
    "command": ("command", "stop", "resume", "leave"),
    "delete": ("delete", "leave"),
    "marks": ("owe",),
    "owe": ("owe", "accept"),
    "repeats": ("accept", "stop", "leave", "resume"),
    "stop": ("stop", "accept"),
    "take": ("questions",),
    "wait": ("questions",),
}


def _of_plan(plan: str) -> tuple[str, ...]:
    return tuple(f"tests/core/plans/test_{name}.py" for name in ("words", *PLANS.get(plan, (plan,))))


def _modules(package: str) -> list[str]:
    paths = sorted((ROOT / "src" / "holdfast" / "core" / package).glob("*.py"))
    return [path.stem for path in paths if path.stem != "__init__"]


# What is tried: the modules that decide, and the tests that are to notice. Those that are likely to come first.
TESTS: dict[str, tuple[str, ...]] = {
    "core.resume": (WORDS, "tests/core/test_resume.py", DIAGRAMS),
    "core.blame": (WORDS, "tests/core/test_blame.py"),
    "core.stops": ("tests/core/test_stops.py",),
    "core.phases": ("tests/core/test_phases.py",),
    "core.processes": ("tests/core/test_processes.py",),
    "core.turns": (WORDS, DIAGRAMS, "tests/core/test_tables.py"),
    "core.lifecycle": (WORDS, DIAGRAMS, "tests/core/test_tables.py"),
    "core.transcript": (*FOLD, HISTORY),
    **{f"core.transcript.{name}": (*FOLD, HISTORY) for name in _modules("transcript")},
    "core.steps": FOLD,
    "core.messages": (*FOLD, HISTORY),
    "core.rows": ("tests/core/test_rows.py", *FOLD),
    "core.signs": ("tests/core/test_transcript_signs.py", *FOLD),
    "core.history": (HISTORY,),
    **{f"core.plans.{name}": _of_plan(name) for name in _modules("plans")},
}


def judged() -> dict[str, set[str]]:
    """The mutants that docs/mutants.md judges, by module."""
    found: dict[str, set[str]] = {}
    module = ""
    for line in JUDGED.read_text().splitlines() if JUDGED.exists() else ():
        if heading := re.fullmatch(r"## `([\w.]+)`.*", line):
            module = heading[1]
        elif row := re.match(r"- (.+? -> `.*?`(?: #\d+)?): ", line):
            found.setdefault(module, set()).add(row[1])
    return found


def mutate(module: str, accepted: set[str], only: str = "") -> list[str]:
    """Those that survive and are not judged."""
    began = time.monotonic()
    lines = {mutant.name: mutant.line for mutant in of(module) if re.search(only, mutant.name)}
    skipped = {mutant.name for mutant in of(module) if mutant.name in accepted or mutant.name not in lines}
    tried = try_functions(module, TESTS[module], skipped)
    tries = Tries(limit_s=SLOWER_S + SLOW * (time.monotonic() - began))
    for mutant in of(module):
        if mutant.name not in skipped.union(tried["noticed"], tried["survived"]):
            tries.wait()
            tries.add(mutant.name, start(module, mutant.tree, TESTS[module], tried["order"]))
    tries.finish()
    took_s = time.monotonic() - began
    noticed, survived = (len(tried["noticed"] + tries.noticed), tried["survived"] + tries.survived)
    print(
        f"{module}: {len(lines)} changes, {noticed} noticed, {len(survived)} survived, {len(accepted & set(lines))} judged, {took_s:.0f} s",
        flush=True,
    )
    for name in survived:
        print(f"  line {lines[name]}: - {name}: ", flush=True)
    return survived


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="./run mutate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"default: all of {', '.join(TESTS)}")
    parser.add_argument("--only", metavar="PATTERN", default="", help="try only the changes whose names this regular expression finds")
    asked = parser.parse_args(words)
    modules = asked.modules or list(TESTS)
    if unknown := [module for module in modules if module not in TESTS]:
        parser.error(f"no tests are named for {', '.join(unknown)}; it can be {', '.join(TESTS)}")
    # An example that fails is enough; nobody reads the smallest one.
    hypothesis.settings.register_profile("mutate", phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate))
    hypothesis.settings.load_profile("mutate")
    accepted = judged()
    left = [name for module in modules for name in mutate(module, accepted.get(module, set()), asked.only)]
    print(f"mutate: {len(left)} changes that no test notices and nobody judged" if left else "mutate: every change is noticed or judged")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
