"""Where does one watch event end and the next begin?

A watch sends one JSON document a line, cut into network pieces anywhere. The splitter holds what has no end yet, up to
a cap; what is held when the stream ends was cut off and is dropped, because the watch goes on from the last whole
event. aiohttp's own line reading has a much lower cap, which one large object would break.
"""

MOST_BYTES = 16 * 1024 * 1024


class LineTooLong(Exception):
    """A line passed the cap before it ended: no Kubernetes object is that large."""


class LineSplitter:
    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._held: list[bytes] = []
        self._held_bytes = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes, without blank ones."""
        *ended, rest = chunk.split(b"\n")
        if ended:
            ended[0] = b"".join((*self._held, ended[0]))
            self._held, self._held_bytes = [], 0
        self._held_bytes += len(rest)
        if self._held_bytes > self._most_bytes:
            raise LineTooLong
        if rest:
            self._held.append(rest)
        return [line for line in ended if line.strip()]
