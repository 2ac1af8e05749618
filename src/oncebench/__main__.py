"""`python -m oncebench`: the same as the command."""

from oncebench.cli import main

if __name__ == "__main__":
    main()
