"""`sluice sandbox`: a simulated cluster in the foreground."""

import asyncio
from pathlib import Path

from app.errors import Misconfigured
from app.sandbox.cluster import serve
from app.sandbox.settings import SandboxSettings, gpu_nodes


def run(*, nodes: int, gpus: int, port: int, speed: float, output: Path) -> None:
    """Raises Misconfigured for wishes that cannot be met."""
    if nodes < 0 or gpus < 0 or not 0 <= port <= 65535 or not speed > 0:
        raise Misconfigured(
            "--nodes and --gpus must not be negative, --port must be at most 65535, --speed above 0"
        )
    settings = SandboxSettings(port=port, speed=speed, nodes=gpu_nodes(nodes, gpus))
    print(f"a cluster of {nodes} nodes; kubectl --kubeconfig {output} get nodes; Ctrl-C ends it")
    try:
        asyncio.run(serve(settings, output))
    except KeyboardInterrupt:
        return
    except OSError as error:
        raise Misconfigured(f"the sandbox cannot run: {error}") from error
