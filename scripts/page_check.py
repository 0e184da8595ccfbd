"""Says whether the built page in src/holdfast/web/static was made from the source in page/. Needs no node.

The build (scripts/page_build.sh) leaves a hash over the source files beside what it built, with `--write`.
"""

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "page"
RECORDED = ROOT / "src" / "holdfast" / "web" / "static" / "SOURCE_HASH"

# What tools leave behind in page/ is no source.
LEFT_BEHIND = {"node_modules", "dist", "coverage", "test-results", ".vite", ".DS_Store"}
LEFT_BEHIND_SUFFIXES = {".log", ".tsbuildinfo"}


def source_files(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name in LEFT_BEHIND or path.suffix in LEFT_BEHIND_SUFFIXES:
            continue
        if path.is_dir():
            yield from source_files(path)
        else:
            yield path


def source_hash(folder: Path) -> str:
    names = {path.relative_to(folder).as_posix(): path for path in source_files(folder)}
    total = hashlib.sha256()
    for name in sorted(names):
        content = hashlib.sha256(names[name].read_bytes()).hexdigest()
        total.update(f"{content}  {name}\n".encode())
    return total.hexdigest()


def main() -> int:
    current = source_hash(PAGE)
    if sys.argv[1:] == ["--write"]:
        RECORDED.write_text(current + "\n")
        return 0
    recorded = RECORDED.read_text().strip() if RECORDED.exists() else "nothing"
    if recorded == current:
        return 0
    print(f"page/ hashes to {current}, {RECORDED.relative_to(ROOT)} says {recorded}.")
    print("The built page is not made from this source: run scripts/page_build.sh and commit what it builds.")
    return 1


if __name__ == "__main__":
    sys.exit(main())
