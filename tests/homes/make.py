"""Makes the homes of this folder, with the code of version 0.1:

    git archive 054dfe1 | tar x -C OLD      # its last revision, in a folder outside this project
    .venv/bin/python -m tests.homes.make OLD

It serves real homes with that code, speaks to it over HTTP as its own tests do, and kills it. `chats` is made by the harness of its tests
of the gateway, in simulated time, since version 0.1 has no chat platform of its own. The ids and times are other ones each time; tests
look only at what `Shown` says of the home they unpack.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e.serving import Serving, complete_a_turn, wait_until
from tests.homes import CHATS, EXPORTED, pack

FOREVER_S = 3_000_000_000  # Nothing in these homes may grow too old while they lie here.
DATABASE = "holdfast.db"
STATUS = "status.json"
KEPT = (DATABASE, f"{DATABASE}-wal", STATUS, "token", "lines.txt")
SERVE = f"""
from holdfast import main
from holdfast.cli import main as command_line
from holdfast.gateway import turns
from tests.e2e.scripted import ScriptedAgent
turns.QUESTION_LIFE_MS = {FOREVER_S} * 1000
owner, main.Owner = main.Owner, lambda **fields: owner(**fields | {{"socket": None}})  # It would name a folder of this machine.
main.DemoAgent = ScriptedAgent
command_line()
"""
EXPORT = """
import json, sys
from pathlib import Path
from holdfast.cli import offline
async def everything(store, lines):
    named = json.load(sys.stdin)
    named.pop("deleted", None)
    return {
        "views": {name: await offline.view(store, id_) for name, id_ in named.items()},
        "events": {name: await offline.events(store, id_) for name, id_ in named.items()},
    }
json.dump(offline.read(Path(sys.argv[1]), everything), sys.stdout)
"""
# Ann's turn is interrupted while a tool of hers works. Of Bob's two answers one is on its way when the process dies, and one waits.
# Cid is asked, Dan has written while Dan's turn runs, Eve has started over.
CHAT = """
import json, sys
from pathlib import Path
from holdfast.gateway import turns
from tests.fakes.platform import session_key
from tests.gateway.gateways import home
turns.QUESTION_LIFE_MS = 3_000_000_000_000
with home(Path(sys.argv[1])) as made:
    life = made.start()
    life.say("say:hello ann", chat="ann")
    life.say("say:hello eve", chat="eve")
    life.say("/new", chat="eve")
    life.say("say:another eve", chat="eve")
    life.say("ask:Which one?", chat="cid")
    life.under_way("say:half|call:deed 5|call:deed 500|say: and done", chat="ann")
    life.pass_s(10)
    life.under_way("say:slow|sleep:100|say: and steady", chat="dan")
    life.write("say:and then?", chat="dan")
    made.server.moods = lambda: "late"
    life.write("say:on its way", chat="bob")
    life.until(lambda: any(sent.text == "on its way" for sent in made.server.sent))
    made.server.moods = lambda: "refused"
    life.write("say:behind it", chat="bob")
    life.pass_s(3)
    chats = ("ann", "bob", "cid", "dan", "eve")
    named = {chat: life.id_of(chat) for chat in chats}
    life.die()
    json.dump({"names": named, "sent": [list(sent[:4]) for sent in made.server.sent]}, sys.stdout)
"""


class Old:
    """Version 0.1, unpacked in a folder."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        """`folder`: for what is served, a module of its own."""
        (folder / "version_0_1.py").write_text(SERVE)
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST")}
        self._environment["PYTHONPATH"] = os.pathsep.join((str(folder), str(checkout), str(checkout / "src")))

    def serving(self, home: Path, **settings: Any) -> Serving:
        path = {"PYTHONPATH": self._environment["PYTHONPATH"]}
        return Serving(home, module="version_0_1", variables=path, undo_delete_s=str(FOREVER_S), **settings)

    def run(self, program: str, *arguments: str, given: str = "") -> Any:
        command = [sys.executable, "-P", "-c", program, *arguments]
        done = subprocess.run(command, env=self._environment, input=given, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return json.loads(done.stdout)

    def keep(self, name: str, home: Path, named: dict[str, str], **more: Any) -> None:
        """The home as it lies there, and what this version makes of it."""
        exported = {"names": named} | self.run(EXPORT, str(home), given=json.dumps(named)) | more
        files = {path: (home / path).read_bytes() for path in KEPT if (home / path).exists()}
        if STATUS in files:
            files[STATUS] = files[STATUS].replace(str(home).encode(), b"/home/ada/.holdfast")
        # Their locks are free: the processes are dead.
        files |= {str(path.relative_to(home)): path.read_bytes() for path in home.glob("owners/*")}
        files[EXPORTED] = json.dumps(exported).encode()
        for path, content in files.items():
            assert str(home).encode() not in content, f"{path} names a folder of this machine"
        print(f"{name}: {pack(name, files):,} bytes")


class Story:
    """What happens in one home, told by the names of its sessions."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self.named: dict[str, str] = {}

    def say(self, name: str, *texts: str, state: str = "idle", **fields: Any) -> str:
        """In a session of its own, which is then in that state."""
        if name not in self.named:
            self.named[name] = self.serving.new_session()
        for text in texts:
            self.named[name] = self.serving.post(self.named[name], text, **fields)["session_id"]
        self.serving.wait_for(self.named[name], state=state)
        return self.named[name]

    def shows(self, name: str, text: str) -> Callable[[], bool]:
        """Whether the session shows it, in a message or in the output of a call."""
        return lambda: text in json.dumps(self.serving.session(self.named[name])["messages"])


