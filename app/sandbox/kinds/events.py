"""What does the simulated API know of events, and how do their two faces belong together?

A real cluster keeps one set of events and serves it as ``v1`` and as ``events.k8s.io/v1``. Here they are stored as
``v1``; `as_core` and `as_new` rename the fields. What a client wrote in one version can be read in the other.
"""

from typing import Any

from app.apiserver.kinds import Column, Kind
from app.core.manifests import Manifest
from app.sandbox.kinds.schema import anything, number, text

_RENAMED = (
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
)


def as_core(event: Manifest) -> Manifest:
    return _renamed(event, "v1", dict(_RENAMED))


def as_new(event: Manifest) -> Manifest:
    return _renamed(event, "events.k8s.io/v1", {core: new for new, core in _RENAMED})


def _renamed(event: Manifest, api_version: str, names: dict[str, str]) -> Manifest:
    renamed = {names.get(key, key): value for key, value in event.items()}
    return {**renamed, "apiVersion": api_version}


def _object(event: Manifest) -> str:
    about: dict[str, Any] = event.get("involvedObject") or event.get("regarding") or {}
    kind = str(about.get("kind") or "").lower()
    return f"{kind}/{about['name']}" if about.get("name") else kind


def _message(event: Manifest) -> str:
    return str(event.get("message") or event.get("note") or "").strip()


def _last(event: Manifest) -> Any:
    last = event.get("lastTimestamp") or event.get("deprecatedLastTimestamp")
    return last or event.get("eventTime")


def _source(event: Manifest) -> str:
    source = event.get("source") or event.get("deprecatedSource") or {}
    reporter = event.get("reportingComponent") or event.get("reportingController")
    return str(source.get("component") or reporter or "")


_COLUMNS = (
    Column(name="Last Seen", cell=_last, type="date"),
    Column(name="Type", cell=lambda event: event.get("type") or ""),
    Column(name="Reason", cell=lambda event: event.get("reason") or ""),
    Column(name="Object", cell=_object),
    Column(name="Source", cell=_source, priority=1),
    Column(name="Message", cell=_message),
    Column(
        name="Count",
        cell=lambda event: event.get("count") or event.get("deprecatedCount") or 1,
        type="integer",
        priority=1,
    ),
    Column(name="Name", cell=lambda event: event["metadata"]["name"], priority=1),
)


def _event(group: str, schema: dict[str, Any], selectable: tuple[str, ...]) -> Kind:
    return Kind(
        group=group,
        version="v1",
        kind="Event",
        plural="events",
        singular="event",
        namespaced=True,
        short_names=("ev",),
        status=False,
        columns=_COLUMNS,
        schema=schema,
        preserve_unknown=True,
        selectable=selectable,
        unconditional_update=True,
    )


_ABOUT = ("kind", "namespace", "name", "uid", "apiVersion", "fieldPath")

EVENT = _event(
    "",
    dict(
        anything(
            "Something that happened to an object.",
            involvedObject=anything("The object that this is about."),
            reason=text("Why, in one word."),
            message=text("What happened, in words."),
            type=text("Normal or Warning."),
            count=number("How often it happened."),
        )
    ),
    (*(f"involvedObject.{name}" for name in _ABOUT), "reason", "type", "source"),
)
NEW_EVENT = _event(
    "events.k8s.io",
    dict(
        anything(
            "Something that happened to an object.",
            regarding=anything("The object that this is about."),
            reason=text("Why, in one word."),
            note=text("What happened, in words."),
            type=text("Normal or Warning."),
        )
    ),
    (*(f"regarding.{name}" for name in _ABOUT), "reason", "type"),
)
