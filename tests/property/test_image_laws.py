"""An image kept by changes equals a full load of what remains."""

from hypothesis import given, settings
from hypothesis import strategies as st

from app.core import lifecycle
from app.core.image import Image
from app.core.manifests import Manifest, parse
from app.core.model import Workload
from app.core.upkeep import advance
from tests.builders import NOW, run
from tests.property.strategies import cohorts, queues, workloads, worlds

Identity = tuple[str, str]


def identity(manifest: Manifest) -> Identity:
    return manifest["kind"], manifest["metadata"]["name"]


def shown(of: Image) -> object:
    """Everything that is state rather than memory."""
    trees = {
        name: [
            (
                node.name,
                node.height,
                node.cyclic,
                sorted(node.subtree.items()),
                sorted(node.guaranteed.items()),
                sorted((fr, used) for fr, used in node.usage.items() if used),
            )
            for node in (queue, *queue.path())
        ]
        for name, queue in sorted(of.tree.queues().items())
    }
    waiting = {
        name: sorted(one.uid for one in (*of.pending(name), *of.parked(name)))
        for name in sorted(of.cluster_queues)
    }
    running = {name: sorted(held) for name, held in sorted(of.holdings.items()) if held}
    return trees, waiting, running, sorted(of.workloads)


@settings(max_examples=80, deadline=None)
@given(st.data(), worlds())
def test_incremental_equals_full(data: st.DataObject, manifests: list[Manifest]) -> None:
    known = {identity(manifest): manifest for manifest in manifests}
    of = Image.load([parse(manifest) for manifest in manifests])
    for step in range(data.draw(st.integers(1, 6))):
        _change(data, of, known, step)

        assert shown(of) == shown(Image.load([parse(manifest) for manifest in known.values()]))


def _change(data: st.DataObject, of: Image, known: dict[Identity, Manifest], step: int) -> None:
    match data.draw(st.sampled_from(["cycle", "remove", "queues", "workloads", "stop", "finish"])):
        case "cycle":
            _cycle(of, known, step)
        case "remove":
            kind, name = data.draw(st.sampled_from(sorted(known)))
            del known[kind, name]
            of.remove(kind, "default" if kind in ("Workload", "LocalQueue") else None, name)
        case "queues":
            _put(of, known, *data.draw(cohorts()), *data.draw(queues()))
        case "workloads":
            fresh = data.draw(workloads(most=3))
            _put(of, known, *(one for one in fresh if identity(one) not in known))
        case "stop":
            stop = data.draw(st.sampled_from(["None", "HoldAndDrain"]))
            changed = [m for m in known.values() if m["kind"] == "ClusterQueue"]
            _put(of, known, *({**m, "spec": {**m["spec"], "stopPolicy": stop}} for m in changed))
            _settle(of, known)
        case _:
            running = [m for m in known.values() if lifecycle.is_true(_status(m), "Admitted")]
            _put(of, known, *(lifecycle.finish(m, "Succeeded", "", NOW) for m in running))


def _cycle(of: Image, known: dict[Identity, Manifest], step: int) -> None:
    result = run(of, after=step)
    for admit in result.admissions:
        _put(of, known, lifecycle.admit(known["Workload", admit.name], admit, NOW))
    for preempt in result.preemptions:
        _put(of, known, lifecycle.preempt(known["Workload", preempt.name], preempt, NOW))
    _settle(of, known)


def _settle(of: Image, known: dict[Identity, Manifest]) -> None:
    for manifest in [m for m in known.values() if m["kind"] == "Workload"]:
        done = advance(manifest, of, NOW)
        noun = parse(done)
        if (
            isinstance(noun, Workload)
            and noun.evicted
            and noun.admission
            and noun.uid[-1] in "02468"
        ):
            done = lifecycle.release(done, NOW)  # the jobs of the others take their time
        _put(of, known, done)


def _put(of: Image, known: dict[Identity, Manifest], *manifests: Manifest) -> None:
    for manifest in manifests:
        known[identity(manifest)] = manifest
        of.put(parse(manifest))


def _status(manifest: Manifest) -> Manifest:
    return manifest.get("status") or {}
