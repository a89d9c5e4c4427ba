"""Every way in which a ClusterQueue or a Cohort can be wrong, with the path and reason that are told."""

from typing import Any

import pytest

from app.core.manifests import Manifest
from app.intake.kinds import cohort_cycle
from tests.unit.intake.samples import (
    GONE,
    cluster_queue,
    cohort,
    edited,
    faults,
    group,
    prepared,
    quota,
    told,
)

GROUPS = "spec.resourceGroups"
FIRST = f"{GROUPS}[0].flavors[0].resources[0]"
TWO_RESOURCES = group("spot", resources=("cpu", "memory"))


def many_flavors(groups: int, each: int) -> list[dict[str, Any]]:
    return [
        group(*(f"f-{index}-{number}" for number in range(each)), resources=(f"r-{index}",))
        for index in range(groups)
    ]


@pytest.mark.parametrize(
    ("path", "value", "fault", "reason"),
    [
        (f"{FIRST}.nominalQuota", GONE, f"{FIRST}.nominalQuota", "Required"),
        (f"{FIRST}.nominalQuota", "-1", f"{FIRST}.nominalQuota", "Invalid"),
        (f"{FIRST}.nominalQuota", "ten", f"{FIRST}.nominalQuota", "Invalid"),
        (f"{FIRST}.nominalQuota", "NaN", f"{FIRST}.nominalQuota", "Invalid"),
        (f"{FIRST}.nominalQuota", "1E999999", f"{FIRST}.nominalQuota", "Invalid"),
        (f"{FIRST}.nominalQuota", " 1", f"{FIRST}.nominalQuota", "Invalid"),
        (f"{FIRST}.nominalQuota", "٣", f"{FIRST}.nominalQuota", "Invalid"),
        (f"{FIRST}.nominalQuota", "4GB", f"{FIRST}.nominalQuota", "Invalid"),
        (f"{FIRST}.nominalQuota", 0.5, f"{FIRST}.nominalQuota", "TypeInvalid"),
        (f"{FIRST}.nominalQuota", True, f"{FIRST}.nominalQuota", "TypeInvalid"),
        (f"{FIRST}.borrowingLimit", "-1", f"{FIRST}.borrowingLimit", "Invalid"),
        (f"{FIRST}.lendingLimit", "-1", f"{FIRST}.lendingLimit", "Invalid"),
        (f"{FIRST}.lendingLimit", "10001m", f"{FIRST}.lendingLimit", "Invalid"),
        (f"{FIRST}.name", "memory", f"{FIRST}.name", "Invalid"),
        (f"{FIRST}.name", GONE, f"{FIRST}.name", "Required"),
        (f"{GROUPS}[0].coveredResources", [], f"{GROUPS}[0].coveredResources", "Invalid"),
        (f"{GROUPS}[0].coveredResources[0]", "cpu ", f"{GROUPS}[0].coveredResources[0]", "Invalid"),
        (f"{GROUPS}[0].coveredResources[0]", "CPU", f"{GROUPS}[0].coveredResources[0]", "Invalid"),
        (
            f"{GROUPS}[0].coveredResources[0]",
            "\u0441pu",
            f"{GROUPS}[0].coveredResources[0]",
            "Invalid",
        ),
        (f"{GROUPS}[0].flavors", [], f"{GROUPS}[0].flavors", "Invalid"),
        (f"{GROUPS}[0].flavors[0].resources", [], f"{GROUPS}[0].flavors[0].resources", "Invalid"),
        (f"{GROUPS}[0].flavors[0].name", "Spot", f"{GROUPS}[0].flavors[0].name", "Invalid"),
        (f"{GROUPS}[0].flavors[0].name", "x" * 254, f"{GROUPS}[0].flavors[0].name", "TooLong"),
        (f"{GROUPS}[0].flavors[1].name", "spot", f"{GROUPS}[0].flavors[1]", "Duplicate"),
        (GROUPS, [group("a"), group("b")], f"{GROUPS}[1].coveredResources[0]", "Duplicate"),
        (GROUPS, many_flavors(17, 1), GROUPS, "TooMany"),
        (GROUPS, many_flavors(1, 65), f"{GROUPS}[0].flavors", "TooMany"),
        (GROUPS, many_flavors(5, 60), GROUPS, "Invalid"),
        ("spec.cohortName", "Team A", "spec.cohortName", "Invalid"),
        ("spec.cohortName", 7, "spec.cohortName", "TypeInvalid"),
        ("spec.queueingStrategy", "LIFO", "spec.queueingStrategy", "NotSupported"),
        ("spec.stopPolicy", "Stop", "spec.stopPolicy", "NotSupported"),
        ("spec.fairSharing", {"weight": "-1"}, "spec.fairSharing.weight", "Invalid"),
        ("spec.fairSharing", {"weight": "1n"}, "spec.fairSharing.weight", "Invalid"),
        ("spec.fairSharing", {"weight": "much"}, "spec.fairSharing.weight", "Invalid"),
        (
            "spec.flavorFungibility",
            {"whenCanBorrow": "Borrow"},
            "spec.flavorFungibility.whenCanBorrow",
            "NotSupported",
        ),
        (
            "spec.flavorFungibility",
            {"preference": "PreemptionOverBorrowing", "whenCanPreempt": "TryNextFlavor"},
            "spec.flavorFungibility.preference",
            "Invalid",
        ),
        (
            "spec.preemption",
            {"withinClusterQueue": "Any"},
            "spec.preemption.withinClusterQueue",
            "NotSupported",
        ),
        (
            "spec.preemption",
            {"borrowWithinCohort": {"policy": "LowerPriority"}},
            "spec.preemption.borrowWithinCohort.policy",
            "Invalid",
        ),
        (
            "spec.preemption",
            {"borrowWithinCohort": {"maxPriorityThreshold": 2**31}},
            "spec.preemption.borrowWithinCohort.maxPriorityThreshold",
            "Invalid",
        ),
        (
            "spec.admissionChecksStrategy",
            {"admissionChecks": []},
            "spec.admissionChecksStrategy.admissionChecks",
            "Invalid",
        ),
        (
            "spec.admissionChecksStrategy",
            {"admissionChecks": [{"name": "a"}, {"name": "a"}]},
            "spec.admissionChecksStrategy.admissionChecks[1]",
            "Duplicate",
        ),
        (
            "spec.admissionChecksStrategy",
            {"admissionChecks": [{"name": "a", "onFlavors": ["spot", "spot"]}]},
            "spec.admissionChecksStrategy.admissionChecks[0].onFlavors[1]",
            "Duplicate",
        ),
        (
            "spec.admissionChecksStrategy",
            {"admissionChecks": [{"name": "a", "onFlavors": ["spot", "gold"]}]},
            "spec.admissionChecksStrategy.admissionChecks[0].onFlavors[1]",
            "NotFound",
        ),
        (
            "spec.admissionScope",
            {"admissionMode": "Fair"},
            "spec.admissionScope.admissionMode",
            "NotSupported",
        ),
        ("spec.admissionScope", {}, "spec.admissionScope.admissionMode", "Required"),
        (
            "spec.namespaceSelector",
            {"matchLabels": {"bad key": "x"}},
            "spec.namespaceSelector.matchLabels",
            "Invalid",
        ),
        (
            "spec.namespaceSelector",
            {"matchLabels": {"team": "a b"}},
            "spec.namespaceSelector.matchLabels[team]",
            "Invalid",
        ),
        (
            "spec.namespaceSelector",
            {"matchExpressions": [{"key": "team", "operator": "Is"}]},
            "spec.namespaceSelector.matchExpressions[0].operator",
            "NotSupported",
        ),
        (
            "spec.namespaceSelector",
            {"matchExpressions": [{"key": "team", "operator": "In"}]},
            "spec.namespaceSelector.matchExpressions[0].values",
            "Required",
        ),
        (
            "spec.namespaceSelector",
            {"matchExpressions": [{"key": "team", "operator": "Exists", "values": ["a"]}]},
            "spec.namespaceSelector.matchExpressions[0].values",
            "Forbidden",
        ),
        ("spec.cohort", "research", "spec.cohort", "Forbidden"),
        ("status", {"pendingWorkloads": "3"}, "status.pendingWorkloads", "TypeInvalid"),
    ],
)
def test_a_cluster_queue_with_one_fault_is_refused_for_it(
    path: str, value: Any, fault: str, reason: str
) -> None:
    wrong = edited(cluster_queue(cohortName="research"), path, value)
    assert told(wrong) == [(fault, f"FieldValue{reason}")]


