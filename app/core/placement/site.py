"""The nodes of one flavor: where would a pod set land on them, and what changes when a node does?

A site is the tree of its nodes with everything the search needs beside it: what is free, which nodes a pod may use, and
the counts of the shapes asked for lately. It is told of every node that is ready and of every change in what leaves
hold. A node that goes, comes back or changes stays at its leaf; only a leaf that was never there makes the tree grow
anew, which is the owner's to do (``put_node`` says so).
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.core.model import Node
from app.core.placement.arrays import Bools
from app.core.placement.balance import balance
from app.core.placement.counts import Counter, Levels, Tally, fresh
from app.core.placement.demand import Demand, Shape
from app.core.placement.descent import Descent
from app.core.placement.misfit import Explainer, Misfit
from app.core.placement.screen import Screen
from app.core.placement.search import Chosen, Shortfall, search
from app.core.placement.stock import Ground, Stock
from app.core.placement.tree import Path, Tree, grow
from app.core.resources import Requests
from app.core.topology import TopologyAssignment

_SHAPES_KEPT = 64

#: Nodes and what each offers.
Members = Sequence[tuple[Node, Requests]]

#: Leaves and what each holds.
Held = Iterable[tuple[int, Mapping[str, int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Where the pods go; `leader` only for a group that has one."""

    workers: TopologyAssignment
    leader: TopologyAssignment | None = None


