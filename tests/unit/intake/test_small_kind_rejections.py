"""Every way in which flavors, queues, checks, topologies and priority classes can be wrong, and what may not change."""

from typing import Any

import pytest

from app.core.manifests import Manifest
from tests.unit.intake.samples import (
    GONE,
    admission_check,
    condition,
    edited,
    flavor,
    local_queue,
    prepared,
    priority_class,
    told,
    topology,
)

HOST = "kubernetes.io/hostname"
TAINT = {"key": "spot", "value": "true", "effect": "NoSchedule"}
PARAMETERS = {"apiGroup": "example.com", "kind": "Budget", "name": "team-a"}
TAINTS = "spec.nodeTaints"
TOLERATIONS = "spec.tolerations"


@pytest.mark.parametrize(
    ("wrong", "fault", "reason"),
    [
        (flavor(nodeLabels={f"l{i}": "" for i in range(9)}), "spec.nodeLabels", "TooMany"),
        (flavor(nodeLabels={"a/b/c": ""}), "spec.nodeLabels", "Invalid"),
        (flavor(nodeLabels={"-a": ""}), "spec.nodeLabels", "Invalid"),
        (flavor(nodeLabels={"zone": "x" * 64}), "spec.nodeLabels[zone]", "Invalid"),
        (flavor(nodeLabels={"zone": 1}), "spec.nodeLabels[zone]", "TypeInvalid"),
        (flavor(nodeTaints=[{**TAINT, "key": f"k{i}"} for i in range(9)]), TAINTS, "TooMany"),
        (flavor(nodeTaints=[{**TAINT, "effect": "Never"}]), f"{TAINTS}[0].effect", "NotSupported"),
        (flavor(nodeTaints=[{"key": "spot"}]), f"{TAINTS}[0].effect", "Required"),
        (flavor(nodeTaints=[{**TAINT, "key": "a b"}]), f"{TAINTS}[0].key", "Invalid"),
        (flavor(nodeTaints=[{**TAINT, "value": "a b"}]), f"{TAINTS}[0].value", "Invalid"),
        (flavor(nodeTaints=[TAINT, {**TAINT, "value": "no"}]), f"{TAINTS}[1]", "Duplicate"),
        (flavor(tolerations=[{"key": str(i)} for i in range(9)]), TOLERATIONS, "TooMany"),
        (flavor(tolerations=[{"value": "x"}]), f"{TOLERATIONS}[0].operator", "Invalid"),
        (flavor(tolerations=[{"key": "a b"}]), f"{TOLERATIONS}[0].key", "Invalid"),
        (
            flavor(tolerations=[{"key": "a", "operator": "Exists", "value": "x"}]),
            f"{TOLERATIONS}[0].value",
            "Invalid",
        ),
        (
            flavor(tolerations=[{"key": "a", "operator": "Like"}]),
            f"{TOLERATIONS}[0].operator",
            "NotSupported",
        ),
        (
            flavor(tolerations=[{"key": "a", "effect": "Never"}]),
            f"{TOLERATIONS}[0].effect",
            "NotSupported",
        ),
        (
            flavor(tolerations=[{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 5}]),
            f"{TOLERATIONS}[0].effect",
            "Invalid",
        ),
        (flavor(topologyName="racks"), "spec.nodeLabels", "Required"),
        (flavor(topologyName="Racks", nodeLabels={"a": "b"}), "spec.topologyName", "Invalid"),
        (local_queue(clusterQueue="Research"), "spec.clusterQueue", "Invalid"),
        (local_queue(stopPolicy="Stop"), "spec.stopPolicy", "NotSupported"),
        (local_queue(fairSharing={"weight": "-1"}), "spec.fairSharing.weight", "Invalid"),
        (priority_class(value=2**31), "value", "Invalid"),
        (priority_class(value="high"), "value", "TypeInvalid"),
        (priority_class(value=True), "value", "TypeInvalid"),
        (priority_class(description="x" * 2049), "description", "TooLong"),
        (edited(priority_class(), "value", GONE), "value", "Required"),
        (admission_check(controllerName=""), "spec.controllerName", "Invalid"),
        (admission_check(controllerName="x" * 254), "spec.controllerName", "TooLong"),
        (edited(admission_check(), "spec.controllerName", GONE), "spec.controllerName", "Required"),
        (edited(admission_check(), "spec", GONE), "spec", "Required"),
        (
            admission_check(parameters={**PARAMETERS, "apiGroup": "Example"}),
            "spec.parameters.apiGroup",
            "Invalid",
        ),
        (
            admission_check(parameters={**PARAMETERS, "kind": "9"}),
            "spec.parameters.kind",
            "Invalid",
        ),
        (
            admission_check(parameters={**PARAMETERS, "name": "a.b"}),
            "spec.parameters.name",
            "Invalid",
        ),
        (
            {**admission_check(), "status": {"conditions": [condition("Active")] * 2}},
            "status.conditions[1]",
            "Duplicate",
        ),
        (topology(), "spec.levels", "Invalid"),
        (topology(*(f"l{i}" for i in range(17))), "spec.levels", "TooMany"),
        (topology("rack", "rack"), "spec.levels[1].nodeLabel", "Duplicate"),
        (topology(HOST, "rack"), "spec.levels[0].nodeLabel", "Invalid"),
        (topology("a b"), "spec.levels[0].nodeLabel", "Invalid"),
        (topology(""), "spec.levels[0].nodeLabel", "Invalid"),
        (edited(topology("rack"), "spec", GONE), "spec", "Required"),
        (edited(topology("rack"), "spec", []), "spec", "TypeInvalid"),
    ],
)
def test_an_object_with_one_fault_is_refused_for_it(
    wrong: Manifest, fault: str, reason: str
) -> None:
    assert told(wrong) == [(fault, f"FieldValue{reason}")]