def earlier_lives(old: Old, home: Path) -> dict[str, str]:
    """What is over, and of which only the records are kept; and a turn that was interrupted, resumed and completed."""
    with old.serving(home) as serving:
        told = Story(serving)
        told.say("pruned", "hello there", "run echo one; echo two", "count 12 0.01")
        told.say("resumed", "count 40 0.05", state="running")
        wait_until(told.shows("resumed", "5 6"))
        serving.kill()
        serving.start()
        serving.wait_for(told.named["resumed"])
        complete_a_turn(serving)
        told.say("left", "count 40 0.05", state="running")
        wait_until(told.shows("left", "4 5"))
        serving.kill()
    with old.serving(home, keep_streams_s="1", auto_resume="false") as serving:
        read = Story(serving)
        read.named = told.named

        def pruned() -> bool:
            return not any(event.event == "text" for event in serving.log(told.named["pruned"]))

        wait_until(pruned)
        serving.stop()
    return told.named


def make_killed(old: Old, home: Path) -> None:
    named = earlier_lives(old, home)
    with old.serving(home, auto_resume="false") as serving:
        told = Story(serving)
        told.named = named
        what_is_over(told)
        what_is_under_way(told)
        what_a_pause_holds_back(told)
        serving.order(f"/api/sessions/{told.named['stopped']}/stop")
        serving.kill()
        old.keep("killed", home, named)


def what_is_over(told: Story) -> None:
    serving = told.serving
    told.say("rested", "hello", client_id="hello-1")
    told.say("rested", "/status")
    with serving.client() as client:
        client.patch(f"/api/sessions/{told.named['rested']}", json={"title": "A name", "pinned": True}).raise_for_status()
    told.say("archived", "run exit 3")
    with serving.client() as client:
        client.patch(f"/api/sessions/{told.named['archived']}", json={"archived": True}).raise_for_status()
    told.say("failed", "fail")
    told.say("long", "run yes over and over again | head -c 200000")
    told.say("asked", "ask What is your name?", state="waiting")
    told.say("asked", "Ada")
    told.say("cancelled", "hang", state="running")
    serving.order(f"/api/sessions/{told.named['cancelled']}/stop")
    serving.wait_for(told.named["cancelled"])
    told.named["reset"] = told.say("before_reset", "the first conversation")
    told.say("reset", "/new", "the second conversation")
    told.say("suspended", "hang", state="running")
    serving.order(f"/api/sessions/{told.named['suspended']}/suspend")
    told.say("deleted", "not for everybody")
    with serving.client() as client:
        client.delete(f"/api/sessions/{told.named['deleted']}").raise_for_status()


def what_is_under_way(told: Story) -> None:
    """When the process dies: a count, a tool that works, a tool that has worked, a question, messages that wait behind a turn."""
    told.say("asks", "ask Which way?", state="waiting")
    told.say("answered", "ask And then?", state="waiting")
    told.say("works", "run echo begun; sleep 30; echo over", state="running")
    told.say("worked", "after echo line >> lines.txt", state="running")
    told.say("queued", "count 60 0.1", state="running")
    told.say("queued", "the second", "the third", state="running")
    told.say("counts", "count 60 0.1", state="running")
    told.say("stopped", "hang", state="running")
    wait_until(told.shows("works", "begun"))
    wait_until(told.shows("worked", "4 5"))
    wait_until(told.shows("counts", "8 9"))


def what_a_pause_holds_back(told: Story) -> None:
    """An answer that nobody has continued with, and a message that nobody has started on."""
    told.serving.order("/api/admin/pause", for_s=3600)
    told.serving.post(told.named["answered"], "And then home.")
    told.named["unstarted"] = told.serving.new_session()
    told.serving.post(told.named["unstarted"], "wait for me", client_id="unstarted-1")


def make_stopped(old: Old, home: Path) -> None:
    """An orderly stop, with a turn that it interrupted, a question, and messages that wait."""
    with old.serving(home) as serving:
        told = Story(serving)
        told.say("rested", "hello")
        told.say("asks", "ask Which way?", state="waiting")
        told.say("counts", "count 60 0.1", state="running")
        told.say("counts", "the second", state="running")
        wait_until(told.shows("counts", "8 9"))
        serving.stop()
        old.keep("stopped", home, told.named)


def make_chats(old: Old, home: Path) -> None:
    home.mkdir()
    found = old.run(CHAT, str(home))
    old.keep(CHATS, home, found["names"], sent=found["sent"])


def main(checkout: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        old = Old(Path(checkout).resolve(), folder)
        make_killed(old, folder / "killed")
        make_stopped(old, folder / "stopped")
        make_chats(old, folder / "chats")


if __name__ == "__main__":
    main(*sys.argv[1:])
