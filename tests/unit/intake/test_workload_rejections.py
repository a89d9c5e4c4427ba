"""Every way in which the spec of a Workload can be wrong; pod templates to the letter where quota is counted."""

from typing import Any

import pytest

from tests.unit.intake.samples import GONE, edited, faults, pod_set, prepared, told, workload

FIRST = "spec.podSets[0]"
POD = f"{FIRST}.template.spec"
REQUESTS = f"{POD}.containers[0].resources.requests"
REF = "spec.priorityClassRef"
TOPOLOGY = f"{FIRST}.topologyRequest"
CLASS = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}
GATED_BY = "kueue.x-k8s.io/admission-gated-by"
BOOST = "kueue.x-k8s.io/priority-boost"


@pytest.mark.parametrize(
    ("path", "value", "fault", "reason"),
    [
        ("spec", GONE, "spec", "Required"),
        ("spec.podSets", GONE, "spec.podSets", "Required"),
        ("spec.podSets", [], "spec.podSets", "Invalid"),
        ("spec.podSets", {}, "spec.podSets", "TypeInvalid"),
        ("spec.podSets", [pod_set(f"p{i}") for i in range(19)], "spec.podSets", "TooMany"),
        ("spec.podSets", [pod_set(), pod_set()], "spec.podSets[1]", "Duplicate"),
        (f"{FIRST}.name", "Main", f"{FIRST}.name", "Invalid"),
        (f"{FIRST}.name", "a.b", f"{FIRST}.name", "Invalid"),
        (f"{FIRST}.name", "x" * 64, f"{FIRST}.name", "TooLong"),
        (f"{FIRST}.count", -1, f"{FIRST}.count", "Invalid"),
        (f"{FIRST}.count", "3", f"{FIRST}.count", "TypeInvalid"),
        (f"{FIRST}.count", True, f"{FIRST}.count", "TypeInvalid"),
        (f"{FIRST}.count", 2**31, f"{FIRST}.count", "Invalid"),
        (f"{FIRST}.minCount", 0, f"{FIRST}.minCount", "Invalid"),
        (f"{FIRST}.minCount", 4, f"{FIRST}.minCount", "Invalid"),
        (f"{FIRST}.template", GONE, f"{FIRST}.template", "Required"),
        (f"{FIRST}.size", 3, f"{FIRST}.size", "Forbidden"),
        ("spec.queueName", "Main", "spec.queueName", "Invalid"),
        ("spec.priority", 2**31, "spec.priority", "Invalid"),
        ("spec.priority", 1.5, "spec.priority", "TypeInvalid"),
        ("spec.active", "yes", "spec.active", "TypeInvalid"),
        ("spec.active", 1, "spec.active", "TypeInvalid"),
        ("spec.maximumExecutionTimeSeconds", 0, "spec.maximumExecutionTimeSeconds", "Invalid"),
        (REF, CLASS, "spec.priority", "Required"),
        (
            "spec.preemptionGates",
            [{"name": f"g{i}"} for i in range(9)],
            "spec.preemptionGates",
            "TooMany",
        ),
        (
            "spec.preemptionGates",
            [{"name": "g"}, {"name": "g"}],
            "spec.preemptionGates[1]",
            "Duplicate",
        ),
        (TOPOLOGY, {"required": "x" * 64}, f"{TOPOLOGY}.required", "TooLong"),
        (TOPOLOGY, {"unconstrained": "true"}, f"{TOPOLOGY}.unconstrained", "TypeInvalid"),
        (TOPOLOGY, {"podIndexLabel": "x" * 318}, f"{TOPOLOGY}.podIndexLabel", "TooLong"),
        (TOPOLOGY, {"subGroupCount": -1}, f"{TOPOLOGY}.subGroupCount", "Invalid"),
        (TOPOLOGY, {"podSetSliceSize": 0}, f"{TOPOLOGY}.podSetSliceSize", "Invalid"),
        (
            TOPOLOGY,
            {"podsetSliceRequiredTopologyConstraints": [{"topology": "rack", "size": 1}] * 4},
            f"{TOPOLOGY}.podsetSliceRequiredTopologyConstraints",
            "TooMany",
        ),
        (REQUESTS, {"cpu": "-1"}, f"{REQUESTS}[cpu]", "Invalid"),
        (REQUESTS, {"cpu": "1 core"}, f"{REQUESTS}[cpu]", "Invalid"),
        (REQUESTS, {"cpu": "NaN"}, f"{REQUESTS}[cpu]", "Invalid"),
        (REQUESTS, {"memory": "1E999999"}, f"{REQUESTS}[memory]", "Invalid"),
        (REQUESTS, {"memory": "9" * 65}, f"{REQUESTS}[memory]", "Invalid"),
        (REQUESTS, {"nvidia.com/gpu": 1.5}, f"{REQUESTS}[nvidia.com/gpu]", "TypeInvalid"),
        (REQUESTS, {"nvidia.com/gpu": None}, f"{REQUESTS}[nvidia.com/gpu]", "TypeInvalid"),
        (REQUESTS, {"pods": 1}, f"{REQUESTS}[pods]", "Forbidden"),
        (REQUESTS, {"CPU": 1}, f"{REQUESTS}[CPU]", "Invalid"),
        (REQUESTS, {"cpu ": 1}, f"{REQUESTS}[cpu ]", "Invalid"),
        (REQUESTS, ["cpu"], REQUESTS, "TypeInvalid"),
        (
            f"{POD}.containers[0].resources.limits",
            {"cpu": "-1"},
            f"{POD}.containers[0].resources.limits[cpu]",
            "Invalid",
        ),
        (
            f"{POD}.initContainers",
            [{"name": "a", "resources": {"requests": {"cpu": "-1"}}}],
            f"{POD}.initContainers[0].resources.requests[cpu]",
            "Invalid",
        ),
        (f"{POD}.overhead", {"cpu": "-1m"}, f"{POD}.overhead[cpu]", "Invalid"),
        (
            f"{POD}.resources",
            {"requests": {"cpu": "x"}},
            f"{POD}.resources.requests[cpu]",
            "Invalid",
        ),
        (f"{POD}.containers", GONE, f"{POD}.containers", "Required"),
        (f"{POD}.containers", [{"name": "a"}, {"name": "a"}], f"{POD}.containers[1]", "Duplicate"),
        (f"{POD}.containers", [{"image": "x"}], f"{POD}.containers[0].name", "Required"),
        (f"{POD}.nodeSelector", {"zone": 1}, f"{POD}.nodeSelector[zone]", "TypeInvalid"),
        (f"{POD}.restartPolicy", "Sometimes", f"{POD}.restartPolicy", "NotSupported"),
        (f"{POD}.tolerations", [{"key": 1}], f"{POD}.tolerations[0].key", "TypeInvalid"),
        (
            f"{FIRST}.template.metadata",
            {"labels": {"a b": "c"}},
            f"{FIRST}.template.metadata.labels",
            "Invalid",
        ),
    ],
)
def test_a_workload_with_one_fault_is_refused_for_it(
    path: str, value: Any, fault: str, reason: str
) -> None:
    assert told(edited(workload(), path, value)) == [(fault, f"FieldValue{reason}")]