@pytest.mark.parametrize(
    "legal",
    [
        pytest.param(flavor(nodeLabels={"cloud.example.com/gpu": "a100_80.G"}), id="labels"),
        pytest.param(flavor(nodeTaints=[TAINT, {**TAINT, "effect": "NoExecute"}]), id="taints"),
        pytest.param(flavor(tolerations=[{"operator": "Exists"}]), id="tolerate-everything"),
        pytest.param(
            flavor(
                tolerations=[
                    {"key": "a", "effect": "NoExecute", "tolerationSeconds": 5, "value": "b"}
                ]
            ),
            id="toleration-seconds",
        ),
        pytest.param(flavor(topologyName="racks", nodeLabels={"a": "b"}), id="topology"),
        pytest.param(edited(local_queue(), "spec.clusterQueue", GONE), id="queue-without-target"),
        pytest.param(admission_check(parameters=PARAMETERS), id="check-parameters"),
        pytest.param(topology("example.com/block", "rack", HOST), id="levels"),
        pytest.param(priority_class(value=-(2**31), description="x" * 2048), id="priority-bounds"),
    ],
)
def test_an_object_at_the_limit_of_the_rules_is_accepted(legal: Manifest) -> None:
    assert told(legal) == []


RACKED = flavor(topologyName="racks", nodeLabels={"pool": "a"})


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (local_queue(), local_queue(clusterQueue="other"), "spec.clusterQueue"),
        (local_queue(), edited(local_queue(), "spec.clusterQueue", GONE), "spec.clusterQueue"),
        (RACKED, edited(RACKED, "spec.topologyName", "blocks"), "spec.topologyName"),
        (RACKED, edited(RACKED, "spec.topologyName", GONE), "spec.topologyName"),
        (admission_check(), admission_check(controllerName="b"), "spec.controllerName"),
        (topology("rack"), topology("block", "rack"), "spec.levels"),
        (topology("rack", HOST), topology("rack"), "spec.levels"),
        (topology("rack"), topology("rack", HOST), "spec.levels"),
    ],
)
def test_what_others_rely_on_cannot_be_changed(old: Manifest, new: Manifest, fault: str) -> None:
    assert told(new, prepared(old)) == [(fault, "FieldValueInvalid")]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(local_queue(), local_queue(stopPolicy="Hold"), id="stop"),
        pytest.param(edited(local_queue(), "spec.clusterQueue", GONE), local_queue(), id="target"),
        pytest.param(flavor(nodeLabels={"pool": "a"}), RACKED, id="topology-added"),
        pytest.param(RACKED, edited(RACKED, "spec.nodeLabels", {"pool": "b"}), id="labels"),
        pytest.param(topology("rack", HOST), topology("block", "rack", HOST), id="upper-levels"),
        pytest.param(priority_class(1), priority_class(2), id="priority"),
        pytest.param(admission_check(), admission_check(parameters=PARAMETERS), id="parameters"),
    ],
)
def test_the_rest_can(old: Manifest, new: Manifest) -> None:
    assert told(new, prepared(old)) == []


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("status", "Yes", "NotSupported"),
        ("reason", "", "Invalid"),
        ("reason", "two words", "Invalid"),
        ("message", "x" * 32769, "TooLong"),
        ("lastTransitionTime", "yesterday", "Invalid"),
        ("observedGeneration", -1, "Invalid"),
        ("type", "a b", "Invalid"),
    ],
)
def test_conditions_are_checked(field: str, value: Any, reason: str) -> None:
    status = {"conditions": [condition("Active", **{field: value})]}
    assert told({**admission_check(), "status": status}) == [
        (f"status.conditions[0].{field}", f"FieldValue{reason}")
    ]
