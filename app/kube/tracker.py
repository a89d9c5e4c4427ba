"""Which objects has the receiver been told of, and is this event news?

One entry per name: uid and version. Versions are compared per object: an equal one is a replay, and a lower one of the
same kind an overtaken event, since resourceVersions are ordered numbers (KEP-5504). A list is believed whatever it
says, because a restored etcd counts on from its past. Events that were missed show as a difference: a name with another
uid was deleted and made anew, a known name that a list lacks was deleted.
"""

from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

from app.kube.codec import ObjectRef

T = TypeVar("T")
Name = tuple[str, str]

_T_contra = TypeVar("_T_contra", contravariant=True)


class Teller(Protocol[_T_contra]):
    """Where news go; the reflector's outbox."""

    def change(self, ref: ObjectRef, item: _T_contra) -> None: ...

    def delete(self, ref: ObjectRef) -> None: ...


class Tracker(Generic[T]):
    def __init__(self, teller: Teller[T]) -> None:
        self._teller = teller
        self._seen: dict[Name, ObjectRef] = {}
        self._known: Mapping[Name, str] = {}
        self._listed: dict[Name, ObjectRef] = {}

    def changed(self, ref: ObjectRef, item: T) -> None:
        """An ADDED or MODIFIED event; which of the two does not matter."""
        name = (ref.namespace, ref.name)
        seen = self._seen.get(name)
        if seen is not None:
            if not is_newer(ref.resource_version, seen.resource_version):
                return
            if seen.uid != ref.uid:
                self._teller.delete(seen)
        self._seen[name] = ref
        self._teller.change(ref, item)

    def deleted(self, ref: ObjectRef) -> None:
        """A DELETED event; one for an earlier incarnation than the known one is old news."""
        name = (ref.namespace, ref.name)
        seen = self._seen.get(name)
        if seen is not None and seen.uid == ref.uid:
            del self._seen[name]
            self._teller.delete(ref)

    def begin_list(self, known: Mapping[Name, str]) -> None:
        """`known` is what the receiver holds besides what it was told here: names with their uids."""
        self._keep_unfinished()
        self._known = known
        self._listed = {}

    def listed(self, ref: ObjectRef, item: T) -> None:
        name = (ref.namespace, ref.name)
        self._listed[name] = ref
        if self._seen.get(name) != ref:
            self._teller.change(ref, item)

    def end_list(self) -> None:
        """Report what the list lacked. Both what we told and what the receiver names count as known."""
        for name, uid in self._known.items():
            self._report_missing(ObjectRef(*name, uid, ""))
        for seen in self._seen.values():
            self._report_missing(seen)
        self._seen, self._listed, self._known = self._listed, {}, {}

    def _keep_unfinished(self) -> None:
        """A list that broke off has told of objects; they count as seen, or their deletion would go unnoticed."""
        for name, ref in self._listed.items():
            seen = self._seen.get(name)
            if seen is not None and seen.uid != ref.uid:
                self._teller.delete(seen)
            self._seen[name] = ref

    def _report_missing(self, ref: ObjectRef) -> None:
        listed = self._listed.get((ref.namespace, ref.name))
        if listed is None or listed.uid != ref.uid:
            self._teller.delete(ref)


def is_newer(new: str, old: str) -> bool:
    """Whether version `new` comes after `old`; versions that are no numbers are only told apart."""
    if new.isdigit() and old.isdigit():
        return int(new) > int(old)
    return new != old
