"""`sluice sandbox`: a simulated cluster in the foreground."""

import asyncio
from pathlib import Path

from app.sandbox.cluster import serve
from app.sandbox.settings import SandboxSettings, gpu_nodes


def run(*, nodes: int, gpus: int, port: int, speed: float, output: Path) -> None:
    settings = SandboxSettings(port=port, speed=speed, nodes=gpu_nodes(nodes, gpus))
    print(f"a cluster of {nodes} nodes; kubectl --kubeconfig {output} get nodes; Ctrl-C ends it")
    try:
        asyncio.run(serve(settings, output))
    except KeyboardInterrupt:
        return
