"""All flavors with a topology: which nodes belong to which, and what is placed where?

Told of nodes, flavors, topologies and of every pod set that is placed or leaves; answers with the site of a flavor. A
site is built when it is first asked for and then kept; a change of one node reaches it at one leaf. A node belongs to a
flavor when it is ready, not cordoned, carries the flavor's labels and has a value for every level.

There are two ledgers: what is admitted, and what a trial assumes while it imagines the cluster without all of it.
Everything booked inside a ``trial`` is taken back at its end; nodes do not change inside one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter

from app.core.model import Node, ResourceFlavor, Topology
from app.core.placement.ledger import Ledger, Occupation
from app.core.placement.site import Held, Site
from app.core.resources import Requests

_Booking = tuple[Occupation, int, bool]


class SiteTrial:
    """Takes back, in reverse, what was booked since it was entered."""

    __slots__ = ("_sites",)

    def __init__(self, sites: "Sites") -> None:
        self._sites = sites

    def __enter__(self) -> None:
        self._sites.journals.append([])

    def __exit__(self, *_: object) -> None:
        journal = self._sites.journals.pop()
        for occupation, sign, empty in reversed(journal):
            self._sites.book(occupation, -sign, empty=empty)


@dataclass(slots=True, eq=False)
class Sites:
    nodes: dict[str, Node] = field(default_factory=dict)
    flavors: dict[str, ResourceFlavor] = field(default_factory=dict)
    topologies: dict[str, Topology] = field(default_factory=dict)
    _others: dict[str, dict[str, int]] = field(default_factory=dict)  # by node: pods not of ours
    _admitted: Ledger = field(default_factory=Ledger)
    _imagined: Ledger = field(default_factory=Ledger)
    _built: dict[str, Site] = field(default_factory=dict)
    journals: list[list[_Booking]] = field(default_factory=list)  # of the trials that are on
    version: int = 0  # moves with every change that lasts

    # Questions

    def site(self, flavor: str) -> Site | None:
        """The nodes of a flavor; None for one without a topology, or with one that does not exist."""
        if flavor not in self._built:
            site = self._build(flavor)
            if site is None:
                return None
            self._built[flavor] = site
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
            self._write(site, site.remove_node(name))

    def put_others(self, node: str, usage: Requests) -> None:
        """What pods that no placement of ours put there take of a node, all together, places for pods included."""
        if usage:
            self._others[node] = dict(usage)
        else:
            self._others.pop(node, None)
        if node in self.nodes:
            self.put_node(self.nodes[node])

    # Changes of what is placed

    def occupy(self, places: Iterable[Occupation], sign: int = 1, *, empty: bool = False) -> None:
        """Pods are placed, or with a sign of -1 leave; `empty`: in the cluster imagined without what is admitted."""
        for occupation in places:
            if self.journals:
                self.journals[-1].append((occupation, sign, empty))
            else:
                self.version += 1
            self.book(occupation, sign, empty=empty)

    def book(self, occupation: Occupation, sign: int, *, empty: bool) -> None:
        """Write a change without noting it for a trial."""
        ledger = self._imagined if empty else self._admitted
        ledger.book(occupation, sign)
        resources = [resource for resource, _ in occupation.asked]
        for site in self._built.values():
            if site.scope == occupation.scope:
                stock = site.idle if empty else site.now
                for values, _ in occupation.assignment.domains:
                    leaf = site.leaf(values)
                    if leaf is not None:
                        stock.write(leaf, ledger.held(site.scope, values), resources)

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
        return site.stocked(empty=_held(site, self._imagined), full=_held(site, self._admitted))

    def _settle(self, name: str, node: Node) -> None:
        site = self._built[name]
        if not _belongs(node, self.flavors[name], site.tree.levels):
            self._write(site, site.remove_node(node.name))
            return
        leaf = site.put_node(node, self._offer(node))
        if leaf is None:
            del self._built[name]
        self._write(site, leaf)

    def _write(self, site: Site, leaf: int | None) -> None:
        if leaf is not None:
            values = site.tree.written(leaf)
            site.now.write(leaf, self._admitted.held(site.scope, values))
            site.idle.write(leaf, self._imagined.held(site.scope, values))

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
