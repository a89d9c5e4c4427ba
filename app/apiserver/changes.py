"""What a write makes of an object: the rules that every verb shares, as pure functions of (old, proposed).

`created`, `updated` and `deleted` take and give manifests in the storage version. Status is only written through
/status (when the kind has one) and everything else only through the main resource; `generation` counts changes of the
desired state; an object that is being deleted disappears when its last finalizer goes. A write that changes nothing
answers the very object it was given, so that the storage writes nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from app.apiserver import metadata as rules
from app.apiserver.encoding import copy
from app.apiserver.errors import about, conflict, invalid, not_found
from app.apiserver.kinds import Kind
from app.core.manifests import Manifest
from app.errors import BadRequest, FieldError, Invalid

# (old, new) -> new with its managedFields brought up to date
Track = Callable[[Manifest | None, Manifest], Manifest]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """The circumstances of one write."""

    kind: Kind
    name: str
    now: datetime
    subresource: str = ""
    track: Track | None = None

    @property
    def of_status(self) -> bool:
        return self.subresource == "status"


def created(edit: Edit, proposed: Manifest, uid: str) -> Manifest:
    """`proposed` is the caller's own copy and is changed in place."""
    if edit.kind.status:
        proposed.pop("status", None)
    rules.stamp_new(proposed, uid, edit.now)
    new = _prepared(edit, proposed, None)
    return _owned(edit, None, new)


def updated(edit: Edit, old: Manifest, proposed: Manifest) -> Manifest | None:
    """The object after the update; `old` itself if nothing changes; None when it is gone with this update."""
    _check_identity(edit, old, proposed)
    rules.carry_over(proposed, old)
    if edit.kind.status:
        _keep_other_half(edit, old, proposed)
    new = _prepared(edit, proposed, old)
    _count_generation(edit.kind, old, new)
    new = _owned(edit, old, new)
    if _same(old, new):
        return old
    if old["metadata"].get("deletionTimestamp") and not new["metadata"].get("finalizers"):
        return None
    return new


def _check_identity(edit: Edit, old: Manifest, proposed: Manifest) -> None:
    asked, current = proposed["metadata"], old["metadata"]
    uid = asked.get("uid")
    if uid and uid != current.get("uid"):
        raise conflict(
            edit.kind,
            edit.name,
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {current.get('uid')}",
        )
    version = asked.get("resourceVersion")
    if version and version != current.get("resourceVersion"):
        raise conflict(
            edit.kind,
            edit.name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )


def _keep_other_half(edit: Edit, old: Manifest, proposed: Manifest) -> None:
    if not edit.of_status:
        _copy_field("status", old, proposed)
        return
    for name in {**old, **proposed}:
        if name != "status":
            _copy_field(name, old, proposed)


def _copy_field(name: str, source: Manifest, target: Manifest) -> None:
    """A copy, since `prepare` may change what it gets in place."""
    if name in source:
        target[name] = copy(source[name])
    else:
        target.pop(name, None)


def _prepared(edit: Edit, proposed: Manifest, old: Manifest | None) -> Manifest:
    faults = rules.check(proposed, old)
    if faults:
        raise invalid(edit.kind, edit.name, faults)
    try:
        return edit.kind.prepare(proposed, old)
    except Invalid as error:
        raise about(error, edit.kind, edit.name) from None


def _count_generation(kind: Kind, old: Manifest, new: Manifest) -> None:
    apart = {"metadata", "status"} if kind.status else {"metadata"}
    if any(old.get(name) != new.get(name) for name in {**old, **new} if name not in apart):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def _owned(edit: Edit, old: Manifest | None, new: Manifest) -> Manifest:
    return new if edit.track is None else edit.track(old, new)


def _same(old: Manifest, new: Manifest) -> bool:
    """Equal but for the times at which managers acted."""
    return _without_owners(old) == _without_owners(new)


def _without_owners(manifest: Manifest) -> Manifest:
    metadata = {key: value for key, value in manifest["metadata"].items() if key != "managedFields"}
    owners = [
        {key: value for key, value in entry.items() if key != "time"}
        for entry in manifest["metadata"].get("managedFields", ())
    ]
    return {**manifest, "metadata": metadata, "managedFields": owners}


def check_update(edit: Edit, old: Manifest | None, proposed: Manifest) -> Manifest:
    """The object to be updated, which must be there; a PUT must say which version it replaces."""
    if old is None:
        raise not_found(edit.kind, edit.name)
    if not edit.kind.unconditional_update and not proposed["metadata"].get("resourceVersion"):
        path, rule = "metadata.resourceVersion", "must be specified for an update"
        raise invalid(edit.kind, edit.name, [FieldError(path, f"Invalid value: 0x0: {rule}")])
    return old


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """DeleteOptions, read."""

    dry_run: bool = False
    uid: str = ""
    version: str = ""
    policy: str = ""
    grace_s: int | None = None


def deleted(edit: Edit, old: Manifest | None, deletion: Deletion) -> Manifest | None:
    """None removes it; while finalizers hold it, it stays with a deletionTimestamp."""
    if old is None:
        raise not_found(edit.kind, edit.name)
    _check_preconditions(edit, old, deletion)
    metadata = old["metadata"]
    if not metadata.get("finalizers"):
        return None
    if metadata.get("deletionTimestamp"):
        return old
    marked = {
        **metadata,
        "deletionTimestamp": rules.timestamp(edit.now),
        "deletionGracePeriodSeconds": 0,
        "generation": metadata.get("generation", 0) + 1,
    }
    return {**old, "metadata": marked}


def _check_preconditions(edit: Edit, old: Manifest, deletion: Deletion) -> None:
    metadata = old["metadata"]
    for what, field, wanted in (
        ("UID", "uid", deletion.uid),
        ("ResourceVersion", "resourceVersion", deletion.version),
    ):
        if wanted and wanted != metadata.get(field):
            raise conflict(
                edit.kind,
                edit.name,
                f"Precondition failed: {what} in precondition: {wanted}, "
                f"{what} in object meta: {metadata.get(field)}",
            )


def parse_deletion(body: Manifest | None) -> Deletion:
    """Read a DeleteOptions body."""
    body = body or {}
    if body.get("kind", "DeleteOptions") != "DeleteOptions":
        raise BadRequest("the body of a deletion must be DeleteOptions")
    preconditions = body.get("preconditions") or {}
    policy = body.get("propagationPolicy") or ""
    grace = body.get("gracePeriodSeconds")
    if not isinstance(preconditions, dict) or not (grace is None or isinstance(grace, int)):
        raise BadRequest("DeleteOptions cannot be read")
    if policy not in ("", "Orphan", "Background", "Foreground"):
        told = f'Unsupported value: "{policy}"'
        raise Invalid(
            f"invalid options: propagationPolicy: {told}",
            [FieldError("propagationPolicy", told, "FieldValueNotSupported")],
        )
    return Deletion(
        uid=str(preconditions.get("uid") or ""),
        version=str(preconditions.get("resourceVersion") or ""),
        policy=policy,
        grace_s=grace,
    )
