"""What is refused in the status of a Workload, which controllers of others write as well."""

from typing import Any

import pytest

from app.core.topology import compressed, expanded
from tests.unit.intake.samples import NOW, condition, edited, pod_set, reserved, told, workload

ADMISSION = "status.admission"
ASSIGNED = f"{ADMISSION}.podSetAssignments"
PLACED = f"{ASSIGNED}[0].topologyAssignment"
CHECK = {"name": "budget", "state": "Pending", "lastTransitionTime": NOW, "message": ""}
SLICE = {"domainCount": 2, "valuesPerLevel": [{"roots": ["a", "b"]}], "universalPodCount": 1}


@pytest.mark.parametrize(
    ("path", "value", "fault", "reason"),
    [
        (ADMISSION, None, ADMISSION, "Required"),
        (ASSIGNED, [], ASSIGNED, "Invalid"),
        (f"{ASSIGNED}[0].name", "other", f"{ASSIGNED}[0].name", "NotFound"),
        (f"{ASSIGNED}[0].count", -1, f"{ASSIGNED}[0].count", "Invalid"),
        (
            f"{ASSIGNED}[0].resourceUsage",
            {"cpu": "3001m"},
            f"{ASSIGNED}[0].resourceUsage[cpu]",
            "Invalid",
        ),
        (
            f"{ASSIGNED}[0].resourceUsage",
            {"nvidia.com/gpu": 4},
            f"{ASSIGNED}[0].resourceUsage[nvidia.com/gpu]",
            "Invalid",
        ),
        (f"{ASSIGNED}[0].flavors", {"cpu": "Spot"}, f"{ASSIGNED}[0].flavors[cpu]", "Invalid"),
        (
            f"{ASSIGNED}[0].delayedTopologyRequest",
            "Done",
            f"{ASSIGNED}[0].delayedTopologyRequest",
            "NotSupported",
        ),
        (f"{ADMISSION}.clusterQueue", "Research", f"{ADMISSION}.clusterQueue", "Invalid"),
        (
            "status.conditions",
            [condition(f"T{i}") for i in range(17)],
            "status.conditions",
            "TooMany",
        ),
        (
            "status.reclaimablePods",
            [{"name": "other", "count": 1}],
            "status.reclaimablePods[0].name",
            "NotSupported",
        ),
        (
            "status.reclaimablePods",
            [{"name": "main", "count": 4}],
            "status.reclaimablePods[0].count",
            "Invalid",
        ),
        (
            "status.reclaimablePods",
            [{"name": "main"}],
            "status.reclaimablePods[0].count",
            "Required",
        ),
        (
            "status.admissionChecks",
            [{**CHECK, "state": "Done"}],
            "status.admissionChecks[0].state",
            "NotSupported",
        ),
        (
            "status.admissionChecks",
            [{**CHECK, "name": f"c{i}"} for i in range(9)],
            "status.admissionChecks",
            "TooMany",
        ),
        (
            "status.admissionChecks",
            [{**CHECK, "podSetUpdates": [{"name": "other"}]}],
            "status.admissionChecks[0].podSetUpdates[0].name",
            "NotSupported",
        ),
        (
            "status.admissionChecks",
            [{**CHECK, "podSetUpdates": [{"name": "main", "labels": {"a": "b c"}}]}],
            "status.admissionChecks[0].podSetUpdates[0].labels[a]",
            "Invalid",
        ),
        (
            "status.admissionChecks",
            [{**CHECK, "podSetUpdates": [{"name": "main", "tolerations": [{}]}]}],
            "status.admissionChecks[0].podSetUpdates[0].tolerations[0].operator",
            "Invalid",
        ),
        ("status.requeueState", {"count": -1}, "status.requeueState.count", "Invalid"),
        (
            "status.requeueState",
            {"requeueAt": "soon"},
            "status.requeueState.requeueAt",
            "Invalid",
        ),
        (
            "status.unhealthyNodes",
            [{"name": f"n{i}"} for i in range(9)],
            "status.unhealthyNodes",
            "TooMany",
        ),
        (
            "status.nominatedClusterNames",
            [f"c{i}" for i in range(21)],
            "status.nominatedClusterNames",
            "TooMany",
        ),
        (
            "status.schedulingStats",
            {"evictions": [{"reason": "Preempted", "underlyingCause": "", "count": 1}] * 2},
            "status.schedulingStats.evictions[1]",
            "Duplicate",
        ),
        (
            "status.preemptionGates",
            [{"name": "g", "position": "Ajar", "lastTransitionTime": NOW}],
            "status.preemptionGates[0].position",
            "NotSupported",
        ),
        ("status.mood", "good", "status.mood", "Forbidden"),
        (
            PLACED,
            {"levels": ["rack"], "slices": [{**SLICE, "podCounts": [1, 1]}]},
            f"{PLACED}.slices[0]",
            "Invalid",
        ),
        (
            PLACED,
            {"levels": ["rack"], "slices": [{**SLICE, "domainCount": 3}]},
            f"{PLACED}.slices[0].valuesPerLevel[0].roots",
            "Invalid",
        ),
        (
            PLACED,
            {"levels": ["block", "rack"], "slices": [SLICE]},
            f"{PLACED}.slices[0].valuesPerLevel",
            "Invalid",
        ),
        (
            PLACED,
            {
                "levels": ["rack"],
                "slices": [{**SLICE, "valuesPerLevel": [{"universalValue": "a", "prefix": "b"}]}],
            },
            f"{PLACED}.slices[0].valuesPerLevel[0]",
            "Invalid",
        ),
        (PLACED, {"levels": [], "slices": []}, f"{PLACED}.levels", "Invalid"),
    ],
)
def test_a_status_with_one_fault_is_refused_for_it(
    path: str, value: Any, fault: str, reason: str
) -> None:
    assert told(edited(reserved(), path, value)) == [(fault, f"FieldValue{reason}")]