AFFINITY = f"{POD}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"


def test_node_affinity_is_checked_because_flavors_are_chosen_by_it() -> None:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "Is", "values": ["a"]}]}]
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        }
    }
    assert told(edited(workload(), f"{POD}.affinity", affinity)) == [
        (
            f"{AFFINITY}.nodeSelectorTerms[0].matchExpressions[0].operator",
            "FieldValueNotSupported",
        )
    ]


@pytest.mark.parametrize(
    ("reference", "fault", "reason"),
    [
        ({**CLASS, "kind": "PriorityClass"}, f"{REF}.kind", "NotSupported"),
        ({**CLASS, "group": "scheduling.k8s.io"}, f"{REF}.kind", "NotSupported"),
        ({**CLASS, "group": "example.com"}, f"{REF}.group", "NotSupported"),
        ({**CLASS, "name": "High"}, f"{REF}.name", "Invalid"),
        ({**CLASS, "name": ""}, f"{REF}.name", "Invalid"),
        ({"name": "high", "group": "kueue.x-k8s.io"}, f"{REF}.kind", "Required"),
    ],
)
def test_a_priority_class_is_named_in_full(
    reference: dict[str, Any], fault: str, reason: str
) -> None:
    wrong = workload(priorityClassRef=reference, priority=1)
    assert told(wrong) == [(fault, f"FieldValue{reason}")]


