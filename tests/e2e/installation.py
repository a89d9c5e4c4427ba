"""Sluice as a person installs it: `sluice serve` in processes of its own, over a database, for a cluster.

It can be stopped, killed whole or in part, and started again in the same place; its log goes on in one file. All of
its processes end with the test run.
"""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.cluster.processes import free_ports
from tests.e2e.waiting import eventually

PASSED_ON = ("PATH", "HOME", "TMPDIR", "TZ", "VIRTUAL_ENV")
START_S = 40.0


@dataclass
class Installation:
    """`folder` is its data folder; several over one database are replicas."""

    folder: Path
    kubeconfig: Path
    database_url: str
    port: int = field(default_factory=lambda: free_ports(1)[0])
    process: subprocess.Popen[bytes] | None = None

    @property
    def log_file(self) -> Path:
        return self.folder / "serve.log"

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    @property
    def environment(self) -> dict[str, str]:
        mine = {
            "DATABASE_URL": self.database_url,
            "KUBECONFIG": str(self.kubeconfig),
            "SLUICE_DATA_DIR": str(self.folder),
            "SLUICE_API_PORT": str(self.port),
            "SLUICE_SUPERVISED_BY": str(os.getpid()),
        }
        return {name: os.environ[name] for name in PASSED_ON if name in os.environ} | mine

    def run(self, *arguments: str) -> str:
        """A `sluice` command, to its end."""
        ended = subprocess.run(
            [sys.executable, "-m", "app", *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def launch(self) -> None:
        """Start it, and do not wait."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "app", "serve"],
                env=self.environment,
                stdout=log,
                stderr=log,
            )

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def role(self, name: str) -> psutil.Process:
        """The process of one role, once it is there."""

        def find() -> psutil.Process | None:
            assert self.process is not None
            for child in psutil.Process(self.process.pid).children():
                if name in child.cmdline():
                    return child
            return None

        return eventually(find)

    def kill(self) -> None:
        """Everything at once, without a chance to say good-bye."""
        assert self.process is not None
        children = psutil.Process(self.process.pid).children(recursive=True)
        self.process.kill()
        self.process.wait()
        psutil.wait_procs(children, timeout=10)

    def stop(self) -> None:
        """As an orderly shutdown does."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=30) == 0, self.log[-3000:]
        self.process = None
