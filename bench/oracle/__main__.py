"""`./run soak --random [--seconds N] [--seed S] [--people N]`: random people and random blows, judged by an account of their own."""

import argparse
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.oracle.trial import Trial, run
from bench.processes import raise_file_limit


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./run soak --random", description="Random people and random blows, judged by an account of their own."
    )
    parser.add_argument("--seconds", type=float, default=300.0, metavar="N", help="of blows; settling and judging come on top")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), metavar="S")
    parser.add_argument("--people", type=int, default=12, metavar="N")
    parser.add_argument("--deaths", type=int, default=20, metavar="N", help="unclean ones, at most")
    options = parser.parse_args(arguments)
    words = f"--random --seconds {options.seconds:g} --seed {options.seed} --people {options.people} --deaths {options.deaths}"
    print(f"soak {words}", flush=True)
    raise_file_limit()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # So that no gateway outlives us.
    folder = Path(tempfile.mkdtemp(prefix="holdfast-oracle-"))
    found = run(Trial(seconds=options.seconds, seed=options.seed, people=options.people, deaths=options.deaths), folder)
    print(*found.report(), sep="\n")
    if found.wrong:
        print(f"\nFAIL: ./run soak {words}\n{folder} has the store and what the gateway said.")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    print(f"\nPASS: ./run soak {words}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
