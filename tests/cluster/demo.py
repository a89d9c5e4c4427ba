"""The demo on a real control plane: the same script, the same view, real apiserver, controllers and scheduler.

`make demo-real` runs it. The programs are built at the first run, which takes some ten minutes.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from app.cli.demo import play
from app.cli.demo.script import Script
from app.errors import AppError
from app.observability import logging
from tests.cluster.build import BuildError, ensure_assets
from tests.cluster.controlplane import ControlPlane, ControlPlaneError
from tests.cluster.nodes import create_nodes


@asynccontextmanager
async def control_plane(folder: Path, script: Script) -> AsyncIterator[Path]:
    """A control plane with the script's nodes; its kubeconfig goes with the folder."""
    cluster = ControlPlane(work_dir=folder / "control-plane")
    await asyncio.to_thread(cluster.start)
    try:
        await asyncio.to_thread(create_nodes, cluster.admin, list(script.nodes))
        yield cluster.kubeconfig
    finally:
        await asyncio.to_thread(cluster.stop)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make demo-real T=", description=__doc__)
    parser.add_argument("-f", "--file", action="append", type=Path, default=[])
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--timeout", type=float, default=300.0)
    given = parser.parse_args()
    logging.setup("WARNING", "text")
    try:
        ensure_assets(report=print)
        wishes = play.Wishes(files=given.file, keep=given.keep, timeout_s=given.timeout)
        return play.run(wishes, control_plane)
    except (AppError, BuildError, ControlPlaneError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
