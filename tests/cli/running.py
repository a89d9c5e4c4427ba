"""Runs the `sluice` command: in this process, which is quick, or in one of its own, as people do."""

import asyncio
import io
import os
import subprocess
import sys
import threading
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from app.cli import main as command
from app.observability import logging

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    def sentence(self) -> str:
        """What a failure said; it is one line, and nothing went to standard output."""
        assert self.code in (1, 2), self
        assert not self.out, self
        line, rest = self.err.split("\n", 1)
        assert not rest, self
        assert line.startswith("sluice: "), self
        return line.removeprefix("sluice: ")


@dataclass
class Shell:
    """A person's shell: a folder to be in, and variables that are set."""

    home: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        kept = {key: os.environ[key] for key in ("PATH", "LANG") if key in os.environ}
        place = {"HOME": str(self.home), "SLUICE_DATA_DIR": str(self.home / "data")}
        return {**kept, **place, **self.variables}

    def __call__(self, *args: str, **variables: str) -> Outcome:
        """In this process, in a thread of its own, since the command runs event loops."""
        out, err, codes = io.StringIO(), io.StringIO(), [0]

        def work() -> None:
            try:
                command.main()
            except SystemExit as exit_:
                codes.append(exit_.code if isinstance(exit_.code, int) else 1)

        with (
            mock.patch.dict(os.environ, {**self.environment, **variables}, clear=True),
            mock.patch.object(sys, "argv", ["sluice", *args]),
            mock.patch.object(logging, "setup"),  # it would reconfigure the tests' own logging
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join(30)
        assert not thread.is_alive(), f"sluice {' '.join(args)} does not end"
        return Outcome(codes[-1], out.getvalue(), err.getvalue())

    def run(self, *args: str, **variables: str) -> Outcome:
        """In a process of its own."""
        done = subprocess.run(
            [sys.executable, "-m", "app", *args],
            cwd=self.home,
            env={**self.environment, "PYTHONPATH": str(ROOT), **variables},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    async def start(self, *args: str, **variables: str) -> asyncio.subprocess.Process:
        """In a process of its own that stays."""
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "app",
            *args,
            cwd=self.home,
            env={**self.environment, "PYTHONPATH": str(ROOT), **variables},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