@dataclass(slots=True, eq=False)
class Site:
    flavor: str
    topology: str
    tree: Tree
    ground: Ground
    now: Stock
    idle: Stock
    screen: Screen
    _at: list[dict[str, Requests]]  # leaf -> its nodes and what each offers
    _homes: dict[str, int] = field(default_factory=dict)  # node -> leaf
    _tallies: OrderedDict[tuple[bool, Shape], Tally] = field(default_factory=OrderedDict)

    @classmethod
    def build(cls, flavor: str, topology: str, levels: tuple[str, ...], members: Members) -> "Site":
        """From the nodes that are ready, in the order of their names, each with what it offers."""
        paths = [_path(levels, node) for node, _ in members]
        tree = grow(levels, paths)
        homes = [tree.leaf_of[tree.named(path)] for path in paths]
        at: list[dict[str, Requests]] = [{} for _ in tree.paths]
        nodes: list[Node | None] = [None] * len(tree.paths)
        for (node, offer), leaf in zip(members, homes, strict=True):
            at[leaf][node.name] = offer
            nodes[leaf] = node
        ground = Ground.of([_total(offers.values()) for offers in at])
        return cls(
            flavor=flavor,
            topology=topology,
            tree=tree,
            ground=ground,
            now=Stock.of(ground, ()),
            idle=Stock.of(ground, ()),
            screen=Screen(nodes if tree.names_hosts else []),
            _at=at,
            _homes={node.name: leaf for (node, _), leaf in zip(members, homes, strict=True)},
        )

    def stocked(self, held: Held) -> "Site":
        """With what its leaves hold."""
        self.now = Stock.of(self.ground, held)
        return self

    @property
    def scope(self) -> str:
        """Under which entries of a ledger its leaves are found."""
        return "" if self.tree.names_hosts else self.flavor

    def leaf(self, values: Path) -> int | None:
        """The leaf of that name, if any node is there."""
        leaf = self.tree.leaf_of.get(values)
        return leaf if leaf is not None and self._at[leaf] else None

    def put_node(self, node: Node, offer: Requests) -> int | None:
        """The leaf that changed; None: the tree has no place for the node and must grow anew."""
        path = _path(self.tree.levels, node)
        leaf = self.tree.leaf_of.get(self.tree.named(path))
        moved = self._homes.get(node.name, leaf) != leaf
        if leaf is None or moved or self.tree.paths[leaf] != path:
            return None
        self._settle(leaf, node, offer)
        return leaf

    def remove_node(self, name: str) -> int | None:
        """The leaf that it left, if it was here."""
        leaf = self._homes.pop(name, None)
        if leaf is not None:
            del self._at[leaf][name]
            if self.tree.names_hosts:
                self.screen.change(leaf, None)
            self.ground.set(leaf, _total(self._at[leaf].values()))
        return leaf

    def place(self, demand: Demand, *, empty: bool = False, explain: bool = True) -> Plan | Misfit:
        """Where its pods go: now, or if nothing else were there (`empty`)."""
        level = self.tree.levels[demand.level]
        if not self._homes:
            return Misfit(f"no topology domains at level: {level}")
        levels = self._levels(demand, empty=empty)
        found = self._choose(levels, demand)
        if isinstance(found, Shortfall):
            counter = self._counter(demand.shape, empty=empty)
            explainer = Explainer(self.topology, counter, levels, demand, self._present())
            return Misfit(explainer.sentence(found) if explain else "")
        return self._plan(found)

    def forget(self) -> None:
        """Drop all counts that were kept; the next placements count anew."""
        self._tallies.clear()

    def _choose(self, levels: Levels, demand: Demand) -> Chosen | Shortfall:
        """The leaves, if what is chosen can be handed down to them and every one of them holds its part."""
        if demand.balanced and (even := balance(self.tree, levels, demand)) is not None:
            leaves = Descent(self.tree, even.levels, demand).to_leaves(even.chosen, pooling=False)
            if leaves is not None and self._holds(even.levels, leaves, demand):
                return leaves
        found = search(levels, demand)
        if isinstance(found, Shortfall):
            return found
        leaves = Descent(self.tree, levels, demand).to_leaves(found)
        if leaves is None or not self._holds(levels, leaves, demand):
            return Shortfall(found.level, 0)
        return leaves

    def _holds(self, levels: Levels, leaves: Chosen, demand: Demand) -> bool:
        """Recounted: nothing is missing, and no leaf takes more than it can."""
        counts = levels[self.tree.bottom]
        most = counts.pods[leaves.domains]
        if leaves.leader is not None:
            most = np.where(
                leaves.domains == leaves.leader, counts.pods_beside[leaves.domains], most
            )
        is_led = not demand.leaders or (
            leaves.leader is not None and counts.leads is not None and counts.leads[leaves.leader]
        )
        whole = int(leaves.pods.sum()) == demand.count
        return bool(is_led and whole and (leaves.pods <= most).all())

    def _plan(self, leaves: Chosen) -> Plan:
        pairs = zip(leaves.domains.tolist(), leaves.pods.tolist(), strict=True)
        workers = self._assignment([(leaf, pods) for leaf, pods in pairs if pods])
        leader = None if leaves.leader is None else self._assignment([(leaves.leader, 1)])
        return Plan(workers=workers, leader=leader)

    def _assignment(self, pairs: Sequence[tuple[int, int]]) -> TopologyAssignment:
        paths, shown = self.tree.paths, slice(-1 if self.tree.names_hosts else 0, None)
        return TopologyAssignment(
            levels=self.tree.written_levels,
            domains=tuple([(paths[leaf][shown], pods) for leaf, pods in pairs]),
        )

    def _levels(self, demand: Demand, *, empty: bool) -> Levels:
        if demand.within is not None:
            return fresh(self._counter(demand.shape, empty=empty), demand.within)
        key = (empty, demand.shape)
        tally = self._tallies.get(key)
        if tally is None:
            tally = self._tallies[key] = Tally(self._counter(demand.shape, empty=empty))
            if len(self._tallies) > _SHAPES_KEPT:
                self._tallies.popitem(last=False)
        self._tallies.move_to_end(key)
        return tally.current()

    def _counter(self, shape: Shape, *, empty: bool) -> Counter:
        return Counter(shape, self.tree, self.idle if empty else self.now, self.screen)

    def _present(self) -> Bools:
        return np.array([bool(nodes) for nodes in self._at], dtype=np.bool_)

    def _settle(self, leaf: int, node: Node, offer: Requests) -> None:
        self._homes[node.name] = leaf
        self._at[leaf][node.name] = offer
        if self.tree.names_hosts:
            self.screen.change(leaf, node)
        self.ground.set(leaf, _total(self._at[leaf].values()))


def _path(levels: tuple[str, ...], node: Node) -> Path:
    return tuple(map(node.labels.__getitem__, levels))


def _total(offers: Iterable[Requests]) -> Requests:
    """What several nodes offer together; no saturation: a node's amounts are what it has."""
    several = list(offers)
    if len(several) == 1:
        return several[0]
    total: dict[str, int] = {}
    for offer in several:
        for resource, value in offer.items():
            total[resource] = total.get(resource, 0) + value
    return total