def test_a_flavor_belongs_to_one_group() -> None:
    groups = [group("spot"), group("spot", resources=("memory",))]
    assert told(cluster_queue(resourceGroups=groups)) == [
        ("spec.resourceGroups[1].flavors[0].name", "FieldValueDuplicate")
    ]


def test_a_group_has_at_most_512_quotas() -> None:
    resources = tuple(f"example.com/r{index}" for index in range(26))
    flavors = [f"f{index}" for index in range(20)]
    assert told(cluster_queue(resourceGroups=[group(*flavors, resources=resources)])) == [
        ("spec.resourceGroups[0]", "FieldValueTooMany")
    ]


@pytest.mark.parametrize(
    "listed",
    [
        pytest.param([quota("cpu")], id="one-missing"),
        pytest.param([quota("cpu"), quota("memory"), quota("pods")], id="one-too-many"),
    ],
)
def test_a_flavor_lists_exactly_the_covered_resources(listed: list[dict[str, Any]]) -> None:
    wrong = edited(
        cluster_queue(resourceGroups=[TWO_RESOURCES]), f"{GROUPS}[0].flavors[0].resources", listed
    )
    assert (f"{GROUPS}[0].flavors[0].resources", "FieldValueInvalid") in told(wrong)


def test_a_flavor_lists_the_covered_resources_in_their_order() -> None:
    listed = [quota("memory"), quota("cpu")]
    wrong = edited(
        cluster_queue(resourceGroups=[TWO_RESOURCES]), f"{GROUPS}[0].flavors[0].resources", listed
    )
    assert told(wrong) == [
        (f"{GROUPS}[0].flavors[0].resources[0].name", "FieldValueInvalid"),
        (f"{GROUPS}[0].flavors[0].resources[1].name", "FieldValueInvalid"),
    ]


