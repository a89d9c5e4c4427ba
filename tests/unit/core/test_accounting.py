"""What pods count as: exact, rounded once, and never less than nothing."""

import pytest

from app.core.accounting import counted
from app.core.image import Image
from app.core.manifests import parse
from app.core.policy import Accounting, Policy, Transformation, TransformationStrategy
from tests.builders import (
    admitted,
    cluster_queue,
    flavor,
    image,
    local_queue,
    reasons,
    run,
    workload,
)

REPLACE = TransformationStrategy.REPLACE
BILLION = 10**9


def rule(input_: str, *outputs: tuple[str, float], **more: object) -> Transformation:
    exact = tuple((name, round(factor * BILLION)) for name, factor in outputs)
    return Transformation(input=input_, outputs=exact, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "rules", "expected"),
    [
        ({"cpu": 300}, [], {"cpu": 300}),
        ({"cpu": 300}, [rule("cpu", ("credits", 1000))], {"cpu": 300, "credits": 300}),
        ({"cpu": 300}, [rule("cpu", ("credits", 1))], {"cpu": 300, "credits": 1}),
        ({"cpu": 300}, [rule("cpu", ("credits", 1000), strategy=REPLACE)], {"credits": 300}),
        ({"gpu": 2}, [rule("gpu", ("cpu", 1.5))], {"gpu": 2, "cpu": 3000}),
        ({"gpu": 2, "cpu": 500}, [rule("gpu", ("cpu", 1.5))], {"gpu": 2, "cpu": 3500}),
        (
            {"mig-1g": 2, "mig-2g": 1},
            [
                rule("mig-1g", ("slices", 1.25), ("memory", 5), strategy=REPLACE),
                rule("mig-2g", ("slices", 2.25), ("memory", 10), strategy=REPLACE),
            ],
            {"slices": 5, "memory": 20},  # 2.5 + 2.25, rounded up once
        ),
        ({"gpu": 2}, [rule("gpu", ("x", -1))], {"gpu": 2, "x": 0}),
        ({"gpu": 2, "x": 5}, [rule("gpu", ("x", -1))], {"gpu": 2, "x": 5}),
        (
            {"gpu": 2},
            [rule("gpu", ("x", -1)), rule("gpu", ("x", 3))],
            {"gpu": 2, "x": 4},
        ),
        (
            {"gpu": 3, "hours": 4},
            [rule("gpu", ("gpu-hours", 1), multiply_by="hours")],
            {"gpu": 3, "hours": 4, "gpu-hours": 12},
        ),
        ({"gpu": 3}, [rule("gpu", ("x", 1), multiply_by="hours")], {"gpu": 3, "x": 3}),
        ({"gpu": 3}, [rule("tpu", ("x", 1))], {"gpu": 3}),
        ({"gpu": 3}, [rule("gpu", strategy=REPLACE)], {}),
    ],
)
def test_transformations(
    asked: dict[str, int], rules: list[Transformation], expected: dict[str, int]
) -> None:
    assert counted(asked, Accounting(transformations=tuple(rules))) == expected


def test_excluded_resources_are_gone_before_anything_is_made_of_them() -> None:
    rules = Accounting(
        excluded_prefixes=("example.com/", "net"),
        transformations=(rule("example.com/x", ("y", 1)),),
    )
    asked = {"cpu": 1, "example.com/x": 4, "network": 2, "example.org/x": 1}
    assert counted(asked, rules) == {"cpu": 1, "example.org/x": 1}


def test_the_transformed_amount_is_what_is_asked_and_held() -> None:
    of = image(
        flavor(), cluster_queue("cq", {"default": {"credits": 10}}), local_queue("main", "cq")
    )
    for name in ("a", "b"):
        of.put(parse(workload(name, gpu="2", pods=3)))
    policy = Policy(
        accounting=Accounting(transformations=(rule("gpu", ("credits", 1), strategy=REPLACE),))
    )

    result = run(of, policy)

    assert admitted(result) == ["a"]
    (pod_set,) = result.admissions[0].admission.pod_sets
    assert dict(pod_set.usage) == {"credits": 6}
    assert reasons(run(of, policy)) == {"b": "WaitingForQuota"}


def test_undeclared_resources_block_or_are_ignored() -> None:
    def fresh() -> Image:
        queue = cluster_queue("cq", {"default": {"cpu": 4}})
        return image(flavor(), queue, local_queue("main", "cq"), workload("a", cpu="1", gpu="2"))

    assert reasons(run(fresh())) == {"a": "NoMatchingFlavor"}
    result = run(fresh(), Policy(accounting=Accounting(ignore_undeclared=True)))
    assert dict(result.admissions[0].admission.pod_sets[0].usage) == {"cpu": 1000}
