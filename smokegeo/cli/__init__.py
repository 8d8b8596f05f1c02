"""The command line: one small file per command, loaded when it is needed."""

from __future__ import annotations

from smokegeo.cli.main import cli, main

__all__ = ["cli", "main"]
