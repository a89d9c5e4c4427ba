"""What the query string of a request asks for, read once and strictly.

A parameter with a value we cannot honour is refused (400 or 422), never ignored: a client that believes it made a dry
run must not have written. Parameters that only tune presentation (`pretty`, `timeout`) are left alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from app.errors import BadRequest, FieldError, Invalid

FieldValidation = Literal["Strict", "Warn", "Ignore"]

_MANAGER_LIMIT = 128
_MAX_TIMEOUT_S = 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    dry_run: bool = False
    field_manager: str = ""
    field_validation: FieldValidation = "Strict"
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    labels: str = ""
    fields: str = ""
    limit: int = 0
    token: str = ""
    version: str = ""  # resourceVersion as given; "" when absent
    match: str = ""  # resourceVersionMatch
    watch: bool = False
    bookmarks: bool = False
    send_initial: bool | None = None
    timeout_s: int = 0


def refused(field: str, value: str, why: str) -> Invalid:
    return Invalid(
        f'invalid options: {field}: Invalid value: "{value}": {why}',
        [FieldError(field, f'Invalid value: "{value}": {why}')],
    )


def parse_dry_run(values: list[str]) -> bool:
    for value in values:
        if value != "All":
            raise Invalid(
                f'invalid options: dryRun: Unsupported value: "{value}": supported values: "All"',
                [FieldError("dryRun", f'Unsupported value: "{value}"', "FieldValueNotSupported")],
            )
    return bool(values)


def write_options(query: Mapping[str, str], default: FieldValidation) -> WriteOptions:
    manager = query.get("fieldManager", "")
    if len(manager) > _MANAGER_LIMIT or not manager.isprintable():
        raise refused("fieldManager", manager[:20], "must be printable and at most 128 bytes")
    return WriteOptions(
        dry_run=parse_dry_run([query["dryRun"]] if "dryRun" in query else []),
        field_manager=manager,
        field_validation=_field_validation(query.get("fieldValidation", ""), default),
        force=_boolean(query, "force") or False,
    )


def _field_validation(value: str, default: FieldValidation) -> FieldValidation:
    match value:
        case "":
            return default
        case "Strict" | "Warn" | "Ignore":
            return value
        case _:
            raise refused("fieldValidation", value, "must be one of Ignore, Warn, Strict")


def list_options(query: Mapping[str, str]) -> ListOptions:
    options = ListOptions(
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
        limit=_integer(query, "limit"),
        token=query.get("continue", ""),
        version=_version(query.get("resourceVersion", "")),
        match=query.get("resourceVersionMatch", ""),
        watch=_boolean(query, "watch") or False,
        bookmarks=_boolean(query, "allowWatchBookmarks") or False,
        send_initial=_boolean(query, "sendInitialEvents"),
        timeout_s=min(_integer(query, "timeoutSeconds"), _MAX_TIMEOUT_S),
    )
    _check_match(options)
    return options


def _check_match(options: ListOptions) -> None:
    if options.send_initial is not None:
        _check_send_initial(options)
        return
    if not options.match:
        return
    if options.watch:
        raise refused("resourceVersionMatch", options.match, "is forbidden for a plain watch")
    if options.match not in ("Exact", "NotOlderThan"):
        raise refused("resourceVersionMatch", options.match, "must be Exact or NotOlderThan")
    if not options.version:
        raise refused("resourceVersionMatch", options.match, "is forbidden without resourceVersion")
    if options.token:
        raise refused("resourceVersionMatch", options.match, "is forbidden with continue")


def _check_send_initial(options: ListOptions) -> None:
    told = str(options.send_initial).lower()
    if not options.watch:
        raise refused("sendInitialEvents", told, "is forbidden for list")
    if options.match != "NotOlderThan":
        raise refused("resourceVersionMatch", options.match, "must be NotOlderThan")
    if options.send_initial and not options.bookmarks:
        raise refused("sendInitialEvents", told, "needs allowWatchBookmarks=true")


def _version(value: str) -> str:
    if value and not (value.isascii() and value.isdecimal() and len(value) <= 19):
        raise refused("resourceVersion", value[:40], "must be a number given by this server")
    return value


def _integer(query: Mapping[str, str], name: str) -> int:
    value = query.get(name, "")
    if not value:
        return 0
    if not (value.isascii() and value.isdecimal() and len(value) <= 18):
        raise BadRequest(f"{name} must be a whole number that is not negative, not {value[:40]!r}")
    return int(value)


def _boolean(query: Mapping[str, str], name: str) -> bool | None:
    value = query.get(name)
    match value:
        case None:
            return None
        case "true" | "1" | "True" | "t" | "T" | "TRUE":
            return True
        case "false" | "0" | "False" | "f" | "F" | "FALSE":
            return False
        case "":  # "?watch" alone counts as set, as in Go's decoder
            return True
        case _:
            raise BadRequest(f"{name} must be true or false, not {value[:40]!r}")
