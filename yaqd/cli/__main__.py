"""`python -m yaqd.cli`: the same as `yaq`, for interpreters whose scripts are not on the path."""

from yaqd.cli import main

if __name__ == "__main__":
    main()
