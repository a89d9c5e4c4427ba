"""All flavors with a topology: which nodes belong to which, and what is placed where?

Told of nodes, flavors, topologies and of every pod set that is placed or leaves; answers with the site of a flavor. A
site is built when it is first asked for and then kept; a change of one node reaches it at one leaf. A node belongs to a
flavor when it is ready, not cordoned, carries the flavor's labels and has a value for every level.

Everything booked inside a ``trial`` is taken back at its end: it moves what is free and leaves the ledger alone. Only
on trial may pods be put into the cluster imagined without anything admitted. Nodes do not change inside a trial.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter

from app.core.model import Node, ResourceFlavor, Topology
from app.core.placement.ledger import Ledger, Occupation
from app.core.placement.site import Held, Site
from app.core.placement.stock import Undo
from app.core.resources import Requests


@dataclass(slots=True, eq=False)
class Journal:
    """What was booked since a trial began, how to take it back, and which sites were built meanwhile."""

    bookings: list[tuple[Occupation, int, bool]] = field(default_factory=list)
    undos: list[Undo] = field(default_factory=list)
    built: list[str] = field(default_factory=list)


class SiteTrial:
    """Takes back, in reverse, what was booked since it was entered."""

    __slots__ = ("_sites",)

    def __init__(self, sites: "Sites") -> None:
        self._sites = sites

    def __enter__(self) -> None:
        self._sites.journals.append(Journal())

    def __exit__(self, *_: object) -> None:
        self._sites.close(self._sites.journals.pop())


@dataclass(slots=True, eq=False)
class Sites:
    nodes: dict[str, Node] = field(default_factory=dict)
    flavors: dict[str, ResourceFlavor] = field(default_factory=dict)
    topologies: dict[str, Topology] = field(default_factory=dict)
    _others: dict[str, dict[str, int]] = field(default_factory=dict)  # by node: pods not of ours
    _admitted: Ledger = field(default_factory=Ledger)
    _built: dict[str, Site] = field(default_factory=dict)
    journals: list[Journal] = field(default_factory=list)  # of the trials that are on
    version: int = 0  # moves with every change that lasts

    # Questions

    def site(self, flavor: str) -> Site | None:
        """The nodes of a flavor; None for one without a topology, or with one that does not exist."""
        if flavor not in self._built:
            site = self._build(flavor)
            if site is None:
                return None
            self._built[flavor] = site
            self._join_trials(flavor, site)
        return self._built[flavor]

    def levels(self, flavor: str) -> tuple[str, ...]:
        """The levels of a flavor's topology; none without one."""
        known = self.flavors.get(flavor)
        topology = self.topologies.get(known.topology_name or "") if known is not None else None
        return () if topology is None else topology.levels

    def rebuild(self) -> None:
        """Forget all sites; each is built from the nodes when it is asked for again."""
        self._built.clear()

    # Changes of the cluster

    def put(self, noun: ResourceFlavor | Topology | Node) -> None:
        match noun:
            case ResourceFlavor():
                self.put_flavor(noun)
            case Topology():
                self.put_topology(noun)
            case Node():
                self.put_node(noun)

    def remove(self, noun: ResourceFlavor | Topology | Node) -> None:
        match noun:
            case ResourceFlavor():
                self.remove_flavor(noun.name)
            case Topology():
                self.remove_topology(noun.name)
            case Node():
                self.remove_node(noun.name)

    def put_flavor(self, flavor: ResourceFlavor) -> None:
        self.flavors[flavor.name] = flavor
        self._built.pop(flavor.name, None)
        self.version += 1

    def remove_flavor(self, name: str) -> None:
        self.flavors.pop(name, None)
        self._built.pop(name, None)
        self.version += 1

    def put_topology(self, topology: Topology) -> None:
        self.topologies[topology.name] = topology
        self._forget_topology(topology.name)

    def remove_topology(self, name: str) -> None:
        self.topologies.pop(name, None)
        self._forget_topology(name)

    def put_node(self, node: Node) -> None:
        self.nodes[node.name] = node
        self.version += 1
        for flavor in list(self._built):
            self._settle(flavor, node)

    def remove_node(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.version += 1
        for site in self._built.values():
            self._renew(site, site.remove_node(name))

    def put_others(self, node: str, usage: Requests) -> bool:
        """What pods that no placement of ours put there take of a node, all together, places for pods included.

        True when that left more room than before.
        """
        before = self._others.pop(node, {})
        if usage:
            self._others[node] = dict(usage)
        if node in self.nodes and before != usage:
            self.put_node(self.nodes[node])
        return any(usage.get(resource, 0) < value for resource, value in before.items())

    # Changes of what is placed

    def occupy(self, places: Iterable[Occupation], sign: int = 1, *, empty: bool = False) -> None:
        """Pods are placed, or with a sign of -1 leave; `empty`: in the cluster imagined without what is admitted."""
        for occupation in places:
            if self.journals:
                self.journals[-1].bookings.append((occupation, sign, empty))
                for site in self._seeing(occupation):
                    self.journals[-1].undos.append(_shifted(site, occupation, sign, empty=empty))
                continue
            self.version += 1
            self._admitted.book(occupation, sign)
            for site in self._seeing(occupation):
                self._write(site, [leaf for leaf, _ in _leaves(site, occupation)])

    def close(self, journal: Journal) -> None:
        """Take back what a trial booked. Sites built meanwhile have it in them: they go, unless nothing was booked."""
        for undo in reversed(journal.undos):
            undo.undo()
        if journal.bookings:
            for flavor in journal.built:
                self._built.pop(flavor, None)
        elif self.journals:
            self.journals[-1].built += journal.built

    def trial(self) -> SiteTrial:
        """Everything booked inside is taken back at the end. Trials nest."""
        return SiteTrial(self)

    # Building

    def _build(self, name: str) -> Site | None:
        levels = self.levels(name)
        if not levels:
            return None
        flavor = self.flavors[name]
        members = [
            (node, self._offer(node))
            for node in sorted(self.nodes.values(), key=attrgetter("name"))
            if _belongs(node, flavor, levels)
        ]
        site = Site.build(name, flavor.topology_name or "", levels, members)
        return site.stocked(_held(site, self._admitted))

    def _join_trials(self, flavor: str, site: Site) -> None:
        """A site built inside trials has in it what they booked."""
        for journal in self.journals:
            for occupation, sign, empty in journal.bookings:
                if site.scope == occupation.scope:
                    _shifted(site, occupation, sign, empty=empty)
        if self.journals:
            self.journals[-1].built.append(flavor)

    def _seeing(self, occupation: Occupation) -> list[Site]:
        return [site for site in self._built.values() if site.scope == occupation.scope]

    def _settle(self, name: str, node: Node) -> None:
        site = self._built[name]
        if not _belongs(node, self.flavors[name], site.tree.levels):
            self._renew(site, site.remove_node(node.name))
            return
        leaf = site.put_node(node, self._offer(node))
        if leaf is None:
            del self._built[name]
        self._renew(site, leaf)

    def _renew(self, site: Site, leaf: int | None) -> None:
        """The ground of a leaf changed."""
        if leaf is not None:
            self._write(site, [leaf])
            site.idle.write([leaf], [{}])

    def _write(self, site: Site, leaves: list[int]) -> None:
        written = site.tree.written
        held = [self._admitted.held(site.scope, written(leaf)) for leaf in leaves]
        site.now.write(leaves, held)

    def _offer(self, node: Node) -> Requests:
        others = self._others.get(node.name)
        if not others:
            return node.allocatable
        return {r: value - others.get(r, 0) for r, value in node.allocatable.items()}

    def _forget_topology(self, name: str) -> None:
        self.version += 1
        for flavor in self.flavors.values():
            if flavor.topology_name == name:
                self._built.pop(flavor.name, None)


def _leaves(site: Site, occupation: Occupation) -> list[tuple[int, int]]:
    """The leaves that are there of those it names, and the pods of each."""
    found: dict[int, int] = {}
    for values, pods in occupation.assignment.domains:
        leaf = site.leaf(values)
        if leaf is not None:
            found[leaf] = found.get(leaf, 0) + pods
    return list(found.items())


def _shifted(site: Site, occupation: Occupation, sign: int, *, empty: bool) -> Undo:
    leaves = _leaves(site, occupation)
    stock = site.idle if empty else site.now
    return stock.shift(
        [leaf for leaf, _ in leaves], [sign * pods for _, pods in leaves], dict(occupation.asked)
    )


def _held(site: Site, ledger: Ledger) -> Held:
    for values, entry in ledger.entries(site.scope).items():
        leaf = site.leaf(values)
        if leaf is not None:
            yield leaf, entry


def _belongs(node: Node, flavor: ResourceFlavor, levels: tuple[str, ...]) -> bool:
    labels = node.labels
    return (
        node.ready
        and flavor.node_labels.items() <= labels.items()
        and all(map(labels.__contains__, levels))
    )
