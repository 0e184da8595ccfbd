"""The scripted server as a program: `python -m tests.fakes.mcp FOLDER [modern] [http] [FAULT]`. Over HTTP it prints its address.

fault       what it does instead of starting
silent      it reads and never answers
exits       it says why on its standard error, and ends with 4
garbage     it prints what is no message, without end
huge        it prints one line without end
busy        it starts, but does one thing at a time
deaf        it answers the first messages, and reads no more after them
stays       it does not end when its input ends, nor by a signal that can be ignored
astray      over HTTP: it sends everybody to an address that is none
packed      over HTTP: it answers in an encoding that nobody asked for
"""

import json
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.fakes.mcp.logic import Logic


class Pipes(Logic):
    def __init__(self, folder: Path, *, modern: bool, busy: bool) -> None:
        super().__init__(folder, modern=modern, busy=busy)
        self._printing = threading.Lock()

    def send(self, message: dict[str, Any]) -> None:
        with self._printing:
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()

    def print_noise(self, lines: int) -> None:
        with self._printing:
            sys.stdout.write("this is no message\n" * lines)
            sys.stdout.flush()

    def run(self, *, deaf: bool) -> None:
        for number, line in enumerate(sys.stdin):
            self.take(json.loads(line), self.send)
            if deaf and number == 4:
                time.sleep(3600)
        self.note("input ended")


def misbehave(fault: str) -> None:
    if fault == "stays":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif fault == "silent":
        sys.stdin.read()
    elif fault == "exits":
        print("warming up\nno key was given", file=sys.stderr)
        sys.exit(4)
    while fault in ("garbage", "huge"):
        sys.stdout.write("garbage " * 4096 + ("\n" if fault == "garbage" else ""))


class Handler(BaseHTTPRequestHandler):
    """Requests that may take their time are answered with a stream of events, the others at once."""

    logic: Logic
    sessions: set[str]
    fault = ""
    protocol_version = "HTTP/1.1"

    def log_message(self, *words: Any) -> None: ...

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        message = json.loads(body)
        self.logic.note("post", method=message.get("method"), authorization=self.headers.get("authorization"))
        session = self.headers.get("mcp-session-id")
        if self.fault == "astray":
            self._plain(307, b"", Location="http://[nowhere")
        elif self.fault == "packed":
            self._plain(200, b"x" * 100, **{"Content-Encoding": "gzip"})
        elif session is not None and session not in self.sessions:
            self._plain(404, b"")
        elif "id" not in message or "method" not in message:
            self.logic.take(message, lambda answer: None)
            self._plain(202, b"")
        elif message["method"] in ("tools/call", "subscriptions/listen"):
            self._stream(message)
        else:
            answers: list[dict[str, Any]] = []
            self.logic.take(message, answers.append)
            more = self._begin_session() if message["method"] == "initialize" else {}
            self._plain(200, json.dumps(answers[0]).encode(), **more)

    def _begin_session(self) -> dict[str, str]:
        session = f"session-{time.time_ns()}"
        self.sessions.add(session)
        return {"Mcp-Session-Id": session}

    def _plain(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json" if body else "text/plain",
            "Content-Length": str(len(body)),
            **headers,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, message: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        over, writing = threading.Event(), threading.Lock()

        def send(answer: dict[str, Any]) -> None:
            try:
                with writing:
                    self.wfile.write(f"event: message\ndata: {json.dumps(answer)}\n\n".encode())
                    self.wfile.flush()
            except OSError:
                over.set()
            if answer.get("id") == message["id"]:
                over.set()

        self.logic.take(message, send)
        while not over.wait(0.2):
            send_comment(self, writing, over)
        self.logic.note("stream ended", method=message["method"])

    def do_GET(self) -> None:
        self._plain(405, b"")

    def do_DELETE(self) -> None:
        self.logic.note("delete")
        self._plain(200, b"")


def send_comment(handler: Handler, writing: threading.Lock, over: threading.Event) -> None:
    """So that it notices that nobody listens any more."""
    try:
        with writing:
            handler.wfile.write(b": still here\n\n")
            handler.wfile.flush()
    except OSError:
        over.set()


def main(folder: Path, *words: str) -> None:
    Handler.sessions = set()
    for word in words:
        misbehave(word)
    if "http" in words:
        Handler.fault = next((word for word in words if word in ("astray", "packed")), "")
        Handler.logic = Logic(folder, modern="modern" in words)
        port = next((int(word.removeprefix("port=")) for word in words if word.startswith("port=")), 0)
        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        print(f"http://127.0.0.1:{server.server_port}/mcp", flush=True)
        server.serve_forever()
    Pipes(folder, modern="modern" in words, busy="busy" in words).run(deaf="deaf" in words)
    while "stays" in words:
        time.sleep(3600)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