@pytest.mark.parametrize("limit", ["borrowingLimit", "lendingLimit"])
@pytest.mark.parametrize(
    ("make", "parent"),
    [
        pytest.param(cluster_queue, "cohortName", id="cluster-queue"),
        pytest.param(cohort, "parentName", id="cohort"),
    ],
)
def test_limits_need_a_parent(make: Any, parent: str, limit: str) -> None:
    groups = edited({"g": [group("spot")]}, f"g[0].flavors[0].resources[0].{limit}", "0")["g"]
    assert told(make(resourceGroups=groups)) == [(f"{FIRST}.{limit}", "FieldValueInvalid")]
    assert told(make(resourceGroups=groups, **{parent: "research"})) == []


def test_only_a_cohort_may_promise_to_lend_more_than_it_has() -> None:
    groups = edited({"g": [group("spot")]}, "g[0].flavors[0].resources[0].lendingLimit", "11")["g"]
    assert told(cohort(resourceGroups=groups, parentName="all")) == []
    assert told(cluster_queue(resourceGroups=groups, cohortName="all")) == [
        (f"{FIRST}.lendingLimit", "FieldValueInvalid")
    ]


def test_all_faults_are_told_together_in_the_order_of_the_manifest() -> None:
    wrong = cluster_queue(cohortName="research", queueingStrategy="LIFO", colour="red")
    wrong = edited(wrong, f"{FIRST}.nominalQuota", "-1")
    wrong = edited(wrong, f"{GROUPS}[0].flavors[1].resources[0].nominalQuota", "4GB")
    wrong = edited(wrong, f"{FIRST}.borrowingLimit", "-2")
    assert told(wrong) == [
        (f"{FIRST}.nominalQuota", "FieldValueInvalid"),
        (f"{FIRST}.borrowingLimit", "FieldValueInvalid"),
        (f"{GROUPS}[0].flavors[1].resources[0].nominalQuota", "FieldValueInvalid"),
        ("spec.queueingStrategy", "FieldValueNotSupported"),
        ("spec.colour", "FieldValueForbidden"),
    ]


