"""Server-sent events: bytes as they come from the network in, the data of whole events out. It knows neither HTTP nor JSON."""

from collections.abc import Iterator

from holdfast.ports.models import Cut

# A whole response is told once more in the last event of some wires. Nothing larger than this is one.
LIMIT = 64 * 1024 * 1024


class Events:
    """Only `data` is read: every wire says in it what kind of event it is. What stands after the last empty line is half an event."""

    def __init__(self) -> None:
        self._data: list[bytes] = []
        self._half: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._begun = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        if not self._begun:
            self._begun, chunk = True, chunk.removeprefix(b"\xef\xbb\xbf")
        if self._after_cr or b"\r" in chunk:
            chunk = self._plain(chunk)
        if b"\n" not in chunk:
            self._keep(chunk)
            return
        lines = chunk.split(b"\n")
        if self._half:
            lines[0] = b"".join((*self._half, lines[0]))
            self._half.clear()
        rest = lines.pop()
        self._size = 0
        for line in lines:
            if not line:
                if self._data:
                    yield self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                    self._data.clear()
            elif line.startswith(b"data:"):
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        if rest:
            self._keep(rest)

    def _keep(self, half: bytes) -> None:
        self._half.append(half)
        self._size += len(half)
        if self._size > LIMIT:
            raise Cut(f"The stream brought more than {LIMIT // 1024**2} MB without the end of a line.")

    def _plain(self, chunk: bytes) -> bytes:
        """With \\n as the only end of a line. A \\r\\n may be split between two chunks."""
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
