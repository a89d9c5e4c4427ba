"""How much did each LocalQueue use of late, as of now?

The memory of admission fair sharing that an image keeps: which workloads still owe their entry penalty, by LocalQueue,
and the shares that follow. Everything here is derived from nouns; what the numbers mean is told by
``admission_fairness``.
"""

from collections.abc import Iterable, Sequence

from app.core.admission_fairness import is_open, penalty, share
from app.core.model import LocalQueue, Workload
from app.core.objects import Key, Objects, door
from app.core.ordering import Share
from app.core.policy import AdmissionFairness

_UNUSED: Share = (0, 0)


class Shares:
    """Of the LocalQueues of `objects`; without rules nobody has a share and nothing is kept."""

    def __init__(self, objects: Objects, rules: AdmissionFairness | None) -> None:
        self._objects = objects
        self.rules = rules
        self._owing: dict[Key, dict[str, Workload]] = {}
        self._known: dict[Key, Share] = {}  # memo

    def note(self, workload: Workload, *, gone: bool = False) -> None:
        """A workload came, changed or went."""
        if self.rules is None:
            return
        key = door(workload)
        local = self._objects.local_queues.get(key)
        owing = self._owing.setdefault(key, {})
        self._known.pop(key, None)
        if not gone and local is not None and is_open(workload, local):
            owing[workload.uid] = workload
        else:
            owing.pop(workload.uid, None)

    def settle(self, local: LocalQueue, workloads: Iterable[Workload]) -> None:
        """A LocalQueue came or was reckoned anew; `workloads` are all that came through it."""
        if self.rules is not None:
            key = (local.namespace, local.name)
            self._owing[key] = {one.uid: one for one in workloads if is_open(one, local)}
            self._known.pop(key, None)

    def owing(self, key: Key) -> Sequence[Workload]:
        """Those whose entry penalty is still to be taken in."""
        return list(self._owing.get(key, {}).values())

    def of(self, key: Key) -> Share:
        """A workload without a LocalQueue counts as one that used nothing."""
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._reckoned(key)
        return found

    def rank(self, workload: Workload) -> Share:
        return self.of(door(workload))

    def _reckoned(self, key: Key) -> Share:
        local = self._objects.local_queues.get(key)
        if local is None or self.rules is None:
            return _UNUSED
        rules = self.rules
        return share(local, (penalty(one, rules) for one in self.owing(key)), rules)
