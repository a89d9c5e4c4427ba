"""How are moments written in manifests?

Kubernetes keeps whole seconds in most fields (`stamp`) and microseconds in a few (`micro_stamp`).
"""

from datetime import UTC, datetime


def stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
