"""``python -m calibrant.cli``, where no script was installed."""

from calibrant.cli import main

if __name__ == "__main__":
    main()
