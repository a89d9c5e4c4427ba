"""By which annotations does a simulated pod or node choose its fate?

The same words as in the stage files of the real test clusters, so that one manifest behaves alike on both. Durations
are seconds of simulated time, fractions allowed; the cluster's `speed` divides them.
"""

from typing import Any

from app.core.manifests import Manifest

RUN_SECONDS = "sluice.dev/run-seconds"  # how long it runs; "forever": until it is deleted
START_SECONDS = "sluice.dev/start-seconds"  # how long it stays bound but Pending; "never"
STOP_SECONDS = "sluice.dev/stop-seconds"  # how long it needs to stop once deleted
EXIT_CODE = "sluice.dev/exit-code"  # what its containers end with
FAIL = "sluice.dev/fail"  # "true": short for an exit code of 1
BROKEN = "sluice.dev/broken"  # on a node, "true": NotReady

DEFAULT_RUN_S = 2.0


def annotation(manifest: Manifest, name: str) -> str | None:
    annotations: dict[str, Any] = manifest["metadata"].get("annotations") or {}
    value = annotations.get(name)
    return None if value is None else str(value)


def seconds(manifest: Manifest, name: str, default: float) -> float | None:
    """Return the duration that an annotation names, None for "never" and "forever"; nonsense counts as absent."""
    text = annotation(manifest, name)
    if text is None:
        return default
    if text in ("never", "forever"):
        return None
    try:
        value = float(text)
    except ValueError:
        return default
    return value if 0 <= value < float("inf") else default


def exit_code(manifest: Manifest) -> int:
    if annotation(manifest, FAIL) == "true":
        return 1
    text = annotation(manifest, EXIT_CODE) or "0"
    return int(text) if text.isascii() and text.isdigit() else 0
