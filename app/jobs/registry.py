"""Which adapter handles an object of this apiVersion and kind?

The order of `ADAPTERS` is the order in which kinds are observed and reported. A kind is supported by being listed
here and in no other way; the version is not part of the question whether an owner is one of ours, since owners are
written in whatever version their controller speaks.
"""

from typing import Final

from app.jobs.adapter import JobAdapter
from app.jobs.batch_job import BatchJobAdapter

ADAPTERS: Final[tuple[JobAdapter, ...]] = (BatchJobAdapter(),)

_BY_GROUP_KIND: Final = {(entry.kind.group, entry.kind.kind): entry for entry in ADAPTERS}


def adapter_for(api_version: str, kind: str) -> JobAdapter | None:
    """The adapter for exactly this version of the kind."""
    found = _BY_GROUP_KIND.get((api_version.rpartition("/")[0], kind))
    return found if found and found.kind.api_version == api_version else None


def supports(group: str, kind: str) -> bool:
    """Whether objects of this kind, in any version, are queued as jobs of their own."""
    return (group, kind) in _BY_GROUP_KIND
