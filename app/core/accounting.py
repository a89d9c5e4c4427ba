"""As what does a pod count against quota, when some of its resources do not, or count as others?

First resources with an excluded prefix are dropped, then transformations apply (KEP-2937): every rule whose input the
pod asks for adds so much of each output for each unit of it, times what the pod asks of another resource where the rule
says so. Contributions to one output are added up exactly and rounded up once at the end; a sum below zero adds nothing.
An input that is replaced counts no more itself, a retained one is kept as it was.

Placement on nodes always looks at what pods really ask for; none of this touches it.
"""

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from app.core.policy import Accounting, Transformation, TransformationStrategy
from app.core.resources import CPU, Requests, plus

_BILLION = 10**9


def counted(requests: Requests, rules: Accounting) -> Requests:
    """What one pod counts as."""
    if rules.is_plain:
        return requests
    return _counted(tuple(sorted(requests.items())), rules)


@lru_cache(maxsize=4096)
def _counted(requests: tuple[tuple[str, int], ...], rules: Accounting) -> Requests:
    kept = {
        name: amount for name, amount in requests if not name.startswith(rules.excluded_prefixes)
    }
    applied = [rule for rule in rules.transformations if rule.input in kept]
    replaced = {rule.input for rule in applied if rule.strategy is TransformationStrategy.REPLACE}
    result = {name: amount for name, amount in kept.items() if name not in replaced}
    for name, amount in _outputs(kept, applied).items():
        result[name] = plus(result.get(name, 0), amount)
    return dict(sorted(result.items()))


def _outputs(kept: Requests, rules: Iterable[Transformation]) -> dict[str, int]:
    """In the unit of each output."""
    exact: dict[str, Fraction] = {}
    for rule in rules:
        times = _natural(rule.input, kept)
        if rule.multiply_by is not None and rule.multiply_by in kept:
            times *= _natural(rule.multiply_by, kept)
        for name, billionths in rule.outputs:
            part = times * Fraction(billionths, _BILLION) * _units(name)
            exact[name] = exact.get(name, Fraction(0)) + part
    return {name: max(0, -(-sum_.numerator // sum_.denominator)) for name, sum_ in exact.items()}


def _natural(name: str, kept: Requests) -> Fraction:
    """Whole cpus, bytes, pieces."""
    return Fraction(kept[name], _units(name))


def _units(name: str) -> int:
    return 1000 if name == CPU else 1
