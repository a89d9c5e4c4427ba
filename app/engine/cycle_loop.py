"""The loop that decides: catch up, move on, schedule, commit; again while something moves, then sleep until woken.

One round is one transaction at most for each of its two halves. Everything that could wake the loop (a commit by
anybody, a deadline, a lost hint) only makes it look again, so a wake-up too many costs a query and one too few a
second. When the answer to a commit was lost, the image is loaded anew before anything else is decided.
"""

import asyncio
import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import structlog

from app.core.cycle import schedule
from app.core.decisions import Cursor, CycleResult
from app.core.image import Image
from app.core.manifests import Manifest
from app.core.policy import Policy
from app.engine import writes
from app.engine.following import Following
from app.engine.notices import Notices
from app.engine.sampling import Sampler
from app.engine.writes import Moment
from app.store import workloads
from app.store.admission import Cycle, CycleWrite, Outcome, commit_cycle
from app.store.lease import Lease
from app.store.session import Database
from app.store.tracking import StoredWorkload

log = structlog.get_logger("engine.cycle")

GC_THRESHOLDS = (20_000, 20, 20)
NAP_S = 1.0
"""Longest sleep: bounds how late a deadline or a lost hint is noticed."""


@dataclass(slots=True, kw_only=True)
class CycleLoop:
    database: Database
    lease: Lease
    policy: Policy
    clock: Callable[[], datetime]
    wake: asyncio.Event
    decided: Callable[[], None]
    """Called after each commit: sync has work."""
    moved: Callable[[], None]
    """Called when the image is newer than it was: statuses may have changed."""
    notices: Notices
    following: Following = field(init=False)
    _own: dict[str, int] = field(default_factory=dict)
    _sampler: Sampler = field(init=False)
    _clock_seen_at: float = float("-inf")

    def __post_init__(self) -> None:
        self.following = Following(self.database, self.policy)
        self._sampler = Sampler(database=self.database, lease=self.lease, clock=self.clock)

    async def run(self) -> None:
        await self.following.load()
        _spare_the_collector()
        log.info("image.loaded", seen=self.following.seen, workloads=len(self._image.workloads))
        while True:
            self.wake.clear()
            if not await self.step():
                await self._sleep()

    async def step(self) -> bool:
        """One round; whether anything moved."""
        moved = await self.following.catch_up()
        if moved:
            self.moved()
        await self._watch_the_clock()
        moved = await self._move_on() or moved
        self.following.take_own(await self._sampler.sample(self._image))
        return await self._schedule() or moved

    @property
    def _image(self) -> Image:
        return self.following.image

    async def _sleep(self) -> None:
        try:
            async with asyncio.timeout(NAP_S):
                await self.wake.wait()
        except TimeoutError:
            return

    async def _watch_the_clock(self) -> None:
        """Workloads whose deadline has passed are looked at; once a nap, however busy the loop is."""
        time = asyncio.get_running_loop().time()
        if time - self._clock_seen_at < NAP_S:
            return
        self._clock_seen_at = time
        async with self.database.read() as tx:
            for row in await workloads.due_deadlines(tx, now=self.clock()):
                self.following.touched[row.manifest["metadata"]["uid"]] = None

    async def _move_on(self) -> bool:
        """Steps of workloads' lives that are due and need no decision about quota."""
        following, at = self.following, self._moment()
        changed, following.changed = following.changed, {}
        touched = [uid for uid in following.touched if uid not in changed]
        following.touched = {}
        async with self.database.read() as tx:
            found = await workloads.by_uids(tx, touched) if touched else ()
        rows = [row for row in found if following.knows(row.version)]
        newer = (row for row in found if not following.knows(row.version))
        following.touched.update((row.manifest["metadata"]["uid"], None) for row in newer)
        seen = (writes.moved_on(manifest, self._image, at) for manifest in changed.values())
        known = (writes.looked_at(row, self._image, at) for row in rows)
        steps = [write for write in (*seen, *known) if write is not None]
        if not steps:
            return False
        outcome = await self._commit(steps)
        following.touched.update(dict.fromkeys(outcome.refused))
        before = {**changed, **{row.manifest["metadata"]["uid"]: row.manifest for row in rows}}
        for write in steps:
            if write.uid not in outcome.refused:
                self._tell_obstacle(before[write.uid], write.manifest, at)
        return True

    def _tell_obstacle(self, before: Manifest, after: Manifest, at: Moment) -> None:
        """What keeps it out of its queue is said once, when it is news."""
        found = writes.obstacle(after)
        if found is not None and found != writes.obstacle(before):
            self.notices.waiting(after, *found, at.now)

    async def _schedule(self) -> bool:
        at = self._moment()
        before = self._standing()
        result = schedule(self._image, self.policy, at.now)
        if result.is_empty:
            return False
        rows = await self._rows(result)
        steps = writes.decided(result, rows, self._image, at)
        outcome = await self._commit(steps) if steps else None
        refused = outcome.refused if outcome else frozenset()
        acted = {one.uid for one in result.admissions} | {one.uid for one in result.preemptions}
        gone = acted - rows.keys()
        self._image.finish_cycle(result, refused | gone)
        if outcome:
            self._tell(result, rows, outcome)
        return self._has_more(result, before)

    def _standing(self) -> dict[str, Cursor]:
        """Who is at the head of each queue, and how far the scan of its flavors has come."""
        image = self._image
        found = {head.uid: image.progress(head) for head in image.heads()}
        return {uid: progress.cursor if progress else () for uid, progress in found.items()}

    def _has_more(self, result: CycleResult, before: dict[str, Cursor]) -> bool:
        """A blocked queue keeps its head: unless its scan goes on, looking again would say the same."""
        if result.admissions or result.preemptions:
            return True
        after = self._standing()
        return after.keys() != before.keys() or any(
            cursor != before[uid] and is_unfinished(cursor) for uid, cursor in after.items()
        )

    async def _rows(self, result: CycleResult) -> dict[str, StoredWorkload]:
        """The rows to write: all admitted and preempted ones, and of those that wait the ones with news.

        A row that changed after the image had been fed is left out: the decision was not made about it.
        """
        async with self.database.read() as tx:
            found = await workloads.by_uids(tx, sorted(writes.uids(result)))
        known = [row for row in found if self.following.knows(row.version)]
        rows = {row.manifest["metadata"]["uid"]: row for row in known}
        for one in result.pending:
            if one.uid in rows and writes.says_so_already(one, rows[one.uid].manifest):
                del rows[one.uid]
        return rows

    async def _commit(self, steps: Sequence[CycleWrite]) -> Outcome:
        """Raises CommitUnknown when nobody knows: whoever keeps this loop runs it again, from a fresh image."""
        cycle = Cycle(writes=steps, seen=self.following.seen, own=self._own)
        outcome = await commit_cycle(self.database, self.lease, cycle)
        self._own |= outcome.roots
        self.following.take_own(outcome.changes)
        self.decided()
        self.moved()
        return outcome

    def _tell(self, result: CycleResult, rows: dict[str, StoredWorkload], outcome: Outcome) -> None:
        admitted = [one for one in result.admissions if one.uid not in outcome.refused]
        tell = log.info if admitted or result.preemptions else log.debug
        tell(
            "cycle",
            admitted=len(admitted),
            preempted=len(result.preemptions),
            waiting=len(result.pending),
            refused=len(outcome.refused),
        )
        for one in result.pending:
            if one.uid in rows and one.uid not in outcome.refused:
                why = one.explanation
                self.notices.waiting(rows[one.uid].manifest, why.reason, why.message, result.at)

    def _moment(self) -> Moment:
        return Moment(epoch=self.lease.epoch, policy=self.policy, now=self.clock())


def is_unfinished(cursor: Cursor) -> bool:
    return any(index != -1 for pod_set in cursor for _, index in pod_set)


def _spare_the_collector() -> None:
    """What was loaded stays for long: without this, Python's collector would walk all of it again and again."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
