"""Who has been preempted for whom already, may be again, and goes first when both are in line?

In Kueue workloads can preempt each other for ever: a victim is back in line at once and may get in before its preemptor
does, or preempt it in turn, or a third one that lets the first back in. The rule against it is ours:

    Nobody is preempted for the same workload a third time before others have given room back, and after the second
    time nobody goes ahead of the one it was preempted for.

Each further time takes twice as many workloads to give room back as the one before, so that in a busy cohort, too,
repetition dies out. An edit of any queue, cohort, flavor or other object but nodes wipes the slate, and so does a new
size or priority of one of the two. All of this is memory, not state (after a restart it may all happen once more), and
it grows only with pairs of workloads that are still there.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from app.core.model import Workload

_OFTEN = (
    2  # what happens so often may happen once more, in Kueue's ordinary course of things, no longer
)


def once_more(keys: Sequence[str]) -> str:
    """What to add to the explanation of a preemptor whose victims are back."""
    names, were = ", ".join(keys), "were" if len(keys) > 1 else "was"
    return f"; {names} {were} preempted for it before, came back, and may stay until others give room back"


class Entry(Protocol):
    @property
    def workload(self) -> Workload: ...


_Entry = TypeVar("_Entry", bound=Entry)


@dataclass(frozen=True, slots=True)
class _Past:
    """How often one was preempted for another, as of which edit, and how much room must come before the next time."""

    times: int
    edits: int
    next_at: int


class Rivals:
    def __init__(self) -> None:
        self._past: dict[str, dict[str, _Past]] = {}  # victim -> preemptor
        self._victims: dict[str, set[str]] = {}  # preemptor -> victims
        self._rooms: Counter[str] = Counter()  # by cohort root: how often others gave room back

    def note(self, preemptor: str, victim: str, root: str, edits: int) -> None:
        """A preemption was carried out; `edits` tells which state of the objects it was decided on."""
        before = self._past.get(victim, {}).get(preemptor)
        times = before.times + 1 if before is not None and before.edits == edits else 1
        next_at = self._rooms[root] + 2 ** (times - _OFTEN) if times >= _OFTEN else 0
        self._past.setdefault(victim, {})[preemptor] = _Past(times, edits, next_at)
        self._victims.setdefault(preemptor, set()).add(victim)

    def note_room(self, root: str) -> None:
        """Room came back in this tree, and not from a victim that leaves."""
        if self._past:
            self._rooms[root] += 1

    def forget(self, uid: str) -> None:
        """A workload has gone, or asks for something else now."""
        for preemptor in self._past.pop(uid, ()):
            self._victims[preemptor].discard(uid)
        for victim in self._victims.pop(uid, ()):
            self._past[victim].pop(uid, None)

    def spent(self, preemptor: str, root: str, edits: int) -> tuple[str, ...]:
        """Those who were preempted for this one often enough for now."""
        return tuple(
            victim
            for victim in sorted(self._victims.get(preemptor, ()))
            if (past := self._past[victim][preemptor]).edits == edits
            and past.next_at > self._rooms[root]
        )

    def in_turn(
        self, entries: Sequence[_Entry], order: Iterable[_Entry], edits: int
    ) -> Iterator[_Entry]:
        """The entries in their order, but those who were preempted twice for another one right behind it.

        Where shares decide, the order learns of what such a latecomer took only when its branch is looked at again.
        """
        to_come = {entry.workload.uid for entry in entries}
        late: list[_Entry] = []
        for entry in order:
            late.append(entry)
            while (ready := self._first_ready(late, to_come, edits)) is not None:
                late.remove(ready)
                to_come.discard(ready.workload.uid)
                yield ready
        yield from late  # each of them was preempted for another one

    def _first_ready(self, late: Sequence[_Entry], to_come: set[str], edits: int) -> _Entry | None:
        return next(
            (one for one in late if not self._yields(one.workload.uid, to_come, edits)), None
        )

    def _yields(self, victim: str, to_come: set[str], edits: int) -> bool:
        return any(
            past.times >= _OFTEN and past.edits == edits and preemptor in to_come
            for preemptor, past in self._past.get(victim, {}).items()
        )
