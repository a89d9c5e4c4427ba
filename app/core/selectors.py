"""Which labels does a selector want, and which taints does a toleration accept?

Label selectors, required node affinity, taints and tolerations as Kubernetes defines them; only what admission looks
at. Preferred affinity does not restrict and is dropped when a manifest is read; the one field that an affinity may ask
for, ``metadata.name``, is read like a label that no flavor defines.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    key: str
    operator: str  # In, NotIn, Exists, DoesNotExist, Gt, Lt
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case _:
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        """Gt and Lt compare integers; whatever is not one does not match."""
        try:
            number, bound = int(value or ""), int(self.values[0])
        except (ValueError, IndexError):
            return False
        return number > bound if self.operator == "Gt" else self.operator == "Lt" and number < bound


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSelector:
    """All requirements must hold; none at all matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAffinity:
    """Required node affinity: terms are alternatives, the requirements within one all hold."""

    terms: tuple[tuple[Requirement, ...], ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Judge only the keys that `labels` has, as Kueue does for a flavor's node labels.

        A term left empty that way lifts the whole affinity, since terms are alternatives.
        """
        kept = [[one for one in term if one.key in labels] for term in self.terms]
        if not all(kept):
            return True
        return any(all(one.matches(labels) for one in term) for term in kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    key: str
    effect: str
    value: str = ""

    @property
    def keeps_out(self) -> bool:
        return self.effect in ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""  # empty: every effect

    def tolerates(self, taint: Taint) -> bool:
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        return self.operator == "Exists" or (bool(self.key) and self.value == taint.value)
