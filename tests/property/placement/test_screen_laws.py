"""A screen that followed its nodes judges as one made from them, and as one node at a time."""

from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.model import Node
from app.core.placement.screen import Criteria, Screen
from app.core.selectors import NodeAffinity, Requirement, Taint, Toleration

_KEYS, _VALUES = ("disk", "zone"), ("1", "2", "x")
_TAINTS = st.builds(
    Taint, key=st.sampled_from(_KEYS), effect=st.sampled_from(["NoSchedule", "PreferNoSchedule"])
)
_NODES = st.builds(
    Node,
    name=st.sampled_from(["a", "b"]),
    labels=st.dictionaries(st.sampled_from(_KEYS), st.sampled_from(_VALUES)),
    taints=st.lists(_TAINTS, max_size=2).map(tuple),
)
_REQUIREMENTS = st.builds(
    Requirement,
    key=st.sampled_from([*_KEYS, "metadata.name"]),
    operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt"]),
    values=st.sampled_from([("1",), ("2", "a"), ("x",)]),
)
_AFFINITIES = st.builds(
    NodeAffinity,
    terms=st.lists(st.lists(_REQUIREMENTS, max_size=2).map(tuple), min_size=1, max_size=2).map(
        tuple
    ),
)
_CRITERIA = st.builds(
    Criteria,
    tolerations=st.lists(
        st.builds(Toleration, key=st.sampled_from(_KEYS), operator=st.just("Exists")), max_size=1
    ).map(tuple),
    selector=st.lists(st.tuples(st.sampled_from(_KEYS), st.sampled_from(_VALUES)), max_size=1).map(
        tuple
    ),
    affinity=st.none() | _AFFINITIES,
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(_NODES, min_size=1, max_size=5),
    _CRITERIA,
    st.lists(st.tuples(st.integers(0, 4), st.none() | _NODES), max_size=4),
)
def test_masks_follow_their_nodes(
    nodes: list[Node], criteria: Criteria, edits: list[tuple[int, Node | None]]
) -> None:
    screen, now = Screen(list(nodes)), list[Node | None](nodes)
    screen.allowed(criteria)
    for place, node in edits:
        now[place % len(now)] = node
        screen.change(place % len(now), node)
    followed, made = screen.allowed(criteria), Screen(list(now)).allowed(criteria)
    assert followed is not None
    assert made is not None
    here = [place for place, node in enumerate(now) if node is not None]

    assert [bool(followed[place]) for place in here] == [bool(made[place]) for place in here]
    refused = sum(screen.refusals(criteria).values())
    assert refused == sum(not made[place] for place in here)
