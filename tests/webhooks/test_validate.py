"""What is refused at the door, at which field, in which words."""

from typing import Any

import pytest

from tests.webhooks.conftest import Call
from tests.webhooks.reviews import LIMIT, QUEUE, job, review

AT_QUEUE = f"metadata.labels[{QUEUE}]"
AT_LIMIT = f"metadata.labels[{LIMIT}]"
RUNNING, WAITING = job("main", suspend=False), job("main", suspend=True)


def limited(text: str) -> dict[str, Any]:
    return job("main", {LIMIT: text})


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (job("main"), None),
        (job("team.queue-1"), None),
        (job(), None),
        (job(""), None),
        (limited("1"), None),
        (limited("2147483647"), None),
        (RUNNING, RUNNING),
        (job("other", suspend=True), WAITING),
        (job(suspend=True), WAITING),
        (job("other", suspend=True), RUNNING),
        (job("main", suspend=False), job(suspend=False)),
        (job("main", suspend=False), job("", suspend=False)),
        (job("main", suspend=False), WAITING),
    ],
    ids=[
        "a name", "a dotted name", "no queue", "an empty queue", "a second", "the longest", "no change",
        "another queue while suspended", "none while suspended", "another queue as it is suspended",
        "a first queue while running", "a first queue instead of an empty one", "resumed",
    ],
)  # fmt: skip
async def test_allowed(call: Call, new: dict[str, Any], old: dict[str, Any] | None) -> None:
    answer = await call("validate", review(new, old))
    assert answer["response"] == {"uid": "705ab4f5", "allowed": True}


@pytest.mark.parametrize(
    ("new", "old", "path", "words"),
    [
        (job("Main"), None, AT_QUEUE, "'Main' is no name of a LocalQueue"),
        (job("a_b"), None, AT_QUEUE, "no name"),
        (job("-a"), None, AT_QUEUE, "no name"),
        (job("a\n"), None, AT_QUEUE, "no name"),
        (job("a" * 254), None, AT_QUEUE, "at most 253"),
        (job("Main", suspend=True), WAITING, AT_QUEUE, "no name"),
        (job("other", suspend=False), RUNNING, AT_QUEUE, "from 'main' to 'other' while the job runs"),
        (job(suspend=False), RUNNING, AT_QUEUE, "from 'main' to ''"),
        (job("", suspend=False), RUNNING, AT_QUEUE, "from 'main' to ''"),
        (limited("0"), None, AT_LIMIT, "'0' is no number of seconds above 0"),
        (limited("-5"), None, AT_LIMIT, "no number of seconds"),
        (limited("1.5"), None, AT_LIMIT, "no number of seconds"),
        (limited("2147483648"), None, AT_LIMIT, "no number of seconds"),
        (limited("9" * 5000), None, AT_LIMIT, "no number of seconds"),
        (limited("²"), None, AT_LIMIT, "no number of seconds"),
        (limited(""), None, AT_LIMIT, "no number of seconds"),
    ],
)  # fmt: skip
async def test_refused(
    call: Call, new: dict[str, Any], old: dict[str, Any] | None, path: str, words: str
) -> None:
    answers = [
        await call("validate", review(new, old, dry_run=dry_run)) for dry_run in (False, True)
    ]
    assert answers[0] == answers[1]
    response = answers[0]["response"]
    assert response["allowed"] is False
    status = response["status"]
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert status["message"].startswith(f"{path}: ")
    assert words in status["message"]
    assert [cause["field"] for cause in status["details"]["causes"]] == [path]


async def test_all_faults_are_told_at_once(call: Call) -> None:
    answer = await call("validate", review(job("A", {LIMIT: "x"})))
    status = answer["response"]["status"]
    assert [cause["field"] for cause in status["details"]["causes"]] == [AT_QUEUE, AT_LIMIT]
    assert "; " in status["message"]


@pytest.mark.parametrize("hook", ["mutate", "validate"])
@pytest.mark.parametrize("operation", ["DELETE", "CONNECT"])
async def test_other_operations_pass(call: Call, hook: str, operation: str) -> None:
    answer = await call(hook, review(None, job("Bad Name"), operation=operation))
    assert answer["response"] == {"uid": "705ab4f5", "allowed": True}
