"""`python -m claudius`: the command, whatever it is installed as."""

from claudius.cli import main

if __name__ == "__main__":
    main()
