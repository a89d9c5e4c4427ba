"""Which requests and which watch events go wrong, and how?

A `Fault` names a verb, a pattern for the path, and which of the matching requests it strikes: from the `nth` on, so
many `times` (0: all). Every matching fault counts every request, the first that strikes decides. The layers that carry
faults out ask `on_request` and `on_event`; this module does nothing itself. Everything counts from when the fault was
added, so a test that adds a fault and then acts gets the same outcome each time.
"""

import asyncio
import re
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from app.errors import BadRequest, FieldError, Invalid

RequestFault = Literal["drop", "cut", "delay", "status", "hang"]
EventFault = Literal["repeat", "reorder", "lose", "gone", "break"]
FaultKind = Literal[RequestFault, EventFault]

KINDS: tuple[str, ...] = (*get_args(RequestFault), *get_args(EventFault))
_EVENT_KINDS: tuple[str, ...] = get_args(EventFault)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that goes wrong.

    Requests: ``drop`` closes the connection before anything is done, ``cut`` closes it after everything is done and
    before the answer, ``delay`` waits `delay_s` first, ``status`` answers `status` (with `retry_after_s`), ``hang``
    never answers. Watch events (counted one by one): ``repeat`` tells an event twice, ``reorder`` tells it after the
    one that follows, ``lose`` never tells it, ``gone`` ends the watch with 410, ``break`` closes the connection.
    `verb` is ``get list watch create update patch delete deletecollection`` or ``*`` and does not matter for events.
    """

    kind: FaultKind
    verb: str = "*"
    path: str = ""  # a regular expression that is searched for in the path
    nth: int = 1
    times: int = 1
    status: int = 500
    retry_after_s: int | None = None
    delay_s: float = 0.0

    def matches(self, verb: str, path: str) -> bool:
        of_verb = self.verb in ("*", verb) or self.kind in _EVENT_KINDS
        return of_verb and re.search(self.path, path) is not None


@dataclass(slots=True)
class _Entry:
    fault: Fault
    seen: int = 0
    struck: int = 0

    def strikes(self) -> bool:
        self.seen += 1
        past = self.seen - self.fault.nth
        if past < 0 or (self.fault.times and past >= self.fault.times):
            return False
        self.struck += 1
        return True


class Faults:
    """The faults of one cluster. Empty at first: a cluster without faults behaves."""

    def __init__(self) -> None:
        self._entries: dict[int, _Entry] = {}
        self._next_id = 1
        self._answering = asyncio.Event()
        self._answering.set()

    def add(self, fault: Fault) -> int:
        """Return the number by which the fault can be removed."""
        number, self._next_id = self._next_id, self._next_id + 1
        self._entries[number] = _Entry(fault)
        return number

    def remove(self, number: int) -> bool:
        return self._entries.pop(number, None) is not None

    def clear(self) -> None:
        """Behave again, at once and altogether."""
        self._entries.clear()
        self.answer_again()

    def struck(self, number: int) -> int:
        """Return how often a fault has struck; 0 also for one that is gone."""
        entry = self._entries.get(number)
        return 0 if entry is None else entry.struck

    def listing(self) -> list[dict[str, Any]]:
        return [
            {"id": number, **asdict(entry.fault), "seen": entry.seen, "struck": entry.struck}
            for number, entry in self._entries.items()
        ]

    def on_request(self, verb: str, path: str) -> Fault | None:
        return self._striking(verb, path, events=False)

    def on_event(self, path: str) -> Fault | None:
        return self._striking("", path, events=True)

    def stop_answering(self) -> None:
        """Take requests and answer none; open watches fall silent. Connections stay open."""
        self._answering.clear()

    def answer_again(self) -> None:
        self._answering.set()

    @property
    def silent(self) -> bool:
        return not self._answering.is_set()

    async def until_answering(self) -> None:
        await self._answering.wait()

    def _striking(self, verb: str, path: str, *, events: bool) -> Fault | None:
        matching = [
            entry
            for entry in self._entries.values()
            if (entry.fault.kind in _EVENT_KINDS) is events and entry.fault.matches(verb, path)
        ]
        struck = [entry.fault for entry in matching if entry.strikes()]
        return struck[0] if struck else None


def read_fault(body: Any) -> Fault:
    """Read a fault as a client wrote it."""
    if not isinstance(body, dict):
        raise BadRequest('a fault is a JSON object such as {"kind": "drop", "path": "/jobs"}')
    if body.get("kind") not in KINDS:
        raise Invalid("unknown fault", [FieldError("kind", f"must be one of {', '.join(KINDS)}")])
    try:
        fault = Fault(**body)
        re.compile(fault.path)
    except TypeError as error:
        raise BadRequest(f"a fault has no such field: {error}") from error
    except re.error as error:
        raise Invalid("bad pattern", [FieldError("path", str(error))]) from error
    return fault
