"""`python -m symbal_hf.cli` is `symbal`."""

from symbal_hf.cli.app import main

if __name__ == "__main__":
    main()
