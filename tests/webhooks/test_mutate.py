"""A job that names a queue is suspended as it is created; one that names none may get its namespace's default."""

from typing import Any

import pytest

from tests.webhooks.conftest import DEFAULTED, Call
from tests.webhooks.reviews import QUEUE, job, operations, patched, review


@pytest.mark.parametrize("suspend", [None, False])
async def test_a_queued_job_is_suspended(call: Call, suspend: bool | None) -> None:
    subject = job("main", suspend=suspend)
    after = patched(subject, await call("mutate", review(subject)))
    assert after["spec"]["suspend"] is True
    assert after == {**subject, "spec": {**subject["spec"], "suspend": True}}


@pytest.mark.parametrize(
    "subject",
    [
        job("main", suspend=True),
        job(),
        job(suspend=False),
        job("", suspend=False),
    ],
    ids=["suspended already", "no queue", "running, no queue", "an empty queue name"],
)
async def test_what_is_left_alone(call: Call, subject: dict[str, Any]) -> None:
    answer = await call("mutate", review(subject))
    assert answer["response"] == {"uid": "705ab4f5", "allowed": True}


async def test_updates_are_never_mutated(call: Call) -> None:
    """A running job is resumed and changed by its owner; suspending it is not the webhook's business."""
    old, new = job("main", suspend=True), job("main", suspend=False)
    assert operations(await call("mutate", review(new, old))) == []


@pytest.mark.parametrize("labels", ["absent", "null", "empty", "others"])
async def test_the_default_queue(call: Call, labels: str) -> None:
    subject = job()
    if labels != "absent":
        subject["metadata"]["labels"] = {"null": None, "empty": {}, "others": {"a/b": "c"}}[labels]
    after = patched(subject, await call("mutate", review(subject, namespace=DEFAULTED)))
    assert after["metadata"]["labels"][QUEUE] == "default"
    assert after["spec"]["suspend"] is True
    if labels == "others":
        assert after["metadata"]["labels"]["a/b"] == "c"


async def test_the_default_is_only_for_who_names_none(call: Call) -> None:
    named = await call("mutate", review(job("main", suspend=True), namespace=DEFAULTED))
    assert operations(named) == []
    refused = await call("mutate", review(job("", suspend=False), namespace=DEFAULTED))
    assert operations(refused) == [], "an empty label says: no queue, thank you"


async def test_a_dry_run_is_answered_alike(call: Call) -> None:
    subject = job("main")
    real, dry = [await call("mutate", review(subject, dry_run=dry)) for dry in (False, True)]
    assert real == dry
