"""Why a workload is pending, asked at any time."""

from app.core.image import Image
from app.core.policy import DEFAULT
from app.core.why import why_pending
from tests.builders import (
    cluster_queue,
    cohort,
    flavor,
    image,
    local_queue,
    run,
    workload,
)


def said(of: Image, name: str) -> tuple[str, str] | None:
    found = why_pending(of, DEFAULT, of.workloads["default", name])
    return None if found is None else (str(found.reason), found.message)


def test_every_way_to_wait_has_its_words() -> None:
    of = image(
        flavor(),
        cohort("co", quota={"default": {"cpu": "1"}}),
        cluster_queue("cq", {"default": {"cpu": "4"}}, cohort="co"),
        local_queue("main", "cq"),
        workload("runs", cpu="3", age=9),
        workload("twin", cpu="3", age=8),
        workload("later-twin", cpu="3", age=7),
        workload("small", cpu="1", age=6),
        workload("huge", cpu="6", age=5),
        workload("lost", queue="nowhere"),
        workload("off", active=False),
    )
    run(of)
    run(of)

    assert said(of, "runs") is None
    needed = "insufficient unused quota for cpu in flavor default, 1 more needed"
    short = ("WaitingForQuota", f"couldn't assign flavors to pod set main: {needed}")
    assert said(of, "twin") == said(of, "later-twin") == short  # only the first was ever looked at
    assert said(of, "small") == (
        "PendingEvaluation",
        "It fits and waits for its turn behind 0 workload(s) of ClusterQueue cq",
    )
    assert (said(of, "huge") or ("",))[0] == "ExceedsMaxQuota"
    assert said(of, "lost") == ("Misconfigured", "LocalQueue nowhere doesn't exist")
    assert said(of, "off") == ("Deactivated", "The workload is deactivated")


def test_the_node_without_room_is_named() -> None:
    of = image(
        flavor(),
        cohort("team", "company", {"default": {"cpu": ("0", "1")}}),
        cluster_queue("mine", {"default": {"cpu": "2"}}, cohort="team"),
        cluster_queue("theirs", {"default": {"cpu": "9"}}, cohort="company"),
        local_queue("main", "mine"),
        workload("w", cpu="4"),
    )

    found = why_pending(of, DEFAULT, of.workloads["default", "w"])

    assert found is not None
    (fact,) = found.facts
    assert (fact.asked, fact.available, fact.limit, fact.blocked_by) == (4000, 3000, 3000, "team")
