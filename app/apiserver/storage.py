"""The port through which the server reads and writes objects; it says nothing about how they are kept.

Two implementations exist: Postgres (Sluice's own kinds) and memory (`memory.py`, the simulated cluster).

What always holds: manifests that cross this port are shared, nobody changes them in place; a writer copies first. The
number given to a write is larger than that of every write already visible, over all kinds together, so that it can
serve as ``resourceVersion``. `change` functions are pure and synchronous and may be called more than once.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from app.apiserver.kinds import Kind
from app.core.manifests import Manifest

Change = Callable[[Manifest | None], Manifest | None]


@dataclass(frozen=True, slots=True)
class User:
    """Who asks, as the authenticator established it; `name` is what audit rows and messages show."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """All objects of a kind at one moment, sorted by (namespace, name).

    `oldest` is the smallest number a watch could still start from; page tokens older than that have expired.
    """

    items: Sequence[Manifest]
    resource_version: int
    oldest: int = 0


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change. A deletion's `object` is the last state with the deletion's own resourceVersion; `old` is the state
    before (None for ADDED), from which a selecting watch sees objects enter and leave its selection.
    """

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: Manifest
    old: Manifest | None
    resource_version: int


@dataclass(frozen=True, slots=True)
class WatchBatch:
    """Changes in order (perhaps none), and the number up to which this watch has now told everything."""

    resource_version: int
    events: Sequence[WatchEvent] = field(default=())


class Storage(Protocol):
    async def get(self, kind: Kind, namespace: str | None, name: str) -> Manifest | None: ...

    async def list(self, kind: Kind, namespace: str | None) -> Listing:
        """The newest committed state; `namespace` None means all namespaces."""

    async def write(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        change: Change,
        *,
        user: User,
        dry_run: bool,
    ) -> Manifest | None:
        """Read, change and write one object atomically.

        `change` gets the current object or None and returns the new one, or None to remove it; what it raises
        leaves everything as it was. Returning the very object it was given writes nothing. The answer is the
        stored object with its resourceVersion, or the last one when it was removed (None if there was nothing).
        With `dry_run` every check is made and nothing is kept.
        """

    def watch(
        self, kind: Kind, namespace: str | None, since: int
    ) -> AsyncGenerator[WatchBatch, None]:
        """Everything after number `since`, for ever; an empty batch now and then tells how far it has come.

        Raises `Gone` if `since` is older than what is kept. It is an async generator: the server cancels it
        while it waits and then closes it, so between batches it may await memory (a queue, an event), never a
        database.
        """
