"""What may not change in a Workload, given what it already holds.

While quota is reserved the pods that it was reserved for are fixed, and so are the queue and the kind of priority
class; the admission is given and taken back as a whole; pods once reported as done stay done. Amounts are compared by
value and empty parts count as absent, because clients that read and write objects rewrite both.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from app.errors import FieldError
from app.intake.kinds.place import Place
from app.intake.kinds.workload_rules import GATED_BY, REPLACES, annotation, gates, is_elastic
from app.intake.kinds.workload_status_rules import holds

_AMOUNTS = frozenset({"requests", "limits", "overhead", "resourceUsage"})
_PLACED_LATER = frozenset({"topologyAssignment", "delayedTopologyRequest"})


def transition(new: Place, old: Place) -> Iterator[FieldError]:
    reserved = holds(old, "QuotaReserved")
    if reserved:
        yield from _pod_sets(new, old)
        yield from _priority_class(new.at("spec"), old.at("spec"))
        if holds(new, "QuotaReserved"):
            yield from _queue(new.at("spec"), old.at("spec"))
            yield from _reclaimable(new, old)
    if holds(old, "Admitted") and holds(new, "Admitted"):
        yield from _kept(new.at("spec"), old.at("spec"), "maximumExecutionTimeSeconds", "admitted")
    yield from _admission(new.at("status", "admission"), old.at("status", "admission"))
    yield from _check_updates(new, old)
    yield from _cluster_name(new, old)
    yield from _gates(new, old)


def _kept(new: Place, old: Place, name: str, while_: str) -> Iterator[FieldError]:
    if new.at(name).value != old.at(name).value:
        yield new.at(name).invalid(f"field is immutable while the workload is {while_}")


def _queue(new: Place, old: Place) -> Iterator[FieldError]:
    if not old.at("queueName").absent:
        yield from _kept(new, old, "queueName", "holding quota")


def _pod_sets(new: Place, old: Place) -> Iterator[FieldError]:
    if new.at("spec", "podSets").value == old.at("spec", "podSets").value:
        return
    after, before = list(new.items("spec", "podSets")), list(old.items("spec", "podSets"))
    if len(after) != len(before):
        yield new.at("spec", "podSets").invalid(
            "field is immutable while the workload is holding quota"
        )
        return
    for later, earlier in zip(after, before, strict=True):
        for name in ("name", "template", "count", "minCount", "topologyRequest"):
            if name == "count" and is_elastic(new) and _shrunk(later, earlier):
                continue
            if _plain(later.at(name).value) != _plain(earlier.at(name).value):
                yield later.at(name).invalid(
                    "field is immutable while the workload is holding quota"
                )


def _shrunk(new: Place, old: Place) -> bool:
    after, before = new.number("count"), old.number("count")
    return after is not None and before is not None and after < before


def _priority_class(new: Place, old: Place) -> Iterator[FieldError]:
    after, before = new.at("priorityClassRef"), old.at("priorityClassRef")
    if after.absent or before.absent:
        if after.absent != before.absent:
            yield after.invalid("cannot be added or removed while the workload is holding quota")
        return
    yield from _kept(after, before, "group", "holding quota")
    yield from _kept(after, before, "kind", "holding quota")
    if after.text("kind") == "PriorityClass":
        yield from _kept(after, before, "name", "holding quota")


def _admission(new: Place, old: Place) -> Iterator[FieldError]:
    if new.absent or old.absent or new.value == old.value:
        return
    if _plain(new.value, _PLACED_LATER) != _plain(old.value, _PLACED_LATER):
        yield new.invalid("field is immutable: an admission can be set or cleared, not edited")


def _reclaimable(new: Place, old: Place) -> Iterator[FieldError]:
    if is_elastic(new):
        return  # scaling down lowers what can still be given back
    after = {pods.text("name"): pods for pods in new.items("status", "reclaimablePods")}
    for pods in old.items("status", "reclaimablePods"):
        name, done = pods.text("name"), pods.number("count") or 0
        later = after.get(name)
        if later is None:
            yield new.at("status", "reclaimablePods").required(
                f'the entry of pod set "{name}" cannot be removed while the workload is holding quota'
            )
        elif (later.number("count") or 0) < done:
            yield later.at("count").invalid(f"cannot be less than {done}, as reported before")


def _check_updates(new: Place, old: Place) -> Iterator[FieldError]:
    before = {check.text("name"): check for check in old.items("status", "admissionChecks")}
    for check in new.items("status", "admissionChecks"):
        earlier = before.get(check.text("name"))
        if earlier is None or {check.text("state"), earlier.text("state")} != {"Ready"}:
            continue
        updates = check.at("podSetUpdates")
        if _plain(updates.value) != _plain(earlier.at("podSetUpdates").value):
            yield updates.invalid("field is immutable while the check is Ready")


def _cluster_name(new: Place, old: Place) -> Iterator[FieldError]:
    after, before = new.at("status", "clusterName"), old.at("status", "clusterName")
    if after.absent or after.value == before.value:
        return
    nominated = old.at("status", "nominatedClusterNames").value
    if not before.absent:
        yield after.invalid("field is immutable once set; it can only be cleared")
    elif nominated and after.value not in nominated and annotation(new, REPLACES).absent:
        yield after.unsupported(nominated)


def _gates(new: Place, old: Place) -> Iterator[FieldError]:
    added = [gate for gate in gates(new) if gate not in gates(old)]
    if added:
        yield annotation(new, GATED_BY).forbidden(
            f"{', '.join(added)} cannot be added after creation; entries can only be removed"
        )


def _plain(value: Any, without: frozenset[str] = frozenset()) -> Any:
    """A value as it compares: without empty parts and without the fields left out, amounts as numbers."""
    if isinstance(value, dict):
        plain = {
            key: _amounts(item) if key in _AMOUNTS else _plain(item, without)
            for key, item in value.items()
            if key not in without
        }
        return {key: item for key, item in plain.items() if item is not None} or None
    if isinstance(value, list):
        return [_plain(item, without) for item in value] or None
    return value


def _amounts(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {key: Place(item).amount or item for key, item in value.items()} or None
