"""`python -m ova` is `ova`."""

from ova.cli import main

main()
