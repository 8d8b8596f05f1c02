"""The command group, and the one place where errors become lines and exit codes."""

from __future__ import annotations

import importlib
import logging
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import click

from smokegeo import __version__
from smokegeo.errors import SmokegeoError, Terminated, deepest_cause, printable

#: Command name -> its module in this package; the module has a function of the same name.
COMMANDS = (
    "benchmark",
    "check",
    "consensus",
    "evaluate",
    "explain",
    "info",
    "models",
    "predict",
    "prepare",
    "simulate",
    "train",
    "vectorize",
)

_EPILOG = (
    "Exit codes: 0 done, 1 internal, 2 usage, 3 input, 4 model, 5 output, 130 Ctrl-C, 143 SIGTERM. "
    "Tab completion: see docs/install.md."
)


class LazyGroup(click.Group):
    """A group that imports a command's module only when that command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all command names."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"smokegeo.cli.{cmd_name}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the options before the command."""
        with _usage_in_one_line():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Read the options of a command and run it."""
        with _usage_in_one_line(ctx):
            return super().invoke(ctx)


class Command(click.Command):
    """A command with --quiet and --debug, whose errors are one line unless debugging."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += [
            click.Option(["-q", "--quiet"], is_flag=True, help="Say only warnings and errors."),
            click.Option(["--debug"], is_flag=True, help="Show the traceback of an error."),
        ]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; turn what it raises into a line and an exit code."""
        quiet = bool(ctx.params.pop("quiet"))
        debug = bool(ctx.params.pop("debug")) or bool((ctx.obj or {}).get("debug"))
        _start_logging(quiet=quiet, debug=debug)
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, SystemExit):
            raise
        except KeyboardInterrupt:
            click.echo("Interrupted. Nothing half-written was left behind.", err=True)
            ctx.exit(130)
        except SmokegeoError as error:
            _fail(error, str(error), error.exit_code, debug)
        except BrokenPipeError:
            ctx.exit(0)
        except Exception as error:
            text = f"{type(error).__name__}: {deepest_cause(error)}"
            _fail(
                error, f"internal error, {text} (--debug shows where; please report it).", 1, debug
            )


def command(**kwargs: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a smokegeo command."""
    return click.command(cls=Command, context_settings={"show_default": True}, **kwargs)


@click.group(
    cls=LazyGroup, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="smokegeo")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """Find smoke in multispectral and hyperspectral rasters.

    \b
    Your scene:
      smokegeo info scene.tif
      smokegeo predict scene.tif --out smoke.gpkg
    A first look, without any data of your own:
      smokegeo simulate satellite --out smoke-scene --scene 512x512
      smokegeo predict smoke-scene/scene.tif --out smoke.gpkg --map smoke.html
    """
    ctx.obj = {"debug": debug}


def main() -> NoReturn:
    """Run the command line as the `smokegeo` program."""
    signal.signal(signal.SIGTERM, _terminate)
    sys.exit(cli(prog_name="smokegeo"))


def _terminate(*_: object) -> NoReturn:
    raise Terminated


@contextmanager
def _usage_in_one_line(group: click.Context | None = None) -> Iterator[None]:
    """Say what is wrong with an option in one line; click itself takes three."""
    try:
        yield
    except click.UsageError as error:
        if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
            raise  # no error but the help; click 8.1 has no such thing
        if error.ctx is not None:
            path = error.ctx.command_path
        else:  # raised by a command itself
            words = (group.command_path, group.invoked_subcommand) if group is not None else ()
            path = " ".join(word for word in words if word) or "smokegeo"
        text = " ".join(error.format_message().split()).removesuffix(".")
        raise _Refusal(printable(f"{text} ({path} --help)."), error.exit_code) from None


def _fail(error: Exception, message: str, code: int, debug: bool) -> NoReturn:
    if debug:
        logging.getLogger("smokegeo").error("traceback of the error below", exc_info=error)
    raise _Refusal(printable(" ".join(message.split())), code) from None


class _Refusal(click.ClickException):
    """One `Error:` line with the exit code of what went wrong."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.exit_code = code  # type: ignore[misc]  # click declares it on the class


class _Format(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # logging's name
        text = printable(super().formatMessage(record))
        return f"Warning: {text}" if record.levelno == logging.WARNING else text


def _start_logging(*, quiet: bool, debug: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Format("%(message)s"))
    logger = logging.getLogger("smokegeo")
    logger.handlers[:] = [handler]
    logger.propagate = False
    logger.setLevel(logging.DEBUG if debug else logging.WARNING if quiet else logging.INFO)
