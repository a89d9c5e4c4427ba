"""What must hold for the spec of a Workload, beyond its structure, and for the annotations that steer its admission.

Kueue's rules: one pod set at most may shrink, and not in an elastic workload; a priority class needs its number; boosts
and admission gates must be readable. Pods are judged in `pod_template`.
"""

from collections.abc import Iterator

from app.errors import FieldError
from app.intake.kinds import names
from app.intake.kinds.fields import INT32_MAX, INT32_MIN
from app.intake.kinds.place import Place
from app.intake.kinds.pod_template import pod_template_rules

GATED_BY = "kueue.x-k8s.io/admission-gated-by"
PRIORITY_BOOST = "kueue.x-k8s.io/priority-boost"
REPLACES = "kueue.x-k8s.io/workload-slice-replacement-for"
ELASTIC = "kueue.x-k8s.io/elastic-job"

_KIND_OF_GROUP = {
    "kueue.x-k8s.io": "WorkloadPriorityClass",
    "scheduling.k8s.io": "PriorityClass",
}


def spec_rules(manifest: Place) -> Iterator[FieldError]:
    spec = manifest.at("spec")
    if spec.absent:
        yield spec.required("podSets must be set")
    yield from _pod_set_rules(list(spec.items("podSets")), elastic=is_elastic(manifest))
    yield from _priority_rules(spec)


def _pod_set_rules(pod_sets: list[Place], *, elastic: bool) -> Iterator[FieldError]:
    shrinkable = False
    for pod_set in pod_sets:
        yield from pod_template_rules(pod_set.at("template"))
        least, count = pod_set.number("minCount"), pod_set.number("count")
        if least is None:
            continue
        place = pod_set.at("minCount")
        if shrinkable:
            yield place.forbidden("at most one pod set can have minCount")
        elif elastic:
            yield place.forbidden("an elastic workload cannot have minCount")
        elif count is not None and least > count:
            yield place.invalid(f"must be less than or equal to count, which is {count}")
        shrinkable = True


def _priority_rules(spec: Place) -> Iterator[FieldError]:
    reference = spec.at("priorityClassRef")
    if reference.absent:
        return
    wanted = _KIND_OF_GROUP.get(reference.text("group"))
    if (
        wanted
        and reference.text("kind") in _KIND_OF_GROUP.values()
        and reference.text("kind") != wanted
    ):
        yield reference.at("kind").unsupported([wanted])
    if spec.at("priority").absent:
        yield spec.at("priority").required("must be set when priorityClassRef is")


def is_elastic(manifest: Place) -> bool:
    """May the number of pods change while they run, by workload slices?"""
    marked = annotation(manifest, ELASTIC).value == "true"
    return marked or not annotation(manifest, REPLACES).absent


def annotation(manifest: Place, name: str) -> Place:
    """An annotation, by its path as Kubernetes writes it."""
    annotations = manifest.at("metadata", "annotations")
    value = annotations.value.get(name) if isinstance(annotations.value, dict) else None
    return Place(value, f"{annotations.path}[{name}]")


def gates(manifest: Place) -> tuple[str, ...]:
    """The names in the `admission-gated-by` annotation, in their order."""
    listed = annotation(manifest, GATED_BY).value
    return tuple(listed.split(",")) if isinstance(listed, str) and listed else ()


def annotation_rules(manifest: Place) -> Iterator[FieldError]:
    """The annotations that steer admission must be readable."""
    boost = annotation(manifest, PRIORITY_BOOST)
    if isinstance(boost.value, str) and not _is_int32(boost.value):
        yield boost.invalid("must be a whole number of 32 bits")
    listed = annotation(manifest, GATED_BY)
    seen: set[str] = set()
    for gate in gates(manifest):
        if gate in seen:
            yield listed.invalid(f'"{gate}" is listed twice')
        elif len(gate) > 63:
            yield listed.invalid(f'"{gate}" is longer than 63 characters')
        elif why := names.why_not_qualified(gate):
            yield listed.invalid(f'"{gate}" {why}')
        seen.add(gate)


def _is_int32(text: str) -> bool:
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 11):
        return False
    return INT32_MIN <= int(text) <= INT32_MAX
