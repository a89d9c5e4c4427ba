"""The `sluice` command: parses arguments and calls what does the work. Errors are one sentence, never a traceback."""

import sys
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from app.cli.supervised import die_with_supervisor
from app.errors import AppError, Misconfigured
from app.observability import logging
from app.settings import Settings

cli = typer.Typer(
    help="Sluice: an admission-queue controller for GPU clusters.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
token = typer.Typer(help="API tokens.", no_args_is_help=True)
cli.add_typer(token, name="token")

Role = Annotated[str, typer.Option(help="admin or viewer.")]


def main() -> None:
    die_with_supervisor()
    try:
        cli(standalone_mode=False)
    except AppError as error:
        print(f"sluice: {error.message}", file=sys.stderr)
        sys.exit(2 if isinstance(error, Misconfigured) else 1)
    except typer.Abort:
        sys.exit(130)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        error.show()  # type: ignore[attr-defined]
        sys.exit(getattr(error, "exit_code", 1))


def _settings() -> Settings:
    settings = Settings.load()
    logging.setup(settings.log_level, settings.log_format)
    return settings


@cli.command()
def version() -> None:
    """Print the version."""
    try:
        print(metadata.version("sluice"))
    except metadata.PackageNotFoundError:
        print("unknown (run from its source, not installed)")


@cli.command()
def serve(
    role: Annotated[str, typer.Option(help="all, engine or api.")] = "all",
) -> None:
    """Run the service for the cluster of $KUBECONFIG, or the one it runs in."""
    from app.cli import serve as serving

    settings = _settings()
    if role == "all":
        serving.run_all(settings)
    elif role in serving.ROLES:
        serving.run_role(role, settings)
    else:
        raise Misconfigured(f"--role {role}: expected all, {' or '.join(serving.ROLES)}")


@cli.command()
def migrate(
    to: Annotated[str, typer.Option(help="Revision to go to; 'base' undoes all.")] = "head",
) -> None:
    """Bring the database schema up to date."""
    from app.cli import database

    database.migrate(_settings(), to)


@cli.command()
def kubeconfig(
    role: Role = "admin",
    name: Annotated[str, typer.Option(help="Name of the token, as the audit shows it.")] = "",
    server: Annotated[
        str, typer.Option(help="Address of the API, if it is not on this machine.")
    ] = "",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write.")] = None,
) -> None:
    """Make a token and print a kubeconfig for Sluice's own API."""
    from app.cli import access

    access.kubeconfig(_settings(), role=role, name=name, server=server, output=output)


@token.command("create")
def token_create(
    name: str,
    role: Role = "viewer",
    days: Annotated[
        float | None, typer.Option(help="How long it works; for ever if unset.")
    ] = None,
) -> None:
    """Make a token and print it; it is shown this once."""
    from app.cli import access

    access.create(_settings(), name, role, days)


@token.command("list")
def token_list() -> None:
    """List tokens."""
    from app.cli import access

    access.show(_settings())


@token.command("revoke")
def token_revoke(name: str) -> None:
    """Make a token worthless, within seconds."""
    from app.cli import access

    access.revoke(_settings(), name)


@cli.command()
def sandbox(
    nodes: Annotated[int, typer.Option(help="How many nodes.")] = 16,
    gpus: Annotated[int, typer.Option(help="GPUs on each.")] = 8,
    port: Annotated[int, typer.Option(help="0: any that is free.")] = 0,
    speed: Annotated[float, typer.Option(help="Simulated seconds a second.")] = 1.0,
    output: Annotated[Path, typer.Option("--kubeconfig", help="Where to write it.")] = Path(
        "sandbox.kubeconfig"
    ),
) -> None:
    """Run a simulated cluster in this process, until interrupted."""
    from app.cli import cluster

    _settings()
    cluster.run(nodes=nodes, gpus=gpus, port=port, speed=speed, output=output)


@cli.command()
def demo(
    files: Annotated[
        list[Path] | None, typer.Option("--file", "-f", help="Your own manifests instead.")
    ] = None,
    keep: Annotated[bool, typer.Option(help="Stay up afterwards and print kubeconfigs.")] = False,
    speed: Annotated[float, typer.Option(help="Simulated seconds a second.")] = 1.0,
    timeout: Annotated[int, typer.Option(help="Give up after so many seconds.")] = 300,
) -> None:
    """Play two teams on a 16-node GPU cluster, from nothing, in this terminal."""
    from app.cli.demo import play

    logging.setup("ERROR", _settings().log_format)
    wishes = play.Wishes(files=tuple(files or ()), keep=keep, speed=speed, timeout_s=timeout)
    sys.exit(play.run(wishes))


@cli.command()
def openapi(folder: Path) -> None:
    """Write the OpenAPI documents of this version into a folder."""
    from app.cli import documents

    documents.write(folder)