def test_every_pod_set_needs_its_assignment() -> None:
    wrong = edited(reserved(pod_set("a"), pod_set("b")), f"{ASSIGNED}[1].name", "a")
    assert told(wrong) == [(f"{ASSIGNED}[1]", "FieldValueDuplicate")]


def test_a_workload_is_nominated_or_taken_not_both() -> None:
    wrong = workload(status={"clusterName": "west", "nominatedClusterNames": ["west"]})
    assert told(wrong) == [("status.nominatedClusterNames", "FieldValueForbidden")]


@pytest.mark.parametrize(
    "domains",
    [
        pytest.param([], id="none"),
        pytest.param([(("b1", "r1"), 4), (("b1", "r2"), 2)], id="racks"),
        pytest.param([((f"block-1-rack-{i}-host",), 1) for i in (1, 10, 11)], id="prefix-suffix"),
        pytest.param([(("a",), 2), (("ab",), 2)], id="one-begins-the-other"),
        pytest.param([(("aa",), 1), (("aaa",), 2), (("a",), 3)], id="overlap"),
    ],
)
def test_assignments_survive_compression(domains: list[tuple[tuple[str, ...], int]]) -> None:
    levels = [f"level-{index}" for index in range(len(domains[0][0]))] if domains else ["rack"]
    wire = compressed(levels, domains)
    assert expanded(wire) == domains
    assert told(edited(reserved(), PLACED, wire)) == []


def test_what_domains_share_is_written_once() -> None:
    assert compressed(["block", "host"], [(("b1", "n-1.x"), 2), (("b1", "n-2.x"), 2)]) == {
        "levels": ["block", "host"],
        "slices": [
            {
                "domainCount": 2,
                "valuesPerLevel": [
                    {"universalValue": "b1"},
                    {"prefix": "n-", "suffix": ".x", "roots": ["1", "2"]},
                ],
                "universalPodCount": 2,
            }
        ],
    }