def test_only_one_pod_set_may_shrink() -> None:
    wrong = workload(pod_set("a", minCount=1), pod_set("b"), pod_set("c", minCount=1))
    assert told(wrong) == [("spec.podSets[2].minCount", "FieldValueForbidden")]


def test_an_elastic_workload_does_not_shrink_by_partial_admission() -> None:
    elastic = {"annotations": {"kueue.x-k8s.io/elastic-job": "true", "a": "b"}}
    wrong = workload(pod_set(minCount=1))
    wrong["metadata"].update(elastic)
    assert told(wrong) == [(f"{FIRST}.minCount", "FieldValueForbidden")]


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        (BOOST, "-5", True),
        (BOOST, str(2**31 - 1), True),
        (BOOST, str(2**31), False),
        (BOOST, "high", False),
        (BOOST, "1_000", False),
        (BOOST, "٣", False),
        (GATED_BY, "example.com/a,example.com/b", True),
        (GATED_BY, "", True),
        (GATED_BY, "a,a", False),
        (GATED_BY, "a,,b", False),
        (GATED_BY, "bad name", False),
        (GATED_BY, "x" * 64, False),
    ],
)
def test_annotations_that_steer_admission_are_checked(
    name: str, value: str, *, accepted: bool
) -> None:
    given = workload()
    given["metadata"]["annotations"] = {name: value}
    expected = [] if accepted else [(f"metadata.annotations[{name}]", "FieldValueInvalid")]
    assert told(given) == expected


def test_faults_in_several_places_are_all_told() -> None:
    wrong = workload(pod_set("a", minCount=9), pod_set("B"), priorityClassRef=CLASS)
    wrong = edited(wrong, f"{REQUESTS}", {"cpu": "-1", "memory": "4GB", "pods": 1})
    assert told(wrong) == [
        (f"{FIRST}.template.spec.containers[0].resources.requests[cpu]", "FieldValueInvalid"),
        (f"{FIRST}.template.spec.containers[0].resources.requests[memory]", "FieldValueInvalid"),
        (f"{FIRST}.template.spec.containers[0].resources.requests[pods]", "FieldValueForbidden"),
        (f"{FIRST}.minCount", "FieldValueInvalid"),
        ("spec.podSets[1].name", "FieldValueInvalid"),
        ("spec.priority", "FieldValueRequired"),
    ]


def test_pod_fields_we_do_not_know_are_kept() -> None:
    item = pod_set()
    template = item["template"]
    template["spec"]["fieldOfTheYear2030"] = {"a": [1, None, {"b": 2.5}]}
    template["spec"]["containers"][0]["resizePolicy"] = [{"resourceName": "cpu"}]
    template["spec"]["volumes"] = [{"name": "data", "emptyDir": {}}]
    template["metadata"] = {"annotations": {"Example.com/Note": "x"}, "generateName": "y"}
    assert prepared(workload(item))["spec"]["podSets"] == [item]


def test_the_error_names_the_object() -> None:
    fault = f"{FIRST}.count: Invalid value: -1: must be greater than or equal to 0"
    wrong = edited(workload(), f"{FIRST}.count", -1)
    with pytest.raises(Exception, match="is invalid") as caught:
        prepared(wrong)
    assert str(caught.value) == f'Workload.kueue.x-k8s.io "sample" is invalid: {fault}'
    assert faults(workload()) == ()
