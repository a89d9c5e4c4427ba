"""Node taints and the tolerations that answer them, as flavors and admission checks write them.

The rules are those of Kueue's CRDs and of Kubernetes' own nodes: known effects and operators only, a taint once by key
and effect, no value where only existence is asked for. Tolerations of pods are Kubernetes' business, not judged here.
"""

from collections.abc import Iterator

from pydantic import Field

from app.errors import FieldError
from app.intake.kinds import names
from app.intake.kinds.fields import Int64, Model, Moment
from app.intake.kinds.place import Place

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATORS = ("Equal", "Exists")


class Taint(Model):
    key: str = Field(description="The key of the taint.")
    value: str | None = Field(None, description="The value of the taint.")
    effect: str = Field(
        description="What becomes of pods without a toleration: NoSchedule, PreferNoSchedule or NoExecute."
    )
    time_added: Moment | None = Field(None, description="When the taint was put on the node.")


class Toleration(Model):
    key: str | None = Field(
        None, description="The taint key it answers; without one, every key (operator Exists)."
    )
    operator: str | None = Field(
        None, description="Equal (also when absent) compares key and value, Exists only the key."
    )
    value: str | None = Field(None, description="The taint value it answers, for operator Equal.")
    effect: str | None = Field(
        None, description="The taint effect it answers; without one, every effect."
    )
    toleration_seconds: Int64 | None = Field(
        None, description="How long a NoExecute taint is tolerated; without it, for ever."
    )


def taint_rules(taints: Iterator[Place]) -> Iterator[FieldError]:
    seen: set[tuple[str, str]] = set()
    for taint in taints:
        key, value, effect = taint.at("key"), taint.at("value"), taint.at("effect")
        if isinstance(key.value, str) and (why := names.why_not_qualified(key.value)):
            yield key.invalid(why)
        if isinstance(value.value, str) and (why := names.why_not_label_value(value.value)):
            yield value.invalid(why)
        if isinstance(effect.value, str) and effect.value not in _EFFECTS:
            yield effect.unsupported(_EFFECTS)
        pair = (taint.text("key"), taint.text("effect"))
        if pair in seen:
            yield taint.duplicate("taints must be unique by key and effect")
        seen.add(pair)


def toleration_rules(tolerations: Iterator[Place]) -> Iterator[FieldError]:
    for toleration in tolerations:
        yield from _toleration_rules(toleration)


def _toleration_rules(toleration: Place) -> Iterator[FieldError]:
    key, operator, effect = toleration.at("key"), toleration.at("operator"), toleration.at("effect")
    if operator.value and operator.value not in _OPERATORS:
        yield operator.unsupported(_OPERATORS)
    if not key.value:
        if operator.value != "Exists":
            yield operator.invalid("must be Exists when key is empty, which matches every key")
    elif isinstance(key.value, str) and (why := names.why_not_qualified(key.value)):
        yield key.invalid(why)
    if operator.value == "Exists" and toleration.text("value"):
        yield toleration.at("value").invalid("must be empty when operator is Exists")
    if effect.value and effect.value not in _EFFECTS:
        yield effect.unsupported(_EFFECTS)
    if not toleration.at("tolerationSeconds").absent and effect.value != "NoExecute":
        yield effect.invalid("must be NoExecute when tolerationSeconds is set")
