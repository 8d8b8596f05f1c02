"""Run the command line as `python -m smokegeo`."""

from smokegeo.cli import main

if __name__ == "__main__":
    main()
