"""What do the registered admission webhooks make of a write?

Mutating webhooks run one after the other in the order of their configurations' names, each seeing the changes of those
before; then the object is defaulted and validated once more, and all validating webhooks run side by side. A denial is
passed on; a webhook that cannot be asked counts by its failure policy. ``reinvocationPolicy: IfNeeded`` is not
followed: no webhook is asked twice.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import jsonpatch

from app.apiserver.encoding import copy
from app.apiserver.kinds import Kind
from app.apiserver.storage import Storage
from app.core.manifests import Manifest
from app.errors import AppError
from app.sandbox.admission.call import CallFailed, WebhookClient
from app.sandbox.admission.match import Hook, Seen, rules_match, selectors_match
from app.sandbox.admission.review import Answer, BadAnswer, Denied, Write, read_answer, review

HookKind = Literal["mutating", "validating"]


class Webhooks:
    def __init__(
        self,
        storage: Storage,
        *,
        configurations: Mapping[HookKind, Kind],
        namespaces: Kind,
        client: WebhookClient,
        new_uid: Callable[[], str],
    ) -> None:
        self._storage = storage
        self._configurations = configurations
        self._namespaces = namespaces
        self._client = client
        self._new_uid = new_uid
        self._read: dict[HookKind, tuple[Sequence[Manifest], tuple[Hook, ...]]] = {}

    async def interested(self, seen: Seen) -> bool:
        """Tell whether any webhook's rules match, before the object is looked at."""
        hooks = [*await self._hooks("mutating"), *await self._hooks("validating")]
        return any(rules_match(hook, seen) for hook in hooks)

    async def run(self, write: Write) -> Manifest | None:
        """Return what is to be stored, or raise."""
        labels = await self._namespace_labels(write)
        for hook in await self._matching("mutating", write, labels):
            answer = await self._ask(hook, write)
            if answer is not None and answer.patch and write.new is not None:
                write = replace(write, new=_patched(hook, write.new, answer))
        if write.new is not None:
            new = write.kind.prepare(copy(write.new), write.old)
            write = replace(write, new=_counted(write.kind, new, write.old))
        hooks = await self._matching("validating", write, labels)
        await asyncio.gather(*(self._ask(hook, write) for hook in hooks))
        return write.new

    async def _hooks(self, which: HookKind) -> tuple[Hook, ...]:
        items = (await self._storage.list(self._configurations[which], None)).items
        known = self._read.get(which)
        if known is None or known[0] is not items:
            hooks = tuple(
                Hook(kind=which, spec=spec) for item in items for spec in item.get("webhooks") or ()
            )
            known = self._read[which] = (items, hooks)
        return known[1]

    async def _matching(
        self, which: HookKind, write: Write, labels: Mapping[str, str] | None
    ) -> list[Hook]:
        seen = Seen(kind=write.kind, operation=write.operation, subresource=write.info.subresource)
        return [
            hook
            for hook in await self._hooks(which)
            if rules_match(hook, seen) and selectors_match(hook, labels, write.new, write.old)
        ]

    async def _namespace_labels(self, write: Write) -> Mapping[str, str] | None:
        if write.kind.key == self._namespaces.key:
            namespace = write.new or write.old
        elif write.namespace is not None:
            namespace = await self._storage.get(self._namespaces, None, write.namespace)
        else:
            return None
        return (namespace or {"metadata": {}})["metadata"].get("labels") or {}

    async def _ask(self, hook: Hook, write: Write) -> Answer | None:
        """Return the answer of a webhook that allows the write; None if its failure is to be ignored."""
        uid = self._new_uid()
        try:
            body = await self._client.call(hook, review(write, uid))
            answer = read_answer(body, uid, may_patch=hook.kind == "mutating")
        except CallFailed as error:
            _tolerate(hook, f"failed to call webhook: {error}")
            return None
        except BadAnswer as error:
            _tolerate(hook, f"received invalid webhook response: {error}")
            return None
        write.info.warnings.extend(answer.warnings)
        if not answer.allowed:
            raise Denied(hook.name, answer.status)
        return answer


def _tolerate(hook: Hook, why: str) -> None:
    if not hook.ignores_failures:
        raise AppError(f'Internal error occurred: failed calling webhook "{hook.name}": {why}')


def _patched(hook: Hook, manifest: Manifest, answer: Answer) -> Manifest:
    try:
        patched: Manifest = jsonpatch.apply_patch(manifest, list(answer.patch))
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
        raise AppError(
            f'Internal error occurred: patch of webhook "{hook.name}": {error}'
        ) from error
    return patched


def _counted(kind: Kind, new: Manifest, old: Manifest | None) -> Manifest:
    """A webhook that changes the spec of an update makes a new generation of it."""
    if old is None or not kind.status or new.get("spec") == old.get("spec"):
        return new
    generation = old["metadata"].get("generation", 0) + 1
    return {**new, "metadata": {**new["metadata"], "generation": generation}}
