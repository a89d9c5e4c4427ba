"""Twenty jobs of two teams in one cohort: the load under which tests look at the service, whole or being killed.

Each team has 4 cpus on red nodes and 2 on blue ones, and may borrow what the other does not use. Six jobs of one team
take everything first and run until the test ends them, so that everything after them has to wait. No job can give a
whole cpu back before it ends, so that the ledger, which knows nothing of that, can be held against the quota.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tests.cluster.admin import has_condition
from tests.e2e.conftest import RESERVED
from tests.e2e.manifests import FOREVER, cluster_queue, flavor, job, local_queue
from tests.e2e.records import Limits, replay
from tests.e2e.waiting import eventually
from tests.e2e.watchman import Watchman
from tests.e2e.world import World

TEAMS = ("alpha", "beta")
NOMINAL = {"red": 4, "blue": 2}
SMALL = "beta-0"
"""The one whose size may be changed."""
BOTH = {pool: 2 * cpus for pool, cpus in NOMINAL.items()}


@dataclass
class Crowd:
    world: World

    @property
    def first(self) -> dict[str, str]:
        """Alpha's, with two cpus each, and the pool each runs in: the first flavor as long as it lasts."""
        return {f"alpha-first-{number}": "red" if number < 4 else "blue" for number in range(6)}

    @property
    def rest(self) -> list[str]:
        return [f"{team}-{number}" for number in range(7) for team in TEAMS]

    def set_quota(self) -> None:
        world = self.world
        tolerations = [{"key": RESERVED["key"], "operator": "Exists"}]
        quotas = {world.mine(pool): str(cpus) for pool, cpus in NOMINAL.items()}
        world.front.kubectl.apply(
            flavor(world.mine("red"), {"pool": "red"}),
            flavor(world.mine("blue"), {"pool": "blue"}, tolerations=tolerations),
            *(cluster_queue(world.mine(team), quotas, cohort=world.mine("both")) for team in TEAMS),
            *(local_queue(world.namespace, team, world.mine(team)) for team in TEAMS),
        )

    def submit_first(self) -> None:
        for name in self.first:
            self.world.submit(job(name, "alpha", cpu="2", runs_s=FOREVER))
        self.world.until_running(*self.first)

    def end_pods(self, jobs: Iterable[str]) -> None:
        for name in jobs:
            self.world.end_pods(name)

    def submit_rest(self, runs_s: str = "0.7") -> None:
        for number, name in enumerate(self.rest):
            team, cpu = name.split("-")[0], "100m" if name == SMALL else str(1 + number // 2 % 2)
            self.world.submit(job(name, team, cpu=cpu, completions=2, runs_s=runs_s))

    def until_rest_waits(self) -> None:
        """All of them are known."""

        def all_known() -> bool:
            known = {
                one["metadata"]["ownerReferences"][0]["name"] for one in self.world.workloads()
            }
            return known >= set(self.rest)

        eventually(all_known)

    def watched(self) -> Watchman:
        return Watchman(self.world.cluster, self.world.namespace, {**BOTH, "": sum(BOTH.values())})

    def until_complete(self, *jobs: str, within_s: float = 40.0) -> None:
        self.world.until_complete(*jobs, within_s=within_s)
        self.world.until_finished(*jobs)
        for team in TEAMS:
            self.world.until_free(self.world.mine(team))

    def check(self, jobs: list[str]) -> None:
        """Nothing was lost, nothing ran twice, and never was more charged than there is."""
        world = self.world
        for name in jobs:
            found = world.job(name)
            assert has_condition(found, "Complete"), name
            pods = world.pods(name)
            assert len(pods) == found["spec"]["completions"], f"{name} has pods {len(pods)}"
            assert world.marks(name)["attempt"] == "1", name
        queues = [world.mine(team) for team in TEAMS]
        spans = world.records.spans(*queues)
        assert {span["attempt"] for span in spans} == {1}
        limits = Limits(
            of_queue={
                (queue, world.mine(pool)): 1000 * cpus
                for queue in queues
                for pool, cpus in BOTH.items()
            },
            of_all={world.mine(pool): 1000 * cpus for pool, cpus in BOTH.items()},
        )
        most = replay(spans, limits)
        assert most[world.mine("red")] == 8000  # full, and no more than that
        assert any(span["borrowed"] for span in spans)