def test_amounts_beyond_64_bits_mean_no_limit_as_in_kubernetes() -> None:
    assert told(edited(cluster_queue(), f"{FIRST}.nominalQuota", "100E")) == []


CONCURRENT = {"migration": {"mode": "TryPreferredFlavors"}}


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        pytest.param({"resourceGroups": []}, "spec.resourceGroups", id="no-group"),
        pytest.param({"queueingStrategy": "StrictFIFO"}, "spec.queueingStrategy", id="strict"),
        pytest.param(
            {"resourceGroups": many_flavors(1, 17)}, "spec.resourceGroups", id="17-flavors"
        ),
        pytest.param(
            {
                "concurrentAdmissionPolicy": {
                    "migration": {"constraints": {"lastAcceptableFlavorName": "gold"}}
                }
            },
            "spec.concurrentAdmissionPolicy.migration.constraints.lastAcceptableFlavorName",
            id="unknown-flavor",
        ),
        pytest.param(
            {
                "concurrentAdmissionPolicy": {
                    "migration": {"mode": "RetainFirstAdmission", "constraints": {}}
                }
            },
            "spec.concurrentAdmissionPolicy.migration.constraints",
            id="constraints-without-migration",
        ),
    ],
)
def test_concurrent_admission_has_its_conditions(spec: dict[str, Any], fault: str) -> None:
    found = told(cluster_queue(**{"concurrentAdmissionPolicy": CONCURRENT, **spec}))
    assert [path for path, _ in found] == [fault]


def test_the_concurrent_admission_policy_stays_once_set() -> None:
    old = prepared(cluster_queue(concurrentAdmissionPolicy=CONCURRENT))
    assert told(cluster_queue(), old) == [("spec.concurrentAdmissionPolicy", "FieldValueInvalid")]
    assert told(old, prepared(cluster_queue())) == []


def test_a_check_on_an_unknown_flavor_is_tolerated_only_where_it_was_before() -> None:
    def queue(*flavors: str) -> Manifest:
        rules = [{"name": "budget", "onFlavors": list(flavors)}]
        return cluster_queue(admissionChecksStrategy={"admissionChecks": rules})

    old = queue("gold")
    assert told(edited(queue("gold"), "spec.cohortName", "research"), old) == []
    assert told(queue("gold", "silver"), old) == [
        ("spec.admissionChecksStrategy.admissionChecks[0].onFlavors[1]", "FieldValueNotFound")
    ]


def test_a_cohort_is_not_its_own_parent() -> None:
    assert told(cohort(parentName="sample")) == [("spec.parentName", "FieldValueInvalid")]


@pytest.mark.parametrize(
    ("parents", "parent", "cycle"),
    [
        pytest.param({}, "root", None, id="unknown-parent"),
        pytest.param({"b": "root"}, "b", None, id="chain"),
        pytest.param({}, "a", ("a", "a"), id="itself"),
        pytest.param({"b": "c", "c": "a"}, "b", ("a", "b", "c", "a"), id="of-three"),
        pytest.param({"b": "c", "c": "b"}, "b", None, id="somebody-elses"),
        pytest.param({"b": "a"}, "", None, id="becomes-root"),
    ],
)
def test_cohort_cycle(parents: dict[str, str], parent: str, cycle: tuple[str, ...] | None) -> None:
    assert cohort_cycle(parents, "a", parent) == cycle


def test_messages_say_what_was_wrong_and_what_would_be_right() -> None:
    wrong = edited(cluster_queue(cohortNames="x"), f"{FIRST}.nominalQuota", "4GB")
    wrong = edited(wrong, "spec.queueingStrategy", "fifo")
    assert [fault.message for fault in faults(wrong)] == [
        'Invalid value: "4GB": must be a quantity such as "500m", "2", "1.5", "1e3" or "4Gi"',
        'unknown field "spec.cohortNames"; did you mean "spec.cohortName"?',
        'Unsupported value: "fifo": supported values: "StrictFIFO", "BestEffortFIFO"',
    ]
