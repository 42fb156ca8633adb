"""The `symbal` command."""

from symbal_hf.cli.app import main

__all__ = ["main"]
