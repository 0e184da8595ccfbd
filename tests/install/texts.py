"""Every text that is printed from a description, by the file that holds it. `python -m tests.install.texts` writes them anew."""

from pathlib import Path

from holdfast.install import launchd, s6, systemd
from holdfast.install.description import Service, describe

GOLDEN = Path(__file__).parent / "golden"
DEPLOY = Path(__file__).parents[2] / "deploy"


def own(**changes: str) -> Service:
    """A service of a user's own."""
    facts = {
        "name": "holdfast",
        "python": "/home/ada/holdfast/.venv/bin/python",
        "home": "/home/ada/.holdfast",
        "folder": "/home/ada",
    }
    return describe(**(facts | changes), user=None, drain_timeout_s=20, environment={"PATH": "/home/ada/bin:/usr/bin:/bin"})


def machine() -> Service:
    return describe(
        name="holdfast-team",
        python="/opt/hold fast/bin/python",
        home="/srv/100% team/$HOME",
        folder="/home/team",
        user="team",
        drain_timeout_s=0,
        environment={"PATH": "/usr/bin:/bin"},
    )


def container() -> Service:
    return describe(
        name="holdfast",
        python="/usr/local/bin/python",
        home="/var/lib/holdfast",
        folder="/home/holdfast",
        user="holdfast",
        drain_timeout_s=0,
        environment={},
    )


def golden() -> dict[Path, str]:
    texts = {
        "user.service": systemd.unit(own()),
        "system.service": systemd.unit(machine()),
        "user.plist": launchd.plist(own()),
        "system.plist": launchd.plist(machine()),
    }
    return {GOLDEN / name: text for name, text in texts.items()}


def deployed() -> dict[Path, str]:
    """What is printed into the project itself, for people to copy."""
    return {DEPLOY / "s6" / name: text for name, text in s6.files(container()).items()}


def write() -> None:
    for path, text in (golden() | deployed()).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755 if path.name in ("run", "finish") else 0o644)


if __name__ == "__main__":
    write()
