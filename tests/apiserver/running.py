"""A real server on a free port, in this loop, and the real kubectl to drive it.

It speaks TLS because kubectl sends no credentials over plain HTTP.
"""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from starlette.requests import Request

from app.apiserver.application import build_app
from app.apiserver.context import Attributes, Server
from app.apiserver.memory import MemoryStorage
from app.apiserver.registry import Registry
from app.apiserver.storage import User
from app.errors import Forbidden, Unauthorized
from tests.apiserver.toys import TOOL, WORKSHOP

TOKENS = {"alice-token": User("alice", ("admins",)), "bob-token": User("bob", uid="b-1")}


async def authenticate(request: Request) -> User:
    token = request.headers.get("authorization", "").removeprefix("Bearer ")
    if token not in TOKENS:
        raise Unauthorized("a token is needed")
    return TOKENS[token]


async def authorize(user: User, asked: Attributes) -> None:
    """Alice may do everything; Bob may read, and patch what is there."""
    if user.name == "alice" or asked.verb in ("get", "list", "watch", "patch"):
        return
    raise Forbidden(
        f'User "{user.name}" cannot {asked.verb} {asked.kind.resource if asked.kind else asked.path}'
    )


@dataclass
class Running:
    server: Server
    storage: MemoryStorage
    url: str
    missing: dict[str, str] = field(default_factory=dict)


def make_certificate(path: Path) -> Path:
    """A self-signed certificate and its key in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + secret)
    return path


@asynccontextmanager
async def running(certificate: Path, *, log_limit: int = 10_000) -> AsyncIterator[Running]:
    storage = MemoryStorage(log_limit=log_limit, progress_s=0.1)
    missing: dict[str, str] = {}

    async def ready() -> dict[str, str]:
        return missing

    server = Server(
        registry=Registry([WORKSHOP, TOOL]),
        storage=storage,
        authenticate=authenticate,
        authorize=authorize,
        ready=ready,
        bookmark_every_s=0.2,
    )
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:  # else asyncio leaves Nagle on
        listener.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        config = uvicorn.Config(
            build_app(server),
            log_level="error",
            access_log=False,
            lifespan="off",
            ssl_certfile=certificate,
            ssl_keyfile=certificate,
        )
        http = uvicorn.Server(config)
        serving = asyncio.create_task(http.serve(sockets=[listener]))
        while not http.started:  # noqa: ASYNC110 (uvicorn has no event for it)
            await asyncio.sleep(0.01)
        yield Running(server, storage, url, missing)
        server.stopping.set()
        http.should_exit = True
        await asyncio.wait_for(serving, 10)


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Kubectl:
    url: str
    home: Path
    namespace: str
    token: str = "alice-token"
    kubeconfig: Path | None = None  # instead of url and token

    async def start(self, *args: str) -> asyncio.subprocess.Process:
        access = [
            f"--server={self.url}",
            f"--token={self.token}",
            "--insecure-skip-tls-verify",
        ]
        if self.kubeconfig is not None:
            access = [f"--kubeconfig={self.kubeconfig}"]
        return await asyncio.create_subprocess_exec(
            str(Path(sys.executable).parent / "kubectl"),
            *access,
            f"--cache-dir={self.home}/cache",
            f"--namespace={self.namespace}",
            *args,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={
                "HOME": str(self.home),
                "PATH": "/usr/bin:/bin",
                "KUBE_EDITOR": "sed -i s/EDITME/edited/",
            },
        )

    async def attempt(self, *args: str, stdin: Any = None) -> Answer:
        """`stdin` is text, or a manifest."""
        text = stdin if isinstance(stdin, str) else json.dumps(stdin) if stdin is not None else ""
        process = await self.start(*args)
        out, err = await asyncio.wait_for(process.communicate(text.encode()), 30)
        return Answer(process.returncode or 0, out.decode(), err.decode())

    async def __call__(self, *args: str, stdin: Any = None) -> Answer:
        answer = await self.attempt(*args, stdin=stdin)
        assert answer.code == 0, f"kubectl {' '.join(args)}: {answer.err or answer.out}"
        return answer

    async def get(self, *what: str) -> Any:
        return (await self("get", *what, "-o", "json")).json()
