"""`python -m symbal_hf.cli` is `symbal`."""

from symbal_hf.cli.app import main

main()
